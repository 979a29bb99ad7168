"""What sbxctl shows on a terminal: tables that fit it, and colours; and elsewhere neither."""

import re
import unittest

from ctl import CtlTest
from harness import BUILD
from terminal import Terminal

COLOR = re.compile(r"\x1b\[[0-9;]*m")


class OnATerminal(CtlTest):
    def shown(self, *args, columns, env=None):
        """The lines of one command, and the same with their styles."""
        command = " ".join((f"{BUILD}/sbxctl", *args))
        with Terminal(f"echo; {command} > /dev/stdout; echo end", columns=columns, lines=50, env={"SBXD_SOCKET": self.d.socket, **(env or {})}) as t:
            t.wait_text("^end")
            lines, styled = t.lines(), t.lines(styles=True)
        end = lines.index("end")
        return lines[:end], styled[:end]

    def test_ps_fits(self):
        long_thread = "thread-" + "x" * 60
        box = self.d.acquire("a-user-with-a-long-name", long_thread)["box_id"]
        self.d.acquire("bøb", "日本語の名前")
        boxes = len(self.d.get("/v1/boxes").json["boxes"])
        args = ("ps", "--instance", self.d.instance)
        whole = self.ctl(*args).stdout.decode()
        self.assertIn(long_thread, whole, "no terminal: nothing is cut")
        self.assertIn("日本語の名前", whole)
        self.assertIsNone(COLOR.search(whole))
        for columns in (40, 60, 80, 100, 200):
            lines, _ = self.shown(*args, columns=columns)
            rows = [line for line in lines if line.strip()]
            self.assertEqual(len(rows), boxes + 1, f"{columns}: no line is broken: {rows}")
            self.assertTrue(rows[0].startswith("BOX "), rows)
            self.assertTrue(any(r.startswith(box) for r in rows), rows)
            heads = rows[0].split()
            self.assertLessEqual({"BOX", "STATE", "USER", "THREAD"}, set(heads), columns)
            self.assertEqual("MEMORY" in heads, columns > 40, columns)
            self.assertEqual(long_thread in "\n".join(rows), columns == 200, columns)
        self.assertIn("~", "\n".join(self.shown(*args, columns=60)[0]))

    def test_colours(self):
        self.d.acquire("colour", "one")
        args = ("ps", "--instance", self.d.instance)
        _, styled = self.shown(*args, columns=120)
        self.assertRegex("\n".join(styled), "\x1b\\[[0-9;]*32m[^\x1b]*active", "active is green")
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            lines, styled = self.shown(*args, columns=120, env=env)
            self.assertIsNone(COLOR.search("".join(styled)), env)
            self.assertIn("active", "\n".join(lines))
        _, styled = self.shown("doctor", columns=120)
        self.assertRegex("\n".join(styled), "\x1b\\[[0-9;]*32mok")

    def test_pool_events_and_files_fit(self):
        box = self.d.acquire("fits", "t")["box_id"]
        self.d.sh(box, f"mkdir /tmp/w; touch /tmp/w/{'n' * 100}")
        for args in (("pool",), ("events",), ("ls", "-l", box, "/tmp/w"), ("shm", "dump")):
            lines, _ = self.shown(*args, "--instance", self.d.instance, columns=70)
            for line in lines:
                self.assertLessEqual(len(line), 70, args)
            text = "\n".join(lines)
            if args[0] == "ls":
                self.assertRegex(text, r"(?m)^-rw-r--r-- .* n+~$")
            if args[0] == "events":
                self.assertRegex(text, r"(?m)^\d\d:\d\d:\d\d\.\d{3}Z +state ")
        lines, _ = self.shown("pool", columns=30)
        self.assertTrue(any(line.startswith(" " * 11) and line[11:12].isalpha() for line in lines), f"counters go on below: {lines}")


if __name__ == "__main__":
    unittest.main()
