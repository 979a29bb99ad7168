"""What is done to a service from outside, in the middle of the load."""

import atexit
import dataclasses
import functools
import glob
import os
import random
import shutil
import signal
import tempfile

import images
from agent import PATIENCE, Agent, Ended
from harness import start_time, wait_for
from service import children

HELPERS = 5  # workers that die together
LEAVE_BOUND = 5.0 * PATIENCE  # seconds for a sbxd that shall leave its boxes to its successor


def nothing(service, spared):
    pass


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass  # it went by itself


def kill_worker(service, spared):
    victims = [pid for pid in service.workers() if pid not in spared]
    if victims:
        kill(random.choice(victims))


def own_box(agent, user, thread):
    """Path and all that is said of a box of ours, leased for as long as the connection; AssertionError when there is none."""
    r = agent.call("POST", "/v1/acquire", {"user_id": user, "thread_id": thread, "release_on_disconnect": True})
    if r.status != 200:
        raise AssertionError(f"acquire: {r}")
    path = f"/v1/boxes/{r.json['box_id']}"
    return path, agent.call("GET", path).json


def kill_guest(service, spared):
    """PID 1 of a box that is up and stays leased until its worker knows: of one that closes its end would be no news."""
    with Agent(service.socket) as a:
        try:
            path, box = own_box(a, "guest", "t")
            kill(box["box_pid"])
            a.call("POST", f"{path}/run", {"command": "true"})
        except Ended:
            pass  # its worker or sbxd dies of it


def kill_any_guest(service):
    """PID 1 of whatever box, whatever it is doing: the child of its worker."""
    workers = list(service.workers())
    guests = children(random.choice(workers)) if workers else []
    if guests:
        kill(random.choice(guests))


def hang(service, spared):
    """A worker, then a guest that hangs: found out by the check of the next acquire."""
    with Agent(service.socket) as a:
        for which in ("pid", "box_pid"):
            try:
                path, box = own_box(a, "hang", which)
                a.call("POST", f"{path}/release", {})
                kill(box[which], signal.SIGSTOP)
                own_box(a, "hang", which)
            except Ended:
                return  # sbxd dies of it


def kill_janitor(service, spared):
    pid = service.janitor()
    if pid:
        kill(pid)


def kill_helpers(service, spared):
    """Workers, then the janitor, while sbxd looks away: it learns of all their ends at once."""
    with Agent(service.socket) as a:
        try:
            victims = [own_box(a, "helpers", str(i))[1]["pid"] for i in range(HELPERS)]
        except Ended:
            return  # sbxd dies of it
        kill(service.pid, signal.SIGSTOP)
        try:
            for pid in victims:
                kill(pid)
            wait_for("their ends", lambda: not any(map(start_time, victims)))
            kill_janitor(service, spared)
        finally:
            kill(service.pid, signal.SIGCONT)


@functools.cache
def layout():
    """The reference of an image that can be had."""
    path = tempfile.mkdtemp(prefix="sbxd-crash-")
    atexit.register(shutil.rmtree, path)
    return "oci:" + images.Image(images.base(), Env=["PATH=/bin"]).write_layout(f"{path}/layout")


def pull(service, spared):
    """An image comes, a box is made of it, both go: twice, since the first may be cut off in the middle."""
    ask = {"user_id": "image", "thread_id": "t", "image": layout(), "release_on_disconnect": True}
    with Agent(service.socket) as a:
        try:
            for _ in range(2):
                r = a.call("POST", "/v1/acquire", ask)
                if r.status == 200:
                    a.call("DELETE", f"/v1/boxes/{r.json['box_id']}?force=true")
                a.call("POST", "/v1/images/prune", {})
        except Ended:
            pass  # sbxd dies of it


def forget(service, what):
    """Removes what the driver has made once, as if it had aged."""
    for path in glob.glob(f"{service.dir}/state/qemu/{what}-*[0-9a-f]"):
        with tempfile.TemporaryDirectory(dir=service.dir) as away:
            try:
                os.rename(path, f"{away}/gone")  # at once: it is in use, and somebody else may remove it, too
            except FileNotFoundError:
                pass


def damage_template(service):
    """Its next clone finds that, and has it removed and made anew."""
    for path in glob.glob(f"{service.dir}/state/qemu/template-*[0-9a-f]/note"):
        try:
            os.truncate(path, 0)
        except FileNotFoundError:
            pass  # it was removed meanwhile


def make_template(service, spared):
    """A box that needs a template which is not there, or damaged; twice, since the first may be cut off in the middle."""
    with Agent(service.socket) as a:
        try:
            for n in range(2):
                forget(service, "template")
                own_box(a, "template", str(n))
                damage_template(service)
                own_box(a, "damaged", str(n))
        except Ended:
            pass  # sbxd dies of it


def forget_all(service, spared):
    """The next sbxd finds nothing in the store."""
    for what in ("trial", "modules", "image", "template"):
        forget(service, what)
    end_sbxd(signal.SIGKILL)(service, spared)


def reset(service, spared):
    try:
        with Agent(service.socket) as a:
            a.call("POST", "/v1/pool/reset", {})
    except Ended:
        pass  # it dies of it


def end_sbxd(sig, word=""):
    """word: what shall be different before the next one starts (respawn.py)."""
    def end(service, spared):
        if word:
            service.tell(word)
        life = service.send(sig)
        if not life.ended.wait(LEAVE_BOUND if sig == signal.SIGUSR2 else 30):
            life.expected = False
            raise AssertionError(f"sbxd {life.pid} does not end on {signal.Signals(sig).name}")
    return end


def hang_and_end_sbxd(service, spared):
    """A worker that hangs cannot greet the next sbxd, and must keep nobody waiting."""
    with Agent(service.socket) as a:
        kill(own_box(a, "hung", "t")[1]["pid"], signal.SIGSTOP)
        end_sbxd(signal.SIGKILL)(service, spared)


@dataclasses.dataclass(frozen=True)
class Stimulus:
    act: callable
    role: str = ""  # whom it is done to; a row of its own
    away: bool = False  # sbxd ends
    drops_leases: bool = False
    ends_boxes: bool = False
    settings: dict = dataclasses.field(default_factory=dict)  # what it needs, from before boxes are made
    drivers: tuple = ()  # the only ones that it is for


STIMULI = {
    "load": Stimulus(nothing),
    "worker": Stimulus(kill_worker, "worker"),
    "guest": Stimulus(kill_guest, "guest"),
    # With room for all: evicted before its check, the box would be killed only after its grace.
    "hang": Stimulus(hang, "worker", settings={"health_check_timeout": 0.5 * PATIENCE, "health_check_skip_seconds": 0, "replicas": 30}),
    "janitor": Stimulus(kill_janitor, "janitor"),
    "helpers": Stimulus(kill_helpers, "janitor", settings={"replicas": 16}),
    "image": Stimulus(pull, settings={"replicas": 16}, drivers=("namespace", "boxlite")),
    "template": Stimulus(make_template, settings={"replicas": 16}, drivers=("qemu",)),
    "store": Stimulus(forget_all, away=True, drivers=("qemu",)),
    "reset": Stimulus(reset, "sbxd", drops_leases=True),
    "sbxd": Stimulus(end_sbxd(signal.SIGKILL), "sbxd", away=True),
    "hung": Stimulus(hang_and_end_sbxd, "sbxd", away=True, settings={"health_check_timeout": 0.5 * PATIENCE}),
    "leave": Stimulus(end_sbxd(signal.SIGUSR2), "sbxd", away=True),
    "stop": Stimulus(end_sbxd(signal.SIGTERM), "sbxd", away=True, ends_boxes=True),
    "spoil": Stimulus(end_sbxd(signal.SIGKILL, "spoil"), "sbxd", away=True, ends_boxes=True),
    "orphan": Stimulus(end_sbxd(signal.SIGKILL, "delay 1.5"), "sbxd", away=True, ends_boxes=True, settings={"orphan_grace": 0.5}),
}


def for_driver(driver):
    """Those that boxes of that driver (drivers.py) can be put through."""
    return {name: stimulus for name, stimulus in STIMULI.items() if driver.name in (stimulus.drivers or (driver.name,))}
