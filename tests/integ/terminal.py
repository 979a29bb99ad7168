"""A program on a terminal of its own: tmux, with a server that nobody else uses."""

import os
import re
import subprocess

from harness import BOUND, Census, wait_for


class Terminal:
    """Runs a shell command on a screen of that size; once it has ended its last screen stays."""

    count = 0

    def __init__(self, command, columns=80, lines=24, env=None):
        Terminal.count += 1
        self.name = f"sbxd-test-{os.getpid()}-{Terminal.count}"
        settings = {"TMUX": "", "LC_ALL": "C.UTF-8", "TZ": "UTC", **(env or {})}
        words = [f"{k}={v}" for k, v in settings.items()]
        self.tmux("-f", "/dev/null", "set", "-g", "default-terminal", "tmux-256color", ";", "set", "-g", "remain-on-exit", "on", ";",
                  "new-session", "-d", "-x", str(columns), "-y", str(lines), "env", *words, "sh", "-c", command)

    def tmux(self, *args, check=True):
        r = subprocess.run(["tmux", "-L", self.name, *args], capture_output=True, text=True, timeout=BOUND, env={**os.environ, "TMUX": ""})
        if check and r.returncode:
            raise AssertionError(f"tmux {args}: {r.stderr}")
        return r.stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def click(self, x, y):
        """A press and a release at that column and line, from 1, as a terminal reports them to a program in X10 encoding."""
        codes = [c for button in (0, 3) for c in (0x1B, 0x5B, 0x4D, 32 + button, 32 + x, 32 + y)]
        self.tmux("send-keys", "-H", *[f"{c:x}" for c in codes])

    def lines(self, styles=False):
        return self.tmux("capture-pane", "-p", *(["-eN"] if styles else [])).split("\n")

    def text(self):
        return "\n".join(self.lines())

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def ask(self, variable):
        return self.tmux("display-message", "-p", f"#{{{variable}}}").strip()

    def wait(self, what, condition, bound=BOUND):
        """Until condition(lines of the screen) is true: what it returns."""
        try:
            return wait_for(what, lambda: condition(self.lines()), bound)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.text()}") from None

    def wait_text(self, pattern, bound=BOUND):
        """Until the screen has that regular expression: the match."""
        return self.wait(f"{pattern!r} on the screen", lambda lines: re.search(pattern, "\n".join(lines), re.MULTILINE), bound)

    def wait_end(self):
        """Exit status of the command."""
        wait_for("the command to end", lambda: self.ask("pane_dead") == "1")
        return int(self.ask("pane_dead_status") or -1)

    def close(self):
        """Nothing that ran on it is left; what ends may still have had something to write."""
        pane = self.tmux("display-message", "-p", "#{pane_pid}", check=False).strip()
        census = Census()
        if pane:
            census.add(int(pane))
        self.tmux("kill-server", check=False)
        wait_for("what ran on the terminal to be gone", lambda: not census.alive())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
