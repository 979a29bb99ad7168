"""The Python client: boxes and their leases, commands, connections, processes that die or fork."""

import os
import signal
import subprocess
import sys
import threading

from harness import BOUND, in_threads, wait_for
from pyclient import ClientTest, environment, sbxd, server


class Boxes(ClientTest):
    def test_a_with_block_is_a_lease(self):
        with self.acquire() as box:
            self.assertEqual((box.source, box.closed, self.leases(box)), ("cold", False, 1))
            self.assertEqual(box.isolation, self.d.inspect(box.id)["isolation"])
            box.write("/tmp/f", "kept")
        self.assertEqual((box.closed, self.d.inspect(box.id)["state"]), (True, "warm"))
        with self.acquire() as again:
            self.assertEqual((again.source, again.id, again.generation), ("warm", box.id, box.generation))
            self.assertEqual(again.read("/tmp/f"), b"kept")

    def test_the_lease_ends_when_the_block_fails(self):
        with self.assertRaises(KeyError), self.acquire() as box:
            raise KeyError
        self.assertEqual(self.leases(box), 0)

    def test_two_leases_of_one_box(self):
        first, second = self.acquire(), self.acquire()
        self.assertEqual((second.source, second.id, self.leases(first)), ("active", first.id, 2))
        first.close()
        first.close()
        self.assertEqual((self.leases(second), second.run("echo on").stdout), (1, "on\n"))

    def test_a_box_without_a_thread_is_nobody_elses(self):
        with sbxd.Sandbox.acquire(client=self.client) as a, sbxd.Sandbox.acquire(client=self.client) as b:
            self.assertNotEqual(a.id, b.id)

    def test_what_is_closed_says_so(self):
        box = self.acquire()
        box.close()
        for call in (lambda: box.run("true"), lambda: box.read("/etc/hostname"), lambda: box.stream("true"), box.renew):
            self.assertRaises(sbxd.Closed, call)
        client = sbxd.Client(self.d.socket)
        client.close()
        self.assertRaises(sbxd.Closed, client.pool)

    def test_a_lease_is_renewed(self):
        box = self.acquire()
        other = self.acquire()
        self.assertEqual(self.d.release(box.id).json["status"], "warm")  # all leases at once, as an admin may
        self.assertEqual(self.leases(box), 0)
        box.renew()
        self.assertEqual(self.leases(box), 1)
        box.renew()
        self.assertEqual(self.leases(box), 1)
        other.close()
        self.assertEqual(self.leases(box), 1)

    def test_a_box_that_is_gone_stays_gone(self):
        box = self.acquire()
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box.id}?force=1").status, 204)
        with self.assertRaises(sbxd.BoxGone):
            box.read("/etc/hostname")
        successor = self.acquire()
        self.assertEqual(successor.id, box.id)
        self.assertNotEqual(successor.generation, box.generation)
        for call in (lambda: box.run("true"), lambda: box.stream("true"), lambda: box.list_dir("/"), box.renew):
            self.assertRaises(sbxd.BoxGone, call)
        box.close()
        self.assertEqual(self.leases(successor), 1)

    def test_a_call_does_not_reach_a_successor(self):
        """Another process has the scope's new box before this one notices that its own is gone."""
        old = [self.acquire(thread="successor") for _ in range(3)]
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{old[0].id}?force=1").status, 204)
        new = self.acquire(thread="successor")
        self.assertEqual(new.id, old[0].id)
        self.assertRaises(sbxd.StaleGeneration, old[0].write, "/tmp/x", "stray")
        self.assertRaises(sbxd.StaleGeneration, old[1].stream, "true")
        self.assertRaises(sbxd.StaleGeneration, old[2].exec, "true")
        self.assertRaises(sbxd.StaleGeneration, old[0].inspect)
        self.assertRaises(sbxd.NotFound, new.read, "/tmp/x")

    def test_a_renewal_finds_another_box(self):
        box = self.acquire()
        self.d.request("DELETE", f"/v1/boxes/{box.id}?force=1")
        self.assertRaises(sbxd.StaleGeneration, box.renew)
        self.assertRaises(sbxd.StaleGeneration, box.run, "true")
        self.assertEqual(self.leases(box), 0)

    def test_a_box_that_dies_under_a_command(self):
        box = self.acquire()

        def die():
            wait_for("the command to run", lambda: self.d.inspect(box.id).get("in_flight"))
            self.d.request("DELETE", f"/v1/boxes/{box.id}?force=1")

        t = threading.Thread(target=die)
        t.start()
        self.assertRaises(sbxd.BoxDied, box.run, "sleep 1000")
        t.join()

    def test_the_pool_and_the_configuration(self):
        box = self.acquire()
        self.assertGreaterEqual(self.client.pool()["active"], 1)
        self.assertIn("defaults", self.client.config())
        self.assertEqual(box.inspect()["box_id"], box.id)


class Commands(ClientTest):
    def test_results(self):
        box = self.acquire()
        r = box.run("echo out; echo err >&2; exit 3")
        self.assertEqual(
            (r.stdout, r.stderr, r.exit_code, r.signal, r.returncode, r.ok), ("out\n", "err\n", 3, None, 3, False)
        )
        self.assertEqual((r.timed_out, r.truncated), (False, False))
        with self.assertRaisesRegex(sbxd.CommandFailed, "exited with 3: err") as caught:
            r.check()
        self.assertIs(caught.exception.result, r)
        r = box.run(["sh", "-c", "kill -TERM $$"])
        self.assertEqual((r.exit_code, r.signal, r.returncode), (None, 15, -15))
        r = box.run("printf '\\377\\000x'").check()
        self.assertEqual((r.stdout_bytes, r.stdout), (b"\xff\0x", "\ufffd\0x"))
        self.assertEqual(box.run("cat", stdin="täxt").stdout, "täxt")
        self.assertEqual(box.run(["cat"], stdin=b"\xff\0").stdout_bytes, b"\xff\0")
        self.assertEqual(box.run("echo $A $PWD", env={"A": "b c"}, cwd="/tmp").stdout, "b c /tmp\n")
        self.assertEqual(box.run("id -u", user="nobody").stdout, box.run("id -u nobody").stdout)
        self.assertEqual(box.run("test -t 1 && echo tty", tty=True).stdout, "tty\r\n")
        r = box.run("yes | head -c 100000", max_output=1000)
        self.assertEqual((len(r.stdout), r.truncated), (1000, True))

    def test_a_timeout_kills_the_whole_tree(self):
        box = self.acquire()
        r = box.run("sleep 1234 & sleep 1234", timeout=0.2)
        self.assertEqual((r.timed_out, r.signal, r.ok), (True, 9, False))
        self.assertRaisesRegex(sbxd.CommandFailed, "timed out", r.check)
        self.assertEqual(box.run("grep -l sleep /proc/[0-9]*/comm | wc -l").stdout, "0\n")

    def test_a_stream_comes_as_it_is_written(self):
        box = self.acquire()
        with box.stream("echo one; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo two >&2; exit 4") as stream:
            first = next(stream)
            self.assertEqual((first.stream, first.text, stream.result), ("stdout", "one\n", None))
            box.write("/tmp/go", "")
            self.assertEqual([(p.stream, p.data) for p in stream], [("stderr", b"two\n")])
            self.assertEqual((stream.result.exit_code, stream.result.stdout), (4, ""))
        self.assertEqual(b"".join(p.data for p in box.stream("head -c 3000000 /dev/zero")), bytes(3000000))

    def test_a_stream_that_is_left_kills_its_command(self):
        box = self.acquire()
        with box.stream("echo begin; exec sleep 4321") as stream:
            next(stream)
        self.assertIsNone(stream.result)
        wait_for("the command to be gone", lambda: box.run("grep -l sleep /proc/[0-9]*/comm | wc -l").stdout == "0\n")
        self.assertEqual([*stream], [])

    def test_a_stream_of_what_cannot_run(self):
        with self.assertRaises(sbxd.ExecutionFailed):
            self.acquire().stream(["/no/such/program"])


class Connections(ClientTest):
    def test_they_are_used_again(self):
        box = self.acquire()
        box.run("true")
        before = self.client.pool()["clients"]
        for _ in range(50):
            box.stat("/tmp")
            self.client.pool()
        self.assertEqual(self.client.pool()["clients"], before)
        for i in range(5):
            self.acquire(thread=f"t{i}").close()
        self.assertLessEqual(self.client.pool()["clients"], before + 1)

    def test_only_so_many_are_kept(self):
        client = sbxd.Client(self.d.socket, max_idle=3)
        self.addCleanup(client.close)
        with sbxd.Sandbox.acquire("py", "few", client=client) as box:
            in_threads(10, lambda i: box.run("sleep 0.1"))
            wait_for("the others to be closed", lambda: self.client.pool()["clients"] <= 3 + 1 + 2)

    def test_threads_share_a_box(self):
        box = self.acquire()

        def work(i):
            for j in range(10):
                self.assertEqual(box.run(["echo", f"{i} {j}"]).stdout, f"{i} {j}\n")
                box.write(f"/tmp/{i}", f"{j}")
                self.assertEqual(box.read(f"/tmp/{i}"), f"{j}".encode())

        in_threads(16, work)

    def test_a_call_that_is_interrupted(self):
        box = self.acquire()

        def stop(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, stop)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)

        def interrupt():
            wait_for("the command to run", lambda: self.d.inspect(box.id).get("in_flight"))
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

        t = threading.Thread(target=interrupt)
        t.start()
        self.assertRaises(KeyboardInterrupt, box.run, "sleep 999; echo late")
        t.join()
        self.assertEqual(box.run("echo next", timeout=1).stdout, "next\n")
        wait_for("the command to be killed", lambda: box.run("grep -l sleep /proc/[0-9]*/comm | wc -l").stdout == "0\n")

    def test_nobody_there(self):
        with self.assertRaisesRegex(sbxd.ConnectionFailed, "/no/such/socket"):
            sbxd.Sandbox.acquire("a", "b", client=sbxd.Client("/no/such/socket"))
        self.assertTrue(issubclass(sbxd.ConnectionFailed, ConnectionError))

    def test_a_server_that_says_nothing(self):
        with server() as path, sbxd.Client(path, timeout=0.1) as client:
            self.assertRaises(sbxd.DeadlineExceeded, client.pool)
        self.assertTrue(issubclass(sbxd.DeadlineExceeded, TimeoutError))

    def test_a_server_that_says_nonsense(self):
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
        for answer, kind in (
            (b"nonsense\r\n\r\n", sbxd.BadAnswer),
            (ok + b"{]", sbxd.BadAnswer),
            (ok + b"{", sbxd.ConnectionFailed),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", sbxd.BadAnswer),
            (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", sbxd.BadAnswer),
            (b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}", sbxd.BadAnswer),
            (b"HTTP/1.1 2", sbxd.ConnectionFailed),
        ):
            with self.subTest(answer), server(answer) as path, sbxd.Client(path) as client:
                self.assertRaises(kind, client.pool)

    def test_the_socket_comes_from_the_environment(self):
        r = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sbxd\nwith sbxd.Sandbox.acquire('py', 'env') as b: print(b.run('echo hi').stdout)",
            ],
            env=environment(self.d),
            capture_output=True,
            text=True,
            timeout=BOUND * 4,
            check=True,
        )
        self.assertEqual((r.stdout, r.stderr), ("hi\n\n", ""))


HOLDER = r"""
import os, sys, time, sbxd
box = sbxd.Sandbox.acquire("py", sys.argv[1])
if sys.argv[2] == "fork" and os.fork() == 0:
    os.write(1, f"child {os.getpid()}\n".encode())  # whole lines: two processes write them
    time.sleep(1000)
os.write(1, b"holds\n")
if sys.argv[2] == "end":
    sys.exit()
box.run("sleep 1000") if sys.argv[2] == "busy" else time.sleep(1000)
"""


class Deaths(ClientTest):
    def hold(self, how):
        p = subprocess.Popen(
            [sys.executable, "-c", HOLDER, self.thread, how], env=environment(self.d), stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        said = []
        while "holds\n" not in said or (how == "fork" and len(said) < 2):
            said.append(p.stdout.readline())
            self.assertNotEqual(said[-1], "", "it ended")
        return p, said

    def parked(self):
        wait_for("the lease to end", lambda: self.client.pool()["active"] == 0)

    def test_a_process_that_is_killed_gives_its_lease_back(self):
        for how in ("idle", "busy"):
            with self.subTest(how):
                p, _ = self.hold(how)
                self.assertEqual(self.client.pool()["active"], 1)
                p.kill()
                self.parked()

    def test_a_process_that_ends_without_a_word(self):
        self.hold("end")
        self.parked()

    def test_a_child_does_not_keep_its_parents_lease(self):
        p, said = self.hold("fork")
        child = int(next(s for s in said if s.startswith("child")).split()[1])
        self.addCleanup(os.kill, child, signal.SIGKILL)
        p.kill()
        p.wait(BOUND)
        self.parked()
        os.kill(child, 0)

    def in_child(self, what):
        """Runs that in a child of a fork; what it returned, as text."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, str(what()).encode())
            except BaseException as e:  # noqa: BLE001 - it is what comes back
                os.write(write, repr(e).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, encoding="utf-8") as f:
            text = f.read()
        os.waitpid(child, 0)
        return text

    def test_a_child_gets_a_lease_of_its_own(self):
        box = self.acquire()
        box.run("true")

        def use():
            out = box.run("echo child").stdout.strip()
            before = box.inspect()["leases"]
            box.close()
            return f"{out} {before}"

        self.assertEqual(self.in_child(use), "child 2")
        self.assertEqual((self.leases(box), box.run("echo parent").stdout), (1, "parent\n"))
        self.assertEqual(self.in_child(box.close), "None")
        self.assertEqual(self.leases(box), 1)

    def test_a_child_does_not_get_what_can_be_had_once(self):
        with sbxd.Sandbox.acquire(client=self.client) as box:
            self.assertIn("Closed", self.in_child(lambda: box.run("true")))

    def test_forks_while_threads_work(self):
        box = self.acquire()
        stop = threading.Event()
        failures = []

        def work():
            while not stop.is_set():
                try:
                    box.stat("/tmp")
                except Exception as e:  # noqa: BLE001 - it is what the test is about
                    failures.append(e)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        try:
            for i in range(5):
                self.assertEqual(self.in_child(lambda: box.run(f"echo {i}").stdout.strip()), f"{i}")
        finally:
            stop.set()
            for t in threads:
                t.join(BOUND)
        self.assertEqual(failures, [])
