"""What every integration test stands on: a private sbxd, HTTP over its socket, and a count of what it leaves behind.

Every response that comes from it is held to docs/openapi.yaml (contract.py). Only the standard library is used, and there
PyYAML. Programs come from SBX_BUILD (default build/check). Each Daemon has its own runtime directory and instance name, so
that tests neither meet each other nor a service that runs on the host. What its boxes are is the run's choice (backends.py).
"""

import atexit
import base64
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import backends
import contract

contract.watch()

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("SBX_BUILD", os.path.join(ROOT, "build/check")))
BOUND = float(os.environ.get("SBX_BOUND", "30"))  # seconds that any single wait may take before the test fails
IS_ROOT = os.geteuid() == 0


def slurp(path, mode="r"):
    """The content of a file that is closed again."""
    with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8", "errors": "replace"})) as f:
        return f.read()


def wait_for(what, condition, bound=BOUND):
    """Polls until condition() is true; the bound is there to fail, not to pass."""
    end = time.monotonic() + bound
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"waited {bound} s in vain for: {what}")
        time.sleep(0.002)


class UnixConnection(http.client.HTTPConnection):
    """http.client over a Unix socket."""

    def __init__(self, path, timeout=BOUND):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def reason(self):
        return self.json["error"]["reason"]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Daemon:
    """One private sbxd with its configuration, environment and log."""

    count = 0

    def __init__(self, config="", env=None, wrapper=(), wait=True, args=(), instance=None, fds=()):
        Daemon.count += 1
        self.instance = instance or f"t{os.getpid()}-{Daemon.count}"
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-")
        os.chmod(self.dir, 0o755)
        self.runtime = os.path.join(self.dir, "run")
        self.socket = os.path.join(self.runtime, "sbxd.sock")
        self.config = os.path.join(self.dir, "sbxd.yaml")
        self.log_path = os.path.join(self.dir, "log")
        self.env = env or {}
        self.wrapper = list(wrapper)
        self.args = [*backends.args(config), *args]
        self.fds = fds  # what it inherits besides
        self.process = None
        self.write_config(config)
        self.start(wait)

    def write_config(self, text):
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(backends.config(text))

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.wrapper
                + [f"{BUILD}/sbxd", "--config", self.config, "--runtime-dir", self.runtime, "--state-dir",
                   os.path.join(self.dir, "state"), "--instance", self.instance, "--log-level", "debug", *self.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.env}, pass_fds=self.fds)
        if wait:
            wait_for("sbxd to serve", self.serving, BOUND * 2)

    def serving(self):
        if self.process.poll() is not None:
            raise AssertionError(f"sbxd exited with {self.process.returncode}:\n{self.log()}")
        try:
            return self.get("/v1/pool").status == 200
        except OSError:
            return False

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    # ---- HTTP ----

    def connect(self, timeout=BOUND):
        return UnixConnection(self.socket, timeout)

    def request(self, method, path, body=None, headers=None, timeout=BOUND, connection=None):
        c = connection or self.connect(timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            if connection is None:
                c.close()

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.request("POST", path, body if body is not None else {}, **kw)

    def acquire(self, user="u1", thread="t1", **more):
        r = self.post("/v1/acquire", {"user_id": user, "thread_id": thread, **more}, timeout=BOUND * 4)  # acquire_timeout is shorter
        if r.status != 200:
            raise AssertionError(f"acquire: {r}\n{self.log()[-3000:]}")
        return r.json

    def release(self, box, lease=None):
        return self.post(f"/v1/boxes/{box}/release", {"lease_id": lease} if lease else {})

    def run(self, box, command=None, timeout=BOUND, **more):
        body = dict(more)
        if isinstance(command, str):
            body["command"] = command
        elif command is not None:
            body["argv"] = command
        r = self.post(f"/v1/boxes/{box}/run", body, timeout=timeout)
        if r.status != 200:
            raise AssertionError(f"run {command!r}: {r}")
        return r.json

    def sh(self, box, command, **more):
        """stdout of a shell command that must succeed."""
        r = self.run(box, command, **more)
        if r["exit_code"] != 0:
            raise AssertionError(f"{command!r}: {r}")
        return r["stdout"]

    def inside(self, box, name):
        """Processes in the box that were started under that name: pids of the host, or of the box's own kernel."""
        if backends.current.own_kernel:
            return [int(p) for p in self.sh(box, f"grep -lsxz '{name[:-1]}[{name[-1]}]' /proc/[0-9]*/cmdline | cut -d/ -f3").split()]
        return [p for p in descendants(self.inspect(box)["box_pid"]) if proc_says(p, "cmdline", f"^{name}\\0")]

    def status_inside(self, box, pid):
        """What the kernel says of a process in the box, whose pid is as of inside(); 1 is PID 1."""
        if backends.current.own_kernel:
            return self.sh(box, f"cat /proc/{pid}/status")
        return slurp(f"/proc/{self.inspect(box)['box_pid'] if pid == 1 else pid}/status")

    def read(self, box, path, **kw):
        return self.get(f"/v1/boxes/{box}/fs/read?path={path}", **kw)

    def write(self, box, path, data, query="", **kw):
        return self.request("PUT", f"/v1/boxes/{box}/fs/write?path={path}{query}", data, **kw)

    def inspect(self, box):
        return self.get(f"/v1/boxes/{box}").json

    def pool(self):
        return self.get("/v1/pool").json

    def ctl(self, *args, input=None, env=None):
        return subprocess.run(
            [f"{BUILD}/sbxctl", *args], input=input, capture_output=True, timeout=BOUND * 4,
            env={**os.environ, "SBXD_SOCKET": self.socket, **(env or {})})

    # ---- the end ----

    def stop(self, sig=signal.SIGTERM, bound=BOUND * 2):
        """Ends it in order; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(bound)

    def kill(self):
        self.process.kill()
        self.process.wait(BOUND)

    def remains(self):
        """Everything on the host that bears this instance's name."""
        found = []
        found += glob.glob(f"/dev/shm/sbxd-*-{self.instance}")
        found += [self.socket] if os.path.exists(self.socket) else []
        for base, dirs, _ in os.walk("/sys/fs/cgroup"):
            found += [os.path.join(base, d) for d in dirs if re.match(rf"sbxd-{re.escape(self.instance)}\b", d)]
            dirs[:] = [d for d in dirs if base.count("/") < 6]
        for line in slurp("/proc/self/mounts").splitlines():
            if self.dir in line:
                found.append("mount " + line)
        found += [f"process {p}" for p in self.processes()]
        return found

    def processes(self):
        """Live processes of ours: sbxd names our directory, a worker maps our table, a box is in our cgroups."""
        ours = re.escape(self.instance)
        marks = {"cmdline": re.escape(self.dir), "maps": rf"/dev/shm/sbxd-\d+-{ours}\b(?!-)", "cgroup": rf"/sbxd-{ours}\b"}
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if pid != os.getpid() and start_time(pid) and any(proc_says(pid, name, mark) for name, mark in marks.items())]

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def children_map():
    tree = {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = slurp(stat)
        except OSError:
            continue
        pid = int(stat.split("/")[2])
        rest = text[text.rindex(")") + 2:].split()
        if rest[0] != "Z":
            tree.setdefault(int(rest[1]), []).append(pid)
    return tree


def descendants(pid):
    """Live descendants of a process."""
    tree = children_map()
    found, todo = [], [pid]
    while todo:
        for child in tree.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def proc_says(pid, name, pattern):
    try:
        return re.search(pattern, slurp(f"/proc/{pid}/{name}")) is not None
    except OSError:
        return False


def start_time(pid):
    try:
        text = slurp(f"/proc/{pid}/stat")
    except OSError:
        return None
    rest = text[text.rindex(")") + 2:].split()
    return None if rest[0] == "Z" else rest[19]


class Fault:
    """A file that arms fault points of a test build, once each time (lib/fault.h)."""

    def __init__(self, name):
        self.path = f"/tmp/sbxd-test-fault-{os.getpid()}-{name}"
        self.set("0")
        atexit.register(self.remove)  # made with its class, whose tests may not be among those that run

    def set(self, byte):
        with open(self.path, "r+" if os.path.exists(self.path) else "w", encoding="ascii") as f:
            f.write(byte)
        os.chmod(self.path, 0o600)

    def arm(self):
        self.set("1")

    def hit(self):
        return slurp(self.path) == "0"

    def remove(self):
        if os.path.exists(self.path):
            os.unlink(self.path)


class Census:
    """Processes seen under a daemon, by pid and start time: so that they can be proven gone after it."""

    def __init__(self):
        self.seen = set()

    def add(self, pid):
        for p in [pid, *descendants(pid)]:
            t = start_time(p)
            if t:
                self.seen.add((p, t))

    def alive(self):
        return [p for p, t in self.seen if start_time(p) == t]


def open_fds(pid):
    return sorted(os.listdir(f"/proc/{pid}/fd"), key=int)


def open_files(pid):
    """What its descriptors are of; what it closes meanwhile is none of them."""
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return names


def other_mounts():
    """Those that name no sbxd: other instances on this host come and go, and of its own remains() tells."""
    return [line for line in slurp("/proc/self/mounts").splitlines() if "sbxd-" not in line]


class DaemonTest(unittest.TestCase):
    """One daemon per test class; after the class everything it made must be gone."""

    config = ""
    env = {}
    wrapper = tuple(os.environ.get("SBX_WRAPPER", "").split())

    def connect(self):
        """A connection that is closed with the test."""
        c = self.d.connect()
        self.addCleanup(c.close)
        return c

    @classmethod
    def setUpClass(cls):
        cls.mounts_before = other_mounts()
        cls.d = Daemon(cls.config, cls.env, cls.wrapper)

    @classmethod
    def tearDownClass(cls):
        census = Census()
        census.add(cls.d.process.pid)
        status = cls.d.stop()
        log = cls.d.log()
        try:
            wait_for("all processes to be gone", lambda: not census.alive())
            assert cls.d.remains() == [], f"left behind: {cls.d.remains()}\n{log[-3000:]}"
            assert other_mounts() == cls.mounts_before, f"mounts changed: {set(other_mounts()) ^ set(cls.mounts_before)}"
            assert status == 0, f"sbxd ended with {status}\n{log[-3000:]}"
            undocumented = contract.take_violations()
            assert undocumented == [], "not as docs/openapi.yaml says:\n" + "\n".join(undocumented)
            for bad in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "invariant broken"):
                assert bad not in log, log[-6000:]
            if "valgrind" in cls.wrapper:
                assert re.search(r"FILE DESCRIPTORS: (\d+) open \(\1 std\) at exit", log), log[-6000:]
        finally:
            cls.d.remove()


def in_threads(n, fn):
    """Runs fn(0..n-1) at once; results in order, the first exception is raised."""
    results = [None] * n
    errors = []

    def call(i):
        try:
            results[i] = fn(i)
        except BaseException as e:  # noqa: BLE001 - handed to the caller
            errors.append(e)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(BOUND * 4)
    if errors:
        raise errors[0]
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    return results


def output_bytes(reply, stream="stdout"):
    data = reply[stream]
    return base64.b64decode(data) if reply[f"{stream}_encoding"] == "base64" else data.encode()
