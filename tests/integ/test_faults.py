"""Processes that die, hang or lie: what the others see, and that nothing is left."""

import http.client
import json
import os
import shutil
import signal
import tempfile
import unittest

import backends
import harness
from harness import Census, Daemon, DaemonTest, Fault, descendants, in_threads, open_fds, proc_says, slurp, start_time, wait_for


def status_of(connection):
    """Status of the answer on a connection, or None when it ended without one."""
    try:
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return None


class WorkerDies(DaemonTest):
    config = "replicas: 50\n"

    def start_sleep(self, box, n):
        c = self.connect()
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": f"touch /tmp/started; sleep {n}"}))
        wait_for("the command to run", lambda: self.d.read(box, "/tmp/started").status == 200)
        return c

    def test_a_connection_between_requests_survives_the_worker(self):
        box = self.d.acquire("idle", "t")
        c = self.connect()
        self.assertEqual(self.d.post(f"/v1/boxes/{box['box_id']}/run", {"command": "true"}, connection=c).status, 200)
        worker = self.d.inspect(box["box_id"])["pid"]
        wait_for("the worker to wait for the next request", lambda: proc_says(worker, "stat", r"\) S "))
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(self.d.get("/v1/pool", connection=c).status, 200)

    def test_streams_of_a_dead_worker_end(self):
        box = self.d.acquire("stream", "t")
        c = self.connect()
        c.request("POST", f"/v1/boxes/{box['box_id']}/run", json.dumps({"command": "echo x; sleep 1000"}), {"Accept": "application/x-ndjson"})
        r = c.getresponse()
        r.readline()
        os.kill(self.d.inspect(box["box_id"])["pid"], signal.SIGKILL)
        with self.assertRaises((http.client.IncompleteRead, ConnectionError, ValueError)):
            rest = r.read()
            if b"exit_code" not in rest:
                raise ValueError("ended without a result")

    def test_guest_killed_from_inside(self):
        box = self.d.acquire("guest", "t")
        guest = self.d.inspect(box["box_id"])["box_pid"]
        c = self.start_sleep(box["box_id"], 1000)
        os.kill(guest, signal.SIGKILL)
        r = c.getresponse()
        self.assertEqual((r.status, json.loads(r.read())["error"]["reason"]), (410, "box_died"))
        self.assertEqual(self.d.acquire("guest", "t")["source"], "cold")
        self.d.release(box["box_id"])

    def test_many_workers_killed_at_once(self):
        boxes = in_threads(12, lambda i: self.d.acquire("many", f"t{i}"))
        before = self.d.pool()["counters"]["worker_crashes"]
        for b in boxes:
            os.kill(b["pid"], signal.SIGKILL)
        wait_for("all to be noticed", lambda: self.d.pool()["counters"]["worker_crashes"] == before + 12)
        again = in_threads(12, lambda i: self.d.acquire("many", f"t{i}"))
        self.assertTrue(all(b["source"] == "cold" for b in again), [b["source"] for b in again])
        for b in again:
            self.d.release(b["box_id"])


class BootDiesAlways(DaemonTest):
    config = "replicas: 50\n"
    env = {"SBX_FAULT": "worker.boot.locked=kill"}

    def test_the_client_is_told_after_a_few_tries(self):
        r = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "t"})
        self.assertEqual((r.status, r.reason), (502, "boot_failed"))
        self.assertLessEqual(self.d.pool()["counters"]["boots"], 3)
        wait_for("no box to be left", lambda: self.d.pool()["boxes"] == 0)


class GuestEndsAtOnce(unittest.TestCase):
    """As if each sbx-guest were killed before it has said a word."""

    def test_the_client_is_told_after_a_few_tries(self):
        real = harness.BUILD
        with tempfile.TemporaryDirectory(prefix="sbxd-test-build-") as build:
            for name in ("sbxd", "sbx-worker", "sbx-files", "sbxctl"):
                shutil.copy(f"{real}/{name}", build)
            shutil.copy("/bin/true", f"{build}/sbx-guest")
            os.chmod(build, 0o755)
            harness.BUILD = build
            try:
                d = Daemon("replicas: 4\n")
            finally:
                harness.BUILD = real
            r = d.post("/v1/acquire", {"user_id": "u", "thread_id": "t"})
            self.assertEqual((r.status, r.reason), (502, "boot_failed"))
            # The kernel of a machine says why: that comes of what it is made of, and is not tried again.
            said, boots = ("Kernel panic", 1) if backends.current.own_kernel else ("the guest agent ended", 3)
            self.assertIn(said, r.json["error"]["message"])
            self.assertEqual(d.pool()["counters"]["boots"], boots)
            wait_for("no box to be left", lambda: d.pool()["boxes"] == 0)
            self.assertEqual((d.stop(), d.remains()), (0, []))
            d.remove()


class BootHangs(DaemonTest):
    """One box's boot hangs: nobody else notices."""

    fault = Fault("hang")
    config = f"replicas: 50\nboot_timeout: {2 * backends.current.patience}\nmax_concurrent_boots: 2\n"
    env = {"SBX_FAULT": f"worker.boot.locked=hang@{fault.path}"}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.fault.remove()

    def test_another_scope_is_served_meanwhile(self):
        self.fault.arm()
        c = self.connect()
        c.request("POST", "/v1/acquire", json.dumps({"user_id": "hang", "thread_id": "t"}))
        wait_for("the boot to hang", self.fault.hit)
        box = self.d.acquire("other", "t")
        self.assertEqual(self.d.sh(box["box_id"], "echo served"), "served\n")
        self.assertEqual(self.d.pool()["booting"], 1, "the other one still hangs")
        r = c.getresponse()
        self.assertEqual((r.status, json.loads(r.read())["error"]["reason"]), (502, "boot_failed"))
        self.assertEqual(self.d.acquire("hang", "t")["source"], "cold", "the next acquire succeeds")
        self.d.release(box["box_id"])


class HungGuest(DaemonTest):
    config = "replicas: 50\nhealth_check_timeout: 0.5\n"

    def test_a_box_that_does_not_answer_its_health_check_is_replaced(self):
        box = self.d.acquire("hung", "t")
        self.d.release(box["box_id"])
        guest = self.d.inspect(box["box_id"])["box_pid"]
        os.kill(guest, signal.SIGSTOP)
        again = self.d.acquire("hung", "t")
        self.assertEqual(again["source"], "cold")
        self.assertIsNone(start_time(guest))
        self.d.release(again["box_id"])

    def test_a_stopped_worker_is_replaced(self):
        box = self.d.acquire("stopped", "t")
        self.d.release(box["box_id"])
        worker = self.d.inspect(box["box_id"])["pid"]
        os.kill(worker, signal.SIGSTOP)
        again = self.d.acquire("stopped", "t")
        self.assertEqual(again["source"], "cold")
        self.assertIsNone(start_time(worker))
        self.d.release(again["box_id"])


class HungInUse(DaemonTest):
    """Clients that wait for a worker or a guest that hangs get an answer within a few health_check_timeouts."""

    config = "replicas: 50\nhealth_check_timeout: 0.3\n"

    def hang(self, which, reason):
        box = self.d.acquire("inuse", which)
        c = self.connect()
        c.request("POST", f"/v1/boxes/{box['box_id']}/run", json.dumps({"command": "touch /tmp/up; sleep 1000"}))
        wait_for("the command", lambda: self.d.read(box["box_id"], "/tmp/up").status == 200)
        pid = self.d.inspect(box["box_id"])[which]
        os.kill(pid, signal.SIGSTOP)
        r = c.getresponse()
        self.assertEqual((r.status, json.loads(r.read())["error"]["reason"]), (410, reason))
        self.assertIsNone(wait_for("its end", lambda: start_time(pid) is None) and None)
        self.assertEqual(self.d.acquire("inuse", which)["source"], "cold")
        self.d.release(box["box_id"])

    def test_a_stopped_worker(self):
        self.hang("pid", "worker_crashed")

    def test_a_stopped_guest(self):
        self.hang("box_pid", "box_died")


class JanitorDies(DaemonTest):
    config = "replicas: 50\n"

    def janitor(self):
        for pid in descendants(self.d.process.pid):
            if b"janitor" in slurp(f"/proc/{pid}/cmdline", "rb"):
                return pid
        return None

    def test_it_is_replaced_and_boxes_are_still_cleaned_up(self):
        for i in range(3):
            box = self.d.acquire("jan", str(i))
            old = wait_for("the janitor", self.janitor)
            os.kill(old, signal.SIGKILL)
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)
            self.assertNotEqual(wait_for("the janitor", self.janitor), old)


class Shutdown(unittest.TestCase):
    def test_it_closes_everything_and_answers_who_waits(self):
        d = Daemon("replicas: 50\n")
        census = Census()
        try:
            boxes = in_threads(6, lambda i: d.acquire("sd", str(i)))
            c = d.connect()
            self.addCleanup(c.close)
            c.request("POST", f"/v1/boxes/{boxes[0]['box_id']}/run", json.dumps({"command": "touch /tmp/s; sleep 1000"}))
            wait_for("the command", lambda: d.read(boxes[0]["box_id"], "/tmp/s").status == 200)
            census.add(d.process.pid)
            r = d.post("/v1/shutdown")
            self.assertEqual((r.status, r.json), (200, {"status": "closed"}))
            self.assertEqual(status_of(c), 410)
            self.assertEqual(d.process.wait(30), 0)
            self.assertEqual(census.alive(), [])
            self.assertEqual(d.remains(), [])
        finally:
            d.kill()
            d.remove()

    def test_sigterm_twice_is_once(self):
        d = Daemon()
        try:
            d.acquire("tw", "t")
            d.process.send_signal(signal.SIGTERM)
            d.process.send_signal(signal.SIGTERM)
            self.assertEqual(d.process.wait(30), 0)
            self.assertEqual(d.remains(), [])
        finally:
            d.kill()
            d.remove()


class NothingLeaks(DaemonTest):
    config = "replicas: 4\n"

    def test_row_16_descriptors_are_back_after_the_work(self):
        def round_trip(i):
            box = self.d.acquire("leak", str(i % 8))
            self.d.sh(box["box_id"], "echo x")
            self.d.write(box["box_id"], "/tmp/x", b"x" * 10000)
            self.d.read(box["box_id"], "/tmp/x")
            self.d.get("/nothing")
            self.d.release(box["box_id"], box["lease_id"])

        def clean():
            for b in self.d.get("/v1/boxes").json["boxes"]:
                self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

        round_trip(0)
        clean()
        wait_for("no box", lambda: self.d.pool()["boxes"] == 0)
        pid = self.d.process.pid
        before = wait_for("quiet", lambda: len(open_fds(pid)) if self.d.pool()["clients"] == 1 else None)
        for i in range(40):
            round_trip(i)
        in_threads(16, round_trip)
        clean()
        wait_for("no box", lambda: self.d.pool()["boxes"] == 0)
        # The first count may hold a connection that was about to be closed.
        wait_for(f"{before} descriptors", lambda: len(open_fds(pid)) <= before)


if __name__ == "__main__":
    unittest.main()
