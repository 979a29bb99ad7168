"""sbxctl completion in bash, zsh and fish, typed on a terminal; and what they ask."""

import os
import shutil
import subprocess
import tempfile

from ctl import CtlTest, table
from harness import BOUND, BUILD, slurp
from terminal import Terminal

READY = "ready> "
SHELLS = {
    "bash": f"PS1='{READY}' exec bash --norc --noprofile -i",
    "zsh": "exec zsh -f -i",
    "fish": "exec fish --no-config --private",
}
START = {
    "bash": "source <(sbxctl completion bash); set -o emacs; bind 'set enable-bracketed-paste off'",
    "zsh": f"autoload -Uz compinit; compinit -u -D; source <(sbxctl completion zsh); PROMPT='{READY}'",
    "fish": f"function fish_prompt; echo -n '{READY}'; end; function fish_greeting; end; sbxctl completion fish | source",
}


class Completion(CtlTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = tempfile.mkdtemp(prefix="sbxd-test-")
        for name in ("local-file", "local-folder/inside", "with blank"):
            os.makedirs(os.path.dirname(os.path.join(cls.home, name)), exist_ok=True)
            with open(os.path.join(cls.home, name), "w", encoding="ascii"):
                pass
        cls.token = cls.d.acquire("ctl", "completion")["box_id"]
        cls.d.sh(cls.token, "mkdir -p /tmp/unique-dir; touch /tmp/unique-dir/the-file '/tmp/unique-dir/x y'")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)
        super().tearDownClass()

    def words(self, *words):
        """Candidates for the last word, without their help."""
        r = self.ctl_raw("__complete", *words)
        return [line.split("\t")[0] for line in r.stdout.splitlines()]

    def ctl_raw(self, *args):
        r = subprocess.run([f"{BUILD}/sbxctl", *args], capture_output=True, text=True, timeout=BOUND, env={**os.environ, "SBXD_SOCKET": self.d.socket})
        self.assertEqual((r.returncode, r.stderr), (0, ""), args)
        return r

    # ---- what shells ask ----

    def test_commands_and_options_are_those_of_help(self):
        commands = table()
        first = list(dict.fromkeys(name.split()[0] for name in commands))
        self.assertEqual(self.words(""), first)
        self.assertEqual(self.words("help", ""), first)
        common = {"--json", "--socket", "--instance", "--help", "-h"}
        for name, options in commands.items():
            self.assertEqual(set(self.words(*name.split(), "-")), set(options) | common, name)
        self.assertEqual(self.words("shm", ""), ["dump"])
        self.assertEqual(self.words("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(set(self.words("--")), common - {"-h"})

    def test_what_cannot_be_known_is_not_offered(self):
        for words in (["nosuch", ""], ["run", "--workdir", ""], ["run", "-w", ""], ["run", "--", "-"], ["exec", self.token, "-"], ["exec", self.token, "--", ""],
                      ["acquire", ""], ["shm", "nosuch", ""], ["--instance", ""], ["ps", "--nosuch="], [], ["cat", "nobox", "/t"], ["cat", self.token, "rel"]):
            self.assertEqual(self.words(*words), [], words)

    def test_boxes_and_paths(self):
        token = self.token
        for command in (["exec"], ["release"], ["inspect"], ["rm", "-f"], ["--socket", self.d.socket, "rm"], ["exec", "-w", "/tmp"], ["ls"]):
            self.assertIn(token, self.words(*command, ""), command)
        self.assertEqual(self.words("inspect", token[:6]), [token])
        self.assertEqual(self.words("inspect", "x"), [])
        self.assertEqual(self.words("cat", token, "/tmp/uni"), ["/tmp/unique-dir/"])
        self.assertEqual(self.words("cat", token, "/tmp/unique-dir/"), ["/tmp/unique-dir/the-file", "/tmp/unique-dir/x y"])
        self.d.sh(token, "mkdir /tmp/odd; cd /tmp/odd; touch fine; touch 'title\x1b]0;x\x07' 'de\x7fl' 'tab\tbed'")
        self.assertEqual(self.words("cat", token, "/tmp/odd/"), ["/tmp/odd/fine"], "what a terminal would obey")
        self.assertEqual(self.words("ls", f"{token}:/tmp/uni"), [f"{token}:/tmp/unique-dir/"])
        self.assertIn("/tmp/", self.words("grep", token, "pattern", "/t"))
        self.assertEqual(self.words("cp", "x", f"{token}:/tmp/unique-dir/t"), [f"{token}:/tmp/unique-dir/the-file"])
        self.assertEqual(self.words("cp", token[:4]), [":files", f"{token}:/"])
        self.assertEqual(self.words("run", "--socket="), [":files"])
        r = subprocess.run([f"{BUILD}/sbxctl", "__complete", "rm", ""], capture_output=True, timeout=BOUND, env={**os.environ, "SBXD_SOCKET": "/nonexistent"})
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, b"", b""), "no service, no words, no complaint")

    def test_a_script_has_no_mistake_and_no_other_shell(self):
        for shell in SHELLS:
            path = os.path.join(self.home, f"script.{shell}")
            with open(path, "w", encoding="ascii") as f:
                f.write(self.ctl_raw("completion", shell).stdout)
            r = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=BOUND)
            self.assertEqual((r.returncode, r.stderr), (0, ""), slurp(path))
            os.unlink(path)
        for args in (["completion"], ["completion", "tcsh"]):
            r = subprocess.run([f"{BUILD}/sbxctl", *args], capture_output=True, text=True, timeout=BOUND)
            self.assertEqual(r.returncode, 2)
            self.assertIn("bash zsh fish", r.stderr)

    # ---- in the shells ----

    def type_and_complete(self, shell, start=None):
        token = self.token
        env = {"PATH": f"{BUILD}:{os.environ['PATH']}", "SBXD_SOCKET": self.d.socket, "HOME": self.home, "XDG_DATA_HOME": self.home, "XDG_CONFIG_HOME": self.home}
        with Terminal(f"cd {self.home}; {SHELLS[shell]}", columns=150, lines=40, env=env) as t:
            t.type((start or START[shell]) + "; clear\n")
            t.wait("the prompt", lambda lines: lines[0].rstrip() == READY.rstrip())
            for typed, line in (
                    ("inspe", "inspect "), ("comp", "completion "), ("completion f", "completion fish "), ("shm d", "shm dump "),
                    ("release --le", "release --lease "), (f"inspect {token[:6]}", f"inspect {token} "),
                    (f"cat {token} /tmp/unique-d", f"cat {token} /tmp/unique-dir/"), (f"cat {token} /tmp/unique-dir/t", f"cat {token} /tmp/unique-dir/the-file "),
                    (f"ls {token}:/tmp/unique-d", f"ls {token}:/tmp/unique-dir/"), (f"cp {token}:/tmp/unique-dir/th", f"cp {token}:/tmp/unique-dir/the-file "),
                    (f"cat {token} /tmp/unique-dir/x", f"cat {token} /tmp/unique-dir/x\\ y "),
                    ("cp local-fi", "cp local-file "), ("cp local-fo", "cp local-folder/"), ("cp with", "cp with\\ blank "), (f"cp {token[:8]}", f"cp {token}:/")):
                t.type("sbxctl " + typed)
                t.wait("what was typed", lambda lines, typed=typed: (READY + "sbxctl " + typed) in lines[0])
                t.keys("Tab")
                t.wait(f"{shell}: {typed} completed", lambda lines, line=line: lines[0].rstrip() == (READY + "sbxctl " + line).rstrip())
                # The blank behind it, or none, shows where the next letter goes.
                t.type("Z")
                t.wait(f"{shell}: {typed} with its end", lambda lines, line=line: lines[0].rstrip() == READY + "sbxctl " + line + "Z")
                t.keys("C-u")
                t.wait("an empty line", lambda lines: lines[0].rstrip() == READY.rstrip())

    def test_bash(self):
        self.type_and_complete("bash")

    def test_zsh(self):
        self.type_and_complete("zsh")

    def test_zsh_where_the_script_is_installed(self):
        folder = os.path.join(self.home, ".functions")
        os.mkdir(folder)
        with open(os.path.join(folder, "_sbxctl"), "w", encoding="ascii") as f:
            f.write(self.ctl_raw("completion", "zsh").stdout)
        self.type_and_complete("zsh", f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; PROMPT='{READY}'")

    def test_fish(self):
        self.type_and_complete("fish")


if __name__ == "__main__":
    import unittest
    unittest.main()
