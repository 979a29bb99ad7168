"""A leased box as a sandbox of DeerFlow."""

from __future__ import annotations

import errno
import logging
import re
from typing import Callable, TypeVar

from deerflow.sandbox.sandbox import Sandbox as DeerflowSandbox
from deerflow.sandbox.search import GrepMatch

from ._errors import BoxGone, Closed, InvalidPattern, NotADirectory, NotFound, SbxdError
from .sandbox import COMMAND_SECONDS, Sandbox
from .types import Result

T = TypeVar("T")
logger = logging.getLogger(__name__)

USER_DATA = "/mnt/user-data"
WORKSPACE = f"{USER_DATA}/workspace"  # where commands begin; what a relative path is relative to
DOWNLOAD_MAX = 100 << 20
LISTED_MAX = 500
SEARCHED_MAX = 1_000_000  # bytes of a file that is searched
LONGEST_LINE = 2000
SHOWN_LINE = 200
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def box_path(path: str) -> str:
    """The path as sbxd has it: absolute and plain."""
    if not path:
        raise ValueError("the path is empty")
    parts = path.replace("\\", "/").split("/")
    if ".." in parts:
        raise PermissionError(errno.EACCES, "Access denied: path traversal detected", path)
    root = "" if parts[0] == "" else WORKSPACE
    return root + "/" + "/".join(p for p in parts if p not in ("", ".")) if any(parts) else "/"


def joined(result: Result, timeout: float) -> str:
    """The output of a command as DeerFlow's tools show it."""
    stdout, stderr = result.stdout, result.stderr
    output = f"{stdout}\n{stderr}" if stdout and stderr else stdout or stderr
    if result.timed_out:
        late = f"Error: Command timed out after {timeout:g} seconds and was killed"
        return f"{output}\n{late}" if output else late
    if not output and not result.ok:
        return f"Command exited with code {result.exit_code if result.signal is None else 128 + result.signal}"
    return output or "(no output)"


class SbxdSandbox(DeerflowSandbox):
    """Threads may share it."""

    persistent_shell_sessions = False

    def __init__(
        self,
        box: Sandbox,
        *,
        environment: dict[str, str] | None = None,
        command_timeout: float = COMMAND_SECONDS,
        on_gone: Callable[[SbxdSandbox], None] | None = None,
    ) -> None:
        super().__init__(box.id)
        self._box = box
        self._environment = dict(environment or {})
        self._command_timeout = command_timeout
        self._on_gone = on_gone

    @property
    def is_closed(self) -> bool:
        return self._box.closed

    def close(self) -> None:
        """Gives the lease back."""
        self._box.close()

    def _ask(self, what: Callable[[], T]) -> T:
        """Does something in the box; one that is gone is told to the provider."""
        try:
            return what()
        except BoxGone:
            if self._on_gone is not None:
                self._on_gone(self)
            raise

    def _file(self, what: Callable[[], T]) -> T:
        """The same with a file. Whatever goes wrong is an OSError."""
        try:
            return self._ask(what)
        except SbxdError as e:
            if isinstance(e, OSError):
                raise
            raise OSError(str(e)) from e

    # ---- commands ----

    def execute_command(self, command: str, env: dict[str, str] | None = None, timeout: float | None = None) -> str:
        for name in env or ():
            if not isinstance(name, str) or not ENV_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a POSIX name of an environment variable")
        if self.is_closed:
            return "Error: sandbox has been closed"
        seconds = self._command_timeout if timeout is None else timeout
        try:
            result = self._ask(
                lambda: self._box.run(command, env={**self._environment, **(env or {})}, timeout=seconds)
            )
        except Closed:
            return "Error: sandbox has been closed"
        except SbxdError as e:
            logger.error("a command in box %s failed: %s", self.id, e)
            return f"Error: {e}"
        return joined(result, seconds)

    # ---- files ----

    def read_file(self, path: str, start_line: int | None = None, end_line: int | None = None) -> str:
        where = box_path(path)
        first = max(start_line or 1, 1)
        if end_line is not None and end_line < first:
            return ""
        try:
            if start_line is None and end_line is None:
                return self._ask(lambda: self._box.read_text(where))
            text = self._ask(lambda: self._box.read_text(where, first=first, last=end_line))
        except SbxdError as e:
            return f"Error: {e}"
        return "\n".join(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))

    def write_file(self, path: str, content: str, append: bool = False) -> None:
        self._write(path, content.encode("utf-8"), append)

    def update_file(self, path: str, content: bytes) -> None:
        self._write(path, content, False)

    def _write(self, path: str, data: bytes, append: bool) -> None:
        where = box_path(path)
        try:
            self._file(lambda: self._box.write(where, data, append=append))
        except NotFound:
            self._file(lambda: self._box.mkdir(where.rpartition("/")[0] or "/"))
            self._file(lambda: self._box.write(where, data, append=append))

    def download_file(self, path: str) -> bytes:
        where = box_path(path)
        if where != USER_DATA and not where.startswith(f"{USER_DATA}/"):
            raise PermissionError(errno.EACCES, f"Access denied: path must be under '{USER_DATA}'", path)
        size = self._file(lambda: self._box.stat(where, follow=True)).size
        data = self._file(lambda: self._box.read(where, limit=DOWNLOAD_MAX + 1)) if size <= DOWNLOAD_MAX else b""
        if max(size, len(data)) > DOWNLOAD_MAX:
            raise OSError(errno.EFBIG, f"File exceeds maximum download size of {DOWNLOAD_MAX} bytes", path)
        return data

    def list_dir(self, path: str, max_depth: int = 2) -> list[str]:
        root = box_path(path)
        below = root.rstrip("/")
        try:
            found = self._file(lambda: self._box.list_dir(root, depth=max(max_depth, 1), max_results=LISTED_MAX - 1))
        except NotADirectory:
            self._file(lambda: self._box.stat(root))  # it is listed as itself, if it is there
            return [root]
        return [root, *(f"{below}/{e.path}" for e in found.entries)]

    # ---- search ----

    def glob(
        self, path: str, pattern: str, *, include_dirs: bool = False, max_results: int = 200
    ) -> tuple[list[str], bool]:
        root = box_path(path)
        found = self._ask(lambda: self._box.glob(root, pattern, include_dirs=include_dirs, max_results=max_results))
        return [f"{root.rstrip('/')}/{p}" for p in found.paths], found.truncated

    def grep(
        self,
        path: str,
        pattern: str,
        *,
        glob: str | None = None,
        literal: bool = False,
        case_sensitive: bool = False,
        max_results: int = 100,
    ) -> tuple[list[GrepMatch], bool]:
        root = box_path(path)
        try:
            found = self._ask(
                lambda: self._box.grep(
                    root, pattern, glob=glob, literal=literal, case_sensitive=case_sensitive, max_results=max_results
                )
            )
        except InvalidPattern as e:
            raise re.error(e.message) from e
        except NotADirectory:
            return self._grep_file(root, pattern, literal, case_sensitive, max_results)
        below = root.rstrip("/")
        return [
            GrepMatch(path=f"{below}/{m.path}", line_number=m.number, line=m.text) for m in found.lines
        ], found.truncated

    def _grep_file(
        self, path: str, pattern: str, literal: bool, case_sensitive: bool, max_results: int
    ) -> tuple[list[GrepMatch], bool]:
        """In one file, which sbxd does not search. By the same rules, but for the names that are passed over."""
        regex = re.compile(re.escape(pattern) if literal else pattern, 0 if case_sensitive else re.IGNORECASE)
        data = self._file(lambda: self._box.read(path, limit=SEARCHED_MAX + 1))
        matches: list[GrepMatch] = []
        if len(data) > SEARCHED_MAX or b"\0" in data[:8192]:
            return matches, False
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            line = line.removesuffix("\r")
            if len(line) <= LONGEST_LINE and regex.search(line):
                if len(matches) == max_results:
                    return matches, True
                shown = line if len(line) <= SHOWN_LINE else f"{line[: SHOWN_LINE - 3]}..."
                matches.append(GrepMatch(path=path, line_number=number, line=shown))
        return matches, False
