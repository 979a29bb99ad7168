"""A private sbxd that is started again when it ends, and what is known of each life of it."""

import glob
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading

from drivers import Namespace
from harness import BOUND, BUILD, Daemon, slurp, start_time, wait_for

RESPAWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "respawn.py")


def settings_text(settings):
    return "".join(f"{key}: {value}\n" for key, value in settings.items())


class Hold:
    """A byte that holds clients back: set before a new sbxd starts, cleared when what it took over was looked at."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="sbxd-test-hold-")
        self.file.write(b"0" * mmap.PAGESIZE)
        self.file.flush()
        self.page = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)

    def held(self):
        return self.page[0] == ord("1")

    def clear(self):
        self.page[0] = ord("0")

    def close(self):
        self.page.close()
        self.file.close()


class Life:
    """One sbxd process from its start to its end."""

    def __init__(self, pid):
        self.pid = pid
        self.ended = threading.Event()
        self.status = None  # as waitpid() gives it
        self.workers = []  # live ones when it ended
        self.expected = False  # that it ends

    def how(self):
        return f"sbxd {self.pid} " + (f"was killed by signal {os.WTERMSIG(self.status)}" if os.WIFSIGNALED(self.status)
                                      else f"exited with {os.WEXITSTATUS(self.status)}")


class Service(Daemon):
    """As Daemon, with a respawner between the two. holds: clients look at self.hold before they ask for anything."""

    def __init__(self, config="", env=None, args=(), holds=True, driver=None):
        self.driver = driver or Namespace()
        self.hold = Hold()
        self.holds = holds
        self.lives = []
        self.seen = 0
        super().__init__(config, env, args=args)

    @property
    def table(self):
        return f"/dev/shm/sbxd-{os.geteuid()}-{self.instance}"

    def kept(self, life):
        """The table as that sbxd left it, when there was one."""
        return f"/dev/shm/kept-{self.instance}-{life.pid}"

    def write_config(self, text):
        """Whole, whenever a new sbxd reads it."""
        with open(f"{self.config}.new", "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(f"{self.config}.new", self.config)

    @property
    def pid(self):
        return self.lives[-1].pid

    def start(self, wait=True):
        argv = [f"{BUILD}/sbxd", "--config", self.config, "--runtime-dir", self.runtime, "--state-dir", os.path.join(self.dir, "state"),
                "--instance", self.instance, "--log-level", "debug", *self.args]
        self.process = subprocess.Popen([sys.executable, RESPAWN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.tell({"argv": argv, "env": self.env, "log": self.log_path, "table": self.table, "kept": f"/dev/shm/kept-{self.instance}-",
                   "hold": self.hold.file.name if self.holds else "/dev/null"})
        threading.Thread(target=self.listen, args=(self.process,), daemon=True).start()
        wait_for("sbxd to be started", lambda: self.lives)
        if wait:
            wait_for("sbxd to serve", self.serving)

    def tell(self, what):
        self.process.stdin.write(json.dumps(what).encode() + b"\n" if isinstance(what, dict) else what.encode() + b"\n")
        self.process.stdin.flush()

    def listen(self, process):
        for line in process.stdout:
            told = json.loads(line)
            if "started" in told:
                self.lives.append(Life(told["started"]))
            else:
                life = self.lives[-1]
                life.status, life.workers = told["status"], told["workers"]
                life.ended.set()

    def serving(self):
        try:
            return self.get("/v1/pool").status == 200
        except OSError:
            return False

    def await_next(self, life, bound=BOUND):
        """After `life` ended: the next one that serves. Lives that end while they start are passed over."""
        if not life.ended.wait(bound):
            raise AssertionError(f"sbxd {life.pid} does not end")
        wait_for("the next sbxd", lambda: self.lives[-1] is not life, bound)
        wait_for("it to serve", self.serving, bound)

    def send(self, sig):
        """To the sbxd of now, which shall end of it; returns its life."""
        life = self.lives[-1]
        life.expected = True
        os.kill(life.pid, sig)
        return life

    def unexpected_ends(self, killed):
        """How sbxd ended that was not to end, since the last look; `killed` of them were by a fault point."""
        wrong = []
        for life in self.lives[self.seen:]:
            if not life.ended.is_set() or life.expected:
                continue
            if killed and life.status == signal.SIGKILL:
                killed -= 1
            else:
                wrong.append(life.how())
            life.expected = True
        self.seen = len(self.lives) - 1
        return wrong

    def janitor(self):
        return next((pid for pid, words in self.helpers() if words[1:] == ["janitor"]), None)

    def workers(self):
        """Live workers on the host, whoever their parent is: {pid: slot}."""
        return {pid: int(words[2]) for pid, words in self.helpers() if words[1:2] == ["box"]}

    def helpers(self):
        """(pid, command line) of live processes of sbx-worker's program that are ours: children of the respawner or of sbxd."""
        for pid in children(self.process.pid) + children(self.pid):
            words = command_line(pid)
            if start_time(pid) and words and "sbx-worker" in words[0]:
                yield pid, words

    # ---- the end ----

    def stop(self, sig=signal.SIGTERM, bound=BOUND * 2):
        """Ends it in order, for good; its exit status."""
        self.tell("last")
        life = self.send(sig)
        if not life.ended.wait(bound):
            raise AssertionError("sbxd does not end")
        self.process.wait(bound)
        return os.waitstatus_to_exitcode(life.status)

    def kill(self):
        """Ends it, whatever became of it."""
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(BOUND)

    def remove(self):
        super().remove()
        self.hold.close()
        self.forget_kept()

    def forget_kept(self):
        for path in glob.glob(f"/dev/shm/kept-{self.instance}-*"):
            os.unlink(path)


def children(pid):
    try:
        return [int(c) for c in slurp(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def command_line(pid):
    try:
        return slurp(f"/proc/{pid}/cmdline").split("\0")[:-1]
    except OSError:
        return []
