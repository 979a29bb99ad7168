"""PUT files and GET files: trees into a box and out of it as tar archives, hostile ones too."""

import io
import os
import re
import tarfile
import unittest
from urllib.parse import quote

import backends
from harness import BOUND, IS_ROOT, DaemonTest, in_threads, slurp, wait_for

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
MTIME = 1_600_000_000


def member(name, kind=tarfile.REGTYPE, data=b"", link="", mode=None, mtime=MTIME):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    info.linkname = link
    info.mode = mode if mode is not None else 0o755 if kind == tarfile.DIRTYPE else 0o644
    info.mtime = mtime
    info.uid = info.gid = 4242
    return info, data


def archive(*members, fmt=tarfile.PAX_FORMAT):
    """The bytes of an archive of member()s, or of (name, data)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt, encoding="utf-8", errors="surrogateescape") as t:
        for m in members:
            info, data = m if isinstance(m[0], tarfile.TarInfo) else member(m[0], data=m[1])
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def unarchive(data):
    """{name: (TarInfo, bytes)} of an archive."""
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as t:
        return {i.name: (i, t.extractfile(i).read() if i.isreg() else b"") for i in t}


class TarTest(DaemonTest):
    config = "replicas: 50\ndisk_mib: 160\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("tar", "t")["box_id"]

    def put(self, path, data, query="", box=None, **kw):
        return self.d.request("PUT", f"/v1/boxes/{box or self.box}/files?path={quote(path)}{query}", data,
                              headers={"Content-Type": "application/x-tar"}, **kw)

    def fetch(self, path, query="", **kw):
        return self.d.get(f"/v1/boxes/{self.box}/files?path={quote(path)}{query}", **kw)

    def upload(self, path, *members, query="", **kw):
        r = self.put(path, archive(*members, **kw), query)
        self.assertEqual((r.status, r.body), (204, b""), r)

    def download(self, path, query=""):
        r = self.fetch(path, query)
        self.assertEqual((r.status, r.headers["Content-Type"]), (200, "application/x-tar"), r)
        return unarchive(r.body)

    def expect(self, reply, status, reason, *words):
        self.assertEqual((reply.status, reply.reason), (status, reason), reply)
        for word in words:
            self.assertIn(word, reply.json["error"]["message"])

    def sh(self, command):
        return self.d.sh(self.box, command)

    def tree(self, path):
        """What find says of a tree."""
        return self.sh(f"cd {path} && find . -mindepth 1 -printf '%P %y %m %l\\n' | sort").splitlines()

    def meanwhile(self, script):
        """Runs a line of shell over and over in the box, until the function that is returned is called."""
        self.sh(f"cat > /tmp/again.sh <<'E'\nwhile [ ! -e /tmp/stop ]; do\n{script}\ndone\ntouch /tmp/stopped\nE\n"
                "(sh /tmp/again.sh >/dev/null 2>&1 &)")
        return lambda: self.sh("touch /tmp/stop; while [ ! -e /tmp/stopped ]; do sleep 0.01; done; rm /tmp/stop /tmp/stopped /tmp/again.sh")

    def helpers(self):
        """Processes of sbx-files that run in the box."""
        return self.d.inside(self.box, "sbx-files")

    def leftovers(self):
        return self.sh("find / -xdev -name '.sbx-*.tmp' 2>/dev/null; find /tmp /mnt -name '.sbx-*.tmp'")


class Upload(TarTest):
    def test_every_format(self):
        for name, fmt in FORMATS.items():
            at = f"/tmp/formats/{name}"
            long = "d" * 90 + "/" + "f" * 90
            self.upload(
                at, member("sub", tarfile.DIRTYPE, mode=0o750), ("sub/file", bytes(range(256))), ("sub/empty", b""),
                member("run", data=b"#!/bin/sh\necho ran\n", mode=0o755), member("link", tarfile.SYMTYPE, link="sub/file"),
                member("hard", tarfile.LNKTYPE, link="sub/file"), ("./dotted//name", b"x"), (long, b"long"), fmt=fmt)
            self.assertEqual(self.sh(f"{at}/run"), "ran\n")
            self.assertEqual(self.d.read(self.box, f"{at}/sub/file").body, bytes(range(256)))
            self.assertEqual(self.d.read(self.box, f"{at}/{long}").body, b"long")
            self.assertEqual(self.d.read(self.box, f"{at}/dotted/name").body, b"x")
            self.assertEqual(self.sh(f"readlink {at}/link; stat -c '%h %a %u %g %Y' {at}/hard {at}/sub/file; stat -c '%a %Y' {at}/sub"),
                             f"sub/file\n2 644 0 0 {MTIME}\n2 644 0 0 {MTIME}\n750 {MTIME}\n")
        self.assertEqual(self.leftovers(), "")

    def test_row_14_a_large_upload_is_all_there(self):
        for size in (0, 1, 511, 512, 513, 18 * 1024, 96 * 1024, 1 << 20, 16 << 20):
            data = os.urandom(size)
            self.upload("/tmp/large", ("a", b"before"), ("large", data), ("z", b"after"))
            self.assertEqual(self.sh("stat -c %s /tmp/large/large; cat /tmp/large/a /tmp/large/z"), f"{size}\nbeforeafter")
            self.assertEqual(self.d.read(self.box, "/tmp/large/large").body, data)
            # The same by one request that breaks off: nothing of it shows, and it is no success.
            if size > 1000:
                self.expect(self.put("/tmp/large", archive(("large", data[:-1] + b"x"))[:size]), 400, "invalid_argument", "large")
                self.assertEqual(self.d.read(self.box, "/tmp/large/large").body, data)
        self.sh("rm -r /tmp/large")

    def test_one_file_becomes_the_path(self):
        self.upload("/tmp/one/new/name.txt", ("other.txt", b"content"))
        self.assertEqual(self.tree("/tmp/one"), ["new d 755 ", "new/name.txt f 644 "])
        self.upload("/tmp/one/new/name.txt", ("other.txt", b"again"))
        self.assertEqual(self.d.read(self.box, "/tmp/one/new/name.txt").body, b"again")
        # Into a directory that is there, or that is to be one, it goes under its own name.
        self.upload("/tmp/one/new", ("in.txt", b"1"))
        self.upload("/tmp/one/dir/", ("in.txt", b"2"))
        self.upload("/tmp/one/dot/.", ("in.txt", b"3"))
        self.upload("/tmp/one//x/./y", ("in.txt", b"4"))
        self.upload("/tmp/one/named", ("sub/in.txt", b"5"))  # that is no file of a client's, but a tree
        self.assertEqual(self.tree("/tmp/one"), [
            "dir d 755 ", "dir/in.txt f 644 ", "dot d 755 ", "dot/in.txt f 644 ",
            "named d 755 ", "named/sub d 755 ", "named/sub/in.txt f 644 ", "new d 755 ", "new/in.txt f 644 ",
            "new/name.txt f 644 ", "x d 755 ", "x/y f 644 "])
        # A link at its end is followed, as by fs/write, also one that leads to nothing yet.
        self.sh("ln -s real /tmp/one/link; ln -s /tmp/one/l1 /tmp/one/l2; ln -s sub/l0 /tmp/one/l1; echo old > /tmp/one/real")
        self.upload("/tmp/one/link", ("f", b"followed"))
        self.upload("/tmp/one/l2", ("f", b"made"))
        self.assertEqual(self.sh("cd /tmp/one; readlink link; cat real sub/l0"), "real\nfollowedmade")
        self.assertEqual(self.leftovers(), "")

    def test_several_members_make_a_directory(self):
        self.upload("/tmp/several/new", ("first", b"1"), ("sub/second", b"2"))
        self.assertEqual(self.sh("cat /tmp/several/new/first /tmp/several/new/sub/second"), "12")
        # As BoxLite's clients send a directory: its contents, with an entry for itself.
        self.upload("/tmp/several/dot", member(".", tarfile.DIRTYPE, mode=0o700), ("only", b"3"))
        self.upload("/tmp/several/empty", member(".", tarfile.DIRTYPE, mode=0o711))
        self.upload("/tmp/several/nothing")
        self.assertEqual(self.sh("cd /tmp/several; stat -c '%n %a' dot dot/only empty nothing; stat -c %Y dot"),
                         f"dot 700\ndot/only 644\nempty 711\nnothing 755\n{MTIME}\n")
        self.sh("echo x > /tmp/several/file")
        for path in ("/tmp/several/file", "/tmp/several/file/below", "/tmp/several/file/"):
            self.expect(self.put(path, archive(("a", b"1"), ("b", b"2"))), 400, "not_a_directory", "file")
            self.assertEqual(self.sh("cat /tmp/several/file"), "x\n")
        self.assertEqual(self.leftovers(), "")

    def test_overwrite_false(self):
        self.upload("/tmp/over", ("kept", b"old"), member("dir", tarfile.DIRTYPE), member("link", tarfile.SYMTYPE, link="kept"))
        before = self.sh("cd /tmp/over; stat -c '%n %i %Y %Z %s' kept link")
        for m in (member("kept", data=b"new"), member("link", data=b"new"), member("kept", tarfile.SYMTYPE, link="x"),
                  member("link", tarfile.LNKTYPE, link="kept")):
            r = self.put("/tmp/over", archive(("first", b"1"), m, ("never", b"2")), "&overwrite=false")
            self.expect(r, 409, "already_exists", m[0].name)
            self.assertEqual(self.sh("cd /tmp/over; stat -c '%n %i %Y %Z %s' kept link; cat first; rm first"), before + "1")
        self.expect(self.put("/tmp/over/kept", archive(("a", b"1")), "&overwrite=0"), 409, "already_exists", "kept")
        self.upload("/tmp/over", member("dir", tarfile.DIRTYPE), ("dir/new", b"fine"), query="&overwrite=false")
        self.upload("/tmp/over", ("kept", b"new"), query="&overwrite=true")
        self.assertEqual(self.tree("/tmp/over"), ["dir d 755 ", "dir/new f 644 ", "kept f 644 ", "link l 777 kept"])
        self.assertEqual(self.leftovers(), "")

    def test_what_stands_in_the_way(self):
        self.sh("mkdir -p /tmp/way/dir/sub; echo x > /tmp/way/file; ln -s dir /tmp/way/inside; mkfifo /tmp/way/fifo")
        self.expect(self.put("/tmp/way", archive(("dir", b"x"))), 400, "is_directory", "dir")
        self.expect(self.put("/tmp/way", archive(member("dir", tarfile.SYMTYPE, link="x"))), 400, "is_directory", "dir")
        self.expect(self.put("/tmp/way", archive(("file/x", b"x"))), 400, "not_a_directory", "file/x")
        self.expect(self.put("/tmp/way", archive(member("file", tarfile.DIRTYPE))), 400, "not_a_directory", "file")
        # A link to a directory serves as one; any other is replaced, as is whatever else is no directory.
        self.upload("/tmp/way", member("inside", tarfile.DIRTYPE), ("inside/new", b"1"), ("fifo", b"2"))
        self.upload("/tmp/way", ("inside2", b"3"), member("file", tarfile.SYMTYPE, link="a"))
        self.upload("/tmp/way", ("file", b"4"))
        self.assertEqual(self.sh("cd /tmp/way; cat dir/new fifo inside2 file; readlink inside"), "1234dir\n")
        self.assertEqual(self.leftovers(), "")

    def test_what_was_there_keeps_its_mode(self):
        self.sh("mkdir -p -m 1777 /tmp/modes; mkdir -m 711 /tmp/modes/old; touch -d @1000000 /tmp/modes/old")
        self.upload("/tmp/modes", member("./", tarfile.DIRTYPE, mode=0o755), member("old/", tarfile.DIRTYPE, mode=0o777),
                    member("made", tarfile.DIRTYPE, mode=0o555), ("made/file", b"x"), ("implied/file", b"x"),
                    member("implied", tarfile.DIRTYPE, mode=0o700), member("suid", data=b"x", mode=0o6755),
                    member("sticky", tarfile.DIRTYPE, mode=0o3777), member("none", data=b"x", mode=0))
        self.assertEqual(self.sh("cd /tmp/modes; stat -c '%n %a' . old made implied suid sticky none"),
                         ". 1777\nold 711\nmade 555\nimplied 700\nsuid 755\nsticky 777\nnone 0\n")
        self.assertEqual(self.sh("cd /tmp/modes; stat -c %Y old made implied"), f"1000000\n{MTIME}\n{MTIME}\n")

    def test_times(self):
        self.upload("/tmp/times", member("now", data=b"x", mtime=1234567890.75), member("old", data=b"x", mtime=-86400),
                    member("link", tarfile.SYMTYPE, link="now", mtime=1000))
        self.assertEqual(self.sh("cd /tmp/times; stat -c %.2Y now old link"), "1234567890.75\n-86400.00\n1000.00\n")

    def test_a_running_program_can_be_replaced(self):
        self.sh("cp /bin/sleep /tmp/prog; (/tmp/prog 60 >/dev/null 2>&1 &)")
        self.upload("/tmp", ("prog", b"new"), ("other", b"x"))
        self.assertEqual(self.d.read(self.box, "/tmp/prog").body, b"new")
        self.d.run(self.box, "pkill prog")

    def test_names(self):
        names = ["with space", "quote'\"", "new\nline", "co:lon", "\udcff\udcfe", "naïve ✓", "a%41", "back\\slash", "n" * 255, "é" * 127]
        deep = "/".join(["d" * 200] * 15)
        for fmt in ("gnu", "pax"):
            self.upload("/tmp/names", *((n, n.encode("utf-8", "surrogateescape")) for n in names), (deep, b"deep"), fmt=FORMATS[fmt])
            for n in [*names, deep]:
                raw = n.encode("utf-8", "surrogateescape")
                self.assertEqual(self.d.read(self.box, "/tmp/names/" + quote(raw, safe="/")).body, b"deep" if n == deep else raw, n)
            got = self.download("/tmp/names")
            self.assertTrue({f"names/{n}" for n in [*names, deep]} <= set(got))
            self.sh("rm -r /tmp/names")
        self.expect(self.put("/tmp/names", archive(("n" * 256, b"x"), ("b", b"x"))), 400, "invalid_path", "nnn")
        self.expect(self.put("/tmp/names", archive(("/".join(["d" * 200] * 21), b"x"), ("b", b"x"))), 400, "invalid_path", "ddd")

    def test_deep_names(self):
        """What is missing above a member is made in time: not by walking all the way again for each directory."""
        count = 18 // backends.current.slow
        self.upload("/tmp/deep", *((f"{i}/" + "d/" * 1900 + "f", b"deep") for i in range(count)))
        counted = self.sh("find /tmp/deep -type f | wc -l; find /tmp/deep -type d | wc -l; rm -r /tmp/deep")
        self.assertEqual(counted.split(), [str(count), str(count * 1901 + 1)])

    def test_slashes_that_say_nothing(self):
        self.sh("ln -s made//by//./link /tmp/slashes")
        for path in ("/tmp//slashed//at//will", "/tmp/slashes"):
            self.upload(path, ("a//b", b"1"), ("a///c/./d", b"2"))
            self.assertEqual(self.sh(f"cat {path}/a/b {path}/a/c/d"), "12", path)

    def test_holes(self):
        """4 GiB of nothing, in the formats that archivers write, and from an archive of a few KiB."""
        self.sh("mkdir /tmp/holes; cd /tmp/holes; truncate -s 4G a; printf end | dd of=a bs=1 seek=4G conv=notrunc status=none; truncate -s 5G b")
        for fmt in ("gnu", "posix --sparse-version=1.0", "posix --sparse-version=0.1", "posix --sparse-version=0.0"):
            self.sh(f"cd /tmp/holes && tar -S --format={fmt} -cf /tmp/holes.tar a b")
            data = self.d.read(self.box, "/tmp/holes.tar").body
            self.assertLess(len(data), 20480)
            self.assertEqual(self.put("/tmp/holed", data).status, 204)
            self.assertEqual(self.sh("cd /tmp/holed; stat -c '%n %s' a b; tail -c 4 a | od -An -c; test $(du -ks . | cut -f1) -lt 100; rm a b"),
                             "a 4294967299\nb 5368709120\n  \\0   e   n   d\n")
        r = self.fetch("/tmp/holes")
        self.assertEqual(r.status, 200)
        self.assertLess(len(r.body), 20480)
        with tarfile.open(fileobj=io.BytesIO(r.body)) as t:
            self.assertEqual({i.name: i.size for i in t if i.isreg()}, {"holes/a": (4 << 30) + 3, "holes/b": 5 << 30})
            f = t.extractfile("holes/a")
            f.seek((4 << 30) - 5)
            self.assertEqual(f.read(), b"\0\0\0\0\0end")
        # And the box's own tar reads what it was sent.
        self.assertEqual(self.put("/tmp/holed/back.tar", archive(("x", r.body))).status, 204)
        compared = "cd /tmp/holed; tar -xf back.tar; stat -c %s holes/a; cmp holes/a ../holes/a; du -k holes/a | cut -f1; cd /tmp; rm -r holed holes"
        self.assertEqual(self.d.sh(self.box, compared, timeout=BOUND * backends.current.patience), "4294967299\n4\n")

    def test_no_space(self):
        self.upload("/tmp/full/", ("kept", b"old"))
        r = self.put("/tmp/full", archive(("first", b"1"), ("kept", b"n" * (200 << 20)), ("never", b"2")), timeout=BOUND * 4)
        self.expect(r, 507, "no_space", "kept")
        self.assertEqual(self.sh("cd /tmp/full; cat kept first; ls -A"), "old1first\nkept\n")
        self.assertEqual(self.d.write(self.box, "/tmp/full/room", b"x" * (1 << 20)).status, 200, "what was written is given back")

    def test_chunked_and_pieces(self):
        data = archive(*((f"f{i}", os.urandom(i * 100)) for i in range(50)))
        for size in (1000, 7, 100000):
            c = self.d.connect()
            c.request("PUT", f"/v1/boxes/{self.box}/files?path=/tmp/chunks/{size}/", (data[i:i + size] for i in range(0, len(data), size)),
                      encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
            self.assertEqual(c.getresponse().status, 204)
            c.close()
        self.assertEqual(self.sh("cd /tmp/chunks; diff -r 7 1000 && diff -r 7 100000 && ls 7 | wc -l"), "50\n")

    def test_the_connection_goes_on(self):
        c = self.d.connect()
        for i in range(5):
            r = self.put("/tmp/again", archive(("a", b"%d" % i), ("b", b"")), connection=c)
            self.assertEqual((r.status, r.body), (204, b""))
            self.assertNotIn("Transfer-Encoding", r.headers)
            r = self.d.request("GET", f"/v1/boxes/{self.box}/files?path=/tmp/again", connection=c)
            self.assertEqual(unarchive(r.body)["again/a"][1], b"%d" % i)
            r = self.put("/tmp/again", b"no archive", connection=c)
            self.expect(r, 400, "invalid_argument", "no tar archive")
        c.close()

    def test_bad_queries(self):
        for query, reason in (("", "invalid_path"), ("path=rel", "invalid_path"), ("path=/a/../b", "invalid_path"), ("path=/a&overwrite=maybe", "invalid_argument")):
            self.expect(self.d.request("PUT", f"/v1/boxes/{self.box}/files?{query}", archive(("a", b""))), 400, reason)
        self.expect(self.d.get(f"/v1/boxes/{self.box}/files?path=/tmp&follow_symlinks=x"), 400, "invalid_argument", "follow_symlinks")
        r = self.d.request("DELETE", f"/v1/boxes/{self.box}/files?path=/tmp")
        self.assertEqual((r.status, r.headers["Allow"]), (405, "PUT, GET"))
        self.assertEqual(self.put("/tmp/x", archive(("a", b"")), box="0" * 16).status, 404)

    def test_many_at_once(self):
        def one(i):
            data = archive(*((f"{k}", bytes([i]) * 5000) for k in range(100)))
            for _ in range(3):
                self.assertEqual(self.put(f"/tmp/many/{i}", data).status, 204)
                got = self.download(f"/tmp/many/{i}")
                self.assertEqual(len(got), 101)
                self.assertEqual(got[f"{i}/99"][1], bytes([i]) * 5000)
        in_threads(8, one)


class Hostile(TarTest):
    """Archives that want out of their destination, or to be more than anybody can hold."""

    def setUp(self):
        self.sh("rm -rf /tmp/dest /tmp/outside; mkdir -p /tmp/dest/sub /tmp/outside; echo safe > /tmp/outside/file; "
                "ln -s /tmp/outside /tmp/dest/abs; ln -s ../outside /tmp/dest/rel; ln -s ../../outside/file /tmp/dest/sub/file; ln -s sub /tmp/dest/in")
        self.before = self.state()

    def state(self):
        return self.sh("cd /tmp/outside; find . -printf '%p %y %m %n %T@ %C@ %s\\n' | sort; cat file; ls -A /tmp /")

    def refuse(self, entry, *members, reason="invalid_path"):
        self.expect(self.put("/tmp/dest", archive(("good", b"1"), *members, ("never", b"2"))), 400, reason, entry)
        self.assertEqual(self.state(), self.before)
        self.assertEqual(self.sh("cd /tmp/dest; cat good; rm good; ls -A"), "1abs\nin\nrel\nsub\n", "what came before stays, no more")

    def test_names_that_lead_out(self):
        for name in ("/tmp/outside/file", "/tmp/dest/x", "../outside/file", "..", "sub/../../outside/file", "sub/..", "./../x", "a/../b"):
            self.refuse(name, (name, b"evil"))
            self.refuse(name, member(name, tarfile.DIRTYPE))
            self.refuse(name, member(name, tarfile.SYMTYPE, link="x"))

    def test_links_that_are_there(self):
        for name in ("abs/file", "abs/new", "rel/file", "rel/a/b/c"):
            self.refuse(name, (name, b"evil"))
            self.refuse(name, member(name, tarfile.DIRTYPE))
        for name in ("abs", "rel"):
            self.refuse(name, member(name, tarfile.DIRTYPE, mode=0o777))
        # The link itself is in the destination: it is replaced, and not written through.
        self.upload("/tmp/dest", ("sub/file", b"new"), ("in/x", b"inside"))
        self.assertEqual(self.state(), self.before)
        self.assertEqual(self.sh("cat /tmp/dest/sub/file /tmp/dest/sub/x; stat -c %F /tmp/dest/sub/file"), "newinsideregular file\n")

    def test_row_13_links_in_the_archive_lead_nowhere(self):
        for target in ("/tmp/outside", "../outside", "sub/../../outside", "/", ".."):
            self.expect(self.put("/tmp/dest", archive(member("l", tarfile.SYMTYPE, link=target), ("l/file", b"evil"))), 400, "invalid_path", "l/file")
            self.assertEqual(self.state(), self.before)
            # It is made, as any archiver makes it: only going through it is refused.
            self.assertEqual(self.sh("readlink /tmp/dest/l; rm /tmp/dest/l"), f"{target}\n")
        self.expect(self.put("/tmp/dest", archive(
            member("a", tarfile.SYMTYPE, link="."), member("a/b", tarfile.SYMTYPE, link=".."), ("b/c/d", b"evil"))), 400, "invalid_path", "b/c/d")
        self.expect(self.put("/tmp/dest", archive(
            ("d/x", b"1"), member("l", tarfile.SYMTYPE, link="d"), ("l/y", b"2"), member("l", tarfile.SYMTYPE, link="../outside"),
            ("l/file", b"evil"))), 400, "invalid_path", "l/file")
        self.assertEqual(self.sh("ls /tmp/dest/d"), "x\ny\n")
        self.assertEqual(self.state(), self.before)

    def test_loops(self):
        self.refuse("loop/x", member("sub/a", tarfile.SYMTYPE, link="b"), member("sub/b", tarfile.SYMTYPE, link="a"),
                    member("sub/loop", tarfile.SYMTYPE, link="loop"), ("sub/loop/x", b"1"))
        self.sh("rm -f /tmp/dest/sub/[ab] /tmp/dest/sub/loop")
        self.refuse("nowhere/x", member("sub/nowhere", tarfile.SYMTYPE, link="missing"), ("sub/nowhere/x", b"1"))

    def test_hard_links_out(self):
        for link in ("/tmp/outside/file", "../outside/file", "abs/file", "rel/file", "sub/../../outside/file", "missing"):
            self.refuse("hard", member("hard", tarfile.LNKTYPE, link=link))
        self.assertEqual(self.sh("stat -c %h /tmp/outside/file"), "1\n")
        # Also not through a link that a hard link was made of.
        self.expect(self.put("/tmp/dest", archive(
            member("l", tarfile.LNKTYPE, link="abs"), ("l/file", b"evil"))), 400, "invalid_path", "l/file")
        self.assertEqual(self.state(), self.before)

    def test_devices_and_fifos(self):
        for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
            self.refuse("dev", member("dev", kind), reason="invalid_argument")

    def test_garbage_and_cuts(self):
        for data in (b"", b"x", b"garbage " * 1000, os.urandom(100_000), b"\x1f\x8b\x08" + bytes(2000)):
            self.expect(self.put("/tmp/dest", data), 400, "invalid_argument", "no tar archive")
        whole = archive(("first", b"1" * 3000), ("second", b"2" * 700), fmt=tarfile.USTAR_FORMAT)
        for cut in (512, 1000, 3584, 3700, 4096, 4500, 5120):
            self.sh("rm -f /tmp/dest/first /tmp/dest/second")
            self.expect(self.put("/tmp/dest", whole[:cut]), 400, "invalid_argument", "second" if cut >= 4096 else "first")
            self.assertEqual(self.sh("cd /tmp/dest; ls first second 2>/dev/null | wc -l"), f"{(cut >= 3584) + (cut >= 5120)}\n")
        self.assertEqual(self.leftovers(), "")
        self.assertEqual(self.state(), self.before)

    def test_more_claimed_than_comes(self):
        info, _ = member("claim")
        info.size = 1 << 40
        self.expect(self.put("/tmp/dest", info.tobuf(tarfile.GNU_FORMAT) + b"x" * 100_000), 400, "invalid_argument", "claim")
        self.assertEqual(self.sh("ls -A /tmp/dest"), "abs\nin\nrel\nsub\n")

    def test_names_with_nul(self):
        info, _ = member("x")
        info.pax_headers = {"path": "ok\0/../../outside/file"}
        self.assertEqual(self.put("/tmp/dest/", archive((info, b""))).status, 204)
        self.assertEqual(self.sh("ls -A /tmp/dest"), "abs\nin\nok\nrel\nsub\n")
        self.assertEqual(self.state(), self.before)

    def test_a_box_that_changes_the_tree_meanwhile(self):
        """A directory becomes a link out, over and over, while members go into it."""
        self.sh("mkdir /tmp/dest/race")
        stop = self.meanwhile("cd /tmp/dest; mv -T race race.d && ln -s ../outside race; rm -f race; mv -T race.d race")
        data = archive(*((f"race/{i}", b"evil") for i in range(300)))
        try:
            for _ in range(10):
                self.assertIn(self.put("/tmp/dest", data).status, (204, 400))
        finally:
            stop()
        self.assertEqual(self.state(), self.before)
        self.assertEqual(self.leftovers(), "")


def peak(status):
    """The most memory that a process ever had, in KiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


class Large(TarTest):
    config = "replicas: 50\ndisk_mib: 1000\nmemory_mib: 2000\n"

    SIZE = 256 << 20

    def bounded(self):
        """The processes between a client and the disk, and what they may not go beyond from now on."""
        i = self.d.inspect(self.box)
        pids = [i["pid"]]
        if backends.current.own_kernel:
            self.sh("echo 5 > /proc/1/clear_refs")
        else:
            pids.append(i["box_pid"])
        for p in pids:
            with open(f"/proc/{p}/clear_refs", "w", encoding="ascii") as f:
                f.write("5")

        def peaks():
            return {"worker": peak(slurp(f"/proc/{i['pid']}/status")), "guest": peak(self.d.status_inside(self.box, 1))}

        before = peaks()

        def check():
            grown = {name: now - before[name] for name, now in peaks().items()}
            if os.environ.get("SBX_SAN"):  # a sanitizer has needs of its own
                del grown["worker"]
            self.assertLess(max(grown.values()), 6 << 10, grown)
        return check

    def large_archive(self):
        """SIZE bytes in one file, made as they are sent."""
        info, _ = member("large")
        info.size = self.SIZE
        yield info.tobuf(tarfile.PAX_FORMAT)
        block = os.urandom(1 << 20)
        for _ in range(self.SIZE >> 20):
            yield block
        yield bytes(1024)

    def send(self, c, path, pieces, length):
        c.putrequest("PUT", f"/v1/boxes/{self.box}/files?path={path}")
        c.putheader("Content-Length", str(length))
        c.endheaders()
        for p in pieces:
            c.send(p)

    @unittest.skipUnless(IS_ROOT, "the peak of other users' processes is reset")
    def test_memory_is_bounded(self):
        check = self.bounded()
        c = self.d.connect(BOUND * 4)
        self.send(c, "/tmp/bounded/", self.large_archive(), self.SIZE + 1536)
        r = c.getresponse()
        self.assertEqual((r.status, r.read()), (204, b""))
        check()
        c.request("GET", f"/v1/boxes/{self.box}/files?path=/tmp/bounded/large")
        r = c.getresponse()
        got = r.read(1 << 20)
        [helper] = self.helpers()
        self.assertEqual(self.d.sh(self.box, "echo others go on"), "others go on\n")
        check()
        self.assertLess(peak(self.d.status_inside(self.box, helper)), 6 << 10)
        n = len(got)
        while piece := r.read(1 << 20):
            n += len(piece)
        self.assertEqual(n, 512 + self.SIZE + 1024)
        check()
        c.close()
        self.sh("rm -r /tmp/bounded")

    def test_an_upload_that_is_broken_off(self):
        """The client goes away in the middle of a member: what was there stays, nothing else does."""
        self.upload("/tmp/broken/", ("large", b"old"))
        for path in ("/tmp/broken/", "/tmp/broken/large", "/tmp/broken/new"):
            c = self.d.connect()
            pieces = self.large_archive()
            self.send(c, path, (next(pieces) for _ in range(20)), self.SIZE + 1536)
            wait_for("its beginning to be written", lambda: self.leftovers())
            self.assertEqual(len(self.helpers()), 1)
            c.close()
            wait_for("the helper to end", lambda: not self.helpers())
            wait_for("the box to be at rest", lambda: self.d.inspect(self.box)["in_flight"] == 0)
            self.assertEqual(self.leftovers(), "")
            self.assertEqual(self.sh("cd /tmp/broken; ls -A; cat large"), "large\nold")

    def test_a_helper_that_is_stopped_goes_on(self):
        """Whoever stops all that runs in the box does not hang uploads, downloads and lists for ever."""
        body = archive(("a", b"a" * 100000), ("b", b"b"))
        c = self.d.connect()
        self.addCleanup(c.close)
        c.putrequest("PUT", f"/v1/boxes/{self.box}/files?path=/tmp/halted")
        c.putheader("Content-Length", str(len(body)))
        c.endheaders(body[:50000])
        wait_for("its beginning to be written", lambda: self.leftovers())
        for _ in range(20):
            self.sh("kill -STOP -1")
        c.send(body[50000:])
        self.assertEqual(c.getresponse().status, 204)
        self.assertEqual(self.sh("cd /tmp/halted; ls; wc -c <a"), "a\nb\n100000\n")

    def test_a_download_that_is_broken_off(self):
        self.sh("head -c 50000000 /dev/zero > /tmp/zeros")
        c = self.d.connect()
        c.request("GET", f"/v1/boxes/{self.box}/files?path=/tmp/zeros")
        self.assertEqual(c.getresponse().read(100)[:5], b"zeros")
        self.assertEqual(len(self.helpers()), 1)
        c.close()
        wait_for("the helper to end", lambda: not self.helpers())
        wait_for("the box to be at rest", lambda: self.d.inspect(self.box)["in_flight"] == 0)

    def test_a_hundred_thousand_members(self):
        count = 100_000 // backends.current.slow
        names = [f"m/{i % 100}/{i}" for i in range(count)]
        r = self.put("/tmp/large", archive(*((n, b"") for n in names), fmt=tarfile.USTAR_FORMAT), timeout=BOUND * 8)
        self.assertEqual(r.status, 204, r)
        self.assertEqual(self.sh("find /tmp/large/m -type f | wc -l"), f"{count}\n")
        got = self.fetch("/tmp/large/m", timeout=BOUND * 8)
        with tarfile.open(fileobj=io.BytesIO(got.body)) as t:
            self.assertEqual(sum(i.isreg() for i in t), count)
        self.sh("rm -r /tmp/large/m")


class Download(TarTest):
    def test_one_file_is_one_entry(self):
        data = bytes(range(256)) * 70_000
        self.upload("/tmp/file.bin", member("x", data=data, mode=0o751))
        got = self.download("/tmp/file.bin")
        self.assertEqual(list(got), ["file.bin"])
        info, body = got["file.bin"]
        self.assertEqual((info.mode, info.mtime, info.size, info.uid), (0o751, MTIME, len(data), 0))
        self.assertTrue(body == data)
        self.sh("ln -s file.bin /tmp/to-file; : > /tmp/empty")
        self.assertEqual(self.download("/tmp/to-file")["to-file"][1], data, "the path is followed to what it names")
        self.assertEqual(self.download("/tmp/empty")["empty"][1], b"")

    def test_a_tree(self):
        self.sh("mkdir -p /tmp/tree/empty /tmp/tree/sub; cd /tmp/tree; echo 1 > sub/file; ln sub/file sub/hard; ln -s file sub/link; "
                "ln -s /nowhere dangling; chmod 4755 sub/file; chmod 1777 empty; mkfifo fifo; mknod null c 1 3 2>/dev/null; "
                "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; touch -d @1000000000 sub empty")
        got = self.download("/tmp/tree")
        self.assertEqual(sorted(got), ["tree", "tree/dangling", "tree/empty", "tree/sub", "tree/sub/file", "tree/sub/hard", "tree/sub/link"])
        self.assertEqual(next(iter(got)), "tree", "a directory comes before what is in it")
        hard = [got[f"tree/sub/{n}"][0] for n in ("file", "hard")]
        self.assertEqual(sorted(i.islnk() for i in hard), [False, True])
        self.assertIn(next(i.linkname for i in hard if i.islnk()), ("tree/sub/file", "tree/sub/hard"))
        self.assertEqual(next(i.mode for i in hard if i.isreg()), 0o4755)
        self.assertEqual((got["tree/empty"][0].mode, got["tree/empty"][0].mtime), (0o1777, 1000000000))
        self.assertEqual(got["tree/sub/link"][0].linkname, "file")
        self.assertEqual(got["tree/dangling"][0].linkname, "/nowhere")
        for path, first in (("/tmp/tree/sub/.", "."), ("/tmp/tree/sub/", "sub"), ("/tmp//tree/./sub", "sub")):
            self.assertEqual(sorted(self.download(path)), [first] + [f"{first}/{n}" for n in ("file", "hard", "link")])
        # What was sent is taken back, and makes the same tree.
        self.assertEqual(self.put("/tmp/copy", self.fetch("/tmp/tree/.").body).status, 204)
        self.assertEqual([line.replace(" 4755 ", " 755 ").replace(" 1777 ", " 777 ") for line in self.tree("/tmp/tree") if line.split()[1] not in "pcs"],
                         self.tree("/tmp/copy"))
        self.assertEqual(self.sh("stat -c '%h %Y' /tmp/copy/sub/file /tmp/copy/sub | head -1; stat -c %Y /tmp/copy/sub"), self.sh(
            "stat -c '%h %Y' /tmp/tree/sub/file; stat -c %Y /tmp/tree/sub"))

    def test_follow_symlinks(self):
        self.sh("mkdir -p /tmp/follow/real/deep /tmp/elsewhere; cd /tmp/follow; echo file > real/f; echo out > /tmp/elsewhere/o; ln -s real dir; "
                "ln -s real/f f; ln -s /tmp/elsewhere out; ln -s .. real/deep/up; ln -s /tmp/follow real/top; ln -s self self; ln -s /nowhere gone; "
                "ln -s /dev/null dev")
        got = {n: i for n, (i, _) in self.download("/tmp/follow", "&follow_symlinks=true").items()}
        kinds = {n: "d" if i.isdir() else "f" if i.isreg() or i.islnk() else i.linkname for n, i in got.items()}
        # A link to a directory that it is in, to itself or to nothing stays what it is; one to a device is left out.
        real = lambda at: {at: "d", f"{at}/f": "f", f"{at}/deep": "d", f"{at}/deep/up": "..", f"{at}/top": "/tmp/follow"}
        self.assertEqual(kinds, {"follow": "d", **real("follow/real"), **real("follow/dir"), "follow/f": "f", "follow/out": "d",
                                 "follow/out/o": "f", "follow/self": "self", "follow/gone": "/nowhere"})
        plain = self.download("/tmp/follow")
        self.assertTrue(plain["follow/dir"][0].issym() and plain["follow/out"][0].issym())

    def test_missing_and_odd_paths(self):
        self.sh("mkfifo /tmp/pipe; ln -s loop /tmp/loop; ln -s /nowhere /tmp/gone; touch /tmp/plain")
        for path, status, reason in (("/tmp/missing", 404, "not_found"), ("/tmp/gone", 404, "not_found"), ("/tmp/plain/x", 400, "not_a_directory"),
                                     ("/tmp/plain/", 400, "not_a_directory"), ("/tmp/loop", 400, "invalid_path"), ("/tmp/pipe", 400, "invalid_argument"),
                                     ("/dev/null", 400, "invalid_argument")):
            self.expect(self.fetch(path), status, reason, path.rstrip("/"))
        r = self.fetch("/tmp/missing", headers={"X-Request-Id": "tar-1"})
        self.assertEqual((r.headers["X-Request-Id"], r.headers["Content-Type"]), ("tar-1", "application/json"))

    def test_the_kernels_own_files_are_left_out(self):
        for path in ("/proc", "/sys"):
            self.assertEqual(list(self.download(path)), [path[1:]])

    def test_a_file_that_changes_while_it_is_read(self):
        """It shrinks, grows, goes away and comes back: the archive stays one."""
        self.sh("mkdir /tmp/busy")
        stop = self.meanwhile("cd /tmp/busy; head -c 3000000 /dev/zero > big; : > big; head -c 100000 /dev/zero >> big; "
                              "mkdir d; touch d/x; rm -r d; touch d; rm d")
        try:
            for _ in range(30):
                got = self.download("/tmp/busy")
                self.assertIn("busy", got)
        finally:
            stop()
        self.sh("rm -r /tmp/busy")

    def test_a_deep_tree(self):
        depth = 1900
        self.sh(f"python3 -c 'import os\nos.chdir(\"/tmp\")\nfor i in range({depth}):\n os.mkdir(\"d\"); os.chdir(\"d\")\nopen(\"end\", \"w\").close()'")
        got = self.download("/tmp/d")
        self.assertIn("d/" * depth + "end", got)
        self.sh("rm -r /tmp/d")

    def test_names_that_are_too_long(self):
        self.sh("python3 -c 'import os\nos.chdir(\"/tmp\")\nfor i in range(30):\n os.mkdir(\"d\" * 200); os.chdir(\"d\" * 200)'")
        self.expect(self.fetch(f"/tmp/{'d' * 200}"), 400, "invalid_path", "ddd")
        self.sh(f"rm -r /tmp/{'d' * 200}")


if __name__ == "__main__":
    unittest.main()
