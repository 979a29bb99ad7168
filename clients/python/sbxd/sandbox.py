"""A box for a user and a thread, and everything that can be done with it. Blocking; aio.py has the same for asyncio."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TypeVar

from . import _calls, _file_calls, _sync
from ._call import Call, Command, Env, of_generation
from ._errors import BoxGone, Closed, NotFound, ResourceExhausted, SbxdError, StaleGeneration
from ._sync import Connection
from .client import Client, decode, default_client, longest
from .execs import Process, Stream
from .types import Lease, Lines, Listing, Matches, Result, Stat

T = TypeVar("T")
COMMAND_SECONDS = 600.0  # that a command may take if nobody says


def another_box(box: str) -> StaleGeneration:
    return StaleGeneration(410, {"message": f"the box of {box} is another one now", "reason": "stale_generation"})


class Sandbox:
    """A leased box. Threads may share it; its lease ends with `close`, with its `with` block, or with the process.

    Made by `Sandbox.acquire`. In a process that was forked it gets a lease of its own at its first use.
    """

    def __init__(self, client: Client, user: str | None, thread: str | None, image: str | None, wait: float) -> None:
        """Use `Sandbox.acquire`."""
        self._client = client
        self._scope = (user, thread, image, wait)
        self._lock = threading.Lock()
        self._closed = False
        self._gone: BoxGone | None = None
        self._lease, self._tether = self._acquire()
        self._forks = _sync.forks

    @classmethod
    def acquire(
        cls,
        user: str | None = None,
        thread: str | None = None,
        *,
        image: str | None = None,
        wait: float = 60.0,
        client: Client | None = None,
    ) -> Sandbox:
        """The box of a user and a thread, booted if there is none; without a thread one of nobody else.

        Waits `wait` seconds at most for it. CapacityExceeded says that there is no room, and when to try again.
        """
        return cls(client or default_client(), user, thread, image, wait)

    def _acquire(self) -> tuple[Lease, Connection]:
        timeout = longest(self._client.timeout, call := _calls.acquire(*self._scope))
        tether, _ = self._client._connect("", timeout)
        try:
            response, body = tether.ask(call)
            lease = decode(call, response.status, body)
            self._move(tether, lease)
        except BaseException:
            tether.close()
            raise
        return lease, tether

    def _move(self, tether: Connection, lease: Lease) -> None:
        """Gets the connection that the lease is tied to into the hands of the box's worker: there it outlives sbxd."""
        tether.arm(self._client.timeout)
        call = _calls.executions(lease.box_id)
        try:
            response, body = tether.ask(call)
            decode(call, response.status, body)
        except ResourceExhausted:
            pass  # the box has as many connections as it may; then it stays where it is

    # ---- what it is ----

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
        return f"<Sandbox {self.id} {'closed' if self._closed else self.source}>"

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the lease back; the last one parks the box. Never fails: what cannot be said is shown by hanging up."""
        if self._forks != _sync.forks:
            self._closed = True  # the lease is another process's
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._release(self._lease, self._tether)

    def _release(self, lease: Lease, tether: Connection) -> None:
        call = _calls.release(lease.box_id, lease.lease_id)
        try:
            tether.arm(self._client.timeout)
            response, body = tether.ask(call)
            decode(call, response.status, body)
            self._client._done("", tether, response)
        except SbxdError:
            tether.close()
        except BaseException:
            tether.close()
            raise

    def renew(self) -> None:
        """Makes sure of the lease: gets a new one for the old one. StaleGeneration: it is another box now."""
        self._check()
        if self._scope[1] is None:
            return  # its box can be had once only
        lease, tether = self._acquire()
        with self._lock:
            if not self._closed and lease.generation == self.generation:
                lease, self._lease = self._lease, lease
                tether, self._tether = self._tether, tether
            elif not self._closed:
                self._gone = another_box(self.id)
        self._release(lease, tether)
        self._check()

    def inspect(self) -> dict[str, object]:
        """All about the box: GET /v1/boxes/{id}."""
        return self._call(_calls.inspect(self.id))

    # ---- commands ----

    def run(
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
        """Runs a command to its end: a line for the shell, or a program and its arguments.

        After `timeout` seconds its whole process tree is killed, and the result says `timed_out`; None: never. Of
        stdout and stderr `max_output` bytes each are kept.
        """
        return self._call(
            _calls.run(
                self.id,
                command,
                env=env,
                cwd=cwd,
                user=user,
                stdin=stdin,
                timeout=timeout,
                max_output=max_output,
                tty=tty,
            )
        )

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
    ) -> Stream:
        """Runs a command and gives its output as it is written: `for piece in box.stream(...)`.

        A reader that is slow holds the command back; one that stops (`close`, or its `with` block) has it killed.
        """
        self._check()
        call = _calls.stream(self.id, command, env=env, cwd=cwd, user=user, stdin=stdin, timeout=timeout, tty=tty)
        try:
            return Stream(self._client, self.id, of_generation(call, self.generation))
        except BoxGone as e:
            self._gone = e
            raise

    def exec(
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
    ) -> Process:
        """Starts a command to talk with: stdin, signals, and with `tty` a terminal of `size` columns and rows."""
        call = _calls.start(
            self.id, command, env=env, cwd=cwd, user=user, stdin=stdin, tty=tty, size=size, timeout=timeout
        )
        return Process(self, self._call(call))

    # ---- files; paths are absolute ----

    def read(self, path: str, *, offset: int | None = None, limit: int | None = None) -> bytes:
        """A file, or `limit` bytes of it from `offset` on."""
        return self._call(_file_calls.read(self.id, path, offset, limit, None, None))

    def read_text(self, path: str, *, first: int | None = None, last: int | None = None) -> str:
        """A file of UTF-8, or the lines of it from `first` to `last`, counted from 1."""
        return self._call(_file_calls.read(self.id, path, None, None, first, last)).decode("utf-8")

    def write(self, path: str, data: str | bytes, *, append: bool = False, mode: int | None = None) -> int:
        """Makes a file, or replaces it as a whole; with `append` adds to it. How many bytes were written."""
        content = data.encode("utf-8") if isinstance(data, str) else data
        return self._call(_file_calls.write(self.id, path, content, append, mode))

    def stat(self, path: str, *, follow: bool = False) -> Stat:
        """What is at a path; with `follow`, of a link what it leads to."""
        return self._call(_file_calls.stat(self.id, path, follow))

    def list_dir(self, path: str, *, depth: int = 1, max_results: int = 10000) -> Listing:
        """What is in a directory, and with `depth` in those below it. Nothing is passed over."""
        return self._call(_file_calls.list_dir(self.id, path, depth, max_results))

    def glob(self, path: str, pattern: str, *, include_dirs: bool = False, max_results: int = 200) -> Matches:
        """Files below a directory whose path is like a pattern. Dependencies, builds and caches are passed over."""
        return self._call(_file_calls.glob(self.id, path, pattern, include_dirs, max_results))

    def grep(
        self,
        path: str,
        pattern: str,
        *,
        glob: str | None = None,
        literal: bool = False,
        case_sensitive: bool = False,
        max_results: int = 100,
    ) -> Lines:
        """Lines below a directory in which a pattern (PCRE2) is found, in files whose path is like `glob`."""
        return self._call(_file_calls.grep(self.id, path, pattern, glob, literal, case_sensitive, max_results))

    def mkdir(self, path: str, *, parents: bool = True, mode: int | None = None) -> bool:
        """Makes a directory. Whether it did: with `parents` one that is there is no error."""
        return self._call(_file_calls.mkdir(self.id, path, parents, mode))

    def remove(self, path: str, *, recursive: bool = False) -> int:
        """Removes a name, with `recursive` and all below it. How many names went."""
        return self._call(_file_calls.remove(self.id, path, recursive))

    def rename(self, old: str, new: str, *, overwrite: bool = False) -> None:
        """Gives a file or directory another name."""
        self._call(_file_calls.rename(self.id, old, new, overwrite))

    def put_tar(self, path: str, archive: bytes, *, overwrite: bool = True) -> None:
        """Unpacks a tar archive into a directory, which is made if it is missing."""
        self._call(_file_calls.put_tar(self.id, path, archive, overwrite))

    def get_tar(self, path: str, *, follow: bool = False) -> bytes:
        """A file or a tree as a tar archive; of a path that ends in `/.` without the name of the directory."""
        return self._call(_file_calls.get_tar(self.id, path, follow))

    # ---- for the rest of the package ----

    def _check(self) -> None:
        if self._closed:
            raise Closed("the sandbox was closed")
        if self._forks != _sync.forks:
            with _sync.fork_lock:
                if self._forks != _sync.forks:
                    self._adopt()
        if self._gone is not None:
            raise type(self._gone)(self._gone.status, self._gone.details)

    def _adopt(self) -> None:
        """In a child that a fork made: gets a lease of its own, of the same box."""
        if self._scope[1] is None:
            raise Closed("a sandbox without a thread is its process's own: this one was forked")
        lease, tether = self._acquire()
        if lease.generation != self.generation:
            self._gone = another_box(self.id)
        self._lock = threading.Lock()
        self._lease, self._tether, self._forks = lease, tether, _sync.forks

    def _call(self, call: Call[T]) -> T:
        self._check()
        try:
            return self._client._call(of_generation(call, self.generation), self.id)
        except (BoxGone, NotFound) as e:
            self._gone = e if isinstance(e, BoxGone) else self._missing()
            if self._gone is e or self._gone is None:
                raise
            raise self._gone from e

    def _missing(self) -> BoxGone | None:
        """Whether it is the box that was not found: then it stays so, also when the scope has another."""
        try:
            self._client._call(_calls.inspect(self.id))
        except BoxGone as gone:
            return gone
        except SbxdError:
            pass  # then it is not known, and what was not found is told
        return None
