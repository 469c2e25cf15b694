"""The client for programs with asyncio: what `client.py` has, to be awaited.

Each request that is under way has a thread of its own, because the standard library has no HTTP for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeVar, cast

from . import talks
from .client import PATIENCE_MS
from .context import Trace, in_saga
from .outcome import Outcome
from .patience import Heard, Send, Talk
from .schema import Saga
from .talks import SagaName
from .transport import Exchange, Token, Transport
from .wire import ABSENT, Reply, Request

T = TypeVar("T")


class AsyncOpenSaga:
    """An open saga: calls that stand or fall together. It ends with the block that drives it."""

    def __init__(self, sagad: AsyncSagad, id: str) -> None:
        self._sagad = sagad
        self.id = id
        self.output: object = ABSENT  # what the saga is completed with

    async def call(
        self,
        tool: str,
        *,
        step: str | None = None,
        scope: str | None = None,
        args: object = ABSENT,
        turn: str | int | None = None,
        emission: str | None = None,
        patience_ms: int | None = None,
    ) -> Outcome:
        """Calls a tool in this saga: it is undone with the saga."""
        return await self._sagad.call_in_saga(
            self.id,
            tool,
            step=step,
            scope=scope,
            args=args,
            turn=turn,
            emission=emission,
            patience_ms=patience_ms,
        )


class AsyncSagad:
    """A sagad, as `Sagad`. A task that is cancelled waits no more; what it has sent may still happen. A `token` that is
    a function is called in the thread of the request."""

    def __init__(
        self,
        url: str,
        *,
        token: Token = None,
        patience_ms: int = PATIENCE_MS,
        trace: Callable[[], Trace | None] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport = Transport(url, token, tls)
        self._habits = talks.Habits(self._transport.server, patience_ms, trace)

    async def ask(self, request: Request[T]) -> T:
        """As Sagad.ask()."""
        return cast(T, await self._perform(talks.one(self._habits, request)))

    async def start(
        self,
        saga: str,
        *,
        id: str,
        input: object = ABSENT,
        tags: Mapping[str, str] | None = None,
        version: int | None = None,
        patience_ms: int | None = None,
    ) -> Saga:
        """As Sagad.start()."""
        body = talks.start_body(saga, id, input, tags, version)
        return await self._perform(talks.started(self._habits, body, patience_ms))

    async def wait(self, name: SagaName, *, patience_ms: int | None = None) -> Saga:
        """As Sagad.wait()."""
        return await self._perform(talks.wait(self._habits, name, patience_ms))

    async def call(
        self,
        tool: str,
        *,
        run: str | None = None,
        step: str | None = None,
        scope: str | None = None,
        args: object = ABSENT,
        turn: str | int | None = None,
        emission: str | None = None,
        patience_ms: int | None = None,
    ) -> Outcome:
        """As Sagad.call()."""
        body = talks.call_body(tool, step, scope, args, turn)
        return await self._perform(talks.call(self._habits, run, body, emission, patience_ms))

    async def call_in_saga(
        self,
        id: str,
        tool: str,
        *,
        step: str | None = None,
        scope: str | None = None,
        args: object = ABSENT,
        turn: str | int | None = None,
        emission: str | None = None,
        patience_ms: int | None = None,
    ) -> Outcome:
        """As Sagad.call_in_saga()."""
        body = talks.call_body(tool, step, scope, args, turn)
        return await self._perform(talks.call_in_saga(self._habits, id, body, emission, patience_ms))

    @asynccontextmanager
    async def open(
        self,
        *,
        id: str,
        deadline: str | None = None,
        on_timeout: Literal["abort", "escalate"] | None = None,
        tags: Mapping[str, str] | None = None,
        budget: Mapping[str, int] | None = None,
        loop: Mapping[str, int] | None = None,
        patience_ms: int | None = None,
    ) -> AsyncIterator[AsyncOpenSaga]:
        """As Sagad.open(). The saga of a task that is cancelled is aborted, too."""
        body = talks.open_body(id, deadline, on_timeout, tags, budget, loop)
        saga = AsyncOpenSaga(self, (await self._perform(talks.started(self._habits, body, patience_ms)))["id"])
        try:
            with in_saga(self._habits.server, saga.id):
                yield saga
        except BaseException as error:
            try:
                await self._perform(talks.abort(self._habits, saga.id, error))
            except Exception as abort_error:
                raise talks.unaborted(saga.id, error, abort_error) from None
            raise
        await self._perform(talks.complete(self._habits, saga.id, saga.output, patience_ms))

    async def _perform(self, talk: Talk[T]) -> T:
        heard: Heard = None
        while True:
            try:
                wish = talk.send(heard)
            except StopIteration as end:
                return cast(T, end.value)
            heard = None
            if isinstance(wish, Send):
                heard = await self._send(wish)
            else:
                await asyncio.sleep(wish.seconds)

    async def _send(self, wish: Send) -> Reply | Exception:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Reply | Exception] = loop.create_future()
        exchange = Exchange()

        def settle(heard: Reply | Exception) -> None:
            if not done.done():
                done.set_result(heard)

        def work() -> None:
            heard: Reply | Exception
            try:
                heard = self._transport.send(wish.request, wish.limit_s, exchange)
            except Exception as error:  # whatever it is: nobody knows whether the request has arrived
                heard = error
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, heard)

        threading.Thread(target=work, name="sagad", daemon=True).start()
        try:
            return await done
        except asyncio.CancelledError:
            exchange.cut()
            raise
