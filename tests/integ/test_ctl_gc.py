"""sbxctl gc: what dead instances left goes, what lives stays as it is."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import micro_vm
from harness import BOUND, BUILD, IS_ROOT, Daemon, slurp, start_time, wait_for


class Gc(unittest.TestCase):
    """As root, and again as an ordinary user (test_user.py)."""

    def daemon(self, config="orphan_grace: 600\n"):
        d = Daemon(config)
        self.addCleanup(d.remove)
        self.addCleanup(self.end, d)
        return d

    @staticmethod
    def end(d):
        if d.process.poll() is None:
            Gc.kill_all(d)

    def gc(self, d, *args, status=0):
        """The instance's result; never of another instance on this host."""
        r = subprocess.run([f"{BUILD}/sbxctl", "gc", "--json", "--instance", d.instance, "--runtime-dir", d.runtime, "--state-dir",
                            os.path.join(d.dir, "state"), *args], capture_output=True, text=True, timeout=BOUND * 4)
        self.assertEqual(r.returncode, status, r)
        found = json.loads(r.stdout)["instances"]
        self.assertEqual([i["instance"] for i in found], [d.instance])
        return found[0]

    @staticmethod
    def kill_all(d):
        """sbxd and its workers at once: nobody is left to clean up."""
        r = d.ctl("ps", "--json", "--instance", d.instance)
        workers = [b["pid"] for b in json.loads(r.stdout)["boxes"]]
        d.process.kill()
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        d.process.wait(BOUND)
        wait_for("all of them to be gone", lambda: not d.processes() and not any(start_time(p) for p in workers))

    @staticmethod
    def kinds(result):
        return {r["kind"] for r in result["removed"]}

    def test_a_live_instance_is_left_alone(self):
        d = self.daemon()
        box = d.acquire()["box_id"]
        before = sorted(d.processes())
        result = self.gc(d)
        self.assertEqual((result["verdict"], result["removed"]), ("live", []))
        self.assertIn(str(d.process.pid), result["why"])
        self.assertEqual(sorted(d.processes()), before)
        self.assertEqual(d.sh(box, "echo here"), "here\n")
        self.assertEqual(d.stop(), 0)
        self.assertEqual(d.remains(), [])

    def test_workers_that_wait_are_left_alone(self):
        d = self.daemon()
        box = d.acquire()["box_id"]
        d.sh(box, "echo kept > /tmp/f")
        d.kill()
        for args in (["-n"], []):
            result = self.gc(d, *args)
            self.assertEqual((result["verdict"], result["removed"]), ("waiting", []))
            self.assertRegex(result["why"], r"^worker \d+ lives$")
        d.start()
        self.assertEqual(d.sh(box, "cat /tmp/f"), "kept\n")
        self.assertEqual(d.stop(), 0)
        self.assertEqual(d.remains(), [])

    def test_a_dead_instance_goes(self):
        d = self.daemon()
        for i in range(3):
            d.acquire("gc", f"t{i}")
        self.kill_all(d)
        left = d.remains()
        self.assertGreater(len(left), 1)
        looked = self.gc(d, "--dry-run")
        self.assertEqual(looked["verdict"], "dead")
        self.assertLessEqual({"table", "directory"}, self.kinds(looked))
        self.assertEqual(d.remains(), left, "a dry run changes nothing")
        result = self.gc(d)
        self.assertEqual({r["error"] for r in result["removed"]}, {None})
        self.assertEqual(d.remains(), [])
        self.assertFalse(os.path.exists(d.runtime))
        self.assertEqual(glob.glob(os.path.join(d.dir, "state", "*")), [])
        r = subprocess.run([f"{BUILD}/sbxctl", "gc", "--json", "--instance", d.instance], capture_output=True, text=True, timeout=BOUND)
        self.assertEqual(json.loads(r.stdout)["instances"], [])
        d.start()  # and another one can be there
        self.assertEqual(d.stop(), 0)

    def test_what_is_not_sbxds_stays(self):
        d = self.daemon()
        d.acquire()
        self.kill_all(d)
        note = os.path.join(d.runtime, "note")
        with open(note, "w", encoding="ascii") as f:
            f.write("mine")
        result = self.gc(d, status=125)
        self.assertEqual([r["what"] for r in result["removed"] if r["error"]], [d.runtime])
        self.assertEqual(slurp(note), "mine")
        os.unlink(note)

    @unittest.skipUnless(IS_ROOT, "which tables the workers of other instances have, an ordinary user is not told")
    def test_a_table_of_a_start_that_died(self):
        """Cut, or never finished by its maker: nobody can have boxes in it."""
        d = self.daemon()
        self.kill_all(d)
        (table,) = glob.glob(f"/dev/shm/sbxd-*-{d.instance}")
        os.truncate(table, 100)
        self.assertEqual(self.gc(d)["verdict"], "dead")
        self.assertEqual(d.remains(), [])

    def test_somebody_who_listens_is_alive(self):
        d = self.daemon()
        self.kill_all(d)
        os.unlink(d.socket)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(d.socket)
            s.listen()
            self.assertEqual(self.gc(d)["verdict"], "live")
        self.assertEqual(self.gc(d)["verdict"], "dead")

    def test_processes_with_a_boxes_name(self):
        d = self.daemon()
        program = os.path.join(d.dir, "sbx-worker")
        shutil.copy(shutil.which("sleep"), program)
        ours = subprocess.Popen([f"sbxd-{d.instance}-0-1f", "1000"], executable=program)
        other = subprocess.Popen([f"sbxd-{d.instance}x-0-1f", "1000"], executable=program)
        # An admin's, who looks for it.
        beside = subprocess.Popen([f"sbxd-{d.instance}-0-1f", "1000"], executable=shutil.which("sleep"))
        try:
            self.gc(d)
            self.assertIsNone(ours.poll(), "the instance lives")
            self.kill_all(d)
            self.assertIn("process", self.kinds(self.gc(d)))
            self.assertEqual(ours.wait(BOUND), -signal.SIGKILL)
            self.assertIsNone(other.poll(), "another instance's name")
            self.assertIsNone(beside.poll(), "the name alone is no proof")
        finally:
            for p in (ours, other, beside):
                p.kill()
                p.wait(BOUND)

    @unittest.skipUnless(IS_ROOT, "cgroups are root's here")
    def test_cgroups_of_an_instance_of_which_nothing_else_is_left(self):
        parent = next(line.split()[1] for line in slurp("/proc/self/mounts").splitlines()
                      if line.split()[2] in ("cgroup", "cgroup2") and ("pids" in line.split()[3] or line.split()[2] == "cgroup2"))
        instance = f"t{os.getpid()}-cg"
        box = f"{parent}/sbxd-{instance}/sbxd-{instance}-0-1"
        beside = subprocess.Popen(["sleep", "1000"])
        # One whose parent is gone, as a box's after its worker's death would be.
        orphan = int(subprocess.run(["sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True).stdout)
        born = start_time(orphan)
        gc = [f"{BUILD}/sbxctl", "gc", "--json", "--instance", instance]
        try:
            os.makedirs(box)
            for pid in (orphan, beside.pid):
                with open(f"{box}/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(str(pid))
            (found,) = json.loads(subprocess.run(gc, capture_output=True, text=True, timeout=BOUND).stdout)["instances"]
            self.assertEqual((found["verdict"], found["why"]), ("unknown", f"what is in its cgroup is process {os.getpid()}'s"))
            self.assertEqual(start_time(orphan), born)
            with open(f"{parent}/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(beside.pid))
            r = subprocess.run(gc, capture_output=True, text=True, timeout=BOUND)
            self.assertEqual(r.returncode, 0, r)
            (found,) = json.loads(r.stdout)["instances"]
            self.assertIn({"kind": "cgroup", "what": f"{parent}/sbxd-{instance}", "error": None}, found["removed"])
            self.assertFalse(os.path.exists(os.path.dirname(box)))
            wait_for("it to be gone", lambda: start_time(orphan) != born)
            self.assertIsNone(beside.poll())
        finally:
            beside.kill()
            beside.wait(BOUND)
            if start_time(orphan) == born:
                os.kill(orphan, signal.SIGKILL)
            for path in (box, os.path.dirname(box)):
                if os.path.exists(path):
                    os.rmdir(path)

    def test_usage(self):
        for args in (["x"], ["--runtime-dir", "/x"]):
            r = subprocess.run([f"{BUILD}/sbxctl", "gc", *args], capture_output=True, text=True, timeout=BOUND)
            self.assertEqual(r.returncode, 2, r)


@unittest.skipUnless(IS_ROOT, "drops root to an ordinary user")
class OfAnotherUser(unittest.TestCase):
    UID = 4322

    def test_root_removes_what_a_users_instance_left(self):
        base = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(shutil.rmtree, base)
        os.chmod(base, 0o755)
        for name in ("sbxd", "sbx-worker", "sbx-guest", "sbx-files", "sbxctl"):
            shutil.copy(f"{BUILD}/{name}", f"{base}/{name}")
        os.mkdir(f"{base}/home")
        os.chown(f"{base}/home", self.UID, self.UID)
        instance = f"t{os.getpid()}-user"
        env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")} | {"HOME": f"{base}/home"}
        runtime = f"/tmp/sbxd-{self.UID}-{instance}"
        p = subprocess.Popen(["setpriv", "--reuid", str(self.UID), "--regid", str(self.UID), "--clear-groups", f"{base}/sbxd", "--instance", instance],
                             env=env, stderr=subprocess.DEVNULL)
        try:
            wait_for("sbxd to serve", lambda: os.path.exists(f"{runtime}/sbxd.sock"))
            ctl = [f"{BUILD}/sbxctl", "gc", "--json", "--instance", instance]
            r = subprocess.run(ctl, capture_output=True, text=True, timeout=BOUND)
            self.assertEqual([i["verdict"] for i in json.loads(r.stdout)["instances"]], ["live"], r)
            born = start_time(p.pid)
            p.kill()
            p.wait(BOUND)
            wait_for("it to be gone", lambda: start_time(p.pid) != born)
            r = subprocess.run(ctl, capture_output=True, text=True, timeout=BOUND * 4)
            self.assertEqual(r.returncode, 0, r)
            (found,) = json.loads(r.stdout)["instances"]
            self.assertEqual((found["verdict"], found["uid"]), ("dead", self.UID))
            self.assertFalse(os.path.exists(runtime), r.stdout)
            self.assertEqual(glob.glob(f"/dev/shm/sbxd-*-{instance}"), [])
        finally:
            p.kill()
            p.wait(BOUND)
            shutil.rmtree(runtime, ignore_errors=True)

    def test_root_connects_to_nothing_that_a_user_points_at(self):
        """To a worker's socket it would be a new sbxd; and what root may reach, that user may not."""
        base = tempfile.mkdtemp(prefix="sbxd-test-")  # root's alone
        self.addCleanup(shutil.rmtree, base)
        instance = f"t{os.getpid()}-link"
        runtime = f"/tmp/sbxd-{self.UID}-{instance}"
        self.addCleanup(shutil.rmtree, runtime, ignore_errors=True)
        os.makedirs(f"{runtime}/workers")
        os.symlink(f"{base}/socket", f"{runtime}/sbxd.sock")
        for path in (f"{runtime}/sbxd.sock", f"{runtime}/workers", runtime):
            os.lchown(path, self.UID, self.UID)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(f"{base}/socket")
            s.listen()
            s.setblocking(False)
            r = subprocess.run([f"{BUILD}/sbxctl", "gc", "--json", "--dry-run", "--instance", instance], capture_output=True, text=True, timeout=BOUND)
            (found,) = json.loads(r.stdout)["instances"]
            self.assertEqual((found["verdict"], found["uid"]), ("dead", self.UID))
            self.assertRaises(BlockingIOError, s.accept)


class Doctor(unittest.TestCase):
    def findings(self, *args, status, env=None, ctl=f"{BUILD}/sbxctl"):
        r = subprocess.run([ctl, "doctor", "--json", *args], capture_output=True, text=True, timeout=BOUND * 4, env={**os.environ, **(env or {})})
        self.assertIn(r.returncode, status, r)
        all_of_it = json.loads(r.stdout)
        self.assertEqual(all_of_it["healthy"], r.returncode == 0)
        for f in all_of_it["findings"]:
            self.assertEqual(f["fix"] is None, f["verdict"] == "ok", f)
        return all_of_it["findings"]

    def test_every_check_says_something(self):
        d = Daemon()
        try:
            found = self.findings("--socket", d.socket, status=(0, 1))
            self.assertLessEqual({"service", "configuration", "access", "user namespaces", "namespaces", "overlayfs", "seccomp", "landlock", "memfd",
                                  "cgroups", "processes", "descriptors", "/dev/shm", "drivers", "instances"}, {f["check"] for f in found})
            fine = {f["check"] for f in found if f["verdict"] == "ok"}
            self.assertLessEqual({"service", "configuration", "access", "drivers"}, fine)
            self.assertIn(("ok", f"instance {d.instance} of uid {os.getuid()}: supervised by pid {d.process.pid}"), [(f["verdict"], f["text"]) for f in found])
            self.assertEqual(d.stop(), 0)
        finally:
            d.kill()
            d.remove()

    def test_what_is_wrong_comes_with_its_fix(self):
        wrong = {f["check"]: f for f in self.findings("--socket", "/nonexistent", status=(1,), env={"SBXD_REPLICAS": "many"}) if f["verdict"] == "wrong"}
        self.assertEqual(wrong["service"]["fix"], "start it: sbxd")
        self.assertIn("SBXD_REPLICAS", wrong["configuration"]["text"])

    def choice(self, config):
        """What auto would take, and what is said of those before it: {driver: finding}."""
        folder = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(shutil.rmtree, folder)
        with open(f"{folder}/sbxd.yaml", "w", encoding="utf-8") as f:
            f.write(config)
        found = self.findings("--socket", "/nonexistent", status=(0, 1), env={"SBXD_CONFIG": f"{folder}/sbxd.yaml"})
        rows = [f for f in found if f["check"] == "driver auto"]
        self.assertEqual([f["verdict"] for f in rows[:-1]], ["note"] * (len(rows) - 1))
        return rows[-1], {f["text"].split()[0]: f for f in rows[:-1]}

    def test_which_driver_auto_takes_and_why_none_before_it(self):
        chosen, passed = self.choice("image: host\n")
        self.assertEqual((chosen["verdict"], chosen["text"]), ("ok", "namespace makes the boxes of image host: isolation namespace"))
        for driver in ("boxlite", "qemu"):
            self.assertIn(f"{driver} is passed over: it makes no boxes of image host", passed[driver]["text"])
            self.assertIn("set image to one of a registry", passed[driver]["fix"])
        chosen, passed = self.choice("driver: namespace\nimage: python:3.12\nboxlite: {library: /no/lib.so}\nqemu: {binary: /no/qemu}\n")
        self.assertEqual((chosen["verdict"], chosen["text"]),
                         ("ok", "driver: namespace is configured; auto would take namespace for image python:3.12: isolation namespace"))
        self.assertIn("there is no BoxLite library at /no/lib.so", passed["boxlite"]["text"])
        self.assertIn("install BoxLite's C library", passed["boxlite"]["fix"])
        self.assertIn("run QEMU at /no/qemu: No such file", passed["qemu"]["text"])
        chosen, passed = self.choice("image: /usr\nqemu: {kernel: /no/vmlinuz-1}\n")
        self.assertIn("namespace makes the boxes of image /usr", chosen["text"])
        self.assertIn("/no/vmlinuz-1", passed["qemu"]["text"])

    @micro_vm.needs_vm
    @unittest.skipUnless(IS_ROOT, "the kernel may be readable by root alone")
    def test_what_would_have_auto_take_micro_vms(self):
        chosen, passed = self.choice(micro_vm.config().replace("driver: qemu", "driver: auto"))
        self.assertIn("namespace makes the boxes", chosen["text"])
        self.assertIn("its machines would be emulated, as qemu.accel: tcg wants", passed["qemu"]["text"])
        self.assertEqual(passed["qemu"]["fix"], "set qemu.accel: auto; or set driver: qemu to have them emulated")

    @micro_vm.needs_vm
    @unittest.skipUnless(IS_ROOT and os.path.exists("/dev/kvm"), "there is no /dev/kvm to try")
    def test_why_a_kernel_does_not_boot_with_kvm(self):
        """Even where it does: QEMU is a script."""
        folder = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(shutil.rmtree, folder)
        os.mkdir(f"{folder}/bin")
        with open(f"{folder}/bin/qemu", "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n[ $1 != --version ] || exec echo QEMU emulator version 8.2.0\necho it is like that >&2\nexit 1\n")
        os.chmod(f.name, 0o755)
        config = micro_vm.config().replace("driver: qemu", "driver: auto").replace("accel: tcg", f"accel: auto\n  binary: {f.name}")
        chosen, passed = self.choice(config)
        self.assertIn("namespace makes the boxes", chosen["text"])
        self.assertIn("its machines would be emulated: no kernel boots with /dev/kvm", passed["qemu"]["text"])
        self.assertIn("it is like that", passed["qemu"]["text"])
        self.assertIn("switch on nested virtualization", passed["qemu"]["fix"])

    def test_a_socket_for_everybody(self):
        d = Daemon()
        try:
            os.chmod(d.socket, 0o666)
            (found,) = [f for f in self.findings("--socket", d.socket, status=(1,)) if f["check"] == "access"]
            self.assertEqual(found["verdict"], "wrong")
            self.assertIn(f"chmod 0660 {d.socket}", found["fix"])
            self.assertEqual(d.stop(), 0)
        finally:
            d.kill()
            d.remove()

    @unittest.skipUnless(IS_ROOT, "changes a sysctl in namespaces of its own")
    def test_switches_of_the_kernel(self):
        """In a user namespace that may not have any below it."""
        script = f"echo 0 > /proc/sys/user/max_user_namespaces; exec {BUILD}/sbxctl doctor --json --socket /nonexistent"
        r = subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c", script], capture_output=True, text=True, timeout=BOUND * 4)
        wrong = {f["check"]: f for f in json.loads(r.stdout)["findings"] if f["verdict"] == "wrong"}
        self.assertEqual(wrong["user namespaces"]["fix"], "sysctl user.max_user_namespaces=15000")
        self.assertIn("max_user_namespaces", wrong["namespaces"]["fix"])
        self.assertIn("drivers", wrong)

    def test_a_program_that_is_missing(self):
        folder = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(f"{BUILD}/sbxctl", folder)
        found = self.findings("--socket", "/nonexistent", status=(1,), ctl=f"{folder}/sbxctl")
        wrong = {f["check"]: f["text"] for f in found if f["verdict"] == "wrong"}
        self.assertIn("sbx-worker", wrong["drivers"])
        self.assertIn("sbxd", wrong["configuration"])


if __name__ == "__main__":
    unittest.main()
