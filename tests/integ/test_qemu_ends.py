"""Micro-VMs that end or hang while something is under way: who waits is told within a bound, the next acquire works.

QEMU is killed, or stops; it does not answer its monitor while the machine runs on; the guest's kernel panics; its first process
hangs. Each in each of the ways in which a box can be in use, while it stands still, and while it is removed.
"""

import contextlib
import http.client
import json
import os
import signal
import time
import unittest

import micro_vm
from harness import BOUND, Daemon, DaemonTest, start_time, wait_for
from test_qemu import qemus
from test_qemu_faults import HANG_INIT
from held_thread import Stopped
from ws import Attached

CHECK = 2  # seconds that a health check may take
HUNG = 6 * CHECK  # after which a guest that says nothing is given up
SLACK = BOUND  # for a busy host
BEGUN = "touch /tmp/begun; echo begun; sleep 1000"


class EndsTest(DaemonTest):
    config = micro_vm.config("replicas: 4\n").replace("health_check_timeout: 20", f"health_check_timeout: {CHECK}")

    @classmethod
    def setUpClass(cls):
        """The template is there before anything is timed."""
        super().setUpClass()
        r = cls.d.post("/v1/acquire", {"user_id": "u", "thread_id": "first"}, timeout=BOUND * 4)
        assert r.status == 200, r
        assert cls.d.request("DELETE", f"/v1/boxes/{r.json['box_id']}?force=true").status == 204
        wait_for("it to be gone", lambda: not qemus(cls.d))

    def setUp(self):
        self.ends = contextlib.ExitStack()
        self.addCleanup(self.ends.close)
        self.thread = self.id().rsplit(".", 1)[1]
        self.made = self.d.acquire("u", self.thread)
        self.box = self.made["box_id"]
        self.vm = self.d.inspect(self.box)["box_pid"]
        self.assertEqual(qemus(self.d), [self.vm])

    def tearDown(self):
        """Whatever became of it: nothing of it is left, and its scope has another box."""
        new = self.d.acquire("u", self.thread)
        wait_for("its QEMU to be gone", lambda: start_time(self.vm) is None)
        self.assertEqual((new["source"], new["box_id"]), ("cold", self.box))
        self.assertGreater(new["generation"], self.made["generation"])
        self.assertEqual(self.d.sh(self.box, "echo up"), "up\n")
        self.remove()
        wait_for("nothing to be left", lambda: not qemus(self.d) and self.d.pool()["boxes"] == 0)

    def remove(self):
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{self.box}?force=true").status, 204)

    # ---- what can happen to it ----

    def kill(self):
        os.kill(self.vm, signal.SIGKILL)

    def stop(self):
        os.kill(self.vm, signal.SIGSTOP)

    def stop_monitor(self):
        """The thread of QEMU that has its monitor and all its devices; processors run on."""
        self.ends.enter_context(Stopped(self.vm))

    def from_within(self, command):
        """Nobody waits for its answer."""
        c = self.connect()
        c.request("POST", f"/v1/boxes/{self.box}/run", json.dumps({"command": command}))

    def panic(self):
        self.from_within("echo c > /proc/sysrq-trigger")

    def hang_init(self):
        self.from_within(HANG_INIT)

    # ---- ways to wait for it ----

    def begin(self, headers=None):
        c = self.connect()
        c.request("POST", f"/v1/boxes/{self.box}/run", json.dumps({"command": BEGUN}), headers or {})
        wait_for("the command to run", lambda: self.d.read(self.box, "/tmp/begun").status == 200)
        return c

    def told(self, reply):
        self.assertEqual((reply.status, json.loads(reply.read())["error"]["reason"]), (410, "box_died"))

    def while_it_is_waited_for_in_all_ways(self, end, bound):
        run = self.begin()
        streamed = self.begin({"Accept": "application/x-ndjson"}).getresponse()
        self.assertIn(b"begun", streamed.readline())
        execution = self.d.post(f"/v1/boxes/{self.box}/exec", {"command": "cat", "args": []})
        attached = Attached(self.d, self.box, execution.json["execution_id"])
        self.addCleanup(attached.close)
        attached.write(b"there\n")
        attached.until_out(b"there\n")
        upload = self.connect()
        upload.putrequest("PUT", f"/v1/boxes/{self.box}/fs/write?path=/tmp/upload")
        upload.putheader("Content-Length", "2000000")
        upload.endheaders()
        upload.send(b"x" * 1000)
        began = time.monotonic()
        end()
        attached.until(lambda: attached.exit)  # first: it must answer pings
        self.assertEqual((attached.exit["status"], attached.exit["error_message"]), ("killed", "the box died"))
        self.told(run.getresponse())
        self.told(upload.getresponse())
        with self.assertRaises((http.client.IncompleteRead, ConnectionError, ValueError)):
            if b"exit_code" not in streamed.read():
                raise ValueError("ended without a result")
        self.assertLess(time.monotonic() - began, bound + SLACK)
        wait_for("the box to be gone", lambda: self.d.get(f"/v1/boxes/{self.box}").status == 404)


@micro_vm.needs_vm
class InUse(EndsTest):
    def test_qemu_is_killed(self):
        self.while_it_is_waited_for_in_all_ways(self.kill, 0)

    def test_qemu_stops(self):
        self.while_it_is_waited_for_in_all_ways(self.stop, HUNG)

    def test_qemu_does_not_answer_while_the_machine_runs_on(self):
        self.while_it_is_waited_for_in_all_ways(self.stop_monitor, HUNG)

    def test_the_guests_kernel_panics(self):
        self.while_it_is_waited_for_in_all_ways(self.panic, 0)

    def test_the_guests_first_process_hangs(self):
        self.while_it_is_waited_for_in_all_ways(self.hang_init, HUNG)


@micro_vm.needs_vm
class Parked(EndsTest):
    """Just now, or for a while: the same must come of it when tearDown() acquires it."""

    def test_qemu_is_killed(self):
        self.d.release(self.box)
        self.kill()

    def test_qemu_stops(self):
        self.d.release(self.box)
        self.stop()

    def test_qemu_does_not_answer_when_it_is_to_stand_still(self):
        self.stop_monitor()
        self.d.release(self.box)
        wait_for("it to be given up", lambda: self.d.get(f"/v1/boxes/{self.box}").status == 404)
        self.assertIn("the box cannot be paused", self.d.log())

    def test_qemu_does_not_answer_when_it_is_to_go_on(self):
        self.d.release(self.box)
        self.stop_monitor()


@micro_vm.needs_vm
class Removed(EndsTest):
    """Whoever removes a box that hangs does not wait for it for ever."""

    def test_qemu_stops(self):
        self.stop()
        self.remove()

    def test_qemu_does_not_answer(self):
        self.stop_monitor()
        self.remove()

    def test_the_guests_first_process_hangs(self):
        self.begin()
        self.hang_init()
        self.remove()


@micro_vm.needs_vm
class Shutdown(unittest.TestCase):
    def test_a_box_that_hangs_does_not_keep_sbxd(self):
        d = Daemon(EndsTest.config)
        try:
            for thread in ("stopped", "parked"):
                box = d.acquire("u", thread)["box_id"]
                if thread == "parked":
                    d.release(box)
                os.kill(d.inspect(box)["box_pid"], signal.SIGSTOP)
        finally:
            self.assertEqual(d.stop(), 0)
            left = d.remains()
            d.remove()
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
