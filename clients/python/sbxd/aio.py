"""The same as sandbox.py for asyncio.

    from sbxd.aio import AsyncSandbox

    async with AsyncSandbox.acquire("alice", "chat-7") as box:
        print((await box.run("echo hello")).stdout)

Nothing here blocks the loop. What is made on a loop belongs to it.
"""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Generator, TypeVar

from . import _calls, _file_calls
from ._async import AsyncConnection
from ._call import Call, Command, Env, of_generation
from ._errors import BoxGone, Closed, NotFound, ResourceExhausted, SbxdError
from .aio_client import AsyncClient, default_client
from .aio_execs import AsyncProcess, AsyncStream
from .client import decode, longest
from .sandbox import COMMAND_SECONDS, another_box
from .types import Lease, Lines, Listing, Matches, Result, Stat

T = TypeVar("T")

__all__ = ["AsyncClient", "AsyncProcess", "AsyncSandbox", "AsyncStream"]


class AsyncSandbox:
    """A leased box. Tasks of its loop may share it; its lease ends with `close`, `async with`, or the process."""

    def __init__(self, acquiring: Acquiring, lease: Lease, tether: AsyncConnection) -> None:
        """Use `AsyncSandbox.acquire`."""
        self._client = client = acquiring.client
        self._acquiring, self._lease, self._tether = acquiring, lease, tether
        client._boxes += 1
        self._closed = False
        self._gone: BoxGone | None = None

    @classmethod
    def acquire(
        cls,
        user: str | None = None,
        thread: str | None = None,
        *,
        image: str | None = None,
        wait: float = 60.0,
        client: AsyncClient | None = None,
    ) -> Acquiring:
        """As `Sandbox.acquire`: to be awaited, or used in `async with`."""
        return Acquiring(client or default_client(), thread, _calls.acquire(user, thread, image, wait))

    @property
    def id(self) -> str:
        return self._lease.box_id

    @property
    def source(self) -> str:
        """How it was obtained: active, warm, prewarmed or cold."""
        return self._lease.source

    @property
    def isolation(self) -> str:
        """How it is kept apart: namespace, microvm-kvm and so on."""
        return self._lease.isolation

    @property
    def image(self) -> str:
        return self._lease.image

    @property
    def generation(self) -> int:
        """No two boxes have the same."""
        return self._lease.generation

    @property
    def closed(self) -> bool:
        return self._closed

    def __repr__(self) -> str:
        return f"<AsyncSandbox {self.id} {'closed' if self._closed else self.source}>"

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """As `Sandbox.close`."""
        if self._closed:
            return
        self._closed = True
        await self._release(self._lease, self._tether)

    async def _release(self, lease: Lease, tether: AsyncConnection) -> None:
        call = _calls.release(lease.box_id, lease.lease_id)
        try:
            tether.timeout = self._client.timeout
            response, body = await tether.ask(call)
            decode(call, response.status, body)
            self._client._done("", tether, response)
        except SbxdError:
            tether.close()
        except BaseException:
            tether.close()
            raise
        finally:
            self._client._box_closed()

    async def renew(self) -> None:
        """As `Sandbox.renew`."""
        self._check()
        if self._acquiring.thread is None:
            return  # its box can be had once only
        new = await self._acquiring
        if not self._closed and new.generation == self.generation:
            self._lease, new._lease = new._lease, self._lease
            self._tether, new._tether = new._tether, self._tether
        elif not self._closed:
            self._gone = another_box(self.id)
        await new.close()
        self._check()

    async def inspect(self) -> dict[str, object]:
        """As `Sandbox.inspect`."""
        return await self._call(_calls.inspect(self.id))

    # ---- commands ----

    async def run(
        self,
        command: Command,
        *,
        env: Env = None,
        cwd: str | None = None,
        user: str | None = None,
        stdin: str | bytes | None = None,
        timeout: float | None = COMMAND_SECONDS,
        max_output: int | None = None,
        tty: bool = False,
    ) -> Result:
        """As `Sandbox.run`. If the task is cancelled, the command is killed."""
        call = _calls.run(
            self.id, command, env=env, cwd=cwd, user=user, stdin=stdin, timeout=timeout, max_output=max_output, tty=tty
        )
        return await self._call(call)

    def stream(
        self,
        command: Command,
        *,
        env: Env = None,
        cwd: str | None = None,
        user: str | None = None,
        stdin: str | bytes | None = None,
        timeout: float | None = COMMAND_SECONDS,
        tty: bool = False,
    ) -> AsyncStream:
        """As `Sandbox.stream`, with `async for`. The command starts when the first piece is asked for."""
        self._check()
        call = _calls.stream(self.id, command, env=env, cwd=cwd, user=user, stdin=stdin, timeout=timeout, tty=tty)
        return AsyncStream(self, of_generation(call, self.generation))

    async def exec(
        self,
        command: Command,
        *,
        env: Env = None,
        cwd: str | None = None,
        user: str | None = None,
        stdin: bool = True,
        tty: bool = False,
        size: tuple[int, int] = (80, 24),
        timeout: float | None = COMMAND_SECONDS,
    ) -> AsyncProcess:
        """As `Sandbox.exec`."""
        call = _calls.start(
            self.id, command, env=env, cwd=cwd, user=user, stdin=stdin, tty=tty, size=size, timeout=timeout
        )
        process = AsyncProcess(self, await self._call(call))
        await process._attach()
        return process

    # ---- files; each as of Sandbox ----

    async def read(self, path: str, *, offset: int | None = None, limit: int | None = None) -> bytes:
        return await self._call(_file_calls.read(self.id, path, offset, limit, None, None))

    async def read_text(self, path: str, *, first: int | None = None, last: int | None = None) -> str:
        return (await self._call(_file_calls.read(self.id, path, None, None, first, last))).decode("utf-8")

    async def write(self, path: str, data: str | bytes, *, append: bool = False, mode: int | None = None) -> int:
        content = data.encode("utf-8") if isinstance(data, str) else data
        return await self._call(_file_calls.write(self.id, path, content, append, mode))

    async def stat(self, path: str, *, follow: bool = False) -> Stat:
        return await self._call(_file_calls.stat(self.id, path, follow))

    async def list_dir(self, path: str, *, depth: int = 1, max_results: int = 10000) -> Listing:
        return await self._call(_file_calls.list_dir(self.id, path, depth, max_results))

    async def glob(self, path: str, pattern: str, *, include_dirs: bool = False, max_results: int = 200) -> Matches:
        return await self._call(_file_calls.glob(self.id, path, pattern, include_dirs, max_results))

    async def grep(
        self,
        path: str,
        pattern: str,
        *,
        glob: str | None = None,
        literal: bool = False,
        case_sensitive: bool = False,
        max_results: int = 100,
    ) -> Lines:
        return await self._call(_file_calls.grep(self.id, path, pattern, glob, literal, case_sensitive, max_results))

    async def mkdir(self, path: str, *, parents: bool = True, mode: int | None = None) -> bool:
        return await self._call(_file_calls.mkdir(self.id, path, parents, mode))

    async def remove(self, path: str, *, recursive: bool = False) -> int:
        return await self._call(_file_calls.remove(self.id, path, recursive))

    async def rename(self, old: str, new: str, *, overwrite: bool = False) -> None:
        await self._call(_file_calls.rename(self.id, old, new, overwrite))

    async def put_tar(self, path: str, archive: bytes, *, overwrite: bool = True) -> None:
        await self._call(_file_calls.put_tar(self.id, path, archive, overwrite))

    async def get_tar(self, path: str, *, follow: bool = False) -> bytes:
        return await self._call(_file_calls.get_tar(self.id, path, follow))

    # ---- for the rest of the package ----

    def _check(self) -> None:
        if self._closed:
            raise Closed("the sandbox was closed")
        if self._gone is not None:
            raise type(self._gone)(self._gone.status, self._gone.details)

    async def _call(self, call: Call[T]) -> T:
        self._check()
        try:
            return await self._client._call(of_generation(call, self.generation), self.id)
        except (BoxGone, NotFound) as e:
            self._gone = e if isinstance(e, BoxGone) else await self._missing()
            if self._gone is e or self._gone is None:
                raise
            raise self._gone from e

    async def _missing(self) -> BoxGone | None:
        try:
            await self._client._call(_calls.inspect(self.id))
        except BoxGone as gone:
            return gone
        except SbxdError:
            pass  # then it is not known, and what was not found is told
        return None


class Acquiring:
    """An acquire under way. A task that is cancelled while it waits leaves the queue."""

    def __init__(self, client: AsyncClient, thread: str | None, call: Call[Lease]) -> None:
        self.client, self.thread, self._call = client, thread, call
        self._box: AsyncSandbox | None = None

    def __await__(self) -> Generator[Any, None, AsyncSandbox]:
        return self._acquire().__await__()

    async def __aenter__(self) -> AsyncSandbox:
        self._box = await self._acquire()
        return self._box

    async def __aexit__(self, *exc: object) -> None:
        if self._box is not None:
            await self._box.close()

    async def _acquire(self) -> AsyncSandbox:
        client = self.client
        tether, _ = await client._connect("", longest(client.timeout, self._call))
        try:
            response, body = await tether.ask(self._call)
            lease = decode(self._call, response.status, body)
            move = _calls.executions(lease.box_id)  # the box's worker has the connection then: there it outlives sbxd
            tether.timeout = client.timeout
            with contextlib.suppress(ResourceExhausted):
                response, body = await tether.ask(move)
                decode(move, response.status, body)
        except BaseException:
            tether.close()
            raise
        return AsyncSandbox(self, lease, tether)
