"""A box of BoxLite's that cannot have sbx-guest: its own shell serves, behind the same interface, and it says so.

The library is the double, told to refuse copies. Each test of files is one that the agent's own files have, too.
"""

import os
import shutil
import tempfile
import time
import unittest

from harness import BUILD, DaemonTest, wait_for

FAKE = f"{BUILD}/fake_boxlite"


class ShellServed(DaemonTest):
    env = {"SBX_TEST_KVM": "/dev/null"}

    @classmethod
    def setUpClass(cls):
        cls.library = tempfile.mkdtemp(prefix="sbxd-test-library-")
        os.chmod(cls.library, 0o755)
        shutil.copy(f"{FAKE}/standard/libboxlite.so", cls.library)
        shutil.copy(f"{FAKE}/fake-boxlite-shim", cls.library)
        with open(f"{cls.library}/control", "w", encoding="utf-8") as f:
            f.write("copy_into:fail=Unsupported\n")
        cls.config = f"driver: boxlite\nimage: debian:12\nboxlite: {{library: {cls.library}/libboxlite.so}}\n"
        super().setUpClass()
        cls.box = cls.d.acquire("shell", "t")["box_id"]

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.library)

    def ask(self, method, what, body=None, **kw):
        return self.d.request(method, f"/v1/boxes/{self.box}/fs/{what}", body, **kw)

    def refused(self, reply, status, reason):
        self.assertEqual((reply.status, reply.reason), (status, reason), reply)

    def test_it_says_so(self):
        box = self.d.inspect(self.box)
        self.assertEqual((box["driver"], box["isolation"]), ("boxlite", "microvm-kvm/sh"))
        self.assertIn("the box's own shell serves instead", self.d.log())

    def test_commands(self):
        r = self.d.run(self.box, "echo out; echo err >&2; exit 3")
        self.assertEqual((r["exit_code"], r["stdout"], r["stderr"]), (3, "out\n", "err\n"))
        r = self.d.run(self.box, ["sh", "-c", "cat; echo $V; pwd"], stdin="in ", env={"V": "a = b"}, cwd="/usr")
        self.assertEqual((r["exit_code"], r["stdout"]), (0, "in a = b\n/usr\n"))
        self.assertEqual(self.d.run(self.box, "pwd")["stdout"], "/mnt/user-data/workspace\n")
        r = self.d.run(self.box, "kill -9 $$")
        self.assertEqual((r["exit_code"], r["signal"]), (None, 9))
        r = self.d.run(self.box, "cat")  # without input it ends at once
        self.assertEqual((r["exit_code"], r["stdout"]), (0, ""))

    def test_a_command_that_is_not_there(self):
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"argv": ["/no/such/program"]})
        self.assertIn(r.status, (200, 400, 422), r)
        if r.status == 200:  # the library may say so as a status
            self.assertNotEqual(r.json["exit_code"], 0)

    def test_much_output_and_input(self):
        n = 3 << 20
        r = self.d.run(self.box, f"head -c {n} /dev/zero | tr '\\0' x")
        self.assertEqual(len(r["stdout"]), n)
        r = self.d.run(self.box, "wc -c", stdin="y" * n)
        self.assertEqual(int(r["stdout"]), n)

    def test_a_timeout_ends_it(self):
        begun = time.monotonic()
        r = self.d.run(self.box, ["sleep", "1000"], timeout_seconds=0.3)
        self.assertTrue(r["timed_out"])
        self.assertLess(time.monotonic() - begun, 100)
        wait_for("sleep to be gone", lambda: self.d.run(self.box, "pgrep -x sleep | wc -l")["stdout"].strip() in ("0", "1"))
        self.assertEqual(self.d.run(self.box, "echo still")["stdout"], "still\n")

    def test_files_keep_their_bytes(self):
        data = os.urandom(1 << 20) + bytes(range(256))
        r = self.d.write(self.box, "/tmp/bytes", data)
        self.assertEqual((r.status, r.json["bytes"]), (200, len(data)), r)
        self.assertEqual(self.d.read(self.box, "/tmp/bytes").body, data)
        self.assertEqual(self.d.read(self.box, "/tmp/bytes&offset=1000&limit=77").body, data[1000:1077])
        self.assertEqual(self.d.write(self.box, "/tmp/bytes", b"more", "&append=1").status, 200)
        self.assertEqual(self.d.read(self.box, f"/tmp/bytes&offset={len(data)}").body, b"more")
        self.assertEqual(self.d.write(self.box, "/tmp/empty", b"").status, 200)
        self.assertEqual(self.d.read(self.box, "/tmp/empty").body, b"")

    def test_lines(self):
        self.d.write(self.box, "/tmp/lines", b"1\n2\n3\n4\n5")
        self.assertEqual(self.d.read(self.box, "/tmp/lines&start_line=2&end_line=3").body, b"2\n3\n")
        self.assertEqual(self.d.read(self.box, "/tmp/lines&start_line=4").body, b"4\n5")

    def test_modes(self):
        self.d.write(self.box, "/tmp/mode", b"x", "&mode=0600")
        stat = self.ask("GET", "stat?path=/tmp/mode").json
        self.assertEqual((stat["type"], stat["size"], stat["mode"]), ("file", 1, "0600"))
        self.d.write(self.box, "/tmp/mode", b"xy")  # keeps what it had
        self.assertEqual(self.ask("GET", "stat?path=/tmp/mode").json["mode"], "0600")

    def test_names(self):
        self.assertEqual(self.ask("POST", "mkdir", {"path": "/tmp/a b/c", "parents": True}).json["created"], True)
        self.assertEqual(self.ask("POST", "mkdir", {"path": "/tmp/a b/c", "parents": True}).json["created"], False)
        self.d.write(self.box, "/tmp/a%20b/'$(id)", b"q")
        r = self.ask("POST", "rename", {"from": "/tmp/a b/'$(id)", "to": "/tmp/a b/-n"})
        self.assertEqual(r.status, 200, r)
        self.assertEqual(self.d.read(self.box, "/tmp/a%20b/-n").body, b"q")
        self.assertEqual(self.d.run(self.box, ["ls", "-A", "/tmp/a b"])["stdout"], "-n\nc\n")

    def test_each_failure_has_its_name(self):
        self.refused(self.d.read(self.box, "/no/such"), 404, "not_found")
        self.refused(self.d.read(self.box, "/tmp"), 400, "is_directory")
        self.refused(self.d.write(self.box, "/no/such/dir/x", b""), 404, "not_found")
        self.refused(self.d.write(self.box, "/tmp", b""), 400, "is_directory")
        self.refused(self.ask("GET", "stat?path=/no/such"), 404, "not_found")
        self.refused(self.ask("POST", "mkdir", {"path": "/no/such/dir"}), 404, "not_found")

    def test_links(self):
        self.d.run(self.box, "ln -sf /tmp/target-of-it /tmp/link")
        stat = self.ask("GET", "stat?path=/tmp/link").json
        self.assertEqual(stat["type"], "symlink")

    def test_what_it_cannot_do_is_refused(self):
        r = self.ask("GET", "list?path=/tmp")
        self.assertNotEqual(r.status, 200)
        self.assertIn("sbx-files is not in this box", r.json["error"]["message"])

    def test_it_is_checked_and_stopped_as_any_other(self):
        made = self.d.acquire("shell", "other")
        self.assertEqual(self.d.release(made["box_id"]).json["status"], "warm")
        self.assertEqual(self.d.acquire("shell", "other")["source"], "warm")  # after a health check
        pid = self.d.inspect(made["box_id"])["pid"]
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{made['box_id']}?force=true").status, 204)
        wait_for("its worker to be gone", lambda: not os.path.exists(f"/proc/{pid}"))


if __name__ == "__main__":
    unittest.main()
