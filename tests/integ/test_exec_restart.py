"""sbxd dies or leaves, and the next one comes: executions and their clients do not notice."""

import os
import signal
import unittest

from executions import ExecTest
from harness import BOUND
from ws import Refused

MIB = 1 << 20


class Restart(ExecTest):
    """sbxd dies: attached executions do not notice."""

    def test_kill_9_in_the_middle_of_an_attached_execution(self):
        a = self.begin_sh("while read x; do echo got $x; done; echo end")
        a.write(b"one\n")
        a.until_out(b"got one\n")
        e = self.d.get(self.path()).json[0]["execution_id"]
        self.d.kill()
        a.write(b"two\n")
        a.until_out(b"got two\n")  # without any sbxd
        self.d.start()
        a.write(b"three\n")
        a.until_out(b"got three\n")
        self.assertTrue(self.status(e)["attached"])
        with self.assertRaises(Refused):
            self.attach(e)
        a.eof()
        self.assertEqual((a.finish(), a.stdout), (0, b"got one\ngot two\ngot three\nend\n"))
        self.assertEqual(self.status(e)["status"], "completed")

    def test_bulk_goes_on_through_a_restart(self):
        a = self.begin("cat")
        data = os.urandom(MIB) * 32
        t = self.pump_in(a, data)
        a.until(lambda: len(a.stdout) > MIB)
        self.d.kill()
        self.d.start()
        self.assertEqual((a.finish(), a.stdout == data), (0, True))
        t.join(BOUND)

    def test_detached_through_a_restart(self):
        e = self.sh("read x; echo got $x")
        self.d.kill()
        self.d.start()
        a = self.attach(e)
        a.write(b"it\n")
        self.assertEqual((a.finish(), a.stdout), (0, b"got it\n"))

    def test_sbxd_that_leaves_and_one_that_comes(self):
        a = self.begin_sh("while read x; do echo got $x; done")
        self.assertEqual(self.d.stop(signal.SIGUSR2), 0)
        self.d.start()
        a.write(b"one\n")
        a.until_out(b"got one\n")
        a.eof()
        self.assertEqual(a.finish(), 0)


if __name__ == "__main__":
    unittest.main()
