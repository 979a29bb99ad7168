"""A small WebSocket client, and what an attached client of an execution does with it. Only the standard library.

It checks what a client must check: the accept key, that no frame of the server is masked, fragmented control frames,
lengths. `Socket` is frames; `Attached` is the protocol of GET .../executions/{id}/attach on top of them.
"""

import base64
import hashlib
import json
import os
import socket
import struct
import time
import threading

from harness import BOUND

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Refused(Exception):
    """The server answered the handshake with something else than 101."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body[:300]!r}")
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def reason(self):
        return json.loads(self.body)["error"]["reason"]


class Socket:
    """A connection that has become a WebSocket."""

    def __init__(self, path, target, headers=(), timeout=BOUND):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.inbox = bytearray()
        self.writing = threading.Lock()
        self.pongs = []  # that wait for a frame of another thread to be written
        try:
            self._shake_hands(target, dict(headers))
        except BaseException:
            self.sock.close()
            raise

    def _shake_hands(self, target, more):
        key = base64.b64encode(os.urandom(16)).decode()
        headers = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": key, **more}
        lines = [f"GET {target} HTTP/1.1"] + [f"{k}: {v}" for k, v in headers.items() if v is not None]
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.inbox:
            self._fill()
        head, _, rest = bytes(self.inbox).partition(b"\r\n\r\n")
        self.inbox = bytearray(rest)
        first, *fields = head.decode().split("\r\n")
        self.headers = {k.strip().lower(): v.strip() for k, v in (f.split(":", 1) for f in fields)}
        status = int(first.split()[1])
        if status != 101:
            body = self._exactly(int(self.headers.get("content-length", 0)))
            raise Refused(status, self.headers, body)
        want = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
        if self.headers["sec-websocket-accept"] != want:
            raise AssertionError("the accept key is wrong")

    def _fill(self):
        data = self.sock.recv(1 << 18)
        if not data:
            raise EOFError("the server closed the connection")
        self.inbox += data

    def _exactly(self, n):
        while len(self.inbox) < n:
            self._fill()
        data = bytes(self.inbox[:n])
        del self.inbox[:n]
        return data

    @staticmethod
    def frame(opcode, payload=b"", fin=True, masked=True, length=None, rsv=0):
        """The bytes of one frame, which need not be right."""
        n = len(payload) if length is None else length
        first = (0x80 if fin else 0) | rsv << 4 | opcode
        bit = 0x80 if masked else 0
        if n < 126:
            head = struct.pack(">BB", first, bit | n)
        elif n < 1 << 16:
            head = struct.pack(">BBH", first, bit | 126, n)
        else:
            head = struct.pack(">BBQ", first, bit | 127, n)
        if not masked:
            return head + payload
        mask = os.urandom(4)
        turned = int.from_bytes(payload, "little") ^ int.from_bytes((mask * (len(payload) // 4 + 1))[:len(payload)], "little")
        return head + mask + turned.to_bytes(len(payload), "little")

    def send(self, opcode, payload=b"", **how):
        self.send_raw(self.frame(opcode, payload, **how))

    def send_raw(self, frames):
        with self.writing:
            self.sock.sendall(frames)
        self._send_pongs()

    def pong(self, data):
        """Never waits for another thread's frame: whoever reads must go on reading."""
        self.pongs.append(self.frame(PONG, data))
        self._send_pongs()

    def _send_pongs(self):
        while self.pongs and self.writing.acquire(blocking=False):
            try:
                if self.pongs:
                    self.sock.sendall(self.pongs.pop(0))
            finally:
                self.writing.release()

    def recv(self):
        """The next frame: (opcode, payload)."""
        a, b = self._exactly(2)
        if not a & 0x80 or a & 0x70 or b & 0x80:
            raise AssertionError(f"a frame of the server begins with {a:#x} {b:#x}")
        n = b
        if n == 126:
            (n,) = struct.unpack(">H", self._exactly(2))
        elif n == 127:
            (n,) = struct.unpack(">Q", self._exactly(8))
        return a & 15, self._exactly(n)

    def expect_end(self):
        """The server ends the connection, and says nothing more."""
        try:
            self._fill()
        except EOFError:
            return
        raise AssertionError(f"more came: {bytes(self.inbox[:100])!r}")

    def close(self):
        self.sock.close()


class Attached(Socket):
    """The client of an execution."""

    def __init__(self, daemon, box, execution, query="", **kw):
        super().__init__(daemon.socket, f"/v1/boxes/{box}/executions/{execution}/attach{query}", **kw)
        self.out = {1: bytearray(), 2: bytearray()}
        self.frames = []  # of output: (channel, bytes)
        self.errors = []
        self.exit = None
        self.close_code = None

    def write(self, data, piece=1 << 20):
        for i in range(0, len(data), piece):
            self.send(BINARY, data[i:i + piece])

    def order(self, **what):
        self.send(TEXT, json.dumps(what).encode())

    def eof(self):
        self.order(type="stdin_eof")

    def step(self):
        """Takes one frame. Returns its opcode."""
        opcode, data = self.recv()
        if opcode == BINARY:
            self.frames.append((data[0], data[1:]))
            self.out[data[0]] += data[1:]
        elif opcode == TEXT:
            o = json.loads(data)
            if o["type"] == "exit":
                self.exit = o
            else:
                self.errors.append(o["message"])
        elif opcode == PING:
            self.pong(data)
        elif opcode == CLOSE:
            self.close_code = struct.unpack(">H", data[:2])[0] if data else 1005
        return opcode

    def until(self, what):
        """Pings keep the connection alive for ever, so the wait has a bound of its own."""
        end = time.monotonic() + 2 * BOUND
        while not what():
            if time.monotonic() > end:
                raise AssertionError(f"waited {2 * BOUND} s in vain; so far {self.out[1][-200:]!r}, {self.errors}")
            self.step()
        return self

    def until_out(self, text, channel=1):
        return self.until(lambda: text in self.out[channel])

    def finish(self):
        """Reads to the end: the exit, the Close and its answer. Returns the exit code."""
        self.until(lambda: self.close_code is not None)
        if self.exit is None or self.close_code != 1000:
            raise AssertionError(f"ended with {self.close_code}, {self.exit}, {self.errors}")
        self.send(CLOSE, struct.pack(">H", 1000))
        self.expect_end()
        self.close()
        return self.exit["exit_code"]

    @property
    def stdout(self):
        return bytes(self.out[1])

    @property
    def stderr(self):
        return bytes(self.out[2])
