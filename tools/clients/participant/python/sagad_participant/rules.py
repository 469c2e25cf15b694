"""Requests that take effect once: each is claimed in the transaction of its effect, and its first answer is kept there.

participant.sql has the rules; this file runs them in the right order and words the answers. It is written once for both
kinds of services, as generators that yield what they need: a Statement, which is answered with its row, or the Work of
the service, which is answered with the service's Answer. wsgi.py and asgi.py perform it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

Headers: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Statement:
    text: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True)
class Work:
    """What the service does. `first`: the answer to the request that it undoes."""

    first: Answer | None = None


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Headers = ()

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Ended:
    keep: bool
    answer: Answer


Row: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Generator[Union[Statement, Work], Any, Ended]

_KEY = re.compile(r"[\x21-\x7e]{1,255}")

# Statuses after which sagad repeats the request: nothing of it may be kept. All others below 500 are final.
_PASSING = frozenset({408, 409, 425, 429})


def _is_final(status: int) -> bool:
    return status < 500 and status not in _PASSING


def _reply(status: int, body: bytes, *headers: tuple[str, str]) -> Answer:
    return Answer(status, body, (("content-type", "application/json"), *headers))


def problem(status: int, title: str, *headers: tuple[str, str]) -> Answer:
    body = json.dumps({"title": title, "status": status}).encode()
    return Answer(status, body, (("content-type", "application/problem+json"), *headers))


def _no_key() -> Ended:
    return _dropped(problem(400, "Idempotency-Key is missing, or is not 1 to 255 visible characters"))


def _under_way() -> Ended:
    return _dropped(problem(409, "The same request is under way", ("retry-after", "1")))


def _kept(answer: Answer) -> Ended:
    return Ended(True, answer)


def _dropped(answer: Answer) -> Ended:
    return Ended(False, answer)


def fingerprint(method: str, url: str, body: bytes) -> str:
    """Two requests that a service reads as the same ask for the same."""
    what: object = None
    if body:
        try:
            what = json.loads(body)
        except (ValueError, RecursionError):
            what = {"bytes": body.hex()}
    text = json.dumps([method, url, what], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def begin(timeout_ms: int) -> list[Statement]:
    """What comes first in the transaction."""
    limits = "set_config('statement_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true)"
    return [
        Statement("set transaction isolation level read committed"),
        Statement(f"select {limits}", (f"{timeout_ms}ms", f"{timeout_ms}ms")),
    ]


def once(key: str | None, asked: str) -> Rule:
    """Does the work once for a key. Its statements are kept together with its answer, or not at all. Statuses from 400
    on undo its statements; a final one is the answer to each repeat, too."""
    if key is None or not _KEY.fullmatch(key):
        return _no_key()
    row: Row = yield Statement(
        "select verdict, status, answer::text as answer from sagad_participant.claim(%s, %s)", (key, asked)
    )
    verdict = row["verdict"]
    if verdict == "repeat":
        return _kept(_reply(row["status"], (row["answer"] or "null").encode(), ("idempotent-replayed", "true")))
    if verdict == "under_way":
        return _under_way()
    if verdict == "differs":
        return _dropped(problem(422, "This Idempotency-Key came with another request before"))
    if verdict == "void":
        return _dropped(problem(410, "This request was undone before it came"))
    yield Statement("savepoint work")
    said: Answer = yield Work()
    if not 200 <= said.status <= 599:
        raise ValueError(f"an answer has a status of 200 to 599, not {said.status}")
    if not _is_final(said.status):
        return _dropped(said)
    body = _json_of(said)
    if said.status >= 400:
        yield Statement("rollback to savepoint work")
    yield Statement("select sagad_participant.settle(%s, %s, %s)", (key, said.status, body.decode()))
    return _kept(_reply(said.status, body))


def _json_of(said: Answer) -> bytes:
    """Returns the answer as it is kept, which is JSON. Frameworks word their own refusals in HTML: of those the status
    is kept."""
    if not said.body:
        return b"null"
    try:
        said.json()
    except (ValueError, RecursionError):
        if said.status < 400:
            raise ValueError("the answer to what takes effect has to be JSON, so that it can be kept") from None
        return problem(said.status, "The request was refused").body
    return said.body


def undo(key: str | None) -> Rule:
    """Undoes once what was done under a key. A key that never came is refused from now on."""
    if key is None or not _KEY.fullmatch(key):
        return _no_key()
    row: Row = yield Statement(
        "select verdict, status, answer::text as answer from sagad_participant.undo(%s)", (key,)
    )
    if row["verdict"] == "under_way":
        return _under_way()
    if row["verdict"] == "new":
        said: Answer = yield Work(_reply(row["status"], (row["answer"] or "null").encode()))
        if said.status >= 400:
            return _dropped(said)
    return _kept(_reply(200, json.dumps({"undone": row["verdict"] != "nothing"}).encode()))


def look(key: str | None) -> Rule:
    """Says what became of a key, for the probe of a tool: 200 when it took effect, 404 when not, 409 while under
    way."""
    if key is None or not _KEY.fullmatch(key):
        return _no_key()
    row: Row = yield Statement(
        "select verdict, status, answer::text as answer, undone from sagad_participant.look(%s)", (key,)
    )
    if row["verdict"] == "under_way":
        return _under_way()
    if row["verdict"] != "done":
        return _dropped(problem(404, "No request with this key took effect"))
    known = {"status": row["status"], "answer": json.loads(row["answer"] or "null"), "undone": row["undone"]}
    return _dropped(_reply(200, json.dumps(known).encode()))


def promise() -> Rule:
    """Says how long keys are kept: `key.window` of a tool may be that long."""
    row: Row = yield Statement(
        "select floor(extract(epoch from kept_for))::int8::text as seconds from sagad_participant.promise"
    )
    window = {"header": "Idempotency-Key", "window": f"{row['seconds']}s"}
    return _dropped(_reply(200, json.dumps(window).encode()))
