"""Each request that a client makes: how it is written, how its answer is read. Without I/O, for both clients."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Callable, Generic, Mapping, Sequence, TypeVar

from ._errors import BadAnswer, ConnectionFailed, from_members
from ._http import escape, target_of
from .types import Lease, Line, Lines, Listing, Matches, Output, Problem, Result, Stat, decoded, name_of

T_co = TypeVar("T_co", covariant=True)
Command = str | Sequence[str]  # a line for the shell, or a program and its arguments
Env = Mapping[str, str] | None

NO_HEADERS: tuple[tuple[str, str], ...] = ()
STREAMED = (("Accept", "application/x-ndjson"),)


@dataclass(frozen=True)
class Call(Generic[T_co]):
    method: str
    target: str
    decode: Callable[[bytes], T_co]
    body: bytes | None = None
    headers: Sequence[tuple[str, str]] = NO_HEADERS
    repeatable: bool = False  # to do it twice is to do it once
    about_box: bool = False  # 404 says that there is no box, and nothing else
    longer: float | None = 0.0  # seconds that it may take beyond those of any call; None: for ever


def default_socket() -> str:
    """SBXD_SOCKET, else where sbxd has its socket when this user started it, or root."""
    given = os.environ.get("SBXD_SOCKET")
    if given:
        return given
    uid = os.geteuid()
    if uid != 0:
        base = os.environ.get("XDG_RUNTIME_DIR")
        own = f"{base}/sbxd/sbxd.sock" if base else f"/tmp/sbxd-{uid}/sbxd.sock"
        if os.path.exists(own):
            return own
    return "/run/sbxd/sbxd.sock"


def of_generation(call: Call[T_co], generation: int) -> Call[T_co]:
    """The call for that box only, and not for one that has taken its place: StaleGeneration."""
    return replace(call, headers=(*call.headers, generation_header(generation)))


def generation_header(generation: int) -> tuple[str, str]:
    return "X-Box-Generation", str(generation)


def command_text(command: Command) -> dict[str, Any]:
    return {"command": command} if isinstance(command, str) else {"argv": [*command]}


def _json(members: Mapping[str, Any]) -> bytes:
    return json.dumps({k: v for k, v in members.items() if v is not None}, separators=(",", ":")).encode()


def _object(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as e:
        raise BadAnswer(f"no JSON: {e}: {body[:200]!r}") from e


def _nothing(body: bytes) -> None:
    return None


def _raw(body: bytes) -> bytes:
    return body


def _object_call(target: str) -> Call[dict[str, Any]]:
    return Call("GET", target, _object, repeatable=True)


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
        box = _object(body)
        return Lease(box["box_id"], box["lease_id"], box["generation"], box["source"], box["isolation"], box["image"])

    return Call("POST", "/v1/acquire", decode, _json(members), longer=wait)


def release(box: str, lease: str) -> Call[str]:
    body = _json({"lease_id": lease})
    return Call(
        "POST", f"/v1/boxes/{box}/release", lambda b: str(_object(b)["status"]), body, repeatable=True, about_box=True
    )


def pool() -> Call[dict[str, Any]]:
    return _object_call("/v1/pool")


def config() -> Call[dict[str, Any]]:
    return _object_call("/v1/config")


def image(reference: str) -> Call[dict[str, Any]]:
    return _object_call(f"/v1/images/{escape(reference, safe='')}")


def inspect(box: str) -> Call[dict[str, Any]]:
    return Call("GET", f"/v1/boxes/{box}", _object, repeatable=True, about_box=True)


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
    return _json(members)


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
    o = _object(body)
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
    return Call("POST", f"/v1/boxes/{box}/run", _nothing, body, STREAMED, about_box=True, longer=timeout)


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
            o = _object(bytes(line))
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
        "POST", f"/v1/boxes/{box}/exec", lambda b: str(_object(b)["execution_id"]), _json(members), about_box=True
    )


def execution_target(box: str, execution: str, what: str = "") -> str:
    return f"/v1/boxes/{box}/executions/{execution}{what}"


def executions(box: str) -> Call[list[dict[str, Any]]]:
    return Call("GET", f"/v1/boxes/{box}/executions", _object, repeatable=True, about_box=True)


def signal(box: str, execution: str, number: int) -> Call[None]:
    return Call("POST", execution_target(box, execution, "/signal"), _nothing, _json({"signal": number}))


def resize(box: str, execution: str, cols: int, rows: int) -> Call[None]:
    body = _json({"cols": cols, "rows": rows})
    return Call("POST", execution_target(box, execution, "/resize"), _nothing, body, repeatable=True)


def kill(box: str, execution: str) -> Call[None]:
    return Call("DELETE", execution_target(box, execution), _nothing)


# ---- files -----------------------------------------------------------------------------------------------------------


def _fs(box: str, what: str, **query: object) -> str:
    return target_of(f"/v1/boxes/{box}/fs{what}", query)


def _problems(o: Mapping[str, Any]) -> list[Problem]:
    return [Problem(name_of(p), p["reason"], p["message"]) for p in o.get("errors", ())]


def _stat(o: Mapping[str, Any]) -> Stat:
    when = o["modified_at"]
    modified = (
        datetime.fromisoformat(f"{when[:26].rstrip('Z')}+00:00") if when else None
    )  # the 7th digit and on are dropped
    link = name_of(o, "link_target") if "link_target" in o else None
    return Stat(name_of(o), o["type"], o["size"], int(o["mode"], 8), o["uid"], o["gid"], modified, link)


def read(
    box: str, path: str, offset: int | None, limit: int | None, first: int | None, last: int | None
) -> Call[bytes]:
    target = _fs(box, "/read", path=path, offset=offset, limit=limit, start_line=first, end_line=last)
    return Call("GET", target, _raw, repeatable=True)


def write(box: str, path: str, data: bytes, append: bool, mode: int | None) -> Call[int]:
    target = _fs(box, "/write", path=path, append=append or None, mode=None if mode is None else f"{mode:o}")
    return Call("PUT", target, lambda b: int(_object(b)["bytes"]), data, repeatable=not append)


def stat(box: str, path: str, follow: bool) -> Call[Stat]:
    return Call(
        "GET", _fs(box, "/stat", path=path, follow=follow or None), lambda b: _stat(_object(b)), repeatable=True
    )


def list_dir(box: str, path: str, depth: int, max_results: int) -> Call[Listing]:
    def decode(body: bytes) -> Listing:
        o = _object(body)
        return Listing([_stat(e) for e in o["entries"]], o["truncated"], _problems(o))

    return Call("GET", _fs(box, "/list", path=path, depth=depth, max_results=max_results), decode, repeatable=True)


def glob(box: str, path: str, pattern: str, include_dirs: bool, max_results: int) -> Call[Matches]:
    def decode(body: bytes) -> Matches:
        o = _object(body)
        paths = o["matches"]
        for e in o.get("encoded", ()):
            paths[e["index"]] = os.fsdecode(base64.b64decode(e["path_base64"]))
        return Matches(paths, o["truncated"], _problems(o))

    target = _fs(box, "/glob", path=path, pattern=pattern, include_dirs=include_dirs or None, max_results=max_results)
    return Call("GET", target, decode, repeatable=True)


def grep(
    box: str, path: str, pattern: str, files: str | None, literal: bool, case_sensitive: bool, max_results: int
) -> Call[Lines]:
    def decode(body: bytes) -> Lines:
        o = _object(body)
        return Lines(
            [Line(name_of(m), m["line_number"], m["line"]) for m in o["matches"]], o["truncated"], _problems(o)
        )

    flags = {"literal": literal or None, "case_sensitive": case_sensitive or None}
    return Call(
        "GET",
        _fs(box, "/grep", path=path, pattern=pattern, glob=files, max_results=max_results, **flags),
        decode,
        repeatable=True,
    )


def mkdir(box: str, path: str, parents: bool, mode: int | None) -> Call[bool]:
    target = _fs(box, "/mkdir", path=path, parents=parents or None, mode=None if mode is None else f"{mode:o}")
    return Call("POST", target, lambda b: bool(_object(b)["created"]), b"", repeatable=parents)


def remove(box: str, path: str, recursive: bool) -> Call[int]:
    return Call("DELETE", _fs(box, "", path=path, recursive=recursive or None), lambda b: int(_object(b)["removed"]))


def rename(box: str, old: str, new: str, overwrite: bool) -> Call[None]:
    return Call("POST", _fs(box, "/rename", **{"from": old, "to": new, "overwrite": overwrite or None}), _nothing, b"")


def put_tar(box: str, path: str, archive: bytes, overwrite: bool) -> Call[None]:
    target = target_of(f"/v1/boxes/{box}/files", {"path": path, "overwrite": None if overwrite else False})
    return Call("PUT", target, _nothing, archive, repeatable=overwrite)


def get_tar(box: str, path: str, follow: bool) -> Call[bytes]:
    return Call(
        "GET",
        target_of(f"/v1/boxes/{box}/files", {"path": path, "follow_symlinks": follow or None}),
        _raw,
        repeatable=True,
    )
