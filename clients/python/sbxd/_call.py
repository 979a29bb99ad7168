"""A request that a client makes, and what its body and its answer are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Callable, Generic, Mapping, Sequence, TypeVar

from ._errors import BadAnswer

T_co = TypeVar("T_co", covariant=True)
Command = str | Sequence[str]  # a line for the shell, or a program and its arguments
Env = Mapping[str, str] | None

NO_HEADERS: tuple[tuple[str, str], ...] = ()


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


def of_generation(call: Call[T_co], generation: int) -> Call[T_co]:
    """The call for that box only, and not for one that has taken its place: StaleGeneration."""
    return replace(call, headers=(*call.headers, generation_header(generation)))


def generation_header(generation: int) -> tuple[str, str]:
    return "X-Box-Generation", str(generation)


def to_json(members: Mapping[str, Any]) -> bytes:
    return json.dumps({k: v for k, v in members.items() if v is not None}, separators=(",", ":")).encode()


def as_object(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as e:
        raise BadAnswer(f"no JSON: {e}: {body[:200]!r}") from e


def as_nothing(body: bytes) -> None:
    return None


def as_raw(body: bytes) -> bytes:
    return body


def object_call(target: str) -> Call[dict[str, Any]]:
    return Call("GET", target, as_object, repeatable=True)
