"""What calls return."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Mapping

from ._errors import CommandFailed


def decoded(text: str, encoding: str) -> bytes:
    """Output as sbxd sends it: text, or base64 of what is none."""
    return base64.b64decode(text) if encoding == "base64" else text.encode("utf-8", "surrogatepass")


def name_of(item: Mapping[str, Any], member: str = "path") -> str:
    """A name of a file; bytes of it that are not UTF-8 are surrogates."""
    exact = item.get(f"{member}_base64")
    return os.fsdecode(base64.b64decode(exact)) if exact is not None else str(item[member])


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it wrote."""

    exit_code: int | None  # None: a signal ended it
    signal: int | None
    timed_out: bool
    truncated: bool  # output was dropped
    seconds: float
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def returncode(self) -> int:
        """As subprocess has it: -N when signal N ended it."""
        return self.exit_code if self.exit_code is not None else -(self.signal or 0)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def check(self) -> Result:
        """Itself if the command succeeded, else CommandFailed."""
        if self.ok:
            return self
        how = (
            "timed out"
            if self.timed_out
            else f"exited with {self.exit_code}" if self.signal is None else f"died of signal {self.signal}"
        )
        said = (self.stderr or self.stdout).strip()[-500:]
        raise CommandFailed(f"the command {how}{': ' if said else ''}{said}", self)


@dataclass(frozen=True)
class Output:
    """A piece of what a command writes while it runs."""

    stream: str  # stdout or stderr
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Stat:
    """What is at a path."""

    path: str  # of an entry of a directory: relative to it
    type: str  # file, directory, symlink, fifo, socket, char_device, block_device, other
    size: int
    mode: int
    uid: int
    gid: int
    modified_at: datetime | None
    link_target: str | None = None

    @property
    def is_dir(self) -> bool:
        return self.type == "directory"

    @property
    def is_file(self) -> bool:
        return self.type == "file"


@dataclass(frozen=True)
class Problem:
    """What could not be read in a tree that was walked through."""

    path: str
    reason: str
    message: str


@dataclass(frozen=True)
class Listing:
    entries: list[Stat]
    truncated: bool  # there is more
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Matches:
    """Paths that a glob found, relative to where it looked."""

    paths: list[str]
    truncated: bool
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    path: str
    number: int
    text: str  # cut to 200 characters


@dataclass(frozen=True)
class Lines:
    """Lines that a grep found."""

    lines: list[Line]
    truncated: bool
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Lease:
    """What an acquire gave."""

    box_id: str
    lease_id: str
    generation: int
    source: str  # active, warm, prewarmed, cold
    isolation: str
    image: str
