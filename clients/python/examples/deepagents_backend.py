"""A backend of LangChain's deepagents: the tools of an agent work in the box of a user and a thread.

    with Sandbox.acquire("alice", "chat-7") as box:
        agent = create_deep_agent(model, backend=SbxdBackend(box))
        agent.invoke({"messages": [{"role": "user", "content": "Which primes are below 50?"}]})

All other tools (ls, read_file, edit_file, grep and so on) are made of these by BaseSandbox, with python3 in the box.
"""

from __future__ import annotations

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from sbxd import InvalidPath, IsADirectory, NotADirectory, NotFound, PermissionDenied, Result, Sandbox, SbxdError

SECONDS = 120  # that a command may take if the agent does not say
OUTPUT_MAX = 1 << 20  # bytes of stdout, and as many of stderr; what BaseSandbox reads of a file must fit

# The words of deepagents for what an agent can mend; anything else is told as sbxd says it.
WORDS: dict[type[SbxdError], str] = {
    NotFound: "file_not_found",
    PermissionDenied: "permission_denied",
    IsADirectory: "is_directory",
    NotADirectory: "invalid_path",
    InvalidPath: "invalid_path",
}


class SbxdBackend(BaseSandbox):
    """Of a box that the caller has leased, and closes. Threads may share it."""

    def __init__(self, box: Sandbox, *, timeout: float = SECONDS, max_output: int = OUTPUT_MAX) -> None:
        self._box, self._timeout, self._max_output = box, timeout, max_output

    @property
    def id(self) -> str:
        return self._box.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        seconds = self._timeout if timeout is None else timeout or None  # 0: for ever
        try:
            result = self._box.run(command, timeout=seconds, max_output=self._max_output)
        except SbxdError as e:  # the agent is told, as it is of a command that fails
            return ExecuteResponse(output=f"Error: {e}", exit_code=125)
        return ExecuteResponse(output=shown(result), exit_code=exit_code(result), truncated=result.truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._put(path, data)) for path, data in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._get(path) for path in paths]

    def _put(self, path: str, data: bytes) -> str | None:
        """What went wrong, if anything did."""
        try:
            try:
                self._box.write(path, data)
            except NotFound:
                self._box.mkdir(path.rpartition("/")[0] or "/")
                self._box.write(path, data)
        except SbxdError as e:
            return word(e)
        return None

    def _get(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self._box.read(path))
        except SbxdError as e:
            return FileDownloadResponse(path=path, error=word(e))


def shown(result: Result) -> str:
    """Output as an agent reads it."""
    late = f"Error: timed out after {result.seconds:.1f} s and was killed" if result.timed_out else ""
    return "\n".join(part.removesuffix("\n") for part in (result.stdout, result.stderr, late) if part)


def exit_code(result: Result) -> int:
    """As a shell has it."""
    if result.timed_out:
        return 124
    return result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)


def word(error: SbxdError) -> str:
    return WORDS.get(type(error), str(error))
