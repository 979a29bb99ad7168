"""What agents' harnesses rely on when they use a pool of sandboxes: each rule by its name, against the real service."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import threading
import unittest

from harness import BOUND, BUILD, IS_ROOT, ROOT, Daemon, DaemonTest, slurp, wait_for

OTHER_UID = 4712


class BehaviourTest(DaemonTest):
    config = "replicas: 50\n"

    def tearDown(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def state(self, box):
        r = self.d.get(f"/v1/boxes/{box}")
        return r.json["state"] if r.status == 200 else None

    def counter(self, name):
        return self.d.pool()["counters"][name]

    def in_background(self, fn):
        """Begins fn(); what is returned waits for its result."""
        results = []
        t = threading.Thread(target=lambda: results.append(fn()))
        t.start()

        def result():
            t.join(BOUND)
            return results[0]

        return result

    def freeze(self, box, which="box_pid"):
        """Stops PID 1 of the box, or its worker ("pid"): it lives and does not answer. The pid."""
        pid = self.d.inspect(box)[which]
        os.kill(pid, signal.SIGSTOP)
        return pid


class Pool(BehaviourTest):
    def test_deterministic_ids(self):
        cases = json.loads(slurp(f"{ROOT}/tests/data/scope_token.json"))["cases"]
        self.assertGreater(len(cases), 10)
        for case in cases:
            box = self.d.acquire(case["user_id"], case["thread_id"])
            self.assertEqual(box["box_id"], case["token"], case["note"])
            if case["user_id"] is not None:
                seed = f"{case['user_id']}:{case['thread_id']}".encode()
                self.assertEqual(box["box_id"], hashlib.sha256(seed).hexdigest()[:16])
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)

    def test_different_users_and_threads_differ(self):
        boxes = [self.d.acquire(u, t)["box_id"] for u in ("x", "y") for t in ("1", "2")]
        self.assertEqual(len(set(boxes)), 4)
        self.d.sh(boxes[0], "echo secret > /tmp/s")
        for b in boxes[1:]:
            self.assertEqual(self.d.run(b, "cat /tmp/s")["exit_code"], 1)

    def test_release_parks(self):
        box = self.d.acquire("u", "parks")
        self.d.sh(box["box_id"], "(sleep 5000 >/dev/null 2>&1 &)")
        closes = self.counter("closes")
        self.assertEqual(self.d.release(box["box_id"], box["lease_id"]).json, {"status": "warm"})
        parked = self.d.inspect(box["box_id"])
        self.assertEqual((parked["state"], parked["leases"], parked["pid"]), ("warm", 0, box["pid"]))
        self.assertEqual(self.counter("closes"), closes, "nothing was stopped")
        self.assertEqual(self.d.sh(box["box_id"], "pgrep -c sleep"), "1\n")

    def test_release_of_a_box_that_is_gone(self):
        box = self.d.acquire("u", "gone")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)
        for lease in (box["lease_id"], box["lease_id"], None):
            r = self.d.release(box["box_id"], lease)
            self.assertEqual((r.status, r.json), (200, {"status": "closed"}))
        self.assertEqual(self.d.release(f"{os.geteuid()}:{box['box_id']}").json, {"status": "closed"})
        for unknown in ("0" * 16, "nosuch", f"4242:{box['box_id']}"):
            r = self.d.release(unknown)
            self.assertEqual((r.status, r.reason), (404, "not_found"), unknown)
        self.assertEqual(self.d.get(f"/v1/boxes/{box['box_id']}").status, 404, "to all else it is gone")

    def test_warm_reclaim(self):
        box = self.d.acquire("u", "reclaim")
        self.d.write(box["box_id"], "/tmp/work", b"half done")
        self.d.release(box["box_id"])
        boots = self.counter("boots")
        again = self.d.acquire("u", "reclaim")
        self.assertEqual((again["source"], again["generation"], again["pid"]), ("warm", box["generation"], box["pid"]))
        self.assertEqual(self.d.read(box["box_id"], "/tmp/work").body, b"half done")
        self.assertEqual(self.counter("boots"), boots)

    def test_recent_reclaim_validates_by_default(self):
        box = self.d.acquire("u", "recent")["box_id"]
        for i in range(3):
            self.d.release(box)
            checks = self.counter("checks")
            self.assertEqual(self.d.acquire("u", "recent")["source"], "warm")
            self.assertEqual(self.counter("checks"), checks + 1)

    def test_a_dead_warm_box_is_replaced_under_the_same_id(self):
        box = self.d.acquire("u", "dead warm")
        self.d.sh(box["box_id"], "echo old > /tmp/old")
        self.d.release(box["box_id"])
        os.kill(self.freeze(box["box_id"]), signal.SIGKILL)
        again = self.d.acquire("u", "dead warm")
        self.assertEqual((again["source"], again["box_id"]), ("cold", box["box_id"]))
        self.assertGreater(again["generation"], box["generation"])
        self.assertEqual(self.d.sh(again["box_id"], "ls /tmp"), "")

    def test_a_dead_active_box_is_invalidated_by_the_failing_transport_and_not_by_a_failing_command(self):
        box = self.d.acquire("u", "dead active")
        for command, how in (("exit 1", {"exit_code": 1}), ("kill -9 $$", {"signal": 9}), ("sleep 1000", {"timed_out": True})):
            r = self.d.run(box["box_id"], command, timeout_seconds=0.2 if "sleep" in command else 60)
            self.assertEqual({k: r[k] for k in how}, how)
        for path, status in (("/none", 404), ("/tmp", 400)):
            self.assertEqual(self.d.read(box["box_id"], path).status, status)
        self.assertEqual(self.d.post(f"/v1/boxes/{box['box_id']}/run", {"argv": ["no-such-program"]}).status, 422)
        alive = self.d.inspect(box["box_id"])
        self.assertEqual((alive["state"], alive["generation"], alive["leases"]), ("active", box["generation"], 1))

        waiting = self.in_background(lambda: self.d.post(f"/v1/boxes/{box['box_id']}/run", {"command": "sleep 1000"}))
        wait_for("the command", lambda: self.d.inspect(box["box_id"])["in_flight"] == 1)
        os.kill(alive["box_pid"], signal.SIGKILL)
        r = waiting()
        self.assertEqual((r.status, r.reason), (410, "box_died"))
        again = self.d.acquire("u", "dead active")
        self.assertEqual((again["source"], again["box_id"]), ("cold", box["box_id"]))
        self.assertGreater(again["generation"], box["generation"])

    def test_a_request_for_a_box_of_another_generation(self):
        box = self.d.acquire("u", "generation")
        path = f"/v1/boxes/{box['box_id']}"
        this, other = box["generation"], box["generation"] + 1
        c = self.d.connect()  # sbxd's at first, then the worker's, then either's

        def ask(method, tail, generation):
            return self.d.request(method, path + tail, headers={"X-Box-Generation": str(generation)}, connection=c)

        for method, tail, fine in (("GET", "", 200), ("GET", "/fs/stat?path=/", 200), ("GET", "/executions", 200), ("GET", "/metrics", 200)):
            self.assertEqual(ask(method, tail, this).status, fine)
            r = ask(method, tail, other)
            self.assertEqual((r.status, r.json["error"]["reason"]), (410, "stale_generation"), tail)
            self.assertEqual(ask(method, tail, this).status, fine)
        for method, tail in (("DELETE", "?force=true"), ("POST", "/release"), ("PUT", "/fs/write?path=/tmp/x")):
            self.assertEqual(ask(method, tail, other).status, 410)
        self.assertEqual(self.d.inspect(box["box_id"])["generation"], this)
        for wrong in ("0", "x", "-1", ""):
            self.assertEqual(ask("GET", "", wrong).status, 400)
            c = self.d.connect()

    def test_a_stale_handle_cannot_invalidate_the_recreated_box(self):
        c = self.d.connect()
        body = {"user_id": "u", "thread_id": "stale", "release_on_disconnect": True}
        old = self.d.post("/v1/acquire", body, connection=c).json
        self.assertEqual(self.d.post(f"/v1/boxes/{old['box_id']}/run", {"command": "true"}, connection=c).status, 200)
        os.kill(old["pid"], signal.SIGKILL)
        wait_for("that to be noticed", lambda: self.state(old["box_id"]) != "active")
        new = self.d.acquire("u", "stale")
        self.assertEqual((new["source"], new["box_id"]), ("cold", old["box_id"]))
        # The lease of the old one, and the connection that it was tied to.
        self.assertEqual(self.d.release(old["box_id"], old["lease_id"]).json, {"status": "running"})
        c.close()
        wait_for("the end of the connection", lambda: self.d.pool()["clients"] == 1)
        now = self.d.inspect(new["box_id"])
        self.assertEqual((now["state"], now["leases"], now["generation"]), ("active", 1, new["generation"]))
        self.assertEqual(self.d.sh(new["box_id"], "echo ok"), "ok\n")

    def test_concurrent_acquires_create_one_box(self):
        boots = self.counter("boots")
        args = [f"{BUILD}/sbxctl", "--socket", self.d.socket, "--json", "acquire", "-u", "u", "-t", "concurrent"]
        processes = [subprocess.Popen(args, stdout=subprocess.PIPE) for _ in range(24)]  # as many agents would
        boxes = [json.loads(p.communicate(timeout=BOUND)[0]) for p in processes]
        self.assertEqual(len({(b["box_id"], b["generation"]) for b in boxes}), 1)
        self.assertEqual([b["source"] for b in boxes].count("cold"), 1)
        self.assertEqual(self.counter("boots"), boots + 1)
        self.assertEqual(self.d.inspect(boxes[0]["box_id"])["leases"], 24)

    def test_other_threads_are_never_reclaimed(self):
        mine = self.d.acquire("u", "mine")
        self.d.write(mine["box_id"], "/tmp/mine", b"mine")
        self.d.release(mine["box_id"])
        for user, thread in (("u", "other"), ("other", "mine"), ("u", None), (None, "mine")):
            box = self.d.acquire(user, thread)
            self.assertEqual(box["source"], "cold", (user, thread))
            self.assertNotEqual((box["box_id"], box["pid"]), (mine["box_id"], mine["pid"]))
            self.assertEqual(self.d.read(box["box_id"], "/tmp/mine").status, 404)
        parked = self.d.inspect(mine["box_id"])
        self.assertEqual((parked["state"], parked["generation"]), ("warm", mine["generation"]))

    @unittest.skipUnless(IS_ROOT, "takes another uid")
    def test_a_forced_token_collision_never_crosses_tenants(self):
        # Two tenants whose names give one token: "a:b" + ":" + "c" is "a" + ":" + "b:c".
        mine = self.d.acquire("a:b", "c")
        self.d.write(mine["box_id"], "/tmp/secret", b"of a:b")
        for end in (lambda: None, lambda: self.d.release(mine["box_id"])):  # active, then warm
            end()
            r = self.d.post("/v1/acquire", {"user_id": "a", "thread_id": "b:c"})
            self.assertEqual((r.status, r.reason), (409, "identity_collision"))
        # And another uid that names the very same: a box of its own under the same token.
        os.chmod(self.d.socket, 0o666)  # here anybody may connect
        script = ("import http.client, json, os, socket, sys; os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))\n"
                  "def ask(method, path, body=None):\n"
                  "    c = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])\n"
                  "    c.request(method, path, body); r = c.getresponse(); return r.status, json.loads(r.read())\n"
                  "status, box = ask('POST', '/v1/acquire', json.dumps({'user_id': 'a:b', 'thread_id': 'c'}))\n"
                  "read = ask('GET', f'/v1/boxes/{box[\"box_id\"]}/fs/read?path=/tmp/secret')[0]\n"
                  "print(json.dumps([status, box['box_id'], box['source'], box['generation'], read]))\n")
        r = subprocess.run(["python3", "-c", script, self.d.socket, str(OTHER_UID)], capture_output=True, text=True, timeout=BOUND * 2)
        self.assertEqual(r.returncode, 0, r.stderr)
        status, box_id, source, generation, read = json.loads(r.stdout)
        self.assertEqual((status, box_id, source, read), (200, mine["box_id"], "cold", 404))
        self.assertNotEqual(generation, mine["generation"])
        again = self.d.acquire("a:b", "c")
        self.assertEqual((again["source"], again["generation"]), ("warm", mine["generation"]))
        self.assertEqual(self.d.read(mine["box_id"], "/tmp/secret").body, b"of a:b")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{OTHER_UID}:{box_id}?force=true").status, 204)


class Skip(BehaviourTest):
    config = "replicas: 50\nhealth_check_skip_seconds: 600\n"

    def test_an_explicit_skip_avoids_the_check(self):
        box = self.d.acquire("u", "skip")
        checks = self.counter("checks")
        for _ in range(3):
            self.d.release(box["box_id"])
            again = self.d.acquire("u", "skip")
            self.assertEqual((again["source"], again["generation"]), ("warm", box["generation"]))
        self.assertEqual(self.counter("checks"), checks)

    def test_an_adopted_box_is_always_checked(self):
        good, bad = self.d.acquire("u", "good"), self.d.acquire("u", "bad")
        for b in (good, bad):
            self.d.release(b["box_id"])
        self.d.kill()
        self.d.start()
        self.assertEqual([self.state(b["box_id"]) for b in (good, bad)], ["warm", "warm"])
        self.freeze(bad["box_id"])
        checks = self.counter("checks")
        again = self.d.acquire("u", "good")
        self.assertEqual((again["source"], again["generation"]), ("warm", good["generation"]))
        self.assertEqual(self.counter("checks"), checks + 1, "though it was parked just now")
        self.d.release(good["box_id"])
        self.assertEqual(self.d.acquire("u", "good")["source"], "warm")
        self.assertEqual(self.counter("checks"), checks + 1, "from now on it is as any other")
        again = self.d.acquire("u", "bad")
        self.assertEqual((again["source"], again["box_id"]), ("cold", bad["box_id"]))
        self.assertEqual(self.counter("check_failures"), 1)


class Swapped(BehaviourTest):
    config = "replicas: 50\nhealth_check_timeout: 1\n"

    def test_a_box_swapped_during_a_health_check_is_not_removed_by_it(self):
        old = self.d.acquire("u", "swap")
        self.d.release(old["box_id"])
        self.freeze(old["box_id"])
        checks, failures = self.counter("checks"), self.counter("check_failures")
        waiting = self.in_background(lambda: self.d.acquire("u", "swap"))
        wait_for("the check", lambda: self.counter("checks") == checks + 1)
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{old['box_id']}?force=true").status, 204)
        new = waiting()
        self.assertEqual((new["source"], new["box_id"]), ("cold", old["box_id"]))
        self.assertGreater(new["generation"], old["generation"])
        # The time of that check has passed when this lease, begun after it, is over.
        other = self.d.acquire("u", "clock", lease_seconds=1.5)["box_id"]
        wait_for("its lease to end", lambda: self.state(other) == "warm")
        now = self.d.inspect(new["box_id"])
        self.assertEqual((now["state"], now["generation"], now["leases"]), ("active", new["generation"], 1))
        self.assertEqual(self.counter("check_failures"), failures)
        self.assertEqual(self.d.sh(new["box_id"], "echo ok"), "ok\n")


class Replicas(BehaviourTest):
    config = "replicas: 2\nreplica_policy: reject\n"

    def test_replicas_count_active_plus_warm(self):
        a, b = (self.d.acquire("u", t)["box_id"] for t in "ab")
        r = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "c"})
        self.assertEqual((r.status, r.reason), (429, "capacity_exceeded"))
        self.assertEqual([r.json["error"][k] for k in ("active", "warm", "replicas")], [2, 0, 2])
        self.d.release(a)
        self.assertEqual(self.d.acquire("u", "b")["source"], "active", "no room is needed for what is there")
        c = self.d.acquire("u", "c")["box_id"]  # takes the place of the warm one
        wait_for("that one to be gone", lambda: self.state(a) is None)
        self.assertEqual({x["box_id"] for x in self.d.get("/v1/boxes").json["boxes"]}, {b, c})

    def test_retryable_engine_errors_do_not_invalidate(self):
        box = self.d.acquire("u", "retry")
        # No room, an image that is not to be had, another image, too much at once: each may be tried again.
        self.d.acquire("u", "second")
        refused = [
            self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "third"}),
            self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "retry", "image": "/no/such/image"}),
        ]
        self.d.release(self.d.acquire("u", "second")["box_id"])
        refused.append(self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "broken", "image": "/no/such/image"}))
        self.assertEqual([(r.status, r.reason) for r in refused],
                         [(429, "capacity_exceeded"), (409, "spec_mismatch"), (422, "image_pull_failed")])
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(contextlib.closing(self.d.connect())) for _ in range(300)]
            answers = [self.d.read(box["box_id"], "/etc/hostname", connection=c) for c in connections]
            self.assertEqual({(r.status, r.reason) for r in answers if r.status != 200}, {(429, "too_many_connections")})
        now = self.d.inspect(box["box_id"])
        self.assertEqual((now["state"], now["generation"], now["leases"]), ("active", box["generation"], 1))
        self.assertEqual(self.d.sh(box["box_id"], "echo ok"), "ok\n")


class Eviction(BehaviourTest):
    config = "replicas: 4\n"

    def test_eviction_takes_the_oldest_warm_only(self):
        active = self.d.acquire("u", "active")["box_id"]
        a, b, c = (self.d.acquire("u", t)["box_id"] for t in "abc")
        for box in (a, b, c):
            self.d.release(box)
        self.d.acquire("u", "a")
        self.d.release(a)  # b is the oldest now
        for thread, victim, kept in (("d", b, {active, a, c}), ("e", c, {active, a})):
            before = self.counter("evictions")
            self.d.acquire("u", thread)
            wait_for("the victim to be gone", lambda: self.state(victim) is None)
            self.assertEqual(self.counter("evictions"), before + 1)
            self.assertLessEqual(kept, {x["box_id"] for x in self.d.get("/v1/boxes").json["boxes"]})
        self.assertEqual(self.state(active), "active")


class Reaper(BehaviourTest):
    config = "replicas: 50\nidle_timeout: 0.5\n"

    def test_reset_parks_and_the_reaper_later_collects(self):
        boxes = [self.d.acquire("u", t)["box_id"] for t in "ab"]
        before = self.counter("idle_closes")
        self.assertEqual(self.d.post("/v1/pool/reset").json, {"parked": 2})
        self.assertLessEqual({self.state(b) for b in boxes}, {"warm", "closing", None})
        wait_for("both to be collected", lambda: self.d.pool()["boxes"] == 0)
        self.assertEqual(self.counter("idle_closes"), before + 2)


class NoReaper(BehaviourTest):
    config = "replicas: 50\nidle_timeout: 0\nactive_idle_timeout: 0.5\n"

    def test_idle_timeout_0_disables(self):
        warm = self.d.acquire("u", "warm")
        self.d.release(warm["box_id"])
        # An active box, which idles for less long, is collected: the reaper was here.
        active = self.d.acquire("u", "active")["box_id"]
        wait_for("the active one to be collected", lambda: self.state(active) is None)
        now = self.d.inspect(warm["box_id"])
        self.assertEqual((now["state"], now["generation"]), ("warm", warm["generation"]))


class Shutdown(unittest.TestCase):
    def test_release_during_shutdown_closes(self):
        d = Daemon()
        try:
            box = d.acquire("u", "t")
            os.kill(d.inspect(box["box_id"])["pid"], signal.SIGSTOP)  # so that its closing takes a while
            c = d.connect()
            c.request("POST", "/v1/shutdown")
            wait_for("the shutdown", lambda: d.inspect(box["box_id"])["state"] == "closing")
            for lease in (box["lease_id"], None):
                self.assertEqual(d.release(box["box_id"], lease).json, {"status": "closed"})
            r = d.post("/v1/acquire", {"user_id": "u", "thread_id": "t"})
            self.assertEqual((r.status, r.reason), (503, "shutting_down"))
            self.assertEqual(c.getresponse().status, 200)
            c.close()
            self.assertEqual(d.process.wait(BOUND), 0)
            self.assertEqual(d.remains(), [])
        finally:
            d.kill()
            d.remove()


if __name__ == "__main__":
    unittest.main()
