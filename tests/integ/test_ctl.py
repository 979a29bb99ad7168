"""sbxctl against a live service: what it prints, and its exit status."""

import json
import os
import signal
import subprocess
import unittest

from harness import BUILD, ROOT, Daemon, DaemonTest, slurp, wait_for


class Ctl(DaemonTest):
    config = "replicas: 50\n"

    def ctl(self, *args, status=0, **kw):
        r = self.d.ctl("--instance", self.d.instance, *args, **kw)
        self.assertEqual(r.returncode, status, f"{args}: {r}")
        return r

    def data(self, *args):
        return json.loads(self.ctl("--json", *args).stdout)

    def test_token_passes_every_vector(self):
        cases = json.loads(slurp(f"{ROOT}/tests/data/scope_token.json"))["cases"]
        self.assertGreater(len(cases), 10)
        for case in cases:
            args = ["--no-user", case["thread_id"]] if case["user_id"] is None else [case["user_id"], case["thread_id"]]
            r = subprocess.run([f"{BUILD}/sbxctl", "token", *args], capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stdout.strip()), (0, case["token"]), case["note"])

    def test_run(self):
        r = self.ctl("run", "-u", "cli", "-t", "run", "--", "sh", "-c", "echo out; echo err >&2; exit 3", status=3)
        self.assertEqual((r.stdout, r.stderr), (b"out\n", b"err\n"))
        self.assertEqual(self.ctl("run", "-u", "cli", "-t", "run", "-e", "A=b c", "-w", "/tmp", "--", "sh", "-c", "echo $A; pwd").stdout, b"b c\n/tmp\n")
        self.assertEqual(self.ctl("run", "-u", "cli", "-t", "run", "-i", "--", "cat", input=bytes(range(256))).stdout, bytes(range(256)))
        self.ctl("run", "-u", "cli", "-t", "run", "--", "sh", "-c", "kill -9 $$", status=128 + 9)
        self.ctl("run", "-u", "cli", "-t", "run", "--timeout", "0.2", "--", "sleep", "100", status=124)
        self.ctl("run", "-u", "cli", "-t", "run", "--", "no-such-program", status=125)
        self.ctl("run", "--no-such-option", status=2)
        self.ctl("no-such-command", status=2)
        boxes = [b for b in self.d.get("/v1/boxes").json["boxes"] if b["thread_id"] == "run"]
        self.assertEqual([b["leases"] for b in boxes], [0], "released")

    def test_acquire_exec_release_ps_inspect_rm(self):
        box = self.data("acquire", "-u", "cli", "-t", "life")["box_id"]
        self.assertEqual(self.ctl("exec", box, "--", "echo", "hello").stdout, b"hello\n")
        self.assertEqual(self.ctl("acquire", "-u", "cli", "-t", "life").stdout.split()[0].decode(), box)
        text = self.ctl("ps").stdout.decode()
        self.assertIn(box, text)
        self.assertIn("active", text)
        self.assertIn(box, json.dumps(self.data("ps")))
        self.assertEqual(self.data("inspect", box)["leases"], 2)
        self.ctl("release", box)
        self.assertEqual(self.data("inspect", box)["state"], "warm")
        self.ctl("rm", box)
        self.ctl("inspect", box, status=125)
        self.ctl("exec", box, "--", "true", status=125)

    def test_pool_and_shm_dump(self):
        self.d.acquire("cli", "dump")
        self.assertEqual(self.data("pool")["driver"], "namespace")
        self.assertIn("replicas", self.ctl("pool").stdout.decode())
        dump = self.ctl("shm", "dump").stdout.decode()
        self.assertIn(self.d.instance, dump)
        self.data("shm", "dump")

    def test_common_options_stand_before_or_after_the_command(self):
        a, b = self.data("shm", "dump"), json.loads(self.d.ctl("shm", "dump", "--json", f"--instance={self.d.instance}").stdout)
        self.assertEqual(a.keys(), b.keys())
        self.assertEqual(self.d.ctl("pool", "--json").returncode, 0)

    def test_doctor(self):
        r = self.d.ctl("doctor", "--instance", self.d.instance)
        self.assertIn(r.returncode, (0, 1))
        self.assertIn(b"user namespaces", r.stdout.lower() + r.stderr.lower())

    def test_without_a_service(self):
        r = subprocess.run([f"{BUILD}/sbxctl", "pool"], capture_output=True, env={**os.environ, "SBXD_SOCKET": "/nonexistent/sock"})
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"/nonexistent/sock", r.stderr)

    def test_an_interrupted_run_gives_its_box_back(self):
        env = {**os.environ, "SBXD_SOCKET": self.d.socket}
        p = subprocess.Popen([f"{BUILD}/sbxctl", "run", "-u", "cli", "-t", "int", "--", "sh", "-c", "touch /tmp/up; sleep 1000"], env=env)
        token = self.ctl("token", "cli", "int").stdout.decode().strip()
        wait_for("the command", lambda: self.d.read(token, "/tmp/up").status == 200)
        p.send_signal(signal.SIGINT)
        self.assertNotEqual(p.wait(30), 0)
        wait_for("the box to be parked", lambda: self.d.inspect(token)["state"] == "warm")


class CtlShutdown(unittest.TestCase):
    def test_shutdown(self):
        d = Daemon()
        try:
            d.acquire("a", "b")
            r = d.ctl("shutdown")
            self.assertEqual(r.returncode, 0, r)
            self.assertEqual(d.process.wait(30), 0)
            self.assertEqual(d.remains(), [])
        finally:
            d.kill()
            d.remove()

    def test_shm_dump_of_a_dead_daemon(self):
        d = Daemon("orphan_grace: 1\n")
        try:
            d.acquire("dead", "t")
            d.kill()
            r = d.ctl("shm", "dump", "--instance", d.instance)
            self.assertEqual(r.returncode, 0, r)
            self.assertIn(b"dead", r.stdout)
            d.start()
            self.assertEqual(d.stop(), 0)
            self.assertEqual(d.remains(), [])
        finally:
            d.kill()
            d.remove()


if __name__ == "__main__":
    unittest.main()
