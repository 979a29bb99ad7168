"""The fault points of the sources, and a file that arms any of them for one role (lib/fault.h)."""

import glob
import mmap
import os
import re
import tempfile

from harness import ROOT, slurp

ROLES = ("sbxd", "worker", "janitor", "image")
SOURCES = ("lib", "shm", "wire", "supervisor", "worker", "drivers")


def driver_of(name):
    """The driver whose point it is (`driver.boxlite.born`, or of its own program, `boxlite.remove`), or None."""
    folders = [os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{ROOT}/drivers/*/")]
    return next((d for d in folders if d != "image" and name.startswith((f"driver.{d}.", f"{d}."))), None)


def find(driver):
    """Names of the fault points that a service with that driver (drivers.py) is to pass, sorted: new ones enter by themselves."""
    names = set()
    for folder in SOURCES:
        for path in glob.glob(f"{ROOT}/{folder}/**/*.[ch]", recursive=True):
            names.update(re.findall(r'\bFAULT_(?:POINT|FAILS)\("([^"]+)"\)', slurp(path)))
    return sorted(name for name in names if driver_of(name) in (None, driver.name) and not driver.elsewhere.match(name))


def roles(name):
    """Who may pass it: a driver's own program, or anybody else."""
    driver = driver_of(name)
    return (driver,) if driver and not name.startswith("driver.") else ROLES


class Points:
    """One byte for each (point, role); `action` is what happens once where a byte is armed."""

    def __init__(self, names, action):
        self.pairs = [(name, role) for name in names for role in roles(name)]
        self.file = tempfile.NamedTemporaryFile(prefix="sbxd-test-fault-")
        self.file.write(b"0" * mmap.PAGESIZE)
        self.file.flush()
        self.page = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)
        self.action = action

    def env(self):
        entries = (f"{role}/{name}={self.action}@{self.file.name}+{i}" for i, (name, role) in enumerate(self.pairs))
        return {"SBX_FAULT": ",".join(entries)}

    def arm(self, pair):
        self.page[self.pairs.index(pair)] = ord("1")

    def disarm(self, pair):
        """True when it was still armed."""
        i = self.pairs.index(pair)
        was = self.page[i] == ord("1")
        self.page[i] = ord("0")
        return was

    def hit(self, pair):
        return self.page[self.pairs.index(pair)] == ord("0")

    def close(self):
        self.page.close()
        self.file.close()
