"""`make install` and what comes with it: programs that find each other, units for systemd, completions, an example."""

import configparser
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import BOUND, ROOT, slurp

PROGRAMS = ["sbxd", "sbxctl", "sbxtop", "sbxbench", "sbx-mcp"]
PRIVATE = ["sbx-worker", "sbx-boxlite", "sbx-guest", "sbx-files"]


def make(*args):
    """In an environment of its own: what this make was told is not for that one."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SAN", "CFLAGS")}
    r = subprocess.run(["make", "-C", ROOT, "--no-print-directory", *args], capture_output=True, text=True, env=env,
                       timeout=BOUND * 30)
    if r.returncode != 0:
        raise AssertionError(f"make {args}: {r.stderr[-2000:]}")


def files(top):
    return {os.path.relpath(os.path.join(d, f), top) for d, _, names in os.walk(top) for f in names}


def unit(path):
    """Sections of a unit; of a key that is there more than once the last."""
    p = configparser.RawConfigParser(strict=False, comment_prefixes=("#",), delimiters=("=",))
    p.optionxform = str
    p.read_string(slurp(path))
    return p


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="sbxd-test-install-")
        cls.addClassCleanup(shutil.rmtree, cls.top)
        make("install", f"PREFIX={cls.top}")
        cls.units = f"{cls.top}/lib/systemd/system"

    def run_installed(self, program, *args):
        return subprocess.run([f"{self.top}/bin/{program}", *args], capture_output=True, text=True, timeout=BOUND,
                              env={"PATH": "/usr/bin:/bin"})

    def test_programs_and_what_is_said_about_them(self):
        have = files(self.top)
        self.assertLessEqual({f"bin/{p}" for p in PROGRAMS} | {f"libexec/sbxd/{p}" for p in PRIVATE}, have)
        for page in filter(lambda f: re.search(r"\.[158]$", f), os.listdir(f"{ROOT}/docs")):
            self.assertIn(f"share/man/man{page[-1]}/{page}", have)
        version = re.search(r"^VERSION := (.*)", slurp(f"{ROOT}/Makefile"), re.M).group(1)
        self.assertEqual(self.run_installed("sbxd", "--version").stdout, f"sbxd {version}\n")
        for shell, path in (("bash", "bash-completion/completions/sbxctl"), ("zsh", "zsh/site-functions/_sbxctl"),
                            ("fish", "fish/vendor_completions.d/sbxctl.fish")):
            self.assertEqual(slurp(f"{self.top}/share/{path}"), self.run_installed("sbxctl", "completion", shell).stdout)
        # Debian's changelog gives the package its version.
        self.assertIn(f"sbxd ({version})", slurp(f"{ROOT}/debian/changelog").splitlines()[0])

    def test_the_installed_programs_find_each_other(self):
        said = self.run_installed("sbxctl", "doctor", "--instance", "not-there", "--json").stdout
        self.assertNotIn("install all of sbxd", said)
        self.assertIn("can run here", said)

    def test_the_example_is_valid_as_it_is_and_without_its_comments(self):
        example = slurp(f"{self.top}/share/doc/sbxd/examples/sbxd.yaml")
        keys = re.sub(r"^# (?=( *)[a-z_A-Z]+: )", "", example, flags=re.M).replace("# environment:", "environment:")
        keys = re.sub(r"^#   ", "  ", keys, flags=re.M).replace("admin_group: adm ", "admin_group: root ")
        self.assertIn("replicas: 3\n", self.check(example))
        told = self.check(keys)
        self.assertIn("replicas: 20\n", told)
        self.assertIn("C.UTF-8", told)

    def check(self, config):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(config)
            f.flush()
            r = self.run_installed("sbxd", "--config", f.name, "--check-config")
        self.assertEqual((r.returncode, r.stderr), (0, ""), config)
        return r.stdout

    def test_units_name_what_is_installed(self):
        service, sock = unit(f"{self.units}/sbxd.service"), unit(f"{self.units}/sbxd.socket")
        self.assertEqual(service["Service"]["ExecStart"], f"{self.top}/bin/sbxd")
        self.assertEqual(sock["Socket"]["ListenStream"], "/run/sbxd/sbxd.sock")
        # Each of these lost boxes, or kept them where they should end, when it was another.
        for key, value in (("Type", "notify"), ("KillMode", "process"), ("KillSignal", "SIGTERM"),
                           ("RestartKillSignal", "SIGUSR2"), ("RuntimeDirectoryPreserve", "yes")):
            self.assertEqual(service["Service"][key], value)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
    def test_systemd_understands_the_units(self):
        r = subprocess.run(["systemd-analyze", "verify", "--man=no", f"{self.units}/sbxd.service", f"{self.units}/sbxd.socket"],
                           capture_output=True, text=True, timeout=BOUND * 2)
        self.assertEqual([line for line in r.stderr.splitlines() if "sbxd" in line], [])

    def test_uninstall_leaves_nothing(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-install-") as top:
            make("install", f"DESTDIR={top}", "PREFIX=/usr", "UNITDIR=")
            self.assertEqual([f for f in files(top) if "systemd" in f], [])
            make("uninstall", f"DESTDIR={top}", "PREFIX=/usr", "UNITDIR=")
            self.assertEqual(files(top), set())
            make("install", f"DESTDIR={top}", "PREFIX=/opt/s")
            self.assertEqual({f for f in files(top) if not f.startswith("opt/s/")}, set())
            make("uninstall", f"DESTDIR={top}", "PREFIX=/opt/s")
            self.assertEqual(files(top), set())


if __name__ == "__main__":
    unittest.main()
