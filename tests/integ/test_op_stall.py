"""A file operation that stands still in the box ends, and the box lives on; one that is slow is not disturbed."""

import threading
import time
import unittest

from harness import BOUND, IS_ROOT, DaemonTest, descendants, in_threads, proc_says, wait_for
from tracer import Held

STALL = 3
TREE = "mkdir -p /tmp/t && cd /tmp/t && for d in $(seq 100); do mkdir -p $d; for f in $(seq 100); do echo x > $d/$f; done; done"


@unittest.skipUnless(IS_ROOT, "traces another user's process")
class Stall(DaemonTest):
    config = f"replicas: 4\nlimits: {{operation_stall_timeout: {STALL}}}\n"

    def setUp(self):
        self.box = self.d.acquire("u", self.id())["box_id"]
        self.path = f"/v1/boxes/{self.box}"
        self.d.sh(self.box, TREE)

    def tearDown(self):
        self.assertEqual(self.d.request("DELETE", f"{self.path}?force=true").status, 204)

    def helpers(self):
        """The file helpers of our box, on the host: below its worker."""
        return [p for p in descendants(self.d.inspect(self.box)["pid"]) if proc_says(p, "comm", "^sbx-files$")]

    def hold_one(self, searched):
        """The first helper that is seen before the search is over, held; or None."""
        while not searched.is_set():
            for pid in self.helpers():
                try:
                    return Held(pid)
                except OSError:
                    continue  # it has ended
        return None

    def search(self, hold):
        """A search without a result, and what hold() did to its helper; both at once."""
        searched = threading.Event()

        def ask():
            try:
                return self.d.get(f"{self.path}/fs/grep?path=/tmp/t&pattern=no-such-text", timeout=BOUND * 4)
            finally:
                searched.set()

        answer, held = in_threads(2, lambda i: hold(searched) if i else ask())
        return (answer, held) if held else None

    def test_a_helper_that_stands_still(self):
        def hold(searched):
            held = self.hold_one(searched)
            if held:
                held.see_end()
            return held

        r, _ = wait_for("a search to be held", lambda: self.search(hold))
        self.assertEqual((r.status, r.json["error"]["reason"], r.json["error"]["message"]),
                         (408, "timeout", f"the operation made no progress within {STALL} s"))
        wait_for("it to be ended", lambda: self.d.inspect(self.box)["in_flight"] == 0)
        self.assertEqual(self.d.get(f"{self.path}/fs/list?path=/").status, 200)
        self.assertEqual(self.d.sh(self.box, "echo alive"), "alive\n")

    def test_a_helper_that_is_slow(self):
        """It finds nothing for more than twice as long as it may stand still; but it says that it works."""
        def hold(searched):
            held = self.hold_one(searched)
            if not held:
                return None
            end = time.monotonic() + 2.5 * STALL
            while time.monotonic() < end:  # some files, some three times a second: that is what is tested, not waited for
                self.assertTrue(held.steps(20), "it ended")
                time.sleep(0.3)
            self.assertFalse(searched.is_set())
            held.let_go()
            return held

        r, _ = wait_for("a search to be held", lambda: self.search(hold))
        self.assertEqual((r.status, r.json), (200, {"matches": [], "truncated": False}))

    def test_a_signal_holds_nobody(self):
        """Whoever starts a helper lets it go on when something in the box has stopped it."""
        catch = ("while :; do for p in /proc/[0-9]*; do read -r name < $p/comm && [ \"$name\" = sbx-files ] && kill -STOP ${p#/proc/}; "
                 "done; done 2> /dev/null")
        started = self.d.post(f"{self.path}/exec", {"command": "sh", "args": ["-c", catch], "stdin": False})
        self.assertEqual(started.status, 201, started)
        r = self.d.get(f"{self.path}/fs/grep?path=/tmp/t&pattern=no-such-text", timeout=BOUND * 4)
        self.assertEqual((r.status, r.json), (200, {"matches": [], "truncated": False}))


if __name__ == "__main__":
    unittest.main()
