"""The Python client when sbxd dies and its successor comes: leases and what is attached go on."""

import unittest

from harness import BOUND, Daemon, wait_for
from pyclient import sbxd


class Restart(unittest.TestCase):
    def test_a_lease_outlives_sbxd(self):
        d = Daemon("replicas: 5\n")
        try:
            client = sbxd.Client(d.socket, timeout=BOUND)
            box = sbxd.Sandbox.acquire("py", "restart", client=client)
            process = box.exec("echo begin; read line; echo got $line")
            self.assertEqual(process.read(BOUND).text, "begin\n")
            idle = sbxd.Sandbox.acquire("py", "other", client=client)
            d.kill()
            self.assertEqual(box.run("echo without").stdout, "without\n")
            with self.assertRaises(sbxd.SbxdError):
                client.pool()
            d.start()
            self.assertEqual((d.inspect(box.id)["leases"], d.inspect(idle.id)["leases"]), (1, 1))
            self.assertEqual(client.pool()["active"], 2)
            self.assertEqual(box.run("echo after").stdout, "after\n")
            process.write("more\n")
            self.assertEqual((process.read(BOUND).text, process.wait(BOUND)), ("got more\n", 0))
            process.close()
            box.close()
            idle.close()
            wait_for("the leases to end", lambda: client.pool()["active"] == 0)
            client.close()
            self.assertEqual(d.stop(), 0)
        finally:
            if d.remains():  # it failed: a successor cleans up
                if d.process.poll() is not None:
                    d.start()
                d.stop()
            wait_for("nothing to remain", lambda: d.remains() == [])
            d.remove()
