#!/usr/bin/env python3
"""check: runs spin over scope_lock.pml: the model as it is, in which no error may be found, and each
mutation of it, in which one must be. Prints how many states that were. Bounded: a minute.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scope_lock.pml")
SAFE, LIVE = "safety", "liveness"
SECONDS = 240  # of one run, on a machine that has much else to do


def bounds(worker_crashes, sbxd_crashes, hangs, *more):
    return ["WORKER_CRASHES=%d" % worker_crashes, "SBXD_CRASHES=%d" % sbxd_crashes, "HANGS=%d" % hangs, *more]


# what, kind of claims, definitions
RUNS = [
    ("one scope", SAFE, bounds(2, 1, 1)),
    ("two scopes", SAFE, bounds(1, 1, 1, "TWO_SCOPES")),
    ("sbxd crashes twice", SAFE, bounds(1, 2, 0)),
    ("repair may fail", SAFE, bounds(1, 1, 0, "REPAIR_MAY_FAIL")),
    ("one scope", LIVE, bounds(1, 1, 1)),
    ("two scopes", LIVE, bounds(1, 1, 0, "TWO_SCOPES")),
    ("repair may fail", LIVE, bounds(1, 1, 0, "REPAIR_MAY_FAIL")),
]
MUTATIONS = [
    ("consistent without repair", SAFE, bounds(1, 0, 0, "MUTATION_NO_REPAIR")),
    ("unlocked without having been made consistent", SAFE, bounds(1, 0, 0, "MUTATION_NEVER_CONSISTENT")),
    ("the lock of a dead worker is not recovered", SAFE, bounds(1, 0, 0, "MUTATION_NO_RECOVERY")),
    ("the mutex is not robust", SAFE, bounds(1, 0, 0, "MUTATION_PLAIN_MUTEX")),
    ("a slot is used again while its worker closes", SAFE, bounds(0, 0, 0, "MUTATION_EARLY_REUSE", "TWO_SCOPES")),
    ("a successor takes the table for empty", SAFE, bounds(0, 1, 0, "MUTATION_NO_RESTORE")),
    ("a worker is told to boot before the table shows its pid", SAFE,
     bounds(0, 1, 0, "MUTATION_ORDER_BEFORE_PID")),
    ("who waits is forgotten when a worker dies", LIVE, bounds(1, 0, 0, "MUTATION_LOST_WAITER")),
    ("a worker that hangs is not killed", LIVE, bounds(0, 0, 1, "MUTATION_NO_DEADLINE")),
]


class Bad(Exception):
    """Not what was expected of a run."""


def command(*argv, cwd):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise Bad("%s: %s%s" % (argv[0], done.stdout[-500:], done.stderr[-500:]))
    return done.stdout


def verify(kind, definitions):
    """(errors, states)"""
    with tempfile.TemporaryDirectory() as place:
        order = ["-DANY_ORDER"] if kind == SAFE else []
        command("spin", *order, *["-D" + d for d in definitions], "-a", MODEL, cwd=place)
        flags = ["-DSAFETY", "-DNOCLAIM"] if kind == SAFE else ["-DNFAIR=3"]
        # Not optimized: what spin writes takes longer to optimize than to run.
        command("gcc", "-w", *flags, "-DVECTORSZ=2048", "-o", "pan", "pan.c", cwd=place)
        options = ["-n", "-m200000"] + (["-a", "-f"] if kind == LIVE else [])
        out = command("./pan", *options, cwd=place)
        errors = re.search(r"errors: (\d+)", out)
        states = re.search(r"(\d+) states, stored", out)
        if not errors or not states or "max search depth too small" in out or "Search not completed" in out and \
                errors[1] == "0":
            raise Bad("the search was not complete: " + out[-500:])
        return int(errors[1]), int(states[1])


def run(row, expected):
    what, kind, definitions = row
    try:
        errors, states = verify(kind, definitions)
    except (Bad, subprocess.TimeoutExpired) as e:
        return False, "FAILED   %-9s %s: %s" % (kind, what, e)
    verdict = ("ok" if errors == 0 else "caught") if (errors > 0) == (expected > 0) else \
        ("NOT OK" if errors else "MISSED")
    return verdict in ("ok", "caught"), "%-8s %-9s %s: %d states" % (verdict, kind, what, states)


def main():
    good = True
    rows = [(r, 0) for r in RUNS] + [(m, 1) for m in MUTATIONS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for passed, line in pool.map(lambda r: run(*r), rows):
            print("model: " + line, flush=True)
            good = good and passed
    print("model: %s" % ("every claim holds, and every mutation is caught" if good else "FAILED"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
