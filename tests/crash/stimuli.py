"""What is done to a service from outside, in the middle of the load."""

import dataclasses
import os
import random
import signal

from agent import Agent, Ended
from estate import boxes

LEAVE_BOUND = 5.0  # seconds for a sbxd that shall leave its boxes to its successor


def nothing(service, spared):
    pass


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it went by itself


def kill_worker(service, spared):
    victims = [pid for pid in service.workers() if pid not in spared]
    if victims:
        kill(random.choice(victims))


def kill_guest(service, spared):
    """PID 1 of a box that is up: one that boots would fail, which is an answer."""
    victims = [b["box_id"] for b in boxes(service) if b["state"] in ("active", "warm") and b["pid"] not in spared]
    with Agent(service.socket) as a:
        box = a.call("GET", f"/v1/boxes/{random.choice(victims)}") if victims else None
    if box and box.status == 200 and box.json.get("box_pid") and box.json["pid"] not in spared:
        kill(box.json["box_pid"])


def kill_janitor(service, spared):
    pid = service.janitor()
    if pid:
        kill(pid)


def reset(service, spared):
    try:
        with Agent(service.socket) as a:
            a.call("POST", "/v1/pool/reset", {})
    except Ended:
        pass  # it dies of it


def end_sbxd(sig):
    def end(service, spared):
        life = service.send(sig)
        if not life.ended.wait(LEAVE_BOUND if sig == signal.SIGUSR2 else 30):
            life.expected = False
            raise AssertionError(f"sbxd {life.pid} does not end on {signal.Signals(sig).name}")
    return end


@dataclasses.dataclass(frozen=True)
class Stimulus:
    act: callable
    role: str = ""  # whom it is done to; a row of its own
    away: bool = False  # sbxd ends
    drops_leases: bool = False
    ends_boxes: bool = False


STIMULI = {
    "load": Stimulus(nothing),
    "worker": Stimulus(kill_worker, "worker"),
    "guest": Stimulus(kill_guest, "guest"),
    "janitor": Stimulus(kill_janitor, "janitor"),
    "reset": Stimulus(reset, "sbxd", drops_leases=True),
    "sbxd": Stimulus(end_sbxd(signal.SIGKILL), "sbxd", away=True),
    "leave": Stimulus(end_sbxd(signal.SIGUSR2), "sbxd", away=True),
    "stop": Stimulus(end_sbxd(signal.SIGTERM), "sbxd", away=True, ends_boxes=True),
}
