"""sbx-mcp: what each tool does, and what it says when it cannot."""

import os
import secrets
import tempfile

from harness import wait_for
from test_mcp import McpTest

WORKSPACE = "/mnt/user-data/workspace"


def texts(result):
    return [c["text"] for c in result["content"]]


class Commands(McpTest):
    def setUp(self):
        self.m = self.start("--max-output", "1000")

    def test_how_it_ends(self):
        r = self.m.call("run_command", command="echo out; echo err >&2; exit 3")
        self.assertEqual(texts(r), ["out\n[stderr]\nerr\n", "[exit code 3]"])
        self.assertFalse(r["isError"], "that a command fails is no failure of the tool")
        duration = r["structuredContent"].pop("duration_ms")
        self.assertGreater(duration, 0)
        self.assertEqual(r["structuredContent"], {"exit_code": 3, "signal": None, "timed_out": False, "stdout": "out\n", "stderr": "err\n",
                                                  "truncated": False})
        r = self.m.call("run_command", command="printf x; kill -9 $$")
        self.assertEqual((texts(r), r["structuredContent"]["signal"]), (["x", "[ended by signal 9]"], 9))
        self.assertEqual(texts(self.m.call("run_command", command="true")), ["(no output)"])
        r = self.m.call("run_command", command="echo a; sleep 100", timeout_seconds=0.3)
        self.assertTrue(r["isError"] and r["structuredContent"]["timed_out"])
        self.assertEqual(texts(r), ["a\n", "[timed out after 0.3 s: the command and all that it started were killed]"])

    def test_arguments(self):
        m = self.m
        self.assertEqual(m.sh("pwd"), WORKSPACE + "\n")
        m.sh("mkdir -p sub")
        self.assertEqual(m.sh("pwd", cwd="sub"), WORKSPACE + "/sub\n")
        self.assertEqual(m.sh("pwd", cwd="/tmp"), "/tmp\n")
        self.assertEqual(m.sh('echo "$A-$B"', env={"A": "1", "B": "ü"}), "1-ü\n")
        self.assertEqual(m.sh("cat", stdin="a\0ü\n"), "a\0ü\n")
        self.assertIn("/a/../b (invalid_path)", m.failure("run_command", command="true", cwd="/a/../b"))
        self.assertRegex(m.failure("run_command", command="true", cwd="/none"), r"^run_command: .*/none.*\(execution_failed\)$")
        self.assertIn("env", m.failure("run_command", command="true", env={"A": 5}))

    def test_long_output_keeps_its_ends(self):
        r = self.m.data("run_command", command="printf ABC; yes ü | head -c 300000; printf XYZ; seq 1 5000 >&2")
        self.assertTrue(r["truncated"])
        self.assertTrue(r["stdout"].startswith("ABCü\nü") and r["stdout"].endswith("ü\nXYZ"))
        self.assertRegex(r["stdout"], r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n")
        self.assertNotIn("\ufffd", r["stdout"], "no character is cut")
        self.assertTrue(r["stderr"].startswith("1\n2\n") and r["stderr"].endswith("\n4999\n5000\n"))
        self.assertLess(len(r["stdout"].encode()), 1100)
        self.assertFalse(self.m.data("run_command", command="head -c 1000 /dev/zero | tr '\\0' x")["truncated"])

    def test_output_that_is_no_text(self):
        self.assertEqual(self.m.sh(r"printf 'a\377\376b\n'"), "a\ufffd\ufffdb\n")
        self.assertEqual(self.m.sh(r"printf 'a\0b'"), "a\0b")

    def test_state_stays(self):
        self.m.sh("echo 1 > f; (sleep 5678 > /dev/null 2>&1 &)")
        self.assertEqual(self.m.sh("cat f; pgrep -c -x -f 'sleep 5678'"), "1\n1\n")


class Files(McpTest):
    def setUp(self):
        self.m = self.start("--max-output", "1000")

    def test_read(self):
        m = self.m
        m.call("write_file", path="f", content="one\ntwo\nthree")
        r = m.call("read_file", path="f")
        self.assertEqual(texts(r), ["one\ntwo\nthree"])
        self.assertEqual(r["structuredContent"], {"path": f"{WORKSPACE}/f", "content": "one\ntwo\nthree", "start_line": 1, "lines": 3,
                                                  "truncated": False, "next_line": None})
        self.assertEqual(m.data("read_file", path=f"{WORKSPACE}/f", start_line=2, end_line=2)["content"], "two\n")
        self.assertEqual(texts(m.call("read_file", path="f", start_line=9)), ["", "[the file has fewer lines]"])
        m.call("write_file", path="empty", content="")
        self.assertEqual(texts(m.call("read_file", path="empty")), ["", "[the file is empty]"])
        self.assertIn('"end_line" must not be less', m.failure("read_file", path="f", start_line=3, end_line=2))
        self.assertRegex(m.failure("read_file", path="none/x"), rf"^read_file: .*{WORKSPACE}/none/x.*\(not_found\)$")
        self.assertRegex(m.failure("read_file", path="/tmp"), r"/tmp.*\(is_directory\)")
        self.assertRegex(m.failure("read_file", path="/tmp/../etc"), r"\(invalid_path\)")

    def test_a_long_file_in_parts(self):
        m = self.m
        content = "".join(f"line {i} ü\n" for i in range(1, 501))
        m.call("write_file", path="long", content=content)
        got, at = "", 1
        while at:
            r = m.data("read_file", path="long", start_line=at)
            self.assertLessEqual(len(r["content"].encode()), 1000)
            self.assertEqual((r["start_line"], r["truncated"]), (at, r["next_line"] is not None))
            got, at = got + r["content"], r["next_line"]
        self.assertEqual(got, content)
        r = m.call("read_file", path="long")
        self.assertEqual(texts(r)[1], f"[there is more: go on with start_line {r['structuredContent']['next_line']}]")

    def test_a_line_that_is_too_long(self):
        m = self.m
        m.call("write_file", path="wide", content="ü" * 5000 + "\nnext\n")
        r = m.call("read_file", path="wide")
        self.assertEqual(r["structuredContent"]["content"], "ü" * 500)
        self.assertEqual((r["structuredContent"]["lines"], r["structuredContent"]["next_line"]), (1, 2))
        self.assertIn("line 1 is longer than 1000 bytes", texts(r)[1])
        m.call("write_file", path="wide", content="x" + "ü" * 5000)
        self.assertEqual(m.data("read_file", path="wide")["content"], "x" + "ü" * 499, "no character is cut")

    def test_what_is_no_text(self):
        for make in (r"printf 'a\0b'", r"printf 'a\377b'", "head -c 5000 /dev/urandom", r"printf 'a\303'"):
            self.m.sh(f"{make} > bin")
            self.assertIn("is no UTF-8 text", self.m.failure("read_file", path="bin"))

    def test_write(self):
        m = self.m
        r = m.call("write_file", path="deep/er/f", content="a\0ü")
        self.assertEqual((texts(r), r["structuredContent"]), ([f"Wrote 4 bytes to {WORKSPACE}/deep/er/f"], {"path": f"{WORKSPACE}/deep/er/f",
                                                                                                        "bytes": 4}))
        self.assertEqual(m.sh("od -An -c deep/er/f").split(), ["a", r"\0", "303", "274"])
        m.call("write_file", path="deep/er/f", content="b", mode="0750")
        m.call("write_file", path="deep/er/f", content="c", append=True)
        self.assertEqual(m.sh("cat deep/er/f; stat -c ' %a' deep/er/f"), "bc 750\n")
        self.assertRegex(m.failure("write_file", path="/proc/x/y", content=""), r"^write_file: .*/proc/x")
        self.assertRegex(m.failure("write_file", path="deep", content=""), r"\(is_directory\)")
        self.assertRegex(m.failure("write_file", path="f", content="", mode="x"), r"mode")
        self.assertRegex(m.failure("write_file", path="deep/er/f/g", content=""), r"\(not_a_directory\)")
        big = "x" * (3 << 20)
        m.call("write_file", path="big", content=big)
        self.assertEqual(m.sh("stat -c %s big"), f"{len(big)}\n")

    def test_edit(self):
        m = self.m
        m.call("write_file", path="f", content="a = 1\nb = 1\nc = 2\n", mode="0600")
        r = m.call("edit_file", path="f", old_text="c = 2", new_text="c = 3")
        self.assertEqual(r["structuredContent"], {"path": f"{WORKSPACE}/f", "replaced": 1, "line": 3, "bytes": 18})
        self.assertIn("is 2 times", m.failure("edit_file", path="f", old_text="= 1", new_text=""))
        self.assertIn("is not in", m.failure("edit_file", path="f", old_text="= 9", new_text=""))
        self.assertIn("is empty", m.failure("edit_file", path="f", old_text="", new_text=""))
        self.assertRegex(m.failure("edit_file", path="g", old_text="x", new_text="y"), r"\(not_found\)")
        self.assertEqual(m.sh("cat f; stat -c %a f"), "a = 1\nb = 1\nc = 3\n600\n")
        self.assertEqual(m.data("edit_file", path="f", old_text="= 1\n", new_text="= ü\n", replace_all=True)["replaced"], 2)
        self.assertEqual(m.data("edit_file", path="f", old_text="a = ü\nb = ü\nc = 3\n", new_text="")["bytes"], 0)
        m.sh(r"printf 'x\377y\0z' > bin")
        m.data("edit_file", path="bin", old_text="y\0", new_text="Y")
        self.assertEqual(m.sh("od -An -c bin").split(), ["x", "377", "Y", "z"], "other bytes stay")
        m.sh("head -c 9000000 /dev/zero > huge")
        self.assertIn("more than 8388608 bytes", m.failure("edit_file", path="huge", old_text="x", new_text="y"))


class Finding(McpTest):
    def setUp(self):
        self.m = self.start("--max-output", "1000")
        self.m.sh("mkdir -p src/sub; printf 'Alpha\\nbeta alpha\\n' > src/a.c; echo beta > src/sub/b.c; ln -s a.c src/l; mkfifo src/p")

    def test_list(self):
        r = self.m.call("list_dir", path="src")
        self.assertEqual(texts(r), ["a.c (17 bytes)\nl -> a.c\np (fifo)\nsub/\n"])
        self.assertEqual(r["structuredContent"]["entries"][0], {"path": "a.c", "type": "file", "size": 17})
        deep = self.m.data("list_dir", depth=3)
        self.assertEqual([e["path"] for e in deep["entries"]], ["src", "src/a.c", "src/l", "src/p", "src/sub", "src/sub/b.c"])
        r = self.m.call("list_dir", path="src", max_results=2)
        self.assertEqual((texts(r)[1], r["structuredContent"]["truncated"]), ("[there is more than these 2]", True))
        self.assertRegex(self.m.failure("list_dir", path="none"), r"\(not_found\)")
        self.assertRegex(self.m.failure("list_dir", path="src/a.c"), r"\(not_a_directory\)")
        self.m.sh("mkdir e")
        self.assertEqual(texts(self.m.call("list_dir", path="e")), ["(nothing)"])

    def test_glob(self):
        self.assertEqual(self.m.data("glob", pattern="*.c")["matches"], ["src/a.c", "src/sub/b.c"])
        self.assertEqual(self.m.data("glob", pattern="s*", include_dirs=True)["matches"], ["src", "src/sub"])
        self.assertEqual(self.m.data("glob", pattern="*.c", path="/mnt/user-data/workspace/src/sub")["matches"], ["b.c"])
        self.assertTrue(self.m.data("glob", pattern="**", max_results=1)["truncated"])

    def test_grep(self):
        r = self.m.call("grep", pattern="alpha")
        self.assertEqual(texts(r), ["src/a.c:1:Alpha\nsrc/a.c:2:beta alpha\n"])
        self.assertEqual(r["structuredContent"]["matches"][0], {"path": "src/a.c", "line_number": 1, "line": "Alpha"})
        self.assertEqual(len(self.m.data("grep", pattern="alpha", case_sensitive=True)["matches"]), 1)
        self.assertEqual(self.m.data("grep", pattern="b.ta", literal=True)["matches"], [])
        self.assertEqual([x["path"] for x in self.m.data("grep", pattern="^beta", glob="b*")["matches"]], ["src/sub/b.c"])
        self.assertRegex(self.m.failure("grep", pattern="("), r"offset.*\(invalid_pattern\)")
        self.m.sh(r"printf 'a\377b needle\n' > src/odd")
        self.assertEqual(self.m.data("grep", pattern="needle")["matches"][0]["line"], "a\ufffdb needle")

    def test_many_results_fit(self):
        self.m.sh("mkdir many; cd many; touch $(seq -f %06.0f-a-rather-long-name 1 300)")
        r = self.m.call("list_dir", path="many")
        shown = len(r["structuredContent"]["entries"])
        self.assertLess(len(texts(r)[0]), 1100)
        self.assertGreater(shown, 10)
        self.assertEqual((texts(r)[1], r["structuredContent"]["truncated"]), (f"[there is more than these {shown}]", True))


class Host(McpTest):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="sbxd-test-")
        self.addCleanup(place.cleanup)
        self.host, self.outside = f"{place.name}/in", f"{place.name}/in-outside"
        os.mkdir(self.host)
        os.mkdir(self.outside)
        self.put(f"{self.outside}/secret", b"secret")
        self.m = self.start("--host-dir", self.host)

    @staticmethod
    def put(path, data):
        with open(path, "wb") as f:
            f.write(data)

    @staticmethod
    def get(path):
        with open(path, "rb") as f:
            return f.read()

    def test_there_and_back(self):
        data = secrets.token_bytes(20 << 20)
        self.put(f"{self.host}/big", data)
        r = self.m.data("upload", host_path=f"{self.host}/big", path="big")
        self.assertEqual(r, {"host_path": f"{self.host}/big", "path": f"{WORKSPACE}/big", "bytes": len(data)})
        os.mkdir(f"{self.host}/sub")
        r = self.m.data("download", path="big", host_path=f"{self.host}/sub/back")
        self.assertEqual(r["bytes"], len(data))
        self.assertEqual(self.get(f"{self.host}/sub/back"), data)
        self.put(f"{self.host}/empty", b"")
        self.m.data("upload", host_path=f"{self.host}//./empty", path="/tmp/empty")
        self.m.data("download", path="/tmp/empty", host_path=f"{self.host}/empty2")
        self.assertEqual(self.get(f"{self.host}/empty2"), b"")

    def test_nothing_else_of_the_host(self):
        os.symlink(self.outside, f"{self.host}/link")
        os.symlink(f"{self.outside}/secret", f"{self.host}/file")
        os.symlink("/proc/self/fd", f"{self.host}/fds")
        os.symlink("inner", f"{self.host}/good")
        self.put(f"{self.host}/inner", b"inner")
        for path in (f"{self.outside}/secret", f"{self.host}/../in-outside/secret", f"{self.host}/link/secret", f"{self.host}/file",
                     "/etc/passwd", "in/x", "", self.host, f"{self.host}/"):
            with self.subTest(path):
                self.assertRegex(self.m.failure("upload", host_path=path, path="x"), "allowed")
        self.assertRegex(self.m.failure("upload", host_path=f"{self.host}/fds/0", path="x"), "upload: ")
        for path in (f"{self.outside}/new", f"{self.host}/../in-outside/new", f"{self.host}/link/new"):
            with self.subTest(path):
                self.assertRegex(self.m.failure("download", path="/etc/hostname", host_path=path), "allowed")
        self.assertEqual(os.listdir(self.outside), ["secret"])
        self.m.sh("echo new > f")
        self.m.data("download", path="f", host_path=f"{self.host}/file", overwrite=True)
        self.assertEqual((self.get(f"{self.outside}/secret"), os.path.islink(f"{self.host}/file")), (b"secret", False), "the link, not what it names")
        self.m.data("upload", host_path=f"{self.host}/good", path="x")
        self.assertEqual(self.m.sh("cat x"), "inner")

    def test_what_cannot_be_copied(self):
        os.mkdir(f"{self.host}/dir")
        os.mkfifo(f"{self.host}/fifo")
        m = self.m
        self.assertIn("a directory; pack it first", m.failure("upload", host_path=f"{self.host}/dir", path="x"))
        self.assertIn("is no file", m.failure("upload", host_path=f"{self.host}/fifo", path="x"))
        self.assertIn("No such file", m.failure("upload", host_path=f"{self.host}/none", path="x"))
        self.assertIn("names no file", m.failure("download", path="/etc/hostname", host_path=f"{self.host}/dir/"))
        self.assertIn("No such file", m.failure("download", path="/etc/hostname", host_path=f"{self.host}/none/x"))
        self.put(f"{self.host}/f", b"f")
        self.assertIn("(is_directory)", m.failure("upload", host_path=f"{self.host}/f", path="/tmp"))
        self.assertIn("(not_found)", m.failure("download", path="/none", host_path=f"{self.host}/new"))
        self.assertEqual(sorted(os.listdir(self.host)), ["dir", "f", "fifo"], "what failed left nothing")

    def test_overwriting(self):
        self.put(f"{self.host}/f", b"old")
        self.m.sh("echo new > f")
        self.assertIn("is there already", self.m.failure("download", path="f", host_path=f"{self.host}/f"))
        self.assertEqual(self.get(f"{self.host}/f"), b"old")
        self.m.data("download", path="f", host_path=f"{self.host}/f", overwrite=True)
        self.assertEqual((self.get(f"{self.host}/f"), os.listdir(self.host)), (b"new\n", ["f"]))

    def test_one_that_is_cancelled_leaves_nothing(self):
        self.m.sh("mkfifo pipe; (sh -c 'exec > pipe; echo x; sleep 6789' &)")
        id = self.m.begin_call("download", token=1, path="pipe", host_path=f"{self.host}/f")
        self.m.await_message("an answer or some progress", lambda n: True)
        self.m.notify("notifications/cancelled", {"requestId": id})
        self.assertTrue(self.m.alive())
        self.assertEqual(os.listdir(self.host), [])
        wait_for("it to be closed", lambda: not [f for f in os.listdir(f"/proc/{self.m.process.pid}/fd")
                                                 if "(deleted)" in os.readlink(f"/proc/{self.m.process.pid}/fd/{f}")
                                                 and self.host in os.readlink(f"/proc/{self.m.process.pid}/fd/{f}")])

    def test_a_link_that_is_a_directory_of_the_host_is_refused_at_the_start(self):
        with tempfile.NamedTemporaryFile(prefix="sbxd-test-") as f:
            m = self.start("--host-dir", f.name, initialize=False)
            self.assertEqual(m.process.wait(30), 1)
            self.assertIn("Not a directory", m.stderr_text())
