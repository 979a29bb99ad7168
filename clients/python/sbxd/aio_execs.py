"""As execs.py, for asyncio."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from typing import TYPE_CHECKING, AsyncGenerator, AsyncIterator

from . import _calls, _ws
from ._call import Call, generation_header
from ._calls import StreamReader
from ._errors import BadAnswer, BoxGone, Closed, ConnectionFailed, DeadlineExceeded, NotFound, SbxdError, from_answer
from ._http import Response
from .client import decode, longest
from .execs import KEPT, QUIET, joined
from .types import Output, Result

if TYPE_CHECKING:
    from .aio import AsyncSandbox


class AsyncStream:
    """As `Stream`."""

    def __init__(self, box: AsyncSandbox, call: Call[None]) -> None:
        self._box, self._call = box, call
        self._reader = StreamReader()
        self._pieces = self._read()

    @property
    def result(self) -> Result | None:
        """How the command ended, once the last piece was read."""
        return self._reader.result

    def __aiter__(self) -> AsyncGenerator[Output, None]:
        return self._pieces

    async def _read(self) -> AsyncGenerator[Output, None]:
        client, box = self._box._client, self._box
        await client._pool.enter(box.id)
        try:
            c, _ = await client._connect(box.id, longest(client.timeout, self._call))
            try:
                response = await c.request(self._call)
                if response.status >= 400:
                    decode(self._call, response.status, await c.finish(response))
                while True:
                    for piece in self._reader.feed(response.take()):
                        yield piece
                    if response.done:
                        break
                    await c.read_on(response)
                self._reader.end()
            except BaseException:
                c.close()
                raise
            client._done(box.id, c, response)
        except BoxGone as e:
            box._gone = e
            raise
        finally:
            client._pool.leave(box.id)

    async def close(self) -> None:
        """As `Stream.close`."""
        await self._pieces.aclose()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncProcess:
    """As `Process`; a task of its own reads what comes."""

    def __init__(self, box: AsyncSandbox, execution: str) -> None:
        """Use `AsyncSandbox.exec`."""
        self.id = execution
        self._box = box
        self._attachment = _ws.Attachment()
        self._output: collections.deque[Output] = collections.deque()
        self._size = 0
        self._most: int | None = KEPT
        self._ended = False
        self._error: SbxdError | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._writing = asyncio.Lock()

    async def _attach(self) -> None:
        timeout = self._box._client.timeout
        c = await self._box._client._pool.open(timeout)
        try:
            target = _calls.execution_target(self._box.id, self.id, "/attach")
            headers = (*c.address.credentials(), generation_header(self._box.generation))
            handshake = _ws.Handshake(target, *headers)
            response = Response()
            await c.send(handshake.request)
            while not response.done:
                await c.read_on(response)
            if response.status != 101:
                raise from_answer(response.status, response.take())
            handshake.check(response)
        except BaseException:
            c.close()
            raise
        c.timeout = max(timeout, 60.0)  # sbxd pings every 15 seconds
        self._connection = c
        self._task = asyncio.create_task(self._listen(response.rest), name=f"sbxd-{self.id}")

    # ---- what it says ----

    def _notify(self) -> None:
        """Something has changed."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def _change(self, timeout: float | None) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait_for(future, timeout)
        finally:
            self._waiting.discard(future)

    async def read(self, timeout: float | None = None) -> Output | None:
        """The next piece of output; None at the end. DeadlineExceeded if none comes within `timeout` seconds."""
        while not self._output and not self._ended:
            try:
                await self._change(timeout)
            except asyncio.TimeoutError:
                raise DeadlineExceeded(f"no output within {timeout} s") from None
        if self._output:
            piece = self._output.popleft()
            self._size -= len(piece.data)
            self._notify()
            return piece
        if self._error is not None:
            raise self._error
        return None

    async def __aiter__(self) -> AsyncIterator[Output]:
        while (piece := await self.read()) is not None:
            yield piece

    async def wait(self, timeout: float | None = None) -> int:
        """As `Process.wait`."""
        await self._await_end(timeout)
        if self._error is not None:
            raise self._error
        return self._attachment.exit_code or 0

    async def _await_end(self, timeout: float | None) -> None:
        self._most = None
        self._notify()
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        if not done:
            raise DeadlineExceeded(f"it did not end within {timeout} s")

    async def communicate(self, data: bytes | str = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """As `Process.communicate`."""

        async def talk() -> None:
            self._most = None
            if data:
                await self.write(data)
            await self.close_stdin()
            await self.wait()

        try:
            await asyncio.wait_for(talk(), timeout)
        except asyncio.TimeoutError:
            raise DeadlineExceeded(f"it did not end within {timeout} s") from None
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

    # ---- what one can say to it; each as of Process ----

    async def write(self, data: bytes | str) -> None:
        for frame in _ws.stdin_frames(data.encode("utf-8") if isinstance(data, str) else data):
            await self._send(frame)

    async def close_stdin(self) -> None:
        await self._send(_ws.order(_ws.STDIN_EOF))

    async def signal(self, number: int) -> None:
        await self._box._call(_calls.signal(self._box.id, self.id, number))

    async def resize(self, cols: int, rows: int) -> None:
        await self._box._call(_calls.resize(self._box.id, self.id, cols, rows))

    async def kill(self) -> None:
        with contextlib.suppress(NotFound):  # it is over, and was forgotten
            await self._box._call(_calls.kill(self._box.id, self.id))

    async def close(self) -> None:
        """Kills it if it has not ended, and hangs up."""
        if not self._ended:
            with contextlib.suppress(
                SbxdError
            ):  # with the box it is gone, without the service it will be ended for being alone
                await self.kill()
                await self._await_end(self._box._client.timeout)
        self._task.cancel()
        await asyncio.wait([self._task])
        self._connection.close()

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # ---- the task ----

    async def _listen(self, data: bytes) -> None:
        error: SbxdError | None = None
        try:
            while True:
                pieces, answers = self._attachment.feed(data)
                if answers:
                    await self._answer(answers)
                await self._keep(pieces)
                if self._attachment.over:
                    break
                data = await self._connection.receive()
                if not data:
                    break
        except SbxdError as e:
            error = e
        except (ValueError, KeyError) as e:
            error = BadAnswer(f"no message of an execution: {e!r}")
        finally:
            self._ended = True
            self._error = error if self._attachment.exit_code is None and error else self._attachment.problem()
            self._notify()

    async def _keep(self, pieces: list[Output]) -> None:
        self._output.extend(pieces)
        self._size += sum(len(p.data) for p in pieces)
        self._notify()
        while self._most is not None and self._size > self._most:
            try:
                await self._change(QUIET)
            except asyncio.TimeoutError:
                await self._answer(_ws.frame(_ws.PONG))

    async def _answer(self, frames: bytes) -> None:
        """Never waits for who writes: then sbxd hears from that."""
        if not self._writing.locked():
            async with self._writing:
                await self._connection.send(frames)

    async def _send(self, frame: bytes) -> None:
        if self._ended:
            raise Closed("the command has ended")
        async with self._writing:
            try:
                await self._connection.send(frame)
            except DeadlineExceeded:
                self._connection.close()  # half a frame is on its way
                raise
            except ConnectionFailed:
                if self._attachment.exit_code is not None:
                    raise Closed("the command has ended") from None
                raise
