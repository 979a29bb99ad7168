"""HTTP/1.1 as sbxd speaks it, without I/O: requests to bytes, bytes to responses. Both clients stand on it."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence
from urllib.parse import quote_from_bytes

from ._errors import BadAnswer

HEAD_MAX = 64 << 10


def escape(value: str, safe: str = "/") -> str:
    """For a path or a query. Bytes that are not UTF-8 are surrogates, as everywhere in Python's names of files."""
    return quote_from_bytes(value.encode("utf-8", "surrogateescape"), safe=safe)


def target_of(path: str, query: Mapping[str, object]) -> str:
    """A path with the members of a query that are not None; flags are 1 and 0."""
    pairs = [
        f"{name}={escape(str(int(value) if isinstance(value, bool) else value))}"
        for name, value in query.items()
        if value is not None
    ]
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def request_head(method: str, target: str, length: int | None, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """Not to be shown: among the headers may be a token."""
    lines = [f"{method} {target} HTTP/1.1\r\nHost: sbxd\r\n"]
    if length is not None:
        lines.append(f"Content-Length: {length}\r\n")
    for name, value in headers:
        if "\r" in value or "\n" in value:
            raise ValueError(f"{name} has a line break")
        lines.append(f"{name}: {value}\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("latin-1")


class Response:
    """One response, as far as `feed` has been given it. Its body comes out of `take`."""

    __slots__ = ("status", "headers", "done", "rest", "bodyless", "_buffer", "_pieces", "_left", "_parse")

    def __init__(self, *, bodyless: bool = False) -> None:
        self.status = 0  # until the head is there
        self.headers: dict[str, str] = {}
        self.done = False
        self.rest = b""  # what came behind it: frames of a WebSocket
        self.bodyless = bodyless
        self._buffer = bytearray()
        self._pieces: list[bytes] = []
        self._left = -1  # bytes of the body or of the chunk; -1: unknown, up to the end of the connection
        self._parse: Callable[[], bool] = self._head

    def feed(self, data: bytes) -> None:
        """What was received; nothing is the end of the connection."""
        if not data:
            if self._parse == self._to_end:
                self.done = True
                return
            raise EOFError("the connection ended before the response")
        if self._parse == self._counted and len(data) <= self._left:  # the bulk of a long body is not copied
            self._piece(data)
            return
        self._buffer += data
        while not self.done and self._parse():
            pass
        if self.done:
            self.rest = bytes(self._buffer)

    def take(self) -> bytes:
        """The body since the last time."""
        pieces = self._pieces
        if not pieces:
            return b""
        self._pieces = []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def reusable(self) -> bool:
        """The connection can be used again."""
        return self.done and not self.rest and self.headers.get("connection", "").lower() != "close"

    # ---- its parts; each says whether to go on ----

    def _head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_MAX:
                raise BadAnswer("the head of the response has no end")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        if not lines[0].startswith("HTTP/1.1 ") or not lines[0][9:12].isdecimal():
            raise BadAnswer(f"no HTTP: {lines[0][:100]!r}")
        status = int(lines[0][9:12])
        if status == 100:
            return True
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self._body_of(status)
        self.status = status
        return True

    def _body_of(self, status: int) -> None:
        headers = self.headers
        if self.bodyless or status in (101, 204, 304):
            self.done = True
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            self._parse = self._chunk_head
        elif "content-length" in headers:
            if not headers["content-length"].isdecimal():
                raise BadAnswer(f"Content-Length: {headers['content-length'][:50]!r}")
            self._left = int(headers["content-length"])
            self._parse = self._counted
            self.done = self._left == 0
        else:
            self._parse = self._to_end

    def _piece(self, data: bytes) -> None:
        self._pieces.append(data)
        self._left -= len(data)
        self.done = self._left == 0

    def _counted(self) -> bool:
        if self._buffer:
            data = bytes(self._buffer[: self._left])
            del self._buffer[: self._left]
            self._piece(data)
        return False

    def _to_end(self) -> bool:
        self._pieces.append(bytes(self._buffer))
        self._buffer.clear()
        return False

    def _chunk_head(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_MAX:
                raise BadAnswer("a chunk's head has no end")
            return False
        try:
            self._left = int(self._buffer[:end].split(b";")[0], 16)
        except ValueError:
            raise BadAnswer(f"a chunk begins with {bytes(self._buffer[: min(end, 50)])!r}") from None
        del self._buffer[: end + 2]
        self._parse = self._chunk if self._left else self._trailer
        return True

    def _chunk(self) -> bool:
        data = bytes(self._buffer[: self._left])
        del self._buffer[: self._left]
        if data:
            self._pieces.append(data)
            self._left -= len(data)
        if self._left:
            return False
        self._parse = self._chunk_end
        return True

    def _chunk_end(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if self._buffer[:2] != b"\r\n":
            raise BadAnswer("a chunk is longer than it said")
        del self._buffer[:2]
        self._parse = self._chunk_head
        return True

    def _trailer(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        del self._buffer[: end + 2]
        self.done = end == 0
        return True
