"""The kit for services on WSGI, such as Flask and Django."""

from __future__ import annotations

import http
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeAlias

from . import rules
from .routing import Routes, rule_of
from .rules import Answer, Ended, Rule, Statement

Environ: TypeAlias = dict[str, Any]
StartResponse: TypeAlias = Callable[..., Any]
App: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]

BODY_BYTES_MAX = 1024 * 1024


class Participant:
    """A service, of which some routes are under the rules of the kit.

    `connect` returns a context manager that gives a connection of psycopg 3, and takes it back. The service
    finds it in `environ["sagad.sql"]`: all statements that go there are kept together with the answer, or not at all.
    An undo finds the answer to the request that it undoes in `environ["sagad.first"]`. `timeout_ms`: how long one
    statement may take, and how long the service may leave the transaction idle; then nothing is kept."""

    def __init__(
        self,
        app: App,
        connect: Callable[[], AbstractContextManager[Any]],
        *,
        once: Sequence[str],
        undo: Sequence[str] = (),
        look: Sequence[str] = (),
        promise: Sequence[str] = (),
        timeout_ms: int = 30_000,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self._app = app
        self._connect = connect
        self._routes = Routes(once, undo, look, promise)
        self._timeout_ms = timeout_ms
        self._body_bytes_max = body_bytes_max

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        found = self._routes.find(method, path)
        if found is None:
            return self._app(environ, start_response)
        query = environ.get("QUERY_STRING", "")
        url = environ.get("SCRIPT_NAME", "") + path + (f"?{query}" if query else "")
        body = self._body_of(environ)
        if isinstance(body, Answer):
            answer = body
        else:
            rule = rule_of(found, environ.get("HTTP_IDEMPOTENCY_KEY"), method, url, body)
            answer = self._perform(rule, environ, body)
        headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
        reason = http.HTTPStatus(answer.status).phrase if answer.status in list(http.HTTPStatus) else "Unknown"
        start_response(f"{answer.status} {reason}", [*headers, ("content-length", str(len(answer.body)))])
        return [answer.body]

    def _body_of(self, environ: Environ) -> bytes | Answer:
        text = environ.get("CONTENT_LENGTH") or ""
        is_chunked = environ.get("wsgi.input_terminated") is True and not text
        if not is_chunked and not text.isdecimal():
            return b"" if text == "" else rules.problem(400, "Content-Length is no number")
        size = self._body_bytes_max + 1 if is_chunked else int(text)
        if not is_chunked and size > self._body_bytes_max:
            return rules.problem(413, f"The body has more than {self._body_bytes_max} bytes")
        body: bytes = environ["wsgi.input"].read(size)
        if is_chunked and len(body) > self._body_bytes_max:
            return rules.problem(413, f"The body has more than {self._body_bytes_max} bytes")
        if not is_chunked and len(body) < size:
            return rules.problem(400, "The body is cut off")
        return body

    def _perform(self, rule: Rule, environ: Environ, body: bytes) -> Answer:
        """Answers only after the end of the transaction. An error keeps nothing, except that of a lost COMMIT: then
        nobody knows, the caller hears 500, and its repeat finds out."""
        with self._connect() as connection:
            if getattr(connection, "autocommit", False) is True:
                raise ValueError("a connection with autocommit has no transaction in which a request could be claimed")
            try:
                connection.rollback()  # whatever it was used for before
                for statement in rules.begin(self._timeout_ms):
                    self._execute(connection, statement)
                ended = self._advance(rule, connection, environ, body)
                if ended.keep:
                    connection.commit()
                else:
                    connection.rollback()
            except BaseException:
                with suppress(Exception):
                    connection.rollback()
                raise
        return ended.answer

    def _advance(self, rule: Rule, connection: Any, environ: Environ, body: bytes) -> Ended:
        heard: Any = None
        while True:
            try:
                wish = rule.send(heard)
            except StopIteration as end:
                ended: Ended = end.value
                return ended
            if isinstance(wish, Statement):
                heard = self._execute(connection, wish)
            else:
                more = {"sagad.sql": connection, "sagad.first": wish.first, "wsgi.input": io.BytesIO(body)}
                heard = self._work({**environ, **more, "CONTENT_LENGTH": str(len(body))})

    @staticmethod
    def _execute(connection: Any, statement: Statement) -> Mapping[str, Any] | None:
        cursor = connection.cursor()
        try:
            cursor.execute(statement.text, statement.values)
            return row_of(cursor.fetchone(), cursor.description) if cursor.description else None
        finally:
            cursor.close()

    def _work(self, environ: Environ) -> Answer:
        said: list[Any] = []
        written: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[..., None]:
            said[:] = [status, headers]
            return written.append

        chunks = self._app(environ, start_response)
        try:
            rest = b"".join(chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        if not said:
            raise RuntimeError("the service did not call start_response()")
        return Answer(int(said[0].split(" ", 1)[0]), b"".join(written) + rest, tuple(said[1]))


def row_of(row: Any, description: Sequence[Sequence[Any]]) -> Mapping[str, Any]:
    """Returns a row by the names of its columns, whatever form of rows the connection has."""
    if isinstance(row, Mapping):
        return row
    return dict(zip((column[0] for column in description), row, strict=True))
