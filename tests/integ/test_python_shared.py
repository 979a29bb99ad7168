"""Many processes and threads share scopes through the Python client, and processes are killed at random.

SBX_SHARED_SECONDS says for how long (`make python-soak`: 60).
"""

import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from harness import BOUND, slurp, wait_for
from pyclient import ClientTest, environment

PROCESSES, THREADS, SCOPES = 8, 8, 20
SECONDS = float(os.environ.get("SBX_SHARED_SECONDS", "5"))

# Works until its stdin ends, then tells how its calls went. What must never be is written down at once.
WORKER = """
import collections, hashlib, json, os, random, sys, threading, traceback
from sbxd import Sandbox, SbxdError

threads, scopes, wrongs = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
stop, lock, counts = threading.Event(), threading.Lock(), collections.Counter()

def wrong(what):
    with open(wrongs, "a") as f:
        f.write(what + "\\n")

def use(box, scope, me):
    claim = "{ echo $SCOPE >/tmp/$ME && ln /tmp/$ME /tmp/owner 2>/dev/null; cat /tmp/owner; }"
    owner = box.run(f"cat /tmp/owner 2>/dev/null || {claim}",
                    env={"SCOPE": scope, "ME": me}).stdout.strip()
    if owner != scope:
        wrong(f"the box of {scope} is used by {owner!r}")
    what = random.randrange(5)
    if what == 0:
        box.write(f"/tmp/{me}", scope)
        if box.read(f"/tmp/{me}") != scope.encode():
            wrong("another's file was read")
    elif what == 1:
        out = b"".join(p.data for p in box.stream(["echo", me]))
        if out != me.encode() + b"\\n":
            wrong(f"another's output was read: {out}")
    elif what == 2:
        with box.exec(["cat"], timeout=60) as p:
            if p.communicate(me, timeout=60) != (me.encode(), b""):
                wrong("another's input was read")
    elif what == 3:
        box.glob("/tmp", "*")

def work(n):
    me = f"{os.getpid()}-{n}"
    while not stop.is_set() or not counts["ok"]:  # the newest process does something, too
        i = random.randrange(scopes)
        user, thread = f"u{i % 4}", f"t{i}"
        try:
            with Sandbox.acquire(user, thread) as box:
                if box.id != hashlib.sha256(f"{user}:{thread}".encode()).hexdigest()[:16]:
                    wrong(f"{user}:{thread} got {box.id}")
                use(box, f"{user}:{thread}", me)
            result = "ok"
        except SbxdError as e:
            result = type(e).__name__
        except BaseException:
            wrong(traceback.format_exc())
            raise
        with lock:
            counts[result] += 1

workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
for t in workers: t.start()
sys.stdin.read()
stop.set()
for t in workers: t.join()
print(json.dumps(counts))
"""


class Shared(ClientTest):
    config = "replicas: 12\nreplica_policy: wait\n"

    def start(self):
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, str(THREADS), str(SCOPES), self.wrongs],
            env=environment(self.d),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def test_nobody_gets_anothers_box_and_no_lease_is_left(self):
        seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
            self.wrongs = f"{place}/wrongs"
            workers = [self.start() for _ in range(PROCESSES)]
            kills, end = 0, time.monotonic() + SECONDS
            try:
                while time.monotonic() < end:
                    time.sleep(rng.uniform(0.1, 1.5))  # the pace of the kills: nothing is waited for
                    i = rng.randrange(PROCESSES)
                    self.assertIsNone(workers[i].poll(), "a worker ended by itself")
                    workers[i].kill()
                    workers[i].communicate()
                    workers[i] = self.start()
                    kills += 1
                said = [json.loads(w.communicate(timeout=BOUND * 8)[0]) for w in workers]
                self.assertEqual([w.returncode for w in workers], [0] * PROCESSES)
            finally:
                for w in workers:
                    w.kill()
                    w.communicate()
            self.assertEqual(slurp(self.wrongs) if os.path.exists(self.wrongs) else "", "", f"SEED={seed}")
        total = sum((collections.Counter(s) for s in said), collections.Counter())
        print(f"{kills} kills, survivors' calls: {dict(total)}", file=sys.stderr)
        for s in said:
            self.assertGreater(s.get("ok", 0), 0, f"a survivor did nothing: {said}, SEED={seed}")
        self.assertLessEqual(set(total), {"ok", "CapacityExceeded", "ServiceTimeout"}, f"SEED={seed}")
        self.assertGreater(kills, 0)
        wait_for("all leases to end", lambda: self.client.pool()["active"] == 0)
        self.assertEqual([b["leases"] for b in self.d.get("/v1/boxes?all=1").json["boxes"] if b["leases"]], [])
        self.assertEqual(self.client.pool()["waiters"], 0)
