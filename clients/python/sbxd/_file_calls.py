"""The requests about files of a box: how each is written, how its answer is read."""

from __future__ import annotations

import base64
import os
from datetime import datetime
from typing import Any, Mapping

from ._call import Call, as_nothing, as_object, as_raw
from ._http import target_of
from .types import Line, Lines, Listing, Matches, Problem, Stat, name_of


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
    return Call("GET", target, as_raw, repeatable=True)


def write(box: str, path: str, data: bytes, append: bool, mode: int | None) -> Call[int]:
    target = _fs(box, "/write", path=path, append=append or None, mode=None if mode is None else f"{mode:o}")
    return Call("PUT", target, lambda b: int(as_object(b)["bytes"]), data, repeatable=not append)


def stat(box: str, path: str, follow: bool) -> Call[Stat]:
    return Call(
        "GET", _fs(box, "/stat", path=path, follow=follow or None), lambda b: _stat(as_object(b)), repeatable=True
    )


def list_dir(box: str, path: str, depth: int, max_results: int) -> Call[Listing]:
    def decode(body: bytes) -> Listing:
        o = as_object(body)
        return Listing([_stat(e) for e in o["entries"]], o["truncated"], _problems(o))

    return Call("GET", _fs(box, "/list", path=path, depth=depth, max_results=max_results), decode, repeatable=True)


def glob(box: str, path: str, pattern: str, include_dirs: bool, max_results: int) -> Call[Matches]:
    def decode(body: bytes) -> Matches:
        o = as_object(body)
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
        o = as_object(body)
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
    return Call("POST", target, lambda b: bool(as_object(b)["created"]), b"", repeatable=parents)


def remove(box: str, path: str, recursive: bool) -> Call[int]:
    return Call("DELETE", _fs(box, "", path=path, recursive=recursive or None), lambda b: int(as_object(b)["removed"]))


def rename(box: str, old: str, new: str, overwrite: bool) -> Call[None]:
    return Call(
        "POST", _fs(box, "/rename", **{"from": old, "to": new, "overwrite": overwrite or None}), as_nothing, b""
    )


def put_tar(box: str, path: str, archive: bytes, overwrite: bool) -> Call[None]:
    target = target_of(f"/v1/boxes/{box}/files", {"path": path, "overwrite": None if overwrite else False})
    return Call("PUT", target, as_nothing, archive, repeatable=overwrite)


def get_tar(box: str, path: str, follow: bool) -> Call[bytes]:
    return Call(
        "GET",
        target_of(f"/v1/boxes/{box}/files", {"path": path, "follow_symlinks": follow or None}),
        as_raw,
        repeatable=True,
    )
