"""Starting sbxd: its options and its configuration, right and wrong."""

import os
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, Daemon, wait_for


def sbxd(*args, env=None):
    return subprocess.run([f"{BUILD}/sbxd", *args], capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})


class Start(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-")
        self.file = f"{self.dir}/c.yaml"

    def tearDown(self):
        import shutil
        shutil.rmtree(self.dir)

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(text)
        return self.file

    def check(self, text, *args, env=None):
        return sbxd("--config", self.write(text), "--check-config", *args, env=env)

    def test_effective_configuration_is_printed_and_reads_back(self):
        r = self.check("sandbox:\n  use: x\n  replicas: 7\n  environment:\n    A: $HOME\n")
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("replicas: 7", r.stdout)
        again = self.check(r.stdout)
        self.assertEqual(again.stdout, r.stdout)

    def test_flag_beats_environment_beats_file(self):
        self.assertIn("driver: namespace", self.check("driver: qemu\n", "--driver", "namespace").stdout.replace('"', ""))
        self.assertIn("replicas: 9", self.check("replicas: 7\n", env={"SBXD_REPLICAS": "9"}).stdout)

    def test_errors_name_file_line_and_key(self):
        for text, line, word in (("replicas: x\n", 1, "replicas"), ("\n\nunknown_key: 1\n", 3, "unknown_key"), ("replicas: [1\n", 1, "replicas"),
                                 ("replicas: -1\n", 1, "replicas"), ("a: 1\n", 1, "a"), ("idle_timeout: soon\n", 1, "idle_timeout"),
                                 ("replicas: 1\nreplicas: 2\n", 2, "replicas"), ("image: $NO_SUCH_VAR_X\n", 1, "NO_SUCH_VAR_X")):
            r = self.check(text)
            self.assertEqual(r.returncode, 2, text)
            self.assertIn(f"{self.file}:{line}", r.stderr, text)
            self.assertIn(word, r.stderr)

    def test_errors_show_control_characters_and_do_not_pass_them_on(self):
        for text, shown in (('"re\\x1b[31mplicas": 1\n', "re\\x1b[31mplicas"), ('driver: "a\\x9b2Jb\\x07"\n', "a\\x9b2Jb\\x07"),
                            ('environment: {"A\\x1b]0;x\\x07": y}\n', "\\x1b]0;x\\x07"), ("a: \x1b\n", ":1: this is no UTF-8 text")):
            r = self.check(text)
            self.assertEqual(r.returncode, 2, text)
            self.assertIn(shown, r.stderr)
            self.assertTrue(all(c >= " " and not "\x7f" <= c < "\xa0" or c == "\n" for c in r.stderr), repr(r.stderr))
        self.assertIn("'\\x1b[1m'", sbxd("--driver", "\x1b[1m").stderr)

    def test_an_address_that_is_none_is_refused_with_what_is_allowed(self):
        r = self.check("listen_tcp: here\n")
        self.assertIn("127.0.0.1:PORT or [::1]:PORT (any address with listen_tcp_public)", r.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/proc/sys/vm/memfd_noexec"), "root, and a kernel that has it")
    def test_a_kernel_that_forbids_programs_in_memory_is_named(self):
        r = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "echo 2 > /proc/sys/vm/memfd_noexec && exec \"$@\"", "sh",
                            f"{BUILD}/sbxd", "--runtime-dir", f"{self.dir}/run", "--state-dir", f"{self.dir}/state",
                            "--instance", f"noexec{os.getpid()}"], capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("vm.memfd_noexec is 2", r.stderr)
        self.assertIn("sysctl -w vm.memfd_noexec=1", r.stderr)

    def test_what_comes_later_is_refused_clearly(self):
        r = self.check("network: user\n")
        self.assertEqual(r.returncode, 2)
        self.assertIn("network", r.stderr)

    def test_usage(self):
        self.assertEqual(sbxd("--no-such").returncode, 2)
        self.assertEqual(sbxd("--instance", "Bad/Name").returncode, 2)
        self.assertEqual(sbxd("--config", "/no/such/file", "--check-config").returncode, 2)
        self.assertTrue(sbxd("--version").stdout.startswith("sbxd "))
        self.assertIn("--runtime-dir", sbxd("--help").stdout)

    def test_an_unknown_driver_is_refused_at_start(self):
        with open(self.file, "w", encoding="utf-8") as f:
            f.write("driver: qemu\n")
        r = sbxd("--config", self.file, "--runtime-dir", f"{self.dir}/run", "--state-dir", f"{self.dir}/state", "--instance", f"cfg{os.getpid()}")
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("qemu", r.stderr)
        self.assertFalse(os.path.exists(f"/dev/shm/sbxd-{os.geteuid()}-cfg{os.getpid()}"))

    def test_what_a_box_is_made_of_reloads(self):
        d = Daemon("memory_mib: 256\n")
        try:
            self.assertEqual(d.acquire("a", "1")["memory_mib"], 256)
            d.write_config("memory_mib: 300\n")
            d.process.send_signal(signal.SIGHUP)
            wait_for("the new value", lambda: "memory_mib changed" in d.log())
            self.assertEqual(d.acquire("a", "2")["memory_mib"], 300)
            self.assertEqual((d.stop(), d.remains()), (0, []))
        finally:
            d.kill()
            d.remove()

    def test_told_to_end_while_it_starts(self):
        for _ in range(8):
            d = Daemon(wait=False)
            try:
                wait_for("its directory", lambda: os.path.exists(d.runtime))
                d.process.send_signal(signal.SIGTERM)
                self.assertIn(d.process.wait(60), (0, -signal.SIGTERM))
                self.assertEqual(d.remains(), [])
            finally:
                d.kill()
                d.remove()

    def test_a_start_that_fails_leaves_nothing(self):
        d = Daemon()
        try:
            self.assertEqual(d.stop(), 0)
            os.mkdir(d.socket)
            d.start(wait=False)
            self.assertEqual(d.process.wait(60), 1)
            os.rmdir(d.socket)
            self.assertEqual((d.remains(), os.listdir(d.runtime)), ([], []))
        finally:
            d.kill()
            d.remove()

    def test_reload(self):
        d = Daemon("replicas: 3\n")
        try:
            self.assertEqual(d.pool()["replicas"], 3)
            d.write_config("replicas: 5\n")
            d.process.send_signal(signal.SIGHUP)
            wait_for("the new value", lambda: d.pool()["replicas"] == 5)
            d.write_config("replicas: nonsense\n")
            d.process.send_signal(signal.SIGHUP)
            wait_for("the complaint", lambda: "not reloaded" in d.log())
            self.assertEqual(d.pool()["replicas"], 5)
            self.assertEqual(d.stop(), 0)
        finally:
            d.kill()
            d.remove()


if __name__ == "__main__":
    unittest.main()
