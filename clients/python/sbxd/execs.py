"""Commands while they run: their output as it comes, and what one can say to them."""

from __future__ import annotations

import collections
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Iterator

from . import _calls, _ws
from ._call import Call, generation_header
from ._calls import StreamReader
from ._errors import BadAnswer, Closed, ConnectionFailed, DeadlineExceeded, NotFound, SbxdError, from_answer
from ._http import Response
from ._sync import Connection
from .client import Client, decode, longest
from .types import Output, Result

if TYPE_CHECKING:
    from .sandbox import Sandbox

KEPT = 1 << 20  # bytes of output that wait for a reader; then the command is held back
QUIET = 10.0  # seconds after which a client that does not read says that it is there


def joined(pieces: list[Output]) -> tuple[bytes, bytes]:
    """(stdout, stderr)"""
    out = {"stdout": bytearray(), "stderr": bytearray()}
    for piece in pieces:
        out[piece.stream] += piece.data
    return bytes(out["stdout"]), bytes(out["stderr"])


class Stream:
    """The output of a command as it is written. `result` says how it ended, once the last piece was read."""

    def __init__(self, client: Client, box: str, call: Call[None]) -> None:
        self._client, self._box, self._call = client, box, call
        self._reader = StreamReader()
        self._ready: collections.deque[Output] = collections.deque()
        self._connection: Connection | None = None
        c, _ = client._connect(box, longest(client.timeout, call))
        try:
            response = c.request(call)
            if response.status >= 400:
                decode(call, response.status, c.finish(response))
        except BaseException:
            c.close()
            raise
        self._connection, self._response = c, response

    @property
    def result(self) -> Result | None:
        return self._reader.result if self._connection is None else None

    def __iter__(self) -> Iterator[Output]:
        return self

    def __next__(self) -> Output:
        while not self._ready:
            c = self._connection
            if c is None:
                raise StopIteration
            try:
                self._ready.extend(self._reader.feed(self._response.take()))
                if self._response.done:
                    self._reader.end()
                    self._connection = None
                    self._client._done(self._box, c, self._response)
                elif not self._ready:
                    c.read_on(self._response)
            except BaseException:
                self.close()
                raise
        return self._ready.popleft()

    def close(self) -> None:
        """Ends the command if it has not ended: sbxd kills what nobody listens to."""
        c, self._connection = self._connection, None
        if c is not None:
            c.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Process:
    """A command that one talks with. Threads may share it: one may write while another reads.

    A thread of its own reads what comes, up to 1 MiB ahead, so that sbxd hears from it while nobody reads.
    """

    def __init__(self, box: Sandbox, execution: str) -> None:
        """Use `Sandbox.exec`."""
        self.id = execution
        self._box = box
        self._attachment = _ws.Attachment()
        self._output: collections.deque[Output] = collections.deque()
        self._size = 0
        self._most: int | None = KEPT
        self._ended = False
        self._error: SbxdError | None = None
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        timeout = box._client.timeout
        self._connection = box._client._pool.open(timeout)
        try:
            first = self._shake_hands(timeout)
        except BaseException:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._listen, args=(first,), name=f"sbxd-{execution}", daemon=True)
        self._thread.start()

    def _shake_hands(self, timeout: float) -> bytes:
        target = _calls.execution_target(self._box.id, self.id, "/attach")
        headers = (*self._connection.address.credentials(), generation_header(self._box.generation))
        handshake = _ws.Handshake(target, *headers)
        response = Response()
        self._connection.send(handshake.request)
        while not response.done:
            self._connection.read_on(response)
        if response.status != 101:
            raise from_answer(response.status, response.take())
        handshake.check(response)
        self._connection.arm(max(timeout, 60.0))  # sbxd pings every 15 seconds
        return response.rest

    # ---- what it says ----

    def read(self, timeout: float | None = None) -> Output | None:
        """The next piece of output; None at the end. DeadlineExceeded if none comes within `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._output or self._ended, timeout):
                raise DeadlineExceeded(f"no output within {timeout} s")
            if self._output:
                piece = self._output.popleft()
                self._size -= len(piece.data)
                self._changed.notify_all()
                return piece
            if self._error is not None:
                raise self._error
            return None

    def __iter__(self) -> Iterator[Output]:
        while (piece := self.read()) is not None:
            yield piece

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end: the exit code, or -N if signal N ended it. What it wrote can be read after."""
        self._await_end(timeout)
        if self._error is not None:
            raise self._error
        return self._attachment.exit_code or 0

    def _await_end(self, timeout: float | None) -> None:
        with self._changed:
            self._most = None
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._ended, timeout):
                raise DeadlineExceeded(f"it did not end within {timeout} s")

    def communicate(self, data: bytes | str = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Writes `data` and the end of stdin, reads to the end: (stdout, stderr)."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            self._most = None
        if data:
            self.write(data)
        self.close_stdin()
        self.wait(None if until is None else max(until - time.monotonic(), 0))
        pieces = [*self._output]
        self._output.clear()
        return joined(pieces)

    @property
    def returncode(self) -> int | None:
        """As of `wait`; None while it runs."""
        return self._attachment.exit_code if self._ended else None

    @property
    def status(self) -> str:
        """running, completed, killed or timed_out."""
        return self._attachment.status or "running"

    @property
    def notices(self) -> list[str]:
        """For people: why it ended, unless it just exited; output that was dropped."""
        return [*self._attachment.notices]

    # ---- what one can say to it ----

    def write(self, data: bytes | str) -> None:
        """Writes to stdin. A command that does not read is waited for, as long as the client's `timeout` allows."""
        for frame in _ws.stdin_frames(data.encode("utf-8") if isinstance(data, str) else data):
            self._send(frame)

    def close_stdin(self) -> None:
        """The end of stdin; of a terminal Ctrl-D."""
        self._send(_ws.order(_ws.STDIN_EOF))

    def signal(self, number: int) -> None:
        """A signal to its process group: HUP, INT, QUIT, ABRT, USR1, USR2, TERM or WINCH."""
        self._box._call(_calls.signal(self._box.id, self.id, number))

    def resize(self, cols: int, rows: int) -> None:
        """Another size of its terminal."""
        self._box._call(_calls.resize(self._box.id, self.id, cols, rows))

    def kill(self) -> None:
        """Kills its whole process tree."""
        try:
            self._box._call(_calls.kill(self._box.id, self.id))
        except NotFound:
            pass  # it is over, and was forgotten

    def close(self) -> None:
        """Kills it if it has not ended, and hangs up."""
        if not self._ended:
            try:
                self.kill()
                self._await_end(self._box._client.timeout)
            except SbxdError:
                pass  # with the box it is gone, without the service it will be ended for being alone
        self._connection.interrupt()
        self._thread.join(self._box._client.timeout)
        self._connection.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the thread ----

    def _listen(self, data: bytes) -> None:
        error: SbxdError | None = None
        try:
            while True:
                pieces, answers = self._attachment.feed(data)
                if answers:
                    self._answer(answers)
                self._keep(pieces)
                if self._attachment.over:
                    break
                data = self._connection.receive()
                if not data:
                    break
        except SbxdError as e:
            error = e
        except (ValueError, KeyError) as e:
            error = BadAnswer(f"no message of an execution: {e!r}")
        with self._changed:
            self._ended = True
            self._error = error if self._attachment.exit_code is None and error else self._attachment.problem()
            self._changed.notify_all()

    def _keep(self, pieces: list[Output]) -> None:
        with self._changed:
            self._output.extend(pieces)
            self._size += sum(len(p.data) for p in pieces)
            self._changed.notify_all()
            while self._most is not None and self._size > self._most:
                if not self._changed.wait(QUIET):
                    self._answer(_ws.frame(_ws.PONG))

    def _answer(self, frames: bytes) -> None:
        """Never waits for who writes: then sbxd hears from that."""
        if self._writing.acquire(blocking=False):
            try:
                self._connection.send(frames)
            finally:
                self._writing.release()

    def _send(self, frame: bytes) -> None:
        if self._ended:
            raise Closed("the command has ended")
        with self._writing:
            try:
                self._connection.send(frame)
            except DeadlineExceeded:
                self._connection.interrupt()  # half a frame is on its way
                raise
            except ConnectionFailed:
                if self._attachment.exit_code is not None:
                    raise Closed("the command has ended") from None
                raise
