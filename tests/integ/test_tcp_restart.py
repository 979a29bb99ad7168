"""sbxd dies or leaves while TCP clients wait: their answers come, and the next one has the port."""

import json
import signal
import unittest

from harness import open_fds, slurp, wait_for
from tcp import GO, TOKEN, TcpTest, free_port, request, run_request


class Restart(TcpTest):
    """The next sbxd has the port again, and the connections that workers held."""

    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        super().setUpClass()

    def crash(self):
        self.d.kill()
        self.d.start()

    def leave(self):
        self.assertEqual(self.d.stop(signal.SIGUSR2), 0)
        self.d.start()

    def in_flight(self, box):
        c = self.connect()
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": GO}), {"Authorization": f"Bearer {TOKEN}"})
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        return c

    def test_the_port_is_served_again(self):
        for again in (self.crash, self.leave):
            box = self.box("port")
            again()
            self.assertEqual(self.run_over(box, "echo here"), "here\n")

    def test_an_answer_comes_through_the_next_supervisor(self):
        for again in (self.crash, self.leave):
            box = self.box("through")
            c = self.in_flight(box)
            again()
            wait_for("it to be known", lambda: self.d.pool()["clients"] == 2)
            worker = self.d.inspect(box)["pid"]
            fds = len(open_fds(worker))
            self.d.write(box, "/tmp/go", b"")
            self.assertEqual(json.loads(c.getresponse().read())["stdout"], "done\n")
            # The connection is whole: it came back, and each request has to bring the token again.
            self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
            self.assertEqual(self.run_over(box, "rm /tmp/go; echo more", c), "more\n")
            self.assertEqual(self.ask("POST", f"/v1/boxes/{box}/run", {"command": "true"}, token=None, connection=c).status, 401)
            c.close()
            wait_for("no more than before", lambda: len(open_fds(worker)) <= fds - 1)

    def test_an_answer_comes_while_there_is_none(self):
        box = self.box("none")
        c = self.in_flight(box)
        known = self.d.connect()  # the worker has it, and serves it on
        self.d.write(box, "/tmp/other", b"", connection=known)
        self.d.kill()
        self.assertEqual(self.d.write(box, "/tmp/go", b"", connection=known).status, 200)
        self.assertEqual(json.loads(c.getresponse().read())["stdout"], "done\n")
        # There is nobody to look at another request: the connection ends, and the port is served again.
        self.assertEqual(c.sock.recv(10), b"")
        c.close()
        known.close()
        self.d.start()
        self.assertEqual(self.run_over(box, "rm /tmp/go; echo here"), "here\n")

    def test_what_a_dead_one_had_read_on_is_not_waited_for(self):
        """The second request was in the dead supervisor: its client sees the end, not silence."""
        box = self.box("gap")
        s = self.raw()
        s.sendall(run_request(box, GO) + request("GET", "/v1/me"))
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        self.crash()
        wait_for("it to be known", lambda: self.d.pool()["clients"] == 2)
        self.d.write(box, "/tmp/go", b"")
        f = s.makefile("rb")
        self.assertIn(b"200", f.readline())
        self.assertIn(b'"stdout":"done', f.read())

    def test_one_that_listens_elsewhere_takes_them_too(self):
        box = self.box("elsewhere")
        c = self.in_flight(box)
        text = slurp(self.d.config)
        self.d.kill()
        self.d.write_config(text.replace(f":{self.port}'", ":0'"))
        self.d.start()
        wait_for("it to be known", lambda: self.d.pool()["clients"] == 2)
        self.d.write(box, "/tmp/go", b"")
        self.assertEqual(json.loads(c.getresponse().read())["stdout"], "done\n")
        self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        c.close()
        self.d.kill()
        self.d.write_config("replicas: 50\n")
        self.d.start()
        self.assertEqual(self.d.sh(box, "rm /tmp/go; echo here"), "here\n")
        self.d.kill()
        self.d.write_config(text)
        self.d.start()


if __name__ == "__main__":
    unittest.main()
