"""sbxtop on a terminal: what its tests have in common."""

import os
import re
import signal

from harness import BOUND, BUILD, descendants, proc_says, slurp, start_time, wait_for
from terminal import Terminal

SAN = os.environ.get("SBX_SAN")  # a sanitizer's own exit status of a crash, and what libraries leak


class Screen(Terminal):
    """sbxtop on a terminal, under a shell that then says how it ended."""

    def __init__(self, d, *args, columns=80, lines=24, env=None, instance=None):
        env = {"SBXD_SOCKET": d.socket if d else "", **(env or {})}
        words = " ".join(f"'{a}'" for a in ("--instance", instance or d.instance, *args))
        super().__init__(f"{BUILD}/sbxtop {words}; echo ENDED $?; exec cat", columns, lines, env)

    @property
    def pid(self):
        def find():
            return [p for p in descendants(int(self.ask("pane_pid"))) if "/sbxtop" in slurp(f"/proc/{p}/cmdline")]
        return wait_for("sbxtop to run", find)[0]

    def rows(self):
        """Words of the boxes' lines: what stands between the titles and the events."""
        lines = self.lines()
        begin = next((i for i, line in enumerate(lines) if re.search(r"^BOX|\bUSER\b.*\bTHREAD\b|^THREAD", line)), None)
        if begin is None:
            return []
        end = next((i for i, line in enumerate(lines) if line.startswith(("EVENTS", "F1Help"))), len(lines))
        return [line.split() for line in lines[begin + 1:end] if line.strip()]

    def wait_rows(self, what, condition, bound=BOUND):
        return wait_for(f"{what}\n{self.text()}", lambda: condition(self.rows()), bound)

    def close(self):
        """In order: a terminal that goes away continues who was on it, which a sanitizer that looks for leaks then does not survive."""
        if self.tmux("display-message", "-p", "#{pane_pid}", check=False).strip():
            for pid in descendants(int(self.ask("pane_pid"))):
                if proc_says(pid, "cmdline", "/sbxtop"):
                    os.kill(pid, signal.SIGTERM)
                    wait_for("sbxtop to end", lambda p=pid: start_time(p) is None)
        super().close()

    def quit(self):
        self.keys("q")
        return self.wait_text(r"^ENDED (\d+)").group(1)

    def clock(self):
        """What the first line's clock says: sbxtop may not have drawn it yet."""
        return self.wait("the clock", lambda lines: re.search(r"\d\d:\d\d:\d\d", lines[0])).group()

    def wait_tick(self):
        before = self.clock()
        wait_for("the clock to go on", lambda: self.clock() != before)


def state_of(pid):
    text = slurp(f"/proc/{pid}/stat")
    return text[text.rindex(")") + 2]


def cpu_ticks(pid):
    return sum(int(n) for n in slurp(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[11:13])
