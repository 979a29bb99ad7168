"""What the tests of clients over TCP stand on: a daemon with a token file, and requests written by hand."""

import errno
import http.client
import json
import os
import random
import re
import socket
import tempfile

from harness import BOUND, DaemonTest, Reply

TOKEN = "tcp-test-token-0123456789"
OTHER_UID = 4711
GO = "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo done"  # a command that ends when a file is there


def free_port():
    """One below those that the kernel gives to outgoing connections."""
    for _ in range(100):
        port = random.randrange(20000, 30000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError as e:
                assert e.errno == errno.EADDRINUSE, e
    raise AssertionError("no free port")


class TokenFile:
    def __init__(self, token=TOKEN):
        fd, self.path = tempfile.mkstemp(prefix="sbxd-test-token-")
        os.close(fd)
        self.write(token + "\n")

    def write(self, text):
        with open(self.path, "w", encoding="latin-1") as f:
            f.write(text)

    def remove(self):
        os.unlink(self.path)


class TcpTest(DaemonTest):
    """A daemon that serves TCP, with the token of a file."""

    more = ""
    port = 0
    host = "127.0.0.1"

    @classmethod
    def setUpClass(cls):
        cls.token = TokenFile()
        cls.config = f"replicas: 50\nlisten_tcp: '{'[::1]' if ':' in cls.host else cls.host}:{cls.port}'\ntoken_file: {cls.token.path}\n{cls.more}"
        super().setUpClass()
        cls.find_port()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.token.remove()

    @classmethod
    def find_port(cls):
        cls.port = int(re.findall(r"serving on http://[^ ]*:(\d+):", cls.d.log())[-1])

    def tearDown(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=BOUND)

    def ask(self, method, path, body=None, headers=None, token=TOKEN, connection=None):
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        c = connection or self.connect()
        try:
            return self.d.request(method, path, body, headers, connection=c)
        finally:
            if connection is None:
                c.close()

    def raw(self):
        s = socket.create_connection((self.host, self.port), BOUND)
        self.addCleanup(s.close)
        return s

    def box(self, thread, connection=None):
        r = self.ask("POST", "/v1/acquire", {"user_id": "tcp", "thread_id": thread}, connection=connection)
        self.assertEqual(r.status, 200, r)
        return r.json["box_id"]

    def run_over(self, box, command, connection=None):
        r = self.ask("POST", f"/v1/boxes/{box}/run", {"command": command}, connection=connection)
        self.assertEqual(r.status, 200, r)
        return r.json["stdout"]

    def counters(self):
        return self.d.pool()["counters"]


def replies(sock, count):
    """Reads that many responses with a Content-Length from a socket."""
    f = sock.makefile("rb")
    got = []
    for _ in range(count):
        status = int(f.readline().split()[1])
        headers = {}
        for line in iter(f.readline, b"\r\n"):
            name, value = line.decode().rstrip().split(": ", 1)
            headers[name.lower()] = value
        got.append(Reply(status, headers, f.read(int(headers["content-length"]))))
    return got


def request(method, path, body=b"", token=TOKEN, chunked=False):
    lines = [f"{method} {path} HTTP/1.1", "Host: x"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if chunked:
        lines.append("Transfer-Encoding: chunked")
        middle = len(body) // 2
        body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:middle], body[middle:]) if p) + b"0\r\n\r\n"
    elif body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines + ["", ""]).encode() + body


def run_request(box, command, **kw):
    return request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": command}).encode(), **kw)
