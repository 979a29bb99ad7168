"""The Python client: commands that one talks with."""

import signal
import threading

from harness import BOUND, wait_for
from pyclient import ClientTest, sbxd


class Processes(ClientTest):
    def setUp(self):
        super().setUp()
        self.box = self.acquire()

    def exec(self, command, **how):
        p = self.box.exec(command, **how)
        self.addCleanup(p.close)
        return p

    def sleepers(self):
        return int(self.box.run("grep -l sleep /proc/[0-9]*/comm | wc -l").stdout)

    def test_a_talk(self):
        p = self.exec('while read line; do echo "<$line>"; echo err >&2; done; exit 7', env={"A": "b"}, cwd="/tmp")
        self.assertEqual((p.status, p.returncode), ("running", None))
        for word in ("one", "two"):
            p.write(f"{word}\n")
            self.assertEqual(
                {(o.stream, o.text) for o in (p.read(BOUND), p.read(BOUND))},
                {("stdout", f"<{word}>\n"), ("stderr", "err\n")},
            )
        p.close_stdin()
        self.assertEqual(([*p], p.wait(BOUND), p.returncode, p.status), ([], 7, 7, "completed"))
        self.assertIsNone(p.read())
        for call in (lambda: p.write("x"), p.close_stdin):
            self.assertRaises(sbxd.Closed, call)
        p.kill()  # one that is over is forgotten
        p.kill()

    def test_argv_environment_directory(self):
        p = self.exec(["sh", "-c", "echo $0 $A $PWD", "x y"], env={"A": "b"}, cwd="/tmp", user="nobody", stdin=False)
        self.assertEqual(("".join(o.text for o in p), p.wait()), ("x y b /tmp\n", 0))

    def test_signals(self):
        p = self.exec("trap 'echo usr1' USR1; echo ready; while :; do read line; done")  # no child is told, too
        self.assertEqual(p.read(BOUND).text, "ready\n")
        p.signal(signal.SIGUSR1)
        self.assertEqual(p.read(BOUND).text, "usr1\n")
        p.signal(signal.SIGTERM)
        self.assertEqual((p.wait(BOUND), p.status), (-15, "killed"))
        with self.assertRaises(sbxd.InvalidArgument):
            p.signal(99)

    def test_a_terminal(self):
        p = self.exec('stty size; read line; stty size; stty -echo; echo "[$line]"', tty=True, size=(100, 30))
        self.assertEqual(p.read(BOUND).text, "30 100\r\n")
        p.resize(70, 20)
        p.write("hello\n")
        text = ""
        while (piece := p.read(BOUND)) is not None:
            text += piece.text
        self.assertEqual((text, p.wait()), ("hello\r\n20 70\r\n[hello]\r\n", 0))
        with self.assertRaises(sbxd.NotATty):
            self.exec("sleep 1000").resize(1, 1)

    def test_kill_and_close(self):
        p = self.exec("sleep 1111 & sleep 1111")
        p.kill()
        self.assertEqual((p.wait(BOUND), p.status, self.sleepers()), (-9, "killed", 0))
        with self.box.exec("sleep 1111 & sleep 1111") as p:
            pass
        self.assertEqual((p.returncode, self.sleepers()), (-9, 0))

    def test_a_timeout(self):
        p = self.exec("sleep 1111 & sleep 1111", timeout=0.3)
        self.assertEqual((p.wait(BOUND), p.status), (-9, "timed_out"))
        self.assertTrue(p.notices)
        p = self.exec("sleep 1111")
        for wait in (lambda: p.read(0.05), lambda: p.wait(0.05), lambda: p.communicate("x", timeout=0.05)):
            self.assertRaises(sbxd.DeadlineExceeded, wait)

    def test_a_lot_both_ways(self):
        data = bytes(range(256)) * (8 << 12)  # 8 MiB
        self.assertEqual(self.exec(["cat"]).communicate(data, timeout=BOUND * 2), (data, b""))
        p = self.exec("cat; cat >&2 </dev/null")
        writer = threading.Thread(target=lambda: (p.write(data), p.close_stdin()))
        writer.start()
        self.assertEqual(b"".join(o.data for o in p), data)
        writer.join(BOUND)

    def test_a_reader_that_is_slow_holds_the_command_back(self):
        p = self.exec("head -c 20000000 /dev/zero; touch /tmp/done")
        wait_for("output to wait", lambda: p._size >= 1 << 20)
        self.assertRaises(sbxd.NotFound, self.box.stat, "/tmp/done")
        self.assertLess(p._size, 2 << 20)
        self.assertEqual(sum(len(o.data) for o in p), 20000000)
        self.assertTrue(self.box.stat("/tmp/done").is_file)

    def test_who_does_not_read_says_that_he_is_there(self):
        before, sbxd.execs.QUIET = sbxd.execs.QUIET, 0.05
        self.addCleanup(setattr, sbxd.execs, "QUIET", before)
        p = self.exec("head -c 5000000 /dev/zero")
        said = []
        answer = p._answer
        p._answer = lambda frames: (said.append(frames), answer(frames))
        wait_for("pongs", lambda: len(said) >= 3)
        self.assertEqual((sum(len(o.data) for o in p), p.wait()), (5000000, 0))

    def test_the_box_dies(self):
        p = self.exec("echo begin; sleep 1000")
        p.read(BOUND)
        self.d.request("DELETE", f"/v1/boxes/{self.box.id}?force=1")
        try:
            self.assertEqual((p.wait(BOUND), p.status), (-9, "killed"))
        except sbxd.ConnectionFailed:
            pass
        self.assertRaises(sbxd.BoxGone, p.signal, signal.SIGINT)

    def test_what_cannot_run(self):
        self.assertRaises(sbxd.ExecutionFailed, self.exec, ["/no/such"])
