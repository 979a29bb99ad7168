"""sbxtop on a terminal, driven by keys, against a real pool."""

import os
import re
import shutil
import tempfile
import unittest

from harness import Daemon, DaemonTest, open_fds, slurp, wait_for
from top_screen import Screen

COLOR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7])(?:;[0-9]+)*m")


class Keys(DaemonTest):
    config = "replicas: 50\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = tempfile.mkdtemp(prefix="sbxd-test-")
        d = cls.d
        cls.boxes = {name: d.acquire(user, name)["box_id"]
                     for user, name in (("alice", "one"), ("alice", "two"), ("bøb", "日本語"), ("carol", "three"))}
        d.release(cls.boxes["three"])
        d.sh(cls.boxes["two"], "head -c 3000000 /dev/zero")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)
        super().tearDownClass()

    def screen(self, *args, home=None, **kw):
        folder = home or tempfile.mkdtemp(dir=self.home)
        s = Screen(self.d, *args, env={"XDG_CONFIG_HOME": folder, **kw.pop("env", {})}, **kw)
        self.addCleanup(s.close)
        s.wait_text("serving")
        return s

    def threads(self, s):
        return [row[3] for row in s.rows() if len(row) > 3]

    def test_the_first_screen(self):
        s = self.screen()
        s.wait_text("F10Quit")  # the last of it
        text = s.text()
        self.assertRegex(text, rf"^sbxd {self.d.instance} serving  pid {self.d.process.pid}  generation 1  up ")
        self.assertRegex(text, r"\] 4 of 50 replicas, 1024 slots")
        self.assertRegex(text, r"3 active 1 warm")
        self.assertRegex(text, r"Booting 0 of \d+ failed 0")
        self.assertRegex(text, r"F1Help F2Cols F3Search F4Filter F5Events F6Sort F7Release F8Pause F9Kill F10Quit")
        rows = {row[0]: row for row in s.rows()}
        self.assertEqual(set(rows), set(self.boxes.values()))
        self.assertEqual(rows[self.boxes["three"]][1:4], ["warm", "carol", "three"])
        self.assertEqual(rows[self.boxes["日本語"]][1:4], ["active", "bøb", "日本語"])
        self.assertIn("lease", text.split("EVENTS")[1])
        self.assertEqual(s.quit(), "0")

    def test_columns_stand_under_each_other(self):
        s = self.screen(columns=120)
        lines = s.lines()
        at = next(line for line in lines if line.startswith("BOX")).index("CPU%v") + 3
        for line in lines:
            if line[:16] in self.boxes.values():
                wide = sum(1 for c in line[:at] if c > "ⷿ")
                self.assertRegex(line[at - wide:at - wide + 3], r"^[.][0-9] $", line)

    def test_order(self):
        s = self.screen()
        s.keys("F6")
        s.wait_text("SORT BY")
        s.keys("Home", "Down", "Down", "Down", "Enter")
        s.wait_rows("sorted by thread", lambda rows: [r[3] for r in rows] == ["one", "three", "two", "日本語"])
        s.keys("I")
        s.wait_rows("the other way round", lambda rows: [r[3] for r in rows] == ["日本語", "two", "three", "one"])
        s.keys("<")
        s.wait_rows("by the column to the left", lambda rows: [r[2] for r in rows] == ["alice", "alice", "bøb", "carol"])
        s.keys("<")
        s.wait_text(r"STATE\^")
        s.keys(">", ">", ">")
        s.wait_text("CPU%v")

    def test_filter(self):
        s = self.screen()
        s.keys("/")
        s.type("bøb|two")
        s.wait_rows("two boxes", lambda rows: sorted(r[3] for r in rows) == ["two", "日本語"])
        s.wait_text("^Filter: bøb.two")
        s.keys("BSpace", "BSpace", "BSpace", "BSpace", "Enter")
        s.wait_rows("one box", lambda rows: [r[3] for r in rows] == ["日本語"])
        s.wait_text("FILTER bøb")
        s.keys("F4", "Escape")
        s.wait_rows("all boxes", lambda rows: len(rows) == 4)
        self.assertNotIn("FILTER", s.text())
        s.keys("/")
        s.type("state:warm")
        s.wait_rows("the warm box", lambda rows: [r[3] for r in rows] == ["three"])

    def selected(self, s):
        """The words of the selected row: the one with a background of its own."""
        line = next((line for line in s.lines(styles=True) if re.match(r"(?:\x1b\[[0-9;]*m)*\x1b\[(?:[0-9;]*;)?46m[0-9a-f]{16}", line)), "")
        return re.sub(r"\x1b\[[0-9;]*m|[\x0e\x0f]", "", line).split()

    def wait_selected(self, s, thread):
        wait_for(f"{thread} to be selected\n{s.text()}", lambda: self.selected(s)[3:4] == [thread])

    def test_moving_and_search(self):
        s = self.screen("-s", "thread")
        self.wait_selected(s, "one")
        s.keys("Down", "Down")
        self.wait_selected(s, "two")
        s.keys("Up")
        self.wait_selected(s, "three")
        s.keys("End")
        self.wait_selected(s, "日本語")
        s.keys("Home")
        self.wait_selected(s, "one")
        s.keys("NPage")
        self.wait_selected(s, "日本語")
        s.keys("PPage")
        self.wait_selected(s, "one")
        s.keys("F3")
        s.type("al")
        s.keys("F3")
        self.wait_selected(s, "two")
        s.keys("Enter", "n")
        self.wait_selected(s, "one")
        s.keys("F3")
        s.type("nowhere")
        s.keys("Enter")
        s.wait_text('no box with "nowhere" in it')

    def test_the_selected_box_stays_selected(self):
        s = self.screen("-s", "thread")
        s.keys("Down")
        self.wait_selected(s, "three")
        s.keys("I")
        s.wait_rows("the other way round", lambda rows: rows and rows[0][3] == "日本語")
        self.wait_selected(s, "three")

    def test_columns(self):
        s = self.screen("-o", "token,state,user,thread,leases", columns=100)
        s.wait_text(r"^BOX +STATE +USER +THREAD +LEASES")
        s.keys("F2")
        s.wait_text(r"^\[x\] BOX")
        s.keys("Down", "Space")
        s.wait_text(r"^\[ \] STATE")
        s.keys("Home", "+")
        s.keys("Escape")
        s.wait_text(r"^USER +BOX +THREAD +LEASES")
        s.keys("Right")
        s.wait_text(r"^BOX +THREAD +LEASES")
        s.keys("Left")
        s.wait_text(r"^USER +BOX +THREAD")

    def test_settings_are_kept(self):
        home = tempfile.mkdtemp(dir=self.home)
        s = self.screen(home=home)
        s.keys("F2", "Home", "Down", "Space", "Escape")
        s.wait_text(r"^BOX +USER")
        s.keys("F6", "Home", "Down", "Down", "Enter")
        s.wait_text(r"USER\^")
        s.keys("d")
        s.type("2.5")
        s.keys("Enter", "e")
        s.wait_text(r"EVENTS")
        self.assertEqual(s.quit(), "0")
        kept = slurp(f"{home}/sbxtop.conf")
        for line in ("interval=2.5", "sort=user", "descending=no", "event_lines=12"):
            self.assertIn(line + "\n", kept)
        self.assertEqual(os.listdir(home), ["sbxtop.conf"])
        s = self.screen(home=home)
        s.wait_text(r"^BOX +USER\^")
        self.assertEqual(s.quit(), "0")
        # What the command line says is for this run only.
        s = self.screen("-s", "thread", "-d", "9", home=home)
        s.wait_text(r"THREAD\^")
        self.assertEqual(s.quit(), "0")
        self.assertEqual(slurp(f"{home}/sbxtop.conf"), kept)

    def test_interval(self):
        s = self.screen("-d", "3600")
        s.keys("d")
        s.type("0.01")
        s.keys("Enter")
        s.wait_text("0.1 to 3600")
        s.keys("d")
        s.type("0.2")
        s.keys("Enter")
        s.wait_tick()

    def test_pause(self):
        s = self.screen("-d", "0.1")
        s.keys("F8")
        s.wait_text("PAUSED")
        before = s.clock()
        with self.assertRaises(AssertionError):
            wait_for("the clock to go on all the same", lambda: s.clock() != before, 2)
        s.keys("p")
        s.wait_tick()
        self.assertNotIn("PAUSED", s.text())

    def test_details(self):
        s = self.screen("-s", "thread", lines=60)
        s.keys("End", "Enter")
        s.wait_text("^THREAD +日本語")
        text = s.text()
        for line in (rf"^BOX +{self.boxes['日本語']}", r"^STATE +active", r"^USER +bøb", r"^LEASES +1", r"^DRIVER +namespace",
                     r"^DRIVER NAME +sbxd-", r"state +[0-9a-f]{16} .*->active"):
            self.assertRegex(text, re.compile(line, re.MULTILINE))
        s.wait_text(r"^CONNS +\d")
        s.keys("Enter")
        s.wait_text("^BOX +STATE")

    def test_events(self):
        s = self.screen()
        for shown in (12, 0, 4):
            s.keys("F5")
            s.wait(f"{shown} events", lambda lines, n=shown: self.event_lines(lines) >= min(n, 9) if n else self.event_lines(lines) == 0)
        s.keys("E")
        s.wait_text(r"supervisor_start|lease")
        s.keys("Home")
        s.wait_text("supervisor_start")
        s.keys("Escape")
        s.wait_text("^BOX +STATE")

    @staticmethod
    def event_lines(lines):
        at = [i for i, line in enumerate(lines) if line.startswith("EVENTS")]
        return sum(1 for line in lines[at[0]:] if re.match(r"\d\d:\d\d:\d\d\.\d{3} ", line)) if at else 0

    def test_help(self):
        s = self.screen(lines=100)
        s.keys("h")
        s.wait_text("F9 k +kill the selected box")
        s.wait_text("LAST ERROR +error")
        s.keys("Escape")
        s.wait_text("^BOX +STATE")

    def test_release_and_kill(self):
        """With confirmation, and through the service."""
        box = self.d.acquire("dora", "victim")["box_id"]
        s = self.screen("-f", "victim")
        s.wait_rows("the box", lambda rows: [r[0] for r in rows] == [box])
        s.keys("F7")
        s.wait_text(rf"release {box}\? \(y/n\) +active, 1 lease, victim of dora")
        s.keys("n")
        s.wait_text("F1Help")
        self.assertEqual(self.d.inspect(box)["leases"], 1)
        s.keys("r", "y")
        s.wait_text(f"{box} released: warm")
        s.wait_rows("it to be warm", lambda rows: rows[0][1] == "warm")
        self.assertEqual(self.d.inspect(box)["state"], "warm")
        s.keys("k", "Escape")
        s.wait_text("F1Help")
        self.assertEqual(self.d.inspect(box)["state"], "warm")
        s.keys("F9", "y")
        s.wait_text(f"{box} killed")
        s.wait_rows("it to be gone", lambda rows: rows == [])
        self.assertEqual(self.d.get(f"/v1/boxes/{box}").status, 404)

    def test_an_order_for_another_sbxd_is_not_given(self):
        other = Daemon()
        try:
            s = self.screen("--socket", other.socket)
            s.keys("k", "y")
            s.wait_text("the socket is that of sbxd")
        finally:
            self.assertEqual(other.stop(), 0)
            other.remove()

    def test_mouse(self):
        s = self.screen("-s", "thread")
        lines = s.lines()
        titles = next(i for i, line in enumerate(lines) if line.startswith("BOX"))
        s.click(lines[titles].index("USER") + 1, titles + 1)
        s.wait_text(r"USER\^")
        s.click(lines[titles].index("USER") + 1, titles + 1)
        s.wait_text("USERv")
        row = next(i for i, line in enumerate(s.lines()) if line.startswith(self.boxes["two"]))
        s.click(5, row + 1)
        self.wait_selected(s, "two")
        s.click(5, row + 1)
        s.wait_text("^THREAD +two")
        s.click(3, 24)
        s.wait_text("^BOX +STATE")
        s.click(s.lines()[23].index("F1Help") + 2, 24)
        s.wait_text("^HELP")

    # ---- the terminal ----

    def test_sizes(self):
        s = self.screen()
        for columns, lines in ((200, 60), (80, 24), (40, 10), (20, 5), (10, 3), (3, 2), (300, 100), (80, 25), (79, 23), (132, 34)):
            s.resize(columns, lines)
            s.wait(f"{columns}x{lines}", lambda now, n=lines: len(now) == n + 1 and (n < 3 or "F1" in now[n - 1] or len(now[n - 1]) < 3))
            if columns >= 80 and lines >= 24:
                s.wait_text("F10Quit")
                s.wait_rows("all boxes", lambda rows: len(rows) == 4)
                s.wait("the clock in its corner", lambda now, n=columns: len(now[0]) == n and re.search(r"\d\d:\d\d:\d\d$", now[0]))
        self.assertEqual(s.quit(), "0")

    def test_colours(self):
        self.assertRegex("\n".join(self.screen().lines(styles=True)), COLOR)
        for s in (self.screen(env={"NO_COLOR": "1"}), self.screen("--no-color")):
            self.assertNotRegex("\n".join(s.lines(styles=True)), COLOR)

    def test_a_locale_without_utf8(self):
        s = self.screen(env={"LC_ALL": "C"})
        s.wait_rows("its row", lambda rows: ["active", "b?b", "???"] in [row[1:4] for row in rows])

    def test_it_does_not_grow(self):
        s = self.screen("-d", "0.1", "-n", "200")
        pid = s.pid
        def memory():
            return int(re.search(r"VmRSS:\s+(\d+)", slurp(f"/proc/{pid}/status")).group(1))
        for _ in range(3):
            self.d.release(self.d.acquire("eve", "busy")["box_id"])
        s.wait_rows("the new box", lambda rows: any("busy" in r for r in rows))
        fds, before = open_fds(pid), memory()
        for i in range(60):
            box = self.d.acquire("eve", f"busy-{i % 3}")["box_id"]
            self.d.release(box)
        s.wait_text("busy-2")
        self.assertEqual(open_fds(pid), fds)
        self.assertLess(memory() - before, 1024)
        self.assertEqual(s.wait_text(r"^ENDED (\d+)").group(1), "0")
        for b in self.d.get("/v1/boxes").json["boxes"]:
            if b["user_id"] == "eve":
                self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def test_a_long_notice_leaves_the_clock(self):
        s = self.screen("-f", "o" * 35)
        s.wait_tick()
        line = s.lines()[0]
        self.assertNotIn("generation", line)
        self.assertRegex(line, r"up .* FILTER o+ \d\d:\d\d:\d\d$")

    def test_only_what_changes_is_sent(self):
        """No clearing, and a screen on which only the clock moves costs little."""
        s = self.screen("-d", "0.1", "-f", "three")
        s.tmux("pipe-pane", f"cat > {self.home}/sent")
        for _ in range(3):
            s.wait_tick()
        s.tmux("pipe-pane")
        with open(f"{self.home}/sent", "rb") as f:
            sent = f.read()
        self.assertGreater(len(sent), 20)
        self.assertNotIn(b"\x1b[2J", sent)
        self.assertNotIn(b"\x1b[J", sent)
        drawings = sent.count(b"\x1b[1;")  # each goes to the first line, where the clock is
        self.assertGreater(drawings, 2)
        self.assertLess(len(sent) / drawings, 24 * 80 / 8)


if __name__ == "__main__":
    unittest.main()
