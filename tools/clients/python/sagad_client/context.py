"""What a call takes from where it is made: its run, the open saga that it belongs to, and its trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Trace:
    """A trace by W3C Trace Context."""

    traceparent: str
    tracestate: str | None = None


@dataclass(frozen=True)
class InRun:
    run: str


@dataclass(frozen=True)
class InSaga:
    server: str
    saga: str


# A call belongs to a run or to an open saga, and the inner one of the two counts.
_belonging: ContextVar[InRun | InSaga | None] = ContextVar("sagad_belonging", default=None)
_trace: ContextVar[Trace | None] = ContextVar("sagad_trace", default=None)


def current_belonging() -> InRun | InSaga | None:
    return _belonging.get()


def current_trace() -> Trace | None:
    return _trace.get()


@contextmanager
def in_run(run: str) -> Iterator[None]:
    """Calls that are made within it belong to the run: the same step, tool and scope in it is done once. Take the run
    from what your framework restores after a crash, such as the id of a job or of a conversation."""
    with _belongs(InRun(run)):
        yield


@contextmanager
def in_saga(server: str, saga: str) -> Iterator[None]:
    with _belongs(InSaga(server, saga)):
        yield


@contextmanager
def in_trace(traceparent: str, tracestate: str | None = None) -> Iterator[None]:
    """Requests that are made within it carry this trace, and sagad hands it to the tools."""
    before = _trace.set(Trace(traceparent, tracestate))
    try:
        yield
    finally:
        _trace.reset(before)


@contextmanager
def _belongs(belonging: InRun | InSaga) -> Iterator[None]:
    before = _belonging.set(belonging)
    try:
        yield
    finally:
        _belonging.reset(before)
