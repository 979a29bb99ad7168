"""One client process of a soak: acquires, looks at the box's mark, works a little, gives back; until told to stop, or killed."""

import bisect
import itertools
import json
import mmap
import os
import random
import sys
import time

import tally  # finds the modules that follow
from agent import Agent, Ended, Overdue
from board import check_mark

LEASE = 5  # seconds: what a killed client held comes back by itself


def hot(scopes, skew=1.25):
    """Cumulated weights: a few scopes are used often, all are used."""
    return list(itertools.accumulate(1 / (i + 1) ** skew for i in range(scopes)))


class Client:
    def __init__(self, job):
        self.job = job
        self.uid = job["uid"]
        self.tally = tally.Tally(job["tally"], job["scopes"], job["clients"], job["failures"])
        self.tally.become(job["number"])
        self.random = random.Random(job["seed"])
        self.weights = hot(job["per_uid"])
        with open(job["hold"], "r+b") as f:
            self.hold = mmap.mmap(f.fileno(), mmap.PAGESIZE)
        self.agent = Agent(job["socket"], self.uid, lambda: self.hold[0] == ord("1"))

    def run(self):
        parent = os.getppid()
        while not self.tally.stopped() and os.getppid() == parent:
            try:
                self.turn()
            except Ended:
                pass  # counted where it happened
            except Overdue as e:
                self.tally.fail(f"client {self.job['number']}: {e}")
        self.agent.close()

    def call(self, kind, method, path, body=None):
        try:
            r = self.agent.call(method, path, body)
        except Ended:
            self.tally.note_ended(kind)
            raise
        self.tally.note(kind, r)
        return r

    def scope(self):
        i = bisect.bisect(self.weights, self.random.random() * self.weights[-1])
        return tally.scope(self.uid, self.job["first_scope"], min(i, self.job["per_uid"] - 1))

    def turn(self):
        scope = self.scope()
        tied = self.random.random() < 0.2
        r = self.call("acquire", "POST", "/v1/acquire", {"user_id": scope[1], "thread_id": scope[2], "lease_seconds": LEASE,
                                                        "release_on_disconnect": tied})
        if r.status != 200:
            time.sleep(0.02)  # it is told when to come again
            return
        box = r.json
        self.tally.count(f"source {box['source']}")
        path = f"/v1/boxes/{box['box_id']}"
        try:
            self.check(scope, box)
            if self.random.random() < 0.1:
                self.echo(path)
        except Ended:
            pass  # the box is still ours
        self.give_back(path, box, tied)

    def check(self, scope, box):
        try:
            check_mark(self.tally, self.agent.call, scope, box)
        except Ended:
            self.tally.note_ended("read")
            raise

    def echo(self, path):
        text = str(self.random.random())
        r = self.call("run", "POST", f"{path}/run", {"command": "cat", "stdin": text})
        if r.status == 200 and (r.json["exit_code"], r.json["stdout"]) != (0, text) and r.json["signal"] is None:
            self.tally.fail(f"echo: {r}")

    def give_back(self, path, box, tied):
        way = self.random.random()
        if way < 0.01:
            self.call("remove", "DELETE", f"{path}?force=true")
        elif way < 0.05 and tied:
            self.agent.close()
        elif way < 0.99:
            self.call("release", "POST", f"{path}/release", {"lease_id": box["lease_id"]})


if __name__ == "__main__":
    Client(json.loads(sys.argv[1])).run()
