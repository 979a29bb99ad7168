"""Boxes that are micro-VMs, through the whole service: what they are, parks, stock. Copies: test_qemu_reports."""

import os
import time
import unittest

import images
import micro_vm
from harness import DaemonTest, Fault, slurp, wait_for

def qemus(d):
    """QEMU processes of the daemon's boxes: their pids."""
    found = []
    for pid in d.processes():
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read().startswith("qemu-system"):
                    found.append(pid)
        except OSError:
            pass
    return found


@micro_vm.needs_vm
class Qemu(DaemonTest):
    config = micro_vm.config("replicas: 8\n")
    stopping = Fault("qemu-stopping")
    env = {"SBX_FAULT": f"worker/worker.park=kill@{stopping.path}"}

    def test_a_box_is_a_machine_of_its_own(self):
        box = self.d.acquire("u", "machine")
        self.assertEqual(self.d.pool()["isolation"], "microvm-tcg")
        self.assertEqual(self.d.inspect(box["box_id"])["isolation"], "microvm-tcg")
        self.assertIn("cloud-amd64", self.d.sh(box["box_id"], "uname -r"))
        self.assertEqual(self.d.sh(box["box_id"], "echo $((6 * 7)); id -u"), "42\n0\n")
        self.d.write(box["box_id"], "/tmp/f", b"x" * 300000)
        self.assertEqual(self.d.sh(box["box_id"], "wc -c < /tmp/f"), "300000\n")
        self.assertEqual(self.d.read(box["box_id"], "/tmp/f").body, b"x" * 300000)
        listed = self.d.get(f"/v1/boxes/{box['box_id']}/fs/list?path=/tmp").json
        self.assertEqual([e["path"] for e in listed["entries"]], ["f"], listed)
        self.d.release(box["box_id"])

    def guest_time(self, box):
        """Seconds since its epoch, and since its start."""
        out = self.d.sh(box, "date +%s; cut -d' ' -f1 /proc/uptime").split()
        return int(out[0]), float(out[1])

    def test_a_parked_box_stands_still_and_wakes_to_the_time_of_the_host(self):
        box = self.d.acquire("u", "clock")["box_id"]
        began = time.monotonic()
        _, up = self.guest_time(box)
        self.d.release(box)
        time.sleep(6)  # what is tested is that this time does not pass in the box
        self.assertEqual(self.d.acquire("u", "clock")["box_id"], box)
        wall, up_now = self.guest_time(box)
        self.assertLess(up_now - up, time.monotonic() - began - 3)
        self.assertLess(abs(wall - time.time()), 3)
        self.d.release(box)

    def test_what_runs_keeps_a_parked_box_awake(self):
        """Its worker would be killed where it stops the machine: not while a command runs, and as soon as none does."""
        box = self.d.acquire("u", "busy")["box_id"]
        e = self.d.post(f"/v1/boxes/{box}/exec", {"command": "sh", "args": ["-c", "until test -e /tmp/go; do sleep 0.05; done; echo done"]})
        self.assertEqual(e.status, 201, e)
        self.stopping.arm()
        self.d.release(box)
        again = self.d.acquire("u", "busy")  # what it is told after the release, it has done after it
        self.assertFalse(self.stopping.hit())
        self.assertEqual((again["source"], again["box_id"]), ("warm", box))
        self.assertEqual(self.d.write(box, "/tmp/go", b"").status, 200)
        url = f"/v1/boxes/{box}/executions/{e.json['execution_id']}"
        wait_for("the execution to end", lambda: self.d.get(url).json["status"] != "running")
        self.assertEqual(self.d.get(url).json["exit_code"], 0)
        self.d.release(box)
        wait_for("the machine to be stopped", self.stopping.hit)
        wait_for("the box to be gone", lambda: self.d.get(f"/v1/boxes/{box}").status == 404)

    def test_templates_cannot_be_written_by_the_qemu_that_uses_them(self):
        box = self.d.acquire("u", "readonly")["box_id"]
        for pid in qemus(self.d):
            opened = {os.readlink(f"/proc/{pid}/fd/{fd}"): fd for fd in os.listdir(f"/proc/{pid}/fd")}
            stored = {path: fd for path, fd in opened.items() if "/state/qemu/" in path}
            self.assertTrue(any(p.endswith("/memory") for p in stored), opened)
            for path, fd in stored.items():
                flags = next(line for line in slurp(f"/proc/{pid}/fdinfo/{fd}").splitlines() if line.startswith("flags:"))
                self.assertEqual(int(flags.split()[1], 8) & os.O_ACCMODE, os.O_RDONLY, path)
            status = slurp(f"/proc/{pid}/status")
            self.assertIn("NoNewPrivs:\t1", status)
            self.assertRegex(status, r"CapPrm:\t0+\n")
            self.assertRegex(status, r"Seccomp:\t2")
            uid = int(status.split("\nUid:\t")[1].split()[0])
            self.assertGreater(uid, 65535)
        self.d.release(box)


@micro_vm.needs_vm
class OfTheStore(images.ImagesTest):
    config = micro_vm.config("replicas: 2\n")

    def test_a_machine_of_an_image_of_the_store(self):
        image = images.Image(images.base(), Env=["PATH=/bin", "SAYS=image"], User="app", WorkingDir="/home/app")
        reference = self.layout(image)
        box = self.box(reference)
        self.assertEqual(self.d.inspect(box)["isolation"], "microvm-tcg")
        self.assertEqual(self.d.sh(box, "id -u; pwd; cat own; echo $SAYS"), "1234\n/home/app\napp's\nimage\n")
        self.assertTrue(self.listed()[reference]["in_use"])


@micro_vm.needs_vm
class Stock(DaemonTest):
    config = micro_vm.config("replicas: 2\nprewarm: 1\n")

    def test_stock_is_a_paused_copy(self):
        wait_for("the stock", lambda: self.d.pool()["states"]["stock"] == 1, 120)
        got = self.d.acquire("u", "stock")
        self.assertEqual(got["source"], "prewarmed")
        self.assertEqual(self.d.sh(got["box_id"], "echo up"), "up\n")
        self.d.release(got["box_id"])


if __name__ == "__main__":
    unittest.main()
