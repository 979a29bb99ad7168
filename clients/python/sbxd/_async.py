"""Connections for asyncio, and the idle ones that are kept for the next call. Everything here is one loop's."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from ._address import Address, Target, found
from ._call import Call
from ._errors import Closed, ConnectionFailed, DeadlineExceeded
from ._http import Response, request_head
from ._sync import PIECE, cannot_reach, forget_socket, hung_up, new_socket, not_taken

HIGH_WATER = 1 << 20  # bytes that wait for who reads; then the socket is not read


async def _looked_up(address: Address) -> list[Target]:
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as e:
        raise cannot_reach(address, e) from e
    return found(infos)


class AsyncConnection(asyncio.Protocol):
    """One connection. Each wait ends after `timeout` seconds, or never if that is None."""

    def __init__(self, address: Address, sock: socket.socket) -> None:
        self.address = address
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._why: BaseException | None = None
        self._reading: asyncio.Future[None] | None = None
        self._draining: asyncio.Future[None] | None = None
        self._paused = False
        self.timeout: float | None = None

    @classmethod
    async def open(cls, address: Address, timeout: float | None) -> AsyncConnection:
        why: OSError | None = None
        try:
            targets = address.targets()
            if targets is None:
                targets = await asyncio.wait_for(_looked_up(address), timeout)
            for family, target in targets:
                try:
                    return await cls._open(address, family, target, timeout)
                except asyncio.TimeoutError:  # is an OSError in newer Pythons
                    raise
                except OSError as e:  # BlockingIOError: the queue of the socket is full
                    why = e
        except asyncio.TimeoutError:
            raise not_taken(timeout) from None
        raise cannot_reach(address, why) from why

    @classmethod
    async def _open(
        cls, address: Address, family: socket.AddressFamily, target: Any, timeout: float | None
    ) -> AsyncConnection:
        loop = asyncio.get_running_loop()
        sock = new_socket(family)
        try:
            sock.setblocking(False)
            await asyncio.wait_for(loop.sock_connect(sock, target), timeout)
            create = loop.create_unix_connection if family == socket.AF_UNIX else loop.create_connection
            _, c = await create(lambda: cls(address, sock), sock=sock)
        except BaseException:
            forget_socket(sock)
            sock.close()
            raise
        c.timeout = timeout
        return c

    # ---- what asyncio calls ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > HIGH_WATER and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, why: BaseException | None) -> None:
        forget_socket(self._sock)
        self._ended, self._why = True, why
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._draining is not None and not self._draining.done():
            self._draining.set_result(None)

    def _wake(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    # ---- what calls need ----

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def is_quiet(self) -> bool:
        return not self._ended and not self._pieces and self._transport is not None and not self._transport.is_closing()

    async def _wait(self, future: asyncio.Future[None], what: str) -> None:
        if self.timeout is None:
            await future
            return
        timer = self._loop.call_later(self.timeout, self._late, future, what)
        try:
            await future
        finally:
            timer.cancel()

    def _late(self, future: asyncio.Future[None], what: str) -> None:
        if not future.done():
            future.set_exception(DeadlineExceeded(f"nothing {what} for {self.timeout} s"))

    async def receive(self) -> bytes:
        if not self._pieces and not self._ended:
            self._reading = self._loop.create_future()
            await self._wait(self._reading, "came")
        if not self._pieces:
            if self._why is not None:
                raise hung_up(self._why)
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        if self._size > HIGH_WATER and self._transport is not None and not self._ended:
            self._transport.resume_reading()
        self._size = 0
        return data

    async def send(self, data: bytes) -> None:
        if self._ended or self._transport is None:
            raise ConnectionFailed("sbxd hung up before the request")
        for at in range(0, len(data), PIECE):
            self._transport.write(data[at : at + PIECE] if len(data) > PIECE else data)
            if self._paused:
                self._draining = self._loop.create_future()
                await self._wait(self._draining, "was taken")
            if self._ended:
                raise ConnectionFailed("sbxd hung up in the middle of the request")

    async def request(self, call: Call[object]) -> Response:
        """Sends it; the response has its head then, and whatever came with it."""
        body = call.body
        headers = (*self.address.credentials(), *call.headers)
        head = request_head(call.method, call.target, None if body is None else len(body), headers)
        response = Response()
        try:
            if body is None or len(body) <= 65536:
                await self.send(head + body if body else head)
            else:
                await self.send(head)
                await self.send(body)
        except ConnectionFailed:  # it may have been refused before its end
            if not self._pieces:
                raise
            await self._read_head(response)
            response.headers["connection"] = "close"
            return response
        await self._read_head(response)
        return response

    async def _read_head(self, response: Response) -> None:
        while not response.status:
            await self.read_on(response)

    async def read_on(self, response: Response) -> None:
        try:
            response.feed(await self.receive())
        except EOFError as e:
            raise hung_up(e) from e

    async def ask(self, call: Call[object]) -> tuple[Response, bytes]:
        """The whole response, and its body."""
        response = await self.request(call)
        return response, await self.finish(response)

    async def finish(self, response: Response) -> bytes:
        """The body from here to its end."""
        if response.done:
            return response.take()
        pieces = [response.take()]
        while not response.done:
            await self.read_on(response)
            pieces.append(response.take())
        return b"".join(pieces)


class AsyncPool:
    """Idle connections by what they were used for last. Of a box only so many are in use; other calls wait."""

    def __init__(self, address: Address, most_idle: int, most_of_box: int) -> None:
        self._address = address
        self._most = most_idle
        self._most_of_box = most_of_box
        self._idle: dict[str, list[AsyncConnection]] = {}
        self._count = 0
        self._used: dict[str, int] = {}
        self._queues: dict[str, list[asyncio.Future[None]]] = {}
        self.closed = False

    async def enter(self, key: str) -> None:
        """A place among the calls of a box; they are served in the order in which they came."""
        if not key or (self._used.get(key, 0) < self._most_of_box and key not in self._queues):
            self._used[key] = self._used.get(key, 0) + 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(key, []).append(place)
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled():
                self.leave(key)
            elif place in self._queues.get(key, ()):
                self._drop(key, place)
            raise

    def leave(self, key: str) -> None:
        for place in [*self._queues.get(key, ())]:
            self._drop(key, place)
            if not place.done():
                place.set_result(None)  # the place goes on to it
                return
        self._used[key] -= 1
        if not self._used[key]:
            del self._used[key]

    def _drop(self, key: str, place: asyncio.Future[None]) -> None:
        self._queues[key].remove(place)
        if not self._queues[key]:
            del self._queues[key]

    def take(self, key: str) -> AsyncConnection | None:
        if self.closed:
            raise Closed("the client was closed")
        while found := self._idle.get(key):
            c = found.pop()
            self._count -= 1
            if not found:
                del self._idle[key]
            if c.is_quiet():
                return c
            c.close()
        return None

    async def open(self, timeout: float | None) -> AsyncConnection:
        return await AsyncConnection.open(self._address, timeout)

    def give(self, key: str, c: AsyncConnection) -> None:
        if self.closed:
            c.close()
            return
        self._idle.setdefault(key, []).append(c)
        self._count += 1
        if self._count > self._most:
            oldest = next(iter(self._idle))
            self._idle[oldest].pop(0).close()
            self._count -= 1
            if not self._idle[oldest]:
                del self._idle[oldest]

    def drop_idle(self) -> None:
        for found in self._idle.values():
            for c in found:
                c.close()
        self._idle, self._count = {}, 0
