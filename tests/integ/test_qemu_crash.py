"""Workers of micro-VMs that are killed where only they come by: nothing is left, and the next acquire works."""

import glob
import shutil
import signal
import unittest

import micro_vm
from harness import DaemonTest, Fault, wait_for
from test_qemu import qemus

MAKING = ("driver.qemu.template.booted", "driver.qemu.template.memory", "driver.qemu.template.noted")
PARKING = ("worker.park", "worker.roused")
FAULTS = {point: Fault("qemu-" + point) for point in MAKING + PARKING}


@micro_vm.needs_vm
class Killed(DaemonTest):
    config = micro_vm.config("replicas: 4\n")
    env = {"SBX_FAULT": ",".join(f"worker/{point}=kill@{fault.path}" for point, fault in FAULTS.items())}

    def store(self, ending):
        return glob.glob(f"{self.d.dir}/state/qemu/template-*{ending}")

    def end(self, box):
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)
        wait_for("its QEMU to be gone", lambda: not qemus(self.d))

    def test_while_it_makes_a_template(self):
        for point in MAKING:
            for template in self.store(""):
                shutil.rmtree(template)
            FAULTS[point].arm()
            box = self.d.acquire("u", point)["box_id"]  # sbxd tries again
            self.assertTrue(FAULTS[point].hit(), point)
            self.assertEqual(self.d.sh(box, "echo up"), "up\n")
            self.assertEqual(len(self.store("")), 1)
            self.assertEqual(self.store(".new") + self.store(".lock"), [])
            self.end(box)

    def test_with_parking(self):
        for point in PARKING:
            box = self.d.acquire("u", point)["box_id"]
            before = self.d.inspect(box)["generation"]
            FAULTS[point].arm()
            self.d.release(box)
            box = self.d.acquire("u", point)["box_id"]
            self.assertTrue(FAULTS[point].hit(), point)
            self.assertGreater(self.d.inspect(box)["generation"], before)
            self.assertEqual(self.d.sh(box, "echo up"), "up\n")
            self.end(box)

    def test_and_sbxd_is(self):
        """What is parked, and what is in use, lives on under the next one."""
        used = self.d.acquire("u", "used")["box_id"]
        parked = self.d.acquire("u", "parked")["box_id"]
        for box in (used, parked):
            self.d.sh(box, "echo kept > /tmp/f")
        self.d.release(parked)
        before = {box: self.d.inspect(box)["generation"] for box in (used, parked)}
        self.d.kill()
        self.d.start()
        for thread, box in (("used", used), ("parked", parked)):
            self.assertEqual(self.d.acquire("u", thread)["box_id"], box)
            self.assertEqual(self.d.inspect(box)["generation"], before[box])
            self.assertEqual(self.d.sh(box, "cat /tmp/f"), "kept\n")
        for box in (used, parked):
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)
        wait_for("their QEMUs to be gone", lambda: not qemus(self.d))
        self.assertEqual(self.d.stop(signal.SIGTERM), 0)
        self.d.start()


if __name__ == "__main__":
    unittest.main()
