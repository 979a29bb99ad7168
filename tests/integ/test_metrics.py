"""Metrics: for BoxLite clients, of the service and of one box; and as OpenMetrics for those that scrape."""

import json
import os
import signal
import unittest

import openmetrics
from harness import IS_ROOT, DaemonTest, start_time, wait_for


class MetricsTest(DaemonTest):
    config = "replicas: 20\n"

    def tearDown(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def scrape(self):
        r = self.d.get("/metrics")
        self.assertEqual(r.status, 200, r)
        self.assertEqual(r.headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        return openmetrics.parse(r.body.decode())

    def runtime(self):
        m = self.d.get("/v1/metrics").json
        for name, value in m.items():
            self.assertIs(type(value), int, name)
            self.assertGreaterEqual(value, 0, name)
        # Clients work out by themselves how many run.
        self.assertEqual(m["boxes_created_total"] - m["boxes_failed_total"] - m["boxes_stopped_total"], m["num_running_boxes"], m)
        return m


class Runtime(MetricsTest):
    def test_boxes_come_and_go(self):
        before = self.runtime()
        boxes = [self.d.acquire("u", str(i))["box_id"] for i in range(3)]
        self.d.release(boxes[0])
        m = self.runtime()
        self.assertEqual(m["num_running_boxes"], 3)
        self.assertEqual(m["boxes_created_total"], before["boxes_created_total"] + 3)
        self.d.request("DELETE", f"/v1/boxes/{boxes[1]}?force=true")
        m = self.runtime()
        self.assertEqual((m["num_running_boxes"], m["boxes_stopped_total"]), (2, before["boxes_stopped_total"] + 1))

    def test_commands_of_boxes_that_are_gone_count(self):
        before = self.runtime()
        box = self.d.acquire("u", "commands")["box_id"]
        for _ in range(3):
            self.d.sh(box, "true")
        self.d.run(box, "exit 3")  # it was executed
        self.d.post(f"/v1/boxes/{box}/run", {"argv": ["/no/such/program"]})
        wait_for("all to be counted", lambda: self.runtime()["total_commands_executed"] == before["total_commands_executed"] + 5)
        self.assertEqual(self.runtime()["total_exec_errors"], before["total_exec_errors"] + 1)
        alive = self.runtime()
        self.d.request("DELETE", f"/v1/boxes/{box}?force=true")
        self.assertEqual({**self.runtime(), "boxes_stopped_total": 0, "num_running_boxes": 0}, {**alive, "boxes_stopped_total": 0, "num_running_boxes": 0})

    def test_they_never_decrease(self):
        box = self.d.acquire("u", "restart")["box_id"]
        self.d.sh(box, "true")
        last = self.runtime()
        for how in (signal.SIGKILL, signal.SIGUSR2):
            self.d.process.send_signal(how)
            self.d.process.wait(30)
            self.d.start()
            now = self.runtime()
            for name in last:
                self.assertGreaterEqual(now[name], last[name], name)
            last = now
        worker = self.d.inspect(box)["pid"]
        born = start_time(worker)
        os.kill(worker, signal.SIGKILL)
        wait_for("its end", lambda: start_time(worker) != born and self.d.get(f"/v1/boxes/{box}").status == 404)
        now = self.runtime()
        self.assertEqual(now["total_commands_executed"], last["total_commands_executed"])
        self.assertEqual(now["boxes_stopped_total"], last["boxes_stopped_total"] + 1)


class Box(MetricsTest):
    def metrics(self, box):
        r = self.d.get(f"/v1/boxes/{box}/metrics")
        self.assertEqual(r.status, 200, r)
        return r.json

    def test_of_one_box(self):
        box = self.d.acquire("u", "one")["box_id"]
        m = self.metrics(box)
        for name in ("commands_executed_total", "exec_errors_total", "bytes_sent_total", "bytes_received_total"):
            self.assertEqual(m[name], 0, name)
        for name in ("network_bytes_sent", "network_bytes_received", "network_tcp_connections", "network_tcp_errors"):
            self.assertIsNone(m[name], name)
        self.d.run(box, "cat; echo error >&2", stdin="x" * 1000)
        self.d.post(f"/v1/boxes/{box}/run", {"argv": ["/no/such/program"]})
        m = wait_for("it to be counted", lambda: (lambda m: m["commands_executed_total"] == 2 and m)(self.metrics(box)))
        self.assertEqual((m["exec_errors_total"], m["bytes_sent_total"], m["bytes_received_total"]), (1, 1000, 1006))

    @unittest.skipUnless(IS_ROOT, "an ordinary user has no cgroups to read them from")
    def test_its_use_of_cpu_and_memory(self):
        box = self.d.acquire("u", "use")["box_id"]
        self.d.run(box, "while :; do :; done & echo $! > /tmp/pid")
        c = self.d.connect()  # something must happen for the worker to look
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": "while [ ! -e /tmp/go ]; do sleep 0.1; done"}))
        busy = wait_for("cpu", lambda: (lambda m: (m["cpu_percent"] or 0) > 1 and m)(self.metrics(box)))
        self.assertLessEqual(busy["cpu_percent"], 100)
        self.assertGreater(busy["memory_bytes"], 0)
        self.d.sh(box, "kill $(cat /tmp/pid); touch /tmp/go")
        c.getresponse().read()
        c.close()
        wait_for("rest", lambda: self.metrics(box)["cpu_percent"] == 0)

    def test_how_long_it_took_to_come(self):
        box = self.d.acquire("u", "boot")["box_id"]
        timing = self.metrics(box)["boot_timing"]
        self.assertGreaterEqual(timing["total_create_ms"], timing["guest_boot_ms"])
        self.assertGreaterEqual(timing["guest_boot_ms"], 0)
        for name in ("filesystem_setup_ms", "image_prepare_ms", "guest_rootfs_ms", "box_config_ms", "box_spawn_ms", "container_init_ms"):
            self.assertIsNone(timing[name], name)
        self.d.kill()
        self.d.start()
        timing = self.metrics(box)["boot_timing"]  # nobody knows any more
        self.assertEqual((timing["total_create_ms"], timing["guest_boot_ms"]), (None, None))

    def test_of_none(self):
        r = self.d.get("/v1/boxes/nobodys/metrics")
        self.assertEqual((r.status, r.reason), (404, "not_found"))
        self.assertEqual(self.d.post("/v1/boxes/nobodys/metrics").status, 405)


class OpenMetrics(MetricsTest):
    def test_made_boxes_are_counted(self):
        names = ("sbxd_creates", "sbxd_starts", "sbxd_stops")
        before = self.scrape()
        box = self.d.post("/v1/boxes", {}).json["box_id"]
        self.d.sh(box, "true")
        self.assertEqual(self.d.post(f"/v1/boxes/{box}/stop", {}).status, 200)
        after = self.scrape()
        self.assertEqual([after[n].value("_total") - before[n].value("_total") for n in names], [1, 1, 1])

    def test_it_is_as_the_specification_says(self):
        families = self.scrape()  # before anything has happened
        self.assertTrue(all(f.name.startswith("sbxd_") for f in families.values()))
        box = self.d.acquire("u", "spec")["box_id"]
        self.d.sh(box, "true")
        self.d.release(box)
        self.d.acquire("u", "spec")
        self.scrape()

    def test_it_says_what_the_pool_says(self):
        box = self.d.acquire("u", "same")["box_id"]
        self.d.acquire("u", "same")
        self.d.release(box)
        self.d.get("/v1/nothing")
        pool, m = self.d.pool(), self.scrape()
        for state, n in pool["states"].items():
            self.assertEqual(m["sbxd_boxes"].value(state=state), n, state)
        for source in ("active", "warm", "prewarmed", "cold"):
            n = pool["counters"][f"acquire_{source}"]
            self.assertEqual(m["sbxd_acquires"].value("_total", source=source), n)
            self.assertEqual(m["sbxd_acquire_duration_seconds"].value("_count", source=source), n)
        for name in ("releases", "boots", "boot_failures", "checks", "evictions", "closes", "worker_crashes", "handovers", "rejected_requests"):
            self.assertEqual(m[f"sbxd_{name}"].value("_total"), pool["counters"][name], name)
        self.assertEqual(m["sbxd_acquire_failures"].value("_total"), pool["counters"]["acquire_failed"])
        self.assertEqual(m["sbxd_replicas"].value(), 20)
        self.assertEqual(m["sbxd_waiters"].value(), 0)
        self.assertEqual(m["sbxd_clients"].value(), 1)
        self.assertGreaterEqual(m["sbxd_uptime_seconds"].value(), pool["supervisor"]["uptime_seconds"])
        self.assertEqual(m["sbxd_build"].samples, [("_info", {"version": pool["supervisor"]["version"], "driver": "namespace", "isolation": "namespace"}, 1)])

    def test_histograms_hold_what_was_measured(self):
        before = self.scrape()["sbxd_boot_duration_seconds"]
        boxes = [self.d.acquire("u", f"hist{i}")["box_id"] for i in range(4)]
        after = self.scrape()["sbxd_boot_duration_seconds"]
        self.assertEqual(after.value("_count") - before.value("_count"), 4)
        self.assertGreater(after.value("_sum"), before.value("_sum"))
        self.assertEqual(after.value("_bucket", le="0.000016383"), before.value("_bucket", le="0.000016383"), "no box boots within 16 us")
        p99 = self.d.pool()["latency"]["boot"]["p99_us"] / 1e6
        least = next(float(l["le"]) for s, l, v in after.samples if s == "_bucket" and v == after.value("_count"))
        self.assertLessEqual(p99 * 0.5, least)
        for box in boxes:
            self.d.request("DELETE", f"/v1/boxes/{box}?force=true")
        self.assertGreaterEqual(self.scrape()["sbxd_close_duration_seconds"].value("_count"), 4)

    def test_bytes_and_commands(self):
        before = self.scrape()
        box = self.d.acquire("u", "bytes")["box_id"]
        self.d.write(box, "/tmp/f", b"x" * 5000)
        self.assertEqual(len(self.d.read(box, "/tmp/f").body), 5000)
        self.d.sh(box, "true")
        self.d.request("DELETE", f"/v1/boxes/{box}?force=true")
        after = self.scrape()

        def grown(name):
            return after[name].value("_total") - before[name].value("_total")
        self.assertEqual((grown("sbxd_input_bytes"), grown("sbxd_output_bytes"), grown("sbxd_commands"), grown("sbxd_command_failures")), (5000, 5000, 1, 0))
        self.assertEqual(after["sbxd_input_bytes"].unit, "bytes")


class Parser(unittest.TestCase):
    """The parser above refuses what is none: else it would prove nothing."""

    good = ("# TYPE a counter\n# HELP a x\na_total 1\n# TYPE h histogram\n# HELP h x\n"
            'h_bucket{le="1.0"} 1\nh_bucket{le="+Inf"} 2\nh_count 2\nh_sum 3\n# EOF\n')

    def test_good(self):
        self.assertEqual(set(openmetrics.parse(self.good)), {"a", "h"})

    def test_bad(self):
        for old, new in (("# EOF\n", ""), ("# EOF\n", "# EOF"), ("a_total 1", "a 1"), ("a_total 1", "a_total x"), ("a_total 1", "a_total -1"),
                         ("a_total 1", "a_total  1"), ("a_total 1", "\na_total 1"), ("# TYPE a counter\n", ""), ("# TYPE a counter\n", "# TYPE a meter\n"),
                         ("a_total 1", "a_total 1\na_total 2"), ("h_count 2", "h_count 3"), ('"1.0"} 1', '"1.0"} 3'), ('h_bucket{le="+Inf"} 2\n', ""),
                         ('le="1.0"', "le=1.0"), ("h_sum 3\n", ""), ("# HELP a x\n", "# HELP a x\n# HELP a y\n"), ("a_total 1", "a_total 1 1 1"),
                         ("# HELP a x\n", "# HELP a x\n# UNIT a seconds\n"), ('{le="1.0"}', '{le="1.0",le="2.0"}'), ("# EOF", "# TYPE a gauge\na 1\n# EOF")):
            with self.assertRaises(AssertionError, msg=(old, new)):
                openmetrics.parse(self.good.replace(old, new, 1))


if __name__ == "__main__":
    unittest.main()
