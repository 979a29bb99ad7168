"""Micro-VMs when something dies, hangs, is missing or is damaged: a clear error within a bound, and the next acquire works."""

import glob
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import micro_vm
from harness import BOUND, Daemon, DaemonTest, in_threads, wait_for
from test_qemu import qemus

# Somebody in the box stops its first process for good. PTRACE_SEIZE, PTRACE_INTERRUPT.
HANG_INIT = "perl -e 'syscall(101, 0x4206, 1, 0, 0) == 0 or die; syscall(101, 0x4207, 1, 0, 0) == 0 or die; sleep 1000'"


def remove(d, box):
    return d.request("DELETE", f"/v1/boxes/{box}?force=true").status


@micro_vm.needs_vm
class Dies(DaemonTest):
    config = micro_vm.config("replicas: 4\n").replace("health_check_timeout: 20", "health_check_timeout: 2")

    def box(self, thread):
        box = self.d.acquire("u", thread)["box_id"]
        self.generation = self.d.inspect(box)["generation"]
        return box

    def works_again(self, thread):
        new = self.d.acquire("u", thread)["box_id"]
        self.assertGreater(self.d.inspect(new)["generation"], self.generation)
        self.assertEqual(self.d.sh(new, "echo up"), "up\n")
        self.assertEqual(remove(self.d, new), 204)
        wait_for("its QEMU to be gone", lambda: not qemus(self.d))

    def gone(self, box):
        wait_for("the box to be gone", lambda: self.d.get(f"/v1/boxes/{box}").status == 404)

    def test_qemu_is_killed(self):
        box = self.box("killed")
        for pid in qemus(self.d):
            os.kill(pid, signal.SIGKILL)
        self.gone(box)
        self.works_again("killed")

    def test_qemu_is_killed_while_parked(self):
        box = self.box("parked")
        self.d.release(box)
        for pid in qemus(self.d):
            os.kill(pid, signal.SIGKILL)
        self.works_again("parked")

    def test_the_guests_kernel_panics(self):
        box = self.box("panic")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": "echo c > /proc/sysrq-trigger; sleep 100"})
        self.assertEqual((r.status, r.reason), (410, "box_died"), r)
        self.works_again("panic")

    def test_the_guest_powers_off(self):
        box = self.box("off")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": "echo o > /proc/sysrq-trigger; sleep 100"})
        self.assertEqual((r.status, r.reason), (410, "box_died"), r)
        self.works_again("off")

    def test_the_guest_hangs(self):
        box = self.box("hangs")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": HANG_INIT}, timeout=BOUND * 2)
        self.assertEqual((r.status, r.reason), (410, "box_died"), r)
        self.works_again("hangs")

    def test_qemu_hangs_while_parked(self):
        box = self.box("stopped")
        self.d.release(box)
        for pid in qemus(self.d):
            os.kill(pid, signal.SIGSTOP)
        self.works_again("stopped")

    def test_the_worker_is_killed(self):
        box = self.box("worker")
        os.kill(self.d.inspect(box)["pid"], signal.SIGKILL)
        self.gone(box)
        self.works_again("worker")


@micro_vm.needs_vm
class Damaged(DaemonTest):
    config = micro_vm.config("replicas: 4\n")

    def template(self):
        found = [t for t in glob.glob(f"{self.d.dir}/state/qemu/template-*") if not t.endswith((".new", ".lock"))]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def made(self):
        """When its memory was written."""
        return os.stat(self.template() + "/memory").st_mtime_ns

    def use(self, thread):
        box = self.d.acquire("u", thread)["box_id"]
        self.assertEqual(self.d.sh(box, "echo up"), "up\n")
        self.assertEqual(remove(self.d, box), 204)

    def rebuilt_after(self, damage):
        self.use("before")
        old = self.made()
        damage(self.template())
        self.use("after")
        self.assertGreater(self.made(), old)
        self.assertEqual(glob.glob(f"{self.d.dir}/state/qemu/*.new"), [])
        self.assertEqual(glob.glob(f"{self.d.dir}/state/qemu/*.lock"), [])

    def test_what_is_damaged_is_made_anew(self):
        def overwrite(template):
            with open(f"{template}/state", "r+b") as f:
                f.seek(1000)
                f.write(b"\xff" * 64)

        self.rebuilt_after(overwrite)

    def test_what_is_whole_but_dead_is_made_anew(self):
        """Its note fits, and no machine comes to life from it."""
        def replace(template):
            with open(f"{template}/note", "r+b") as note, open(f"{template}/state", "r+b") as state:
                data = bytes(len(state.read()))
                state.seek(0)
                state.write(data)
                head = bytearray(note.read())
                head[64:96] = hashlib.sha256(data).digest()
                head[96:128] = hashlib.sha256(head[:96]).digest()
                note.seek(0)
                note.write(head)

        self.rebuilt_after(replace)
        self.assertIn("does not come to life, and is made anew", self.d.log())

    def test_one_that_is_half_written_is_no_obstacle(self):
        def damage(template):
            os.rename(template, template + ".new")
            os.unlink(template + ".new/state")

        self.rebuilt_after(damage)

    def test_it_outlives_sbxd(self):
        self.use("before")
        old = self.made()
        self.assertEqual(self.d.stop(), 0)
        self.d.start()
        self.use("after")
        self.assertEqual(self.made(), old)

    def test_many_at_once_make_one(self):
        self.use("before")
        shutil.rmtree(self.template())
        boxes = in_threads(4, lambda i: self.d.acquire("u", f"many{i}")["box_id"])
        self.template()
        for b in boxes:
            remove(self.d, b)


class NoSpace(unittest.TestCase):
    """The state directory is a small file system of its own."""

    def setUp(self):
        if micro_vm.missing():
            self.skipTest(micro_vm.missing())
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-full-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=90m,mode=0700", "full", self.dir], check=True)

    def tearDown(self):
        subprocess.run(["umount", self.dir], check=True)
        os.rmdir(self.dir)

    def test_a_template_finds_no_room_and_then_some(self):
        d = Daemon(micro_vm.config(), args=["--state-dir", self.dir])
        try:
            r = d.post("/v1/acquire", {"user_id": "u", "thread_id": "t"}, timeout=BOUND * 2)
            self.assertGreaterEqual(r.status, 500, r)
            self.assertIn("No space left on device", r.body.decode())
            self.assertEqual(glob.glob(f"{self.dir}/qemu/*.new"), [])
            self.assertEqual(qemus(d), [])
            subprocess.run(["mount", "-o", "remount,size=900m", self.dir], check=True)
            self.assertEqual(d.sh(d.acquire("u", "t")["box_id"], "echo up"), "up\n")
        finally:
            self.assertEqual(d.stop(), 0)
            left = d.remains()
            d.remove()
        self.assertEqual(left, [])


class Missing(unittest.TestCase):
    """What is not there, is of no use, or says nothing: sbxd tells so, and which package has it, and does not start."""

    def setUp(self):
        if micro_vm.missing():
            self.skipTest(micro_vm.missing())
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-qemu-")
        os.makedirs(f"{self.dir}/bin")
        os.chmod(self.dir, 0o755)  # QEMU runs as a user that nobody else is

    def tearDown(self):
        shutil.rmtree(self.dir)

    def fake(self, script):
        path = f"{self.dir}/bin/qemu"
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return f"  binary: {path}\n"

    def refuses(self, config, *words):
        d = Daemon(config, wait=False)
        try:
            self.assertNotEqual(d.process.wait(BOUND * 2), 0)
            for word in words:
                self.assertIn(word, d.log())
            self.assertEqual(d.remains(), [])
        finally:
            d.remove()

    def test_qemu_is_missing(self):
        self.refuses(micro_vm.config(qemu=f"  binary: {self.dir}/none\n"), "run QEMU at", "No such file")

    def test_qemu_is_too_old(self):
        self.refuses(micro_vm.config(qemu=self.fake("echo QEMU emulator version 5.2.0")), "version 5.2.0: 7.0 or newer is needed")

    def test_it_is_no_qemu(self):
        self.refuses(micro_vm.config(qemu=self.fake("echo hello")), "does not tell its version")

    def test_the_kernel_is_missing(self):
        self.refuses(micro_vm.config().replace(micro_vm.KERNEL, "/nowhere/vmlinuz-1"), "read the kernel /nowhere/vmlinuz-1")

    def kernel_place(self):
        """The path of a kernel that is not there yet, and has its modules."""
        os.makedirs(f"{self.dir}/boot")
        os.symlink(os.path.dirname(os.path.dirname(micro_vm.KERNEL)) + "/lib", f"{self.dir}/lib")
        return f"{self.dir}/boot/{os.path.basename(micro_vm.KERNEL)}"

    def test_the_kernel_is_unreadable(self):
        kernel = self.kernel_place()
        os.mkdir(kernel)
        self.refuses(micro_vm.config().replace(micro_vm.KERNEL, kernel), kernel, "Is a directory")

    def test_the_modules_are_missing(self):
        shutil.copy(micro_vm.KERNEL, self.dir + "/bin/")
        self.refuses(micro_vm.config().replace(micro_vm.KERNEL, f"{self.dir}/bin/{os.path.basename(micro_vm.KERNEL)}"),
                     "no modules of kernel", "qemu.modules")

    def test_the_image_is_missing(self):
        self.refuses(micro_vm.config().replace(f"image: {micro_vm.ROOT_DIR}", "image: /nowhere"), "image /nowhere: No such file")

    def test_the_image_is_unreadable(self):
        with open(f"{self.dir}/image", "wb"):
            pass
        self.refuses(micro_vm.config().replace(f"image: {micro_vm.ROOT_DIR}", f"image: {self.dir}/image"), f"image {self.dir}/image: Not a directory")

    def test_the_host_is_no_image(self):
        self.refuses(micro_vm.config().replace(f"image: {micro_vm.ROOT_DIR}", "image: host"), "image host: micro-VMs are made of an image with a root")

    def fails_to_boot(self, config, *words, mend=None):
        """An error for who waits, nothing is left; and where it can be mended meanwhile, the next acquire works."""
        d = Daemon(config)
        try:
            r = d.post("/v1/acquire", {"user_id": "u", "thread_id": "t"}, timeout=BOUND * 2)
            self.assertGreaterEqual(r.status, 500, r)
            for word in words:
                self.assertIn(word, r.body.decode())
            wait_for("what it started to be gone", lambda: not glob.glob(f"{d.dir}/state/qemu/*.new"))
            wait_for("no box to be left", lambda: d.pool()["boxes"] == 0)
            if mend:
                mend()
                self.assertEqual(d.sh(d.acquire("u", "t")["box_id"], "echo up"), "up\n")
        finally:
            self.assertEqual(d.stop(), 0)
            left = d.remains()
            d.remove()
        self.assertEqual(left, [])

    def bad_and_then_good(self, script, *words, boot_timeout=120):
        """QEMU is a program that does this instead of a machine; and then it is QEMU."""
        config = micro_vm.config(qemu=self.fake('test "$1" = --version && echo QEMU emulator version 7.2.0 && exit\n' + script))
        config = config.replace("boot_timeout: 120", f"boot_timeout: {boot_timeout}")
        self.fails_to_boot(config, *words, mend=lambda: self.fake(f'exec {shutil.which("qemu-system-x86_64")} "$@"\n'))

    def test_qemu_does_not_answer(self):
        self.bad_and_then_good("exec sleep 1000\n", "in time", boot_timeout=BOUND)

    def test_qemu_ends_at_once(self):
        self.bad_and_then_good('echo "cannot set up guest memory" >&2; exit 1\n', "the machine ended", "cannot set up guest memory")

    def test_qemu_is_killed_while_it_boots(self):
        self.bad_and_then_good("kill -9 $$\n", "the machine ended")

    def test_the_kernel_is_no_kernel(self):
        kernel = self.kernel_place()
        with open(kernel, "wb") as f:
            f.write(b"no kernel " * 1000)
        self.fails_to_boot(micro_vm.config().replace(micro_vm.KERNEL, kernel), "the machine ended")


@micro_vm.needs_vm
class Auto(unittest.TestCase):
    def test_an_emulated_machine_must_be_asked_for(self):
        config = micro_vm.config().replace("driver: qemu", "driver: auto")
        d = Daemon(config)
        try:
            self.assertEqual(d.pool()["isolation"], "namespace")
            self.assertEqual(d.sh(d.acquire()["box_id"], "echo up"), "up\n")
        finally:
            self.assertEqual(d.stop(), 0)
            left = d.remains()
            d.remove()
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
