"""What clients of a load report: answers, times, what is wrong, and which box carries which mark."""

import collections
import threading

from agent import BOUND

MARK = "/tmp/mark"

# What may be answered when boxes are removed, evicted and killed by others; 503 only while the service is away.
OKAY = {
    "acquire": {200, 503},
    "release": {200, 404, 503},
    "remove": {204, 404, 409, 503},
    "make": {201, 409, 503},
    "start": {200, 404, 409, 410, 503},
    "stop": {200, 404, 409, 410, 503},
    "run": {200, 404, 409, 410, 503},
    "exec": {200, 201, 204, 404, 409, 410, 503},
    "read": {200, 404, 409, 410, 503},
    "write": {200, 204, 404, 409, 410, 503},
    "look": {200, 404, 503},
}


def box_is(box):
    """Names one box for good: generations may begin anew with a new table."""
    return box["generation"], box["pid"]


class Board:
    def __init__(self, saves=False):
        self.saves = saves  # a box may carry the mark that an earlier generation of it got
        self.lock = threading.Lock()
        self.answers = collections.Counter()
        self.wrong = []
        self.slowest = (0.0, "")
        self.marks = {}  # scope -> the box whose mark was written
        self.lost = collections.Counter()  # scope -> leases of which nobody knows whether they are held
        self.boots_fail = False  # what boots boxes is killed: who waited for one may be told so
        self.away = False  # the service may be shutting down or not be there

    def fail(self, text):
        with self.lock:
            if len(self.wrong) < 20:
                self.wrong.append(text)

    def take_wrong(self):
        with self.lock:
            wrong, self.wrong = self.wrong, []
            return wrong

    def note(self, kind, answer):
        """True when it is a success."""
        with self.lock:
            self.answers[kind, answer.status] += 1
            if answer.seconds > self.slowest[0]:
                self.slowest = (answer.seconds, kind)
        if answer.seconds > BOUND:
            self.fail(f"{kind}: answered after {answer.seconds:.1f} s")
        if self.boots_fail and answer.status == 502 and kind in ("acquire", "make"):
            return False
        if answer.status not in OKAY[kind] or (answer.status == 503 and not self.away):
            self.fail(f"{kind}: {answer}")
        return answer.status < 300

    def note_ended(self, kind):
        with self.lock:
            self.answers[kind, "ended"] += 1

    def note_lease_lost(self, scope):
        """Nobody knows whether a lease of it is held: the answer to an acquire or release is missing."""
        with self.lock:
            self.lost[scope] += 1

    def count(self, *kinds):
        with self.lock:
            return sum(n for (kind, _), n in self.answers.items() if kind in kinds)

    def ended(self, *kinds):
        with self.lock:
            return sum(self.answers[kind, "ended"] for kind in kinds)

    def is_marked(self, scope, box):
        with self.lock:
            return self.marks.get(scope) == box_is(box)

    def set_marked(self, scope, box):
        with self.lock:
            self.marks[scope] = box_is(box)


def mark_begin(scope):
    return "|".join(map(str, scope)) + "|"


def mark_text(scope, box):
    """The same from every client, so that several may mark one box."""
    return mark_begin(scope) + "|".join(map(str, box_is(box)))


def check_mark(board, call, scope, box):
    """The box must carry the mark that was put in it, and no other tenant's; a box without one gets it. call: as Agent.call."""
    path = f"/v1/boxes/{box['box_id']}/fs"
    marked = board.is_marked(scope, box)
    r = call("GET", f"{path}/read?path={MARK}")
    board.note("read", r)
    text = r.body.decode("utf-8", "replace")
    if r.status == 200 and not text.startswith(mark_begin(scope)):
        board.fail(f"WRONG TENANT: the box of {scope} carries {text!r}")
    elif r.status == 200 and text != mark_text(scope, box) and not board.saves and is_still(call, box):
        board.fail(f"the box of {scope} carries {text!r} instead of {mark_text(scope, box)!r}")
    elif r.status == 404 and marked and is_still(call, box):
        board.fail(f"the box of {scope}, generation {box['generation']}, lost its file: {r}")
    elif r.status == 404 and not marked:
        if board.note("write", call("PUT", f"{path}/write?path={MARK}", mark_text(scope, box).encode())) and is_still(call, box):
            board.set_marked(scope, box)


def is_still(call, box):
    r = call("GET", f"/v1/boxes/{box['box_id']}")
    return r.status == 200 and box_is(r.json) == box_is(box)
