"""A box whose machine outlives its worker (boxlite.detach) is saved: another worker takes it over, with its files, without what
ran in it, and in its scope alone. What cannot be saved goes as any other, and who waits gets a new one."""

import contextlib
import http.client
import os
import signal
import threading
import unittest

from boxlite import BoxliteTest
from harness import BOUND, Fault, start_time, wait_for

POINTS = ("sbxd.booted", "sbxd.left")
FAULTS = {p: Fault(f"saved-{p}") for p in POINTS}


class Saved:
    """A daemon that serves, on this host or with a server."""

    options = {"detach": "true"}
    more = "replicas: 20\nboot_timeout: 10\nacquire_timeout: 60\nhealth_check_timeout: 2\n"
    env = {"SBX_FAULT": ",".join(f"sbxd/{p}=kill@{f.path}" for p, f in FAULTS.items())}

    def setUp(self):
        self.box = self.d.acquire("saved", self.id())["box_id"]
        self.d.write(self.box, "/root/mine", b"kept")
        self.shims = self.library.processes("shim")
        self.generation = self.d.inspect(self.box)["generation"]

    def tearDown(self):
        self.library.tell()
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")
        wait_for("all traces to be gone", lambda: not self.d.traces())
        wait_for("all processes to be gone", lambda: not self.library.processes())

    def kill_worker(self):
        pid = self.d.inspect(self.box)["pid"]
        os.kill(pid, signal.SIGKILL)
        self.await_end(pid)

    def await_end(self, pid):
        """Of a worker, and until sbxd knows of it: an acquire before that would get the old box."""
        wait_for("the worker to be gone", lambda: not start_time(pid))
        wait_for("sbxd to see it", lambda: self.d.inspect(self.box).get("pid") != pid)

    def kill_all(self):
        """sbxd first: nobody sees the worker's end."""
        worker, program = self.d.inspect(self.box)["pid"], self.d.program(self.box)
        self.d.kill()
        os.kill(worker, signal.SIGKILL)
        wait_for("worker and sbx-boxlite to be gone", lambda: not start_time(worker) and not start_time(program))

    def again(self):
        """The scope's next box, as whoever lost it asks."""
        got = self.d.acquire("saved", self.id())
        self.assertEqual(got["box_id"], self.box)
        return got

    def is_the_same(self):
        got = self.again()
        self.assertEqual(got["source"], "warm")
        self.assertEqual(self.d.read(self.box, "/root/mine").body, b"kept")
        self.assertEqual(self.d.sh(self.box, "echo well"), "well\n")
        self.assertEqual(self.library.processes("shim"), self.shims, "it was booted again")
        self.assertGreater(self.d.inspect(self.box)["generation"], self.generation)
        self.generation = self.d.inspect(self.box)["generation"]
        self.assertEqual(len(self.d.get("/v1/boxes").json["boxes"]), 1)

    def is_another(self):
        self.assertEqual(self.again()["source"], "cold")
        self.assertEqual(self.d.sh(self.box, "test -e /root/mine || echo new"), "new\n")
        wait_for("the old one to be gone", lambda: not set(self.shims) & set(self.library.processes("shim")))

    def test_a_worker_dies(self):
        self.kill_worker()
        self.is_the_same()

    def test_sbx_boxlite_dies(self):
        """Only what drives the box: its worker says so, and goes."""
        worker, program = self.d.inspect(self.box)["pid"], self.d.program(self.box)
        os.kill(program, signal.SIGKILL)
        self.await_end(worker)
        self.is_the_same()

    def test_all_but_the_box_die(self):
        """One after the other, while nobody supervises."""
        worker, program = self.d.inspect(self.box)["pid"], self.d.program(self.box)
        self.d.kill()
        os.kill(program, signal.SIGKILL)
        wait_for("the worker to be gone", lambda: not start_time(worker))
        self.d.start()
        self.is_the_same()

    def sbxd_dies_at(self, point):
        """When it gets there."""
        self.assertEqual(self.d.process.wait(BOUND), -signal.SIGKILL)
        self.assertTrue(FAULTS[point].hit())

    def test_that_it_was_left_is_told_to_nobody(self):
        """sbxd knows that the box has died, and dies before it hears that the machine is there; its worker is gone, or is not."""
        for gone in (False, True):
            with self.subTest(gone=gone):
                worker, program = self.d.inspect(self.box)["pid"], self.d.program(self.box)
                FAULTS["sbxd.left"].arm()
                os.kill(program, signal.SIGKILL)
                self.sbxd_dies_at("sbxd.left")
                if gone:
                    wait_for("the worker to be gone", lambda: not start_time(worker))
                self.d.start()
                wait_for("the worker to be gone", lambda: not start_time(worker))
                self.is_the_same()

    def test_it_came_up_and_nobody_heard_it(self):
        """The successor hears what the dead sbxd did not: that the box outlives its worker."""
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{self.box}?force=true").status, 204)
        FAULTS["sbxd.booted"].arm()
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.d.acquire("saved", self.id())
        self.sbxd_dies_at("sbxd.booted")
        self.d.start()
        self.assertEqual(self.again()["source"], "warm")
        self.d.write(self.box, "/root/mine", b"kept")
        self.shims = self.library.processes("shim")
        self.generation = self.d.inspect(self.box)["generation"]
        self.kill_worker()
        self.is_the_same()

    def test_it_is_saved_before_anybody_asks(self):
        self.kill_worker()
        wait_for("the box to be warm", lambda: self.d.pool()["warm"] == 1)
        self.assertEqual(self.d.inspect(self.box)["leases"], 0)
        self.is_the_same()

    def test_who_has_lost_it_is_told(self):
        """Its lease and its processes are gone: the box of that generation is."""
        old = {"X-Box-Generation": str(self.generation)}
        self.kill_worker()
        self.is_the_same()
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"command": "true"}, headers=old)
        self.assertEqual((r.status, r.reason), (410, "stale_generation"))

    def test_warm_ones_too(self):
        self.d.release(self.box)
        self.kill_worker()
        self.is_the_same()

    def test_more_than_once(self):
        """As often as it is used in between."""
        for _ in range(4):
            self.kill_worker()
            self.is_the_same()

    def test_not_for_ever(self):
        """What nobody gets a lease of any more is not taken over again and again."""
        for _ in range(2):
            self.kill_worker()
            wait_for("the box to be warm", lambda: self.d.pool()["warm"] == 1)
        self.kill_worker()
        self.is_another()

    def test_what_ran_in_it_is_ended(self):
        """Its commands, and what they had left in the background."""
        self.d.sh(self.box, "(setsid sleep 4711 &) ; (setsid sh -c 'trap : TERM HUP; while :; do sleep 4712; done' &) ; true")
        wait_for("them to have begun", lambda: self.d.sh(self.box, "pgrep -fc 'sleep 471[12]'") == "3\n")
        answers = []
        client = threading.Thread(target=lambda: answers.append(
            self.d.post(f"/v1/boxes/{self.box}/run", {"command": "echo > /root/runs; exec sleep 4713"})))
        client.start()
        wait_for("the command to run", lambda: self.d.get(f"/v1/boxes/{self.box}/fs/stat?path=/root/runs").status == 200)
        self.kill_worker()
        client.join(60)
        self.assertEqual([(r.status, r.reason) for r in answers], [(410, "worker_crashed")])
        self.is_the_same()
        self.assertEqual(self.d.sh(self.box, "pgrep -f 'sleep 471[123]' || echo none"), "none\n")
        self.assertEqual(self.d.sh(self.box, "pgrep -c sbx-guest"), "2\n", "the agent, and what encodes for it")

    def test_nobody_elses(self):
        self.kill_worker()
        for user, thread in (("saved", "another"), ("other", self.id())):
            got = self.d.acquire(user, thread)
            self.assertEqual(got["source"], "cold")
            self.assertEqual(self.d.sh(got["box_id"], "test -e /root/mine || echo new"), "new\n")
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{got['box_id']}?force=true").status, 204)
        self.is_the_same()

    def test_all_die(self):
        self.kill_all()
        self.d.start()
        self.is_the_same()

    def test_all_die_and_it_was_warm(self):
        self.d.release(self.box)
        self.kill_all()
        self.d.start()
        wait_for("the box to be warm", lambda: self.d.pool()["warm"] == 1)
        self.is_the_same()

    def test_sbxd_dies_while_it_is_saved(self):
        """The new worker with it, or without it."""
        for with_worker in (False, True):
            with self.subTest(with_worker=with_worker):
                self.library.tell("get:late=3000")
                self.kill_worker()
                wait_for("a new worker", lambda: self.d.inspect(self.box)["pid"])
                worker = self.d.inspect(self.box)["pid"]
                self.d.kill()
                if with_worker:
                    os.kill(worker, signal.SIGKILL)
                self.library.tell()
                self.d.start()
                self.is_the_same()

    def test_a_new_worker_dies(self):
        self.library.tell(self.once("get:kill"))
        self.kill_worker()
        self.is_another()

    def once(self, knobs):
        path = f"{self.library.dir}/once"
        with open(path, "w", encoding="ascii") as f:
            f.write("1")
        return f"{knobs}@{path}"

    def test_it_cannot_be_had(self):
        """The library fails, says nothing, or lies; or the agent does not start."""
        for knobs in ("get:fail=Engine", "get:refuse=Storage", "get:lie", "get:stall", "info:fail=Portal", "exec:fail=Execution",
                      "exec:stall", "stdout:stall"):
            with self.subTest(knobs=knobs):
                self.library.tell(self.once(knobs))
                self.kill_worker()
                self.is_another()
                self.library.tell()
                self.setUp_again()

    def setUp_again(self):
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{self.box}?force=true").status, 204)
        self.setUp()

    def test_it_is_not_there_any_more(self):
        worker, program = self.d.inspect(self.box)["pid"], self.d.program(self.box)
        os.kill(worker, signal.SIGSTOP)
        os.kill(program, signal.SIGSTOP)
        for pid in self.shims:
            os.kill(pid, signal.SIGKILL)
        wait_for("the machine to be gone", lambda: not self.library.processes("shim"))
        os.kill(worker, signal.SIGKILL)
        self.await_end(worker)
        self.is_another()

    def test_it_is_removed_meanwhile(self):
        self.library.tell("get:late=3000")
        self.kill_worker()
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"command": "true"})
        self.assertEqual((r.status, r.reason), (410, "worker_crashed"))
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{self.box}?force=true").status, 204)
        wait_for("all traces to be gone", lambda: not self.d.traces())

    def test_another_image_is_asked_for_meanwhile(self):
        self.library.tell("get:late=1000")
        self.kill_worker()
        got = self.d.acquire("saved", self.id(), image="alpine:3")
        self.assertEqual(got["source"], "cold")
        self.assertEqual(self.d.sh(self.box, "test -e /root/mine || echo new"), "new\n")

    def test_another_driver_is_configured(self):
        """It can make nothing of the box, which is removed by the one that made it."""
        config = self.library.config(self.server, self.more, **self.options)
        self.kill_all()
        try:
            self.d.write_config(config.replace("driver: boxlite", "driver: namespace").replace("debian:12", "host"))
            self.d.start()
            self.is_another()
            self.assertEqual(self.d.inspect(self.box)["driver"], "namespace")
            wait_for("all traces to be gone", lambda: not self.d.traces())
        finally:
            self.d.stop()
            self.d.write_config(config)
            self.d.start()

    def test_detach_is_off_now(self):
        """What is there is taken over all the same; from then on it goes with its worker."""
        config = self.library.config(self.server, self.more, **self.options)
        self.kill_all()
        try:
            self.d.write_config(config.replace("detach: true", "detach: false"))
            self.d.start()
            self.is_the_same()
            self.kill_worker()
            self.is_another()
        finally:
            self.d.stop()
            self.d.write_config(config)
            self.d.start()

    def test_made_boxes_are_not(self):
        r = self.d.post("/v1/boxes", {})
        self.assertEqual(r.status, 201, r)
        made = r.json["box_id"]
        self.assertEqual(self.d.sh(made, "echo well"), "well\n")
        os.kill(self.d.inspect(made)["pid"], signal.SIGKILL)
        wait_for("it to be gone", lambda: self.d.get(f"/v1/boxes/{made}").status == 404)


class LocalSaved(Saved, BoxliteTest):
    pass


class RemoteSaved(Saved, BoxliteTest):
    server = True


if __name__ == "__main__":
    unittest.main()
