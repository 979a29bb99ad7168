#!/usr/bin/env python3
"""Makes docs/sbxtop.svg: sbxtop over a private sbxd with agents at work, as a terminal shows it.

  make screenshot        (as root; the programs are those of build/)
"""

import contextlib
import html
import os
import re
import sys
import threading
import time
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
os.environ.setdefault("SBX_BUILD", f"{ROOT}/build")
sys.path.insert(0, f"{ROOT}/tests/integ")

from harness import BUILD, Daemon, wait_for  # noqa: E402
from terminal import Terminal  # noqa: E402

COLUMNS, LINES = 140, 38
CELL_W, CELL_H, FONT, PAD = 8.4, 18, 14, 12
FOREGROUND, BACKGROUND = "#d0d0d0", "#16181d"
COLORS = ("#000000", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d0d0d0",
          "#7f848e", "#ff7b86", "#b5e890", "#ffd98a", "#7fc1ff", "#e08cf2", "#70d8e5", "#ffffff")

# ---- what is shown ----

CONFIG = "replicas: 24\nprewarm: 2\nidle_timeout: 600\nmemory_mib: 256\n"
SCOPES = (("alice", "refactor-parser"), ("alice", "chat-7"), ("bob", "nightly-eval"), ("björn", "müsli-bot"), ("山田", "翻訳エージェント"),
          ("carol", "data-clean"), ("carol", "plots"), ("dave", "pr-4711"), ("dave", "pr-4712"), ("erin", "tutorial"), ("frank", "fuzz"),
          ("grace", "compile"), ("heidi", "notebook"), ("ivan", "scrape"))
COMMANDS = {"nightly-eval": "while :; do :; done", "compile": "while :; do head -c 3000000 /dev/zero | md5sum >/dev/null; sleep 0.01; done",
            "fuzz": "while :; do head -c 100000 /dev/urandom | md5sum; sleep 0.05; done", "refactor-parser": "sleep 1000", "pr-4711": "tail -f /dev/null",
            "翻訳エージェント": "x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 1000"}


class Agents:
    """Who keeps the pool busy until the picture is taken."""

    def __init__(self, daemon):
        self.d = daemon
        self.done = threading.Event()
        self.boxes = {thread: daemon.acquire(user, thread) for user, thread in SCOPES}
        for thread in ("plots", "tutorial", "scrape"):
            self.give_back(thread)
        self.threads = [threading.Thread(target=self.command, args=item, daemon=True) for item in COMMANDS.items()]
        self.threads += [threading.Thread(target=self.turns, args=(i,), daemon=True) for i in range(2)]
        for t in self.threads:
            t.start()

    def give_back(self, thread):
        self.d.release(self.boxes[thread]["box_id"], self.boxes[thread]["lease_id"])

    def command(self, thread, text):
        with contextlib.suppress(OSError, AssertionError):
            self.d.run(self.boxes[thread]["box_id"], text, timeout=120)

    def turns(self, n):
        users = (("erin", "tutorial"), ("carol", "plots"), ("alice", "chat-7"))
        i = n
        while not self.done.wait(0.02):
            i += 1
            user, thread = users[i % len(users)]
            with contextlib.suppress(OSError, AssertionError):
                got = self.d.acquire(user, thread)
                self.d.run(got["box_id"], "echo done", timeout=20)
                self.d.release(got["box_id"], got["lease_id"])

    def crash(self):
        """A worker is killed: its box comes back at the next acquire."""
        os.kill(self.d.inspect(self.boxes["notebook"]["box_id"])["pid"], 9)
        wait_for("the crash to be counted", lambda: self.d.pool()["counters"]["worker_crashes"])
        self.d.acquire("heidi", "notebook")


def capture():
    d = Daemon(CONFIG, instance="default-pool")
    try:
        agents = Agents(d)
        time.sleep(2)
        agents.crash()
        with Terminal(f"exec {BUILD}/sbxtop --instance {d.instance}", COLUMNS, LINES, {"XDG_CONFIG_HOME": d.dir, "SBXD_SOCKET": d.socket}) as t:
            t.wait_text("serving")
            time.sleep(5)  # for rates and cpu shares to be those of a while
            t.keys("Down", "Down", "Down")
            t.wait_text("worker_crash|lease")
            screen = t.lines(styles=True)[:LINES]
        agents.done.set()
        return screen
    finally:
        d.stop()
        d.remove()


# ---- how it is drawn ----

class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fg = self.bg = None
        self.bold = self.dim = self.reverse = False

    def take(self, codes):
        codes = [int(c or 0) for c in codes.split(";")]
        while codes:
            c = codes.pop(0)
            if c == 0:
                self.reset()
            elif c in (1, 2, 7):
                setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[c], True)
            elif c in (22, 27):
                self.bold, self.dim, self.reverse = (False, False, self.reverse) if c == 22 else (self.bold, self.dim, False)
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.fg = c - 30 if c < 40 else c - 82
            elif 40 <= c <= 47:
                self.bg = c - 40
            elif c in (39, 49):
                setattr(self, "fg" if c == 39 else "bg", None)
            elif c in (38, 48) and codes[:1] == [5]:
                setattr(self, "fg" if c == 38 else "bg", codes[1] % 16)
                codes = codes[2:]

    def colors(self):
        bright = 8 if self.bold and self.fg is not None and self.fg < 8 and self.bg is None else 0
        fg = COLORS[self.fg + bright] if self.fg is not None else "#ffffff" if self.bold else COLORS[8] if self.dim else FOREGROUND
        bg = COLORS[self.bg] if self.bg is not None else None
        return (bg or BACKGROUND, fg) if self.reverse else (fg, bg)


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def draw(screen):
    style, out = Style(), []
    for y, line in enumerate(screen):
        x = 0
        for part in re.split(r"(\x1b\[[0-9;]*m|[\x0e\x0f])", line):  # the style goes on over the end of a line
            if part.startswith("\x1b["):
                style.take(part[2:-1])
                continue
            if not part or part in "\x0e\x0f":
                continue
            fg, bg = style.colors()
            n = width(part)
            left, top = PAD + x * CELL_W, PAD + y * CELL_H
            if bg:
                out.append(f'<rect x="{left:.1f}" y="{top}" width="{n * CELL_W:.1f}" height="{CELL_H}" fill="{bg}"/>')
            bold = ' font-weight="bold"' if style.bold else ""
            for word in re.finditer(r"\S+(?: \S+)*", part):  # not the blanks around it: they are drawn differently everywhere
                at, n_word = left + width(part[:word.start()]) * CELL_W, width(word.group())
                out.append(f'<text x="{at:.1f}" y="{top + 13.5}" textLength="{n_word * CELL_W:.1f}" fill="{fg}"{bold}>{html.escape(word.group())}</text>')
            x += n
    w, h = COLUMNS * CELL_W + 2 * PAD, LINES * CELL_H + 2 * PAD
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" '
        f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{FONT}" xml:space="preserve">',
        "<title>sbxtop: the pool of sbxd, live</title>",
        f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>', *out, "</svg>", ""])


if __name__ == "__main__":
    with open(f"{HERE}/sbxtop.svg", "w", encoding="utf-8") as f:
        f.write(draw(capture()))
    print("docs/sbxtop.svg is made anew")
