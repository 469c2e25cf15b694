"""Which requests of a service are under the rules. All others pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import rules

_ROUTE = re.compile(r"([A-Z]+) (/\S*)")
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Route:
    rule: str  # a name of Routes.find()
    method: str
    path: re.Pattern[str]


class Routes:
    """Routes are written as `POST /charges` and `DELETE /charges/by-key/{key}`; a {part} is anything but a slash."""

    def __init__(self, once: Sequence[str], undo: Sequence[str], look: Sequence[str], promise: Sequence[str]) -> None:
        self._routes: list[Route] = []
        for rule, routes in {"once": once, "undo": undo, "look": look, "promise": promise}.items():
            if isinstance(routes, str):
                raise TypeError(f"{rule}: a list of routes, not {routes!r} alone")
            for text in routes:
                self._add(rule, text)

    def _add(self, rule: str, text: str) -> None:
        parts = _ROUTE.fullmatch(text)
        if not parts:
            raise ValueError(f"{rule}: {text!r} is not like 'POST /charges/{{part}}'")
        method, path = parts.groups()
        if rule in ("undo", "look") and "key" not in _PART.findall(path):
            raise ValueError(f"{rule}: {text!r} has no {{key}}, which is the key of the request that it is about")
        pieces = _PART.split(path)  # text, name, text, name, ... text
        pattern = "".join(f"(?P<{each}>[^/]+)" if n % 2 else re.escape(each) for n, each in enumerate(pieces))
        self._routes.append(Route(rule, method, re.compile(pattern)))

    def find(self, method: str, path: str) -> tuple[str, str | None] | None:
        """Returns the rule for a request, and the key in its path."""
        for route in self._routes:
            found = route.path.fullmatch(path) if route.method == method else None
            if found:
                return route.rule, found.groupdict().get("key")
        return None


def rule_of(found: tuple[str, str | None], header: str | None, method: str, url: str, body: bytes) -> rules.Rule:
    rule, key = found
    if rule == "once":
        return rules.once(header, rules.fingerprint(method, url, body))
    if rule == "undo":
        return rules.undo(key)
    if rule == "look":
        return rules.look(key)
    return rules.promise()
