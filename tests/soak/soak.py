"""Many clients over thousands of scopes, while workers, boxes, clients and sbxd itself are killed at random and the configuration
changes; then everything must be as specified.

  make soak [T=60] [SEED=n] [KILLS="worker guest client janitor sbxd leave"]
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tally  # finds the modules that follow
import invariants
from agent import BOUND, Ended, Overdue
from estate import Baseline, boxes, within
from harness import ROOT, slurp
from load import STOCK, UIDS
from service import Service, settings_text
from stimuli import STIMULI, kill_any_guest

CLIENTS = 9
PER_UID = 1000
LEASE = 5  # seconds, in client.py
SETTINGS = {"replicas": 60, "replica_policy": "soft", "acquire_timeout": 10, "max_boxes": 200, "max_concurrent_boots": 4, "idle_timeout": 30,
            "health_check_timeout": 3, "boot_timeout": 10, "orphan_grace": 30}
KINDS = {"worker": 50, "guest": 30, "client": 12, "sbxd": 4, "janitor": 3, "leave": 1}  # how often, of a hundred
KILL_EVERY = 0.3  # seconds, on average
RELOAD_EVERY = 1.5
SAMPLE = 300  # scopes that are acquired once more after a short soak; all of them after a long one
LONG = 600


class Fleet:
    """The client processes; one that was killed is started again."""

    def __init__(self, service, folder, seed):
        self.service = service
        self.folder = folder
        self.seed = seed
        self.begun = 0
        self.scopes = [tally.scope(uid, u * PER_UID, i) for u, uid in enumerate(UIDS) for i in range(PER_UID)]
        self.tally = tally.Tally(f"{folder}/tally", len(self.scopes), CLIENTS, f"{folder}/failures", make=True)
        self.processes = [self.start(n) for n in range(CLIENTS)]

    def start(self, n):
        u = n % len(UIDS)
        self.begun += 1
        job = {"number": n, "seed": f"{self.seed}/{self.begun}", "uid": UIDS[u], "first_scope": u * PER_UID, "per_uid": PER_UID,
               "scopes": len(self.scopes), "clients": CLIENTS, "tally": f"{self.folder}/tally", "failures": f"{self.folder}/failures",
               "socket": self.service.socket, "hold": self.service.hold.file.name}
        with open(f"{self.folder}/stderr", "a", encoding="utf-8") as err:
            return subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py"), json.dumps(job)],
                                    stderr=err)

    def kill_one(self):
        n = random.randrange(CLIENTS)
        self.processes[n].kill()
        self.processes[n].wait()
        self.processes[n] = self.start(n)

    def fallen(self):
        """Clients that ended by themselves: they must not."""
        return [n for n, p in enumerate(self.processes) if p.poll() is not None]

    def stop(self):
        """How many do not come to an end in time: a client without an answer."""
        self.tally.stop()
        end = time.monotonic() + BOUND * 2
        late = 0
        for p in self.processes:
            try:
                p.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                late += 1
                p.kill()
                p.wait()
        return late


class Soak:
    def __init__(self, seed, kinds):
        self.kinds = kinds
        self.service = Service(settings_text(SETTINGS))
        self.folder = tempfile.mkdtemp(prefix="sbxd-soak-")
        self.baseline = Baseline(self.service)
        self.log = invariants.Log(self.service)
        self.kills = collections.Counter()
        self.reloads = 0
        self.wrong = []
        self.fleet = Fleet(self.service, self.folder, seed)

    # ---- what is done to it ----

    def strike(self):
        kind = random.choices(self.kinds, [KINDS[kind] for kind in self.kinds])[0]
        self.kills[kind] += 1
        if kind == "client":
            self.fleet.kill_one()
            return
        if kind == "guest":
            kill_any_guest(self.service)
            return
        life = self.service.lives[-1]
        STIMULI[kind].act(self.service, ())
        if STIMULI[kind].away:
            self.take_over(life)

    def take_over(self, life):
        self.service.await_next(life)
        # Each client may have had one request under way that ended a box.
        self.wrong += invariants.survivors(self.service, life, CLIENTS)
        self.service.forget_kept()
        self.service.hold.clear()

    def reload(self):
        changes = {"replicas": random.choice((4, 20, 60, 100)), "replica_policy": random.choice(("soft", "soft", "wait", "burst", "reject")),
                   "burst_limit": random.randrange(10), "acquire_timeout": random.randrange(5, 15), "idle_timeout": random.choice((1, 5, 60)),
                   "health_check_skip_seconds": random.choice((0, 0.5)), "prewarm": random.choice((0, STOCK))}
        self.reloads += 1
        self.configure({**SETTINGS, **changes})

    def configure(self, settings):
        self.service.write_config(settings_text(settings))
        os.kill(self.service.pid, signal.SIGHUP)  # it serves: before that it would end of it

    def run(self, seconds):
        end = time.monotonic() + seconds
        next_kill = next_reload = time.monotonic() + 1
        while (now := time.monotonic()) < end and not self.wrong:
            if now >= next_kill:
                next_kill = now + random.expovariate(1 / KILL_EVERY)
                self.strike()
            if now >= next_reload:
                next_reload = now + random.expovariate(1 / RELOAD_EVERY)
                self.reload()
            self.look()
            time.sleep(0.01)

    def look(self):
        self.wrong += self.service.unexpected_ends(0)
        self.wrong += [f"client {n} ended by itself" for n in self.fleet.fallen()]

    # ---- what must hold ----

    def leases_left(self):
        held = [b for b in boxes(self.service) if b["leases"]]
        return [f"{len(held)} boxes have leases that nobody holds"] if held else []

    def every_scope(self, seconds):
        scopes = self.fleet.scopes
        if seconds < LONG:
            used = {(b["owner_uid"], b["user_id"], b["thread_id"]) for b in boxes(self.service)}
            scopes = [s for s in scopes if s[:3] in used] + random.sample(scopes, SAMPLE)
        self.fleet.tally.become(0)
        return sum((invariants.every_scope(self.service, self.fleet.tally, scopes[i:i + SAMPLE]) for i in range(0, len(scopes), SAMPLE)), [])

    def finish(self, seconds):
        self.configure(SETTINGS)
        late = self.fleet.stop()
        self.wrong += [f"{late} clients are without an answer"] * bool(late)
        self.wrong += within(LEASE + BOUND, self.leases_left)
        self.wrong += invariants.at_rest(self.service, collections.Counter(), self.baseline)
        self.wrong += self.every_scope(seconds)
        self.wrong += invariants.emptied(self.service, self.baseline)
        self.wrong += self.service.unexpected_ends(0) + self.log.wrong()

    def close(self):
        """The end of it, whatever was wrong."""
        self.service.hold.clear()
        self.fleet.stop()
        try:
            status = self.service.stop()
            remains = self.service.remains()
            self.wrong += [f"sbxd ended with {status}"] * (status != 0) + [f"left behind: {remains}"] * bool(remains)
        except AssertionError as e:
            self.wrong.append(f"its end: {e}")
        finally:
            self.service.kill()
            failures = f"{self.folder}/failures"
            self.wrong += slurp(failures).splitlines()[:20] if os.path.exists(failures) else []
            self.wrong += slurp(f"{self.folder}/stderr").splitlines()[-5:]
            if self.wrong:
                os.makedirs(f"{ROOT}/build/crash", exist_ok=True)
                shutil.copyfile(self.service.log_path, f"{ROOT}/build/crash/soak.log")
            self.service.remove()
            shutil.rmtree(self.folder)

    # ---- the table ----

    def put_table(self, seconds):
        t = self.fleet.tally
        sources = {s: t.total(f"source {s}") for s in tally.SOURCES}
        print(f"acquires  {sum(sources.values()):8}   {sum(sources.values()) / seconds:.0f} a second   "
              + ", ".join(f"{s} {n}" for s, n in sources.items()))
        print(f"kills     {sum(self.kills.values()):8}   " + ", ".join(f"{kind} {n}" for kind, n in self.kills.most_common()))
        print(f"reloads   {self.reloads:8}   lives of sbxd {len(self.service.lives)}")
        for kind, okay in tally.OKAY.items():
            counts = {status: t.total(f"{kind} {status}") for status in (*okay, "ended")}
            print(f"{kind:9} {sum(counts.values()):8}   " + ", ".join(f"{status}: {n}" for status, n in counts.items() if n)
                  + f"   slowest {t.total(f'slowest {kind}') / 1e6:.2f} s")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--seed", default=str(random.randrange(1 << 32)))
    p.add_argument("--kills", nargs="*", choices=KINDS)
    args = p.parse_args()
    random.seed(args.seed)
    soak = Soak(args.seed, args.kills or list(KINDS))
    began = time.monotonic()
    try:
        soak.run(args.seconds)
        soak.finish(args.seconds)
    except (AssertionError, Ended, Overdue) as e:
        soak.wrong.append(f"{type(e).__name__}: {e}")
    finally:
        soak.put_table(time.monotonic() - began)
        soak.close()
    for text in soak.wrong[:30]:
        print(f"FAILED: {text[:500]}")
    print(f"soak: {'failed; log: build/crash/soak.log' if soak.wrong else 'passed'}, {time.monotonic() - began:.0f} s, seed {args.seed}")
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
