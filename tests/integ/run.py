"""Runs integration tests, over the driver that SBX_DRIVER names: those that are for it (backends.py)."""

import sys
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


if __name__ == "__main__":
    unittest.main(module=None, testLoader=Loader())
