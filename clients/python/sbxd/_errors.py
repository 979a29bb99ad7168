"""What can go wrong, one exception for each reason that sbxd gives.

Everything is an `SbxdError`. What sbxd answered is an `ApiError` with the members of its error object; the classes
below it are named after `error.reason`, and are also what Python calls such a thing: a missing file is a
`FileNotFoundError`, a bad argument a `ValueError`. A reason that this version does not know is an `ApiError` itself.
"""

from __future__ import annotations

import errno
import json
from typing import Any, Mapping


class SbxdError(Exception):
    """Anything that this package raises."""


class ConnectionFailed(SbxdError, ConnectionError):
    """sbxd cannot be reached, or hung up before it answered."""


class BadAddress(SbxdError, ValueError):
    """Where the service is, or the token for it, was said in a way that cannot be."""


class DeadlineExceeded(SbxdError, TimeoutError):
    """The time that the caller gave the call is over. A command that it ran is killed."""


class BadAnswer(SbxdError):
    """What came is no answer of sbxd."""


class Closed(SbxdError):
    """The sandbox, process or client was closed before."""


class CommandFailed(SbxdError):
    """A command that was to succeed did not. `result` is its Result."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message, result)
        self.result = result

    def __str__(self) -> str:
        return str(self.args[0])


class ApiError(SbxdError):
    """sbxd refused. `reason` is the finest of what it said, `code` is BoxLite's word for it."""

    errno_value: int | None = None

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(status, dict(error))
        self.status = status
        self.message = str(error.get("message", "no message"))
        self.type = str(error.get("type", ""))
        self.code = str(error.get("code", ""))
        self.reason = str(error.get("reason", ""))
        self.request_id: str | None = error.get("request_id")
        self.retry_after: float | None = error.get("retry_after_seconds")
        self.details = dict(error)
        if self.errno_value is not None:
            setattr(self, "errno", self.errno_value)

    def __str__(self) -> str:
        return f"{self.message} ({self.reason or self.status})"


# ---- the request makes no sense --------------------------------------------------------------------------------------


class InvalidArgument(ApiError, ValueError):
    """A value that cannot be. Also the parent of what says more exactly why."""


class InvalidPath(InvalidArgument):
    """Not absolute, too long, with `..`, a loop of links, or a link out of the box."""


class IsADirectory(InvalidArgument, IsADirectoryError):
    """There is a directory."""

    errno_value = errno.EISDIR


class NotADirectory(InvalidArgument, NotADirectoryError):
    """There is no directory, or a component of the path is a file."""

    errno_value = errno.ENOTDIR


class InvalidPattern(InvalidArgument):
    """A pattern that is none; the message says at which offset."""


class CrossDevice(InvalidArgument, OSError):
    """A rename to another file system."""

    errno_value = errno.EXDEV


class MalformedRequest(InvalidArgument):
    """No HTTP, or a body that is no JSON object or ended early."""


class TooLarge(InvalidArgument, OSError):
    """More than a limit allows."""

    errno_value = errno.EFBIG


class HeadTooLarge(InvalidArgument):
    """Request line and headers are longer than they may be."""


class IdempotencyKeyReused(InvalidArgument):
    """The key was sent with another body before."""


class UpgradeRequired(InvalidArgument):
    """This is a WebSocket."""


class Unauthenticated(ApiError, PermissionError):
    """No token, or a wrong one."""

    errno_value = errno.EACCES


class PermissionDenied(ApiError, PermissionError):
    """Not allowed: to this user, or by the box's kernel."""

    errno_value = errno.EACCES


class MethodNotAllowed(ApiError):
    """The path is there and the method is not."""


class Unsupported(ApiError):
    """The driver cannot do that."""


# ---- what is there, and how it is ------------------------------------------------------------------------------------


class NotFound(ApiError, FileNotFoundError):
    """There is no such file, execution or image."""

    errno_value = errno.ENOENT


class InvalidState(ApiError):
    """Not now: what it is about is in another state."""


class AlreadyExists(ApiError, FileExistsError):
    """There is something of that name."""

    errno_value = errno.EEXIST


class IdentityCollision(AlreadyExists):
    """Another user and thread with the same scope token have a box."""


class SpecMismatch(InvalidState):
    """The scope's box is in use with another image or other limits."""


class NotATty(InvalidState):
    """The execution has no terminal."""


class Attached(InvalidState):
    """Another client is attached to the execution."""


class NotEmpty(InvalidState, OSError):
    """A directory that is not empty."""

    errno_value = errno.ENOTEMPTY


class Busy(InvalidState, OSError):
    """A mount point, or a program that runs."""

    errno_value = errno.EBUSY


# ---- the box ---------------------------------------------------------------------------------------------------------


class BoxGone(ApiError):
    """The box is not there any more. The next acquire gets a new one."""


class BoxNotFound(BoxGone, LookupError):
    """There is no such box, or it is another user's."""


class BoxDied(BoxGone):
    """It was closed, or everything in it died."""


class WorkerCrashed(BoxGone):
    """The process that served it died."""


class StaleGeneration(BoxGone):
    """Another box has taken its place."""


class ExecutionFailed(ApiError):
    """The command could not be started."""


class ImagePullFailed(ApiError):
    """The image cannot be had."""


class BootFailed(ApiError):
    """The box could not be booted."""


# ---- not now ---------------------------------------------------------------------------------------------------------


class ServiceTimeout(ApiError, TimeoutError):
    """sbxd's own time for it is over: a box was not ready, a request did not arrive."""

    errno_value = errno.ETIMEDOUT


class ResourceExhausted(ApiError):
    """Worth another try after `retry_after` seconds. Its children say of what there is too little."""


class CapacityExceeded(ResourceExhausted):
    """`replicas` boxes are there and none came free. `details` has `active`, `warm` and `replicas`."""


class TooManyConnections(ResourceExhausted):
    """As many connections, or leases of the box, as there may be."""


class ExecutionLimit(ResourceExhausted):
    """As many executions run in the box as may."""


class BoxResources(ResourceExhausted):
    """The box has no processes, memory or channels left."""


class ShuttingDown(ApiError):
    """sbxd ends, or is away for a moment."""


class StorageError(ApiError, OSError):
    """A file of the box could not be read or written."""

    errno_value = errno.EIO


class NoSpace(StorageError):
    """The box's disk is full."""

    errno_value = errno.ENOSPC


class InternalError(ApiError):
    """Something that should not be."""


BY_REASON: Mapping[str, type[ApiError]] = {
    "already_exists": AlreadyExists,
    "attached": Attached,
    "boot_failed": BootFailed,
    "box_died": BoxDied,
    "box_resources": BoxResources,
    "busy": Busy,
    "capacity_exceeded": CapacityExceeded,
    "cross_device": CrossDevice,
    "execution_failed": ExecutionFailed,
    "execution_limit": ExecutionLimit,
    "head_too_large": HeadTooLarge,
    "idempotency_key_reused": IdempotencyKeyReused,
    "identity_collision": IdentityCollision,
    "image_pull_failed": ImagePullFailed,
    "internal": InternalError,
    "invalid_argument": InvalidArgument,
    "invalid_path": InvalidPath,
    "invalid_pattern": InvalidPattern,
    "invalid_state": InvalidState,
    "io": StorageError,
    "is_directory": IsADirectory,
    "malformed_request": MalformedRequest,
    "method_not_allowed": MethodNotAllowed,
    "no_space": NoSpace,
    "not_a_directory": NotADirectory,
    "not_a_tty": NotATty,
    "not_empty": NotEmpty,
    "not_found": NotFound,
    "permission_denied": PermissionDenied,
    "shutting_down": ShuttingDown,
    "spec_mismatch": SpecMismatch,
    "stale_generation": StaleGeneration,
    "timeout": ServiceTimeout,
    "too_large": TooLarge,
    "too_many_connections": TooManyConnections,
    "unauthenticated": Unauthenticated,
    "unsupported": Unsupported,
    "upgrade_required": UpgradeRequired,
    "worker_crashed": WorkerCrashed,
}


def from_members(status: int, error: Mapping[str, Any]) -> ApiError:
    """The exception for an error object of sbxd."""
    return BY_REASON.get(str(error.get("reason")), ApiError)(status, error)


def from_answer(status: int, body: bytes) -> SbxdError:
    """The exception for an answer that is no success."""
    try:
        error = json.loads(body)["error"]
        return from_members(status, error)
    except (ValueError, KeyError, TypeError, AttributeError):
        return BadAnswer(f"status {status} with {body[:200]!r}")
