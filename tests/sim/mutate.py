#!/usr/bin/env python3
"""mutate: the simulator must find what is wrong.

Does each row of mutants.py to a copy of one file of the pool, links the simulator with it, and runs
seeds until one is violated. Fails when the old text is not there exactly once, or when a mutant
lives. Arguments: the simulator's object files; CC and CFLAGS come in the environment.
"""
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from mutants import MUTANTS

SEEDS = 20000
OUT = "build/sim/mutants"
CC = os.environ.get("CC", "gcc")
CFLAGS = shlex.split(os.environ["CFLAGS"])


class Bad(Exception):
    """The mutant cannot be made, or it lives."""


def make(number, file, old, new, objects):
    """The path of a simulator with that one change."""
    with open("supervisor/" + file, encoding="utf-8") as f:
        text = f.read()
    if text.count(old) != 1:
        raise Bad("the old text is there %d times in %s" % (text.count(old), file))
    base = "%s/%02d" % (OUT, number)
    with open(base + ".c", "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))
    # What is left unused by the change is no error of it.
    subprocess.run([CC, *CFLAGS, "-w", "-c", "-o", base + ".o", base + ".c"], check=True)
    kept = [o for o in objects if not o.endswith("/supervisor/" + file[:-2] + ".o")]
    subprocess.run([CC, *CFLAGS, "-pie", "-o", base, base + ".o", *kept, "-lbsd", "-pthread"], check=True)
    return base


def catch(number, mutant, objects):
    """What the simulator says of it."""
    what, file, old, new = mutant
    try:
        program = make(number, file, old, new, objects)
        run = subprocess.run([program, "1", str(SEEDS)], capture_output=True, text=True, check=False)
        found = re.search(r"violation: seed (\d+), step \d+: (.*)", run.stdout)
        if run.returncode == 0:
            raise Bad("%d seeds find nothing" % SEEDS)
        if not found:
            raise Bad("it ends without a violation: %s%s" % (run.stdout[-200:], run.stderr[-200:]))
        return True, "caught   %s: seed %s: %s" % (what, found[1], found[2].split(" (tests/")[0])
    except (Bad, subprocess.CalledProcessError) as e:
        return False, "MISSED   %s: %s" % (what, e)


def main():
    objects = sys.argv[1:]
    os.makedirs(OUT, exist_ok=True)
    caught = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for good, line in pool.map(lambda n: catch(n, MUTANTS[n], objects), range(len(MUTANTS))):
            print(line, flush=True)
            caught += good
    print("sim-mutations: %d of %d caught" % (caught, len(MUTANTS)))
    return 0 if caught == len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
