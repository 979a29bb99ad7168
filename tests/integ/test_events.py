"""The flight recorder: the stream of the service, sbxctl events, and what is left of it after sbxd died."""

import json
import os
import signal
import socket
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import BOUND, BUILD, IS_ROOT, Daemon, DaemonTest, open_fds, wait_for

OTHER_UID = 4711


class Stream:
    """One GET /v1/events, read message by message, with nothing between us and the socket."""

    def __init__(self, path, query="", headers=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(BOUND)
        self.socket.connect(path)
        self.place = None
        lines = [f"GET /v1/events{query} HTTP/1.0", *(f"{k}: {v}" for k, v in (headers or {}).items()), "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, value = line.decode().strip().split(": ", 1)
            self.headers[name] = value

    def message(self):
        """The next message with data: a dictionary of its fields, or None at the end."""
        fields = {}
        end = time.monotonic() + BOUND
        for line in self.file:
            assert time.monotonic() < end, "the stream says nothing but that it lives"
            line = line.decode().rstrip("\n")
            if line.startswith(":"):
                continue
            if line:
                name, value = line.split(": ", 1)
                fields[name] = json.loads(value) if name == "data" else value
            elif "data" in fields:
                return fields
            else:
                self.place = int(fields["id"])  # where the stream begins, or goes on in silence
                fields = {}
        return None

    def until(self, kind, **data):
        """All messages up to and with the first of that kind that has these data."""
        got = []
        while True:
            m = self.message()
            assert m is not None, f"the stream ended without {kind} {data}: {got}"
            got.append(m)
            if m["event"] == kind and all(m["data"].get(k) == v for k, v in data.items()):
                return got

    def rest(self):
        got = []
        while m := self.message():
            got.append(m)
        return got

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()


def steps(messages):
    """What happened, in short: kinds, and where states went to."""
    return [m["data"].get("to", m["event"]) for m in messages]


class EventsTest(DaemonTest):
    config = "replicas: 50\n"

    def stream(self, query="", **headers):
        return Stream(self.d.socket, query, {k.replace("_", "-"): v for k, v in headers.items()})

    def remove(self, box):
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)


class Events(EventsTest):
    def test_a_stream_follows_the_life_of_a_box(self):
        with self.stream() as s:
            self.assertEqual((s.status, s.headers["Content-Type"]), (200, "text/event-stream"))
            box = self.d.post("/v1/acquire", {"user_id": "ev", "thread_id": "life"}, headers={"X-Request-Id": "my-id.7"}).json
            self.d.release(box["box_id"])
            self.d.release(box["box_id"])
            self.assertEqual(self.d.acquire("ev", "life")["source"], "warm")
            self.remove(box["box_id"])
            got = s.until("state", to="free", box_id=box["box_id"])
        mine = [m for m in got if m["data"].get("box_id") == box["box_id"]]
        self.assertEqual(steps(mine), ["reserved", "booting", "active", "lease", "release", "warm", "checking", "active", "lease",
                                       "release", "closing", "free"])
        for m in got:
            self.assertEqual(m["id"], str(m["data"]["seq"]))
            self.assertEqual(m["event"], m["data"]["kind"])
            self.assertRegex(m["data"]["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual([int(m["id"]) for m in got], list(range(int(got[0]["id"]), int(got[-1]["id"]) + 1)))
        lease = next(m["data"] for m in mine if m["event"] == "lease")
        self.assertEqual((lease["reason"], lease["request_id"], lease["uid"], lease["pid"]), ("cold", "my-id.7", os.geteuid(), box["pid"]))
        self.assertEqual({m["data"]["generation"] for m in mine}, {box["generation"]})

    def test_a_crash_is_told_at_once(self):
        box = self.d.acquire("ev", "crash")
        with self.stream() as s:
            os.kill(box["pid"], signal.SIGKILL)
            got = s.until("worker_crash", box_id=box["box_id"])
            self.assertEqual(got[-1]["data"]["pid"], box["pid"])
            s.until("state", to="free")

    def test_resuming_leaves_no_gap_and_repeats_nothing(self):
        with self.stream() as s:
            box = self.d.acquire("ev", "resume")["box_id"]
            first = s.until("lease", box_id=box)
        self.d.release(box)
        self.remove(box)
        with self.stream(Last_Event_ID=first[-1]["id"]) as s:
            second = s.until("state", to="free", box_id=box)
        with self.stream(f"?since={first[-1]['id']}&follow=0") as s:
            third = s.rest()
        ids = [int(m["id"]) for m in first + second]
        self.assertEqual(ids, list(range(ids[0], ids[-1] + 1)))
        self.assertEqual(third[:len(second)], second)
        self.assertEqual(steps([m for m in first + second if m["data"].get("box_id") == box])[-3:], ["warm", "closing", "free"])

    def test_without_follow_it_ends_with_what_is_there(self):
        with self.stream("?since=0&follow=0") as s:
            first, *rest = s.rest()
        self.assertEqual(first["event"], "supervisor_start")
        self.assertEqual(first["data"]["pid"], self.d.process.pid)
        c = self.d.connect()  # and over HTTP/1.1 the connection goes on
        for _ in range(2):
            r = self.d.get("/v1/events?follow=0&since=0", connection=c)
            self.assertEqual((r.status, r.headers["Transfer-Encoding"]), (200, "chunked"))
            self.assertTrue(r.body.startswith(b"id: 1\nevent: supervisor_start\ndata: {"))
        self.assertEqual(self.d.get("/v1/pool", connection=c).status, 200)
        c.close()

    def test_questions_that_are_wrong(self):
        for path, status in (("?since=x", 400), ("?follow=maybe", 400), ("", 405)):
            method = "POST" if status == 405 else "GET"
            self.assertEqual(self.d.request(method, f"/v1/events{path}").status, status)
        r = self.d.request("HEAD", "/v1/events")
        self.assertEqual((r.status, r.headers["Content-Type"], r.body), (200, "text/event-stream", b""))

    @unittest.skipUnless(IS_ROOT, "takes another uid")
    def test_another_uid_sees_only_its_own(self):
        os.chmod(self.d.socket, 0o666)  # here anybody may connect
        own = self.d.acquire("ev", "mine")["box_id"]
        script = ("import json, os, socket, sys; os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))\n"
                  "def ask(text):\n"
                  "    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(text.encode()); got = b''\n"
                  "    while part := s.recv(65536): got += part\n"
                  "    return got.decode()\n"
                  "body = json.dumps({'user_id': 'ev', 'thread_id': 'his'})\n"
                  "ask(f'POST /v1/acquire HTTP/1.0\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}')\n"
                  "print(ask('GET /v1/events?since=0&follow=0 HTTP/1.0\\r\\n\\r\\n'))\n")
        r = subprocess.run(["python3", "-c", script, self.d.socket, str(OTHER_UID)], capture_output=True, text=True, timeout=BOUND * 2)
        self.assertEqual(r.returncode, 0, r.stderr)
        seen = [json.loads(line[6:]) for line in r.stdout.splitlines() if line.startswith("data: ")]
        self.assertEqual([e.get("to", e["kind"]) for e in seen], ["reserved", "booting", "active", "lease"])
        self.assertEqual({e["uid"] for e in seen}, {OTHER_UID})
        self.assertNotIn(own, r.stdout)
        with self.stream("?since=0&follow=0") as s:  # we are an admin and see all
            everything = s.rest()
        self.assertEqual({m["data"]["uid"] for m in everything if "uid" in m["data"]} - {os.geteuid()}, {OTHER_UID})
        self.remove(f"{OTHER_UID}:{seen[0]['box_id']}")
        self.remove(own)

    def test_descriptors_are_back_when_followers_have_left(self):
        def quiet():
            return len(open_fds(self.d.process.pid)) if self.d.pool()["clients"] == 1 else None

        before = wait_for("quiet", quiet)
        streams = [self.stream() for _ in range(20)]
        self.assertGreaterEqual(len(open_fds(self.d.process.pid)), before + 19)
        for s in streams:
            s.close()
        # The first count may hold a connection that was about to be closed.
        wait_for(f"{before} descriptors", lambda: len(open_fds(self.d.process.pid)) <= before)


class SlowReader(EventsTest):
    def test_a_slow_reader_loses_records_and_delays_nobody(self):
        box = self.d.acquire("ev", "slow")["box_id"]
        with self.stream() as slow, self.stream() as quick, ThreadPoolExecutor(1) as thread:
            reading = thread.submit(quick.until, "state", to="free", box_id=box)
            c = self.d.connect()
            # More than the ring (4096) and the socket hold, two records at a time.
            for _ in range((4096 + 2048) // 2):
                lease = self.d.post("/v1/acquire", {"user_id": "ev", "thread_id": "slow"}, connection=c).json["lease_id"]
                self.d.post(f"/v1/boxes/{box}/release", {"lease_id": lease}, connection=c)
            c.close()
            self.remove(box)
            for messages, is_slow in ((reading.result(BOUND), False), (slow.until("state", to="free", box_id=box), True)):
                lost = [m["data"]["count"] for m in messages if m["event"] == "lost"]
                self.assertEqual(len(lost), is_slow)
                said = len(messages) - len(lost)
                place = slow.place if is_slow else quick.place
                self.assertEqual(place + said + sum(lost), int(messages[-1]["id"]), "each record was said or counted")


class AfterTheEnd(unittest.TestCase):
    """What sbxd recorded is there when sbxd is not."""

    def setUp(self):
        self.d = Daemon("replicas: 50\norphan_grace: 1\n")

    def tearDown(self):
        self.d.kill()
        self.d.remove()

    def events(self, *args, **kw):
        return subprocess.Popen([f"{BUILD}/sbxctl", "events", "--json", "--instance", self.d.instance, *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **kw)

    def finish(self):
        self.d.start()
        self.assertEqual(self.d.stop(), 0)
        self.assertEqual(self.d.remains(), [])

    def test_a_stream_ends_with_sbxd(self):
        s = Stream(self.d.socket)
        self.assertEqual(self.d.stop(), 0)
        self.assertIsNone(s.message())
        s.close()
        self.d.start()
        s = Stream(self.d.socket)
        self.d.kill()
        self.assertIsNone(s.message())
        s.close()
        self.finish()

    def test_the_recorder_is_read_after_kill_9(self):
        box = self.d.acquire("ev", "dead")
        self.d.kill()
        p = self.events()
        got = [json.loads(line) for line in p.stdout]
        self.assertEqual((p.wait(BOUND), p.stderr.read()), (0, ""))
        p.stdout.close()
        p.stderr.close()
        self.assertEqual([e.get("to", e["kind"]) for e in got], ["supervisor_start", "reserved", "booting", "active", "lease"])
        self.assertEqual(got[-1]["box_id"], box["box_id"])
        self.assertEqual([e["seq"] for e in got], [1, 2, 3, 4, 5])
        text = self.d.ctl("shm", "dump", "--instance", self.d.instance).stdout.decode()
        lines = text[text.index("EVENTS\n"):].splitlines()[1:6]
        self.assertEqual([line.split()[0] for line in lines], ["1", "2", "3", "4", "5"])
        self.assertRegex(lines[3], rf"\S+Z state +{box['box_id']} booting->active +acquired$")
        self.assertEqual(json.loads(self.d.ctl("--json", "shm", "dump", "--instance", self.d.instance).stdout)["events"], got)
        self.finish()

    def test_following_goes_on_over_a_restart(self):
        p = self.events("-f")
        self.assertEqual(json.loads(p.stdout.readline())["kind"], "supervisor_start")
        self.d.kill()
        self.d.start()
        while json.loads(line := p.stdout.readline())["kind"] != "supervisor_start":
            pass
        self.assertEqual(json.loads(line)["pid"], self.d.process.pid)
        box = self.d.acquire("ev", "next")["box_id"]
        while json.loads(line := p.stdout.readline())["kind"] != "lease":
            pass
        self.assertEqual(json.loads(line)["box_id"], box)
        p.send_signal(signal.SIGTERM)
        out, _ = p.communicate(timeout=BOUND)
        self.assertEqual((p.returncode, out), (0, ""))
        self.assertEqual(self.d.stop(), 0)
        self.assertEqual(self.d.remains(), [])


if __name__ == "__main__":
    unittest.main()
