"""sbxctl exec -i: standard input as it comes, and with --tty a real terminal that is as it was whatever happens."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import threading
import unittest

from ctl import CtlTest
from harness import BOUND, BUILD, Daemon, wait_for


class Pty:
    """A program whose controlling terminal is ours."""

    def __init__(self, argv, socket, columns=100, lines=30):
        self.master, self.slave = os.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self.slave)
        self.text = b""
        self.process = subprocess.Popen(argv, stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "SBXD_SOCKET": socket, "TERM": "vt100"})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            while True:
                self.text += os.read(self.master, 65536)
        except OSError:
            pass

    def resize(self, columns, lines):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, data):
        os.write(self.master, data)

    def wait_text(self, text, bound=BOUND):
        try:
            wait_for(f"{text!r}", lambda: text in self.text, bound)
        except AssertionError as e:
            raise AssertionError(f"{e}; so far {self.text[-500:]!r}") from None

    def ask(self, line, answer):
        """Types a line; what it prints must have `answer`, and come after what was there before."""
        self.text = b""
        self.type(line + b"\r")
        self.wait_text(answer)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def end(self):
        """Exit status; the terminal is as it was."""
        status = self.process.wait(BOUND * 2)
        wait_for("the terminal to be as it was", self.is_restored)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(BOUND)
        os.close(self.slave)
        self.reader.join(BOUND)
        os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def executions(d, box):
    return [e for e in d.get(f"/v1/boxes/{box}/executions").json if e["status"] == "running"]


class Tty(CtlTest):
    def shell(self, box, *command):
        p = Pty([f"{BUILD}/sbxctl", "exec", "-i", "--tty", box, "--", *(command or ("sh",))], self.d.socket)
        self.addCleanup(p.close)
        wait_for("the terminal to be raw", p.is_raw)
        return p

    def test_a_shell(self):
        box = self.box("shell")
        p = self.shell(box)
        p.ask(b"stty size", b"30 100\r\n")
        p.ask(b"echo $TERM; test -t 0 -a -t 1 -a -t 2 && echo all-$((1+1))", b"vt100\r\nall-2\r\n")
        p.ask("echo 日本".encode(), "\n日本\r\n".encode())
        p.type(b"exit 5\r")
        self.assertEqual(p.end(), 5)
        self.assertEqual(executions(self.d, box), [])

    def test_a_window_that_changes(self):
        p = self.shell(self.box("window"))
        p.ask(b"trap 'echo changed-$(stty size)' WINCH; echo armed-$((1+1))", b"armed-2")
        p.resize(77, 11)
        p.type(b"\r")
        p.wait_text(b"changed-11 77\r\n")
        p.type(b"exit\r")
        self.assertEqual(p.end(), 0)

    def test_keys_that_are_signals_go_to_the_program(self):
        box = self.box("keys")
        p = self.shell(box)
        p.ask(b"set -m; echo up-$((1+1))", b"up-2")
        for key, signal_of in ((b"\x03", 2), (b"\x1c", 3)):
            p.type(f"sh -c 'trap \"echo got-{signal_of}; exit\" {signal_of}; echo re\"\"ady-{signal_of}; while :; do sleep 0.05; done'\r".encode())
            p.wait_text(f"ready-{signal_of}".encode())
            p.type(key)
            p.wait_text(f"got-{signal_of}\r\n".encode())
        p.type(b"sh -c 'echo sle\"\"eps; exec sleep 1000'\r")
        p.wait_text(b"sleeps")
        p.type(b"\x1a")  # ^Z stops the program, not us
        p.ask(b"jobs", b"Stopped")
        p.ask(b"kill -9 %%; echo end-$((1+1))", b"end-2")
        p.type(b"exit 0\r")
        p.type(b"exit 0\r")
        self.assertEqual(p.end(), 0)

    def test_end_of_input_and_no_terminal(self):
        box = self.box("eof")
        p = self.shell(box, "cat")
        p.type(b"line\r")
        p.wait_text(b"line\r\nline\r\n")
        p.type(b"\x04")
        self.assertEqual(p.end(), 0)
        r = self.ctl("exec", "-i", "--tty", box, "--", "sh", "-c", "tty; cat", input=b"piped\n")
        self.assertRegex(r.stdout, rb"/dev/pts/\d+\r\n")
        self.assertEqual(r.stdout.count(b"piped\r\n"), 2, "the echo, and cat")

    def test_signals_end_it_and_its_program(self):
        box = self.box("signals")
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            p = self.shell(box, "sleep", "1000")
            p.process.send_signal(sig)
            self.assertEqual(p.end(), 128 + sig)
            wait_for("the program to be gone", lambda: not executions(self.d, box))

    def test_one_that_is_killed_leaves_neither_a_raw_terminal_nor_a_program(self):
        box = self.box("killed")
        for sig in (signal.SIGKILL, signal.SIGQUIT, signal.SIGABRT):
            p = self.shell(box, "sleep", "1000")
            p.process.send_signal(sig)
            self.assertEqual(p.end(), -sig)
            wait_for("the program to be gone", lambda: not executions(self.d, box))

    def test_one_that_is_stopped_gives_the_terminal_back_meanwhile(self):
        p = self.shell(self.box("stopped"))
        p.ask(b"echo one-$((1+1))", b"one-2")
        p.process.send_signal(signal.SIGTSTP)
        wait_for("the terminal to be as it was", p.is_restored)
        p.resize(90, 20)
        p.process.send_signal(signal.SIGCONT)
        wait_for("the terminal to be raw", p.is_raw)
        p.ask(b"stty size", b"20 90")
        p.type(b"exit 3\r")
        self.assertEqual(p.end(), 3)

    def worker(self, box):
        return next(b["pid"] for b in self.data("ps")["boxes"] if b["box_id"] == box)

    def test_a_box_that_is_removed_or_dies(self):
        for name, end in (("removed", lambda box: self.ctl("rm", "-f", box)),
                          ("worker", lambda box: os.kill(self.worker(box), signal.SIGKILL))):
            with self.subTest(name):
                box = self.box(name)
                p = self.shell(box, "sleep", "1000")
                end(box)
                self.assertEqual(p.end(), 125)
                p.wait_text(b"sbxctl: ")  # which a thread reads

    def test_run_gives_the_box_back(self):
        p = Pty([f"{BUILD}/sbxctl", "run", "-u", "ctl", "-t", "run-tty", "-i", "--tty", "--", "sh"], self.d.socket)
        self.addCleanup(p.close)
        wait_for("the terminal to be raw", p.is_raw)
        p.ask(b"stty size", b"30 100")
        p.type(b"exit 9\r")
        self.assertEqual(p.end(), 9)
        token = self.ctl("token", "ctl", "run-tty").stdout.decode().strip()
        self.assertEqual(self.d.inspect(token)["state"], "warm")


class Stdin(CtlTest):
    def start(self, box, *command, **kw):
        return subprocess.Popen([f"{BUILD}/sbxctl", "exec", "-i", box, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env={**os.environ, "SBXD_SOCKET": self.d.socket}, **kw)

    def test_input_goes_as_it_comes(self):
        p = self.start(self.box("dialog"), "sh", "-c", "while read x; do echo got $x; done; echo end; exit 4")
        for word in (b"one", b"two"):
            p.stdin.write(word + b"\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), b"got " + word + b"\n")
        rest, _ = p.communicate(timeout=BOUND)
        self.assertEqual((rest, p.returncode), (b"end\n", 4))

    def test_bytes_stay_bytes_and_streams_apart(self):
        box = self.box("bytes")
        data = os.urandom(5_000_000)
        self.assertEqual(self.ctl("exec", "-i", box, "--", "cat", input=data).stdout, data)
        r = self.ctl("exec", "-i", box, "--", "sh", "-c", "echo o; echo e >&2; kill -15 $$", input=b"", status=128 + 15)
        self.assertEqual((r.stdout, r.stderr), (b"o\n", b"e\n"))
        self.ctl("exec", "-i", "--timeout", "0.3", box, "--", "sleep", "1000", input=b"", status=124)
        self.ctl("exec", "-i", box, "--", "nosuch", input=b"", status=125)
        self.assertEqual(self.data("exec", "-i", box, "--", "true")["exit_code"], 0)

    def test_a_program_that_does_not_read(self):
        self.assertEqual(self.ctl("exec", "-i", self.box("no reader"), "--", "echo", "done", input=bytes(3_000_000)).stdout, b"done\n")

    def test_output_that_nobody_takes_waits(self):
        box = self.box("no taker")
        p = self.start(box, "sh", "-c", "head -c 3000000 /dev/zero; echo > /tmp/all-out")
        wait_for("the command", lambda: executions(self.d, box))
        self.assertEqual(len(p.stdout.read(3_000_000)), 3_000_000)
        self.assertEqual(p.wait(BOUND), 0)
        p.stdout.close()
        p.stdin.close()

    def test_nobody_reads_any_more(self):
        box = self.box("closed")
        p = self.start(box, "yes")
        p.stdout.read(10)
        p.stdout.close()
        self.assertEqual(p.wait(BOUND), 128 + signal.SIGPIPE)
        wait_for("the command to be gone", lambda: not executions(self.d, box))
        p.stdin.close()

    def test_a_signal_ends_the_command(self):
        box = self.box("signal")
        for sig, status in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
            p = self.start(box, "sh", "-c", "echo attached; exec sleep 1000")
            self.assertEqual(p.stdout.readline(), b"attached\n")
            p.send_signal(sig)
            self.assertEqual(p.wait(BOUND), status)
            wait_for("the command to be gone", lambda: not executions(self.d, box))
            p.stdin.close()
            p.stdout.close()


class TtyRestart(unittest.TestCase):
    def test_a_session_outlives_sbxd_and_ends_with_its_box(self):
        d = Daemon("orphan_grace: 600\n")
        try:
            box = d.acquire("ctl", "crash")["box_id"]
            (worker,) = [b["pid"] for b in json.loads(d.ctl("ps", "--json", "--instance", d.instance).stdout)["boxes"]]
            with Pty([f"{BUILD}/sbxctl", "exec", "-i", "--tty", box, "--", "sh"], d.socket) as p:
                wait_for("the terminal to be raw", p.is_raw)
                p.ask(b"echo one-$((1+1))", b"one-2")
                d.kill()
                p.ask(b"echo two-$((1+1))", b"two-2")
                os.kill(worker, signal.SIGKILL)
                self.assertEqual(p.end(), 125)
            d.start()
            self.assertEqual(d.stop(), 0)
            self.assertEqual(d.remains(), [])
        finally:
            d.kill()
            d.remove()


if __name__ == "__main__":
    unittest.main()
