"""Executions: POST exec, the requests about one, and clients that attach by WebSocket."""

import hashlib
import json
import os
import re
import signal
import socket
import threading
import unittest

from harness import BOUND, Daemon, DaemonTest, descendants, in_threads, open_fds, slurp, start_time, wait_for
from ws import BINARY, CLOSE, PING, PONG, TEXT, Attached, Refused, Socket

MIB = 1 << 20


def memory_kib(pid, what="VmHWM"):
    return int(re.search(rf"^{what}:\s+(\d+) kB", slurp(f"/proc/{pid}/status"), re.M).group(1))


class ExecTest(DaemonTest):
    config = "replicas: 50\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("exec", "t")["box_id"]

    def path(self, execution=None, what="", box=None):
        return f"/v1/boxes/{box or self.box}/executions" + (f"/{execution}{what}" if execution else "")

    def start(self, command, *args, box=None, **more):
        r = self.d.post(f"/v1/boxes/{box or self.box}/exec", {"command": command, "args": list(args), **more})
        self.assertEqual(r.status, 201, r)
        execution = r.json["execution_id"]
        self.assertEqual(r.headers["Location"], self.path(execution, box=box))
        return execution

    def sh(self, script, **more):
        return self.start("/bin/sh", "-c", script, **more)

    def attach(self, execution, query="", box=None, **kw):
        return Attached(self.d, box or self.box, execution, query, **kw)

    def begin(self, command, *args, **more):
        """Starts it and attaches."""
        return self.attach(self.start(command, *args, **more), box=more.get("box"))

    def begin_sh(self, script, **more):
        return self.begin("/bin/sh", "-c", script, **more)

    def status(self, execution):
        r = self.d.get(self.path(execution))
        self.assertEqual(r.status, 200, r)
        return r.json

    def wait_status(self, execution, status):
        return wait_for(f"{execution} to be {status}", lambda: (s := self.status(execution))["status"] == status and s)

    def signal(self, execution, number):
        return self.d.post(self.path(execution, "/signal"), {"signal": number})

    def kill(self, execution):
        return self.d.request("DELETE", self.path(execution))

    def processes(self, pattern):
        """How many processes in the box have a command line like that."""
        script = f"for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f 2>/dev/null; echo; done | grep -c '{pattern}'"
        return int(self.d.run(self.box, ["/bin/sh", "-c", script])["stdout"] or 0)

    def pump_in(self, a, data, piece=1 << 20):
        """Writes stdin from another thread, then its end."""
        def write():
            a.write(data, piece)
            a.eof()
        t = threading.Thread(target=write, daemon=True)
        t.start()
        return t


class Basics(ExecTest):
    def test_output_exit_and_status(self):
        e = self.sh("echo out; echo err >&2; exit 7")
        a = self.attach(e)
        self.assertEqual(a.finish(), 7)
        self.assertEqual((a.stdout, a.stderr, a.errors), (b"out\n", b"err\n", []))
        s = self.status(e)
        self.assertEqual({k: s[k] for k in ("execution_id", "status", "exit_code", "signal", "error_message", "attached", "tty")},
                         {"execution_id": e, "status": "completed", "exit_code": 7, "signal": None, "error_message": None,
                          "attached": False, "tty": False})
        self.assertRegex(s["started_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertIsInstance(s["duration_ms"], int)
        self.assertEqual(s["command"], "/bin/sh -c echo out; echo err >&2; exit 7")

    def test_while_it_runs(self):
        e = self.start("sleep", "1000")
        s = self.status(e)
        self.assertEqual((s["status"], s["exit_code"], s["duration_ms"], s["attached"]), ("running", None, None, False))
        a = self.attach(e)
        self.assertTrue(self.status(e)["attached"])
        listed = {x["execution_id"]: x for x in self.d.get(self.path()).json}
        self.assertEqual(listed[e]["status"], "running")
        a.close()
        self.assertEqual(self.kill(e).status, 204)
        self.assertEqual(self.d.get(self.path(e)).status, 404)
        self.assertNotIn(e, [x["execution_id"] for x in self.d.get(self.path()).json])

    def test_the_first_frame_comes_at_once(self):
        e = self.start("sleep", "1000")
        s = Socket(self.d.socket, self.path(e, "/attach"))
        self.assertEqual(s.recv(), (PING, b""))
        s.close()
        self.kill(e)

    def test_request_fields(self):
        a = self.begin("/bin/sh", "-c", "echo $0 $A $B; pwd; id -u; id -g", "zero", env={"A": "a", "B": "b c"},
                       working_dir="/tmp", user="1000:1001")
        self.assertEqual((a.finish(), a.stdout), (0, b"zero a b c\n/tmp\n1000\n1001\n"))

    def test_what_cannot_be_started(self):
        for body, word in (({"command": "no-such-program"}, "no-such-program"), ({"command": "/etc/passwd"}, "/etc/passwd"),
                           ({"command": "true", "working_dir": "/no/such"}, "/no/such"),
                           ({"command": "true", "user": "nobody-such"}, "nobody-such")):
            r = self.d.post(f"/v1/boxes/{self.box}/exec", body)
            self.assertEqual((r.status, r.json["error"]["code"]), (422, "execution_failed"), r)
            self.assertIn(word, r.json["error"]["message"])

    def test_wrong_requests(self):
        for body in ({}, {"command": ["a"]}, {"command": "a", "args": "b"}, {"command": "a", "env": {"1": "x"}}, {"command": "a", "tty": "yes"},
                     {"command": "a", "argv": []}, {"command": "a", "timeout_seconds": -1}, {"command": "a", "working_dir": "../x"}):
            r = self.d.post(f"/v1/boxes/{self.box}/exec", body)
            self.assertEqual((r.status, r.json["error"]["code"]), (400, "invalid_argument"), body)
            field = [k for k in (*body, "command") if f'"{k}"' in r.json["error"]["message"]]
            self.assertTrue(field, r)
        self.assertEqual(self.d.get(f"/v1/boxes/{self.box}/exec").status, 405)
        self.assertEqual(self.d.post("/v1/boxes/0000000000000000/exec", {"command": "true"}).status, 404)
        self.assertEqual(self.d.get(self.path("exec-1")).status, 404)
        self.assertEqual(self.d.get(self.path("exec-1", "/attach")).status, 404)

    def test_attach_that_is_no_websocket(self):
        e = self.start("sleep", "1000")
        r = self.d.get(self.path(e, "/attach"))
        self.assertEqual((r.status, r.reason, r.headers["Upgrade"], r.headers["Sec-WebSocket-Version"]),
                         (426, "upgrade_required", "websocket", "13"))
        with self.assertRaises(Refused) as refused:
            self.attach(e, headers={"Sec-WebSocket-Key": "short"})
        self.assertEqual(refused.exception.status, 400)
        self.kill(e)

    def test_attach_on_a_connection_that_was_used_before(self):
        c = self.d.connect()
        r = self.d.post(f"/v1/boxes/{self.box}/exec", {"command": "echo", "args": ["hi"]}, connection=c)
        target = self.path(r.json["execution_id"], "/attach")
        c.sock.sendall((f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
        got = b""
        while b"\x03\xe8" not in got:
            got += c.sock.recv(65536)
        self.assertIn(b"101 Switching Protocols", got)
        self.assertIn(b"\x82\x04\x01hi\n", got)
        c.close()

    def test_second_client_is_refused(self):
        e = self.sh("echo ready; cat")
        a = self.attach(e).until_out(b"ready\n")
        with self.assertRaises(Refused) as refused:
            self.attach(e)
        self.assertEqual((refused.exception.status, refused.exception.reason), (409, "attached"))
        self.pump_in(a, b"still mine")
        self.assertEqual((a.finish(), a.stdout), (0, b"ready\nstill mine"))

    def test_a_running_execution_keeps_its_box(self):
        box = self.d.acquire("pinned", "t")["box_id"]
        a = self.begin("cat", box=box)
        self.d.release(box)
        self.assertEqual(self.d.inspect(box)["in_flight"], 2)
        a.eof()
        a.finish()
        wait_for("nothing to be in flight", lambda: self.d.inspect(box)["in_flight"] == 0)

    def test_kept_executions_are_bounded(self):
        box = self.d.acquire("many", "t")["box_id"]
        first = self.start("true", box=box)
        for _ in range(70):
            self.begin("true", box=box).finish()
        self.assertEqual(len(self.d.get(self.path(box=box)).json), 64)
        self.assertEqual(self.d.get(self.path(first, box=box)).status, 404)


class Ends(ExecTest):
    """What ends an execution, and what does not."""

    def test_signals(self):
        for number in (1, 2, 3, 6, 10, 12, 15):
            e = self.start("sleep", "1000")
            a = self.attach(e)
            self.assertEqual(self.signal(e, number).status, 204)
            self.assertEqual(a.finish(), -number)
            s = self.status(e)
            self.assertEqual((s["status"], s["exit_code"], s["signal"]), ("killed", -number, number))
            self.assertIn(f"signal {number} ", s["error_message"])
        for number in (0, 9, 17, 18, 19, 20, 64, -1):
            e = self.start("true")
            r = self.signal(e, number)
            self.assertEqual((r.status, r.json["error"]["code"]), (400, "invalid_argument"), number)

    def test_signals_over_the_websocket(self):
        a = self.begin_sh("trap 'echo got usr1' USR1; echo ready; while :; do sleep 0.01; done")
        a.until_out(b"ready\n")
        a.order(type="signal", sig=10)
        a.until_out(b"got usr1\n")
        a.order(type="signal", sig=9)
        a.until(lambda: a.errors)
        a.order(type="signal", sig=15)
        self.assertEqual(a.finish(), -15)

    def test_a_signal_right_after_the_start_finds_it(self):
        for _ in range(20):
            e = self.start("sleep", "1000")
            self.assertEqual(self.signal(e, 15).status, 204)
            self.wait_status(e, "killed")

    def test_kill_ends_the_tree_and_tells_the_client(self):
        e = self.sh("sleep 5001 & (setsid sleep 5002 &) ; sleep 5003 & trap '' TERM HUP INT; echo ready; wait")
        a = self.attach(e).until_out(b"ready\n")
        wait_for("its children", lambda: self.processes("^sleep 500[123]") == 3)
        self.assertEqual(self.kill(e).status, 204)
        self.assertEqual(self.processes("^sleep 500[123]"), 0, "gone when the answer comes")
        self.assertEqual((a.finish(), a.exit["status"]), (-9, "killed"))
        self.assertEqual(self.d.get(self.path(e)).status, 404)
        self.assertEqual(self.kill(e).status, 404)

    def test_kill_before_the_client_attaches(self):
        e = self.sh("echo before; sleep 1000")
        wait_for("it to be there", lambda: self.processes("sleep 1000") >= 1)
        self.assertEqual(self.kill(e).status, 204)
        a = self.attach(e)
        self.assertEqual((a.finish(), a.stdout), (-9, b"before\n"))

    def test_row_08_a_timeout_kills_the_whole_tree(self):
        script = ("sleep 6001 & (setsid sleep 6002 &); (sleep 6003 & ) ; setsid sh -c 'trap \"\" TERM; sleep 6004 & sleep 6005' & "
                  "trap '' TERM; echo ready; sleep 6006")
        e = self.sh(script, timeout_seconds=0.7)
        a = self.attach(e)
        self.assertEqual(a.finish(), -9)
        self.assertEqual((a.exit["status"], a.stdout), ("timed_out", b"ready\n"))
        self.assertEqual(self.processes("^sleep 600"), 0)
        s = self.status(e)
        self.assertEqual((s["status"], s["error_message"]), ("timed_out", "timed out after 0.7 s"))
        self.assertGreaterEqual(s["duration_ms"], 700)

    def test_timeout_of_zero_is_none(self):
        self.assertEqual(self.begin("true", timeout_seconds=0.0).finish(), 0)

    def test_a_child_that_holds_the_pipe_does_not_hold_the_exit(self):
        a = self.begin_sh("sleep 7001 & echo started; exit 4")
        self.assertEqual((a.finish(), a.stdout), (4, b"started\n"))
        self.assertEqual(self.processes("^sleep 7001"), 1, "it lives on with the box")
        self.d.run(self.box, "pkill -f 'sleep 7001'")

    def test_stdin_that_nobody_reads_does_not_block_the_exit(self):
        self.d.sh(self.box, "rm -f /tmp/gate-unread; mkfifo /tmp/gate-unread")
        before = self.d.inspect(self.box)["bytes_in"]
        e = self.sh("echo ready; read line </tmp/gate-unread; exit 3")
        a = self.attach(e).until_out(b"ready\n")
        writer = threading.Thread(target=self.flood, args=(a,), daemon=True)
        writer.start()
        wait_for("stdin to be full", lambda: self.d.inspect(self.box)["bytes_in"] - before >= MIB)
        self.d.sh(self.box, "echo go > /tmp/gate-unread")
        self.assertEqual(a.finish(), 3)
        writer.join(BOUND)

    @staticmethod
    def flood(a):
        try:
            for _ in range(64):
                a.send(BINARY, b"x" * MIB)
        except OSError:
            pass  # it is over

    def test_a_client_that_goes_does_not_end_it(self):
        e = self.sh("echo one; read x; echo two")
        self.attach(e).until_out(b"one\n").close()
        wait_for("it to be alone", lambda: not self.status(e)["attached"])
        a = self.attach(e)
        a.write(b"\n")
        self.assertEqual((a.finish(), a.stdout), (0, b"two\n"), "what the first had is not sent again")

    def test_guest_killed(self):
        box = self.d.acquire("dies", "guest")["box_id"]
        a = self.begin_sh("echo ready; cat", box=box).until_out(b"ready\n")
        os.kill(self.d.inspect(box)["box_pid"], signal.SIGKILL)
        a.until(lambda: a.close_code is not None)
        self.assertEqual((a.close_code, a.exit), (1011, None))
        self.assertIn("died", a.errors[-1])
        a.close()

    def test_worker_killed(self):
        box = self.d.acquire("dies", "worker")["box_id"]
        a = self.begin_sh("echo ready; cat", box=box).until_out(b"ready\n")
        os.kill(self.d.inspect(box)["pid"], signal.SIGKILL)
        with self.assertRaises((EOFError, ConnectionError)):
            a.until(lambda: False)
        a.close()

    def test_box_removed(self):
        box = self.d.acquire("dies", "removed")["box_id"]
        a = self.begin_sh("echo ready; cat", box=box).until_out(b"ready\n")
        self.d.request("DELETE", f"/v1/boxes/{box}?force=true")
        a.until(lambda: a.close_code is not None)
        self.assertEqual((a.close_code, a.errors), (1011, ["the box was stopped"]))
        a.close()


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
        a = self.begin("cat", box=box)
        t = self.pump_in(a, data, 20 * MIB)  # as large as a client's write() is
        self.assertEqual(a.finish(), 0)
        t.join(BOUND)
        self.assertEqual(len(a.stdout), len(data))
        self.assertEqual(hashlib.sha256(a.stdout).digest(), hashlib.sha256(data).digest())
        if not os.environ.get("SBX_SAN"):
            for pid, kib in before.items():
                self.assertLess(memory_kib(pid) - kib, 8 * 1024, f"KiB more in {slurp(f'/proc/{pid}/comm')}")

    def test_a_reader_that_stops_stops_only_itself(self):
        a = self.begin("head", "-c", "300000000", "/dev/zero")
        a.until(lambda: len(a.stdout) > 100000)
        pid = self.d.inspect(self.box)["pid"]
        for _ in range(5):
            other = self.begin("echo", "alive")
            self.assertEqual((other.finish(), other.stdout), (0, b"alive\n"))
        if not os.environ.get("SBX_SAN"):
            self.assertLess(memory_kib(pid, "VmRSS"), 32 * 1024)
        self.assertEqual(a.finish(), 0)  # and when it reads on, everything is there
        self.assertEqual(len(a.stdout), 300000000)

    def test_output_before_the_first_client_is_complete(self):
        e = self.sh("head -c 3000000 /dev/zero | tr '\\0' a; echo end >&2")
        wait_for("it to be held back", lambda: self.processes("^head -c 3000000") == 1 or self.status(e)["status"] != "running")
        self.assertEqual(self.status(e)["status"], "running")
        a = self.attach(e)
        self.assertEqual((a.finish(), len(a.stdout), a.stderr), (0, 3000000, b"end\n"))

    def test_detached_output_is_bounded_and_its_end_is_kept(self):
        e = self.sh("read x; i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done; echo done")
        a = self.attach(e)
        a.write(b"\n")
        a.until(lambda: b"line 10\n" in a.stdout).close()
        self.wait_status(e, "completed")
        whole = "".join(f"line {i}\n" for i in range(100000)).encode() + b"done\n"
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


class Terminals(ExecTest):
    def test_size_before_and_after_the_start(self):
        e = self.sh("stty size; read x; stty size; read x; stty size", tty=True, cols=123, rows=45)
        a = self.attach(e).until_out(b"45 123\r\n")
        r = self.d.post(self.path(e, "/resize"), {"cols": 77, "rows": 22})
        self.assertEqual((r.status, r.body), (204, b""))
        a.write(b"\n")
        a.until_out(b"22 77\r\n")
        a.order(type="resize", cols=200, rows=60)
        a.write(b"\n")
        a.finish()
        self.assertIn(b"60 200\r\n", a.stdout)

    def test_size_without_one_given(self):
        a = self.begin_sh("stty size; test -t 0 && test -t 1 && test -t 2 && echo all", tty=True)
        self.assertEqual((a.finish(), a.stdout, a.stderr), (0, b"24 80\r\nall\r\n", b""))

    def test_resize_right_after_the_start(self):
        e = self.sh("read x; stty size", tty=True)
        self.assertEqual(self.d.post(self.path(e, "/resize"), {"cols": 99, "rows": 11}).status, 204)
        a = self.attach(e)
        a.write(b"\n")
        a.finish()
        self.assertIn(b"11 99\r\n", a.stdout)

    def test_resize_tells_the_program(self):
        a = self.begin_sh("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done", tty=True)
        a.until_out(b"ready\r\n")
        a.order(type="resize", cols=66, rows=33)
        self.assertEqual(a.finish(), 0)
        self.assertIn(b"33 66\r\n", a.stdout)

    def test_resize_of_what_is_no_terminal(self):
        e = self.start("cat")
        r = self.d.post(self.path(e, "/resize"), {"cols": 77, "rows": 22})
        self.assertEqual((r.status, r.reason), (409, "not_a_tty"))
        a = self.attach(e)
        a.order(type="resize", cols=1, rows=1)
        a.until(lambda: a.errors)
        a.eof()
        self.assertEqual(a.finish(), 0)

    def test_interrupt_character(self):
        a = self.begin_sh("echo ready; sleep 1000", tty=True).until_out(b"ready\r\n")
        a.write(b"\x03")
        self.assertIn(a.finish(), (-2, 130))

    def test_end_of_file(self):
        for before, after in ((b"", b""), (b"one line\n", b"one line\r\none line\r\n"), (b"half a line", b"half a linehalf a line")):
            a = self.begin("cat", tty=True)
            a.write(before)
            a.eof()
            self.assertEqual((a.finish(), a.stdout.replace(b"^D\b\b", b"")), (0, after))

    def test_an_interactive_shell(self):
        a = self.begin("/bin/sh", "-i", tty=True, env={"PS1": "prompt> "})
        a.until_out(b"prompt> ")
        a.write(b"echo $((6*7))\n")
        a.until_out(b"\r\n42\r\n")
        a.write(b"exit 5\n")
        self.assertEqual(a.finish(), 5)


class Protocol(ExecTest):
    """Clients that break the rules of WebSockets lose their connection; the execution lives on."""

    def expect_close(self, raw, code):
        e = self.start("cat")
        a = self.attach(e)
        a.sock.sendall(raw)
        a.until(lambda: a.close_code is not None)
        self.assertEqual(a.close_code, code, raw[:20])
        a.expect_end()
        a.close()
        b = self.attach(e)
        self.pump_in(b, b"alive")
        self.assertEqual((b.finish(), b.stdout), (0, b"alive"))

    def test_errors_close_with_their_code(self):
        f = Socket.frame
        self.expect_close(f(BINARY, b"x", masked=False), 1002)
        self.expect_close(f(BINARY, b"x", rsv=4), 1002)
        self.expect_close(f(3, b"x"), 1002)
        self.expect_close(f(0, b"x"), 1002)
        self.expect_close(f(PING, b"x", fin=False), 1002)
        self.expect_close(f(PING, b"x" * 126), 1002)
        self.expect_close(f(TEXT, b"a", fin=False) + f(BINARY, b"b"), 1002)
        self.expect_close(f(TEXT, b"\xc3\x28"), 1007)
        self.expect_close(f(TEXT, b" " * 70000), 1009)
        self.expect_close(f(CLOSE, b"\x03"), 1002)
        self.expect_close(f(CLOSE, b"\x03\xe8\xff"), 1007)

    def test_fragments_and_control_frames_between(self):
        a = self.begin("cat")
        a.send(BINARY, b"one ", fin=False)
        a.send(PING, b"between")
        a.send(0, b"two ", fin=False)
        a.send(PONG, b"unasked")
        a.send(0, b"three")
        a.send(TEXT, b'{"type":', fin=False)
        a.send(0, b'"stdin_eof"}')
        pongs = []
        while a.close_code is None:
            opcode, data = a.recv()
            if opcode == PONG:
                pongs.append(data)
            elif opcode == BINARY:
                a.out[data[0]] += data[1:]
            elif opcode == CLOSE:
                break
        self.assertEqual((a.stdout, pongs), (b"one two three", [b"between"]))
        a.close()

    def test_close_is_answered_and_all_before_it_is_used(self):
        e = self.sh("cat; echo end")
        a = self.attach(e)
        a.write(b"x" * 100000)
        a.eof()
        a.send(CLOSE, b"\x03\xe9bye")
        a.until(lambda: a.close_code is not None)
        self.assertEqual(a.close_code, 1001)
        a.expect_end()
        a.close()
        self.wait_status(e, "completed")
        b = self.attach(e, "?replay=1")
        self.assertEqual((b.finish(), b.stdout), (0, b"x" * 100000 + b"end\n"))

    def test_orders_that_make_no_sense(self):
        a = self.begin("cat")
        for text in (b"", b"[]", b"{", b'{"type":"x"}', b'{"type":"signal"}', b'{"type":"resize","cols":0,"rows":1}', b'{"type":1}'):
            before = len(a.errors)
            a.send(TEXT, text)
            a.until(lambda: len(a.errors) > before)
        a.eof()
        self.assertEqual(a.finish(), 0)

    def test_a_slow_handshake_and_a_client_that_goes_at_once(self):
        e = self.start("sleep", "1000")
        for _ in range(20):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.d.socket)
            s.sendall((f"GET {self.path(e, '/attach')} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
            s.close()
        wait_for("all of them to be gone", lambda: not self.status(e)["attached"])
        self.attach(e).close()
        self.kill(e)


class Alone(ExecTest):
    config = "replicas: 50\nexec_detach_grace: 0.3\nexec_keep_seconds: 0.3\nmax_executions: 3\n"

    def test_grace_ends_it_with_hup(self):
        e = self.sh("trap 'echo hup >/tmp/hup; exit 9' HUP; while :; do sleep 0.01; done")
        wait_for("the signal", lambda: self.d.read(self.box, "/tmp/hup").status == 200)
        wait_for("its end to be forgotten", lambda: self.d.get(self.path(e)).status == 404)

    def test_grace_begins_when_the_client_goes(self):
        e = self.sh("echo ready; cat")
        a = self.attach(e).until_out(b"ready\n")
        self.assertEqual(self.status(e)["status"], "running")
        a.close()
        wait_for("it to be ended and forgotten", lambda: self.d.get(self.path(e)).status == 404)
        self.assertEqual(self.processes("^cat "), 0)

    def test_attached_it_is_not_ended(self):
        a = self.begin_sh("sleep 1; echo on")
        self.assertEqual((a.finish(), a.stdout), (0, b"on\n"))

    def test_limit(self):
        clients = [self.begin("cat") for _ in range(3)]
        r = self.d.post(f"/v1/boxes/{self.box}/exec", {"command": "true"})
        self.assertEqual((r.status, r.json["error"]["code"], r.reason), (429, "resource_exhausted", "execution_limit"))
        self.assertEqual(self.d.sh(self.box, "echo run is another thing"), "run is another thing\n")
        for a in clients:
            a.eof()
            self.assertEqual(a.finish(), 0)
        self.assertEqual(self.begin("true").finish(), 0)


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

    def settled(self):
        wait_for("all connections to be gone", lambda: self.d.inspect(self.box)["in_flight"] == 0)
        return self.held()

    def test_a_thousand_in_a_row_leave_nothing(self):
        for _ in range(70):  # as many as are kept, and all that is allocated once
            self.begin("echo", "x").finish()
        before = self.settled()
        for i in range(1000):
            a = self.begin("echo", str(i))
            self.assertEqual((a.finish(), a.stdout), (0, f"{i}\n".encode()))
        wait_for("descriptors as before", lambda: self.held()[0] == before[0])
        after = self.settled()
        self.assertEqual(after[1], [])
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
        wait_for("descriptors as before", lambda: self.held()[0] == before[0])
        self.assertEqual(self.settled()[1], [])

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
        wait_for("descriptors as before", lambda: self.held()[0] == before[0])
        self.assertEqual(self.d.get(self.path()).json, [x for x in self.d.get(self.path()).json if x["execution_id"] not in executions])


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
