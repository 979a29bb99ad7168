"""sbxbench: its rows, its percentiles, what it does when the service dies or hangs, and that it leaves nothing."""

import csv
import glob
import io
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from harness import BOUND, BUILD, ROOT, Daemon, DaemonTest, children_map, proc_says, slurp, wait_for

FIELDS = ("provider scenario workload iteration concurrency thread_id user_id acquire_ms run_ms release_ms total_ms warm_hit success "
          "error replicas idle_timeout health_check_skip_seconds image no_warmpool").split()
TIMES = ("acquire", "run", "release", "total")


def bench(*args, status=0, **kw):
    r = subprocess.run([f"{BUILD}/sbxbench", *args], capture_output=True, text=True, timeout=BOUND * 8, **kw)
    assert r.returncode == status, f"sbxbench {args}: {r}"
    return r


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


def run(*args, status=0):
    rows = rows_of(bench("run", *args, status=status).stdout)
    for row in rows:
        assert list(row) == FIELDS, row
        assert row["success"] == (row["error"] is None), row
    return rows


class Turns(unittest.TestCase):
    def test_each_scenario(self):
        for scenario, threads, more in (("warm_same_thread", 1, 0), ("cold_unique_thread", 8, 0), ("warm_miss_many_threads", 4, 0),
                                        ("replica_pressure", 6, 0), ("idle_timeout", 8, 8)):
            with self.subTest(scenario):
                rows = run("--scenario", scenario, "--iterations", "8", "--concurrency", "2")
                self.assertEqual(sorted(r["iteration"] for r in rows), list(range(8 + more)))
                self.assertEqual(len({r["thread_id"] for r in rows}), threads)
                self.assertEqual({(r["scenario"], r["workload"], r["concurrency"], r["provider"], r["error"]) for r in rows},
                                 {(scenario, "noop", 2, "sbxd-namespace", None)})
                self.assertEqual({r["idle_timeout"] for r in rows}, {1 if more else 600})
                for r in rows:
                    self.assertGreater(min(r[f"{t}_ms"] for t in TIMES), 0)
                    self.assertGreaterEqual(r["total_ms"] + 0.01, r["acquire_ms"] + r["run_ms"] + r["release_ms"])
                    if scenario != "warm_miss_many_threads" and r["iteration"] > 1:
                        self.assertIs(r["warm_hit"], scenario == "warm_same_thread", r)

    def test_each_workload(self):
        for workload in ("python_small", "fs_1mb", "sleep_2s", "state_reuse"):
            with self.subTest(workload):
                rows = run("--workload", workload, "--iterations", "2")
                self.assertEqual([(r["error"], r["workload"]) for r in rows], [(None, workload)] * 2)
                if workload == "sleep_2s":
                    self.assertGreater(min(r["run_ms"] for r in rows), 2000)

    def test_state_is_lost_without_the_warm_pool(self):
        rows = run("--workload", "state_reuse", "--iterations", "4", "--no-warmpool", status=1)
        self.assertEqual([r["success"] for r in rows], [True, False, True, False])
        self.assertIn("run: the command ended with 1: cat: ", rows[1]["error"])
        self.assertEqual({(r["warm_hit"], r["no_warmpool"]) for r in rows}, {(False, True)})

    def test_a_box_that_is_killed(self):
        rows = run("--iterations", "6", "--fault-inject", "2")
        self.assertEqual([r["warm_hit"] for r in rows], [False, True, True, False, True, True])

    def test_what_is_given_is_in_the_rows(self):
        row = run("--iterations", "1", "--replicas", "7", "--idle-timeout", "99.5", "--health-check-skip-seconds", "2.5",
                  "--image", "host", "--driver", "namespace", "--warmup-iterations", "0")[0]
        self.assertEqual([row[k] for k in FIELDS[-5:]], [7, 99.5, 2.5, "host", False])

    def test_a_command_that_takes_too_long(self):
        rows = run("--workload", "sleep_2s", "--iterations", "2", "--timeout", "1", status=1)
        self.assertEqual(len(rows), 2)
        for r in rows:
            self.assertIn("run: ", r["error"])

    def test_mistakes(self):
        for args, said in ((("--scenario", "x"), "no 'x'"), (("--workload", "x"), "no 'x'"), (("--iterations", "0"), "whole number"),
                           (("--iterations", "1.5"), "whole number"), (("--timeout", "nan"), "seconds"), (("--nonsense",), "unknown option"),
                           (("--socket", "/x", "--replicas", "2"), "private sbxd"), (("--scenario",), "needs a value"),
                           (("--workload", "state_reuse", "--concurrency", "2"), "state_reuse needs"), (("word",), "unexpected")):
            self.assertIn(said, bench("run", *args, status=2).stderr)
        bench("nonsense", status=2)
        bench(status=2)
        self.assertIn("/nowhere/x", bench("run", "--output", "/nowhere/x", status=125).stderr)
        self.assertIn("No such file", bench("run", "--socket", "/nowhere", "--iterations", "1", status=125).stderr)
        self.assertIn("no-such-image", bench("run", "--image", "/no-such-image", "--iterations", "1", status=125).stderr)


class AgainstAService(DaemonTest):
    config = "replicas: 50\n"

    def test_run(self):
        rows = run("--socket", self.d.socket, "--iterations", "6", "--scenario", "cold_unique_thread")
        self.assertEqual({(r["success"], r["replicas"], r["idle_timeout"]) for r in rows}, {(True, 50, None)})
        self.assertEqual([b for b in self.d.get("/v1/boxes").json["boxes"] if b["user_id"] == "bench-user"], [], "removed")


class Bench:
    """An sbxbench that goes on for long, and everything that bears its name."""

    def __init__(self, *args):
        self.out = tempfile.NamedTemporaryFile(prefix="sbxd-test-rows-")
        self.process = subprocess.Popen([f"{BUILD}/sbxbench", *args], stdout=self.out, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def rows(self):
        return rows_of(slurp(self.out.name))

    def daemon(self):
        return next((p for p in children_map().get(self.pid, []) if proc_says(p, "cmdline", rf"sbxd\0.*--instance\0bench-{self.pid}-")), None)

    def await_rows(self, n):
        wait_for("turns", lambda: slurp(self.out.name).count("\n") >= n or self.process.poll() is not None)

    def remains(self):
        named = Daemon.__new__(Daemon)
        named.instance = f"bench-{self.pid}-1"
        named.dir = f"/sbxd-bench-{self.pid}-"
        named.socket = "/nowhere"
        dirs = [d for base in ("/run", "/dev/shm", "/tmp", os.environ.get("XDG_RUNTIME_DIR", "/run")) for d in glob.glob(f"{base}/sbxd-bench-{self.pid}-*")]
        return [r for r in named.remains() if r != f"process {self.pid}"] + dirs

    def close(self):
        self.process.kill()
        self.process.wait(BOUND)
        self.out.close()


class Ends(unittest.TestCase):
    def begin(self, *args, rows=20):
        b = Bench(*args)
        self.addCleanup(b.close)
        b.await_rows(rows)
        self.assertNotEqual(b.remains(), [], "there is something to be left")
        return b

    def end(self, b, status):
        self.assertEqual(b.process.wait(BOUND * 4), status)
        wait_for("nothing to be left", lambda: not b.remains())

    def test_a_service_that_is_killed(self):
        b = self.begin("run", "--iterations", "3000", "--concurrency", "4")
        os.kill(b.daemon(), signal.SIGKILL)
        self.end(b, 1)
        rows = b.rows()
        self.assertEqual(sorted(r["iteration"] for r in rows), list(range(3000)), "each turn has its row")
        self.assertGreater(len([r for r in rows if r["success"]]), 15)
        self.assertIn("not tried: the service is gone", {r["error"] for r in rows})

    def test_a_service_that_hangs(self):
        b = self.begin("run", "--iterations", "2000", "--concurrency", "2", "--timeout", "2")
        os.kill(b.daemon(), signal.SIGSTOP)
        self.end(b, 1)
        errors = [r["error"] for r in b.rows() if not r["success"]]
        self.assertEqual(len(b.rows()), 2000)
        self.assertTrue(any("in time" in e for e in errors), errors[:5])
        self.assertIn("not tried: the service is gone", errors)

    def test_an_interrupted_run(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            b = self.begin("run", "--iterations", "1000000", "--concurrency", "2")
            b.process.send_signal(sig)
            self.end(b, 128 + sig)
            rows = b.rows()
            self.assertEqual(sorted(r["iteration"] for r in rows), list(range(len(rows))), "no turn without a row")

    def test_a_run_that_is_killed(self):
        b = self.begin("run", "--iterations", "1000000", "--concurrency", "2")
        b.process.kill()
        self.end(b, -signal.SIGKILL)

    def test_a_run_that_is_killed_after_its_service(self):
        b = self.begin("run", "--workload", "sleep_2s", "--iterations", "1000", rows=1)
        daemon = b.daemon()
        b.process.send_signal(signal.SIGSTOP)
        os.kill(daemon, signal.SIGKILL)
        b.process.kill()
        self.end(b, -signal.SIGKILL)

    def test_other_commands_that_are_interrupted(self):
        for sig in (signal.SIGINT, signal.SIGKILL):
            b = Bench("scale", "--scopes", "20", "--clients", "2", "--acquires", "100000000")
            self.addCleanup(b.close)
            wait_for("a box", lambda: any("cgroup" in r for r in b.remains()) or b.process.poll() is not None)
            b.process.send_signal(sig)
            self.end(b, 128 + sig if sig != signal.SIGKILL else -sig)

    def test_output_that_nobody_reads(self):
        read, write = os.pipe()
        os.close(read)
        p = subprocess.Popen([f"{BUILD}/sbxbench", "run", "--iterations", "1000000"], stdout=write, stderr=subprocess.DEVNULL)
        os.close(write)
        self.assertEqual(p.wait(BOUND * 2), 125)


class Summaries(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-bench-")
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, name, rows):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("# a comment\n\n" + "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
        return path

    @staticmethod
    def row(rng, n):
        ok = rng.random() > 0.2
        return {"provider": "p", "scenario": rng.choice(["a", "b, \"c\""]), "workload": "w", "concurrency": n, "warm_hit": rng.random() < 0.7,
                "success": ok, "error": None if ok else "x", **{f"{t}_ms": rng.lognormvariate(0, 2) if ok else 1e9 for t in TIMES}}

    def test_percentiles_are_those_of_python(self):
        rng = random.Random(7)
        rows = [self.row(rng, n) for n in (1, 2, 10) for _ in range(rng.choice([3, 200, 1001]))]
        files = [self.write("a", rows[:50]), self.write("b", rows[50:])]
        found = list(csv.DictReader(io.StringIO(bench("summarize", "--csv", *files).stdout)))
        groups = {}
        for r in rows:
            groups.setdefault((r["scenario"], r["concurrency"]), []).append(r)
        self.assertEqual([(g["scenario"], int(g["concurrency"])) for g in found], sorted(groups), "numbers in their order")
        for g in found:
            of = groups[g["scenario"], int(g["concurrency"])]
            ok = [r for r in of if r["success"]]
            self.assertEqual([int(g[k]) for k in ("count", "ok", "errors")], [len(of), len(ok), len(of) - len(ok)])
            self.assertAlmostEqual(float(g["warm_hit_rate"]), sum(r["warm_hit"] for r in ok) / len(ok), delta=0.00051)
            for t in TIMES:
                q = statistics.quantiles([r[f"{t}_ms"] for r in ok], n=100, method="inclusive")
                for p in (50, 95, 99):
                    self.assertAlmostEqual(float(g[f"{t}_p{p}"]), q[p - 1], delta=0.00051, msg=(t, p))

    def test_few_rows(self):
        one = {"provider": "p", "acquire_ms": 4, "total_ms": 9, "success": True}
        path = self.write("one", [one, {"provider": "q", "success": False}])
        found = list(csv.DictReader(io.StringIO(bench("summarize", "--csv", "--group", "provider,nosuch", path).stdout)))
        self.assertEqual([(g["provider"], g["nosuch"], g["count"], g["errors"], g["acquire_p50"], g["run_p99"], g["total_p95"]) for g in found],
                         [("p", "?", "1", "0", "4.000", "0.000", "9.000"), ("q", "?", "1", "1", "", "", "")])
        text = bench("summarize", "--group", "provider", path).stdout.splitlines()
        self.assertEqual(text[0].split()[:5], ["provider", "count", "ok", "errors", "warm_hit_rate"])
        self.assertEqual(len({len(line) for line in text}), 1, "columns stand one under the other")
        self.assertRegex(bench("summarize", "--markdown", path).stdout.splitlines()[1], r"^\|---\|[-:|]+\|$")

    def test_what_is_no_row(self):
        good = {"success": False}
        for bad in ("{", "[]", '{"success":1}', '{"success":true}', '{"success":true,"acquire_ms":-1,"total_ms":1}',
                    '{"success":true,"acquire_ms":"1","total_ms":1}', '{"success":false,"success":false}'):
            path = self.write("bad", [good, bad, good])
            self.assertIn(f"{path}:4: ", bench("summarize", path, status=125).stderr)
        self.assertIn("there is no row", bench("summarize", self.write("none", []), status=125).stderr)
        self.assertIn("No such file", bench("summarize", "/nowhere", status=125).stderr)
        bench("summarize", status=2)
        bench("summarize", "--group", "a,,b", self.write("good", [good]), status=2)

    def test_plot(self):
        rng = random.Random(3)
        path = self.write("rows", [self.row(rng, 1) for _ in range(100)])
        env = {**os.environ, "PATH": "/nowhere"}
        self.assertIn("gnuplot is not installed", bench("plot", path, status=125, env=env).stderr)
        bench("plot", "--time", "x", path, status=2)
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is not installed")
        svg = os.path.join(self.dir, "x.svg")
        bench("plot", "--time", "total", "--output", svg, path)
        text = "".join(xml.etree.ElementTree.parse(svg).getroot().itertext())
        for kind in ("warm", "cold"):
            n = sum(r["success"] and r["warm_hit"] == (kind == "warm") for r in rows_of(slurp(path).split("\n\n")[1]))
            self.assertIn(f"{kind}, {n} turns", text)
        self.assertIn("total, ms", text)


class Others(unittest.TestCase):
    """What measures for long is only seen to work."""

    @staticmethod
    def table(text):
        return [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]

    def test_limits(self):
        table = self.table(bench("limits", "--rounds", "2").stdout)
        self.assertEqual(table[0], ["what", "unit", "best", "p50", "p95", "worst"])
        for what in ("ping-pong", "vfork", "namespaces", "stream"):
            self.assertTrue(any(what in row[0] for row in table), what)

    def test_compare(self):
        out = bench("compare", "--rounds", "1").stdout
        for tool in ("bwrap", "crun", "runc", "podman", "srt"):
            self.assertRegex(out, rf"(?m)^- {tool}(:| is not installed| does not work here)")
        self.assertIn("bwrap: bubblewrap", out)
        for row in self.table(out)[2:]:
            self.assertLessEqual(float(row[5]), float(row[6]))
            self.assertLessEqual(float(row[6]), float(row[7]))

    def test_compare_with_what_is_found_in_path(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-bench-") as d:
            for name, script in (("srt", "echo srt 1.2"), ("podman", "echo told so >&2; exit 3")):
                with open(f"{d}/{name}", "w", encoding="ascii") as f:
                    f.write(f"#!/bin/sh\n{script}\n")
                os.chmod(f"{d}/{name}", 0o755)
            out = bench("compare", "--rounds", "1", env={**os.environ, "PATH": d}).stdout
        self.assertIn("- srt: srt 1.2\n", out)
        self.assertIn("- podman does not work here: exit status 3: told so\n", out)
        self.assertIn("- bwrap is not installed", out)
        self.assertEqual([row[0] for row in self.table(out)[2:] if row[0] not in ("crun", "runc")], ["srt", "srt"])

    def test_scale(self):
        tables = self.table(bench("scale", "--scopes", "3,9", "--clients", "1,4", "--acquires", "40").stdout)
        self.assertEqual([row[:2] for row in tables[2:6]], [["3", "1"], ["3", "4"], ["9", "1"], ["9", "4"]])
        self.assertEqual([row[0] for row in tables[8:]], ["3", "9"])
        bench("scale", "--scopes", "3,2", status=2)

    def test_ratios(self):
        rows = self.table(subprocess.run([f"{BUILD}/sbxbench", "ratios", "memory"], capture_output=True, text=True, timeout=BOUND * 4).stdout)
        self.assertEqual([row[0] for row in rows[2:]], ["memory of an idle box (PSS)"])
        self.assertIn("no section 'x'", bench("ratios", "x", status=2).stderr)


class Documents(unittest.TestCase):
    def test_the_readme_quotes_only_what_was_measured(self):
        numbers = re.search(r"^## Numbers\n(.*?)^## ", slurp(f"{ROOT}/README.md"), re.M | re.S).group(1)
        page = slurp(f"{ROOT}/docs/benchmarks.md")
        quoted = [line for line in numbers.splitlines() if line.startswith("|")]
        self.assertGreater(len(quoted), 5)
        for line in quoted:
            self.assertIn(line, page.splitlines())
        prose = "\n".join(line for line in numbers.splitlines() if not line.startswith("|"))
        for number in re.findall(r"\d+\.\d+", prose):
            self.assertIn(number, page)

    def test_the_manual_page_has_what_help_says(self):
        page = slurp(f"{ROOT}/docs/sbxbench.1")
        commands = re.findall(r"^  (\w+) .*\n      \S", bench("--help").stdout, re.M)
        self.assertEqual(re.findall(r"^\.It Ic (\w+)$", page, re.M), commands)
        documented = set(re.findall(r"^\.It Fl -(\S+)", page, re.M))
        options = set()
        for command in commands:
            options |= set(re.findall(r"^  --(\S+)", bench(command, "--help").stdout, re.M))
        self.assertEqual(documented, options)
        self.assertRegex(bench("--version").stdout, r"^sbxbench \d")

    def test_scenarios_and_workloads(self):
        page = slurp(f"{ROOT}/docs/sbxbench.1")
        for option in ("scenario", "workload"):
            names = re.findall(r"^  (\w+) ", bench("run", f"--{option}", "x", status=2).stderr, re.M)
            self.assertEqual(len(names), 5)
            for name in names:
                self.assertRegex(page, rf"\bCm {name}\b|\n\.Cm {name}\b")
