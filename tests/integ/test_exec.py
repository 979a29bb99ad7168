"""Executions: POST exec, what can be asked and wanted of one, what ends it, and its limits."""

import os
import signal
import threading
import unittest

import backends
from executions import ExecTest
from harness import BOUND, wait_for
from ws import BINARY, PING, Refused, Socket

MIB = 1 << 20


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
        codes = []
        client = threading.Thread(target=lambda: codes.append(a.finish()), daemon=True)
        client.start()  # the Close is to be answered in time, however long it takes to look
        self.assertEqual(self.kill(e).status, 204)
        self.assertEqual(self.processes("^sleep 500[123]"), 0, "gone when the answer comes")
        client.join(BOUND)
        self.assertEqual((codes, a.exit["status"]), ([-9], "killed"))
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
        self.assertEqual((a.close_code, a.exit["exit_code"]), (1011, -9))
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


class Alone(ExecTest):
    grace = 0.3 * backends.current.patience
    config = f"replicas: 50\nlimits: {{execution_detach_grace: {grace}, execution_keep_seconds: 0.3, box_executions: 3}}\n"

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
        a = self.begin_sh(f"sleep {3 * self.grace}; echo on")
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


if __name__ == "__main__":
    unittest.main()
