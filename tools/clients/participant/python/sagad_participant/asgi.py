"""The kit for services on ASGI, such as Starlette and FastAPI."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias, Union

from . import rules
from .routing import Routes, rule_of
from .rules import Answer, Ended, Rule, Statement
from .wsgi import BODY_BYTES_MAX, row_of

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Connect: TypeAlias = Callable[[], Union[AbstractAsyncContextManager[Any], Awaitable[AbstractAsyncContextManager[Any]]]]


class Participant:
    """A service, of which some routes are under the rules of the kit.

    `connect` returns an asynchronous context manager, or what has to be awaited for one, that gives an AsyncConnection
    of psycopg 3 and takes it back. The service finds it in `scope["sagad.sql"]`: all statements that go there are kept
    together with the answer, or not at all. An undo finds the answer to the request that it undoes in
    `scope["sagad.first"]`. `timeout_ms`: how long one statement may take, and how long the service may leave the
    transaction idle; then nothing is kept."""

    def __init__(
        self,
        app: App,
        connect: Connect,
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._routes.find(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        body = await self._body_of(receive)
        if body is None:
            return  # the caller has left in the middle of its request
        if isinstance(body, Answer):
            answer = body
        else:
            path = scope.get("raw_path") or scope["path"].encode()
            query = scope.get("query_string", b"")
            url = (path + (b"?" + query if query else b"")).decode("latin-1")
            keys = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"idempotency-key"]
            rule = rule_of(found, keys[0] if len(keys) == 1 else None, scope["method"], url, body)
            answer = await self._perform(rule, scope, receive, body)
        headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
        headers.append(("content-length", str(len(answer.body))))
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        await send({"type": "http.response.body", "body": answer.body})

    async def _body_of(self, receive: Receive) -> bytes | Answer | None:
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            if len(body) > self._body_bytes_max:
                return rules.problem(413, f"The body has more than {self._body_bytes_max} bytes")
            if not message.get("more_body", False):
                return body

    async def _perform(self, rule: Rule, scope: Scope, receive: Receive, body: bytes) -> Answer:
        """Answers only after the end of the transaction. An error keeps nothing, except that of a lost COMMIT: then
        nobody knows, the caller hears 500, and its repeat finds out."""
        connecting = self._connect()
        async with (await connecting if inspect.isawaitable(connecting) else connecting) as connection:
            if getattr(connection, "autocommit", False) is True:
                raise ValueError("a connection with autocommit has no transaction in which a request could be claimed")
            try:
                await connection.rollback()  # whatever it was used for before
                for statement in rules.begin(self._timeout_ms):
                    await self._execute(connection, statement)
                ended = await self._advance(rule, connection, scope, receive, body)
                if ended.keep:
                    await connection.commit()
                else:
                    await connection.rollback()
            except BaseException:
                with suppress(Exception):
                    await connection.rollback()
                raise
        return ended.answer

    async def _advance(self, rule: Rule, connection: Any, scope: Scope, receive: Receive, body: bytes) -> Ended:
        heard: Any = None
        while True:
            try:
                wish = rule.send(heard)
            except StopIteration as end:
                ended: Ended = end.value
                return ended
            if isinstance(wish, Statement):
                heard = await self._execute(connection, wish)
            else:
                more = {"sagad.sql": connection, "sagad.first": wish.first}
                heard = await self._work({**scope, **more}, receive, body)

    @staticmethod
    async def _execute(connection: Any, statement: Statement) -> Mapping[str, Any] | None:
        async with connection.cursor() as cursor:
            await cursor.execute(statement.text, statement.values)
            return row_of(await cursor.fetchone(), cursor.description) if cursor.description else None

    async def _work(self, scope: Scope, receive: Receive, body: bytes) -> Answer:
        requests: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        started: list[Message] = []
        parts: list[bytes] = []

        async def replay() -> Message:
            return requests.pop() if requests else await receive()

        async def catch(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(scope, replay, catch)
        if not started:
            raise RuntimeError("the service did not answer")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in started[0].get("headers", [])]
        return Answer(started[0]["status"], b"".join(parts), tuple(headers))
