from dataclasses import dataclass


@dataclass(frozen=True)
class GrepMatch:
    path: str
    line_number: int
    line: str
