"""Another process held by ptrace(2): unlike one that is stopped by a signal, nobody in its box can let it go on."""

import ctypes
import os

CONT, DETACH, SYSCALL, SEIZE, INTERRUPT = 7, 17, 24, 0x4206, 0x4207
WALL = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


class Held:
    """From its making on it makes no step of its own. All calls come from one thread."""

    def __init__(self, pid):
        self.pid = pid
        self.ended = False
        self.call(SEIZE)
        self.call(INTERRUPT)
        self.wait()

    def call(self, request):
        if LIBC.ptrace(request, self.pid, None, None) < 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request} of {self.pid}")

    def wait(self):
        """Until it stands still again, or has ended."""
        status = os.waitpid(self.pid, WALL)[1]
        self.ended = os.WIFEXITED(status) or os.WIFSIGNALED(status)

    def steps(self, n):
        """It makes so many system calls. False: it has ended."""
        for _ in range(2 * n):
            if self.ended:
                break
            try:
                self.call(SYSCALL)
            except ProcessLookupError:  # it is being killed
                pass
            self.wait()
        return not self.ended

    def let_go(self):
        if not self.ended:
            self.call(DETACH)
            self.ended = True

    def see_end(self):
        """Waits until somebody has killed it; only then those who started it hear of it."""
        while not self.ended:
            self.wait()
