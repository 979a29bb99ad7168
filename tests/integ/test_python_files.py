"""The Python client: files, searches, and an exception for each reason."""

import io
import os
import pickle
import re
import tarfile
import unittest
from datetime import datetime, timedelta, timezone

import contract
from harness import DaemonTest
from pyclient import ClientTest, sbxd
from sbxd import _errors


class Files(ClientTest):
    def setUp(self):
        super().setUp()
        self.box = self.acquire()

    def test_read_and_write(self):
        box = self.box
        self.assertEqual(box.write("/tmp/a", "alpha\nbeta\ngamma\n", mode=0o640), 17)
        self.assertEqual(box.write("/tmp/a", b"delta", append=True), 5)
        self.assertEqual(box.read("/tmp/a"), b"alpha\nbeta\ngamma\ndelta")
        self.assertEqual((box.read("/tmp/a", offset=6, limit=4), box.read("/tmp/a", offset=100)), (b"beta", b""))
        self.assertEqual(
            (box.read_text("/tmp/a", first=2, last=3), box.read_text("/tmp/a", first=4)), ("beta\ngamma\n", "delta")
        )
        box.write("/tmp/a", "")
        self.assertEqual((box.read("/tmp/a"), box.read("/proc/self/comm") != b""), (b"", True))
        self.assertRaises(UnicodeDecodeError, lambda: (box.write("/tmp/b", b"\xff"), box.read_text("/tmp/b")))

    def test_a_long_file(self):
        data = os.urandom(20 << 20)
        self.assertEqual(self.box.write("/tmp/long", data), len(data))
        self.assertEqual(self.box.read("/tmp/long"), data)

    def test_stat_and_list(self):
        box = self.box
        box.write("/tmp/s/f", "12345", mode=0o640) if box.mkdir("/tmp/s/d/e") else self.fail()
        box.run("ln -s f /tmp/s/l").check()
        f = box.stat("/tmp/s/f")
        self.assertEqual((f.path, f.type, f.is_file, f.size, f.mode, f.uid), ("/tmp/s/f", "file", True, 5, 0o640, 0))
        self.assertLess(abs(f.modified_at - datetime.now(timezone.utc)), timedelta(minutes=10))
        self.assertEqual((box.stat("/tmp/s/l").link_target, box.stat("/tmp/s/l", follow=True).type), ("f", "file"))
        self.assertEqual(
            [(e.path, e.is_dir) for e in box.list_dir("/tmp/s").entries], [("d", True), ("f", False), ("l", False)]
        )
        self.assertEqual([e.path for e in box.list_dir("/tmp/s", depth=2).entries], ["d", "d/e", "f", "l"])
        found = box.list_dir("/tmp/s", max_results=1)
        self.assertEqual(([e.path for e in found.entries], found.truncated, found.problems), (["d"], True, []))

    def test_names_are_moved_and_removed(self):
        box = self.box
        self.assertEqual((box.mkdir("/tmp/n/x"), box.mkdir("/tmp/n/x")), (True, False))
        self.assertRaises(FileExistsError, box.mkdir, "/tmp/n/x", parents=False)
        box.write("/tmp/n/a", "1")
        box.write("/tmp/n/b", "2")
        self.assertRaises(sbxd.AlreadyExists, box.rename, "/tmp/n/a", "/tmp/n/b")
        box.rename("/tmp/n/a", "/tmp/n/b", overwrite=True)
        self.assertEqual(box.read("/tmp/n/b"), b"1")
        self.assertRaises(sbxd.NotEmpty, box.remove, "/tmp/n")
        self.assertEqual(box.remove("/tmp/n", recursive=True), 3)

    def test_names_of_any_bytes(self):
        name = "/tmp/odd/" + os.fsdecode(b"\xff\xfe &?#%+\xc3\xa4\n")
        self.box.mkdir("/tmp/odd")
        self.box.write(name, "1")
        self.assertEqual(self.box.read(name), b"1")
        below = name[len("/tmp/odd/") :]
        self.assertEqual([e.path for e in self.box.list_dir("/tmp/odd").entries], [below])
        self.assertEqual(self.box.glob("/tmp/odd", "*").paths, [below])
        self.assertEqual([m.path for m in self.box.grep("/tmp/odd", "1").lines], [below])
        self.box.rename(name, name + "2")
        self.assertEqual(self.box.stat(name + "2").path, name + "2")
        self.box.remove(name + "2")

    def test_glob_and_grep(self):
        box = self.box
        box.mkdir("/tmp/g/src/node_modules")
        for name, text in (("src/a.py", "one\nTwo\n"), ("src/b.txt", "two (x)\n"), ("src/node_modules/c.py", "two\n")):
            box.write(f"/tmp/g/{name}", text)
        self.assertEqual(box.glob("/tmp/g", "**/*.py").paths, ["src/a.py"])
        self.assertEqual(box.glob("/tmp/g", "*", include_dirs=True).paths, ["src", "src/a.py", "src/b.txt"])
        found = box.glob("/tmp/g", "*", max_results=1)
        self.assertEqual((found.paths, found.truncated), (["src/a.py"], True))
        self.assertEqual(
            [(m.path, m.number, m.text) for m in box.grep("/tmp/g", "^t.o").lines],
            [("src/a.py", 2, "Two"), ("src/b.txt", 1, "two (x)")],
        )
        self.assertEqual([m.path for m in box.grep("/tmp/g", "two", case_sensitive=True).lines], ["src/b.txt"])
        self.assertEqual([m.path for m in box.grep("/tmp/g", "o (x", literal=True).lines], ["src/b.txt"])
        self.assertEqual([m.path for m in box.grep("/tmp/g", "o", glob="*.py").lines], ["src/a.py", "src/a.py"])
        self.assertTrue(box.grep("/tmp/g", "o", max_results=1).truncated)

    def test_archives(self):
        with io.BytesIO() as f:
            with tarfile.open(fileobj=f, mode="w") as tar:
                info = tarfile.TarInfo("d/f")
                info.size = 3
                tar.addfile(info, io.BytesIO(b"abc"))
            self.box.put_tar("/tmp/tree", f.getvalue())
            self.assertRaises(sbxd.AlreadyExists, self.box.put_tar, "/tmp/tree", f.getvalue(), overwrite=False)
        with tarfile.open(fileobj=io.BytesIO(self.box.get_tar("/tmp/tree/."))) as tar:
            self.assertEqual(tar.extractfile("./d/f").read(), b"abc")


class Errors(ClientTest):
    def test_each_has_its_exception(self):
        box = self.acquire()
        box.mkdir("/tmp/e/d")
        box.write("/tmp/e/f", "1")
        box.write("/tmp/e/d/f", "1")
        expected = [
            (lambda: box.read("/tmp/e/none"), sbxd.NotFound, FileNotFoundError),
            (lambda: box.read("/tmp/e/d"), sbxd.IsADirectory, IsADirectoryError),
            (lambda: box.list_dir("/tmp/e/f"), sbxd.NotADirectory, NotADirectoryError),
            (lambda: box.read("relative"), sbxd.InvalidPath, ValueError),
            (lambda: box.read("/tmp/../etc/passwd"), sbxd.InvalidPath, ValueError),
            (lambda: box.grep("/tmp/e", "(("), sbxd.InvalidPattern, ValueError),
            (lambda: box.glob("/tmp/e", "*", max_results=0), sbxd.InvalidArgument, ValueError),
            (lambda: box.rename("/tmp/e/f", "/tmp/e/d"), sbxd.AlreadyExists, FileExistsError),
            (lambda: box.rename("/tmp/e/f", "/dev/shm/f"), sbxd.CrossDevice, OSError),
            (lambda: box.remove("/tmp/e/d"), sbxd.NotEmpty, OSError),
            (lambda: box.remove("/proc"), sbxd.Busy, OSError),
            (lambda: box.list_dir("/proc/1/map_files"), sbxd.PermissionDenied, PermissionError),
            (lambda: box.run(["/no/such"]), sbxd.ExecutionFailed, sbxd.ApiError),
            (lambda: box.run("true", env={"A B": "c"}), sbxd.InvalidArgument, ValueError),
            (lambda: box.run(["true", "x" * 200000]), sbxd.TooLarge, OSError),
            (lambda: self.acquire(image="no/such:image"), sbxd.SpecMismatch, sbxd.InvalidState),
            (lambda: self.acquire(thread="other", image="no/such:image"), sbxd.ImagePullFailed, sbxd.ApiError),
        ]
        for call, kind, builtin in expected:
            with self.subTest(kind), self.assertRaises(kind) as caught:
                call()
            e = caught.exception
            self.assertIs(type(e), kind)
            self.assertIsInstance(e, builtin)
            self.assertTrue(e.reason and e.message and e.request_id and str(e).endswith(f"({e.reason})"), repr(e))
        self.assertEqual(caught.exception.status, 422)

    def test_seeds_that_are_alike(self):
        with self.acquire("a:b", "c"), self.assertRaises(sbxd.IdentityCollision):
            self.acquire("a", "b:c")

    def test_a_call_to_what_is_not_there(self):
        box = self.acquire()
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box.id}?force=1").status, 204)
        for call in (lambda: box.read("/etc/hostname"), lambda: box.run("true")):
            with self.assertRaises(sbxd.BoxNotFound) as caught:
                call()
            self.assertNotIsInstance(caught.exception, OSError)


class Capacity(DaemonTest):
    config = "replicas: 1\nreplica_policy: reject\n"

    def test_it_says_when_to_try_again(self):
        with sbxd.Client(self.d.socket) as client, sbxd.Sandbox.acquire("py", "1", client=client):
            with self.assertRaises(sbxd.CapacityExceeded) as caught:
                sbxd.Sandbox.acquire("py", "2", client=client)
        e = caught.exception
        self.assertGreater(e.retry_after, 0)
        self.assertEqual((e.status, e.details["active"], e.details["replicas"]), (429, 1, 1))
        self.assertIsInstance(e, sbxd.ResourceExhausted)


class Reasons(unittest.TestCase):
    def test_all_that_are_documented(self):
        errors = contract.Contract().errors
        self.assertEqual(set(_errors.BY_REASON), set(errors))
        self.assertEqual(len(set(_errors.BY_REASON.values())), len(errors))
        for reason, (status, kind, code) in errors.items():
            e = _errors.from_members(
                status, {"message": "m", "reason": reason, "type": kind, "code": code, "retry_after_seconds": 2}
            )
            back = pickle.loads(pickle.dumps(e))
            self.assertEqual(
                (type(back), back.reason, back.status, back.code, back.retry_after, str(back)),
                (type(e), reason, status, code, 2, f"m ({reason})"),
            )
            if isinstance(e, OSError):
                self.assertIsNotNone(e.errno, reason)

    def test_one_that_nobody_knows(self):
        e = _errors.from_answer(499, b'{"error":{"message":"m","reason":"later"}}')
        self.assertEqual((type(e), e.reason, e.status), (sbxd.ApiError, "later", 499))
        for body in (b"", b"[]", b'{"error":7}', b"<html>"):
            self.assertIsInstance(_errors.from_answer(500, body), sbxd.BadAnswer)

    def test_they_are_all_exported(self):
        source = open(_errors.__file__, encoding="utf-8")
        with source:
            names = re.findall(r"^class (\w+)", source.read(), re.M)
        self.assertLessEqual(set(names), set(sbxd.__all__))
