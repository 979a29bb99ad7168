"""Made boxes and a sbxd that dies or leaves: they are all there afterwards, as they were; what was half made is not."""

import contextlib
import http.client
import json
import signal
import unittest
import uuid

from harness import BOUND, IS_ROOT, Fault, wait_for
from test_boxes import DEAF, BoxesTest


class Restart(BoxesTest):
    config = "replicas: 50\nidle_timeout: 0.2\n"

    def crash(self):
        self.d.kill()
        self.d.start()

    def leave(self):
        self.assertEqual(self.d.stop(signal.SIGUSR2), 0)
        self.d.start()

    def generations(self):
        return {b["box_id"]: (b["name"], b["status"], b["generation"], b["leases"]) for b in self.d.get("/v1/boxes").json["boxes"]}

    def test_they_are_all_there_as_they_were(self):
        self.make("fresh")
        self.start(self.make("running")["box_id"])
        self.d.sh("running", "echo kept > /tmp/f; (setsid sleep 4713 >/dev/null 2>&1 &)")
        user = "1234" if IS_ROOT else "0"
        self.make(env={"A": "mine"}, user=user)
        stopped = self.make("stopped")["box_id"]
        self.d.write(stopped, "/tmp/f", b"of the stopped")
        self.stop(stopped)
        before = self.generations()
        self.assertEqual(len(before), 4)
        for again in (self.crash, self.leave, self.crash):
            again()
            self.assertEqual(self.generations(), before)
        self.assertEqual(self.d.sh("running", "cat /tmp/f; pgrep -fc '^sleep 4713'"), "kept\n1\n")
        anonymous = next(b for b, (name, *_) in before.items() if not name)
        self.assertEqual(self.d.sh(anonymous, "echo $A $(id -u)"), f"mine {user}\n")
        self.assertEqual(self.d.read("stopped", "/tmp/f").body, b"of the stopped")
        self.assertEqual(self.status("stopped"), "running")
        self.assertEqual(self.status("fresh"), "configured")
        self.assertEqual(self.create("fresh").status, 409)
        self.assertEqual(self.stop("running")["status"], "stopped")
        self.assertEqual(self.remove("fresh", force=False).status, 204)
        wait_for("time to show that nothing takes them", lambda: self.d.get(f"/v1/boxes/{self.idle()}").status == 404)
        self.assertEqual(len(self.generations()), 3)

    def idle(self):
        box = self.d.acquire("u", "idle")["box_id"]
        self.d.release(box)
        wait_for("its idle_timeout", lambda: self.d.get(f"/v1/boxes/{box}").status == 404)
        return box

    def test_a_stop_under_way_is_done(self):
        b = self.make("stops")["box_id"]
        deaf = self.busy(b, DEAF)
        wait_for("it to be deaf", lambda: self.d.read(b, "/tmp/deaf").status == 200)
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{b}/stop", json.dumps({"timeout_seconds": 1.5}))
        wait_for("the stop to begin", lambda: self.status(b) == "stopping")
        self.crash()
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            c.getresponse()
        c.close()
        self.assertIn(self.status(b), ("stopping", "stopped"))
        self.assertEqual(self.stop(b)["status"], "stopped")  # it joins
        self.assertEqual(deaf()["signal"], 9)
        self.assertEqual(self.d.run(b, "pgrep -c sleep")["stdout"], "0\n")

    def test_keys_are_forgotten_and_the_name_protects(self):
        key = str(uuid.uuid4())
        self.assertEqual(self.create("protected", key=key).status, 201)
        self.crash()
        r = self.create("protected", key=key)
        self.assertEqual((r.status, r.json["error"]["code"]), (409, "already_exists"))
        self.assertEqual(self.d.inspect("protected")["status"], "configured")


class CrashAt(BoxesTest):
    """sbxd dies at one step of what is asked of it."""

    points = ("sbxd.make.begun", "sbxd.spawn.ordered", "sbxd.booted", "sbxd.make.published", "sbxd.make.kept", "sbxd.make.answered", "sbxd.stop.published",
              "sbxd.stop.ordered", "sbxd.stopped", "sbxd.order.published", "sbxd.handover.used", "sbxd.close")
    faults = {p: Fault(f"boxes-{p}") for p in points}
    config = "replicas: 50\n"
    env = {"SBX_FAULT": ",".join(f"sbxd/{p}=kill@{f.path}" for p, f in faults.items())}

    def at(self, point, method, path, body=None):
        """Asks, and sbxd dies of it at that point; the next one serves."""
        self.faults[point].arm()
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.d.request(method, path, body)
        self.assertEqual(self.d.process.wait(BOUND), -signal.SIGKILL)
        self.assertTrue(self.faults[point].hit(), point)
        self.d.start()

    def test_what_is_half_made_leaves_nothing(self):
        for point in ("sbxd.make.begun", "sbxd.spawn.ordered", "sbxd.booted"):
            with self.subTest(point):
                self.at(point, "POST", "/v1/boxes", {"name": "half"})
                self.make("half")  # at once: nobody was told of the other
                wait_for("the other to go", lambda: self.d.pool()["boxes"] == 1)
                self.remove("half")

    def test_what_is_made_and_not_answered_is_there(self):
        for point in ("sbxd.make.published", "sbxd.make.kept", "sbxd.make.answered"):
            with self.subTest(point):
                self.at(point, "POST", "/v1/boxes", {"name": "whole"})
                self.assertEqual(self.create("whole").status, 409)
                self.assertEqual(self.d.sh("whole", "echo whole"), "whole\n")
                self.remove("whole")

    def test_orders(self):
        b = self.make("ordered")["box_id"]
        for point, what, states in (("sbxd.order.published", "start", ("running",)), ("sbxd.stop.published", "stop", ("stopping", "stopped")),
                                    ("sbxd.stop.ordered", "stop", ("stopping", "stopped")), ("sbxd.stopped", "stop", ("stopping", "stopped")),
                                    ("sbxd.order.published", "stop", ("stopped",))):
            with self.subTest(f"{point} {what}"):
                if what == "stop":
                    self.d.sh(b, "(setsid sleep 4714 >/dev/null 2>&1 &)")
                self.at(point, "POST", f"/v1/boxes/{b}/{what}")
                self.assertIn(self.status(b), states)
                if what == "stop":
                    wait_for("the stop", lambda: self.status(b) == "stopped")
                    self.assertEqual(self.d.run(b, "pgrep -c sleep")["stdout"], "0\n")
        self.assertEqual(len(self.d.get("/v1/boxes").json["boxes"]), 1)

    def test_use(self):
        b = self.make("used")["box_id"]
        self.at("sbxd.handover.used", "POST", f"/v1/boxes/{b}/run", {"command": "true"})
        self.assertEqual(self.status(b), "running")

    def test_a_removal(self):
        """Either it is there, whole, or it is gone: in neither case is its name taken for nothing."""
        b = self.make("removed")["box_id"]
        self.at("sbxd.close", "DELETE", f"/v1/boxes/{b}?force=true")
        if self.d.get(f"/v1/boxes/{b}").json.get("status") == "configured":
            self.assertEqual(self.d.sh(b, "echo whole"), "whole\n")
            self.assertEqual(self.remove(b).status, 204)
        wait_for("it to be gone", lambda: self.d.get(f"/v1/boxes/{b}").status == 404)
        self.make("removed")


if __name__ == "__main__":
    unittest.main()
