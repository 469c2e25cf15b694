"""What became of a call. `Refused` promises that this call took no effect; in doubt it is `Unknown`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Union

from .problem import code_of, is_under_way, leaves_doubt
from .schema import Operation, Problem


@dataclass(frozen=True)
class Done:
    """It happened, once. `replayed`: an earlier call did it, and this is its answer again."""

    result: Any
    operation: Operation
    replayed: bool
    first_at: str | None = None
    kind: Literal["Done"] = "Done"


@dataclass(frozen=True)
class InFlight:
    """It goes on without us. Make the same call again to hear of its end."""

    detail: str
    operation: Operation | None = None
    retry_after_ms: int | None = None
    kind: Literal["InFlight"] = "InFlight"


@dataclass(frozen=True)
class Unknown:
    """Nobody can say whether it happened. Never work around it: make the same call again later. `code` is None where no
    answer came at all."""

    detail: str
    code: str | None = None
    operation: Operation | None = None
    problem: Problem | None = None
    retry_after_ms: int | None = None
    cause: Exception | None = None
    kind: Literal["Unknown"] = "Unknown"


@dataclass(frozen=True)
class NeedsPerson:
    """A person has to decide first. Tell the user, and make the same call again later."""

    code: str
    detail: str
    problem: Problem
    operation: Operation | None = None
    kind: Literal["NeedsPerson"] = "NeedsPerson"


@dataclass(frozen=True)
class Failed:
    """The tool was called, and it certainly took no effect. `retryable`: a new call may fare better once the cause is
    mended."""

    code: str
    detail: str
    retryable: bool
    problem: Problem
    operation: Operation | None = None
    retry_after_ms: int | None = None
    kind: Literal["Failed"] = "Failed"


@dataclass(frozen=True)
class Refused:
    """sagad did not let this call through, so it did not happen. `detail` is written for people and for models.
    `retryable`: it may be done later. With the code `duplicate-call` an earlier call did happen, and `operation` is its
    record."""

    code: str
    detail: str
    retryable: bool
    problem: Problem
    operation: Operation | None = None
    retry_after_ms: int | None = None
    kind: Literal["Refused"] = "Refused"


NotDoneOutcome: TypeAlias = Union[Failed, InFlight, Unknown, NeedsPerson, Refused]
Outcome: TypeAlias = Union[Done, NotDoneOutcome]


class NotDone(Exception):
    """A call is not done, and the program said that it needs its result."""

    def __init__(self, outcome: NotDoneOutcome) -> None:
        super().__init__(f"{outcome.kind}: {outcome.detail}")
        self.outcome = outcome


def result_of(outcome: Outcome) -> Any:
    """Returns the result, or raises NotDone: in an open saga that undoes what was done before."""
    if isinstance(outcome, Done):
        return outcome.result
    raise NotDone(outcome)


_FOR_PERSONS = frozenset({"awaiting-operator", "paused"})

# Refusals that hold for the operation itself: they count even where an earlier try of this call had no answer.
_OF_THE_OPERATION = frozenset({"arguments-differ", "duplicate-call", "expired", "blocked-by-precheck"})


def ends_call(code: str) -> bool:
    """True where it makes no sense to ask again at once, although the problem says `retryable`: a person has to act
    first, or the failure belongs to this emission."""
    return code in _FOR_PERSONS or code in ("outcome-unknown", "tool-failed")


def outcome_of_problem(problem: Problem, retry_after_ms: int | None, may_have_arrived: bool) -> NotDoneOutcome:
    """`may_have_arrived`: an earlier try of this call had no answer, or was told that it goes on."""
    code, detail, operation = code_of(problem), problem["detail"], problem.get("operation")
    if is_under_way(problem):
        return InFlight(detail, operation, retry_after_ms)
    if code in _FOR_PERSONS:
        return NeedsPerson(code, detail, problem, operation)
    if code == "tool-failed":
        return Failed(code, detail, problem["retryable"], problem, operation, retry_after_ms)
    is_certain = code in _OF_THE_OPERATION or (not may_have_arrived and not leaves_doubt(problem))
    if code == "outcome-unknown" or not is_certain:
        return Unknown(detail, code, operation, problem, retry_after_ms)
    return Refused(code, detail, problem["retryable"], problem, operation, retry_after_ms)
