"""The fault points of the sources, and a file that arms any of them for one role (lib/fault.h)."""

import glob
import mmap
import re
import tempfile

from harness import ROOT, slurp

ROLES = ("sbxd", "worker", "janitor", "image")
SOURCES = ("lib", "shm", "wire", "supervisor", "worker", "drivers")


def find():
    """Names of all fault points, sorted: new ones enter by themselves."""
    names = set()
    for folder in SOURCES:
        for path in glob.glob(f"{ROOT}/{folder}/**/*.[ch]", recursive=True):
            names.update(re.findall(r'\bFAULT_(?:POINT|FAILS)\("([^"]+)"\)', slurp(path)))
    return sorted(names)


class Points:
    """One byte for each (point, role); `action` is what happens once where a byte is armed."""

    def __init__(self, names, action):
        self.pairs = [(name, role) for name in names for role in ROLES]
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
