"""The service as an ordinary user, where user namespaces are allowed."""

import os
import subprocess
import sys
import unittest

from harness import BUILD, IS_ROOT, ROOT


@unittest.skipUnless(IS_ROOT, "drops root to an ordinary user")
class OrdinaryUser(unittest.TestCase):
    def test_the_main_job(self):
        """Runs the tests of the main job again, as uid 4321, from a copy of the programs that it can read."""
        import shutil
        import tempfile
        base = tempfile.mkdtemp(prefix="sbx-user-")
        try:
            os.chmod(base, 0o755)
            shutil.copytree(os.path.dirname(os.path.abspath(__file__)), f"{base}/tests/integ", ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copytree(f"{ROOT}/tests/data", f"{base}/tests/data")
            shutil.copytree(f"{ROOT}/docs", f"{base}/docs")
            os.makedirs(f"{base}/bin")
            for name in ("sbxd", "sbx-worker", "sbx-guest", "sbx-files", "sbxctl"):
                shutil.copy(f"{BUILD}/{name}", f"{base}/bin/{name}")
            os.makedirs(f"{base}/tmp")
            os.chown(f"{base}/tmp", 4321, 4321)
            env = {**os.environ, "SBX_BUILD": f"{base}/bin", "HOME": f"{base}/tmp", "TMPDIR": f"{base}/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
            env.pop("XDG_RUNTIME_DIR", None)
            python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
            r = subprocess.run(
                ["setpriv", "--reuid", "4321", "--regid", "4321", "--clear-groups", python, "-m", "unittest", "-v",
                 "test_main_job", "test_run", "test_boxes.Make", "test_boxes_restart.Restart", "test_files.Files.test_every_byte_value_survives",
                 "test_fs.Fs", "test_fs.Reports", "test_isolation.Isolation", "test_reports.Rows", "test_behaviour.Pool",
                 "test_faults.WorkerDies", "test_images.Store", "test_images.Hostile.test_device_nodes_are_left_out", "test_reports.Images", "test_ctl_gc.Gc", "test_ctl_gc.Doctor"],
                cwd=f"{base}/tests/integ", env=env, capture_output=True, text=True, timeout=600)
            self.assertEqual(r.returncode, 0, r.stderr[-6000:])
        finally:
            shutil.rmtree(base)


if __name__ == "__main__":
    unittest.main()
