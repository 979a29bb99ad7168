"""Clients that use the service as agents do, all at once, from several uids; some of them have boxes made."""

import os
import random
import signal
import threading
import time

from agent import PATIENCE, Agent, Ended, Overdue
from board import check_mark
from harness import IS_ROOT
from service import settings_text

UIDS = (0, 20001, 20002) if IS_ROOT else (os.geteuid(),)
THREADS = ("a", "b")
STOCK = 2  # boxes in stock, some of the time
LEASE = 3  # seconds; what a lost answer leaves behind must come back by itself
LINES = 2000
PAUSE = 0.1 * PATIENCE ** 3  # of the reloader: stock that is not wanted any more before it is up would be all that slow boxes do
MADE = 0.15  # turns with a box that is made
SETTINGS = {"replicas": 10, "replica_policy": "wait", "acquire_timeout": 15 * PATIENCE, "max_boxes": 32, "max_concurrent_boots": 3,
            "idle_timeout": 2 * PATIENCE, "health_check_timeout": 3 * PATIENCE, "boot_timeout": 8 * PATIENCE, "orphan_grace": 30 * PATIENCE,
            "limits": "{execution_detach_grace: 1}"}


def scopes():
    """(uid, user, thread): the same names for every uid."""
    return [(uid, "load", thread) for uid in UIDS for thread in THREADS]


class Client(threading.Thread):
    def __init__(self, load, number):
        super().__init__(daemon=True)
        self.load = load
        self.board = load.board
        self.number = number
        self.random = random.Random(f"{load.seed}/{number}")
        self.uid = UIDS[number % len(UIDS)]
        self.agent = Agent(load.service.socket, self.uid, load.service.hold.held)
        self.idle = threading.Event()

    def run(self):
        while not self.load.over:
            if self.load.paused:
                self.agent.close()
                self.idle.set()
                time.sleep(0.005)
                continue
            self.idle.clear()
            try:
                self.turn()
            except Ended:
                pass  # noted where it happened
            except Overdue as e:
                self.board.fail(str(e))
            except Exception as e:  # noqa: BLE001 - a client that is gone would be missed by nobody
                self.board.fail(f"client {self.number}: {e!r}")
        self.agent.close()

    def call(self, kind, method, path, body=None, scope=None, headers=""):
        try:
            r = self.agent.call(method, path, body, headers)
        except Ended:
            self.board.note_ended(kind)
            if scope:
                self.board.note_lease_lost(scope)
            raise
        self.board.note(kind, r)
        return r

    def turn(self):
        if self.random.random() < MADE:
            self.turn_made()
        else:
            self.turn_acquired()

    def turn_acquired(self):
        thread = self.random.choice((*THREADS, None))
        scope = (self.uid, "load", thread)
        tied = self.random.random() < 0.3
        r = self.call("acquire", "POST", "/v1/acquire", {"user_id": "load", "thread_id": thread, "lease_seconds": LEASE,
                                                        "release_on_disconnect": tied}, scope)
        if r.status != 200:
            time.sleep(0.02)  # it is told when to come again
            return
        box = r.json
        try:
            if thread:
                check_mark(self.board, self.agent.call, scope, box)
            work = self.random.choice((self.echo, self.lines, self.execute, self.files, self.look, self.hang_up))
            work(f"/v1/boxes/{box['box_id']}")
        except Ended:
            pass  # the box is still ours
        self.give_back(scope, box, tied)

    def give_back(self, scope, box, tied):
        path = f"/v1/boxes/{box['box_id']}"
        way = self.random.random()
        try:
            if way < 0.08:
                r = self.call("remove", "DELETE", f"{path}?force=true")
            elif way < 0.16 and tied:
                self.agent.close()
                return
            else:
                r = self.call("release", "POST", f"{path}/release", {"lease_id": box["lease_id"]})
            given = r.status != 503
        except Ended:
            given = False
        if not given:
            self.board.note_lease_lost(scope)
        if self.random.random() < 0.2:
            self.agent.close()

    def turn_made(self):
        """A box of our own: its file is there as long as it is, stopped or not."""
        name = f"made{self.number}"
        key = f"Idempotency-Key: {self.random.random()}\r\n"
        scope = (self.uid, None, None)  # as it is listed
        r = self.call("make", "POST", "/v1/boxes", {"name": name}, scope, key)
        if r.status == 503:
            return
        try:
            if r.status == 201:  # else that of an earlier turn, whose answer was lost
                again = self.call("make", "POST", "/v1/boxes", {"name": name}, None, key)
                if (again.status, again.body) != (201, r.body) and not (self.board.away and again.status in (409, 503)):
                    self.board.fail(f"the same request again: {again} instead of {r}")
                self.rest_and_work((self.uid, name), f"/v1/boxes/{name}")
        except Ended:
            pass
        if self.call("remove", "DELETE", f"/v1/boxes/{name}?force=true", None, scope).status == 503:
            self.board.note_lease_lost(scope)

    def rest_and_work(self, scope, path):
        r = self.call("start", "POST", f"{path}/start")
        if r.status != 200:
            return
        check_mark(self.board, self.agent.call, scope, r.json)
        if self.random.random() < 0.5:
            self.hang_up(path)
        stopped = self.call("stop", "POST", f"{path}/stop", {"timeout_seconds": 2})
        if stopped.status == 200 and stopped.json["status"] != "stopped":
            self.board.fail(f"stop: {stopped}")
        check_mark(self.board, self.agent.call, scope, r.json)

    # ---- work ----

    def echo(self, path):
        text = str(self.random.random())
        r = self.call("run", "POST", f"{path}/run", {"command": "cat", "stdin": text})
        if r.status == 200 and (r.json["exit_code"], r.json["stdout"]) != (0, text) and r.json["signal"] is None:
            self.board.fail(f"echo: {r}")

    def lines(self, path):
        """A streamed command: what comes is a prefix of what it prints, and all of it when it ended by itself."""
        got, end = "", None
        try:
            status, lines = self.agent.stream(f"{path}/run", {"command": f"seq {LINES}"})
            for line in lines:
                got += line.get("data", "")
                end = line if "exit_code" in line else end
        except Ended:
            self.board.note_ended("run")
            status = "ended"
        want = "".join(f"{i}\n" for i in range(1, LINES + 1))
        if not want.startswith(got) or (end and end["exit_code"] == 0 and got != want):
            self.board.fail(f"a stream lost bytes: {len(got)} of {len(want)}, then {end}")
        with self.board.lock:
            self.board.answers["run", status] += 1

    def execute(self, path):
        """One that nobody attaches to; if its kill is lost, it is ended for that."""
        r = self.call("exec", "POST", f"{path}/exec", {"command": "sleep", "args": ["1000"]})
        if r.status == 201:
            execution = f"{path}/executions/{r.json['execution_id']}"
            self.call("exec", "GET", execution)
            self.call("exec", "DELETE", execution)

    def files(self, path):
        data = self.random.randbytes(30000)
        name = f"/tmp/f{self.number}"
        if self.call("write", "PUT", f"{path}/fs/write?path={name}", data).status < 300:
            r = self.call("read", "GET", f"{path}/fs/read?path={name}")
            if r.status == 200 and r.body != data:
                self.board.fail("a file does not read back as it was written")

    def look(self, path):
        """Requests for sbxd on a connection that the worker has."""
        for what in (path, "/v1/pool", "/v1/boxes"):
            self.call("look", "GET", what)

    def hang_up(self, path):
        self.agent.send("POST", f"{path}/run", {"command": "sleep 1000"})
        time.sleep(0.005)
        self.agent.close()


class Reloader(threading.Thread):
    """Changes the configuration and has it read again, all the time."""

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load = load
        self.random = random.Random(f"{load.seed}/reloader")
        self.idle = threading.Event()

    def run(self):
        while not self.load.over:
            if not self.load.paused:
                self.idle.clear()
                self.load.reload({"replicas": self.random.randrange(9, 12), "idle_timeout": self.random.choice((PATIENCE, 2 * PATIENCE, 600)),
                                  "health_check_skip_seconds": self.random.choice((0, 0, 1)), "prewarm": self.random.choice((0, STOCK))})
            elif not self.idle.is_set():
                self.load.reload({})
                self.idle.set()
            time.sleep(PAUSE)


class Load:
    """All clients. paused: each finishes its turn, gives back what it has and closes its connection."""

    def __init__(self, service, board, seed, clients):
        self.service = service
        self.board = board
        self.seed = seed
        self.special = {}  # settings that stay as they are
        self.lock = threading.Lock()  # of the file
        self.over = False
        self.paused = True
        self.threads = [Client(self, i) for i in range(clients)] + [Reloader(self)]
        for t in self.threads:
            t.start()

    def reload(self, changes):
        """Only a sbxd that serves: before that, SIGHUP ends a process."""
        with self.lock:
            self.service.write_config(settings_text({**SETTINGS, **changes, **self.special}))
        try:
            with Agent(self.service.socket, held=self.service.hold.held) as a:
                os.kill(a.call("GET", "/v1/pool").json["supervisor"]["pid"], signal.SIGHUP)
        except (Ended, ProcessLookupError):
            pass  # the next one reads the file by itself
        except Overdue as e:
            self.board.fail(f"reload: {e}")

    def use(self, special):
        if self.special != special:
            self.special = special
            self.reload({})

    def go(self):
        for t in self.threads:
            t.idle.clear()
        self.paused = False

    def pause(self, bound):
        """How many do not come to rest in time."""
        self.paused = True
        end = time.monotonic() + bound
        return sum(not t.idle.wait(max(0, end - time.monotonic())) for t in self.threads)

    def stop(self):
        self.over = True
        for t in self.threads:
            t.join(60)
