"""One thread of a process that is held, while its others run: by ptrace, which SIGSTOP cannot do.

A process of its own holds it: whoever traces a thread must be a single one, and its end lets go.
"""

import subprocess
import sys

HOLD = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
tid = int(sys.argv[1])
SEIZE, INTERRUPT = 0x4206, 0x4207
for request in (SEIZE, INTERRUPT):
    if libc.ptrace(request, tid, None, None) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(tid, 0x40000000)  # __WALL
print("held", flush=True)
sys.stdin.read()
"""


class Stopped:
    """with Stopped(tid): the thread does nothing; a process is meant by the id of its first thread."""

    def __init__(self, tid):
        self.tid = tid

    def __enter__(self):
        self.holder = subprocess.Popen([sys.executable, "-c", HOLD, str(self.tid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"held\n":
            raise AssertionError(f"thread {self.tid} cannot be held")
        return self

    def __exit__(self, *_):
        self.holder.communicate()
