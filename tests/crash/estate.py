"""What a service has on the host: processes, descriptors, mounts, cgroups, files, sockets; and what its table says of it."""

import collections
import glob
import json
import os
import re

from agent import PATIENCE, Agent
from harness import slurp, start_time, wait_for
from service import children
from stimuli import layout

SETTLE = 8.0 * PATIENCE  # seconds for what is being closed or cleaned up to be gone
MANY = 4  # things of a kind that are named
IN_TRANSIT = ("reserved", "booting", "checking", "closing")


def plain(path):
    """Without what is drawn at random or counted."""
    return re.sub(r"\d+", "N", re.sub(r"/image-\w{6}\b", "/image-X", path))


def descriptors(pid):
    """How many descriptors of each kind a process has."""
    kinds = collections.Counter()
    for fd in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            kinds[plain(os.path.basename(os.readlink(fd)))] += 1
        except OSError:
            pass  # closed meanwhile
    return kinds


def more(now, before):
    """What `now` has beyond `before`, as text; empty when nothing."""
    extra = sorted((now - before).items())
    text = ", ".join(f"{n} {kind}" for kind, n in extra[:MANY])
    return f"{text} and {len(extra) - MANY} more" if len(extra) > MANY else text


def files(d):
    found = []
    for base, _, names in os.walk(d.dir):
        if base != d.dir:
            paths = (os.path.join(base, name) for name in names)
            found += [plain(path) for path in paths if not d.driver.keeps(path)]
    found += glob.glob(f"/dev/shm/sbxd-*-{d.instance}*")
    return collections.Counter(found)


def mounts(d):
    return [line for line in slurp("/proc/self/mounts").splitlines() if d.dir in line]


def cgroups(d):
    found = collections.Counter()
    for base, folders, _ in os.walk("/sys/fs/cgroup"):
        if re.search(rf"/sbxd-{re.escape(d.instance)}\b", base):
            found[base] += 1
        elif base.count("/") >= 6:
            folders[:] = []
    return found


def sockets(d):
    """Names of Unix sockets that are ours, bound or abstract."""
    lines = slurp("/proc/net/unix").splitlines()[1:]
    names = (line.split(None, 7)[7] for line in lines if len(line.split(None, 7)) == 8)
    return collections.Counter(plain(n) for n in names if d.dir in n or d.instance in n)


def zombies(d):
    return [pid for pid in children(d.pid) if os.path.exists(f"/proc/{pid}") and start_time(pid) is None]


def dump(d, name=""):
    """The table as sbxctl shows it; `name`: another one than the service's own."""
    r = d.ctl("--instance", d.instance, "--json", "shm", "dump", *([name] if name else []))
    if r.returncode not in (0, 1):
        raise AssertionError(f"shm dump {name}: {r}")
    return json.loads(r.stdout)


def boxes(d):
    with Agent(d.socket) as a:
        return a.call("GET", "/v1/boxes?all=true").json["boxes"]


def pool(d):
    with Agent(d.socket) as a:
        return a.call("GET", "/v1/pool").json


def settled(d):
    """(pool, descriptors of sbxd) when nothing is on its way in it, else None."""
    with Agent(d.socket) as a:
        p = a.call("GET", "/v1/pool").json
        if p["waiters"] or p["clients"] > 1 or any(p["states"][s] for s in IN_TRANSIT):
            return None
        return p, descriptors(d.pid)  # with this one connection


class Baseline:
    """The estate of a service that has no box; and the descriptors of a worker whose box is idle."""

    def __init__(self, d):
        with Agent(d.socket) as a:
            box = a.call("POST", "/v1/acquire", {"user_id": "base", "thread_id": "line"}).json
            a.call("POST", f"/v1/boxes/{box['box_id']}/run", {"command": "true"})
            # What drivers keep for all images of the store is there from the first on.
            a.call("POST", "/v1/acquire", {"user_id": "base", "thread_id": "image", "image": layout(), "wait_seconds": 15})
        wait_for("the worker to be idle", lambda: pool(d)["clients"] == 1)
        self.worker = descriptors(box["pid"])
        remove_all(d)
        wait_for("no box", lambda: pool(d)["boxes"] == 0)
        self.sbxd = wait_for("sbxd to be idle", lambda: settled(d))[1]
        self.janitor = descriptors(d.janitor())
        self.files = files(d)
        self.cgroups = cgroups(d)
        self.sockets = sockets(d)

    def leaks(self, d):
        """What a service without boxes and clients has beyond the baseline."""
        now = settled(d)
        if not now:
            return ["something is on its way"]
        p, fds = now
        wrong = [f"{n} slots are {state}" for state, n in p["states"].items() if n and state != "free"]
        found = {
            "sbxd's descriptors": more(fds, self.sbxd),
            "the janitor's descriptors": more(descriptors(d.janitor() or 0), self.janitor),
            "files": more(files(d), self.files),
            "cgroups": more(cgroups(d), self.cgroups),
            "sockets": more(sockets(d), self.sockets),
            "mounts": " ".join(mounts(d)),
            "processes": " ".join(f"{p} ({name_of(p)})" for p in d.processes() if p not in (d.pid, d.janitor())),
            "processes of boxes": " ".join(f"{p} ({name})" for p, name in d.driver.processes().items()),
            "boxes elsewhere": " ".join(d.driver.boxes()),
            "zombies": " ".join(map(str, zombies(d))),
            "boot permits": self.permits(d),
        }
        return wrong + [f"{what}: {text}" for what, text in found.items() if text]

    @staticmethod
    def permits(d):
        segment = dump(d)["segment"]
        return "" if segment["boot_permits"] == segment["boot_permits_max"] else f"{segment['boot_permits']} of {segment['boot_permits_max']}"

    def worker_leaks(self, d):
        """Workers of idle boxes that hold more than one needs."""
        found = {pid: more(descriptors(pid), self.worker) for pid in d.workers()}
        return [f"worker {pid} has in addition {text}" for pid, text in found.items() if text and start_time(pid)]


def name_of(pid):
    try:
        return slurp(f"/proc/{pid}/cmdline").replace("\0", " ").strip() or slurp(f"/proc/{pid}/comm").strip()
    except OSError:
        return "gone"


def twins(d, table):
    """Where the table and the host differ: each box in use has one live worker, each worker one box."""
    wrong = []
    used = [b for b in table["boxes"] if b["state"] in ("stock", "active", "checking", "warm")]
    workers = d.workers()
    for pid, n in collections.Counter(b["pid"] for b in used).items():
        if n > 1:
            wrong.append(f"worker {pid} has {n} boxes")
    for slot, n in collections.Counter(workers.values()).items():
        if n > 1:
            wrong.append(f"slot {slot} has {n} workers")
    for b in used:
        if workers.get(b["pid"]) != b["slot"]:
            wrong.append(f"slot {b['slot']} is {b['state']}, but its worker {b['pid']} does not live")
    for pid in set(workers) - {b["pid"] for b in used}:
        if start_time(pid):
            wrong.append(f"worker {pid} of slot {workers[pid]} has no box in the table")
    scopes = collections.Counter((b["owner_uid"], b["user_id"], b["thread_id"]) for b in used if b["thread_id"])
    return wrong + [f"{n} boxes of scope {scope}" for scope, n in scopes.items() if n > 1]


def remove_all(d):
    """Removes every box, and every image of the store; what is wrong with the answers."""
    wrong = []
    with Agent(d.socket) as a:
        for b in boxes(d):
            r = a.call("DELETE", f"/v1/boxes/{b['box_id']}?force=true")
            if r.status not in (204, 404, 409):
                wrong.append(f"remove {b['box_id']}: {r}")
        r = a.call("POST", "/v1/images/prune", {})
        if r.status != 200:
            wrong.append(f"prune: {r}")
    return wrong


def within(bound, check):
    """The last list of check() that was not empty; [] as soon as it is."""
    last = []

    def empty():
        nonlocal last
        last = check()
        return not last

    try:
        wait_for("", empty, bound)
    except AssertionError:
        return last
    return []
