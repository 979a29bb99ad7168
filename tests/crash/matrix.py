"""Kills each process at each fault point that it passes, under load, and looks whether everything is as specified afterwards.

  make crash [ROUNDS=20] [DRIVER=namespace|boxlite|boxlite-server|boxlite-detached|qemu] [POINT=pattern,...]
             [ROLE=sbxd|worker|janitor|boxlite] [SEED=n]
"""

import argparse
import collections
import fnmatch
import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integ"))

import invariants  # noqa: E402
import points  # noqa: E402
from agent import BOUND, PATIENCE, Ended, Overdue  # noqa: E402
from board import Board  # noqa: E402
from drivers import DRIVERS  # noqa: E402
from estate import Baseline  # noqa: E402
from harness import IS_ROOT, ROOT, wait_for  # noqa: E402
from holders import Holders  # noqa: E402
from load import SETTINGS, Load, scopes  # noqa: E402
from service import Service, settings_text  # noqa: E402
from stimuli import STIMULI, for_driver  # noqa: E402

HIT_BOUND = 10.0 * PATIENCE  # seconds for a point to be passed that was passed in the survey
GOES_ON = max(3, int(12 / PATIENCE))  # acquires that are answered before and after
QUIET = 0.6 * PATIENCE  # a survey goes on while points are passed for the first time
SURVEY_BOUND = 3.0 * PATIENCE


def told(text):
    """How far it has come, for who asked for that: with some drivers it takes long."""
    if os.environ.get("V"):
        print(text, flush=True)


class Bench:
    """A service under load, with boxes that are held; used for as many steps as go well."""

    def __init__(self, pts, seed, holds, driver):
        self.service = Service(settings_text(SETTINGS), {**pts.env(), **driver.env}, holds=holds, driver=driver)
        self.points = pts
        self.board = Board(driver.saves)
        self.baseline = Baseline(self.service)
        self.load = Load(self.service, self.board, seed, driver.clients)
        self.holders = Holders(self.service, self.board)
        self.log = invariants.Log(self.service)

    def close(self):
        """What is wrong with its end."""
        self.service.hold.clear()
        self.load.stop()
        self.holders.let_go()
        try:
            status = self.service.stop()
            remains = self.service.remains()
            return [f"sbxd ended with {status}"] * (status != 0) + [f"left behind: {remains}"] * bool(remains)
        except AssertionError as e:
            return [f"its end: {e}"]
        finally:
            self.service.kill()
            self.service.remove()

    def some_acquires(self):
        """Waits until some more are answered: the load goes on."""
        enough = self.board.count("acquire") + GOES_ON
        wait_for("the load to go on", lambda: self.board.count("acquire") >= enough, BOUND)

    def stimulate(self, stimulus):
        """The life that ended of it, if it was to end one."""
        life = self.service.lives[-1]
        stimulus.act(self.service, {h.box["pid"] for h in self.holders.all})
        return life if stimulus.away else None


def lead_on(bench, name, stimulus, reached):
    """Does one thing to the service, and adds to `reached` which points are passed because of it."""
    pts = bench.points
    bench.load.use(stimulus.settings)
    bench.holders.take()
    bench.some_acquires()
    waiting = [pair for pair in pts.pairs if pair not in reached]
    for pair in waiting:
        pts.arm(pair)
    life = bench.stimulate(stimulus)
    if life:
        bench.service.await_next(life)
    end = time.monotonic() + SURVEY_BOUND
    quiet = time.monotonic() + QUIET
    while time.monotonic() < min(end, quiet):
        new = [pair for pair in waiting if pair not in reached and pts.hit(pair)]
        reached.update((pair, name) for pair in new)
        quiet = time.monotonic() + QUIET if new else quiet
        time.sleep(0.01)
    for pair in waiting:
        pts.disarm(pair)
    bench.holders.let_go()


def survey(names, seed, driver, args):
    """Which role passes which point, and after what: {(point, role): stimulus}; and what is wrong by then already. It ends when
    all is reached that was asked for."""
    wanted = {name for name in names if is_wanted(name, args)}
    bench = Bench(points.Points(names, "pass"), seed, False, driver)
    reached = {}
    wrong = []
    bench.board.away = True
    bench.load.go()
    for name, stimulus in for_driver(driver).items():
        if args.point and wanted <= {point for point, role in reached if args.role in ("", role)}:
            break
        began = time.monotonic()
        try:
            lead_on(bench, name, stimulus, reached)
            told(f"{name} leads to {sum(by == name for by in reached.values())} more, {time.monotonic() - began:.1f} s; "
                 f"not yet: {' '.join(sorted(wanted - {point for point, _ in reached}))}")
        except (AssertionError, Ended, Overdue) as e:
            wrong.append(f"{name}: {e}")
    bench.load.pause(BOUND)
    wrong += bench.board.take_wrong() + bench.log.wrong() + bench.close()
    bench.points.close()
    return reached, [f"in the survey: {text}" for text in wrong]


def is_wanted(point, args):
    return not args.point or any(fnmatch.fnmatch(point, pattern) for pattern in args.point.split(","))


class Row:
    def __init__(self, point, role, stimulus):
        self.point = point
        self.role = role
        self.stimulus = stimulus
        self.hits = 0
        self.passed = 0
        self.seconds = 0.0

    @property
    def pair(self):
        return (self.point, self.role)

    @property
    def is_fault(self):
        return not self.point.startswith("(")


def act(bench, row):
    """Arms the point and does what leads there. (hit, lives of sbxd that ended)"""
    stimulus = STIMULI[row.stimulus]
    first = bench.service.lives[-1]
    if row.is_fault:
        bench.points.arm(row.pair)
    bench.stimulate(stimulus)
    hit = True
    if row.is_fault:
        try:
            wait_for("the point", lambda: bench.points.hit(row.pair), HIT_BOUND)
        except AssertionError:
            hit = False
            bench.points.disarm(row.pair)
    died = stimulus.away or (hit and row.is_fault and row.role == "sbxd")
    return hit, first if died else None


def take_over(bench, row, life, since):
    """The next sbxd serves; what it must have taken over; then clients go on."""
    bench.service.await_next(life)
    wrong = []
    if not STIMULI[row.stimulus].ends_boxes:
        ended = bench.board.ended("acquire", "remove") - since
        killed = row.is_fault and row.role in ("worker", *bench.service.driver.roles)  # with its box, or its box is saved
        wrong = invariants.survivors(bench.service, life, ended + killed)
    bench.service.hold.clear()
    return wrong


def step(bench, row):
    """One kill and all that must hold after it. What is wrong."""
    stimulus = STIMULI[row.stimulus]
    board = bench.board
    board.away = stimulus.away or row.role == "sbxd"
    board.boots_fail = row.role in bench.service.driver.roles
    board.lost.clear()
    board.marks.clear()
    bench.log.skip()
    bench.load.use(stimulus.settings)
    bench.holders.take()
    bench.load.go()
    bench.some_acquires()
    ended = board.ended("acquire", "remove")
    hit, life = act(bench, row)
    row.hits += hit
    wrong = [] if hit else [f"was not reached within {HIT_BOUND} s"]
    if life:
        wrong += take_over(bench, row, life, ended)
    bench.some_acquires()
    late = bench.load.pause(BOUND * 2)
    if late:
        wrong.append(f"{late} clients do not come to rest")
    if not stimulus.ends_boxes:
        wrong += bench.holders.check(int(row.role in ("worker", *bench.service.driver.roles)), bool(life), stimulus.drops_leases)
    wrong += bench.holders.let_go()
    wrong += invariants.at_rest(bench.service, board.lost + leases_held(bench), bench.baseline)
    wrong += invariants.every_scope(bench.service, board, scopes() + bench.holders.scopes)
    wrong += invariants.emptied(bench.service, bench.baseline)
    wrong += bench.service.unexpected_ends(int(row.is_fault and row.role == "sbxd"))
    bench.service.forget_kept()
    return wrong + bench.log.wrong() + board.take_wrong()


def leases_held(bench):
    """What holders never gave back: the lease that is tied to nothing."""
    return collections.Counter({h.listed: 1 for h in bench.holders.all if not h.tied and not h.parked})


def run(rows, rounds, seed, driver):
    pts = points.Points([row.point for row in rows if row.is_fault], "kill")
    bench = None
    wrong_ends = []
    for n in range(rounds):
        order = list(rows)
        random.Random(f"{seed}/{n}").shuffle(order)
        for row in order:
            random.seed(f"{seed}/{n}/{row.pair}")
            began = time.monotonic()
            bench = bench or Bench(pts, f"{seed}/{n}/{row.pair}", True, driver)
            try:
                wrong = step(bench, row)
            except (AssertionError, Ended, Overdue) as e:
                wrong = [f"{type(e).__name__}: {e}"] + bench.board.take_wrong()
            row.seconds += time.monotonic() - began
            row.passed += not wrong
            told(f"{row.point} {row.role}, after {row.stimulus}: {'FAILED' if wrong else 'passed'}, {time.monotonic() - began:.1f} s")
            if wrong:
                report_failure(bench, row, wrong, seed)
                bench = None  # it is no ground for the next step
    if bench:
        wrong_ends += bench.close()
    pts.close()
    return wrong_ends


def report_failure(bench, row, wrong, seed):
    log = f"{ROOT}/build/crash/{row.point.strip('()')}.{row.role}.log"
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "w", encoding="utf-8") as f:
        f.write(bench.log.new())
    print(f"FAILED {row.point} {row.role}, after {row.stimulus}:")
    for text in wrong[:12] + bench.close():
        print(f"    {text[:400]}")
    print(f"    log: {os.path.relpath(log, ROOT)}; again: make crash POINT='{row.point}' ROLE={row.role} SEED={seed} DRIVER={bench.service.driver.target}", flush=True)


def choose(reached, args, driver):
    rows = [Row(point, role, stimulus) for (point, role), stimulus in reached.items()]
    rows += [Row(f"({name})", stimulus.role, name) for name, stimulus in for_driver(driver).items() if stimulus.role]
    rows.sort(key=lambda row: (not row.is_fault, row.point, row.role))
    return [row for row in rows if is_wanted(row.point, args) and args.role in ("", row.role)]


def put_table(rows, rounds):
    print(f"{'point':40} {'role':8} {'after':8} {'hits':>5} {'passed':>8} {'seconds':>8}")
    for row in rows:
        print(f"{row.point:40} {row.role:8} {row.stimulus:8} {row.hits:5} {row.passed:4} of {rounds:<2} {row.seconds / rounds:6.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--driver", choices=DRIVERS, default="namespace")
    p.add_argument("--point", default="")
    p.add_argument("--role", default="")
    p.add_argument("--seed", default=str(random.randrange(1 << 32)))
    args = p.parse_args()
    began = time.monotonic()
    shutil.rmtree(f"{ROOT}/build/crash", ignore_errors=True)
    driver = DRIVERS[args.driver]()
    SETTINGS.update(driver.settings)
    try:
        return everything(driver, args, began)
    finally:
        driver.close()


def everything(driver, args, began):
    names = points.find(driver)
    reached, wrong = survey(names, args.seed, driver, args)
    never = sorted({n for n in names if is_wanted(n, args)} - {point for point, _ in reached}) if IS_ROOT else []  # some are for root's cgroups only
    wrong += [f"no process ever passes {name}: the load must lead there" for name in never]
    rows = choose(reached, args, driver)
    wrong += run(rows, args.rounds, args.seed, driver)
    put_table(rows, args.rounds)
    for text in wrong:
        print(f"FAILED: {text}")
    failed = sum(row.passed < args.rounds for row in rows)
    print(f"{len(names)} points, {len(rows)} rows, {failed} failed, {time.monotonic() - began:.0f} s, seed {args.seed}")
    return 1 if wrong or failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
