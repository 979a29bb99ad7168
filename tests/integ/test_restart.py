"""sbxd dies or leaves, and the next one goes on with its boxes, leases, connections and commands."""

import glob
import json
import os
import signal
import struct
import threading
import time
import unittest

import backends
from harness import BOUND, Daemon, DaemonTest, start_time, wait_for

COUNT = 20000 // backends.current.slow
COUNTING = f"i=0; while [ $i -lt {COUNT} ]; do echo line $i; i=$((i+1)); done"
WHOLE = "".join(f"line {i}\n" for i in range(COUNT))


class RestartTest(DaemonTest):
    def crash(self):
        """kill -9, and the next one at once."""
        self.d.kill()
        self.d.start()

    def leave(self):
        self.assertEqual(self.d.stop(signal.SIGUSR2), 0)
        self.d.start()

    def tearDown(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def generation(self, box):
        return self.d.inspect(box)["generation"]

    def events(self, kind):
        return [line for line in self.d.ctl("shm", "dump", "--instance", self.d.instance).stdout.decode().splitlines() if f" {kind} " in line]


class Crash(RestartTest):
    config = "replicas: 50\nhealth_check_skip_seconds: 600\n"

    def test_boxes_leases_and_files_live_on(self):
        boxes = [self.d.acquire("u", str(i)) for i in range(8)]
        for b in boxes:
            self.d.write(b["box_id"], "/tmp/mine", b["box_id"].encode())
        for b in boxes[4:]:
            self.d.release(b["box_id"], b["lease_id"])
        before = {b["box_id"]: self.generation(b["box_id"]) for b in boxes}
        self.crash()
        self.assertEqual({b: self.generation(b) for b in before}, before)
        states = [self.d.inspect(b["box_id"])["state"] for b in boxes]
        self.assertEqual(states, ["active"] * 4 + ["warm"] * 4)
        for b in boxes:
            self.assertEqual(self.d.read(b["box_id"], "/tmp/mine").body, b["box_id"].encode())
        for b in boxes[:4]:  # its lease is known: one more and one less
            again = self.d.acquire("u", str(boxes.index(b)))
            self.assertEqual(again["source"], "active")
            self.assertEqual(self.d.release(b["box_id"], b["lease_id"]).json["status"], "running")
            self.assertEqual(self.d.release(b["box_id"], again["lease_id"]).json["status"], "warm")

    def test_boxes_that_are_gone_are_known(self):
        box = self.d.acquire("u", "gone")
        self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true")
        self.crash()
        r = self.d.release(box["box_id"], box["lease_id"])
        self.assertEqual((r.status, r.json), (200, {"status": "closed"}))
        self.assertEqual(self.d.release("0" * 16).status, 404)

    def test_a_box_that_died_meanwhile_is_noticed(self):
        """Its worker lives, but is stopped: nobody else can say so."""
        box = self.d.acquire("u", "gone")["box_id"]
        spared = self.d.acquire("u", "spared")["box_id"]
        about = self.d.inspect(box)
        os.kill(about["pid"], signal.SIGSTOP)
        os.kill(about["box_pid"], signal.SIGKILL)
        wait_for("its end", lambda: not start_time(about["box_pid"]))
        self.crash()
        gone = "QEMU is gone" if backends.current.own_kernel else "no process in"
        self.assertRegex(self.d.log(), rf"box sbxd-{self.d.instance}-\d+-{about['generation']:x}: {gone}")
        self.assertIn("1 boxes of living workers are not there", self.d.log())
        os.kill(about["pid"], signal.SIGCONT)
        wait_for("the worker to say so", lambda: self.d.get(f"/v1/boxes/{box}").status == 404)
        self.assertEqual(self.d.acquire("u", "gone")["source"], "cold")
        self.assertEqual(self.d.sh(spared, "echo alive"), "alive\n")

    def test_an_adopted_warm_box_is_always_checked(self):
        box = self.d.acquire("u", "checked")["box_id"]
        self.d.release(box)
        before = self.d.pool()["counters"]["checks"]
        self.assertEqual(self.d.acquire("u", "checked")["source"], "warm")
        self.assertEqual(self.d.pool()["counters"]["checks"], before)  # parked just now: skipped
        self.d.release(box)
        self.crash()
        self.assertEqual(self.d.acquire("u", "checked")["source"], "warm")
        self.assertEqual(self.d.pool()["counters"]["checks"], before + 1)

    def test_a_streaming_command_loses_no_byte(self):
        box = self.d.acquire("u", "stream")["box_id"]
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": COUNTING}), {"Accept": "application/x-ndjson"})
        r = c.getresponse()
        lines = [json.loads(r.readline())]
        for _ in range(3):
            self.crash()
            lines += [json.loads(r.readline()) for _ in range(5)]
        lines += [json.loads(line) for line in r.read().splitlines()]
        self.assertEqual("".join(e.get("data", "") for e in lines), WHOLE)
        self.assertEqual(lines[-1]["exit_code"], 0)
        # The connection is whole: the worker has it, then the new sbxd, then the worker again.
        for _ in range(2):
            self.assertEqual(self.d.request("GET", "/v1/pool", connection=c).status, 200)
            self.assertEqual(self.d.request("GET", f"/v1/boxes/{box}/fs/read?path=/etc/hostname", connection=c).status, 200)
        c.close()

    def test_a_command_that_waits_is_answered(self):
        box = self.d.acquire("u", "wait")["box_id"]
        answer = []
        t = threading.Thread(target=lambda: answer.append(self.d.run(box, "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo done")))
        t.start()
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        self.crash()
        wait_for("it to be known", lambda: self.d.pool()["clients"] == 2)
        self.assertEqual(self.d.inspect(box)["in_flight"], 1)
        self.d.write(box, "/tmp/go", b"")
        t.join(BOUND)
        self.assertEqual(answer[0]["stdout"], "done\n")

    def test_who_waits_for_a_box_sees_the_end_of_its_connection(self):
        c = self.d.connect()
        box = self.d.acquire("u", "gone")["box_id"]
        os.kill(self.d.inspect(box)["pid"], signal.SIGSTOP)
        self.d.release(box)
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": "true"}))
        stopped = self.d.inspect(box)["pid"]
        self.crash()
        os.kill(stopped, signal.SIGCONT)
        # The worker had it, or the socket on the way to it: an answer or the end, and no box hangs on it.
        try:
            self.assertIn(c.getresponse().status, (200, 410))
        except (ConnectionError, OSError):
            pass
        c.close()
        self.assertEqual(self.d.sh(self.d.acquire("u", "gone")["box_id"], "echo ok"), "ok\n")

    def test_a_worker_that_dies_without_a_supervisor(self):
        box = self.d.acquire("u", "dies")["box_id"]
        worker = self.d.inspect(box)["pid"]
        self.d.kill()
        os.kill(worker, signal.SIGKILL)
        self.d.start()
        self.assertEqual(self.d.acquire("u", "dies")["source"], "cold")

    def test_a_worker_that_dies_after_it_was_adopted(self):
        box = self.d.acquire("u", "later")["box_id"]
        self.crash()
        reply = []
        t = threading.Thread(target=lambda: reply.append(self.d.post(f"/v1/boxes/{box}/run", {"command": "sleep 1000"})))
        t.start()
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        self.crash()
        wait_for("its client to be known", lambda: self.d.pool()["clients"] == 2)
        os.kill(self.d.inspect(box)["pid"], signal.SIGKILL)
        t.join(BOUND)
        self.assertEqual((reply[0].status, reply[0].reason), (410, "worker_crashed"))
        self.assertEqual(self.d.acquire("u", "later")["source"], "cold")

    def test_leases_end_as_they_would_have(self):
        timed = self.d.acquire("u", "timed", lease_seconds=1.5)["box_id"]
        forever = self.d.acquire("u", "forever")["box_id"]
        idle = self.d.connect()
        tied = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "tied", "release_on_disconnect": True}, connection=idle).json["box_id"]
        busy = self.d.connect()
        held = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "held", "release_on_disconnect": True}, connection=busy).json["box_id"]
        busy.request("POST", f"/v1/boxes/{held}/run", json.dumps({"command": "echo hi; sleep 1000"}), {"Accept": "application/x-ndjson"})
        busy.getresponse().readline()
        self.crash()
        wait_for("the lease of a connection that ended to end", lambda: self.d.inspect(tied)["state"] == "warm")
        wait_for("the other to run out", lambda: self.d.inspect(timed)["state"] == "warm")
        self.assertEqual([self.d.inspect(b)["state"] for b in (held, forever)], ["active", "active"])
        busy.close()
        wait_for("the lease of a connection that a worker had", lambda: self.d.inspect(held)["state"] == "warm")
        idle.close()

    def test_killed_again_and_again(self):
        boxes = [self.d.acquire("u", f"again{i}")["box_id"] for i in range(4)]
        before = [self.generation(b) for b in boxes]
        for i in range(10):
            self.d.kill()
            self.d.start(wait=False)
            time.sleep(0.004 * i)  # somewhere in its start
        self.crash()
        self.assertEqual([self.generation(b) for b in boxes], before)
        self.assertEqual([self.d.sh(b, "echo ok") for b in boxes], ["ok\n"] * 4)
        self.assertEqual(self.d.ctl("shm", "dump", "--instance", self.d.instance).returncode, 0)

    def test_the_flight_recorder_tells_of_it(self):
        self.d.acquire("u", "told")
        self.crash()
        wait_for("the adoption", lambda: self.events("adopt"))
        self.assertGreaterEqual(len(self.events("supervisor_start")), 2)

    def test_a_second_supervisor_is_refused(self):
        box = self.d.acquire("u", "second")["box_id"]
        first = self.d.process
        self.d.start(wait=False)
        self.assertEqual(self.d.process.wait(BOUND), 1)
        self.d.process = first
        self.assertIn("has a supervisor already", self.d.log())
        self.assertEqual(self.d.sh(box, "echo ok"), "ok\n")


class Leave(RestartTest):
    config = "replicas: 50\n"

    def test_an_upgrade_loses_no_box(self):
        box = self.d.acquire("u", "1")
        before = self.generation(box["box_id"])
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{box['box_id']}/run", json.dumps({"command": COUNTING}), {"Accept": "application/x-ndjson"})
        r = c.getresponse()
        first = r.readline()
        self.leave()
        self.assertEqual(self.generation(box["box_id"]), before)
        lines = [json.loads(line) for line in (first + r.read()).splitlines()]
        self.assertEqual("".join(e.get("data", "") for e in lines), WHOLE)
        self.assertEqual(self.d.release(box["box_id"], box["lease_id"]).json["status"], "warm")
        c.close()

    def test_who_waits_when_it_leaves_is_told(self):
        box = self.d.acquire("u", "waits")["box_id"]
        self.d.release(box)
        os.kill(self.d.inspect(box)["pid"], signal.SIGSTOP)
        worker = self.d.inspect(box)["pid"]
        replies = []
        t = threading.Thread(target=lambda: replies.append(self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "waits"})))
        t.start()
        wait_for("it to wait", lambda: self.d.pool()["waiters"] == 1)
        self.assertEqual(self.d.stop(signal.SIGUSR2), 0)
        t.join(BOUND)
        self.assertEqual((replies[0].status, replies[0].reason), (503, "shutting_down"))
        os.kill(worker, signal.SIGCONT)
        self.d.start()
        self.assertEqual(self.d.acquire("u", "waits")["source"], "warm")


class Orphans(unittest.TestCase):
    """What is to be found and cleaned up by name, and workers that nobody comes back for."""

    def daemon(self, config=""):
        d = Daemon(config)
        self.addCleanup(d.remove)
        self.addCleanup(d.kill)
        return d

    def end(self, d):
        self.assertEqual(d.stop(), 0)
        wait_for("nothing to remain", lambda: d.remains() == [])

    def test_workers_that_nobody_adopts_close_themselves(self):
        d = self.daemon("orphan_grace: 1\n")
        worker = d.inspect(d.acquire("u", "1")["box_id"])["pid"]
        born = start_time(worker)
        d.kill()
        wait_for("the worker to go", lambda: start_time(worker) != born)
        d.start()
        self.assertEqual(d.pool()["boxes"], 0)
        self.assertEqual(d.acquire("u", "1")["source"], "cold")
        self.end(d)

    def spoil(self, d, spoil):
        boxes = [d.acquire("u", str(i))["box_id"] for i in range(3)]
        workers = [(p, start_time(p)) for p in (d.inspect(b)["pid"] for b in boxes)]
        d.kill()
        path = glob.glob(f"/dev/shm/sbxd-*-{d.instance}")[0]
        with open(path, "r+b") as f:
            spoil(f)
        d.start()
        self.assertIn("made anew", d.log())
        wait_for("its workers to be ended", lambda: all(start_time(p) != t for p, t in workers))
        self.assertEqual(d.pool()["boxes"], 0)
        self.assertEqual([d.acquire("u", str(i))["source"] for i in range(3)], ["cold"] * 3)
        self.end(d)

    def test_a_truncated_segment(self):
        self.spoil(self.daemon(), lambda f: f.truncate(5000))

    def test_an_empty_segment(self):
        self.spoil(self.daemon(), lambda f: f.truncate(0))

    def test_a_segment_of_another_version(self):
        self.spoil(self.daemon(), lambda f: (f.seek(8), f.write(struct.pack("<I", 99))))

    def test_a_foreign_segment(self):
        self.spoil(self.daemon(), lambda f: f.write(os.urandom(4096)))

    def test_garbage_in_a_slot_costs_that_slot(self):
        d = self.daemon()
        box = d.acquire("u", "1")
        lost = d.acquire("u", "2")
        with open(f"/proc/{d.inspect(lost['box_id'])['pid']}/cmdline", encoding="ascii") as f:
            slot = int(f.read().split("\0")[2])
        d.kill()
        path = glob.glob(f"/dev/shm/sbxd-*-{d.instance}")[0]
        with open(path, "r+b") as f:
            size = os.fstat(f.fileno()).st_size
            f.seek(size - (1024 - slot) * 3 * 4096 + 16)
            f.write(b"\xff" * 512)
        d.start()
        self.assertEqual(d.inspect(box["box_id"])["state"], "active")
        self.assertEqual(d.pool()["states"]["quarantined"], 1)
        self.assertEqual(d.acquire("u", "2")["source"], "cold")
        self.assertEqual(d.sh(box["box_id"], "echo ok"), "ok\n")
        self.assertEqual(d.stop(), 1)  # it says that something was not to be cleaned
        os.unlink(path)
        wait_for("nothing else to remain", lambda: d.remains() == [])

    def test_a_new_size_comes_when_nothing_is_left(self):
        d = self.daemon("max_boxes: 10\n")
        d.acquire("u", "1")
        d.kill()
        d.write_config("max_boxes: 20\n")
        d.start()
        self.assertEqual(sum(d.pool()["states"].values()), 10)
        for b in d.get("/v1/boxes").json["boxes"]:
            d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")
        d.kill()
        d.start()
        self.assertEqual(sum(d.pool()["states"].values()), 20)
        self.end(d)


if __name__ == "__main__":
    unittest.main()
