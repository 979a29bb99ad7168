"""WebSocket frames (RFC 6455) and the messages of an attached execution, without I/O."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from typing import Any, Iterator

from ._errors import BadAnswer, ConnectionFailed
from ._http import Response, request_head
from .types import Output

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PIECE = 64 << 10  # of stdin, in one frame: what is written does not keep a pong waiting for long
STDIN_EOF = {"type": "stdin_eof"}


def frame(opcode: int, payload: bytes = b"") -> bytes:
    """One whole, masked frame."""
    n = len(payload)
    if n < 126:
        head = struct.pack(">BB", 0x80 | opcode, 0x80 | n)
    elif n < 1 << 16:
        head = struct.pack(">BBH", 0x80 | opcode, 0x80 | 126, n)
    else:
        head = struct.pack(">BBQ", 0x80 | opcode, 0x80 | 127, n)
    mask = os.urandom(4)
    key = int.from_bytes((mask * (n // 4 + 1))[:n], "little")
    return head + mask + (int.from_bytes(payload, "little") ^ key).to_bytes(n, "little")


def stdin_frames(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), PIECE):
        yield frame(BINARY, data[at : at + PIECE])


def order(what: dict[str, Any]) -> bytes:
    return frame(TEXT, json.dumps(what).encode())


class Handshake:
    """The request that turns a connection into a WebSocket, and the check of its answer."""

    def __init__(self, target: str, *headers: tuple[str, str]) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        fields = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", key),
            *headers,
        ]
        self.request = request_head("GET", target, None, fields)
        self._accept = base64.b64encode(hashlib.sha1(key.encode() + _ACCEPT, usedforsecurity=False).digest()).decode()

    def check(self, response: Response) -> None:
        if response.headers.get("sec-websocket-accept") != self._accept:
            raise BadAnswer("the WebSocket handshake was answered by somebody else")


class Frames:
    """Bytes of the server to frames. sbxd sends each message as one frame, which is not masked."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        self._buffer += data
        while True:
            found = self._next()
            if found is None:
                return
            yield found

    def _next(self) -> tuple[int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        if not buffer[0] & 0x80 or buffer[0] & 0x70 or buffer[1] & 0x80:
            raise BadAnswer(f"a frame begins with {buffer[0]:#x} {buffer[1]:#x}")
        at, n = 2, buffer[1]
        if n >= 126:
            at = 4 if n == 126 else 10
            if len(buffer) < at:
                return None
            n = int.from_bytes(buffer[2:at], "big")
        if len(buffer) < at + n:
            return None
        payload = bytes(buffer[at : at + n])
        opcode = buffer[0] & 15
        del buffer[: at + n]
        return opcode, payload


class Attachment:
    """What an attached client hears: output, and at last how the execution ended."""

    def __init__(self) -> None:
        self._frames = Frames()
        self.exit_code: int | None = None  # -N: signal N ended it
        self.status: str | None = None  # completed, killed, timed_out
        self.notices: list[str] = []  # for people: why it ended, what was dropped
        self.over = False  # the server has said its last

    def feed(self, data: bytes) -> tuple[list[Output], bytes]:
        """Output, and what is to be sent in answer."""
        found: list[Output] = []
        answers = b""
        for opcode, payload in self._frames.feed(data):
            if opcode == BINARY and payload:
                found.append(Output("stderr" if payload[0] == 2 else "stdout", payload[1:]))
            elif opcode == TEXT:
                self._hear(json.loads(payload))
            elif opcode == PING:
                answers += frame(PONG, payload)
            elif opcode == CLOSE:
                self.over = True
                answers += frame(CLOSE, payload[:2])
        return found, answers

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "exit":
            self.exit_code, self.status = message["exit_code"], message["status"]
            if "error_message" in message:
                self.notices.append(message["error_message"])
        else:
            self.notices.append(message["message"])

    def problem(self) -> ConnectionFailed | None:
        """Why there will be no exit code, if the connection is gone."""
        if self.exit_code is not None:
            return None
        return ConnectionFailed("; ".join(["the connection to the execution is gone", *self.notices[-1:]]))
