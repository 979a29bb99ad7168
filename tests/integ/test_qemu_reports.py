"""What users of such systems reported (test_reports), where the box is a micro-VM."""

import glob
import os
import time
import unittest

import micro_vm
import test_reports
from harness import DaemonTest, descendants, in_threads, open_fds, proc_says, wait_for


@micro_vm.needs_vm
class JudgedDead(test_reports.JudgedDead):
    """Row 5: the worker of a machine, and its QEMU; a pid of theirs that is another's now."""

    config = micro_vm.config("replicas: 4\n").replace("health_check_timeout: 20", "health_check_timeout: 2")


@micro_vm.needs_vm
class Kept(DaemonTest):
    config = micro_vm.config("replicas: 4\n")

    def test_row_16_descriptors_and_files_are_back_after_the_work(self):
        def round_trip(i):
            box = self.d.acquire("leak", str(i % 4))["box_id"]
            self.d.write(box, "/tmp/x", b"x" * 10000)
            self.assertEqual(self.d.sh(box, "wc -c < /tmp/x"), "10000\n")
            self.d.release(box)

        def clean():
            for b in self.d.get("/v1/boxes").json["boxes"]:
                self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")
            wait_for("no box", lambda: self.d.pool()["boxes"] == 0)

        def counts():
            """Descriptors of sbxd and of the janitor; files of the store."""
            janitor = next(p for p in descendants(self.d.process.pid) if proc_says(p, "cmdline", "janitor"))
            return [len(open_fds(self.d.process.pid)), len(open_fds(janitor)), len(os.listdir(f"{self.d.dir}/state/qemu"))]

        round_trip(0)
        clean()
        before = wait_for("quiet", lambda: counts() if self.d.pool()["clients"] == 1 else None)
        for _ in range(2):
            in_threads(4, round_trip)
            clean()
        # The first count may hold a connection that was about to be closed.
        wait_for(f"{before} again", lambda: all(now <= then for now, then in zip(counts(), before)))
        self.assertEqual(len(glob.glob(f"{self.d.dir}/state/qemu/template-*")), 1)


@micro_vm.needs_vm
class Copies(DaemonTest):
    config = micro_vm.config("replicas: 4\n")

    # Of the kernel; of what programs draw from it; and the names.
    DRAWN = ("cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid /etc/machine-id /etc/hostname; uname -n;"
             "head -c 32 /dev/urandom | xxd -p -c 64; dd if=/dev/random bs=32 count=1 2>/dev/null | xxd -p -c 64; mktemp -u XXXXXXXXXXXX")

    def test_row_19_copies_share_no_random_state(self):
        """That each was given fresh bytes before it ran anything is seen in tests/unit/guest/test_vm_wake.c."""
        boxes = in_threads(4, lambda i: self.d.acquire("row 19", str(i))["box_id"])
        drawn = [self.d.sh(b, self.DRAWN).splitlines() for b in boxes]
        self.assertEqual({len(d) for d in drawn}, {8}, drawn)
        for values in zip(*drawn):
            self.assertEqual(len(set(values)), len(boxes), values)
        for box, names in zip(boxes, drawn):
            self.assertEqual(names[3], names[4], "its host name is the one that it has written down")
            self.d.release(box)

    def assert_clock_is_right(self, box):
        """Between two looks at the host's, both of which the guest's whole seconds may round off."""
        before = int(time.time())
        said = int(self.d.sh(box, "date +%s"))
        self.assertLessEqual(before, said)
        self.assertLessEqual(said, time.time() + 1)

    def test_row_19_the_clock_of_a_copy_does_not_lag(self):
        first = self.d.acquire("row 19", "clock")["box_id"]
        self.assert_clock_is_right(first)
        made = os.stat(glob.glob(f"{self.d.dir}/state/qemu/template-*/memory")[0]).st_mtime
        wait_for("the template to be old", lambda: time.time() > made + 5)  # by so much a copy's clock would lag
        copy = self.d.acquire("row 19", "clock of a copy")["box_id"]
        self.assert_clock_is_right(copy)
        self.d.release(first)  # it stands still now
        parked = time.time()
        wait_for("the parked box to be old", lambda: time.time() > parked + 5)
        self.assertEqual(self.d.acquire("row 19", "clock")["box_id"], first)
        self.assert_clock_is_right(first)
        for box in (first, copy):
            self.d.release(box)


if __name__ == "__main__":
    unittest.main()
