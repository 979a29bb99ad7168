"""What must hold after anything died, while nobody asks for anything."""

import os
import re

from agent import BOUND, PATIENCE, Agent, Ended, Overdue
from board import check_mark
from estate import SETTLE, boxes, dump, remove_all, settled, twins, within
from harness import in_threads

IDLE_LEAST = 1.0 * PATIENCE  # seconds: no load sets idle_timeout to less
ABREAST = 10  # scopes that are acquired at a time
BAD_WORDS = re.compile(r".*(?:AddressSanitizer|LeakSanitizer|runtime error:|invariant broken|quarantined|killed by signal (?!9\b)).*")


class Log:
    """What is new in the service's log."""

    def __init__(self, d):
        self.path = d.log_path
        self.at = 0
        self.skip()

    def skip(self):
        self.at = os.path.getsize(self.path)

    def new(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            f.seek(self.at)
            return f.read()

    def wrong(self):
        return [f"log: {line}" for line in BAD_WORDS.findall(self.new())[:5]]


def may_go(b):
    """A box that the successor may close by itself: stock, by its configuration, and what lies idle."""
    return b["state"] == "stock" or (b["state"] == "warm" and not b["in_flight"] and b["state_seconds"] > IDLE_LEAST / 2)


def survivors(d, life, ended):
    """What the successor of `life` lacks of the boxes that were up with live workers; it has just begun to serve, and clients are
    held back. ended: how many removals and acquires were under way, and workers were killed: each may have cost one box."""
    if not os.path.exists(d.kept(life)):
        return [f"sbxd {life.pid} left {len(life.workers)} workers and no table"] if life.workers else []
    before = dump(d, os.path.basename(d.kept(life)))
    now = {(b["slot"], b["generation"], b["pid"]) for b in dump(d)["boxes"] if b["state"] != "closing"}
    up = [b for b in before["boxes"] if b["state"] in ("active", "checking", "warm") and b["pid"] in life.workers and not may_go(b)]
    lost = [b for b in up if (b["slot"], b["generation"], b["pid"]) not in now]
    if len(lost) <= ended:
        return []
    return [f"{len(lost)} of {len(up)} boxes were lost with sbxd, {ended} may have been: " +
            ", ".join(f"slot {b['slot']} ({b['state']})" for b in lost[:6])]


def leases(d, lost):
    """Boxes with more leases than clients can have lost. lost: by scope; nobody holds one on purpose."""
    wrong = []
    for b in boxes(d):
        scope = (b["owner_uid"], b["user_id"], b["thread_id"])
        if b["leases"] > lost[scope]:
            wrong.append(f"the box of {scope} has {b['leases']} leases, {lost[scope]} may have been lost")
    return wrong


def at_rest(d, lost, baseline):
    """Nothing is on its way, the table is whole and says what the host has, leases are accounted for."""
    if within(BOUND, lambda: [] if settled(d) else ["x"]):
        return [f"the pool does not come to rest: {dump(d)['states']}"]
    wrong = within(SETTLE, lambda: leases(d, lost))  # of a connection that ended: once all workers were heard, or given up

    def table():
        now = dump(d)
        return [f"shm dump: {text}" for text in now["findings"]] + twins(d, now) + baseline.worker_leaks(d)

    return wrong + within(SETTLE, table)


def every_scope(d, board, scopes):
    """Each can be had once more, in time, with the file that was put in it."""
    def once(i):
        scope = scopes[i]
        uid, user, thread = scope[:3]
        try:
            with Agent(d.socket, uid) as a:
                r = a.call("POST", "/v1/acquire", {"user_id": user, "thread_id": thread})
                if r.status != 200:
                    return f"{scope} cannot be acquired: {r}"
                check_mark(board, a.call, scope, r.json)
                a.call("POST", f"/v1/boxes/{r.json['box_id']}/release", {"lease_id": r.json["lease_id"]})
        except (Ended, Overdue) as e:
            return f"{scope}: {e!r}"
        return None

    def some(n):
        return [text for text in map(once, range(n, len(scopes), ABREAST)) if text]

    return sum(in_threads(min(ABREAST, len(scopes)), some), [])


def emptied(d, baseline):
    """After everything is removed, nothing is left."""
    return remove_all(d) + within(SETTLE, lambda: baseline.leaks(d))
