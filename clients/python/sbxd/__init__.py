"""sbxd's client: a sandbox for each user and thread, shared by every process of the host.

    from sbxd import Sandbox

    with Sandbox.acquire("alice", "chat-7") as box:
        print(box.run("echo hello").stdout)

`sbxd.aio` has the same for asyncio, `sbxd.deerflow` a sandbox provider for DeerFlow.
"""

from ._errors import *  # noqa: F403
from ._errors import ApiError, SbxdError
from .client import Client
from .execs import Process, Stream
from .sandbox import Sandbox
from .types import Line, Lines, Listing, Matches, Output, Problem, Result, Stat

__version__ = "0.1.0"
