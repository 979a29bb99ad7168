"""Connections that block, and the idle ones that are kept for the next call. Threads may share a Pool."""

from __future__ import annotations

import os
import socket
import struct
import threading
import weakref
from typing import Any

from ._address import Address, Target, found
from ._call import Call
from ._errors import ConnectionFailed, DeadlineExceeded
from ._http import Response, request_head

PIECE = 256 << 10  # of a long body, in one go

# Every socket of this process, to be closed in a child that a fork makes: the leases that are tied to them are the
# parent's, and shall end with it.
_open: dict[int, weakref.ref[socket.socket]] = {}
forks = 0  # between this process and the one that loaded this module
fork_lock = threading.Lock()  # over what is made anew after a fork


def _after_fork_in_child() -> None:
    global forks, fork_lock
    forks += 1
    fork_lock = threading.Lock()
    inherited = [ref() for ref in [*_open.values()]]
    _open.clear()
    for sock in inherited:
        if sock is not None:
            sock.close()


os.register_at_fork(after_in_child=_after_fork_in_child)


def new_socket(family: socket.AddressFamily) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    _open[sock.fileno()] = weakref.ref(sock)  # at once: a fork in another thread must find it
    sock.setblocking(True)  # whatever socket.setdefaulttimeout says
    if family == socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)  # makes large uploads faster
    else:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def forget_socket(sock: socket.socket) -> None:
    """Before it is closed: then another may get its number."""
    _open.pop(sock.fileno(), None)


def cannot_reach(address: Address, e: OSError | None) -> ConnectionFailed:
    return ConnectionFailed(f"sbxd cannot be reached at {address.name}: {(e and e.strerror) or e or 'no such host'}")


def not_taken(timeout: float | None) -> DeadlineExceeded:
    return DeadlineExceeded(f"sbxd did not take the connection within {timeout} s")


def hung_up(e: BaseException) -> ConnectionFailed:
    return ConnectionFailed(f"sbxd hung up before it answered: {e}")


def _targets(address: Address) -> list[Target]:
    known = address.targets()
    if known is not None:
        return known
    try:
        return found(socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
    except OSError as e:
        raise cannot_reach(address, e) from e


class Connection:
    """One connection. The kernel keeps the time: each wait ends after `timeout` seconds, or never if that is None."""

    def __init__(self, address: Address, timeout: float | None) -> None:
        self.address = address
        why: OSError | None = None
        for family, target in _targets(address):
            try:
                self._open(family, target, timeout)
                return
            except BlockingIOError:
                raise not_taken(timeout) from None
            except OSError as e:
                why = e
        raise cannot_reach(address, why) from why

    def _open(self, family: socket.AddressFamily, target: Any, timeout: float | None) -> None:
        self._armed: float | None = None
        self._sock = new_socket(family)
        try:
            self.arm(timeout)
            self._sock.connect(target)
        except BaseException:
            self.close()
            raise

    def arm(self, timeout: float | None) -> None:
        if timeout == self._armed:
            return
        seconds = max(timeout, 0.001) if timeout is not None else 0.0  # 0: for ever
        value = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
        self._armed = timeout

    def close(self) -> None:
        forget_socket(self._sock)
        self._sock.close()

    def interrupt(self) -> None:
        """Wakes whoever waits in it, in another thread."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def is_quiet(self) -> bool:
        """Nothing was said since its last call, neither bytes nor its end."""
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def receive(self, most: int = 65536) -> bytes:
        try:
            return self._sock.recv(most)
        except BlockingIOError:
            raise DeadlineExceeded(f"nothing came for {self._armed} s") from None
        except OSError as e:
            raise hung_up(e) from e

    def send(self, data: bytes) -> None:
        try:
            if len(data) <= PIECE:
                self._sock.sendall(data)
                return
            view = memoryview(data)
            for at in range(0, len(data), PIECE):
                self._sock.sendall(view[at : at + PIECE])
        except BlockingIOError:
            raise DeadlineExceeded(f"nothing was taken for {self._armed} s") from None
        except OSError as e:
            raise hung_up(e) from e

    def request(self, call: Call[object]) -> Response:
        """Sends it; the response has its head then, and whatever came with it."""
        body = call.body
        headers = (*self.address.credentials(), *call.headers)
        head = request_head(call.method, call.target, None if body is None else len(body), headers)
        response = Response()
        try:
            if body is None or len(body) <= 65536:
                self.send(head + body if body else head)
            else:
                self.send(head)
                self.send(body)
        except ConnectionFailed as e:  # it may have been refused before its end
            try:
                self._read_head(response)
            except (ConnectionFailed, EOFError):
                raise e from None
            response.headers["connection"] = "close"
            return response
        self._read_head(response)
        return response

    def _read_head(self, response: Response) -> None:
        try:
            while not response.status:
                response.feed(self.receive())
        except EOFError as e:
            raise hung_up(e) from e

    def read_on(self, response: Response) -> None:
        try:
            response.feed(self.receive(PIECE))
        except EOFError as e:
            raise hung_up(e) from e

    def ask(self, call: Call[object]) -> tuple[Response, bytes]:
        """The whole response, and its body."""
        response = self.request(call)
        return response, self.finish(response)

    def finish(self, response: Response) -> bytes:
        """The body from here to its end."""
        if response.done:
            return response.take()
        pieces = [response.take()]
        while not response.done:
            self.read_on(response)
            pieces.append(response.take())
        return b"".join(pieces)


class Pool:
    """Idle connections by what they were used for last: a box's worker has them then, and is asked at once."""

    def __init__(self, address: Address, most: int) -> None:
        self._address = address
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._forks = forks
        self._lock = threading.Lock()
        self._idle: dict[str, list[Connection]] = {}
        self._count = 0
        self._closed = False

    def take(self, key: str) -> Connection | None:
        if self._forks != forks:
            self._begin()
        while True:
            with self._lock:
                found = self._idle.get(key)
                if not found:
                    return None
                c = found.pop()
                self._count -= 1
                if not found:
                    del self._idle[key]
            if c.is_quiet():
                return c
            c.close()

    def open(self, timeout: float | None) -> Connection:
        return Connection(self._address, timeout)

    def give(self, key: str, c: Connection) -> None:
        surplus: Connection | None = None
        with self._lock:
            if self._closed:
                surplus = c
            else:
                self._idle.setdefault(key, []).append(c)
                self._count += 1
                if self._count > self._most:
                    oldest = next(iter(self._idle))
                    surplus = self._idle[oldest].pop(0)
                    self._count -= 1
                    if not self._idle[oldest]:
                        del self._idle[oldest]
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        if self._forks != forks:
            self._begin()
        with self._lock:
            idle, self._idle, self._count, self._closed = self._idle, {}, 0, True
        for found in idle.values():
            for c in found:
                c.close()
