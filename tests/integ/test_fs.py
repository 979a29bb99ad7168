"""fs/stat, list, glob, grep, mkdir, remove and rename: what is there is found, and each failure has its own name."""

import base64
import fcntl
import json
import os
import socket
import unittest
from urllib.parse import quote, urlencode

from harness import BOUND, ROOT, DaemonTest, in_threads, slurp, wait_for

# Names that break what parses the output of other programs.
NAMES = [b"co:lon", b"a:1:b", b"with space", b" ", b"new\nline", b"quote'\"", b"back\\slash", b"-n", b"*", b"[x]", "naïve ✓".encode(),
         b"\xff\xfe", b"tab\t", b"$(reboot)", b"a%41", b"+", b"..."]


class FsTest(DaemonTest):
    """A box, and the endpoints as functions."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("fs", "t")["box_id"]

    def ask(self, method, what, body=None, **query):
        """query: values are text or bytes, of any kind."""
        rest = f"fs/{what}" if what else "fs"
        return self.d.request(method, f"/v1/boxes/{self.box}/{rest}?{urlencode(query, quote_via=quote)}", body)

    def good(self, method, what, body=None, **query):
        r = self.ask(method, what, body, **query)
        self.assertEqual(r.status, 200, r)
        return r.json

    def expect(self, reply, status, reason):
        self.assertEqual((reply.status, reply.reason), (status, reason), reply)

    def tree(self, path, files, dirs=()):
        """Makes files (name: bytes) and directories below path."""
        self.good("POST", "mkdir", {"path": path, "parents": True})
        for name in dirs:
            self.good("POST", "mkdir", path=os.path.join(path.encode(), name.encode()), parents="1")
        for name, data in files.items():
            name = name if isinstance(name, bytes) else name.encode()
            full = os.path.join(path.encode(), name)
            self.good("POST", "mkdir", path=os.path.dirname(full), parents="1")
            self.assertEqual(self.d.write(self.box, quote(full), data).status, 200, name)

    def helpers(self):
        """sbx-files processes in the box."""
        return self.d.run(self.box, ["pgrep", "-x", "sbx-files"])["stdout"].split()


def name_of(entry, key="path"):
    """The bytes of a name in an answer."""
    if key + "_base64" in entry:
        return base64.b64decode(entry[key + "_base64"])
    return entry[key].encode()


class Fs(FsTest):
    config = "replicas: 50\ndisk_mib: 160\n"

    # ---- stat ----

    def test_stat(self):
        self.d.sh(self.box, "cd /tmp; printf 12345 > st; chmod 4751 st; ln -sfn st sl; mkdir -p sd; [ -p sf ] || mkfifo sf; touch -d 2001-02-03T04:05:06.5Z st")
        s = self.good("GET", "stat", path="/tmp/st")
        self.assertEqual(s, {"path": "/tmp/st", "type": "file", "size": 5, "mode": "4751", "uid": 0, "gid": 0,
                             "modified_at": "2001-02-03T04:05:06.500000000Z"})
        link = self.good("GET", "stat", path="/tmp/sl")
        self.assertEqual((link["type"], link["link_target"]), ("symlink", "st"))
        self.assertEqual(self.good("GET", "stat", path="/tmp/sl", follow="1"), {**s, "path": "/tmp/sl"})
        for path, kind in (("/", "directory"), ("/tmp/sd/", "directory"), ("/tmp/sf", "fifo"), ("/dev/null", "char_device"), ("/proc/self/status", "file"),
                           ("/proc/self/exe", "symlink")):
            self.assertEqual(self.good("GET", "stat", path=path)["type"], kind, path)
        self.expect(self.ask("GET", "stat", path="/tmp/none"), 404, "not_found")
        self.expect(self.ask("GET", "stat", path="/tmp/st/x"), 400, "not_a_directory")
        self.expect(self.ask("GET", "stat", path="/tmp/" + "x" * 300), 400, "invalid_path")
        self.assertEqual(self.ask("GET", "stat", path="/proc/1/root/etc", follow="1").status, 400, "magic links are not followed")
        self.assertEqual(self.ask("GET", "stat", path="/proc/1/exe", follow="1").status, 400)

    # ---- mkdir, remove, rename ----

    def test_mkdir(self):
        self.assertEqual(self.good("POST", "mkdir", {"path": "/tmp/m"}), {"path": "/tmp/m", "created": True})
        self.expect(self.ask("POST", "mkdir", {"path": "/tmp/m"}), 409, "already_exists")
        self.assertFalse(self.good("POST", "mkdir", {"path": "/tmp/m", "parents": True})["created"])
        self.expect(self.ask("POST", "mkdir", {"path": "/tmp/m/1/2"}), 404, "not_found")
        self.assertTrue(self.good("POST", "mkdir", {"path": "/tmp/m/1/2/", "parents": True, "mode": "1770"})["created"])
        self.assertEqual(self.good("GET", "stat", path="/tmp/m/1/2")["mode"], "1770")
        self.assertEqual(self.good("GET", "stat", path="/tmp/m/1")["mode"], "0755")
        self.d.write(self.box, "/tmp/m/file", b"")
        self.expect(self.ask("POST", "mkdir", {"path": "/tmp/m/file", "parents": True}), 409, "already_exists")
        self.expect(self.ask("POST", "mkdir", {"path": "/tmp/m/file/x", "parents": True}), 400, "not_a_directory")
        self.expect(self.ask("POST", "mkdir", {"path": "/proc/x"}), 404, "not_found")
        self.expect(self.ask("POST", "mkdir", {"path": "tmp"}), 400, "invalid_path")
        self.expect(self.ask("POST", "mkdir", {"path": "/tmp/\0"}), 400, "malformed_request")
        self.expect(self.ask("POST", "mkdir", "{"), 400, "malformed_request")

    def test_remove(self):
        self.tree("/tmp/r", {"a/b/file": b"", "a/other": b"", "z": b""})
        self.d.sh(self.box, "mkdir -p /tmp/r-kept; touch /tmp/r-kept/file; ln -s /tmp/r-kept /tmp/r/a/link; ln -s . /tmp/r/a/loop; mkfifo /tmp/r/a/fifo")
        self.expect(self.ask("DELETE", "", path="/tmp/r/a"), 409, "not_empty")
        self.assertEqual(self.good("DELETE", "", path="/tmp/r/z"), {"path": "/tmp/r/z", "removed": 1})
        self.expect(self.ask("DELETE", "", path="/tmp/r/z"), 404, "not_found")
        self.expect(self.ask("DELETE", "", path="/tmp/r/z", recursive="1"), 404, "not_found")
        self.assertEqual(self.good("DELETE", "", path="/tmp/r/a", recursive="1"), {"path": "/tmp/r/a", "removed": 7})
        self.assertEqual(self.good("DELETE", "", path="/tmp/r")["removed"], 1, "it is empty")
        self.assertEqual(self.d.sh(self.box, "ls /tmp/r-kept"), "file\n", "a link is removed, not followed")
        for recursive in ("0", "1"):
            self.expect(self.ask("DELETE", "", path="/", recursive=recursive), 409, "busy")
            self.assertIn(self.ask("DELETE", "", path="/proc", recursive=recursive).status, (403, 409))
            self.expect(self.ask("DELETE", "", path="/tmp/../etc", recursive=recursive), 400, "invalid_path")
        self.assertEqual(self.d.sh(self.box, "ls -d /etc/passwd"), "/etc/passwd\n")

    def test_rename(self):
        self.tree("/tmp/n", {"from": b"new", "dir/x": b""})
        self.assertEqual(self.good("POST", "rename", {"from": "/tmp/n/from", "to": "/tmp/n/to"}), {"from": "/tmp/n/from", "to": "/tmp/n/to"})
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/from", "to": "/tmp/n/to"}), 404, "not_found")
        self.d.write(self.box, "/tmp/n/from", b"newer")
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/from", "to": "/tmp/n/to"}), 409, "already_exists")
        self.assertEqual(self.d.read(self.box, "/tmp/n/to").body, b"new")
        self.good("POST", "rename", {"from": "/tmp/n/from", "to": "/tmp/n/to", "overwrite": True})
        self.assertEqual(self.d.read(self.box, "/tmp/n/to").body, b"newer")
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/to", "to": "/tmp/n/dir", "overwrite": True}), 400, "is_directory")
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/dir", "to": "/tmp/n/to", "overwrite": True}), 400, "not_a_directory")
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/dir", "to": "/tmp/n/dir/y"}), 400, "invalid_argument")
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/dir", "to": "/proc/x"}), 400, "cross_device")
        self.expect(self.ask("POST", "rename", {"from": "/tmp/n/dir"}), 400, "invalid_path")

    def test_no_space(self):
        self.d.sh(self.box, "mkdir /tmp/full")
        try:
            # To the last inode: so a directory is refused, and the reason is told.
            self.d.run(self.box, "cd /tmp/full; seq 1 60000 | xargs mkdir 2>/dev/null")
            self.expect(self.ask("POST", "mkdir", {"path": "/tmp/full/x"}), 507, "no_space")
        finally:
            self.good("DELETE", "", path="/tmp/full", recursive="1")

    # ---- list ----

    def test_list(self):
        self.tree("/tmp/l", {"b/inner": b"123", "a": b"", "node_modules/x.log": b""}, ["c"])
        self.d.sh(self.box, "ln -sfn b /tmp/l/to-b; ln -sfn to-loop /tmp/l/to-loop; mkfifo /tmp/l/fifo")
        paths = lambda **q: [e["path"] for e in self.good("GET", "list", **q)["entries"]]
        self.assertEqual(paths(path="/tmp/l"), ["a", "b", "c", "fifo", "node_modules", "to-b", "to-loop"])
        self.assertEqual(paths(path="/tmp/l/", depth="2"), ["a", "b", "b/inner", "c", "fifo", "node_modules", "node_modules/x.log", "to-b", "to-loop"])
        self.assertEqual(paths(path="/tmp/l/to-b"), ["inner"], "the path itself may be a link")
        self.assertEqual(paths(path="/tmp/l/c"), [])
        r = self.good("GET", "list", path="/tmp/l")
        self.assertEqual(set(r), {"entries", "truncated"})
        self.assertFalse(r["truncated"])
        by_name = {e["path"]: e for e in r["entries"]}
        self.assertEqual([by_name[n]["type"] for n in ("a", "b", "fifo", "to-b")], ["file", "directory", "fifo", "symlink"])
        self.assertEqual(by_name["to-b"]["link_target"], "b")
        self.assertEqual(by_name["a"], {k: v for k, v in {**self.good("GET", "stat", path="/tmp/l/a"), "path": "a"}.items()})
        r = self.good("GET", "list", path="/tmp/l", max_results="2")
        self.assertEqual(([e["path"] for e in r["entries"]], r["truncated"]), (["a", "b"], True))
        self.assertFalse(self.good("GET", "list", path="/tmp/l", max_results="7")["truncated"])

    def test_places_that_are_no_directories(self):
        self.d.sh(self.box, "touch /tmp/plain; ln -sfn loop /tmp/loop; ln -sfn nowhere /tmp/dangling")
        for what, more in (("list", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
            self.expect(self.ask("GET", what, path="/tmp/plain", **more), 400, "not_a_directory")
            self.expect(self.ask("GET", what, path="/tmp/plain/x", **more), 400, "not_a_directory")
            self.expect(self.ask("GET", what, path="/dev/zero", **more), 400, "not_a_directory")
            self.expect(self.ask("GET", what, path="/tmp/none", **more), 404, "not_found")
            self.expect(self.ask("GET", what, path="/tmp/dangling", **more), 404, "not_found")
            self.expect(self.ask("GET", what, path="/tmp/loop", **more), 400, "invalid_path")
            self.expect(self.ask("GET", what, path="relative", **more), 400, "invalid_path")
            self.expect(self.ask("GET", what, **more), 400, "invalid_path")
            self.assertEqual(self.ask("GET", what, path="/proc/self/root", **more).status, 400)
            self.assertEqual(self.ask("POST", what, path="/tmp", **more).status, 405)

    # ---- search ----

    def test_the_vectors(self):
        vectors = json.loads(slurp(f"{ROOT}/tests/data/search.json"))
        self.tree("/tmp/v", {n: c.encode() for n, c in vectors["files"].items()}, vectors["empty_dirs"])
        for case in vectors["glob"]:
            r = self.good("GET", "glob", path="/tmp/v", pattern=case["pattern"], include_dirs=str(case["include_dirs"]).lower(), max_results=case["max_results"])
            self.assertEqual((len(r["matches"]), r["truncated"]), (case["count"], case["truncated"]), case)
            if case["expect"] is not None:
                self.assertEqual(r["matches"], case["expect"], case)
        for case in vectors["grep"]:
            query = {k: str(case[k]).lower() for k in ("literal", "case_sensitive")}
            query |= {"glob": case["glob"]} if case["glob"] else {}
            r = self.good("GET", "grep", path="/tmp/v", pattern=case["pattern"], max_results=case["max_results"], **query)
            self.assertEqual((len(r["matches"]), r["truncated"]), (case["count"], case["truncated"]), case)
            if case["expect"] is not None:
                self.assertEqual([[m["path"], m["line_number"], m["line"]] for m in r["matches"]], case["expect"], case)

    def test_bad_patterns(self):
        r = self.ask("GET", "grep", path="/tmp", pattern="a(b")
        self.expect(r, 400, "invalid_pattern")
        self.assertIn("at offset 3", r.json["error"]["message"])
        self.expect(self.ask("GET", "grep", path="/tmp", pattern=""), 400, "invalid_pattern")
        self.expect(self.ask("GET", "grep", path="/tmp"), 400, "invalid_pattern")
        self.expect(self.ask("GET", "grep", path="/tmp", pattern="x", glob="/abs"), 400, "invalid_pattern")
        self.expect(self.ask("GET", "glob", path="/tmp"), 400, "invalid_pattern")
        self.expect(self.ask("GET", "glob", path="/tmp", pattern="../x"), 400, "invalid_pattern")
        self.expect(self.ask("GET", "grep", path="/tmp", pattern="x", max_results="0"), 400, "invalid_argument")
        self.assertEqual(self.good("GET", "grep", path="/tmp", pattern="a(b", literal="1")["truncated"], False)

    def test_a_pattern_that_never_ends(self):
        self.tree("/tmp/e", {"line": b"a" * 1000 + b"zz\n"})
        r = self.ask("GET", "grep", path="/tmp/e", pattern="(a+)+zzz")
        self.expect(r, 400, "invalid_pattern")
        self.assertIn("line 1 of line", r.json["error"]["message"])

    def test_loops_and_devices(self):
        self.tree("/tmp/loops", {"dir/file": b"needle\n"})
        self.d.sh(self.box, "cd /tmp/loops; ln -s . self; ln -s .. dir/up; ln -s / root; ln -s a b; ln -s b a; mkfifo pipe; ln -s /dev/zero zero")
        r = self.good("GET", "grep", path="/tmp/loops", pattern="needle")
        self.assertEqual(r, {"matches": [{"path": "dir/file", "line_number": 1, "line": "needle"}], "truncated": False})
        r = self.good("GET", "glob", path="/tmp/loops", pattern="*", include_dirs="1")
        self.assertEqual(r["matches"], ["a", "b", "dir", "dir/file", "dir/up", "pipe", "root", "self", "zero"])
        self.assertEqual(self.good("GET", "grep", path="/dev", pattern="x")["matches"], [])

    def test_proc_is_searched_to_its_end(self):
        r = self.good("GET", "grep", path="/proc/sys/kernel", pattern="^Linux$")
        self.assertIn({"path": "ostype", "line_number": 1, "line": "Linux"}, r["matches"])
        for path in ("/proc/self", "/proc/1", "/proc"):
            r = self.ask("GET", "grep", path=path, pattern="no such text anywhere ✓")
            self.assertEqual(r.status, 200, r)
            self.assertEqual(r.json["matches"], [])

    # ---- many, and those that go away ----

    def test_parallel(self):
        self.tree("/tmp/p", {f"{i}/file{i}": b"needle\n" for i in range(20)})
        ask = lambda i: self.good("GET", "grep", path="/tmp/p", pattern="needle", glob=f"file{i}") if i % 2 else self.good("GET", "glob", path="/tmp/p", pattern=f"file{i}")
        for i, r in enumerate(in_threads(20, ask)):
            found = [m["path"] if isinstance(m, dict) else m for m in r["matches"]]
            self.assertEqual(found, [f"{i}/file{i}"])
        self.assertEqual(self.helpers(), [])

    def test_a_client_that_goes_away_ends_the_search(self):
        # Nobody takes the answer, which is longer than all that is kept of it: so the helper cannot end by itself.
        self.d.sh(self.box, "mkdir /tmp/away; cd /tmp/away; n=$(printf %0200d 0); seq -f %06g.$n 1 15000 | xargs touch")
        for what in ("list?path=/tmp/away&max_results=100000", "glob?path=/tmp/away&pattern=*&max_results=10000"):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.d.socket)
            s.sendall(f"GET /v1/boxes/{self.box}/fs/{what} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            s.recv(1)  # it has begun
            s.close()
            wait_for("the helper to be gone", lambda: not self.helpers())
        wait_for("the operation to be over", lambda: self.d.inspect(self.box)["in_flight"] == 0)
        self.assertEqual(self.good("DELETE", "", path="/tmp/away", recursive="1")["removed"], 15001)

    def test_a_killed_helper_is_an_error(self):
        """Not an answer that looks complete. The box kills it: it may do so."""
        self.d.sh(self.box, "mkdir /tmp/kill; cd /tmp/kill; n=$(printf %0200d 0); seq -f %06g.$n 1 15000 | xargs touch")
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(BOUND)
        s.connect(self.d.socket)
        s.sendall(f"GET /v1/boxes/{self.box}/fs/list?path=/tmp/kill&max_results=100000 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got = s.recv(1)  # it has begun
        self.d.sh(self.box, "pkill -9 -x sbx-files")
        while True:
            part = s.recv(1 << 20)
            if not part:
                break
            got += part
        s.close()
        self.assertFalse(got.endswith(b"0\r\n\r\n"), got[-100:])
        self.good("DELETE", "", path="/tmp/kill", recursive="1")


    def test_the_helper_cannot_be_changed(self):
        """All boxes run the same program, and in an ordinary user's a box could open it for writing."""
        fds = f"/proc/{self.d.process.pid}/fd"
        path = next(f"{fds}/{n}" for n in os.listdir(fds) if os.readlink(f"{fds}/{n}").startswith("/memfd:sbx-files"))
        with open(path, "rb") as f:
            self.assertEqual(f.read(4), b"\x7fELF")
            self.assertEqual(fcntl.fcntl(f, fcntl.F_GET_SEALS), fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
            with self.assertRaises(OSError):
                os.write(f.fileno(), b"x")


class Many(FsTest):
    """A hundred thousand files, and a tree that changes while it is walked."""

    config = "replicas: 5\ndisk_mib: 512\nmemory_mib: 1024\n"

    def test_a_hundred_thousand_files(self):
        self.d.sh(self.box, "mkdir /tmp/many; cd /tmp/many; for d in 0 1 2 3 4 5 6 7 8 9; do mkdir $d; (cd $d; seq -f f%g 1 10000 | xargs touch); done; echo needle > 9/f10000",
                  timeout_seconds=120)
        r = self.good("GET", "list", path="/tmp/many", depth="2", max_results="100000")
        self.assertEqual((len(r["entries"]), r["truncated"]), (100000, True))
        self.assertEqual([e["path"] for e in r["entries"][:3]], ["0", "0/f1", "0/f10"])
        r = self.good("GET", "glob", path="/tmp/many", pattern="f9999")
        self.assertEqual(r, {"matches": [f"{d}/f9999" for d in range(10)], "truncated": False})
        r = self.good("GET", "glob", path="/tmp/many", pattern="f*", max_results="10000")
        self.assertEqual((len(r["matches"]), r["truncated"]), (10000, True))
        r = self.good("GET", "grep", path="/tmp/many", pattern="needle")
        self.assertEqual(r, {"matches": [{"path": "9/f10000", "line_number": 1, "line": "needle"}], "truncated": False})
        self.assertEqual(self.good("DELETE", "", path="/tmp/many", recursive="1")["removed"], 100011)

    def test_a_tree_that_changes(self):
        """Directories come, go and become links while it is searched: what stays is found, each time."""
        self.tree("/tmp/moving", {"aa/stays": b"needle\n", "zz/stays": b"needle\n"})
        churn = ("cd /tmp/moving; while [ ! -e /tmp/stop ]; do mkdir -p m/n/o; echo needle > m/n/o/f; mv m p; ln -s / m; mv p q; rm -rf q m; done")
        r = self.d.run(self.box, f"({churn}) >/dev/null 2>&1 & echo $!")
        self.assertEqual(r["exit_code"], 0)
        try:
            for _ in range(40):
                r = self.good("GET", "grep", path="/tmp/moving", pattern="needle", glob="stays")
                self.assertEqual([m["path"] for m in r["matches"]], ["aa/stays", "zz/stays"])
                r = self.good("GET", "list", path="/tmp/moving", depth="9")
                self.assertLess({"aa", "aa/stays", "zz", "zz/stays"}, {e["path"] for e in r["entries"]} | {""})
        finally:
            self.d.write(self.box, "/tmp/stop", b"")
        wait_for("the churn to end", lambda: self.good("DELETE", "", path="/tmp/moving", recursive="1"))

    def test_a_deep_tree(self):
        self.d.sh(self.box, "deep=/tmp/deep$(printf '/d%.0s' $(seq 400)); mkdir -p $deep; echo needle > $deep/f; echo needle > /tmp/deep/e")
        r = self.good("GET", "grep", path="/tmp/deep", pattern="needle")
        self.assertEqual([m["path"] for m in r["matches"]], ["d/" * 400 + "f", "e"])
        self.assertEqual(self.good("DELETE", "", path="/tmp/deep", recursive="1")["removed"], 403)


class Reports(FsTest):
    config = "replicas: 5\n"

    def test_row_15_any_name_is_found_as_it_is(self):
        """A colon in a path breaks grep's output; here nothing is parsed that has no length."""
        self.tree("/tmp/names", {b"d:1:x/" + n: b"need:le\n" for n in NAMES})
        want = sorted(b"d:1:x/" + n for n in NAMES)
        r = self.good("GET", "grep", path="/tmp/names", pattern="need:le", literal="1")
        self.assertEqual([name_of(m) for m in r["matches"]], want)
        self.assertEqual({(m["line_number"], m["line"]) for m in r["matches"]}, {(1, "need:le")})
        r = self.good("GET", "list", path="/tmp/names", depth="2")
        self.assertEqual([name_of(e) for e in r["entries"]], [b"d:1:x"] + want)
        r = self.good("GET", "glob", path="/tmp/names", pattern="*")
        exact = {e["index"]: base64.b64decode(e["path_base64"]) for e in r["encoded"]}
        self.assertEqual([exact.get(i, m.encode()) for i, m in enumerate(r["matches"])], want)
        self.assertEqual(len(exact), 1)
        # And each of them can be asked for again, moved, and removed.
        for n in want:
            path = b"/tmp/names/" + n
            self.assertEqual(name_of(self.good("GET", "stat", path=path)), path)
            self.good("POST", "rename", **{"from": path, "to": path + b".moved"})
            self.good("DELETE", "", path=path + b".moved")
        self.assertEqual(self.good("GET", "list", path="/tmp/names/d:1:x")["entries"], [])
        self.d.run(self.box, ["ln", "-s", b"to:\xff".decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode(), "/tmp/names/l"])
        self.assertEqual(self.good("GET", "list", path="/tmp/names")["entries"][1]["type"], "symlink")

    def test_row_15_an_error_is_no_empty_directory(self):
        """What is not there, or no directory, is told by its own name; an empty directory is a success."""
        self.d.sh(self.box, "mkdir -p /tmp/empty; touch /tmp/plain")
        for what, more, empty in (("list", {}, "entries"), ("glob", {"pattern": "*"}, "matches"), ("grep", {"pattern": "x"}, "matches")):
            self.assertEqual(self.good("GET", what, path="/tmp/empty", **more), {empty: [], "truncated": False})
            self.expect(self.ask("GET", what, path="/tmp/missing", **more), 404, "not_found")
            self.expect(self.ask("GET", what, path="/tmp/plain", **more), 400, "not_a_directory")
            self.expect(self.ask("GET", what, path="/tmp/a:b/c", **more), 404, "not_found")

    def test_row_15_what_is_closed_is_told(self):
        # No root of a box may open this: it is another's.
        for what, more in (("list", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
            r = self.ask("GET", what, path="/proc/1/map_files", **more)
            self.expect(r, 403, "permission_denied")
        # Below the root it is told beside what was found.
        r = self.good("GET", "list", path="/proc/1", depth="2", max_results="100000")
        self.assertIn(("map_files", "permission_denied"), [(e["path"], e["reason"]) for e in r["errors"]])
        self.assertGreaterEqual(r["error_count"], len(r["errors"]))
        self.assertLess({"status", "exe", "map_files"}, {e["path"] for e in r["entries"]})
        self.assertEqual(self.good("GET", "stat", path="/proc/1/exe")["type"], "symlink")


if __name__ == "__main__":
    unittest.main()
