"""A client of sbxd over one connection, in the name of any uid. Made for threads and for speed."""

import ctypes
import json
import os
import socket
import time

SETRESUID = {"x86_64": 117, "aarch64": 147}[os.uname().machine]
OWN_UID = os.geteuid()
PATIENCE = float(os.environ.get("SBX_BOUND", "30")) / 30  # what the boxes are slower by than those that all bounds are made for
BOUND = 20.0 * PATIENCE  # seconds within which a client has an answer, an error or the end of its connection
BACK = 10.0 * PATIENCE  # seconds within which a service that was killed serves again

libc = ctypes.CDLL(None, use_errno=True)


class Ended(Exception):
    """The connection ended without a whole answer."""


class Overdue(Exception):
    """No answer within BOUND: never allowed."""


def assume(uid):
    """The effective uid of this thread alone: libc's own function would change all threads."""
    if libc.syscall(SETRESUID, -1, uid, -1) < 0:
        raise OSError(ctypes.get_errno(), "setresuid")


class Answer:
    __slots__ = ("status", "body", "seconds")

    def __init__(self, status, body, seconds):
        self.status = status
        self.body = body
        self.seconds = seconds

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["error"]["message"]

    def __repr__(self):
        return f"<{self.status} {self.body[:200]!r}>"


class Agent:
    def __init__(self, path, uid=None, held=lambda: False):
        self.path = path
        self.uid = OWN_UID if uid is None else uid
        self.held = held
        self.sock = None
        self.got = b""

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None
        self.got = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def await_release(self):
        end = time.monotonic() + BOUND
        while self.held():
            if time.monotonic() > end:
                raise Overdue("clients were held back too long")
            time.sleep(0.001)

    def try_connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(BOUND)
        try:
            if self.uid != OWN_UID:
                assume(self.uid)
            try:
                s.connect(self.path)
            finally:
                if self.uid != OWN_UID:
                    assume(OWN_UID)
        except BaseException:
            s.close()
            raise
        return s

    def connect(self):
        """Waits for a service that is about to be back. Never connects to a new one while clients are held."""
        end = time.monotonic() + BACK
        while not self.sock:
            self.await_release()
            try:
                self.sock = self.try_connect()
            except (ConnectionError, FileNotFoundError, PermissionError, BlockingIOError) as e:  # it makes its socket just now
                if time.monotonic() > end:
                    raise Overdue(f"the service does not come back: {e}") from e
                time.sleep(0.002)
                continue
            if self.held():
                self.close()

    def send(self, method, path, body=None, headers=""):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.await_release()
        self.connect()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(body or b'')}\r\n\r\n".encode()
        try:
            self.sock.sendall(head + (body or b""))
        except TimeoutError as e:
            self.close()
            raise Overdue(f"{method} {path}: the request is not read") from e
        except OSError:
            pass  # what it says before it ends may still be an answer

    def receive(self, what):
        try:
            data = self.sock.recv(1 << 16)
        except TimeoutError as e:
            self.close()
            raise Overdue(f"{what}: no answer within {BOUND} s") from e
        except OSError as e:
            self.close()
            raise Ended(what) from e
        if not data:
            self.close()
            raise Ended(what)
        self.got += data

    def head(self, what):
        """(status, lower-cased head) of the next answer; interim answers are passed over."""
        while True:
            end = self.got.find(b"\r\n\r\n")
            if end < 0:
                self.receive(what)
                continue
            head, self.got = self.got[:end].lower(), self.got[end + 4:]
            if not head.startswith(b"http/1.1 100"):
                return int(head[9:12]), head

    def take(self, n, what):
        while len(self.got) < n:
            self.receive(what)
        data, self.got = self.got[:n], self.got[n:]
        return data

    def chunks(self, what):
        """The pieces of a chunked body, until the last."""
        while True:
            end = self.got.find(b"\r\n")
            if end < 0:
                self.receive(what)
                continue
            n = int(self.got[:end], 16)
            self.got = self.got[end + 2:]
            data = self.take(n + 2, what)[:n]
            if n == 0:
                return
            yield data

    def call(self, method, path, body=None, headers=""):
        began = time.monotonic()
        what = f"{method} {path}"
        self.send(method, path, body, headers)
        status, head = self.head(what)
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            data = self.take(int(head[at + 17:].split(b"\r\n", 1)[0]), what) if method != "HEAD" else b""
        else:
            data = b"".join(self.chunks(what)) if b"\r\ntransfer-encoding: chunked" in head else b""
        if b"\r\nconnection: close" in head:
            self.close()
        return Answer(status, data, time.monotonic() - began)

    def stream(self, path, body):
        """Begins a streamed run: (status, iterator over the lines' objects)."""
        what = f"stream {path}"
        self.send("POST", path, body, "Accept: application/x-ndjson\r\n")
        status, head = self.head(what)
        if status != 200:
            at = head.find(b"\r\ncontent-length:")
            self.take(int(head[at + 17:].split(b"\r\n", 1)[0]), what)
            return status, iter(())
        return status, self.lines(what)

    def lines(self, what):
        rest = b""
        for piece in self.chunks(what):
            rest += piece
            *whole, rest = rest.split(b"\n")
            for line in whole:
                yield json.loads(line)
        if rest:
            raise Ended(what)
