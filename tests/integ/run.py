"""Runs integration tests, over the driver that SBX_DRIVER names: those that are for it (backends.py)."""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
import unittest

import backends


def reason(test):
    """Why a test is not for this driver, or None: its module, its class or it itself is named."""
    parts = test.id().split(".")
    names = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return next((backends.current.apart[name] for name in names if name in backends.current.apart), None)


def each(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from each(part)
        else:
            yield part


def chosen(suite):
    """The tests of a suite that are for this driver; of the others it is told why not."""
    told = {}
    keep = unittest.TestSuite()
    for test in each(suite):
        why = reason(test)
        if why is None:
            keep.addTest(test)
        else:
            told.setdefault((type(test).__module__, why), []).append(test)
    for (module, why), tests in told.items():
        print(f"{module}: {len(tests)} not over {backends.NAME}: {why}", file=sys.stderr)
    return keep


class Loader(unittest.TestLoader):
    def loadTestsFromNames(self, names, module=None):
        return chosen(super().loadTestsFromNames(names, module))


class Result(unittest.TextTestResult):
    """Tells with -v which modules take long; what a class sets up counts for its first test."""

    def startTestRun(self):
        super().startTestRun()
        self.last = time.monotonic()
        self.seconds = {}

    def stopTest(self, test):
        super().stopTest(test)
        now = time.monotonic()
        module = type(test).__module__
        self.seconds[module] = self.seconds.get(module, 0) + now - self.last
        self.last = now

    def stopTestRun(self):
        super().stopTestRun()
        if self.showAll:
            for module, seconds in sorted(self.seconds.items(), key=lambda row: -row[1]):
                self.stream.writeln(f"{seconds:6.0f} s  {module}")


class Runner(unittest.TextTestRunner):
    resultclass = Result


def run_apart(options, module):
    """In a process of its own. Of each other's daemons tests would see the mounts: it has a mount namespace, where it may."""
    own_mounts = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
    r = subprocess.run([*own_mounts, sys.executable, __file__, *options, module], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, errors="replace", check=False)
    return r.returncode, r.stdout


def told(options, module):
    """Runs it and says what came of it: (how many tests ran, whether one failed). Without -v only what failed says more."""
    begun = time.monotonic()
    status, said = run_apart(options, module)
    ran = sum(map(int, re.findall(r"^Ran (\d+) tests? in", said, re.M)))
    row = f"{'FAILED' if status else 'passed'} {time.monotonic() - begun:5.0f} s {ran:4} tests  {module}\n"
    print((said if status or options else "") + row, end="", flush=True)
    return ran, status != 0


def in_turn(modules):
    """What runs one after the other: emulated machines take a processor each, so that is one row; each other module is one."""
    machines = [module for module in modules if module.startswith("test_qemu")]
    return [machines] * bool(machines) + [[module] for module in modules if module not in machines]


def run_some(jobs, options, modules):
    """So many at a time; whether one failed."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(lambda row: [told(options, module) for module in row], in_turn(modules)))
    ran, failed = map(sum, zip(*(result for row in rows for result in row)))
    print(f"{ran} integration tests in {len(modules)} modules" + (f", of which {failed} failed" if failed else " passed"))
    return failed > 0


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="so many modules at a time, each in a process of its own")
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("tests", nargs="+", metavar="TEST", help="a module, a class or a test")
    args = p.parse_args()
    options = ["-v"] if args.verbose else []
    if args.jobs > 1 and len(args.tests) > 1:
        sys.exit(run_some(args.jobs, options, args.tests))
    unittest.main(module=None, argv=[sys.argv[0], *options, *args.tests], testLoader=Loader(), testRunner=Runner)


if __name__ == "__main__":
    main()
