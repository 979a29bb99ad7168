"""The life of a box as the BoxLite Box API has it: made, started, used, stopped, removed, listed."""

import json
import os
import signal
import threading
import time
import unittest
import uuid

import backends
from harness import BOUND, IS_ROOT, DaemonTest, Fault, Reply, in_threads, wait_for

ID = r"^[0-9a-f]{16}$"
DEAF = "trap '' TERM; touch /tmp/deaf; while :; do sleep 1000; done"


class BoxesTest(DaemonTest):
    config = "replicas: 50\n"

    def tearDown(self):
        for b in self.d.get("/v1/boxes?all=true").json["boxes"]:
            if b["box_id"]:
                self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def create(self, name=None, key=None, **more):
        body = {**({"name": name} if name is not None else {}), **more}
        return self.d.post("/v1/boxes", body, headers={"Idempotency-Key": key} if key else {})

    def make(self, name=None, **more):
        r = self.create(name, **more)
        self.assertEqual(r.status, 201, r)
        return r.json

    def order(self, box, what, body=None, **kw):
        return self.d.request("POST", f"/v1/boxes/{box}/{what}", body, **kw)

    def start(self, box):
        r = self.order(box, "start")
        self.assertEqual(r.status, 200, r)
        return r.json

    def stop(self, box, seconds=None):
        r = self.order(box, "stop", None if seconds is None else {"timeout_seconds": seconds})
        self.assertEqual(r.status, 200, r)
        return r.json

    def remove(self, box, force=True):
        return self.d.request("DELETE", f"/v1/boxes/{box}{'?force=true' if force else ''}")

    def status(self, box):
        return self.d.inspect(box)["status"]

    def in_background(self, fn):
        """A function that waits for fn's result."""
        results = []
        t = threading.Thread(target=lambda: results.append(fn()))
        t.start()

        def wait():
            t.join(BOUND)
            return results[0]
        return wait

    def busy(self, box, command):
        """A command that runs by the time this returns: a function that waits for its answer."""
        before = self.d.inspect(box).get("commands_total", 0)
        wait = self.in_background(lambda: self.d.run(box, command))
        wait_for("the command to run", lambda: self.d.inspect(box).get("commands_total", 0) > before)
        return wait

    def as_uid(self, uid, method, path, body=None):
        """One request from a process of another uid."""
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                reply = self.d.request(method, path, body)
                os.write(w, json.dumps([reply.status, reply.body.decode()]).encode())
            finally:
                os._exit(0)
        os.close(w)
        with os.fdopen(r, "rb") as f:
            data = f.read()
        os.waitpid(pid, 0)
        status, text = json.loads(data)
        return Reply(status, {}, text.encode())


class Make(BoxesTest):
    def test_an_anonymous_box(self):
        r = self.create()
        box = r.json
        self.assertEqual((r.status, r.headers["Location"]), (201, f"/v1/boxes/{box['box_id']}"))
        self.assertRegex(box["box_id"], ID)
        self.assertEqual((box["name"], box["status"], box["pid"], box["image"]), (None, "configured", None, backends.current.image))
        self.assertEqual((box["labels"], box["auto_pause"], box["auto_stop"], box["auto_delete"], box["auto_resume"]), ({}, 0, 0, 0, True))
        self.assertEqual((box["user_id"], box["thread_id"], box["owner_uid"]), (None, None, os.geteuid()))
        self.assertEqual(self.d.inspect(box["box_id"])["created_at"], box["created_at"])
        self.assertNotEqual(self.make()["box_id"], box["box_id"])

    def test_a_named_box(self):
        box = self.make("my-box.1")
        self.assertEqual(box["name"], "my-box.1")
        for ref in ("my-box.1", box["box_id"]):
            self.assertEqual(self.d.inspect(ref)["box_id"], box["box_id"])
            self.assertEqual(self.d.request("HEAD", f"/v1/boxes/{ref}").status, 204)
        self.assertEqual(self.d.sh("my-box.1", "echo here"), "here\n")
        self.d.write("my-box.1", "/tmp/f", b"by name")
        self.assertEqual(self.d.read(box["box_id"], "/tmp/f").body, b"by name")
        for ref in ("my-box", "my-box.11", "MY-BOX.1"):
            self.assertEqual(self.d.get(f"/v1/boxes/{ref}").status, 404)
            self.assertEqual(self.d.request("HEAD", f"/v1/boxes/{ref}").status, 404)

    def test_a_name_is_there_once(self):
        self.make("taken")
        r = self.create("taken")
        self.assertEqual((r.status, r.json["error"]["code"]), (409, "already_exists"))
        replies = in_threads(8, lambda i: self.create("raced"))
        self.assertEqual(sorted(r.status for r in replies), [201] + [409] * 7)
        self.assertEqual(len([b for b in self.d.get("/v1/boxes").json["boxes"] if b["name"] == "raced"]), 1)

    def test_what_it_is_made_of(self):
        user = "1234:4321" if IS_ROOT else "0:0"  # an ordinary user's boxes have one uid
        box = self.make(cpus=2, memory_mib=256, disk_size_gb=1, env={"A": "mine", "B": "x=y"}, working_dir="/usr/lib", user=user)
        self.assertEqual((box["cpus"], box["memory_mib"], box["disk_mib"]), (2, 256, 1024))
        b = box["box_id"]
        self.assertEqual(self.d.sh(b, "echo $A $B $PWD $(id -u):$(id -g)"), f"mine x=y /usr/lib {user}\n")
        self.assertEqual(self.d.sh(b, "echo $A $PWD $(id -u)", env={"A": "call"}, cwd="/tmp", user="0"), "call /tmp 0\n")
        other = self.make()["box_id"]
        self.assertEqual(self.d.sh(other, "echo [$A] $(id -u)"), "[] 0\n")

    def test_what_is_no_request(self):
        for body, code in (({"name": ""}, "invalid_argument"), ({"name": "a b"}, "invalid_argument"), ({"name": "0123456789abcdef"}, "invalid_argument"),
                           ({"cpus": 0}, "invalid_argument"), ({"memory_mib": 1}, "invalid_argument"), ({"env": {"1": ""}}, "invalid_argument"),
                           ({"working_dir": "tmp"}, "invalid_argument")):
            r = self.d.post("/v1/boxes", body)
            self.assertEqual((r.status, r.json["error"]["code"]), (400, code), body)
        self.assertEqual(self.d.post("/v1/boxes", "nonsense").status, 400)
        r = self.d.request("POST", "/v1/boxes")
        self.assertEqual((r.status, r.reason), (400, "malformed_request"), "BoxLite's specification requires a body")
        self.assertIn("body", r.json["error"]["message"])
        self.assertEqual(self.create(env={"A": "x" * 60000, "B": "y" * 4000}).status, 201)
        self.assertEqual(self.d.get("/v1/boxes/").status, 404)

    def test_what_cannot_be_had_is_named(self):
        for field, value in (("volumes", [{"host_path": "/", "guest_path": "/x"}]), ("secrets", [{"name": "s", "value": "v"}]),
                             ("rootfs_path", "/x"), ("entrypoint", ["/bin/sh"]), ("cmd", ["x"]), ("ports", [{"guest_port": 80}]),
                             ("security", "development"), ("advanced", {"capabilities": {"add": ["NET_ADMIN"]}}),
                             ("network", {"mode": "enabled", "allow_net": ["example.com"]}), ("auto_delete", 60), ("auto_resume", False)):
            r = self.d.post("/v1/boxes", {field: value})
            self.assertEqual((r.status, r.json["error"]["code"]), (501, "unsupported"), field)
            self.assertIn(field, r.json["error"]["message"])
        self.assertEqual(self.d.pool()["boxes"], 0)

    def test_what_the_sdk_says_without_being_asked(self):
        both = {"outbound": {"mode": "enabled"}, "inbound": {"mode": "enabled"}}
        self.make("sdk", image=backends.current.image, network=both, detach=False)
        self.make(image=backends.current.image, network={"outbound": {"mode": "disabled"}, "inbound": {"mode": "enabled"}}, detach=True, auto_stop=60)

    def test_an_image_that_is_not_to_be_had(self):
        for image in ("127.0.0.1:1/alpine:latest", "/no/such/directory"):
            r = self.create("no-image", image=image)
            self.assertEqual((r.status, r.json["error"]["code"]), (422, "image_pull_failed"), r)
            self.assertIn(image, r.json["error"]["message"])
        self.make("no-image")  # the name is free
        wait_for("nothing else to be left", lambda: self.d.pool()["boxes"] == 1)

    def test_the_worker_dies(self):
        """The box is gone with all that was in it, and its name can be used again."""
        b = self.make("dies")["box_id"]
        os.kill(self.start(b)["pid"], signal.SIGKILL)
        wait_for("it to be gone", lambda: self.d.get(f"/v1/boxes/{b}").status == 404)
        self.assertNotEqual(self.make("dies")["box_id"], b)


class Whose(BoxesTest):
    @unittest.skipUnless(IS_ROOT, "takes other uids")
    def test_names_of_two_users_do_not_meet(self):
        os.chmod(self.d.socket, 0o666)
        one = self.as_uid(2001, "POST", "/v1/boxes", {"name": "same"}).json
        two = self.as_uid(2002, "POST", "/v1/boxes", {"name": "same"}).json
        self.assertNotEqual(one["box_id"], two["box_id"])
        self.assertEqual(self.as_uid(2001, "GET", "/v1/boxes/same").json["box_id"], one["box_id"])
        self.assertEqual(self.as_uid(2001, "POST", "/v1/boxes/same/run", {"command": "echo a > /tmp/who"}).status, 200)
        self.assertEqual(self.as_uid(2002, "POST", "/v1/boxes/same/run", {"command": "cat /tmp/who"}).json["exit_code"], 1)
        for ref in ("same", one["box_id"], "2001:same", f"2001:{one['box_id']}"):
            for method, rest in (("GET", ""), ("HEAD", ""), ("DELETE", "?force=true"), ("POST", "/start"), ("POST", "/stop"), ("POST", "/run")):
                self.assertEqual(self.as_uid(2003, method, f"/v1/boxes/{ref}{rest}", {} if method == "POST" else None).status, 404, ref)
        listed = self.as_uid(2001, "GET", "/v1/boxes").json["boxes"]
        self.assertEqual([b["box_id"] for b in listed], [one["box_id"]])
        # root names them by the owner
        self.assertEqual(self.d.get("/v1/boxes/same").status, 404)
        self.assertEqual(self.d.inspect("2001:same")["box_id"], f"2001:{one['box_id']}")
        self.assertEqual(self.d.sh("2001:same", "cat /tmp/who"), "a\n")
        self.assertEqual(self.d.sh(f"2001:{one['box_id']}", "cat /tmp/who"), "a\n")
        self.assertEqual(self.stop("2001:same")["status"], "stopped")
        self.assertEqual(self.as_uid(2001, "GET", "/v1/boxes/same").json["status"], "stopped")
        self.assertEqual(self.remove("2001:same", force=False).status, 204)
        self.assertEqual(self.as_uid(2002, "GET", "/v1/boxes/same").status, 200)

    @unittest.skipUnless(IS_ROOT, "takes other uids")
    def test_a_directory_as_image_is_for_admins(self):
        os.chmod(self.d.socket, 0o666)
        r = self.as_uid(2001, "POST", "/v1/boxes", {"image": "/etc"})
        self.assertEqual((r.status, r.json["error"]["code"]), (403, "permission_denied"))

    def test_it_is_its_creators_until_it_is_removed(self):
        b = self.make("kept")["box_id"]
        self.d.sh(b, "echo mine > /tmp/f")
        self.assertEqual(self.d.release(b).json["status"], "running")
        self.assertEqual(self.d.post("/v1/pool/reset").json["parked"], 0)
        self.assertEqual((self.d.inspect(b)["state"], self.d.inspect(b)["leases"]), ("active", 1))
        box = self.d.acquire("u", "other")
        self.assertNotEqual(box["box_id"], b)
        self.assertEqual(self.d.read(b, "/tmp/f").body, b"mine\n")


class Idle(BoxesTest):
    config = "replicas: 1\nidle_timeout: 0.2\nactive_idle_timeout: 0.2\n"

    def test_neither_time_nor_need_takes_it(self):
        b = self.make("idle")["box_id"]
        self.start(b)
        for i in range(3):  # each beyond replicas; its end shows that the time of the made one has passed, too
            other = self.d.acquire("u", str(i))["box_id"]
            wait_for("the acquired one to go", lambda other=other: self.d.get(f"/v1/boxes/{other}").status == 404)
        self.assertEqual(self.status(b), "running")


class Full(BoxesTest):
    config = "replicas: 2\nreplica_policy: reject\n"

    def test_made_boxes_count(self):
        a = self.make("a")["box_id"]
        self.make("b")
        r = self.create("c")
        self.assertEqual((r.status, r.reason), (429, "capacity_exceeded"))
        self.assertIn("Retry-After", r.headers)
        self.assertEqual(self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "t"}).status, 429)
        self.stop(a)
        self.assertEqual(self.create("c").status, 429)  # a stopped one is still there
        self.remove(a)
        self.make("c")


class BootFails(BoxesTest):
    fault = Fault("boxes-boot")
    env = {"SBX_FAULT": f"worker.boot.start=fail@{fault.path}"}

    def test_the_client_is_told(self):
        self.fault.arm()
        r = self.create("fails", key=str(uuid.uuid4()))
        self.assertEqual((r.status, r.json["error"]["code"], r.reason), (502, "engine_unavailable", "boot_failed"))
        self.make("fails")


class StartStop(BoxesTest):
    def test_round_and_round(self):
        b = self.make("round")["box_id"]
        self.assertEqual(self.status(b), "configured")
        self.assertEqual(self.start(b)["status"], "running")
        self.assertIsInstance(self.start(b)["pid"], int)
        self.d.sh(b, "echo kept > /tmp/f; mkdir -p /srv/d; echo too > /srv/d/g")
        for _ in range(2):
            stopped = self.stop(b)
            self.assertEqual((stopped["status"], stopped["pid"], stopped["box_id"]), ("stopped", None, b))
        self.assertEqual(self.status(b), "stopped")
        self.assertEqual(self.start(b)["status"], "running")
        self.assertEqual(self.d.sh(b, "cat /tmp/f /srv/d/g"), "kept\ntoo\n")

    def test_use_starts_it(self):
        b = self.make()["box_id"]
        self.assertEqual(self.d.sh(b, "echo used"), "used\n")
        self.assertEqual(self.status(b), "running")
        self.stop(b)
        self.d.write(b, "/tmp/f", b"x")
        self.assertEqual(self.status(b), "running")
        self.stop(b)
        self.assertEqual(self.d.read(b, "/tmp/f").body, b"x")
        self.assertEqual(self.status(b), "running")
        counters = self.d.pool()["counters"]
        self.assertGreaterEqual(counters["starts"], 3)
        self.assertGreaterEqual(counters["stops"], 2)

    def test_stop_ends_every_process(self):
        b = self.make()["box_id"]
        self.d.sh(b, "(setsid sleep 4711 >/dev/null 2>&1 &); nohup sleep 4712 >/dev/null 2>&1 &")
        polite = self.busy(b, "trap 'echo bye; exit 3' TERM; touch /tmp/polite; while :; do sleep 0.01; done")
        wait_for("it to be polite", lambda: self.d.read(b, "/tmp/polite").status == 200)
        self.stop(b)
        reply = polite()
        self.assertEqual((reply["exit_code"], reply["stdout"]), (3, "bye\n"))
        self.assertEqual(self.d.run(b, "pgrep -c sleep")["stdout"], "0\n")

    def test_what_does_not_end_is_killed_in_time(self):
        b = self.make()["box_id"]
        deaf = self.busy(b, DEAF)
        wait_for("it to be deaf", lambda: self.d.read(b, "/tmp/deaf").status == 200)
        began = time.monotonic()
        self.stop(b, 0.3)
        self.assertGreaterEqual(time.monotonic() - began, 0.3)
        self.assertEqual((deaf()["signal"], self.status(b)), (9, "stopped"))
        deaf = self.busy(b, DEAF)
        self.stop(b, 0)
        self.assertEqual(deaf()["signal"], 9)

    def test_while_it_stops(self):
        b = self.make("stops")["box_id"]
        self.busy(b, DEAF)
        wait_for("it to be deaf", lambda: self.d.read(b, "/tmp/deaf").status == 200)
        first = self.in_background(lambda: self.order(b, "stop", {"timeout_seconds": 1}))
        wait_for("the stop to begin", lambda: self.status(b) == "stopping")
        second = self.in_background(lambda: self.order(b, "stop"))
        starts = self.in_background(lambda: self.order(b, "start"))
        for method, rest, body in (("POST", "/run", {"command": "true"}), ("GET", "/fs/read?path=/etc/hostname", None)):
            r = self.d.request(method, f"/v1/boxes/{b}{rest}", body)
            self.assertEqual((r.status, r.reason), (409, "invalid_state"))
        self.assertEqual(self.remove(b, force=False).status, 409)
        self.assertEqual([first().status, second().status, starts().status], [200, 200, 200])
        wait_for("the start, which came after one of them", lambda: self.status(b) in ("running", "stopped"))

    def test_a_connection_that_was_used_before_starts_it_again(self):
        b = self.make()["box_id"]
        c = self.d.connect()
        path = f"/v1/boxes/{b}/run"
        self.assertEqual(self.d.post(path, {"command": "echo 1"}, connection=c).json["stdout"], "1\n")
        self.stop(b)
        self.assertEqual(self.d.get("/v1/pool", connection=c).status, 200)
        self.assertEqual(self.status(b), "stopped")
        self.assertEqual(self.d.post(path, {"command": "echo 2"}, connection=c).json["stdout"], "2\n")
        self.assertEqual(self.status(b), "running")
        c.close()

    def test_an_upload_is_refused_when_it_stops(self):
        b = self.make()["box_id"]
        self.d.sh(b, "true")
        c = self.d.connect()
        c.putrequest("PUT", f"/v1/boxes/{b}/fs/write?path=/tmp/half")
        c.putheader("Content-Length", "1000")
        c.endheaders()
        c.send(b"only this")
        wait_for("the upload to begin", lambda: self.d.inspect(b)["in_flight"] == 1)
        self.stop(b)
        self.assertEqual(c.getresponse().status, 409)
        c.close()
        self.assertEqual(self.d.run(b, "ls -A /tmp")["stdout"], "")

    def test_boxes_that_are_not_stopped(self):
        acquired = self.d.acquire("u", "t")["box_id"]
        self.assertEqual(self.order(acquired, "start").json["status"], "running")
        r = self.order(acquired, "stop")
        self.assertEqual((r.status, r.json["error"]["code"]), (409, "invalid_state"))
        self.assertEqual(self.d.sh(acquired, "echo alive"), "alive\n")
        for what in ("start", "stop"):
            self.assertEqual(self.order("nobody", what).status, 404)
        b = self.make()["box_id"]
        for seconds in (-1, "1", 1e9):
            self.assertEqual(self.order(b, "stop", {"timeout_seconds": seconds}).status, 400)

    def test_the_flight_recorder_tells_of_it(self):
        b = self.make()["box_id"]
        self.start(b)
        self.stop(b)
        dump = json.loads(self.d.ctl("--instance", self.d.instance, "--json", "shm", "dump").stdout)
        kinds = [e["kind"] for e in dump["events"] if e.get("box_id") == b]
        self.assertIn("start", kinds)
        self.assertIn("stop", kinds)


class Remove(BoxesTest):
    def test_a_running_box_needs_force(self):
        b = self.make("gone")["box_id"]
        self.start(b)
        r = self.remove(b, force=False)
        self.assertEqual((r.status, r.json["error"]["code"]), (409, "invalid_state"))
        self.assertEqual(self.status(b), "running")
        self.assertEqual(self.remove("gone").status, 204)
        for ref in (b, "gone"):
            self.assertEqual(self.d.get(f"/v1/boxes/{ref}").status, 404)
            self.assertEqual(self.remove(ref).status, 404)
        self.assertNotEqual(self.make("gone")["box_id"], b)

    def test_others_do_not(self):
        self.make("fresh")
        self.stop(self.make("stopped")["box_id"])
        for name in ("fresh", "stopped"):
            self.assertEqual(self.remove(name, force=False).status, 204)
        self.assertEqual(self.d.pool()["boxes"], 0)

    def test_while_it_stops(self):
        b = self.make()["box_id"]
        busy = self.in_background(lambda: self.d.post(f"/v1/boxes/{b}/run", {"command": DEAF}))
        wait_for("it to be deaf", lambda: self.d.read(b, "/tmp/deaf").status == 200)
        stop = self.in_background(lambda: self.order(b, "stop"))
        wait_for("the stop to begin", lambda: self.status(b) == "stopping")
        self.assertEqual(self.remove(b).status, 204)
        self.assertEqual((stop().status, busy().status), (410, 410))


class Keys(BoxesTest):
    config = "replicas: 1\nreplica_policy: wait\n"

    def count(self):
        return len(self.d.get("/v1/boxes").json["boxes"])

    def test_the_same_again(self):
        key = str(uuid.uuid4())
        first = self.create("once", key=key)
        again = self.create("once", key=key)
        self.assertEqual((again.status, again.body, again.headers["Location"]), (201, first.body, first.headers["Location"]))
        self.assertEqual(self.count(), 1)
        other = self.create("twice", key=key)
        self.assertEqual((other.status, other.reason), (422, "idempotency_key_reused"))
        self.assertEqual(self.create("once", key=str(uuid.uuid4())).status, 409)
        self.remove("once")
        self.assertEqual(self.create("once", key=key).body, first.body)  # it was answered, whatever became of the box
        self.assertEqual(self.count(), 0)
        self.assertEqual(self.create(key="k" * 200).status, 400)

    def test_while_it_is_under_way(self):
        """Also when who asked first has given up: its box is made once."""
        key = str(uuid.uuid4())
        room = self.make("room")["box_id"]
        first = self.d.connect()
        first.request("POST", "/v1/boxes", json.dumps({"name": "kept"}), {"Idempotency-Key": key})
        wait_for("it to wait for room", lambda: self.d.pool()["waiters"] == 1)
        joins = self.in_background(lambda: self.create("kept", key=key))
        wait_for("the second", lambda: self.d.pool()["clients"] == 3)
        self.assertEqual(self.d.pool()["waiters"], 1)
        self.assertEqual(self.create("other", key=key).status, 422)
        first.close()
        wait_for("the first to be gone", lambda: self.d.pool()["clients"] == 2)
        self.remove(room)
        r = joins()
        self.assertEqual((r.status, r.json["name"]), (201, "kept"))
        self.assertEqual(self.create("kept", key=key).body, r.body)
        self.assertEqual(self.count(), 1)

    def test_nobody_waits_any_more(self):
        """With a key the box is made all the same; without one nobody would know of it."""
        key = str(uuid.uuid4())
        room = self.make("room")["box_id"]
        for name, headers in (("keyed", {"Idempotency-Key": key}), ("keyless", {})):
            c = self.d.connect()
            c.request("POST", "/v1/boxes", json.dumps({"name": name}), headers)
            wait_for("it to wait for room", lambda: any(True for _ in self.d.pool()["queue"]))
            c.close()
            wait_for("it to be gone", lambda: self.d.pool()["clients"] == 1)
        self.assertEqual(self.d.pool()["waiters"], 1)
        self.remove(room)
        wait_for("the box", lambda: self.d.get("/v1/boxes/keyed").status == 200 and self.status("keyed") == "configured")
        self.assertEqual(self.d.get("/v1/boxes/keyless").status, 404)
        self.assertEqual(self.create("keyed", key=key).json["box_id"], self.d.inspect("keyed")["box_id"])

    def test_what_failed_may_be_tried_again(self):
        key = str(uuid.uuid4())
        body = {"name": "again", "image": "/tmp/sbxd-no-such-image"}
        r = self.d.post("/v1/boxes", body, headers={"Idempotency-Key": key})
        self.assertEqual(r.status, 422)
        r = self.d.post("/v1/boxes", {"name": "again"}, headers={"Idempotency-Key": key})
        self.assertEqual(r.status, 201, "another request, for the first had no effect")

    @unittest.skipUnless(IS_ROOT, "takes other uids")
    def test_a_key_is_its_users_own(self):
        os.chmod(self.d.socket, 0o666)
        key = str(uuid.uuid4())
        mine = self.create("mine", key=key).json
        self.remove("mine")
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setresuid(2001, 2001, 2001)
            reply = self.create("mine", key=key)
            os.write(w, reply.body)
            os._exit(0)
        os.close(w)
        with os.fdopen(r, "rb") as f:
            theirs = json.loads(f.read())
        os.waitpid(pid, 0)
        self.assertEqual(theirs["owner_uid"], 2001)
        self.assertNotEqual(theirs["box_id"], mine["box_id"])


class List(BoxesTest):
    def ids(self, query=""):
        r = self.d.get(f"/v1/boxes{query}")
        self.assertEqual(r.status, 200, r)
        return [b["box_id"] for b in r.json["boxes"]], r.json.get("next_page_token")

    def test_pages(self):
        made = [self.make()["box_id"] for _ in range(7)]
        self.assertEqual(self.ids(), (made, None))
        first, token = self.ids("?pageSize=3")
        self.assertEqual(first, made[:3])
        # Between pages boxes go, on both sides of the border, and others come.
        self.remove(made[1])
        self.remove(made[2])
        self.remove(made[4])
        late = self.make()["box_id"]
        second, token = self.ids(f"?pageSize=3&pageToken={token}")
        self.assertEqual(second, [made[3], made[5], made[6]])
        self.assertEqual(self.ids(f"?pageToken={token}"), ([late], None))
        self.assertEqual(self.ids("?pageSize=5"), ([made[0], made[3], made[5], made[6], late], None))

    def test_by_status(self):
        a, b, c = (self.make()["box_id"] for _ in range(3))
        self.start(b)
        self.stop(c)
        acquired = self.d.acquire("u", "t")
        self.assertEqual(self.ids("?status=configured")[0], [a])
        self.assertEqual(self.ids("?status=running")[0], [b, acquired["box_id"]])
        self.assertEqual(self.ids("?status=stopped")[0], [c])
        self.assertEqual(self.ids("?status=paused")[0], [])
        listed = {x["box_id"]: x for x in self.d.get("/v1/boxes").json["boxes"]}
        self.assertEqual((listed[acquired["box_id"]]["name"], listed[acquired["box_id"]]["thread_id"]), (None, "t"))

    def test_what_is_no_query(self):
        for query in ("pageSize=0", "pageSize=1001", "pageSize=x", "pageSize=-1", "pageSize=", "pageToken=x", "pageToken=g", "pageToken=g-1",
                      "pageToken=gzz", "pageToken=" + "g" + "1" * 30, "status=up", "status=", "all=2"):
            r = self.d.get(f"/v1/boxes?{query}")
            self.assertEqual((r.status, r.json["error"]["code"]), (400, "invalid_argument"), query)

    def test_sbxctl_shows_names(self):
        b = self.make("shown")["box_id"]
        self.stop("shown")
        for instance in (("--instance", self.d.instance), ()):
            line = next(x for x in self.d.ctl("ps", *instance).stdout.decode().splitlines() if b in x)
            self.assertEqual(line.split()[:3], [b, "shown", "stopped"])
        self.assertIn("shown", self.d.ctl("inspect", "shown").stdout.decode())
        self.assertEqual(self.d.ctl("rm", "shown").returncode, 0)
        self.assertEqual(self.d.get("/v1/boxes/shown").status, 404)


if __name__ == "__main__":
    unittest.main()
