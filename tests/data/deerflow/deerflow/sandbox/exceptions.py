class SandboxError(Exception):
    def __init__(self, message: str, details: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}


class SandboxRuntimeError(SandboxError):
    pass


class SandboxCapacityExceededError(SandboxError):
    def __init__(
        self,
        message: str = "",
        *,
        active: int = 0,
        warm: int = 0,
        reserved: int = 0,
        replicas: int = 0,
        retry_after_seconds: float = 5.0,
        reason: str = "capacity",
    ) -> None:
        super().__init__(message, {"retry_after_seconds": retry_after_seconds, "reason": reason})
        self.active = active
        self.warm = warm
        self.reserved = reserved
        self.replicas = replicas
        self.retry_after_seconds = retry_after_seconds
        self.reason = reason
