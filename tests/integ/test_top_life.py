"""sbxtop when things end: sbxd, its table, the terminal, sbxtop itself."""

import os
import shutil
import signal
import tempfile
import time
import unittest

from harness import BOUND, BUILD, Daemon, DaemonTest, start_time, wait_for
from terminal import Terminal
from top_screen import SAN, Screen, cpu_ticks, state_of


class TheTerminal(DaemonTest):
    """It is given back, whatever happens."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(shutil.rmtree, self.home)

    def screen(self, *args, **kw):
        s = Screen(self.d, *args, env={"XDG_CONFIG_HOME": self.home}, **kw)
        self.addCleanup(s.close)
        s.wait_text("serving")
        return s

    def test_it_gives_the_terminal_back(self):
        for sig, status in ((signal.SIGTERM, "0"), (signal.SIGINT, "0"), (signal.SIGHUP, "0"), (signal.SIGSEGV, "139"), (signal.SIGABRT, "134")):
            s = self.screen()
            self.assertEqual(s.ask("alternate_on"), "1")
            os.kill(s.pid, sig)
            self.assertIn(s.wait_text(r"ENDED (\d+)").group(1), [status, "1"] if SAN and status != "0" else [status], sig)
            self.assertEqual([s.ask(v) for v in ("alternate_on", "cursor_flag", "mouse_any_flag", "keypad_cursor_flag")], ["0", "1", "0", "0"], sig)
            s.type("typed")
            s.wait_text("typed")  # it is echoed again

    def test_stopped_from_the_keyboard(self):
        """A shell has the terminal meanwhile, and `fg` brings it back."""
        command = f"{BUILD}/sbxtop --instance {self.d.instance} -d 0.2"
        with Terminal(f"set -m; {command}; echo STOPPED $?; read line; fg; echo ENDED $?; exec cat", env={"XDG_CONFIG_HOME": self.home}) as t:
            t.wait_text("^BOX +STATE")
            t.keys("C-z")
            t.wait_text("^STOPPED 148")
            self.assertEqual([t.ask(v) for v in ("alternate_on", "cursor_flag")], ["0", "1"])
            t.keys("Enter")
            t.wait_text("^BOX +STATE")
            self.assertEqual(t.ask("alternate_on"), "1")
            t.keys("q")
            t.wait_text("^ENDED 0")

    def test_stopped_by_somebody_else(self):
        s = self.screen("-d", "0.2")
        pid = s.pid
        os.kill(pid, signal.SIGSTOP)
        wait_for("it to stop", lambda: state_of(pid) == "T")
        os.kill(pid, signal.SIGCONT)
        s.wait_tick()
        # Where no shell could continue it, ^Z does not stop it.
        s.keys("C-z")
        s.wait_tick()
        self.assertEqual(s.quit(), "0")

    def test_any_type_of_it(self):
        for term in ("xterm", "vt100", "screen", "tmux-256color", *(() if SAN else ("linux",))):
            with Screen(self.d, env={"TERM": term, "XDG_CONFIG_HOME": self.home}) as s:
                s.wait_text("serving")
                self.assertEqual(s.quit(), "0")
        with Screen(self.d, env={"TERM": "no-such-terminal", "XDG_CONFIG_HOME": self.home}) as s:
            s.wait_text("no-such-terminal")
            self.assertEqual(s.wait_text(r"^ENDED (\d+)").group(1), "1")

    @unittest.skipIf(SAN, "a sanitizer that looks for leaks hangs when it is continued meanwhile")
    def test_it_goes_away(self):
        s = self.screen()
        pid = s.pid
        s.tmux("kill-server")
        wait_for("sbxtop to end", lambda: start_time(pid) is None)


class Life(unittest.TestCase):
    """What becomes of sbxd shows, whatever that is."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="sbxd-test-")
        self.d = Daemon("replicas: 5\norphan_grace: 60\n")
        self.addCleanup(shutil.rmtree, self.home)
        self.addCleanup(self.end)

    def end(self):
        self.d.kill()
        self.d.start()
        self.assertEqual(self.d.stop(), 0)
        self.assertEqual(self.d.remains(), [])
        self.d.remove()

    def screen(self, *args, **kw):
        s = Screen(self.d, *args, env={"XDG_CONFIG_HOME": self.home}, **kw)
        self.addCleanup(s.close)
        return s

    def test_a_killed_sbxd(self):
        """Within a second, however long the interval is: it is told, not looked for."""
        box = self.d.acquire("u", "t")["box_id"]
        s = self.screen("-d", "3600")
        s.wait_text("serving")
        self.d.kill()
        s.wait_text("^sbxd .* DEAD .* last heartbeat [0-9.]+s ago", bound=BOUND if SAN else 1)
        self.assertEqual([r[0] for r in s.rows()], [box])
        s.keys("k", "y")
        s.wait_text("kill of .*(is sbxd running|refused|No such file)")
        self.d.start()
        s.wait_text(rf"serving  pid {self.d.process.pid}  generation 2")
        self.assertEqual([r[0] for r in s.rows()], [box])
        self.assertEqual(s.quit(), "0")

    def test_a_hung_sbxd(self):
        self.d.acquire("u", "t")
        s = self.screen("-d", "3600")
        s.wait_text("serving")
        self.d.process.send_signal(signal.SIGSTOP)
        try:
            s.wait_text("HUNG .* last heartbeat")
            s.keys("k", "y", "Down", "Home")
            s.wait_text("^BOX")  # keys are answered meanwhile
        finally:
            self.d.process.send_signal(signal.SIGCONT)
        s.wait_text("serving")

    def test_tables_come_and_go(self):
        s = self.screen("-d", "0.2")
        s.wait_text("serving")
        self.assertEqual(self.d.stop(), 0)
        s.wait_text("(?s)gone .*the table is gone; waiting for the next sbxd")
        before = cpu_ticks(s.pid)
        time.sleep(1)  # in which it has next to nothing to do
        self.assertLess(cpu_ticks(s.pid) - before, 20)
        self.d.start()
        s.wait_text(rf"serving  pid {self.d.process.pid}  generation 1")
        self.d.acquire("u", "again")
        s.wait_text(" again ")
        self.assertEqual(s.quit(), "0")

    def test_it_may_be_there_first(self):
        self.assertEqual(self.d.stop(), 0)
        s = self.screen()
        s.wait_text(f"(?s)sbxd {self.d.instance} no table.*waiting for it")
        s.keys("Down", "Enter", "k", "F6", "Enter", "F2", "Escape", "E", "Escape", "F3", "x", "Enter")
        self.d.start()
        s.wait_text("serving")

    def test_a_table_that_is_cut_off(self):
        """Whoever shortens the file makes reading it a SIGBUS. It is said, and the next table is taken."""
        path = f"/dev/shm/sbxd-{os.geteuid()}-{self.d.instance}"
        self.d.acquire("u", "t")
        s = self.screen("-d", "0.2")
        s.wait_text("serving")
        copy = shutil.copy(path, f"{self.home}/table")
        self.assertEqual(self.d.stop(), 0)
        # A table that nobody else maps.
        shutil.copy(copy, path)
        os.chmod(path, 0o640)
        s.wait_text("DEAD")
        os.truncate(path, 8192)
        s.wait_text("cut off|truncated|bytes long")
        os.unlink(path)
        self.d.start()
        s.wait_text("serving")
        self.assertEqual(s.quit(), "0")

    def test_replay(self):
        box = self.d.acquire("u", "t")["box_id"]
        self.d.release(box)
        self.d.acquire("u", "t")
        self.d.kill()
        s = self.screen("--replay", instance=self.d.instance)
        s.wait_text(r"DEAD .* REPLAY event (\d+) of \1")
        self.assertEqual(s.rows()[0][:4], [box, "active", "u", "t"])
        states = ["active"]
        for _ in range(40):
            before = s.lines()[0]
            s.keys("[")
            s.wait("a step back", lambda lines, was=before: lines[0] != was)
            rows = s.rows()
            state = rows[0][1] if rows else "free"
            states += [state] if state != states[-1] else []
            if state == "free":
                break
        self.assertEqual(states, ["active", "checking", "warm", "active", "booting", "reserved", "free"])
        s.keys("k")
        s.wait_text("no box is selected|this is a replay")
        s.keys("}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}", "}")
        s.wait_text(r"REPLAY event (\d+) of \1")
        s.keys("k")
        s.wait_text("this is a replay: there is nothing to kill")
        self.assertEqual(s.quit(), "0")


if __name__ == "__main__":
    unittest.main()
