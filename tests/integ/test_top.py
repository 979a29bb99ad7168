"""sbxtop without its screen: what it prints agrees with the service, whatever has become of it."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BOUND, BUILD, ROOT, Daemon, DaemonTest, in_threads, slurp, wait_for

COUNTS = ("replicas", "states", "active", "warm", "booting", "boxes", "waiters", "counters", "latency")
BOX = ("box_id", "state", "image", "driver", "isolation", "user_id", "thread_id", "last_error", "owner_uid", "leases", "waiters", "generation",
       "pid", "memory_mib", "in_flight", "commands_total", "bytes_in", "bytes_out", "memory_bytes", "cpu_ns", "box_pid")


def top(*args, env=None, status=0, **kw):
    r = subprocess.run([f"{BUILD}/sbxtop", *args], capture_output=True, text=True, timeout=BOUND * 2, env={**os.environ, **(env or {})}, **kw)
    assert r.returncode == status, f"sbxtop {args}: {r}"
    return r


class Agreement(DaemonTest):
    config = "replicas: 12\nprewarm: 1\nhealth_check_skip_seconds: 0\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        d = cls.d
        cls.held = [d.acquire("alice", f"held-{i}")["box_id"] for i in range(3)]
        d.acquire("bøb", "日本語")
        for i in range(3):
            box = d.acquire("carol", f"parked-{i}")["box_id"]
            d.sh(box, "head -c 5000 /dev/zero; cat >/dev/null", stdin="x" * 700)
            d.release(box)
            d.acquire("carol", f"parked-{i}")  # warm, with a check
            d.release(box)
        d.acquire("alice", "held-0")
        cls.anonymous = d.post("/v1/acquire", {}).json["box_id"]
        wait_for("stock, and nothing under way", cls.quiet)

    @classmethod
    def quiet(cls):
        states = cls.d.pool()["states"]
        return states["stock"] == 1 and not states["booting"] and not states["reserved"]

    def json(self, *args):
        return json.loads(top("--json", "--instance", self.d.instance, *args).stdout)

    def both(self, ask):
        """What sbxtop and the service say of a moment in which nothing changed: looked at again until it is one."""
        def once():
            before, ours, after = ask(), self.json(), ask()
            return (before, ours) if before == after else None
        return wait_for("a moment in which nothing changes", once)

    def test_every_number_of_the_pool(self):
        theirs, ours = self.both(lambda: {k: self.d.pool()[k] for k in COUNTS})
        self.assertEqual({k: ours["pool"][k] for k in COUNTS}, theirs)
        self.assertGreater(theirs["counters"]["acquire_warm"], 2)
        self.assertGreater(theirs["latency"]["warm"]["count"], 2)
        supervisor = self.d.pool()["supervisor"]
        for key in ("pid", "generation", "instance"):
            self.assertEqual(ours["pool"]["supervisor"][key], supervisor[key])
        self.assertLess(abs(ours["pool"]["supervisor"]["uptime_seconds"] - supervisor["uptime_seconds"]), BOUND)
        self.assertEqual(ours["pool"]["supervisor"]["health"], "serving")
        c = theirs["counters"]
        found = c["acquire_active"] + c["acquire_warm"] + c["acquire_prewarmed"]
        self.assertAlmostEqual(ours["totals"]["hit_percent"], 100 * found / (found + c["acquire_cold"]), 6)

    def test_every_number_of_the_boxes(self):
        def ask():
            boxes = [self.d.inspect(b["box_id"]) for b in self.d.get("/v1/boxes").json["boxes"] if b["box_id"]]
            return {b["box_id"]: {k: b[k] for k in BOX} for b in boxes}
        theirs, ours = self.both(ask)
        self.assertGreaterEqual(len(theirs), 8)
        got = {b["box_id"]: {k: b[k] for k in BOX} for b in ours["boxes"] if b["box_id"]}
        # A box that was booted before sbxd knew its isolation says so in the table.
        for box, values in got.items():
            if values["isolation"] == "":
                values["isolation"] = theirs[box]["isolation"]
        self.assertEqual(got, theirs)
        self.assertEqual(ours["totals"]["memory_bytes"], sum(b["memory_bytes"] for b in ours["boxes"]))
        self.assertEqual({b["lock_holder"] for b in ours["boxes"]}, {None})
        for b in ours["boxes"]:
            self.assertLessEqual(0, b["idle_seconds"])
            self.assertLessEqual(b["idle_seconds"], b["age_seconds"] + 1e-6)

    def test_events(self):
        ours = self.json()["events"]
        self.assertEqual(len(ours), 10)
        stream = self.d.get(f"/v1/events?since={ours[0]['seq'] - 1}&follow=0").body.decode()
        theirs = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
        self.assertEqual(ours, theirs[:10])

    def test_batch_says_the_same(self):
        theirs, _ = self.both(lambda: {k: self.d.pool()[k] for k in COUNTS})
        text = top("-b", "-n", "1", "--instance", self.d.instance).stdout
        lines = text.splitlines()
        self.assertIn(f"pid {self.d.process.pid}  generation 1", lines[0])
        self.assertTrue(lines[1].endswith(f"] {theirs['boxes']} of 12 replicas, 1024 slots"), lines[1])
        for state in ("active", "warm", "stock"):
            self.assertIn(f" {theirs['states'][state]} {state}", lines[2])
        names = {"active": "acquire_active", "warm": "acquire_warm", "prewarmed": "acquire_prewarmed", "cold": "acquire_cold",
                 "boots": "boots", "checks": "checks", "closes": "closes"}
        hists = {"boots": "boot", "checks": "check", "closes": "close"}
        for line in lines[4:11]:
            word, _, total, p50, p95, p99 = line.split()[:6]
            self.assertEqual(int(total), theirs["counters"][names[word]], line)
            hist = theirs["latency"][hists.get(word, word)]
            for shown, us in ((p50, hist["p50_us"]), (p95, hist["p95_us"]), (p99, hist["p99_us"])):
                self.assertEqual(shown, self.latency(us) if hist["count"] else "-", line)
        self.assertRegex(text, rf"Waiters {theirs['waiters']} failed {theirs['counters']['acquire_failed']}\b")
        self.assertRegex(text, rf"Crashes {theirs['counters']['worker_crashes']} recoveries {theirs['counters']['lock_recoveries']}\b")
        self.assertRegex(text, rf"Handed over {theirs['counters']['handovers']} bad")
        rows = lines[13:13 + theirs["boxes"]]
        self.assertEqual(len({r.split()[0] for r in rows}), theirs["boxes"])
        for box in (*self.held, self.anonymous):
            row = next(r for r in rows if r.startswith(box)).split()
            self.assertEqual(row[1], "active")
        self.assertIn("日本語", text)

    @staticmethod
    def latency(us):
        if us == 0:
            return "<1us"
        if us < 1000:
            return f"{us}us"
        value, unit = (us / 1e3, "ms") if us < 999500 else (us / 1e6, "s")
        return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}{unit}"

    def test_order_filter_and_columns(self):
        def rows(*args):
            text = top("-b", "-n", "1", "--instance", self.d.instance, "-o", "thread,user", *args).stdout
            table = text.split("THREAD", 1)[1].split("\n\n", 1)[0]
            return [line.split()[0] for line in table.splitlines()[1:]]
        self.assertEqual(rows("-f", "user:carol", "-s", "thread"), ["parked-0", "parked-1", "parked-2"])
        self.assertEqual(rows("-f", "user:carol", "-s", "-thread"), ["parked-2", "parked-1", "parked-0"])
        self.assertEqual(rows("-f", "user:bøb"), ["日本語"])
        self.assertEqual(rows("-f", "no such box"), [])

    def test_a_locale_without_utf8_keeps_names_whole(self):
        self.assertIn("日本語", top("-b", "-n", "1", "--instance", self.d.instance, env={"LC_ALL": "C"}).stdout)

    def test_many_snapshots(self):
        r = top("--json", "-n", "3", "-d", "0.1", "--instance", self.d.instance)
        docs = [json.loads(line) for line in r.stdout.splitlines()]
        self.assertEqual(len(docs), 3)
        self.assertEqual(top("-b", "-n", "2", "-d", "0.1", "--instance", self.d.instance).stdout.count("sbxd " + self.d.instance), 2)

    def test_rates(self):
        """Acquires per second, between two snapshots, by source."""
        with subprocess.Popen([f"{BUILD}/sbxtop", "--json", "-n", "1000000", "-d", "0.1", "--instance", self.d.instance],
                              stdout=subprocess.PIPE, text=True) as p:
            try:
                before = json.loads(p.stdout.readline())
                for _ in range(20):
                    self.d.acquire("alice", "held-1")
                counted, docs = 0, []
                while counted < 20:
                    docs.append(json.loads(p.stdout.readline()))
                    counted = docs[-1]["pool"]["counters"]["acquire_active"] - before["pool"]["counters"]["acquire_active"]
                self.assertEqual(counted, 20)
                self.assertGreater(max(d["per_second"]["acquire_active"] for d in docs), 0)
                self.assertEqual({d["per_second"]["acquire_cold"] for d in docs}, {0})
            finally:
                p.kill()

    def test_cpu_of_a_box(self):
        def burn(i):
            return self.d.run(self.held[2], "while :; do :; done", timeout_seconds=5) if i == 0 else self.watch()
        _, highest = in_threads(2, burn)
        self.assertGreater(highest, 5)

    def watch(self):
        highest = 0
        def look():
            nonlocal highest
            box = next(b for b in self.json()["boxes"] if b["box_id"] == self.held[2])
            highest = max(highest, box["cpu_percent"])
            return highest > 5 and box["in_flight"] == 1
        wait_for("the box to use a cpu", look)
        return highest

    def test_a_reader_that_goes_away(self):
        with subprocess.Popen([f"{BUILD}/sbxtop", "-b", "-d", "0.1", "--instance", self.d.instance], stdout=subprocess.PIPE) as p:
            self.assertIn(b"sbxd", p.stdout.readline())
            p.stdout.close()
            self.assertEqual(p.wait(BOUND), 0)


class ManPage(unittest.TestCase):
    """It is there, well-formed, and knows every option, column and key."""

    page = f"{ROOT}/docs/sbxtop.1"

    def test_it_is_well_formed(self):
        r = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", self.page], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stdout), (0, ""))

    def test_it_is_complete(self):
        text = slurp(self.page)
        for option in re.findall(r"--([a-z-]+)", top("--help").stdout):
            self.assertRegex(text, rf"Fl -{option}\b")
        for line in top("--columns", "help").stdout.splitlines():
            self.assertRegex(text, rf"(Cm|,) {line.split()[0]}\b")


class WithoutAService(unittest.TestCase):
    def test_exit_status(self):
        r = top("-b", "-n", "1", "--instance", "there-is-none", status=1)
        self.assertIn("there-is-none", r.stderr)
        self.assertIn("no terminal", top(status=1, stdin=subprocess.DEVNULL).stderr)
        self.assertIn("--help", top("--nope", status=2).stderr)
        self.assertIn("usage", top("--help").stdout)
        self.assertIn("thread_id", top("--columns", "help").stdout)
        self.assertRegex(top("--version").stdout, r"^sbxtop \d")

    def test_a_damaged_table(self):
        """Whatever is in it: an error, or something that is shown."""
        d = Daemon("orphan_grace: 1\n")
        try:
            d.acquire("u", "t")
            d.kill()
            path = f"/dev/shm/sbxd-{os.geteuid()}-{d.instance}"
            with open(path, "rb") as f:
                content = f.read()
            with tempfile.TemporaryDirectory() as folder:
                for at in (0, 8, 16, 24, 40, 100, 4096 * 2, 4096 * 10, len(content) // 2, len(content) - 12288):
                    copy = f"{folder}/{at}"
                    with open(copy, "wb") as f:
                        f.write(content[:at] + b"\xff" * 4096 + content[at + 4096:])
                    r = subprocess.run([f"{BUILD}/sbxtop", "-b", "--replay", copy], capture_output=True, timeout=BOUND)
                    self.assertIn(r.returncode, (0, 1), r)
                    self.assertTrue(r.stdout if r.returncode == 0 else r.stderr)
            d.start()
            self.assertEqual(d.stop(), 0)
        finally:
            d.kill()
            d.remove()


class ADeadDaemon(unittest.TestCase):
    def setUp(self):
        self.d = Daemon("replicas: 5\norphan_grace: 60\n")
        self.folder = tempfile.mkdtemp(prefix="sbxd-test-")

    def tearDown(self):
        self.d.kill()
        self.d.start()
        self.assertEqual(self.d.stop(), 0)
        self.assertEqual(self.d.remains(), [])
        self.d.remove()
        shutil.rmtree(self.folder)

    def json(self, *args):
        return json.loads(top("--json", "--instance", self.d.instance, *args).stdout)

    def test_what_it_left(self):
        box = self.d.acquire("dead", "t")["box_id"]
        before = self.d.pool()
        path = f"/dev/shm/sbxd-{os.geteuid()}-{self.d.instance}"
        self.d.process.send_signal(signal.SIGSTOP)
        wait_for("a hung sbxd to show", lambda: self.json()["pool"]["supervisor"]["health"] == "HUNG")
        self.d.kill()
        for ours in (self.json(), self.json("--replay"), json.loads(top("--json", "--replay", path).stdout)):
            self.assertEqual(ours["pool"]["supervisor"]["health"], "DEAD")
            self.assertFalse(ours["pool"]["supervisor"]["alive"])
            self.assertEqual([b["box_id"] for b in ours["boxes"]], [box])
            self.assertEqual(ours["pool"]["counters"]["acquire_cold"], 1)
            self.assertEqual(ours["pool"]["states"], before["states"])
        self.assertIn("DEAD", top("-b", "--replay", "--instance", self.d.instance).stdout.splitlines()[0])
        # A copy, and when the table itself is long gone.
        copy = shutil.copy(path, f"{self.folder}/copy")
        age = self.json("--replay")["boxes"][0]["age_seconds"]
        self.d.start()
        self.d.post("/v1/pool/reset")
        again = json.loads(top("--json", "--replay", copy).stdout)
        self.assertEqual(again["boxes"][0]["state"], "active")
        self.assertEqual(again["boxes"][0]["age_seconds"], age, "the moment is frozen")
        self.assertEqual(self.json()["pool"]["supervisor"]["generation"], 2)

    def test_it_costs_the_pool_nothing(self):
        """A read-only mapping, no descriptor of the table, no lock, and never a connection to the service."""
        self.d.acquire("u", "t")
        handled = self.d.pool()["counters"]
        with subprocess.Popen([f"{BUILD}/sbxtop", "-b", "-d", "0.1", "--instance", self.d.instance], stdout=subprocess.DEVNULL) as p:
            try:
                name = f"/dev/shm/sbxd-{os.geteuid()}-{self.d.instance}"
                maps = wait_for("the table to be mapped", lambda: self.lines_with(f"/proc/{p.pid}/maps", name))
                self.assertEqual({line.split()[1] for line in maps}, {"r--s"})
                links = [os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{p.pid}/fd")]
                self.assertEqual([link for link in links if "shm" in link or "socket" in link], [])
            finally:
                p.kill()
        self.assertEqual(self.d.pool()["counters"], handled)

    @staticmethod
    def lines_with(path, text):
        with open(path, encoding="utf-8") as f:
            return [line for line in f if text in line]


if __name__ == "__main__":
    unittest.main()
