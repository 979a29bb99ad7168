"""What users of such systems reported: for each row of it that concerns a whole service, what is right."""

import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import unittest

import backends
from harness import (BOUND, IS_ROOT, Census, Daemon, DaemonTest, Fault, in_threads, open_files, slurp, start_time, wait_for)
from images import DIR, FILE, HARD, LINK, Image, ImagesTest, base, layer


def leaders(box, d):
    """The worker of a box and PID 1 in it, by pid and start time."""
    i = d.inspect(box)
    return [(p, start_time(p)) for p in (i["pid"], i["box_pid"])]


def gone(processes):
    return all(start_time(p) != t for p, t in processes)


class Rows(DaemonTest):
    config = "replicas: 50\nhealth_check_timeout: 600\nboot_timeout: 600\n"  # what shall be noticed is not found by waiting

    def tearDown(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def start_waiting(self, box):
        """A command that goes on until /tmp/go is there; a list that will hold its answer, and its thread."""
        answer = []
        command = "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo done"
        t = threading.Thread(target=lambda: answer.append(self.d.run(box, command)))
        t.start()
        wait_for("the command", lambda: self.d.inspect(box)["in_flight"] == 1)
        return answer, t

    def finish_waiting(self, box, answer, t):
        self.assertEqual(self.d.write(box, "/tmp/go", b"").status, 200)
        t.join(BOUND)
        self.assertEqual(answer[0]["stdout"], "done\n")

    def test_row_01_only_what_is_proven_ownerless_is_adopted(self):
        box = self.d.acquire("row", "1")["box_id"]
        before = (self.d.inspect(box)["generation"], leaders(box, self.d))
        waiting = self.start_waiting(box)

        # A second one of the same name, while the first serves, and while it hangs: alive is alive.
        for sig in (signal.SIGCONT, signal.SIGSTOP):
            first = self.d.process
            first.send_signal(sig)
            try:
                self.d.start(wait=False)
                self.assertEqual(self.d.process.wait(BOUND), 1)
            finally:
                self.d.process = first
                first.send_signal(signal.SIGCONT)
        self.assertEqual(self.d.log().count("has a supervisor already"), 2)

        # A neighbour whose name is the beginning of ours, who reaps whatever is idle and sweeps when it starts and ends.
        neighbour = Daemon("replicas: 1\nidle_timeout: 0.05\nactive_idle_timeout: 0.05\n", instance=self.d.instance.rsplit("-", 1)[0])
        try:
            neighbour.acquire("row", "1")
            wait_for("its own box to be reaped", lambda: neighbour.pool()["boxes"] == 0)
            neighbour.kill()
            neighbour.start()
            self.assertEqual(neighbour.stop(), 0)
        finally:
            neighbour.kill()
            neighbour.remove()
        self.assertEqual((self.d.inspect(box)["generation"], leaders(box, self.d)), before)
        self.assertEqual(self.d.inspect(box)["state"], "active")

        # Now it is ownerless: its process is dead.
        self.d.kill()
        self.d.start()
        self.assertEqual((self.d.inspect(box)["generation"], leaders(box, self.d)), before)
        self.finish_waiting(box, *waiting)

    def test_row_03_the_full_identity_decides_and_not_the_token(self):
        a = self.d.acquire("a:b", "c")  # the token is a hash over "a:b:c"
        self.d.write(a["box_id"], "/tmp/secret", b"of a:b")
        for give_back in (lambda: None, lambda: self.d.release(a["box_id"])):
            give_back()
            r = self.d.post("/v1/acquire", {"user_id": "a", "thread_id": "b:c"})
            self.assertEqual((r.status, r.reason), (409, "identity_collision"))
            self.assertNotIn(a["box_id"], str(r.json))
        again = self.d.acquire("a:b", "c")
        self.assertEqual((again["source"], again["generation"]), ("warm", a["generation"]))

    def test_row_04_two_hundred_acquires_of_a_new_scope_make_one_box(self):
        before = self.d.pool()["counters"]["boots"]
        got = in_threads(200, lambda i: self.d.acquire("crowd", "one"))
        self.assertEqual(len({b["box_id"] for b in got}), 1)
        self.assertEqual(len({b["generation"] for b in got}), 1)
        self.assertEqual(len({b["lease_id"] for b in got}), 200)
        self.assertEqual([b["source"] for b in got].count("cold"), 1)
        self.assertEqual(self.d.pool()["counters"]["boots"], before + 1)

    def test_row_06_a_crash_is_seen_at_once_with_its_cause(self):
        idle = self.d.acquire("row", "6 idle")
        busy = self.d.acquire("row", "6 busy")
        events = self.d.connect()
        events.request("GET", "/v1/events")
        stream = events.getresponse()
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{busy['box_id']}/run", json.dumps({"command": "sleep 1000"}))
        wait_for("the command", lambda: self.d.inspect(busy["box_id"])["in_flight"] == 1)
        census = Census()
        for box in (idle, busy):
            census.add(box["pid"])
            os.kill(box["pid"], signal.SIGKILL)

        told = {}  # nobody asks for anything: it is told
        for line in iter(stream.readline, b""):
            event = json.loads(line[6:]) if line.startswith(b"data: ") else {}
            if event.get("kind") == "worker_crash":
                told[event["box_id"]] = (event["pid"], event["code"], event["reason"])
            if len(told) == 2:
                break
        events.close()
        cause = "killed by signal 9 (Killed)"
        self.assertEqual(told, {b["box_id"]: (b["pid"], signal.SIGKILL, cause) for b in (idle, busy)})
        r = c.getresponse()
        self.assertEqual((r.status, json.loads(r.read())["error"]["reason"]), (410, "worker_crashed"))
        c.close()
        for box, thread in ((idle, "6 idle"), (busy, "6 busy")):
            again = self.d.acquire("row", thread)
            self.assertEqual((again["source"], again["box_id"]), ("cold", box["box_id"]))
            self.assertEqual(self.d.sh(again["box_id"], "ls /tmp"), "")
        self.assertEqual(census.alive(), [], "what was in the boxes is gone")

    def test_row_08_a_timeout_kills_the_whole_tree(self):
        box = self.d.acquire("row", "8")["box_id"]
        script = "(setsid sleep 2001 &) ; sleep 2002 & setsid sh -c 'sleep 2003 & sleep 2004' & sleep 2005"
        r = self.d.run(box, script, timeout_seconds=0.3)
        self.assertEqual((r["timed_out"], r["exit_code"]), (True, None))
        left = self.d.sh(box, "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^200[1-5]$' || true")
        self.assertEqual(left, "0\n", "the answer comes when the tree is gone")

    def test_row_11_nothing_in_the_box_stays_a_zombie(self):
        box = self.d.acquire("row", "11")["box_id"]
        for _ in range(8):  # orphans by the hundred, then more of them one by one
            self.d.run(box, "i=0; while [ $i -lt 100 ]; do (true &); i=$((i+1)); done")
        for _ in range(50):
            self.d.run(box, "(sleep 0.001 &) ; true")
        wait_for("no zombie", lambda: self.d.sh(box, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true") == "0\n")

    def test_row_12_who_forks_has_one_thread(self):
        boxes = [self.d.acquire("row", f"12 {i}") for i in range(3)]
        in_threads(9, lambda i: self.d.sh(boxes[i % 3]["box_id"], "head -c 100000 /dev/zero | tr '\\0' x"))
        census = Census()
        census.add(self.d.process.pid)  # sbxd, the janitor, workers and guests
        self.assertGreaterEqual(len(census.alive()), 2 + 2 * len(boxes))
        for pid in census.alive():
            status = slurp(f"/proc/{pid}/status")
            if backends.current.own_kernel and status.startswith("Name:\tqemu-system"):
                continue  # it may not fork
            self.assertEqual(re.search(r"^Threads:\s+(\d+)$", status, re.M)[1], "1", status)

    def test_row_20_what_a_dead_daemon_left_is_adopted_or_reaped(self):
        kept = [self.d.acquire("row", f"20 {i}") for i in range(4)]
        for b in kept[2:]:
            self.d.release(b["box_id"])
        self.d.sh(kept[0]["box_id"], "(sleep 5000 >/dev/null 2>&1 &)")
        dead = self.d.acquire("row", "20 dead")
        census = Census()
        for b in (*kept, dead):
            census.add(b["pid"])
        self.d.kill()
        os.kill(dead["pid"], signal.SIGKILL)  # nobody sees this end
        self.d.start()
        listed = {b["box_id"]: (b["state"], b["generation"], b["pid"]) for b in self.d.get("/v1/boxes").json["boxes"]}
        for i, b in enumerate(kept):
            self.assertEqual(listed[b["box_id"]], ("active" if i < 2 else "warm", b["generation"], b["pid"]))
        wait_for("the other one to be reaped", lambda: self.d.get(f"/v1/boxes/{dead['box_id']}").status == 404)
        self.assertEqual(self.d.sh(kept[0]["box_id"], "pgrep -c sleep"), "1\n")
        for b in kept:
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true").status, 204)
        self.assertEqual(census.alive(), [])
        self.assertEqual(self.d.pool()["boxes"], 0)


class Cleanup(DaemonTest):
    """The daemon dies somewhere on the way of a box to its end."""

    points = ("sbxd.close", "sbxd.worker.exited", "sbxd.cleaned", "sbxd.recovered", "sbxd.settle.performed")
    faults = {p: Fault(p) for p in points}
    config = "replicas: 50\n"
    env = {"SBX_FAULT": ",".join(f"{p}=kill@{f.path}" for p, f in faults.items())}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for f in cls.faults.values():
            f.remove()

    def assert_nothing_is_left(self, box, census):
        if self.d.get(f"/v1/boxes/{box['box_id']}").json.get("state") in ("active", "warm"):
            self.assertEqual(self.d.sh(box["box_id"], "echo whole"), "whole\n")  # it had not begun: the client asks again
            self.remove(box)
        wait_for("the box to be gone", lambda: self.d.get(f"/v1/boxes/{box['box_id']}").status == 404)
        self.assertEqual(census.alive(), [])
        self.assertEqual(self.d.pool()["boxes"], 0)
        cgroups = [r for r in self.d.remains() if re.search(rf"sbxd-{self.d.instance}/[^/]*\d+-\d+$", r)]
        self.assertEqual(cgroups, [], "of a box")
        self.assertEqual(self.d.acquire("row", "2")["source"], "cold")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)

    def make_box(self):
        box = self.d.acquire("row", "2")
        self.d.sh(box["box_id"], "(setsid sleep 5000 >/dev/null 2>&1 &)")
        census = Census()
        census.add(box["pid"])
        self.assertGreaterEqual(len(census.seen), 2 if backends.current.own_kernel else 3)
        return box, census

    def remove(self, box):
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true")

    def test_row_02_a_crash_during_cleanup_strands_nothing(self):
        for point, fault in self.faults.items():
            with self.subTest(point):
                box, census = self.make_box()
                fault.arm()
                self.remove(box)
                self.assertEqual(self.d.process.wait(BOUND), -signal.SIGKILL)
                self.assertTrue(fault.hit())
                self.d.start()
                self.assert_nothing_is_left(box, census)
        with self.subTest("everybody at once"):
            box, census = self.make_box()
            self.faults["sbxd.close"].arm()
            census.add(self.d.process.pid)
            self.remove(box)
            for pid in census.alive():
                with contextlib.suppress(ProcessLookupError):  # it went with another one
                    os.kill(pid, signal.SIGKILL)
            self.d.process.wait(BOUND)
            self.d.start()
            self.assert_nothing_is_left(box, census)


class JudgedDead(DaemonTest):
    config = "replicas: 50\nhealth_check_timeout: 0.5\n"

    def test_row_05_what_is_judged_dead_is_killed_before_it_is_forgotten(self):
        for which in ("pid", "box_pid"):  # the worker, and PID 1 of the box
            box = self.d.acquire("row", "5")
            self.d.sh(box["box_id"], "(setsid sleep 5000 >/dev/null 2>&1 &)")
            census = Census()
            census.add(box["pid"])
            self.d.release(box["box_id"])
            os.kill(self.d.inspect(box["box_id"])[which], signal.SIGSTOP)  # alive, and does not answer
            again = self.d.acquire("row", "5")
            self.assertEqual((again["source"], again["box_id"]), ("cold", box["box_id"]))
            self.assertEqual(census.alive(), [], "gone before the next one is given")
            self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true")

    @unittest.skipUnless(IS_ROOT, "chooses the next pid")
    def test_row_05_a_pid_that_was_given_again_is_spared(self):
        for _ in range(10):
            with contextlib.suppress(PidTaken):
                return self.give_pids_again()
        self.fail("each time another process of the host took the pid")

    def give_pids_again(self):
        box = self.d.acquire("row", "5 pid")
        pids = [p for p, _ in leaders(box["box_id"], self.d)]
        strangers = []
        set_child_subreaper(True)  # so that who is orphaned here is reaped here, and its pid is free
        try:
            self.d.kill()
            os.kill(pids[0], signal.SIGKILL)
            for pid in pids:
                wait_for("the pid to be free", lambda: reap_children(self.d.process.pid) or not os.path.exists(f"/proc/{pid}"))
                strangers.append(start_with_pid(pid))
            self.d.start()
            wait_for("the dead box to be gone", lambda: self.d.get(f"/v1/boxes/{box['box_id']}").status == 404)
            self.assertEqual(self.d.acquire("row", "5 pid")["source"], "cold")
            self.assertEqual([p.poll() for p in strangers], [None, None], "nobody ended them")
        finally:
            set_child_subreaper(False)
            for p in strangers:
                p.kill()
                p.wait()
            if self.d.process.poll() is not None:
                self.d.start()
        self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true")


def set_child_subreaper(on):
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def reap_children(spared):
    """Reaps children that have ended and that no Popen object waits for. Always None."""
    for pid in [int(p) for p in slurp("/proc/thread-self/children").split()]:
        if pid != spared:
            os.waitpid(pid, os.WNOHANG)


class PidTaken(Exception):
    """Somebody else's process has it, for as long as it likes."""


def start_with_pid(pid):
    """A process that has this pid: others may be quicker, so it takes a few tries."""
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
            f.write(str(pid - 1))
        p = subprocess.Popen(["sleep", "1000"])
        if p.pid == pid:
            return p
        p.kill()
        p.wait()
    raise PidTaken(pid)


class RecycledPids(DaemonTest):
    config = "replicas: 50\n"

    def make_pids_scarce(self, box):
        line = "echo 400 > /proc/sys/kernel/pid_max"
        if backends.current.own_kernel:
            self.d.sh(box, line)
            return
        inside = ["nsenter", "-t", str(self.d.inspect(box)["box_pid"]), "-p", "sh", "-c"]
        if subprocess.run([*inside, line], stderr=subprocess.DEVNULL).returncode != 0 \
                or slurp("/proc/sys/kernel/pid_max").strip() == "400":
            self.skipTest("this kernel has one pid_max for all")

    @unittest.skipUnless(IS_ROOT, "makes pids scarce")
    def test_row_07_a_recycled_pid_is_never_hit(self):
        box = self.d.acquire("row", "7")["box_id"]
        self.make_pids_scarce(box)
        stop = threading.Event()
        pids = []
        rounds = 2 // backends.current.slow  # an emulated machine goes through its pids once in many seconds

        def wraps():
            return sum(b < a for a, b in zip(pids, pids[1:]))

        def innocents():
            while not stop.is_set():
                r = self.d.run(box, "echo $$; i=0; while [ $i -lt 10 ]; do /bin/true; i=$((i+1)); done; exit 7")
                self.assertEqual((r["exit_code"], r["signal"]), (7, None), r)
                pids.append(int(r["stdout"]))

        def killed(i):
            try:
                n = 0
                while n < 40 // backends.current.slow or (n < 400 and wraps() <= rounds):
                    r = self.d.run(box, "echo $$; sleep 1000 & sleep 1000 & sleep 1000", timeout_seconds=0.01)
                    self.assertTrue(r["timed_out"], r)
                    pids.extend(map(int, r["stdout"].split()))
                    n += 1
            finally:
                if i == 0:
                    stop.set()

        in_threads(6, lambda i: killed(i) if i < 3 else innocents())
        self.assertLess(max(pids), 400)
        self.assertGreater(wraps(), rounds, "pids have been given again and again")
        self.assertEqual(self.d.sh(box, "pgrep -c sleep || true"), "0\n")


class LockHolderDies(DaemonTest):
    """A worker killed with SIGKILL while it holds its scope mutex: whoever tries the mutex next gets EOWNERDEAD."""

    boot, ready, check = Fault("boot"), Fault("ready"), Fault("check")
    config = "replicas: 50\nboot_timeout: 600\nhealth_check_timeout: 600\n"
    env = {"SBX_FAULT": f"worker.boot.locked=kill@{boot.path},worker.boot.ready=kill@{ready.path},"
                        f"worker.check.locked=kill@{check.path}"}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for f in (cls.boot, cls.ready, cls.check):
            f.remove()

    def test_row_17_kill_9_of_who_holds_the_mutex_stops_nobody(self):
        for fault in (self.boot, self.ready):
            before = self.d.pool()["counters"]["lock_recoveries"]
            fault.arm()
            box = self.d.acquire("row", fault.path)  # at once: no timeout is anywhere near
            self.assertTrue(fault.hit())
            self.assertEqual(box["source"], "cold")
            self.assertEqual(self.d.pool()["counters"]["lock_recoveries"], before + 1)
            self.assertEqual(self.d.sh(box["box_id"], "echo ok"), "ok\n")
            self.d.release(box["box_id"])

    def test_row_18_the_record_is_repaired_with_the_lock(self):
        box = self.d.acquire("row", "18")
        slot = self.record(box["generation"])["slot"]
        for _ in range(3):
            self.d.sh(box["box_id"], "head -c 1000 /dev/zero")
        self.d.release(box["box_id"])
        self.assertEqual(self.record(box["generation"])["commands_total"], 3)
        before = self.d.pool()["counters"]["lock_recoveries"]
        self.check.arm()
        again = self.d.acquire("row", "18")
        self.assertTrue(self.check.hit())
        self.assertEqual((again["source"], again["box_id"]), ("cold", box["box_id"]))
        self.assertEqual(self.d.pool()["counters"]["lock_recoveries"], before + 1)
        record = self.record(again["generation"])  # and the table is valid: record() looks
        self.assertEqual(record["slot"], slot, "what died made room for this one")
        for key in ("commands_total", "bytes_in", "bytes_out", "in_flight", "connections"):
            self.assertEqual(record[key], 0, key)
        self.assertIsNone(record["last_error"])
        self.d.release(again["box_id"])
        self.assertEqual(self.d.acquire("row", "18")["source"], "warm", "its mutex can be taken")
        self.d.release(again["box_id"])

    def record(self, generation):
        """The slot of that box in the shared table, which must be valid."""
        r = self.d.ctl("--instance", self.d.instance, "--json", "shm", "dump")
        dump = json.loads(r.stdout)
        self.assertEqual((r.returncode, dump["findings"]), (0, []))
        return next(b for b in dump["boxes"] if b["generation"] == generation)


class Images(ImagesTest):
    config = "replicas: 20\nimages: {cache_mib: 10}\n"

    def test_row_13_a_link_in_a_layer_leads_nowhere(self):
        """Unpacking writes, changes and removes nothing outside of the root, whatever the layers say."""
        victim = f"{self.dir}/victim"
        os.makedirs(f"{victim}/sub")
        for name in ("kept", "sub/kept"):
            with open(f"{victim}/{name}", "w", encoding="ascii") as f:
                f.write("untouched")
        secret = f"{self.dir}/secret"
        with open(secret, "w", encoding="ascii") as f:
            f.write("secret")

        def state():
            return sorted((p, os.lstat(p).st_mode, os.lstat(p).st_uid, os.lstat(p).st_mtime_ns, os.path.isfile(p) and slurp(p))
                          for p in [victim, secret] + [os.path.join(d, n) for d, ds, fs in os.walk(victim) for n in ds + fs])

        before = state()
        up = "../" * 40
        links = layer(("abs", LINK, {"linkname": victim}), ("rel", LINK, {"linkname": up + victim[1:]}), ("up", LINK, {"linkname": ".."}),
                      ("file", LINK, {"linkname": f"{victim}/kept"}), ("root", LINK, {"linkname": "/"}), ("proc", LINK, {"linkname": "/proc/self"}),
                      ("chain", LINK, {"linkname": "chain2"}), ("chain2", LINK, {"linkname": victim}), ("loop", LINK, {"linkname": "loop"}))
        writes = [layer((name, kind, fields)) for name, kind, fields in (
            ("abs/new", FILE, {"data": b"pwn"}), ("rel/new", FILE, {"data": b"pwn"}), ("chain/new", FILE, {"data": b"pwn"}),
            ("abs/sub", DIR, {"mode": 0o777, "uid": 1234}), ("abs/kept", FILE, {"data": b"pwn"}), ("file", FILE, {"data": b"pwn"}),
            ("abs/.wh.kept", FILE, {}), ("abs/sub/.wh..wh..opq", FILE, {}), (".wh.abs", FILE, {}), ("up/up/x", FILE, {}),
            (f"{up}{victim[1:]}/dots", FILE, {"data": b"pwn"}), (f"/{victim}/abs", FILE, {"data": b"pwn"}), ("root/etc/rooted", FILE, {"data": b"in"}),
            ("hard", HARD, {"linkname": secret}), ("hard2", HARD, {"linkname": up + secret[1:]}), ("abs/hard", HARD, {"linkname": "etc/passwd"}),
            ("proc/root/x", FILE, {"data": b"pwn"}), ("..", FILE, {"data": b"pwn"}), (".", LINK, {"linkname": victim}))]
        outcomes = []
        for n, evil in enumerate(writes):
            image = Image(base(), links, evil, Env=["PATH=/bin"], WorkingDir="/abs/working/dir")
            ref = self.layout(image)
            r = self.pull(ref)
            self.assertEqual(state(), before, f"layer {n}: {r}")
            self.assertEqual(self.leftovers(), [])
            outcomes.append(r.status)
            self.assertIn(r.status, (200, 422), r)
            if r.status != 200:
                continue
            # And a box of it sees nothing of the host, either.
            box = self.box(ref, f"evil{n}")
            self.assertEqual(self.d.run(box, f"cat {victim}/kept {secret} hard hard2 | busybox grep -c -e secret -e untouched", cwd="/")["stdout"], "0\n")
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)
        self.assertGreater(outcomes.count(200), 8)  # most are harmless, once they are resolved in the root
        self.assertEqual(state(), before)

    def test_row_16_the_cache_has_a_quota(self):
        """By digest: the same image is there once, whatever its names. Past the quota the longest unused goes."""
        def image(n):
            return Image(base(), layer(("fill", FILE, {"data": os.urandom(1 << 20)}), ("n", FILE, {"data": str(n).encode()})), Env=["PATH=/bin"])

        def on_disk():
            out = subprocess.run(["du", "-sk", f"{self.d.dir}/state/images"], capture_output=True, check=True, text=True)
            return int(out.stdout.split()[0]) << 10

        self.assertEqual(self.d.post("/v1/images/prune").status, 200)
        first = image(0)
        refs = [self.layout(first), self.layout(first)]
        for ref in refs:
            self.assertEqual(self.pulled(ref)["id"], first.digest)
        self.assertEqual(len([n for n in self.store() if n.startswith("sha256-")]), 1)
        box = self.box(refs[0], "first")
        ids = []
        for n in range(1, 9):
            ids.append(self.pulled(self.layout(image(n)))["id"])
            self.assertLessEqual(on_disk(), 10 << 20)
            self.assertLessEqual(sum(i["size_bytes"] for i in {i["id"]: i for i in self.listed().values()}.values()), 10 << 20)
        self.assertIn(first.digest, self.ids())  # a box is made of it
        self.assertIn(ids[-1], self.ids())
        self.assertNotIn(ids[0], self.ids())
        self.assertEqual(self.d.sh(box, "cat /n"), "0")
        self.assertEqual(self.leftovers(), [])
        # Descriptors are counted: none is kept of what went.
        for ref in refs:
            self.d.acquire("u", ref, image=ref)
        self.remove_boxes()
        self.d.post("/v1/images/prune")
        wait_for("no image is held", lambda: not [p for p in open_files(self.d.process.pid) if "/images/" in p])


if __name__ == "__main__":
    unittest.main()
