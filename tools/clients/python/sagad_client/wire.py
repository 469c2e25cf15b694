"""What goes over the wire: a request, and what is heard of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")


class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()
"""Stands for a value that is not given, where None is the JSON value null."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request, whose answer is a T. The functions of `routes` make these."""

    method: str
    path: str  # quoted
    query: Mapping[str, Any] = field(default_factory=dict)  # None is left out
    headers: Mapping[str, str | None] = field(default_factory=dict)  # None is left out
    body: bytes | None = None
    is_text: bool = False  # the answer is text, not JSON

    @property
    def target(self) -> str:
        """The path with its query, as it is sent."""
        parts: list[str] = []
        for name, value in self.query.items():
            if isinstance(value, Mapping):  # tag.NAME=VALUE
                parts += [f"{segment(f'{name}.{key}')}={segment(each)}" for key, each in value.items()]
            elif isinstance(value, (list, tuple)):
                parts.append(f"{segment(name)}={','.join(segment(each) for each in value)}")
            elif value is not None:
                parts.append(f"{segment(name)}={segment(value)}")
        return f"{self.path}?{'&'.join(parts)}" if parts else self.path


@dataclass(frozen=True)
class Reply:
    """An answer, whoever gave it."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Returns the value in the body; None where there is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def text_of(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def segment(value: object) -> str:
    """Returns a value as one part of a path."""
    return quote(text_of(value), safe="!*'()")  # as encodeURIComponent(), so that all clients send the same


def json_of(value: object) -> bytes:
    """Returns the bytes of a body, made once: each try sends the same. A value that JSON cannot hold fails here, and
    nothing is sent."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def given(**members: object) -> dict[str, object]:
    """Returns the members that are given."""
    return {name: value for name, value in members.items() if value is not ABSENT}
