"""Runs integration tests, over the driver that SBX_DRIVER names: those that are for it (backends.py)."""

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


if __name__ == "__main__":
    unittest.main(module=None, testLoader=Loader(), testRunner=Runner)
