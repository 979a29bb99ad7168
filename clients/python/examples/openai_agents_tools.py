"""Tools for the OpenAI Agents SDK that work in the box of a user and a thread: it is the context of the run.

    agent = Agent(name="coder", tools=TOOLS)
    async with AsyncSandbox.acquire("alice", "chat-7") as box:
        result = await Runner.run(agent, "Which primes are below 50?", context=box)

A run that is cancelled ends the command that it waits for.
"""

from __future__ import annotations

from agents import RunContextWrapper, Tool, function_tool

from sbxd import SbxdError
from sbxd.aio import AsyncSandbox
from sbxd.types import Result

OUTPUT_MAX = 20_000  # bytes of stdout, and as many of stderr, that a model is shown; of a file so many

Box = RunContextWrapper[AsyncSandbox]


def told(context: RunContextWrapper[object], error: Exception) -> str:
    """What goes wrong in the box is an answer for the model; what goes wrong in here is not."""
    if isinstance(error, SbxdError):
        return f"Error: {error}"
    raise error


@function_tool(failure_error_function=told)
async def run_command(context: Box, command: str, timeout_seconds: float = 120) -> str:
    """Runs a line of shell in a Linux sandbox, whose files stay from call to call.

    Args:
        command: The line. Each is a shell of its own: a `cd` ends with it.
        timeout_seconds: After so long it is killed, with all that it started.
    """
    return shown(await context.context.run(command, timeout=timeout_seconds, max_output=OUTPUT_MAX))


@function_tool(failure_error_function=told)
async def read_file(context: Box, path: str) -> str:
    """Reads a text file of the sandbox.

    Args:
        path: Absolute.
    """
    data = await context.context.read(path, limit=OUTPUT_MAX + 1)
    more = "\n[there is more]" if len(data) > OUTPUT_MAX else ""
    return data[:OUTPUT_MAX].decode("utf-8", "replace") + more


@function_tool(failure_error_function=told)
async def write_file(context: Box, path: str, content: str) -> str:
    """Makes a text file in the sandbox, or replaces it as a whole.

    Args:
        path: Absolute. Directories that are missing are made.
        content: All of it.
    """
    await context.context.mkdir(path.rpartition("/")[0] or "/")
    return f"{await context.context.write(path, content)} bytes written"


TOOLS: list[Tool] = [run_command, read_file, write_file]


def shown(result: Result) -> str:
    """A result as a model reads it."""
    parts = [result.stdout.removesuffix("\n")]
    if result.stderr:
        parts.append(f"[stderr]\n{result.stderr.removesuffix(chr(10))}")
    if result.truncated:
        parts.append("[some of the output was left out]")
    if result.timed_out:
        parts.append(f"[killed after {result.seconds:.1f} s]")
    elif not result.ok:
        parts.append(f"[exit code {result.exit_code}]" if result.signal is None else f"[signal {result.signal}]")
    return "\n".join(part for part in parts if part) or "(no output)"
