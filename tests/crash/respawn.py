"""Starts sbxd and starts it again at once when it ends, as a service manager would; a process of its own.

It is the subreaper of what sbxd leaves behind: workers outlive it, and whoever ends is reaped here, so that no zombie is
taken for a leak. stdin: a job as a line of JSON, then what shall be different when sbxd ends next: "last" (it is not started
again), "delay SECONDS" (not at once), "spoil" (its table is damaged). stdout: a line of JSON for each start and end. The end of
stdin ends sbxd.
"""

import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
FAILED_PAUSE = 0.05  # a start that fails is not tried as fast as it can


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def is_worker(pid):
    """Of a box, not the janitor; and alive."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return b"\0box\0" in f.read()
    except OSError:
        return False


def workers():
    """What sbxd left: our own children by now."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:
        return [pid for pid in map(int, f.read().split()) if is_worker(pid)]


class Respawner:
    def __init__(self, job):
        self.job = job
        self.pid = 0
        self.start_at = None
        self.again = True
        self.spoil = False
        self.delay = 0.0

    def start(self):
        self.start_at = None
        with open(self.job["log"], "ab") as log:
            process = subprocess.Popen(self.job["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, **self.job["env"]})
        self.pid = process.pid
        process.returncode = 0  # it is waited for here, not by subprocess
        say(started=self.pid)

    def ended(self, status):
        """Clients are held, and the table of the dead is kept, before its successor can change anything."""
        at = time.monotonic()
        pid, self.pid = self.pid, 0
        if self.again:
            with open(self.job["hold"], "r+b", buffering=0) as hold:
                hold.write(b"1")
        if os.path.exists(self.job["table"]):
            shutil.copyfile(self.job["table"], f"{self.job['kept']}{pid}")
            if self.spoil:
                with open(self.job["table"], "r+b") as table:  # truncated, it would end the workers that map it
                    table.write(bytes(64))
        if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
            self.delay += FAILED_PAUSE
        if self.again:
            self.start_at = at + self.delay
        say(ended=pid, status=status, workers=workers())
        self.delay = 0.0
        self.spoil = False

    def reap(self):
        """False when there is no child left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.ended(status)

    def obey(self, line):
        word, *rest = line.decode().split() or [""]
        if word == "last":
            self.again = False
        elif word == "delay":
            self.delay = float(rest[0])
        elif word == "spoil":
            self.spoil = True
        else:  # whoever started us is gone
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
            os._exit(0)

    def due(self):
        """Seconds until sbxd is to be started, None when it is not."""
        return None if self.start_at is None else max(0.0, self.start_at - time.monotonic())


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us tells us
    r = Respawner(json.loads(sys.stdin.buffer.raw.readline()))
    r.start()
    events = selectors.DefaultSelector()
    events.register(wake_read, selectors.EVENT_READ)
    events.register(sys.stdin.buffer.raw, selectors.EVENT_READ)
    while r.reap() or r.pid or r.start_at:
        if r.due() == 0:
            r.start()
        for key, _ in events.select(r.due()):
            if key.fd == wake_read:
                os.read(wake_read, 4096)
            else:
                r.obey(sys.stdin.buffer.raw.readline())


if __name__ == "__main__":
    main()
