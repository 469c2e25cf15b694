"""Refusals that sagad words itself (RFC 9457), and the lack of any answer."""

from __future__ import annotations

from typing import Any, cast

from .schema import Problem

_PREFIX = "urn:sagad:problem:"


def read_problem(body: Any) -> Problem | None:
    """Returns the problem document in a body; None where a proxy, and not sagad, has answered."""
    if not isinstance(body, dict):
        return None
    kind, status = body.get("type"), body.get("status")
    is_ours = isinstance(kind, str) and kind.startswith(_PREFIX)
    is_whole = isinstance(status, int) and isinstance(body.get("detail"), str)
    return cast(Problem, body) if is_ours and is_whole and isinstance(body.get("retryable"), bool) else None


def code_of(problem: Problem) -> str:
    return problem["type"][len(_PREFIX) :]


# Refusals with a status of 5xx behind which nothing was sent.
_NOT_SENT = frozenset({"breaker-open", "held", "busy"})

_UNDER_WAY = frozenset({"in-flight", "call-under-way", "probe-under-way"})


def is_under_way(problem: Problem) -> bool:
    """True where the same operation goes on."""
    return code_of(problem) in _UNDER_WAY


def leaves_doubt(problem: Problem) -> bool:
    """True where the request may have had an effect although it was refused."""
    return problem["status"] >= 500 and code_of(problem) not in _NOT_SENT


class SagadProblem(Exception):
    """sagad has refused the request, and says why."""

    def __init__(self, problem: Problem, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{problem.get('title', '')}: {problem['detail']}")
        self.problem = problem
        self.code = code_of(problem)
        self.retry_after_ms = retry_after_ms


class SagadUnreachable(Exception):
    """No answer of sagad came in time. Nobody can say whether the request has arrived; making it again is safe."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was not answered in time; it may have arrived. Ask again: it is the same request")
