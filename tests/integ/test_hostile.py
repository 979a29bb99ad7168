"""Everybody at his worst: clients that stall, flood and hang up, workers that lie, processes that die under load."""

import collections
import json
import os
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
import unittest

import harness
from harness import IS_ROOT, ROOT, Census, Daemon, DaemonTest, descendants, in_threads, open_fds, slurp, wait_for

ANSWER_BOUND = 20  # seconds; no client may wait longer here, whatever dies


def raw(d, data=b"", timeout=ANSWER_BOUND):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(timeout)
    s.connect(d.socket)
    if data:  # one that is refused at once may be closed already
        s.sendall(data)
    return s


def http(method, path, body=None, extra=""):
    data = b"" if body is None else json.dumps(body).encode()
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{extra}Content-Length: {len(data)}\r\n\r\n".encode() + data


def status(s):
    """Status of the answer whose first bytes come next; 0 when the connection ended without one."""
    try:
        got = s.recv(65536)
    except ConnectionError:
        return 0
    return int(got[9:12]) if got else 0


class Clients(DaemonTest):
    config = "replicas: 12\n"

    def setUp(self):
        self.box = self.d.acquire("h", self.id())["box_id"]
        self.run_path = f"/v1/boxes/{self.box}/run"

    def tearDown(self):
        self.assertEqual(self.d.sh(self.box, "echo alive"), "alive\n")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{self.box}?force=true").status, 204)

    def test_a_path_that_the_worker_does_not_know_is_answered_once(self):
        for tail in ("fs/read/more", "fs/a/b/c", "fs/x", "fs%2fread"):
            s = raw(self.d, http("GET", f"/v1/boxes/{self.box}/{tail}"))
            self.assertEqual(status(s), 404, tail)
            s.close()
        s = raw(self.d, http("GET", f"/v1/boxes/{'0' * 140}:{self.box}/fs/read"))
        self.assertEqual(status(s), 404, "a name that only sbxd can read")
        s.close()
        before = self.d.pool()["counters"]["handovers"]
        for _ in range(5):
            self.assertEqual(self.d.pool()["counters"]["handovers"], before, "nothing goes to and fro")

    def test_half_closed_clients_get_their_answer(self):
        for request in (http("GET", "/v1/pool"), http("POST", self.run_path, {"command": "sleep 0.1; echo half"})):
            s = raw(self.d, request)
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(status(s), 200)
            s.close()

    def test_hanging_up_after_every_byte(self):
        for request in (http("POST", self.run_path, {"command": "echo x"}), http("GET", "/v1/boxes"),
                        http("PUT", f"/v1/boxes/{self.box}/fs/write?path=/tmp/q", "abcdef")):
            for n in range(len(request) + 1):
                raw(self.d, request[:n]).close()
        wait_for("all to be forgotten", lambda: self.d.pool()["clients"] == 1)
        wait_for("no operation", lambda: self.d.inspect(self.box)["in_flight"] == 0)

    def test_stalling_at_every_byte_disturbs_nobody(self):
        request = http("POST", self.run_path, {"command": "echo x"})
        stalled = [raw(self.d, request[:n]) for n in range(1, len(request))]
        began = time.monotonic()
        self.assertEqual(self.d.sh(self.box, "echo ok"), "ok\n")
        self.assertLess(time.monotonic() - began, 2)
        for n, s in enumerate(stalled, 1):
            s.sendall(request[n:])
        self.assertEqual({status(s) for s in stalled}, {200}, "late is not lost")
        for s in stalled:
            s.close()

    def test_a_thousand_pipelined_requests_for_sbxd_and_the_worker_in_turn(self):
        ours, theirs = http("GET", "/v1/pool"), http("GET", f"/v1/boxes/{self.box}/fs/read?path=/etc/hostname")
        s = raw(self.d)
        sent = in_threads(2, lambda i: self.read_answers(s, 1000) if i else s.sendall((ours + theirs) * 500))
        self.assertEqual(sent[1], 1000)
        s.close()

    def read_answers(self, s, n):
        got = b""
        while got.count(b"HTTP/1.1 200 ") < n:
            more = s.recv(1 << 16)
            self.assertTrue(more, "the connection ended")
            got += more
        return got.count(b"HTTP/1.1 ")

    def test_more_connections_than_a_box_takes(self):
        some = [raw(self.d, http("GET", f"/v1/boxes/{self.box}/fs/read?path=/etc/hostname")) for _ in range(300)]
        answers = collections.Counter(status(s) for s in some)
        self.assertEqual(answers, {200: 256, 429: 44})
        self.assertEqual(self.d.get("/v1/pool").status, 200)
        for s in some:
            s.close()
        wait_for("them to be forgotten", lambda: self.d.pool()["clients"] == 1)
        wait_for("room in the box", lambda: self.d.post(self.run_path, {"command": "true"}).status == 200)

    def test_hanging_up_in_the_middle_leaves_nothing_running(self):
        r = random.Random(1)
        for _ in range(10):
            s = raw(self.d, f"PUT /v1/boxes/{self.box}/fs/write?path=/tmp/big HTTP/1.1\r\nHost: x\r\n"
                            "Content-Length: 50000000\r\n\r\n".encode())
            s.sendall(bytes(r.randrange(1000000)))
            s.close()
            s = raw(self.d, http("POST", self.run_path, {"command": "cat /dev/zero"}, "Accept: application/x-ndjson\r\n"))
            s.recv(r.randrange(1, 200000))
            s.close()
            raw(self.d, http("POST", self.run_path, {"command": "sleep 1000"})).close()
        wait_for("no operation", lambda: self.d.inspect(self.box)["in_flight"] == 0)
        self.assertEqual(self.d.sh(self.box, "cat /proc/[0-9]*/comm | grep -xc -e cat -e sleep; ls -A /tmp"), "1\n")

    def test_random_bytes(self):
        r = random.Random(2)
        handed = http("GET", f"/v1/boxes/{self.box}/fs/read?path=/etc/hostname")
        for i in range(200):
            s = raw(self.d, handed if i % 2 else b"")
            if i % 2:
                self.assertEqual(status(s), 200)
            try:
                s.sendall(r.randbytes(r.randrange(1, 3000)))
            except ConnectionError:
                pass
            s.close()
        wait_for("all to be forgotten", lambda: self.d.pool()["clients"] == 1)

    def test_hundreds_of_connections(self):
        before = len(open_fds(self.d.process.pid))
        some = [raw(self.d) for _ in range(900)]
        wait_for("all to be accepted", lambda: self.d.pool()["clients"] > 900)
        for s in some:
            s.close()
        wait_for("all to be forgotten", lambda: len(open_fds(self.d.process.pid)) <= before)


class Chaos(DaemonTest):
    """Workers, guests, commands and the janitor are killed at random while clients work."""

    config = "replicas: 8\nmax_boxes: 30\nacquire_timeout: 15\n"

    def client(self, seed, until):
        r = random.Random(seed)
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                box = self.d.post("/v1/acquire", {"user_id": "c", "thread_id": str(r.randrange(14))}, timeout=ANSWER_BOUND)
                self.assertEqual(box.status, 200, box)
                path = f"/v1/boxes/{box.json['box_id']}"
                work = r.choice([{"command": "echo hi; sleep 0.05"}, {"command": "head -c 2000000 /dev/zero | tr '\\0' x"}])
                done = self.d.post(f"{path}/run", work, timeout=ANSWER_BOUND)
                if done.status == 422:  # its shim was hit
                    self.assertIn("killed before it began", done.json["error"]["message"])
                else:
                    self.assertIn(done.status, (200, 404, 410), done)
                self.d.post(f"{path}/release", {"lease_id": box.json["lease_id"]}, timeout=ANSWER_BOUND)
            except (ConnectionError, harness.http.client.HTTPException):
                pass  # its worker died in the middle of the answer
            self.assertLess(time.monotonic() - began, ANSWER_BOUND)

    def killer(self, until):
        r = random.Random(3)
        while time.monotonic() < until:
            self.census.add(self.d.process.pid)
            victims = descendants(self.d.process.pid)
            time.sleep(r.random() * 0.1)
            if victims:
                try:
                    os.kill(r.choice(victims), r.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
                except ProcessLookupError:
                    pass

    def test_everybody_is_served_and_nothing_is_left(self):
        self.census = Census()
        until = time.monotonic() + 4
        in_threads(13, lambda i: self.client(i, until) if i else self.killer(until))
        boxes = in_threads(14, lambda i: self.d.acquire("c", str(i)))
        for b in boxes:
            self.assertEqual(self.d.sh(b["box_id"], "echo ok"), "ok\n")
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true").status, 204)
        wait_for("no box", lambda: self.d.pool()["boxes"] == 0)
        self.assertEqual(self.d.pool()["states"]["quarantined"], 0)
        left = set(self.census.alive()) - {self.d.process.pid, *descendants(self.d.process.pid)}
        self.assertEqual(left, set())


LIAR = r'''
import array, os, random, socket, struct, sys, time
lie = open(os.path.join(os.path.dirname(sys.argv[0]), "lie")).read()
s = socket.socket(fileno=3)
s.setblocking(True)
MESSAGE_NUMBERS
gen = struct.unpack_from("<Q", s.recv(100000), 16)[0]

def say(kind, body, tail=b"", fds=(), g=gen):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([struct.pack("<HHIQQ", VERSION, kind, len(tail), 0, g) + body + tail], rights)

def up(g=gen):
    say(HELLO, struct.pack("<IiII", 0, os.getpid(), 0, 0), g=g)
    say(BOOTED, struct.pack("<iIQQ16s", 1, 0, 5, 1, b"namespace"), g=g)

def failed(kind, text=b"", g=gen):
    say(kind, struct.pack("<iI32s160s", 0, 0, b"x", text), g=g)

def conn(cookie):
    return struct.pack("<QII64s64s", cookie, 0, 0, b"", b"")

if lie == "garbage":
    s.send(random.randbytes(500))
elif lie == "closes":
    s.close()
elif lie == "other generations":
    for g in (0, gen - 1, gen + 1, 2**64 - 1):
        up(g)
        for kind in (FAILED, CHECKED, BOX_DIED):
            failed(kind, g=g)
elif lie == "text without an end":
    failed(FAILED, b"z" * 160)
elif lie == "janitor's words":
    say(DONE, bytes(440))
elif lie == "flood":
    up()
    while True:
        failed(CHECKED)
elif lie == "strange descriptors":
    up()
    data, rights, _, _ = s.recvmsg(100000, socket.CMSG_SPACE(16))
    cookie = struct.unpack_from("<Q", data, 24)[0]
    pair = socket.socketpair()
    null = os.open("/dev/null", os.O_RDONLY)
    say(HANDBACK, conn(cookie), fds=[pair[0].fileno()])
    say(HANDBACK, conn(cookie), fds=[null])
    say(HANDBACK, conn(12345), fds=[pair[1].fileno()])
    say(HANDBACK, conn(cookie), fds=[pair[0].fileno(), pair[1].fileno()])
time.sleep(1000)
'''


def message_numbers():
    """The version and the enum of wire/control.h as assignments in Python."""
    header = slurp(f"{ROOT}/wire/control.h")
    version = re.search(r"#define CTL_VERSION (\d+)U", header).group(1)
    names = re.findall(r"^\tCTL_(\w+)", re.search(r"enum ctl_type \{(.*?)\};", header, re.S).group(1), re.M)
    return f"VERSION = {version}\n" + "".join(f"{name} = {number}\n" for number, name in enumerate(names))


class LyingWorker(unittest.TestCase):
    """sbx-worker is replaced by a program that breaks the control contract; the janitor is the real one."""

    refused = ("garbage", "closes", "other generations", "text without an end", "janitor's words")

    @classmethod
    def setUpClass(cls):
        cls.real = harness.BUILD
        cls.build = tempfile.mkdtemp(prefix="sbxd-test-build-")
        for name in ("sbxd", "sbx-guest", "sbx-files", "sbxctl", "sbx-worker"):
            shutil.copy(f"{cls.real}/{name}", f"{cls.build}/{name}{'.real' if name == 'sbx-worker' else ''}")
        with open(f"{cls.build}/liar", "w", encoding="ascii") as f:
            f.write(LIAR.replace("MESSAGE_NUMBERS", message_numbers()))
        with open(f"{cls.build}/sbx-worker", "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\n[ "$1" = janitor ] && exec {cls.build}/sbx-worker.real "$@"\n'
                    f'exec {sys.executable} {cls.build}/liar\n')
        os.chmod(f"{cls.build}/sbx-worker", 0o755)
        harness.BUILD = cls.build
        cls.d = Daemon("replicas: 4\nboot_timeout: 2\nhealth_check_timeout: 1\n")

    @classmethod
    def tearDownClass(cls):
        harness.BUILD = cls.real
        census = Census()
        census.add(cls.d.process.pid)
        ended = cls.d.stop()
        assert (ended, cls.d.remains(), census.alive()) == (0, [], []), cls.d.log()[-3000:]
        cls.d.remove()
        shutil.rmtree(cls.build)

    def acquire(self, lie):
        with open(f"{self.build}/lie", "w", encoding="ascii") as f:
            f.write(lie)
        return self.d.post("/v1/acquire", {"user_id": "lie", "thread_id": lie}, timeout=ANSWER_BOUND)

    def test_a_boot_that_is_a_lie_fails_in_time(self):
        for lie in self.refused:
            r = self.acquire(lie)
            self.assertEqual((r.status, r.reason), (502, "boot_failed"), lie)
        wait_for("no box", lambda: self.d.pool()["boxes"] == 0)

    def test_a_flood_of_messages_does_not_starve_others(self):
        box = self.acquire("flood")
        self.assertEqual(box.status, 200)
        for _ in range(20):
            began = time.monotonic()
            self.assertEqual(self.d.get("/v1/pool").status, 200)
            self.assertLess(time.monotonic() - began, 2)
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box.json['box_id']}?force=true").status, 204)

    def test_only_descriptors_that_it_was_given_come_back(self):
        box = self.acquire("strange descriptors")
        self.assertEqual(box.status, 200)
        before = len(open_fds(self.d.process.pid))
        r = self.d.post(f"/v1/boxes/{box.json['box_id']}/run", {"command": "true"}, timeout=ANSWER_BOUND)
        self.assertEqual((r.status, r.reason), (410, "worker_crashed"))
        wait_for("the box to be gone", lambda: self.d.pool()["boxes"] == 0)
        wait_for("its descriptors to be closed", lambda: len(open_fds(self.d.process.pid)) < before)


class Scarce(unittest.TestCase):
    def test_descriptors(self):
        d = Daemon("max_boxes: 20\n", wrapper=("prlimit", "--nofile=260:260"))
        try:
            box = d.acquire("few", "t")["box_id"]
            some = [raw(d) for _ in range(200)]
            answers = collections.Counter(status(s) for s in some[100:])
            self.assertEqual(answers, {429: 100}, "refused, not left waiting")
            some[0].sendall(http("POST", "/v1/acquire", {"user_id": "few", "thread_id": "u"}))
            self.assertEqual(status(some[0]), 200, "who is in is served")
            for s in some:
                s.close()
            wait_for("room", lambda: d.get("/v1/pool").status == 200)
            self.assertEqual(d.sh(box, "echo ok"), "ok\n")
            self.assertEqual((d.stop(), d.remains()), (0, []))
        finally:
            d.kill()
            d.remove()

    @unittest.skipUnless(IS_ROOT, "mounts a small /dev/shm")
    def test_shared_memory(self):
        small = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" "$@"'
        d = Daemon(wait=False, wrapper=("unshare", "-m", "sh", "-c", small))
        self.assertNotEqual(d.process.wait(ANSWER_BOUND), 0)
        self.assertIn("No space left on device", d.log(), "said, instead of a SIGBUS later")
        self.assertEqual(d.remains(), [])
        d.remove()


if __name__ == "__main__":
    unittest.main()
