"""The client for programs without asyncio; `asynchronous.py` has the same for programs with it.

`talks.py` is the file to read first: it has all that is said to sagad."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeVar, cast

from . import talks
from .context import Trace, in_saga
from .outcome import Outcome
from .patience import Heard, Send, Talk
from .schema import Saga
from .talks import SagaName
from .transport import Token, Transport
from .wire import ABSENT, Request

T = TypeVar("T")

PATIENCE_MS = 60_000


class OpenSaga:
    """An open saga: calls that stand or fall together. It ends with the block that drives it."""

    def __init__(self, sagad: Sagad, id: str) -> None:
        self._sagad = sagad
        self.id = id
        self.output: object = ABSENT  # what the saga is completed with

    def call(
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
        return self._sagad.call_in_saga(
            self.id,
            tool,
            step=step,
            scope=scope,
            args=args,
            turn=turn,
            emission=emission,
            patience_ms=patience_ms,
        )


class Sagad:
    """A sagad. It may be used by many threads.

    `token`: a bearer token, or a function that returns the current one. `patience_ms`: how long a request is tried and
    waited for. `trace`: the trace of the moment, for tracers that keep it themselves; else that of in_trace()."""

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

    def ask(self, request: Request[T]) -> T:
        """Any route of the API, for what has no method here: `sagad.ask(routes.list_escalations())`. It retries
        nothing."""
        return cast(T, self._perform(talks.one(self._habits, request)))

    def start(
        self,
        saga: str,
        *,
        id: str,
        input: object = ABSENT,
        tags: Mapping[str, str] | None = None,
        version: int | None = None,
        patience_ms: int | None = None,
    ) -> Saga:
        """Starts a saga once: the same business id again gives the saga that is there. Returns when the start is
        durable."""
        body = talks.start_body(saga, id, input, tags, version)
        return self._perform(talks.started(self._habits, body, patience_ms))

    def wait(self, name: SagaName, *, patience_ms: int | None = None) -> Saga:
        """Waits for the end of a saga, and returns it as it is when it has ended or the patience is over: `ended_at`
        tells."""
        return self._perform(talks.wait(self._habits, name, patience_ms))

    def call(
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
        """Calls a tool. The same run, step, tool and scope is done once, whatever the arguments say and however often
        it is called. Raises only where the call itself is wrong, such as one without a run.

        `run`: without it the run or the open saga of the context counts. `step`, `scope`: what the call is for, and
        whom or what it is about; never of the arguments' wording, of counters or of attempts. `emission`: the id of
        this one request, where your framework has one; else a new one for each call of this method."""
        body = talks.call_body(tool, step, scope, args, turn)
        return self._perform(talks.call(self._habits, run, body, emission, patience_ms))

    def call_in_saga(
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
        """Calls a tool in an open saga, by the id of the saga."""
        body = talks.call_body(tool, step, scope, args, turn)
        return self._perform(talks.call_in_saga(self._habits, id, body, emission, patience_ms))

    @contextmanager
    def open(
        self,
        *,
        id: str,
        deadline: str | None = None,
        on_timeout: Literal["abort", "escalate"] | None = None,
        tags: Mapping[str, str] | None = None,
        budget: Mapping[str, int] | None = None,
        loop: Mapping[str, int] | None = None,
        patience_ms: int | None = None,
    ) -> Iterator[OpenSaga]:
        """Opens a saga for a block, and completes it with its `output` when the block ends. When the block raises, the
        saga is aborted: what was done is undone, and the exception goes on. When this process dies, the deadline undoes
        it. `id`: the business id; the same again is the same saga, so that a program goes on after a crash."""
        body = talks.open_body(id, deadline, on_timeout, tags, budget, loop)
        saga = OpenSaga(self, self._perform(talks.started(self._habits, body, patience_ms))["id"])
        try:
            with in_saga(self._habits.server, saga.id):
                yield saga
        except BaseException as error:
            try:
                self._perform(talks.abort(self._habits, saga.id, error))
            except Exception as abort_error:
                raise talks.unaborted(saga.id, error, abort_error) from None
            raise
        self._perform(talks.complete(self._habits, saga.id, saga.output, patience_ms))

    def _perform(self, talk: Talk[T]) -> T:
        heard: Heard = None
        while True:
            try:
                wish = talk.send(heard)
            except StopIteration as end:
                return cast(T, end.value)
            heard = None
            if not isinstance(wish, Send):
                time.sleep(wish.seconds)
                continue
            try:
                heard = self._transport.send(wish.request, wish.limit_s)
            except Exception as error:  # whatever it is: nobody knows whether the request has arrived
                heard = error
