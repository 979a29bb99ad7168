"""sbxctl's files: cp both ways, ls, cat, stat, glob, grep."""

import os
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import unittest

from ctl import CtlTest
from harness import BOUND, BUILD, slurp, wait_for
from terminal import Terminal


def tree_of(root):
    """What is below a directory, for comparing: {name: (kind, mode, content or target, seconds)}."""
    found = {}
    for base, dirs, files in os.walk(os.fsencode(root)):
        for name in dirs + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            kind = stat.S_IFMT(st.st_mode)
            what = os.readlink(path) if stat.S_ISLNK(kind) else slurp(path, "rb") if stat.S_ISREG(kind) else b""
            mode = 0 if stat.S_ISLNK(kind) else stat.S_IMODE(st.st_mode)
            found[os.path.relpath(path, os.fsencode(root))] = (kind, mode, what, st.st_mtime_ns // 10**9)
    return found


def links_of(pid):
    """What its descriptors are."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


class Files(CtlTest):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, data, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, mode)
        return path

    def start(self, *args):
        p = subprocess.Popen([f"{BUILD}/sbxctl", *args], env={**os.environ, "SBXD_SOCKET": self.d.socket})
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def make_tree(self):
        self.write("t/a", b"hi\n")
        self.write("t/sub/deep/big", os.urandom(3_000_000), 0o600)
        self.write("t/sub/run", b"#!/bin/sh\n", 0o755)
        self.write("t/sub/" + "n" * 200, b"")
        self.write("t/日本", b"u")
        with open(os.fsencode(self.path("t")) + b"/n\xff", "wb") as f:
            f.write(b"x")
        os.symlink("../a", self.path("t/sub/link"))
        os.link(self.path("t/a"), self.path("t/sub/hard"))
        os.mkdir(self.path("t/empty"))
        os.chmod(self.path("t/sub/deep"), 0o700)
        for name in ("a", "sub/link", "sub/deep", "sub"):
            os.utime(self.path("t", name), (1, 981173106), follow_symlinks=False)
        return self.path("t")

    # ---- cp ----

    def test_a_file_goes_in_and_out(self):
        box = self.box("file")
        data = os.urandom(700_001)
        src = self.write("data.bin", data, 0o640)
        self.ctl("cp", src, f"{box}:/tmp/x")
        self.assertEqual(self.d.read(box, "/tmp/x").body, data)
        self.assertEqual(self.d.get(f"/v1/boxes/{box}/fs/stat?path=/tmp/x").json["mode"], "0640")
        self.ctl("cp", src, f"{box}:/tmp")  # into a directory that is there
        self.assertEqual(self.d.read(box, "/tmp/data.bin").body, data)
        self.ctl("cp", f"{box}:/tmp/x", self.path("back"))
        self.assertEqual(slurp(self.path("back"), "rb"), data)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("back")).st_mode), 0o640)
        os.mkdir(self.path("d"))
        self.ctl("cp", f"{box}:/tmp/data.bin", self.path("d"))
        self.assertEqual(slurp(self.path("d/data.bin"), "rb"), data)
        self.assertEqual(sorted(os.listdir(self.dir)), ["back", "d", "data.bin"], "no temporary name is left")

    def test_standard_input_and_output(self):
        box = self.box("std")
        data = os.urandom(3_000_003)
        self.ctl("cp", "-", f"{box}:/tmp/x", input=data)
        self.assertEqual(self.ctl("cp", f"{box}:/tmp/x", "-").stdout, data)
        self.assertEqual(self.ctl("cat", box, "/tmp/x", "/tmp/x").stdout, data + data)
        self.ctl("cp", "-", f"{box}:/tmp/empty", input=b"")
        self.assertEqual(self.ctl("cat", f"{box}:/tmp/empty").stdout, b"")
        self.assertIn(b"is a directory", self.ctl("cp", "-", f"{box}:/tmp", input=b"", status=125).stderr)
        self.ctl("cp", f"{box}:/tmp/x", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_tree_goes_in_and_out_as_it_is(self):
        box = self.box("tree")
        src = self.make_tree()
        self.ctl("cp", src, f"{box}:/tmp/new")
        self.ctl("cp", f"{box}:/tmp/new", self.path("out"))
        self.assertEqual(tree_of(self.path("out")), tree_of(src))
        self.assertTrue(os.path.samefile(self.path("out/a"), self.path("out/sub/hard")))
        self.ctl("cp", src, f"{box}:/tmp")  # into what is there
        self.assertEqual(self.d.read(box, "/tmp/t/a").body, b"hi\n")
        self.ctl("cp", src + "/.", f"{box}:/tmp/new")  # its content only
        self.assertEqual(self.d.get(f"/v1/boxes/{box}/fs/stat?path=/tmp/new/t").status, 404)
        os.mkdir(self.path("there"))
        self.ctl("cp", f"{box}:/tmp/t", self.path("there"))
        self.assertEqual(tree_of(self.path("there/t")), tree_of(src))
        self.ctl("cp", f"{box}:/tmp/t/.", self.path("there"))
        self.assertTrue(os.path.exists(self.path("there/a")))

    def test_a_tree_on_standard_output_is_an_archive(self):
        box = self.box("archive")
        self.ctl("cp", self.make_tree(), f"{box}:/tmp")
        with open(self.path("x.tar"), "wb") as f:
            f.write(self.ctl("cp", f"{box}:/tmp/t", "-").stdout)
        with tarfile.open(self.path("x.tar")) as tar:
            self.assertIn("t/sub/deep/big", tar.getnames())

    def test_what_cannot_go_is_left_out_and_said(self):
        box = self.box("left out")
        self.write("s/a", b"1")
        os.mkfifo(self.path("s/fifo"))
        r = self.ctl("cp", self.path("s"), f"{box}:/tmp/s", status=125)
        self.assertIn(b"./fifo: left out: neither file nor directory nor link", r.stderr)
        self.assertEqual(self.d.read(box, "/tmp/s/a").body, b"1")

    def test_wrong_ends(self):
        box = self.box("wrong")
        src = self.write("a", b"1")
        for args, status, words in (
                ([src, self.path("b")], 2, b"is BOX:/PATH"), ([f"{box}:/a", f"{box}:/b"], 2, b"both are in boxes"), ([src], 2, b"expected"),
                ([self.path("none"), f"{box}:/tmp/x"], 125, b"No such file"), ([f"{box}:/tmp/none", self.path("x")], 125, b"not_found"),
                ([src, "nobox:/tmp/x"], 125, b"box not found"), ([src, f"{box}:/none/x"], 125, b"not_found"),
                ([f"{box}:/etc/hostname", self.path("none/x")], 125, b"none/x"), ([f"{box}:/etc", src], 125, b"cannot")):
            self.assertIn(words, self.ctl("cp", *args, status=status).stderr, args)
        self.assertEqual(os.listdir(self.dir), ["a"])

    def test_a_hostile_tree_stays_in_its_directory(self):
        """Links in what comes out are made, and nothing is written through them."""
        box = self.box("hostile")
        outside = self.write("outside/keep", b"mine")
        os.mkdir(self.path("out"))
        os.symlink(self.path("outside"), self.path("out/door"))
        self.d.sh(box, "mkdir -p /tmp/h/door; echo bad > /tmp/h/door/keep")
        r = self.ctl("cp", f"{box}:/tmp/h/.", self.path("out"), status=125)
        self.assertIn(b"door", r.stderr)
        self.assertEqual(slurp(outside), "mine")
        self.d.sh(box, f"mkdir -p /tmp/l; ln -s {self.path('outside')} /tmp/l/door; chmod 4755 /tmp/h/door/keep; cp -p /tmp/h/door/keep /tmp/l/suid")
        self.ctl("cp", f"{box}:/tmp/l", self.path("links"))
        self.assertEqual(os.readlink(self.path("links/door")), self.path("outside"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("links/suid")).st_mode), 0o755)

    def test_an_interrupted_copy_leaves_what_was_there(self):
        box = self.box("interrupted")
        there = self.write("there", b"old")
        self.d.sh(box, "truncate -s 900000000 /tmp/large")
        p = self.start("cp", f"{box}:/tmp/large", there)
        wait_for("the copy to begin", lambda: len(os.listdir(self.dir)) > 1)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(30), 128 + signal.SIGTERM)
        self.assertEqual(os.listdir(self.dir), ["there"])
        self.assertEqual(slurp(there), "old")

    def test_a_fifo_is_waited_for_as_long_as_nobody_interrupts(self):
        box = self.box("fifo")
        self.d.sh(box, "echo out > /tmp/f")
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for args in ([fifo, f"{box}:/tmp/x"], [f"{box}:/tmp/f", fifo]):
            p = self.start("cp", *args)
            wait_for("its signals", lambda: any("signalfd" in link for link in links_of(p.pid)))
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.wait(BOUND), 128 + signal.SIGINT, args)
        p = self.start("cp", f"{box}:/tmp/f", fifo)
        self.assertEqual(slurp(fifo), "out\n")
        self.assertEqual(p.wait(BOUND), 0)
        p = self.start("cp", fifo, f"{box}:/tmp/x")
        with open(fifo, "w", encoding="ascii") as f:
            f.write("in")
        self.assertEqual(p.wait(BOUND), 0)
        self.assertEqual(self.d.read(box, "/tmp/x").body, b"in")

    def test_progress_is_for_terminals(self):
        box = self.box("progress")
        with Terminal(f"cd {self.dir}; mkfifo in; echo; SBXD_SOCKET={self.d.socket} {BUILD}/sbxctl cp in {box}:/tmp/y; echo end $?", columns=60) as t:
            wait_for("the fifo", lambda: os.path.exists(self.path("in")))
            with open(self.path("in"), "wb", buffering=0) as f:
                def shown():
                    f.write(bytes(65536))
                    return next((line for line in t.lines() if "/s" in line), None)
                line = wait_for("the line", shown)
            self.assertRegex(line, r"^in  \S+  \S+/s$")
            t.wait_text("^end 0")
            self.assertNotIn("/s", t.text(), "it is gone at the end")

    # ---- looking ----

    def test_ls(self):
        box = self.box("ls")
        self.d.sh(box, "mkdir -p /tmp/l/d; echo hello > /tmp/l/f; ln -s f /tmp/l/s; chmod 4711 /tmp/l/f; chmod 1777 /tmp/l/d")
        self.assertEqual(self.ctl("ls", box, "/tmp/l").stdout, b"d\nf\ns\n")
        self.assertEqual(self.ctl("ls", f"{box}:/tmp/l").stdout, b"d\nf\ns\n")
        lines = self.ctl("ls", "-l", box, "/tmp/l").stdout.decode().splitlines()
        self.assertRegex(lines[1], r"^drwxrwxrwt +0 +0 +\d+ \d{4}-\d\d-\d\d \d\d:\d\d:\d\d d$")
        self.assertRegex(lines[2], r"^-rws--x--x +0 +0 +6 .* f$")
        self.assertRegex(lines[3], r"^lrwxrwxrwx .* s -> f$")
        self.assertEqual([e["path"] for e in self.data("ls", box, "/tmp/l")["entries"]], ["d", "f", "s"])
        r = self.ctl("ls", "--max", "1", box, "/tmp/l")
        self.assertEqual(r.stdout, b"d\n")
        self.assertIn(b"there is more", r.stderr)
        self.ctl("ls", box, "/none", status=125)
        self.ctl("ls", box, "relative", status=2)
        self.ctl("ls", box, "/tmp", "/tmp", status=2)

    def test_stat(self):
        box = self.box("stat")
        self.d.sh(box, "echo hello > /tmp/f; ln -s f /tmp/s")
        self.assertEqual(self.data("stat", box, "/tmp/s")["type"], "symlink")
        self.assertEqual(self.data("stat", "-L", box, "/tmp/s")["size"], 6)
        self.assertRegex(self.ctl("stat", box, "/tmp/f").stdout.decode(), r"(?m)^-rw-r--r-- .* 6 .* /tmp/f$")

    def test_glob_and_grep(self):
        box = self.box("search")
        self.d.sh(box, "mkdir -p /tmp/p/src; printf 'int Main;\\nx = 1.5;\\n' > /tmp/p/src/a.c; echo main > /tmp/p/b.txt")
        self.assertEqual(self.ctl("glob", box, "**/*.c", "/tmp/p").stdout, b"src/a.c\n")
        self.assertEqual(self.ctl("glob", "-d", f"{box}:/tmp/p", "s*").stdout, b"src\n")
        self.assertEqual(self.ctl("grep", box, "main", "/tmp/p").stdout, b"b.txt:1:main\nsrc/a.c:1:int Main;\n")
        self.assertEqual(self.ctl("grep", "-s", box, "main", "/tmp/p").stdout, b"b.txt:1:main\n")
        self.assertEqual(self.ctl("grep", "-F", "-g", "*.c", box, "1.5", "/tmp/p").stdout, b"src/a.c:2:x = 1.5;\n")
        self.assertEqual(self.data("grep", box, "main", "/tmp/p")["matches"][0]["line_number"], 1)
        self.assertEqual(self.ctl("grep", box, "nothing", "/tmp/p", status=1).stdout, b"")
        self.assertIn(b"invalid_pattern", self.ctl("grep", box, "(", "/tmp/p", status=125).stderr)

    def test_cat_ends_when_nobody_reads(self):
        box = self.box("cat")
        self.d.sh(box, "head -c 5000000 /dev/zero > /tmp/z")
        p = subprocess.Popen([f"{BUILD}/sbxctl", "cat", box, "/tmp/z"], stdout=subprocess.PIPE, env={**os.environ, "SBXD_SOCKET": self.d.socket})
        p.stdout.read(10)
        p.stdout.close()
        self.assertEqual(p.wait(30), 128 + signal.SIGPIPE)

    def test_reset(self):
        box = self.box("reset")
        self.assertRegex(self.ctl("reset").stdout.decode(), r"^[1-9]\d* parked$")
        self.assertEqual(self.d.inspect(box)["state"], "warm")


class Limits(CtlTest):
    config = "limits:\n  file_bytes: 100000\n"

    def test_what_is_too_large_is_refused_before_all_of_it_is_sent(self):
        box = self.box("large")
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as folder:
            large = os.path.join(folder, "large")
            with open(large, "wb") as f:
                f.truncate(3_000_000_000)
            for args in ((large, f"{box}:/tmp/x"), (folder, f"{box}:/tmp/y")):
                r = self.ctl("cp", *args, status=125)
                self.assertIn(b"too_large", r.stderr)
            self.assertIn(b"too_large", self.ctl("cp", "-", f"{box}:/tmp/z", input=bytes(200_000), status=125).stderr)
            self.d.sh(box, "truncate -s 200000 /tmp/big")
            self.assertIn(b"too_large", self.ctl("cp", f"{box}:/tmp/big", folder, status=125).stderr)
            self.assertEqual(os.listdir(folder), ["large"])
        self.assertEqual(self.d.read(box, "/tmp/x").status, 404)


if __name__ == "__main__":
    unittest.main()
