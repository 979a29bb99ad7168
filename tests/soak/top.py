"""sbxtop over many boxes under load: it does not grow, and no row that it shows is torn.

  make soak-top [T=600] [BOXES=1000]
"""

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integ"))

from harness import BUILD, Daemon, descendants, open_fds, proc_says, slurp  # noqa: E402
from terminal import Terminal  # noqa: E402

CLIENTS = 4
STATES = {"reserved", "booting", "stock", "active", "checking", "warm", "closing"}
GROWTH_KIB = 1024  # what an allocator may still take
PAUSE = 0.005  # of each client, in seconds: sbxtop must get a turn, too


def token(user, thread):
    return hashlib.sha256(f"{user}:{thread}".encode()).hexdigest()[:16]


class Load:
    def __init__(self, daemon, boxes):
        self.d = daemon
        self.scopes = [(f"user-{i % 37}", f"thread-{i}") for i in range(boxes)]
        self.by_token = {token(*scope): scope for scope in self.scopes}
        self.done = threading.Event()
        self.operations = 0
        self.errors = []
        self.threads = [threading.Thread(target=self.client, args=(n,)) for n in range(CLIENTS)]

    def client(self, n):
        chance = random.Random(n)
        c = self.d.connect(60)
        while not self.done.is_set():
            user, thread = chance.choice(self.scopes)
            try:
                got = json.loads(self.ask(c, "POST", "/v1/acquire", {"user_id": user, "thread_id": thread}))
                if chance.random() < 0.3:
                    self.ask(c, "POST", f"/v1/boxes/{got['box_id']}/run", {"command": "head -c 1000 /dev/zero"})
                if chance.random() < 0.02:
                    self.ask(c, "DELETE", f"/v1/boxes/{got['box_id']}?force=true", None)
                else:
                    self.ask(c, "POST", f"/v1/boxes/{got['box_id']}/release", {"lease_id": got["lease_id"]})
                self.operations += 1
                time.sleep(PAUSE)
            except (OSError, ValueError, KeyError) as e:
                self.errors.append(repr(e))
                c = self.d.connect(60)
        c.close()

    @staticmethod
    def ask(c, method, path, body):
        c.request(method, path, json.dumps(body) if body is not None else None)
        return c.getresponse().read()


class Watch:
    """sbxtop on a large terminal, and as JSON."""

    def __init__(self, load, daemon):
        self.load = load
        self.daemon = daemon
        self.rows = 0
        self.torn = []
        self.screens = 0
        self.sizes = []
        self.terminal = Terminal(f"exec {BUILD}/sbxtop --instance {daemon.instance} -d 0.5 -o token,state,user,thread,cpu,memory,total -s thread",
                                 120, 200, {"XDG_CONFIG_HOME": daemon.dir})
        self.terminal.wait_text("serving")
        pane = int(self.terminal.ask("pane_pid"))
        self.pid = next(p for p in [pane, *descendants(pane)] if proc_says(p, "cmdline", "/sbxtop"))

    def check(self, where, box, state, user, thread):
        self.rows += 1
        if state not in STATES or (box != "-" and (self.load.by_token.get(box) != (user, thread))):
            self.torn.append(f"{where}: {box} {state} {user} {thread}")

    def look(self):
        lines = self.terminal.lines()
        if not any("serving" in line for line in lines[:1]):
            return  # caught in the middle of being drawn
        self.screens += 1
        for line in lines:
            words = line.split()
            if len(words) >= 7 and re.fullmatch(r"[0-9a-f]{16}", words[0]):
                self.check("screen", *words[:4])

    def look_at_json(self):
        out = subprocess.run([f"{BUILD}/sbxtop", "--json", "--instance", self.daemon.instance], capture_output=True, timeout=60, check=True).stdout
        for b in json.loads(out)["boxes"]:
            self.check("json", b["box_id"] or "-", b["state"], b["user_id"], b["thread_id"])

    def measure(self):
        rss = int(re.search(r"VmRSS:\s+(\d+)", slurp(f"/proc/{self.pid}/status")).group(1))
        cpu = sum(int(n) for n in slurp(f"/proc/{self.pid}/stat").rsplit(")", 1)[1].split()[11:13])
        self.sizes.append((time.monotonic(), rss, len(open_fds(self.pid)), cpu))

    def grown(self):
        """Since it has seen every box: a quarter of the time is enough for that."""
        span = min(60, (self.sizes[-1][0] - self.sizes[0][0]) / 4)
        settled = next(s for s in self.sizes if s[0] - self.sizes[0][0] >= span)
        wrong = []
        if self.sizes[-1][1] - settled[1] > GROWTH_KIB:
            wrong.append(f"grew from {settled[1]} to {self.sizes[-1][1]} KiB")
        if self.sizes[-1][2] != settled[2]:
            wrong.append(f"had {settled[2]} descriptors, has {self.sizes[-1][2]}")
        return wrong

    def put_table(self):
        first, last = self.sizes[0], self.sizes[-1]
        share = 100 * (last[3] - first[3]) / os.sysconf("SC_CLK_TCK") / (last[0] - first[0])
        print(f"sbxtop    {first[1]} KiB at first, {last[1]} KiB at last, {last[2]} descriptors, {share:.1f} % of a cpu")
        print(f"rows      {self.rows} looked at on {self.screens} screens and in JSON, {len(self.torn)} torn")


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--seconds", type=float, default=600)
    args.add_argument("--boxes", type=int, default=1000)
    args = args.parse_args()
    d = Daemon(f"replicas: {args.boxes}\nmax_boxes: {args.boxes + 24}\nidle_timeout: 0\nhealth_check_skip_seconds: 5\n")
    load = Load(d, args.boxes)
    watch = None
    wrong = []
    try:
        for user, thread in load.scopes:
            d.release(d.acquire(user, thread)["box_id"])
        for t in load.threads:
            t.start()
        watch = Watch(load, d)
        end = time.monotonic() + args.seconds
        while time.monotonic() < end and not watch.torn:
            watch.measure()
            for _ in range(10):
                watch.look()
                time.sleep(0.2)
            watch.look_at_json()
        wrong = watch.torn[:10] + watch.grown() + load.errors[:3]
    finally:
        load.done.set()
        for t in load.threads:
            if t.ident:
                t.join()
        if watch:
            watch.put_table()
            watch.terminal.close()
        d.stop(bound=300)
        d.remove()
    print(f"load      {load.operations} acquires and releases")
    print("\n".join(wrong) if wrong else "as it must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
