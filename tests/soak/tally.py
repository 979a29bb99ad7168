"""What all clients of a soak count, in shared memory: it outlives a client that is killed. And which boxes carry their mark."""

import mmap
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name) for name in ("crash", "integ")]

from agent import BOUND  # noqa: E402

SOURCES = ("active", "warm", "prewarmed", "cold")
# What may be answered while everything is killed and reloaded: 429 by policy, 408 and 502 when a box was not to be had in time.
OKAY = {
    "acquire": (200, 408, 429, 502, 503),
    "release": (200, 404, 503),
    "remove": (204, 404, 409, 503),
    "run": (200, 404, 409, 410, 422, 429, 503),
    "read": (200, 404, 409, 410, 429, 503),
    "write": (200, 204, 404, 409, 410, 429, 503),
}
ROWS = [f"source {s}" for s in SOURCES] + [f"{kind} {status}" for kind, okay in OKAY.items() for status in (*okay, "ended")]
SLOWEST = [f"slowest {kind}" for kind in OKAY]  # us
NAMES = ROWS + SLOWEST
INDEX = {name: i for i, name in enumerate(NAMES)}

STOP = 0  # word that tells clients to come to an end
HEAD = 8  # words before the marks
PID_BITS = 22


def scope(uid, first, i):
    """The i-th of a uid, with the same names for every uid; the last member is its number among all."""
    return uid, f"user{i // 8}", f"thread{i % 8}", first + i


class Tally:
    """Words of shared memory: the flag to stop, one word for each scope, one row of counters for each client."""

    def __init__(self, path, scopes, clients, failures, make=False):
        self.scopes = scopes
        self.failures = failures
        size = 8 * (HEAD + scopes + clients * len(NAMES))
        with open(path, "w+b" if make else "r+b") as f:
            if make:
                f.truncate(size)
            self.map = mmap.mmap(f.fileno(), size)
        self.words = memoryview(self.map).cast("Q")
        self.base = 0
        self.clients = clients

    def become(self, client):
        self.base = HEAD + self.scopes + client * len(NAMES)

    def count(self, name, n=1):
        self.words[self.base + INDEX[name]] += n

    def total(self, name):
        at = (HEAD + self.scopes + c * len(NAMES) + INDEX[name] for c in range(self.clients))
        return (max if name in SLOWEST else sum)(self.words[i] for i in at)

    def stopped(self):
        return self.words[STOP] != 0

    def stop(self):
        self.words[STOP] = 1

    def fail(self, text):
        with open(self.failures, "a", encoding="utf-8") as f:  # one write: lines of several clients do not mix
            f.write(text.replace("\n", " ") + "\n")

    # ---- as a board (tests/crash/board.py); a scope is (uid, user, thread, number) ----

    def note(self, kind, answer):
        name = f"{kind} {answer.status}"
        if name in INDEX:
            self.count(name)
        else:
            self.fail(f"{kind}: {answer}")
        slowest = self.base + INDEX[f"slowest {kind}"]
        self.words[slowest] = max(self.words[slowest], int(answer.seconds * 1e6))
        if answer.seconds > BOUND:
            self.fail(f"{kind}: answered after {answer.seconds:.1f} s")
        return answer.status < 300

    def note_ended(self, kind):
        self.count(f"{kind} ended")

    @staticmethod
    def packed(box):
        return box["generation"] << PID_BITS | box["pid"]

    def is_marked(self, scope, box):
        return self.words[HEAD + scope[3]] == self.packed(box)

    def set_marked(self, scope, box):
        self.words[HEAD + scope[3]] = self.packed(box)
