"""What goes into executions and comes out of them: nothing lost, nothing changed, nothing left, in bounded memory."""

import hashlib
import os
import re
import threading
import unittest

import backends
from executions import ExecTest, memory_kib
from harness import BOUND, in_threads, open_fds, slurp, wait_for
from ws import BINARY, Socket

MIB = 1 << 20


class Bytes(ExecTest):
    """What goes in and comes out, unchanged and without a limit, in bounded memory."""

    def test_row_09_a_full_stdin_loses_nothing(self):
        data = os.urandom(24 * MIB)
        self.d.sh(self.box, "rm -f /tmp/gate-full; mkfifo /tmp/gate-full")
        a = self.begin_sh("echo ready; read x </tmp/gate-full; sha256sum; echo done")
        a.until_out(b"ready\n")
        t = self.pump_in(a, data, 5 * MIB)  # more than stdin and all sockets take
        worker = self.d.inspect(self.box)["pid"]
        wait_for("the writer to be held back", lambda: t.is_alive() and re.search(r"\) S ", slurp(f"/proc/{worker}/stat")))
        self.d.sh(self.box, "echo go > /tmp/gate-full")
        self.assertEqual(a.finish(), 0)
        t.join(BOUND)
        self.assertEqual(a.stdout.decode().split()[1], hashlib.sha256(data).hexdigest())

    def test_row_10_eight_mib_of_output_are_identical(self):
        a = self.begin_sh("head -c 8388608 /dev/urandom | tee /tmp/eight; head -c 1000000 /tmp/eight >&2")
        self.assertEqual(a.finish(), 0)
        data = self.d.read(self.box, "/tmp/eight").body
        self.assertEqual(len(data), 8388608)
        self.assertEqual(hashlib.sha256(a.stdout).digest(), hashlib.sha256(data).digest())
        self.assertEqual(a.stderr, data[:1000000])
        self.assertLessEqual(max(len(f) for _, f in a.frames), 65536)

    def test_row_10_characters_are_whole_in_every_frame(self):
        text = "héllo ✓ 😀 " * 40000
        self.d.write(self.box, "/tmp/text", text.encode())
        program = ("import os\nd=open('/tmp/text','rb').read()\nfor i in range(0,len(d),4001): os.write(1,d[i:i+4001])\n"
                   "for b in '✓é€😀'.encode(): os.write(1,bytes([b]))\n")
        a = self.begin("python3", "-c", program)
        self.assertEqual(a.finish(), 0)
        self.assertEqual(a.stdout.decode(), text + "✓é€😀")
        for _, frame in a.frames:
            frame.decode()  # as a client does that looks at each by itself

    def test_sixty_four_mib_both_ways_in_bounded_memory(self):
        box = self.d.acquire("bulk", "t")["box_id"]
        about = self.d.inspect(box)
        self.begin("true", box=box).finish()
        before = {p: memory_kib(p) for p in (about["pid"], about["box_pid"])}
        data = os.urandom(MIB) * 64
        frames = b"".join(Socket.frame(BINARY, data[i:i + 20 * MIB]) for i in range(0, len(data), 20 * MIB))
        a = self.begin("cat", box=box)
        t = threading.Thread(target=lambda: (a.send_raw(frames), a.eof()), daemon=True)
        t.start()
        self.assertEqual(a.finish(), 0)
        t.join(BOUND)
        self.assertEqual(len(a.stdout), len(data))
        self.assertEqual(hashlib.sha256(a.stdout).digest(), hashlib.sha256(data).digest())
        if not os.environ.get("SBX_SAN"):
            for pid, kib in before.items():
                self.assertLess(memory_kib(pid) - kib, 16 * 1024, f"KiB more in {slurp(f'/proc/{pid}/comm')}")

    def test_a_client_that_writes_everything_before_it_reads(self):
        """As BoxLite's SDK sends one write() of any length: nobody waits for the other for ever."""
        data = os.urandom(MIB) * 20
        a = self.begin("cat")
        a.send(BINARY, data)
        a.eof()
        self.assertEqual((a.finish(), a.stdout == data), (0, True))

    def test_a_reader_that_stops_stops_only_itself(self):
        size = 300_000_000 // backends.current.slow
        box = self.d.acquire("stop", "t")["box_id"]  # a worker whose heap has not grown yet
        a = self.begin("head", "-c", str(size), "/dev/zero", box=box)
        a.until(lambda: len(a.stdout) > 100000)
        pid = self.d.inspect(box)["pid"]
        for _ in range(5):
            other = self.begin("echo", "alive", box=box)
            self.assertEqual((other.finish(), other.stdout), (0, b"alive\n"))
        if not os.environ.get("SBX_SAN"):
            self.assertLess(memory_kib(pid), 16 * 1024)
        self.assertEqual(a.finish(), 0)  # and when it reads on, everything is there
        self.assertEqual(len(a.stdout), size)

    def test_output_before_the_first_client_is_complete(self):
        e = self.sh("head -c 3000000 /dev/zero | tr '\\0' a; echo end >&2")
        wait_for("it to be held back", lambda: self.processes("^head -c 3000000") == 1 or self.status(e)["status"] != "running")
        self.assertEqual(self.status(e)["status"], "running")
        a = self.attach(e)
        self.assertEqual((a.finish(), len(a.stdout), a.stderr), (0, 3000000, b"end\n"))

    def test_detached_output_is_bounded_and_its_end_is_kept(self):
        e = self.sh("read x; i=0; while [ $i -lt 50000 ]; do echo line $i; i=$((i+1)); done; echo done")
        a = self.attach(e)
        a.write(b"\n")
        a.until(lambda: b"line 10\n" in a.stdout).close()
        self.wait_status(e, "completed")
        whole = "".join(f"line {i}\n" for i in range(50000)).encode() + b"done\n"
        b = self.attach(e)
        self.assertEqual(b.finish(), 0)
        self.assertTrue(whole.endswith(b.stdout))
        self.assertRegex(b.errors[0], r"^stdout: \d+ bytes were dropped while no client was attached$")
        c = self.attach(e, "?replay=true")
        self.assertEqual((c.finish(), c.stdout), (0, whole[-262144:]))

    def test_binary_is_not_touched(self):
        data = bytes(range(256)) * 300
        a = self.begin("cat")
        self.pump_in(a, data, 777)
        self.assertEqual((a.finish(), a.stdout), (0, data))

    def test_no_stdin(self):
        a = self.begin_sh("cat; readlink /proc/self/fd/0", stdin=False)
        self.assertEqual((a.finish(), a.stdout), (0, b"/dev/null\n"))


class ManyExecutions(ExecTest):
    config = "replicas: 50\npids_max: 1024\n"

    def held(self):
        """Descriptors of sbxd, worker and guest, zombies, and what the worker has in memory."""
        about = self.d.inspect(self.box)
        fds = [len(open_fds(p)) for p in (self.d.process.pid, about["pid"], about["box_pid"])]
        zombies = [p for p in self.all_below(about["box_pid"]) if re.search(r"\) Z ", slurp(f"/proc/{p}/stat"))]
        return fds, zombies, memory_kib(about["pid"], "VmRSS")

    @staticmethod
    def all_below(pid):
        found, todo = [], [pid]
        while todo:
            p = todo.pop()
            try:
                below = [int(x) for t in os.listdir(f"/proc/{p}/task") for x in slurp(f"/proc/{p}/task/{t}/children").split()]
            except OSError:
                continue
            found += below
            todo += below
        return found

    def settled(self, before=None):
        """What is held when nothing runs any more: no zombie, and no descriptor more than `before`."""
        got = []

        def calm():
            got[:] = self.held()
            more = before and [x > y for x, y in zip(got[0], before[0])]
            return not got[1] and not (more and any(more))
        wait_for("all connections to be gone", lambda: self.d.inspect(self.box)["in_flight"] == 0)
        try:
            wait_for("zombies and descriptors to be gone", calm)
        except AssertionError as e:
            raise AssertionError(f"{e}: {before}, then {got}") from None
        return got

    def test_a_thousand_in_a_row_leave_nothing(self):
        for _ in range(70):  # as many as are kept, and all that is allocated once
            self.begin("echo", "x").finish()
        before = self.settled()
        for i in range(1000 // backends.current.slow):
            a = self.begin("echo", str(i))
            self.assertEqual((a.finish(), a.stdout), (0, f"{i}\n".encode()))
        after = self.settled(before)
        if not os.environ.get("SBX_SAN"):
            self.assertLess(after[2] - before[2], 2048, "KiB")

    def test_sixty_four_at_once(self):
        before = self.settled()

        def one(i):
            a = self.begin("cat")
            data = f"client {i}\n".encode() * 2000
            t = self.pump_in(a, data)
            code = a.finish()
            t.join(BOUND)
            return code, a.stdout == data

        self.assertEqual(in_threads(64, one), [(0, True)] * 64)
        self.settled(before)

    def test_clients_that_go_in_the_middle(self):
        before = self.settled()
        executions = []
        for i in range(40):
            e = self.sh("head -c 2000000 /dev/zero; cat")
            executions.append(e)
            a = self.attach(e)
            a.until(lambda: len(a.stdout) > i * 1000)
            a.close()
        for e in executions:
            self.assertEqual(self.kill(e).status, 204)
        self.settled(before)
        self.assertEqual({x["execution_id"] for x in self.d.get(self.path()).json} & set(executions), set())


if __name__ == "__main__":
    unittest.main()
