"""The connection to the service that the sandboxes of a process share."""

from __future__ import annotations

import atexit
from typing import Any, TypeVar

from . import _calls
from ._address import Address, address
from ._call import Call
from ._errors import BadAnswer, BoxNotFound, Closed, ConnectionFailed, NotFound, from_answer
from ._http import Response
from ._sync import Connection, Pool

T = TypeVar("T")


def decode(call: Call[T], status: int, body: bytes) -> T:
    """What an answer means; an error is raised."""
    if status >= 400:
        error = from_answer(status, body)
        if call.about_box and type(error) is NotFound:
            raise BoxNotFound(error.status, error.details)
        raise error
    try:
        return call.decode(body)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadAnswer(f"{call.method} {call.target} was answered with {body[:200]!r}: {e!r}") from e


def longest(timeout: float, call: Call[Any]) -> float | None:
    """Seconds to wait for it; None: for ever."""
    return None if call.longer is None else timeout + call.longer


class Client:
    """The service at one address. Threads may share it, and a process that was forked.

    That is its Unix socket, or with `url` (http://127.0.0.1:PORT) TCP, where a token says who asks: itself, or the file
    that has it. What is not given is what SBXD_SOCKET, else SBXD_URL with SBXD_TOKEN or SBXD_TOKEN_FILE say, else the
    socket at its usual place. Another host is refused without `allow_remote_http`: nothing is encrypted.

    `timeout` is how many seconds any single wait for sbxd takes at most; what a call may take in the box comes on top.
    `max_idle` connections are kept for later calls.
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
    ) -> None:
        self._address = address(socket_path, url, token, token_file, allow_remote_http)
        self.timeout = timeout
        self._pool = Pool(self._address, max_idle)
        self._closed = False

    @property
    def address(self) -> str:
        """The path of the socket, or the URL."""
        return self._address.name

    def __repr__(self) -> str:
        return f"<Client {self.address}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what is idle. Calls that are under way go on."""
        self._closed = True
        self._pool.close()

    def pool(self) -> dict[str, Any]:
        """Counts, who waits, counters, latencies: GET /v1/pool."""
        return self._call(_calls.pool())

    def config(self) -> dict[str, Any]:
        """What the service does by default, can do, and allows: GET /v1/config."""
        return self._call(_calls.config())

    def has_image(self, reference: str) -> bool:
        """Whether boxes can be made of that image."""
        try:
            self._call(_calls.image(reference))
        except NotFound:
            return False
        return True

    # ---- for the rest of the package ----

    def _connect(self, key: str, timeout: float | None) -> tuple[Connection, bool]:
        """A connection, and whether it was used before."""
        if self._closed:
            raise Closed("the client was closed")
        c = self._pool.take(key)
        if c is None:
            return self._pool.open(timeout), False
        c.arm(timeout)
        return c, True

    def _call(self, call: Call[T], key: str = "") -> T:
        timeout = longest(self.timeout, call)
        c, used = self._connect(key, timeout)
        try:
            try:
                response, body = c.ask(call)
            except ConnectionFailed:
                if not (used and call.repeatable):
                    raise
                c.close()  # idle connections end with sbxd or the box
                c = self._pool.open(timeout)
                response, body = c.ask(call)
        except BaseException:
            c.close()
            raise
        self._done(key, c, response)
        return decode(call, response.status, body)

    def _done(self, key: str, c: Connection, response: Response) -> None:
        if response.reusable:
            self._pool.give(key, c)
        else:
            c.close()


_defaults: dict[Address, Client] = {}


def default_client() -> Client:
    """The one that this process uses where none is given, for the address that the environment names now."""
    client = Client()
    found = _defaults.get(client._address)
    if found is None or found._closed:
        found = _defaults[client._address] = client
    return found


@atexit.register
def _close_idle() -> None:
    for client in [*_defaults.values()]:
        client._pool.close()
