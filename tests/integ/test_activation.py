"""A service manager as systemd is one: it opens the socket, starts sbxd with it, and hears how it goes."""

import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
import unittest

from harness import BOUND, Daemon, Fault, UnixConnection, descendants, other_mounts, slurp, wait_for

# Between fork and exec of sbxd: its socket becomes descriptor 3, and it is told that it is meant.
START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="sbxd.socket")
os.execv(sys.argv[2], sys.argv[2:])
"""
FAULT = Fault("activation")


class Manager:
    """The socket of one sbxd after the other, and what they have told."""

    def __init__(self, config="", env=None, address=None, abstract=False, wait=True):
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-manager-")
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.settimeout(BOUND)
        name = f"{self.dir}/notify"
        self.notified.bind("\0" + name if abstract else name)
        self.told = []
        self.started = False
        self.d = Daemon.__new__(Daemon)
        start, self.d.start = self.d.start, lambda wait=True: None
        self.d.__init__(config, {**(env or {}), "NOTIFY_SOCKET": "@" + name if abstract else name},
                        wrapper=[sys.executable, "-c", START, str(self.listening.fileno())],
                        fds=(self.listening.fileno(),))
        self.d.start = start
        os.mkdir(self.d.runtime, 0o755)
        self.address = address or self.d.socket
        self.listening.bind(self.address)
        self.listening.listen(64)
        self.inode = os.stat(self.address).st_ino
        if wait:
            self.start()

    def start(self):
        self.d.start(wait=False)
        self.await_message("READY=1")

    def next_message(self):
        self.told.append(self.notified.recv(4096).decode())
        return self.told[-1]

    def await_message(self, wanted):
        """The messages before the one that is wanted."""
        before = []
        while True:
            text = self.next_message()
            if text == wanted:
                return before
            before.append(text)

    def heard_by_now(self):
        self.notified.setblocking(False)
        try:
            while True:
                self.next_message()
        except BlockingIOError:
            return self.told
        finally:
            self.notified.settimeout(BOUND)

    def client(self, path="/v1/pool", body=None):
        """A connection that has sent a request and not read the answer."""
        c = UnixConnection(self.d.socket)
        if body is None:
            c.request("GET", path)
        else:
            c.request("POST", path, body)
        return c

    def end(self):
        if self.d.process and self.d.process.poll() is None:
            self.d.stop()
        self.d.kill() if self.d.process else None
        self.listening.close()
        self.notified.close()
        if os.path.exists(self.address):
            os.unlink(self.address)
        left = self.d.remains()
        self.d.remove()
        shutil.rmtree(self.dir)
        return left


def answer(connection):
    """The status of the answer; the connection is closed."""
    try:
        r = connection.getresponse()
        r.read()
        return r.status
    finally:
        connection.close()


class ActivationTest(unittest.TestCase):
    def manager(self, *args, **kw):
        m = Manager(*args, **kw)
        self.addCleanup(lambda: self.assertEqual(m.end(), []))
        return m

    def assert_socket_stays(self, m):
        self.assertEqual(os.stat(m.d.socket).st_ino, m.inode)


class Activation(ActivationTest):
    def test_ready_is_told_when_it_serves_and_who_came_before_is_served(self):
        m = self.manager(env={"SBX_FAULT": f"sbxd/sbxd.start.swept=hang@{FAULT.path}"}, wait=False)
        early = m.client()
        FAULT.arm()
        m.d.start(wait=False)
        wait_for("it to hang before it serves", FAULT.hit)
        self.assertEqual([t for t in m.heard_by_now() if not t.startswith("STATUS=")], [])
        m.d.kill()
        later = m.client()
        m.start()
        self.assertEqual((answer(early), answer(later)), (200, 200))

    def test_killed_and_started_anew_with_the_same_socket(self):
        m = self.manager("replicas: 5\n")
        box = m.d.acquire("u", "kept")
        m.d.write(box["box_id"], "/tmp/mine", b"mine")
        generation = m.d.inspect(box["box_id"])["generation"]
        m.d.kill()
        self.assert_socket_stays(m)
        between = m.client()
        m.start()
        self.assertEqual(answer(between), 200)
        self.assertEqual(m.d.inspect(box["box_id"])["generation"], generation)
        self.assertEqual(m.d.read(box["box_id"], "/tmp/mine").body, b"mine")
        self.assertEqual(m.d.acquire("u", "kept")["source"], "active")
        self.assert_socket_stays(m)

    def test_a_connection_that_a_worker_has_goes_on(self):
        """It was accepted from the manager's socket, and that is sbxd's address as well."""
        m = self.manager()
        box = m.d.acquire("u", "held")["box_id"]
        m.d.sh(box, "mkfifo /tmp/gate /tmp/begun")
        running = m.client(f"/v1/boxes/{box}/run", '{"command": "echo >/tmp/begun; read line </tmp/gate; echo $line"}')
        m.d.sh(box, "read line </tmp/begun")
        m.d.kill()
        m.start()
        wait_for("its worker to be adopted", lambda: "every worker of the last supervisor has answered" in m.d.log())
        self.assertNotIn("no supervisor gave it", m.d.log())
        m.d.sh(box, "echo through >/tmp/gate")
        self.addCleanup(running.close)
        self.assertIn(b'"through\\n"', running.getresponse().read())
        running.request("GET", "/v1/pool")  # not the box's: sbxd must take it back as a client's
        self.assertEqual(running.getresponse().status, 200)

    def test_handed_over_on_purpose(self):
        m = self.manager()
        box = m.d.acquire("u", "kept")["box_id"]
        generation = m.d.inspect(box)["generation"]
        self.assertEqual(m.d.stop(signal.SIGUSR2), 0)
        m.await_message("STOPPING=1")
        self.assert_socket_stays(m)
        between = m.client()
        m.start()
        self.assertEqual(answer(between), 200)
        self.assertEqual(m.d.inspect(box)["generation"], generation)
        self.assertEqual(m.d.stop(), 0)
        m.await_message("STOPPING=1")
        self.assert_socket_stays(m)

    def test_nobody_inherits_it(self):
        m = self.manager()
        m.d.acquire("u", "t")
        ours = re.search(r"\[(\d+)\]", os.readlink(f"/proc/{m.d.process.pid}/fd/3")).group(1)
        self.assertEqual(str(os.fstat(m.listening.fileno()).st_ino), ours)
        children = descendants(m.d.process.pid)
        self.assertGreater(len(children), 1)  # a worker and the janitor
        for pid in children:
            self.assertNotRegex(slurp(f"/proc/{pid}/environ"), "LISTEN_|NOTIFY_SOCKET|WATCHDOG_")
            held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            self.assertNotIn(f"socket:[{ours}]", held)

    def test_a_socket_of_another_address_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
            m = self.manager(address=f"{place}/elsewhere", wait=False)
            m.d.start(wait=False)
            self.assertEqual(m.d.process.wait(BOUND), 2)
            self.assertIn(f"listens at '{place}/elsewhere', not at {m.d.socket}", m.d.log())
            self.assertEqual(os.stat(m.address).st_ino, m.inode)


class Notification(ActivationTest):
    def test_the_whole_life(self):
        for abstract in (False, True):
            m = self.manager(abstract=abstract)
            self.assertTrue(all(t.startswith("STATUS=") for t in m.told[:-1]), m.told)
            m.d.acquire("u", "t")
            m.await_message("STATUS=boxes: 1 in use, 0 warm, 0 in stock")
            self.assertEqual(m.d.stop(), 0)
            m.await_message("STOPPING=1")

    def test_a_reload_has_a_begin_and_an_end(self):
        m = self.manager("replicas: 3\n")
        for config, replicas in (("replicas: 5\n", 5), ("replicas: nonsense\n", 5)):
            m.d.write_config(config)
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            m.d.process.send_signal(signal.SIGHUP)
            told = [t for t in m.await_message("READY=1") if not t.startswith("STATUS=")]
            after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            (begin,) = [re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", t) for t in told]
            self.assertTrue(before <= int(begin.group(1)) <= after, (before, begin, after))
            self.assertEqual(m.d.pool()["replicas"], replicas)

    def test_the_watchdog_hears_of_it(self):
        m = self.manager(env={"WATCHDOG_USEC": "300000"})
        for _ in range(3):
            m.await_message("WATCHDOG=1")
        m.d.process.send_signal(signal.SIGSTOP)  # it hangs: there is nothing more to hear
        wait_for("it to stand still", lambda: ") T " in slurp(f"/proc/{m.d.process.pid}/stat"))
        m.heard_by_now()
        m.notified.settimeout(1)
        self.assertRaises(TimeoutError, m.notified.recv, 4096)
        m.d.process.send_signal(signal.SIGCONT)
        m.notified.settimeout(BOUND)
        m.await_message("WATCHDOG=1")

    def test_no_watchdog_unless_asked_for(self):
        m = self.manager()
        m.d.acquire("u", "t")
        m.await_message("STATUS=boxes: 1 in use, 0 warm, 0 in stock")
        self.assertNotIn("WATCHDOG=1", m.told)

    def test_why_it_did_not_start(self):
        m = self.manager(wait=False)
        other = Daemon(instance=m.d.instance)
        try:
            m.d.start(wait=False)
            self.assertEqual(m.d.process.wait(BOUND), 1)
            self.assertRegex(m.next_message(), f"^STATUS=instance {m.d.instance} has a supervisor already")
            self.assertNotIn("READY=1", m.heard_by_now())
        finally:
            other.stop()
            other.remove()


def setUpModule():
    global MOUNTS
    MOUNTS = other_mounts()


def tearDownModule():
    assert other_mounts() == MOUNTS


if __name__ == "__main__":
    unittest.main()
