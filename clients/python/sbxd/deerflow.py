"""DeerFlow's sandboxes on sbxd: `use: sbxd.deerflow:SbxdProvider` in the section `sandbox:` of its configuration.

The pool is sbxd's and not the process's: every gateway process on the host has the same box for a user and a thread,
and a box outlives the process. What the provider holds is a lease of each box that this process uses.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from typing import Any

from deerflow.config import get_app_config
from deerflow.sandbox import exceptions as deerflow_errors
from deerflow.sandbox.sandbox_provider import SandboxProvider

from ._errors import (
    BoxGone,
    CapacityExceeded,
    Closed,
    ConnectionFailed,
    IdentityCollision,
    ImagePullFailed,
    SbxdError,
    SpecMismatch,
)
from .client import Client, default_client
from .deerflow_sandbox import SbxdSandbox
from .sandbox import COMMAND_SECONDS, Sandbox

__all__ = ["SbxdProvider", "SbxdSandbox"]
logger = logging.getLogger(__name__)


class SbxdProvider(SandboxProvider):
    """DeerFlow's sandbox provider.

    Of DeerFlow's configuration `image`, `environment`, `acquire_timeout` and `bash_command_timeout` count here, and for
    a service that is reached over TCP `base_url` and `api_key`, its token.
    `replicas`, `idle_timeout`, `memory_mib`, `cpus` and `health_check_skip_seconds` are the pool's: sbxd's own
    configuration has them, under the same names.
    """

    uses_thread_data_mounts = False
    needs_upload_permission_adjustment = True

    def __init__(self, client: Client | None = None) -> None:
        config = get_app_config().sandbox
        self._config = config
        self._own = None if client else _client_of(config)
        self._client = client or self._own or default_client()
        self._image: str | None = getattr(config, "image", None)
        self._environment: dict[str, str] = dict(getattr(config, "environment", None) or {})
        self._wait = float(getattr(config, "acquire_timeout", None) or 60)
        self._command_timeout = float(getattr(config, "bash_command_timeout", None) or COMMAND_SECONDS)
        self._lock = threading.Lock()  # over the rest; never held while something is waited for
        self._boxes: dict[str, SbxdSandbox] = {}
        self._ids: dict[tuple[str | None, str], str] = {}
        self._compared = False
        self._shut = False
        atexit.register(self.shutdown)

    # ---- what DeerFlow calls ----

    def acquire(self, thread_id: str | None = None, *, user_id: str | None = None) -> str:
        """The id of the scope's box, which this process then has a lease of. Each call makes sure that it is there."""
        try:
            held = self._held(thread_id, user_id)
            return held or self._keep(self._obtain(thread_id, user_id), thread_id, user_id)
        except CapacityExceeded as e:
            raise _capacity_error(e) from e
        except IdentityCollision as e:
            raise RuntimeError(f"Sandbox ID collision: {e}") from e
        except SbxdError as e:
            raise deerflow_errors.SandboxRuntimeError(str(e)) from e

    async def acquire_async(self, thread_id: str | None = None, *, user_id: str | None = None) -> str:
        return await asyncio.to_thread(self.acquire, thread_id, user_id=user_id)

    def get(self, sandbox_id: str) -> SbxdSandbox | None:
        with self._lock:
            return self._boxes.get(sandbox_id)

    def release(self, sandbox_id: str) -> None:
        """Gives this process's lease back. The last one of all processes parks the box."""
        box = self._forget(sandbox_id)
        if box is not None:
            box.close()

    def reset(self) -> None:
        """Gives all leases of this process back."""
        with self._lock:
            boxes = [*self._boxes.values()]
            self._boxes.clear()
            self._ids.clear()
        for box in boxes:
            box.close()

    def shutdown(self) -> None:
        """Gives all leases back, for good. The boxes are the host's, and stay until they were idle for too long."""
        with self._lock:
            self._shut = True
        atexit.unregister(self.shutdown)
        self.reset()
        if self._own is not None:
            self._own.close()

    # ---- acquire ----

    def _held(self, thread_id: str | None, user_id: str | None) -> str | None:
        """The id of the scope's box if this process has it already, its lease made sure of."""
        with self._lock:
            if self._shut:
                raise Closed("the provider was shut down")
            box = self._boxes.get(self._ids.get((user_id, thread_id), "")) if thread_id is not None else None
        if box is None:
            return None
        try:
            box._box.renew()
        except ConnectionFailed:
            logger.warning("sbxd is away; box %s is used without asking", box.id)
        except BoxGone:
            self._lost(box)
            return None
        except Closed:
            return None
        return box.id

    def _obtain(self, thread_id: str | None, user_id: str | None) -> Sandbox:
        self._compare()
        image = self._image
        try:
            return Sandbox.acquire(user_id, thread_id, image=image, wait=self._wait, client=self._client)
        except (ImagePullFailed, SpecMismatch) as e:
            if image is None or self._client.has_image(image):
                raise
            logger.warning("sbxd has no image %s; its own is used: %s", image, e)
            self._image = None
        return Sandbox.acquire(user_id, thread_id, wait=self._wait, client=self._client)

    def _keep(self, box: Sandbox, thread_id: str | None, user_id: str | None) -> str:
        new = SbxdSandbox(box, environment=self._environment, command_timeout=self._command_timeout, on_gone=self._lost)
        surplus: SbxdSandbox | None = None
        with self._lock:
            shut = self._shut
            other = self._boxes.get(box.id)
            if shut or (other is not None and not other.is_closed and other._box.generation == box.generation):
                surplus = new  # another thread was faster: one lease is enough
            else:
                surplus = other
                self._boxes[box.id] = new
            if thread_id is not None:
                self._ids[user_id, thread_id] = box.id
        if surplus is not None:
            surplus.close()
        if shut:
            raise Closed("the provider was shut down")
        return box.id

    def _compare(self) -> None:
        """Says once what of DeerFlow's configuration differs from sbxd's, which is what counts."""
        if self._compared:
            return
        self._compared = True
        defaults = self._client.config()["defaults"]
        there: dict[str, Any] = {
            "replicas": self._client.pool()["replicas"],
            "memory_mib": defaults["memory_mib"],
            "cpus": defaults["cpus"],
        }
        for key, value in there.items():
            wanted = getattr(self._config, key, None)
            if wanted is not None and wanted != value:
                logger.warning(
                    "%s is %s here, and %s in sbxd's configuration, which counts for all processes", key, wanted, value
                )

    # ---- boxes that are given up ----

    def _forget(self, sandbox_id: str, only: SbxdSandbox | None = None) -> SbxdSandbox | None:
        with self._lock:
            if only is not None and self._boxes.get(sandbox_id) is not only:
                return None
            for scope in [s for s, i in self._ids.items() if i == sandbox_id]:
                del self._ids[scope]
            return self._boxes.pop(sandbox_id, None)

    def _lost(self, box: SbxdSandbox) -> None:
        """A box is gone. Its successor, which has the same id, is not touched."""
        self._forget(box.id, only=box)
        box.close()


def _client_of(config: Any) -> Client | None:
    """For the service that the configuration names, if it names one."""
    url: str | None = getattr(config, "base_url", None)
    return Client(url=url, token=getattr(config, "api_key", None) or None) if url else None


def _capacity_error(e: CapacityExceeded) -> Exception:
    """DeerFlow's own error where it has one; `retry_after` says the same as its `retry_after_seconds`."""
    kind = getattr(deerflow_errors, "SandboxCapacityExceededError", None)
    if kind is None:
        return e
    numbers = {k: e.details.get(k, 0) for k in ("active", "warm", "replicas")}
    error: Exception = kind(e.message, retry_after_seconds=e.retry_after or 1.0, **numbers)
    setattr(error, "retry_after", e.retry_after)
    return error
