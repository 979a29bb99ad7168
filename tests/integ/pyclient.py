"""What tests of the Python client share: the client itself, a box for each test, a server that misbehaves."""

import contextlib
import os
import socket
import sys
import tempfile
import threading

from harness import BOUND, ROOT, DaemonTest

CLIENT = os.path.join(ROOT, "clients/python")
DEERFLOW = os.path.join(ROOT, "tests/data/deerflow")
sys.path.insert(0, CLIENT)

import sbxd  # noqa: E402 - found by the line above


def environment(daemon=None, **more):
    """For a program of its own that imports the client."""
    path = os.pathsep.join(p for p in (CLIENT, os.environ.get("PYTHONPATH")) if p)
    return {**os.environ, "PYTHONPATH": path, **({"SBXD_SOCKET": daemon.socket} if daemon else {}), **more}


class ClientTest(DaemonTest):
    config = "replicas: 50\n"

    def setUp(self):
        self.client = sbxd.Client(self.d.socket, timeout=BOUND)
        self.addCleanup(self.client.close)

    @property
    def thread(self):
        return self.id().rpartition(".")[2]

    def acquire(self, user="py", thread=None, **more):
        box = sbxd.Sandbox.acquire(user, thread or self.thread, client=self.client, **more)
        self.addCleanup(box.close)
        return box

    def leases(self, box):
        return self.d.inspect(box.id)["leases"]


@contextlib.contextmanager
def server(answer=b"", count=1):
    """A socket whose connections are answered so, whatever they ask, and then read to their end. Yields its path."""
    with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place, socket.socket(socket.AF_UNIX) as listener:
        path = f"{place}/s"
        listener.bind(path)
        listener.listen(count)
        listener.settimeout(BOUND)

        def serve():
            for _ in range(count):
                c, _ = listener.accept()
                with c:
                    c.settimeout(BOUND)
                    c.recv(1 << 16)
                    c.sendall(answer)
                    if answer:
                        c.shutdown(socket.SHUT_WR)
                    while c.recv(1 << 16):
                        pass

        t = threading.Thread(target=serve)
        t.start()
        yield path
        t.join(BOUND * 2)
