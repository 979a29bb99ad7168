"""The service as an ordinary user, where user namespaces are allowed."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import micro_vm
from harness import BOUND, BUILD, IS_ROOT, ROOT


MAIN = ["test_main_job", "test_run", "test_boxes.Make", "test_boxes_restart.Restart", "test_files.Files.test_every_byte_value_survives",
        "test_fs.Fs", "test_fs.Reports", "test_isolation.Isolation", "test_reports.Rows", "test_behaviour.Pool",
        "test_faults.WorkerDies", "test_images.Store", "test_images.Hostile.test_device_nodes_are_left_out", "test_reports.Images",
        "test_ctl_gc.Gc", "test_ctl_gc.Doctor"]
MACHINES = ["test_qemu.Qemu.test_a_box_is_a_machine_of_its_own", "test_qemu_reports.Copies.test_row_19_copies_share_no_random_state",
            "test_qemu_templates.Templates.test_made_ahead_of_time_used_and_removed", "test_qemu_faults.Dies.test_the_worker_is_killed"]


@unittest.skipUnless(IS_ROOT, "drops root to an ordinary user")
class OrdinaryUser(unittest.TestCase):
    """Tests run again as uid 4321, from a copy of the programs that it can read."""

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="sbx-user-")
        self.addCleanup(shutil.rmtree, self.base)
        os.chmod(self.base, 0o755)
        shutil.copytree(os.path.dirname(os.path.abspath(__file__)), f"{self.base}/tests/integ", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(f"{ROOT}/tests/data", f"{self.base}/tests/data")
        shutil.copytree(f"{ROOT}/docs", f"{self.base}/docs")
        os.makedirs(f"{self.base}/bin")
        for name in ("sbxd", "sbx-worker", "sbx-guest", "sbx-files", "sbx-boxlite", "sbxctl"):
            shutil.copy(f"{BUILD}/{name}", f"{self.base}/bin/{name}")
        os.makedirs(f"{self.base}/tmp")
        os.chown(f"{self.base}/tmp", 4321, 4321)
        self.env = {**os.environ, "SBX_BUILD": f"{self.base}/bin", "HOME": f"{self.base}/tmp", "TMPDIR": f"{self.base}/tmp",
                    "PYTHONDONTWRITEBYTECODE": "1"}
        self.env.pop("XDG_RUNTIME_DIR", None)

    def passes(self, tests):
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        r = subprocess.run(["setpriv", "--reuid", "4321", "--regid", "4321", "--clear-groups", python, "-m", "unittest", "-v", *tests],
                           cwd=f"{self.base}/tests/integ", env=self.env, capture_output=True, text=True, timeout=600)
        self.assertEqual(r.returncode, 0, r.stderr[-6000:])
        return r.stderr

    def test_the_main_job(self):
        self.passes(MAIN)

    @micro_vm.needs_vm
    def test_micro_vms(self):
        """Emulated, or with the group kvm; their image and kernel must be readable."""
        subprocess.run(["cp", "-a", micro_vm.ROOT_DIR, f"{self.base}/root"], check=True)
        subprocess.run(["chown", "-R", "4321:4321", f"{self.base}/root"], check=True)
        os.makedirs(f"{self.base}/guest/boot")
        shutil.copy(micro_vm.KERNEL, f"{self.base}/guest/boot/")
        shutil.copytree(os.path.dirname(os.path.dirname(micro_vm.KERNEL)) + "/lib", f"{self.base}/guest/lib", symlinks=True)
        self.env["SBX_ROOT"] = f"{self.base}/root"
        self.env["SBX_KERNEL"] = f"{self.base}/guest/boot/{os.path.basename(micro_vm.KERNEL)}"
        self.env["SBX_BOUND"] = "120"  # they are emulated, and others compute, too
        self.assertNotIn("skipped", self.passes(MACHINES))

    @micro_vm.needs_vm
    def test_an_image_that_it_cannot_read(self):
        os.makedirs(f"{self.base}/closed", 0o700)
        with open(f"{self.base}/sbxd.yaml", "w", encoding="utf-8") as f:
            f.write(micro_vm.config().replace(micro_vm.ROOT_DIR, f"{self.base}/closed"))
        r = subprocess.run(["setpriv", "--reuid", "4321", "--regid", "4321", "--clear-groups", f"{self.base}/bin/sbxd", "--config",
                            f"{self.base}/sbxd.yaml", "--runtime-dir", f"{self.base}/tmp/run", "--state-dir", f"{self.base}/tmp/state",
                            "--instance", f"user{os.getpid()}"], env=self.env, capture_output=True, text=True, timeout=BOUND * 2)
        self.assertEqual(r.returncode, 1)
        self.assertIn(f"read the image {self.base}/closed: Permission denied", r.stderr)


if __name__ == "__main__":
    unittest.main()
