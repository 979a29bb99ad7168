"""The requests about the pool, a box and its commands: how each is written, how its answer is read."""

from __future__ import annotations

import base64
from typing import Any, Mapping

from ._call import Call, Command, Env, as_nothing, as_object, object_call, to_json
from ._errors import ConnectionFailed, from_members
from ._http import escape
from .types import Lease, Output, Result, decoded

STREAMED = (("Accept", "application/x-ndjson"),)


def command_text(command: Command) -> dict[str, Any]:
    return {"command": command} if isinstance(command, str) else {"argv": [*command]}


# ---- the pool --------------------------------------------------------------------------------------------------------


def acquire(user: str | None, thread: str | None, image: str | None, wait: float) -> Call[Lease]:
    members = {
        "user_id": user,
        "thread_id": thread,
        "image": image,
        "wait_seconds": wait,
        "release_on_disconnect": True,
    }

    def decode(body: bytes) -> Lease:
        box = as_object(body)
        return Lease(box["box_id"], box["lease_id"], box["generation"], box["source"], box["isolation"], box["image"])

    return Call("POST", "/v1/acquire", decode, to_json(members), longer=wait)


def release(box: str, lease: str) -> Call[str]:
    body = to_json({"lease_id": lease})
    return Call(
        "POST", f"/v1/boxes/{box}/release", lambda b: str(as_object(b)["status"]), body, repeatable=True, about_box=True
    )


def pool() -> Call[dict[str, Any]]:
    return object_call("/v1/pool")


def config() -> Call[dict[str, Any]]:
    return object_call("/v1/config")


def image(reference: str) -> Call[dict[str, Any]]:
    return object_call(f"/v1/images/{escape(reference, safe='')}")


def inspect(box: str) -> Call[dict[str, Any]]:
    return Call("GET", f"/v1/boxes/{box}", as_object, repeatable=True, about_box=True)


# ---- commands --------------------------------------------------------------------------------------------------------


def _run_body(
    command: Command,
    env: Env,
    cwd: str | None,
    user: str | None,
    stdin: str | bytes | None,
    timeout: float | None,
    max_output: int | None,
    tty: bool,
) -> bytes:
    members = command_text(command)
    members.update(
        env=dict(env) if env else None, cwd=cwd, user=user, timeout_seconds=timeout, max_output_bytes=max_output
    )
    members["tty"] = tty or None
    if isinstance(stdin, str):
        members["stdin"] = stdin
    elif stdin is not None:
        members["stdin_base64"] = base64.b64encode(stdin).decode()
    return to_json(members)


def _end(members: Mapping[str, Any], stdout: bytes = b"", stderr: bytes = b"") -> Result:
    return Result(
        members["exit_code"],
        members["signal"],
        members["timed_out"],
        members["truncated"],
        members["duration_ms"] / 1000,
        stdout,
        stderr,
    )


def _result(body: bytes) -> Result:
    o = as_object(body)
    return _end(o, decoded(o["stdout"], o["stdout_encoding"]), decoded(o["stderr"], o["stderr_encoding"]))


def run(
    box: str,
    command: Command,
    *,
    env: Env,
    cwd: str | None,
    user: str | None,
    stdin: str | bytes | None,
    timeout: float | None,
    max_output: int | None,
    tty: bool,
) -> Call[Result]:
    body = _run_body(command, env, cwd, user, stdin, timeout, max_output, tty)
    return Call("POST", f"/v1/boxes/{box}/run", _result, body, about_box=True, longer=timeout)


def stream(
    box: str,
    command: Command,
    *,
    env: Env,
    cwd: str | None,
    user: str | None,
    stdin: str | bytes | None,
    timeout: float | None,
    tty: bool,
) -> Call[None]:
    body = _run_body(command, env, cwd, user, stdin, timeout, None, tty)
    return Call("POST", f"/v1/boxes/{box}/run", as_nothing, body, STREAMED, about_box=True, longer=timeout)


class StreamReader:
    """Lines of a streamed run to pieces of output; `result` is there after the last."""

    def __init__(self) -> None:
        self._line = bytearray()
        self.result: Result | None = None

    def feed(self, data: bytes) -> list[Output]:
        self._line += data
        *lines, rest = self._line.split(b"\n")
        self._line = bytearray(rest)
        found = []
        for line in lines:
            o = as_object(bytes(line))
            if "stream" in o:
                found.append(Output(o["stream"], decoded(o["data"], o["encoding"])))
            elif "error" in o:
                raise from_members(200, o["error"])
            else:
                self.result = _end(o)
        return found

    def end(self) -> None:
        if self.result is None:
            raise ConnectionFailed("the stream ended before the command did")


# ---- executions ------------------------------------------------------------------------------------------------------


def start(
    box: str,
    command: Command,
    *,
    env: Env,
    cwd: str | None,
    user: str | None,
    stdin: bool,
    tty: bool,
    size: tuple[int, int],
    timeout: float | None,
) -> Call[str]:
    program, *args = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    members: dict[str, Any] = {
        "command": program,
        "args": args,
        "env": dict(env) if env else None,
        "working_dir": cwd,
        "user": user,
        "timeout_seconds": timeout,
        "tty": tty or None,
        "stdin": None if tty else stdin,
    }
    if tty:
        members["cols"], members["rows"] = size
    return Call(
        "POST", f"/v1/boxes/{box}/exec", lambda b: str(as_object(b)["execution_id"]), to_json(members), about_box=True
    )


def execution_target(box: str, execution: str, what: str = "") -> str:
    return f"/v1/boxes/{box}/executions/{execution}{what}"


def executions(box: str) -> Call[list[dict[str, Any]]]:
    return Call("GET", f"/v1/boxes/{box}/executions", as_object, repeatable=True, about_box=True)


def signal(box: str, execution: str, number: int) -> Call[None]:
    return Call("POST", execution_target(box, execution, "/signal"), as_nothing, to_json({"signal": number}))


def resize(box: str, execution: str, cols: int, rows: int) -> Call[None]:
    body = to_json({"cols": cols, "rows": rows})
    return Call("POST", execution_target(box, execution, "/resize"), as_nothing, body, repeatable=True)


def kill(box: str, execution: str) -> Call[None]:
    return Call("DELETE", execution_target(box, execution), as_nothing)
