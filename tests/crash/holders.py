"""Boxes that are held while something dies: what must still be there afterwards, to the last byte and lease."""

import os
import threading

from agent import PATIENCE, Agent, Ended, Overdue
from board import box_is, check_mark
from harness import start_time, wait_for

# Numbers without end, some thousand a second, or what leaves a slow box idle most of the time; the client checks that none is missing.
COUNT = f"i=0; while :; do i=$((i+1)); echo $i; [ $((i%50)) = 0 ] && sleep {0.02 * PATIENCE ** 2}; done"
SETTLE = 5.0 * PATIENCE  # seconds for a lease to be returned, or a stream to go on


class Stream(threading.Thread):
    """Reads a counting command: `wrong` when a number is missing, `over` when the stream ended."""

    def __init__(self, agent, path):
        super().__init__(daemon=True)
        self.agent = agent
        self.path = path
        self.count = 0
        self.wrong = ""
        self.over = ""
        self.start()

    def run(self):
        rest = ""
        try:
            status, lines = self.agent.stream(self.path, {"command": COUNT})
            self.over = f"status {status}" if status != 200 else ""
            for line in lines:
                *whole, rest = (rest + line.get("data", "")).split("\n")
                for number in whole:
                    self.count += 1
                    if number != str(self.count):
                        self.wrong = self.wrong or f"{number!r} came instead of {self.count}"
                if "data" not in line:
                    self.over = str(line)
        except (Ended, Overdue, OSError, ValueError, AttributeError) as e:  # what a closed socket of ours does is no matter
            self.over = self.over or repr(e)

    def goes_on(self):
        before = self.count
        try:
            wait_for("more of the stream", lambda: self.over or self.count > before + 100, SETTLE)
        except AssertionError:
            return False
        return not self.over


class Holder:
    """One box. tied: its lease ends with the connection; stream: a command runs in it; parked: it is released, but in use."""

    def __init__(self, service, board, name, tied=False, stream=False, parked=False):
        self.service = service
        self.board = board
        self.scope = (os.geteuid(), "hold", name)
        self.name = name
        self.tied = tied
        self.streams = stream
        self.parked = parked
        self.agent = None
        self.stream = None

    def take(self):
        """A new box. The agent is never held back: it asks before anything dies, and afterwards for nothing new."""
        self.agent = Agent(self.service.socket)
        r = self.agent.call("POST", "/v1/acquire", {"user_id": "hold", "thread_id": self.name, "release_on_disconnect": self.tied})
        if not self.board.note("acquire", r):
            raise AssertionError(f"no box to hold: {r}")
        self.box = r.json
        self.path = f"/v1/boxes/{self.box['box_id']}"
        self.worker_start = start_time(self.box["pid"])
        with Agent(self.service.socket) as other:
            check_mark(self.board, other.call, self.scope, self.box)
            if self.streams:
                self.stream = Stream(self.agent, f"{self.path}/run")
                wait_for("the stream to begin", lambda: self.stream.count or self.stream.over)
            if self.parked:
                self.board.note("release", other.call("POST", f"{self.path}/release", {}))

    @property
    def listed(self):
        """Its scope as it is listed."""
        return self.scope

    def worker_lives(self):
        return start_time(self.box["pid"]) == self.worker_start

    def leases(self, sbxd_died, dropped):
        """How many the box must have now."""
        if self.parked or dropped or (self.tied and not self.streams and sbxd_died):
            return 0  # the connection was sbxd's own; in a worker's hands it would have lived on
        return 1

    def check(self, sbxd_died, dropped):
        """What is wrong with a box whose worker lives."""
        wrong = []
        leases = self.leases(sbxd_died, dropped)
        with Agent(self.service.socket) as other:
            r = other.call("GET", self.path)
            if r.status != 200 or box_is(r.json) != box_is(self.box):
                return [f"{self.name}: box {box_is(self.box)} is not there any more: {r}"]
            try:
                wait_for("its leases", lambda: other.call("GET", self.path).json["leases"] == leases, SETTLE)
            except AssertionError:
                wrong.append(f"{self.name}: {other.call('GET', self.path).json['leases']} leases instead of {leases}")
            check_mark(self.board, other.call, self.scope, self.box)
        if self.stream and not self.stream.goes_on():
            wrong.append(f"{self.name}: its command's stream stopped after {self.stream.count} lines: {self.stream.over}")
        return wrong

    def let_go(self):
        """Hangs up; what is wrong with what was read, in any case."""
        if self.agent and self.agent.sock:
            self.agent.sock.shutdown(2)  # wakes the reader, too
        if self.stream:
            self.stream.join(10)
        if self.agent:
            self.agent.close()
        wrong = [f"{self.name}: {self.stream.wrong}"] if self.stream and self.stream.wrong else []
        self.agent = self.stream = None
        return wrong


class MadeHolder(Holder):
    """A box that was made. rests: it was stopped."""

    def __init__(self, service, board, name, rests=False):
        super().__init__(service, board, name, stream=not rests)
        self.rests = rests

    @property
    def listed(self):
        return os.geteuid(), None, None

    def take(self):
        self.agent = Agent(self.service.socket)
        self.path = f"/v1/boxes/hold-{self.name}"
        with Agent(self.service.socket) as other:
            self.board.note("remove", other.call("DELETE", f"{self.path}?force=true"))
            if not self.board.note("make", other.call("POST", "/v1/boxes", {"name": f"hold-{self.name}"})):
                raise AssertionError("no box to hold")
            self.box = other.call("POST", f"{self.path}/start").json
            self.worker_start = start_time(self.box["pid"])
            check_mark(self.board, other.call, self.scope, self.box)
            if self.rests:
                self.board.note("stop", other.call("POST", f"{self.path}/stop"))
        if self.streams:
            self.stream = Stream(self.agent, f"{self.path}/run")
            wait_for("the stream to begin", lambda: self.stream.count or self.stream.over)

    def leases(self, sbxd_died, dropped):
        return 1

    def check(self, sbxd_died, dropped):
        with Agent(self.service.socket) as other:
            found = [b for b in other.call("GET", "/v1/boxes").json["boxes"] if b["name"] == f"hold-{self.name}"]
            if [(b["box_id"], b["status"]) for b in found] != [(self.box["box_id"], "stopped" if self.rests else "running")]:
                return [f"{self.name}: it is not what it was: {found}"]
            if self.rests:
                other.call("POST", f"{self.path}/start")
        return super().check(sbxd_died, dropped)


class Holders:
    def __init__(self, service, board):
        self.all = [Holder(service, board, "plain"),
                    Holder(service, board, "tied", tied=True),
                    Holder(service, board, "busy", tied=True, stream=True),
                    Holder(service, board, "parked", stream=True, parked=True),
                    MadeHolder(service, board, "made"),
                    MadeHolder(service, board, "rested", rests=True)]

    def take(self):
        for h in self.all:
            h.take()

    def check(self, may_lose, sbxd_died, dropped):
        """may_lose: how many of their workers may have died; dropped: their leases were."""
        kept = [h for h in self.all if h.streams or h.leases(sbxd_died, dropped)]  # else it is warm, and nothing pins it
        lost = [h for h in kept if not h.worker_lives()]
        wrong = [f"{h.name}: its worker died" for h in lost] if len(lost) > may_lose else []
        return wrong + [text for h in kept if h not in lost for text in h.check(sbxd_died, dropped)]

    def let_go(self):
        return [text for h in self.all for text in h.let_go()]

    @property
    def scopes(self):
        return [h.scope for h in self.all if h.listed == h.scope]
