"""Clients that are attached to executions: terminals, and the rules of WebSockets."""

import socket
import unittest

from executions import ExecTest
from harness import wait_for
from ws import BINARY, CLOSE, PING, PONG, TEXT, Socket


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
        a = self.begin("cat", tty=True)  # no shell, which may miss the signal while it starts a command
        a.write(b"x\n")
        a.until_out(b"x\r\nx\r\n")
        a.write(b"\x03")
        self.assertEqual(a.finish(), -2)

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
        a.send_raw(raw)
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
        e = self.sh("cat; echo end; exec sleep 1000")
        a = self.attach(e)
        a.write(b"x" * 100000)
        a.eof()
        a.send(CLOSE, b"\x03\xe9bye")
        a.until(lambda: a.close_code is not None)
        self.assertEqual(a.close_code, 1001)
        a.expect_end()
        a.close()
        b = self.attach(e, "?replay=1").until_out(b"end")
        self.assertEqual(self.signal(e, 15).status, 204)
        self.assertEqual((b.finish(), b.stdout), (-15, b"x" * 100000 + b"end\n"))

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


if __name__ == "__main__":
    unittest.main()
