"""Boxes that are micro-VMs, through the whole service: clones, parks, identities."""

import os
import time
import unittest

import images
import micro_vm
from harness import DaemonTest, in_threads, slurp, wait_for

IDENTITY = ("cat /proc/sys/kernel/random/boot_id /etc/machine-id /etc/hostname; hostname; head -c 32 /dev/urandom | xxd -p -c 64;"
            "cat /proc/sys/kernel/random/uuid; mktemp -u XXXXXXXXXXXX")


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

    def test_copies_share_nothing_that_should_differ(self):
        boxes = in_threads(4, lambda i: self.d.acquire("u", f"copy{i}")["box_id"])
        said = [self.d.sh(b, IDENTITY).split("\n")[:-1] for b in boxes]
        for what in zip(*said):
            self.assertEqual(len(set(what)), len(boxes), what)
        for b in boxes:
            self.d.release(b)

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
        box = self.d.acquire("u", "busy")["box_id"]
        e = self.d.post(f"/v1/boxes/{box}/exec", {"command": "sh", "args": ["-c", "for i in $(seq 40); do sleep 0.05; done; echo done > /tmp/done"]})
        self.assertEqual(e.status, 201, e)
        self.d.release(box)
        url = f"/v1/boxes/{box}/executions/{e.json['execution_id']}"
        wait_for("the execution to end", lambda: self.d.get(url).json["status"] != "running")
        self.d.acquire("u", "busy")
        self.assertEqual(self.d.sh(box, "cat /tmp/done"), "done\n")
        self.d.release(box)

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
