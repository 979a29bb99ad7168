"""As client.py, for asyncio."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, TypeVar

from . import _calls
from ._address import Address, address
from ._async import AsyncConnection, AsyncPool
from ._call import Call
from ._errors import ConnectionFailed
from ._http import Response
from .client import decode, longest

T = TypeVar("T")


class AsyncClient:
    """The service at one address, which is said as to `Client`, for one loop.

    `timeout` is how many seconds any single wait for sbxd takes at most; what a call may take in the box comes on top.
    Of one box at most `max_connections` are in use at a time, and other calls wait for their turn.
    """

    def __init__(
        self,
        socket_path: str | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        token_file: str | None = None,
        allow_remote_http: bool = False,
        timeout: float = 30.0,
        max_idle: int = 64,
        max_connections: int = 64,
    ) -> None:
        self._address = address(socket_path, url, token, token_file, allow_remote_http)
        self.timeout = timeout
        self._pool = AsyncPool(self._address, max_idle, max_connections)
        self._boxes = 0
        self._keeps_idle = True

    @property
    def address(self) -> str:
        """The path of the socket, or the URL."""
        return self._address.name

    def __repr__(self) -> str:
        return f"<AsyncClient {self.address}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes what is idle. Calls that are under way go on."""
        self._pool.closed = True
        self._pool.drop_idle()
        await asyncio.sleep(0)  # for the loop to close them

    async def pool(self) -> dict[str, Any]:
        """Counts, who waits, counters, latencies: GET /v1/pool."""
        return await self._call(_calls.pool())

    async def config(self) -> dict[str, Any]:
        """What the service does by default, can do, and allows: GET /v1/config."""
        return await self._call(_calls.config())

    # ---- for the rest of the package ----

    def _box_closed(self) -> None:
        self._boxes -= 1
        if not self._boxes and not self._keeps_idle:
            self._pool.drop_idle()

    async def _connect(self, key: str, timeout: float | None) -> tuple[AsyncConnection, bool]:
        """A connection, and whether it was used before."""
        c = self._pool.take(key)
        if c is None:
            return await self._pool.open(timeout), False
        c.timeout = timeout
        return c, True

    async def _call(self, call: Call[T], key: str = "") -> T:
        await self._pool.enter(key)
        try:
            return await self._ask(call, key)
        finally:
            self._pool.leave(key)

    async def _ask(self, call: Call[T], key: str) -> T:
        timeout = longest(self.timeout, call)
        c, used = await self._connect(key, timeout)
        try:
            try:
                response, body = await c.ask(call)
            except ConnectionFailed:
                if not (used and call.repeatable):
                    raise
                c.close()  # idle connections end with sbxd or the box
                c = await self._pool.open(timeout)
                response, body = await c.ask(call)
        except BaseException:
            c.close()
            raise
        self._done(key, c, response)
        return decode(call, response.status, body)

    def _done(self, key: str, c: AsyncConnection, response: Response) -> None:
        if response.reusable:
            self._pool.give(key, c)
        else:
            c.close()


_defaults: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Address, AsyncClient]] = (
    weakref.WeakKeyDictionary()
)


def default_client() -> AsyncClient:
    """The one that this loop uses where none is given, for the address that the environment names now.

    Nobody closes it: so it keeps no connection when no box is open, and leaves none to a loop that ends.
    """
    clients = _defaults.setdefault(asyncio.get_running_loop(), {})
    new = AsyncClient()
    client = clients.get(new._address)
    if client is None or client._pool.closed:
        client = clients[new._address] = new
        client._keeps_idle = False
    return client
