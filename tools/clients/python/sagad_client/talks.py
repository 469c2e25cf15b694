"""What a client says to sagad, without how it is sent: each function names its request once, sends it as often as the
API calls that safe, and says what became of it. The same name makes it the same request, so nothing happens twice."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, Union, cast

from .context import InRun, InSaga, Trace, current_belonging, current_trace
from .outcome import Done, InFlight, NotDoneOutcome, Outcome, Unknown, ends_call, outcome_of_problem
from .patience import GRACE_S, Answer, Answered, Send, Talk, TurnedDown, Unheard, ask, retry_after_ms
from .problem import SagadProblem, SagadUnreachable, code_of, read_problem
from .schema import Operation, Saga
from .transport import trace_headers
from .wire import ABSENT, Reply, Request, given, json_of, segment

SagaName: TypeAlias = Union[str, tuple[str, str]]
"""A saga by its id, or by its definition and business id."""

_EMISSION = re.compile(r"[^\x00-\x1f\x7f]+")
_EMISSION_BYTES_MAX = 256
_NOTE_LENGTH = 500  # sagad takes 1000 bytes, and most characters have at most two


@dataclass(frozen=True)
class Habits:
    """What a client was told when it was made."""

    server: str
    patience_ms: int
    trace: Callable[[], Trace | None] | None

    def headers(self) -> dict[str, str]:
        trace = (self.trace() if self.trace else None) or current_trace()
        return trace_headers(trace.traceparent, trace.tracestate) if trace else {}

    def of(self, patience_ms: int | None) -> int:
        return self.patience_ms if patience_ms is None else patience_ms


def _fail(answer: TurnedDown | Unheard, what: str) -> NoReturn:
    if isinstance(answer, TurnedDown):
        raise SagadProblem(answer.problem, answer.retry_after_ms)
    raise SagadUnreachable(what) from answer.cause


def _answered(answer: Answer, what: str) -> Any:
    if isinstance(answer, Answered):
        return answer.data
    _fail(answer, what)


def one(habits: Habits, request: Request[Any]) -> Talk[Any]:
    """Any route, once: it retries nothing."""
    headers: dict[str, str | None] = {**habits.headers(), **request.headers}
    sent = Request[Any](request.method, request.path, request.query, headers, request.body)
    heard = yield Send(sent, habits.patience_ms / 1000 + GRACE_S)
    if not isinstance(heard, Reply):
        raise SagadUnreachable(f"{request.method} {request.path}") from heard
    if heard.is_ok and request.is_text:
        return heard.body.decode(errors="replace")
    data = heard.json()
    problem = read_problem(data)
    if problem is not None:
        raise SagadProblem(problem, retry_after_ms(heard))
    if not isinstance(data, (dict, list)):
        raise SagadUnreachable(f"{request.method} {request.path}") from ValueError(f"the status {heard.status}")
    return data  # 503 of /readyz has the same form as its 200


def started(habits: Habits, body: dict[str, object], patience_ms: int | None) -> Talk[Saga]:
    headers, text = habits.headers(), json_of(body)
    answer = yield from ask(
        habits.of(patience_ms), lambda _: Request("POST", "/v1/sagas", headers=headers, body=text)
    )
    saga = _answered(answer, "the start of a saga")
    if not isinstance(saga.get("id"), str):
        raise SagadUnreachable("the start of a saga")
    if "status" in saga:
        return cast(Saga, saga)
    read = yield from ask(habits.of(patience_ms), lambda _: Request("GET", _path_of(saga["id"]), headers=headers))
    return cast(Saga, _answered(read, f"the saga {saga['id']} is started; the question for it"))


def start_body(
    saga: str, id: str, input: object, tags: Mapping[str, str] | None, version: int | None
) -> dict[str, object]:
    return {
        "saga": saga,
        "id": id,
        **({"tags": dict(tags)} if tags is not None else {}),
        **({"version": version} if version is not None else {}),
        **given(input=input),
    }


def open_body(
    id: str,
    deadline: str | None,
    on_timeout: str | None,
    tags: Mapping[str, str] | None,
    budget: Mapping[str, int] | None,
    loop: Mapping[str, int] | None,
) -> dict[str, object]:
    members: dict[str, object] = {
        "open": True,
        "id": id,
        "deadline": deadline,
        "on_timeout": on_timeout,
        "tags": tags,
        "budget": budget,
        "loop": loop,
    }
    return {name: value for name, value in members.items() if value is not None}


def call_body(
    tool: str, step: str | None, scope: str | None, args: object, turn: str | int | None
) -> dict[str, object]:
    return {
        "tool": tool,
        **({"step": step} if step is not None else {}),
        **({"scope": scope} if scope is not None else {}),
        **given(args=args),
        **({"turn": turn} if turn is not None else {}),
    }


def _path_of(id: str) -> str:
    return f"/v1/sagas/{segment(id)}"


def _wait_of(wait_ms: int) -> dict[str, str]:
    return {"wait": f"{wait_ms}ms"}


def wait(habits: Habits, name: SagaName, patience_ms: int | None) -> Talk[Saga]:
    if isinstance(name, str):
        path = _path_of(name)
    else:
        path = f"/v1/sagas/by-business-id/{segment(name[0])}/{segment(name[1])}"
    headers = habits.headers()
    answer = yield from ask(
        habits.of(patience_ms),
        lambda wait_ms: Request("GET", path, _wait_of(wait_ms), headers),
        is_early=lambda answered: answered.data.get("ended_at") is None,
    )
    return cast(Saga, _answered(answer, "the question for a saga"))


def call(
    habits: Habits, run: str | None, body: dict[str, object], emission: str | None, patience_ms: int | None
) -> Talk[Outcome]:
    """A call of the run that is named, or of the run or the open saga of the context."""
    belonging = InRun(run) if run is not None else current_belonging()
    if belonging is None:
        raise TypeError("a call belongs to a run: give `run`, or call it within in_run() or open()")
    if isinstance(belonging, InRun):
        return _call(habits, "/v1/operations", {"run": belonging.run, **body}, emission, patience_ms)
    if belonging.server != habits.server:
        raise TypeError("the open saga of this context is one of another server")
    return call_in_saga(habits, belonging.saga, body, emission, patience_ms)


def call_in_saga(
    habits: Habits, saga: str, body: dict[str, object], emission: str | None, patience_ms: int | None
) -> Talk[Outcome]:
    return _call(habits, f"{_path_of(saga)}/calls", body, emission, patience_ms)


def _call(
    habits: Habits, path: str, body: dict[str, object], emission: str | None, patience_ms: int | None
) -> Talk[Outcome]:
    name = emission if emission is not None else str(uuid.uuid4())
    if not _EMISSION.fullmatch(name) or len(name.encode()) > _EMISSION_BYTES_MAX:
        raise ValueError(f"an emission has 1 to {_EMISSION_BYTES_MAX} bytes and no control characters")
    headers, text = {**habits.headers(), "Idempotency-Key": name}, json_of(body)
    answer = yield from ask(
        habits.of(patience_ms),
        lambda wait_ms: Request("POST", path, _wait_of(wait_ms), headers, text),
        is_enough=ends_call,
        is_early=lambda answered: answered.reply.status == 202,
    )
    return _outcome(answer)


def _outcome(answer: Answer) -> Done | NotDoneOutcome:
    if isinstance(answer, TurnedDown):
        return outcome_of_problem(answer.problem, answer.retry_after_ms, answer.may_have_arrived)
    if isinstance(answer, Unheard):
        return Unknown(str(SagadUnreachable("the call")), cause=answer.cause)
    operation: Operation = answer.data
    if operation.get("state") != "completed":
        return InFlight("the wait is over, and the operation goes on", operation)
    headers = answer.reply.headers
    return Done(
        operation.get("result"),
        operation,
        replayed=headers.get("idempotent-replayed") == "true",
        first_at=headers.get("idempotent-first-at"),
    )


def complete(habits: Habits, saga: str, output: object, patience_ms: int | None) -> Talk[None]:
    headers, text = habits.headers(), json_of(given(output=output))
    answer = yield from ask(
        habits.of(patience_ms),
        lambda wait_ms: Request("POST", f"{_path_of(saga)}/complete", _wait_of(wait_ms), headers, text),
    )
    _answered(answer, f"the end of the saga {saga}")


def abort(habits: Habits, saga: str, error: BaseException) -> Talk[None]:
    headers, text = habits.headers(), json_of({"note": note_of(error)})
    answer = yield from ask(
        habits.patience_ms, lambda _: Request("POST", f"{_path_of(saga)}/abort", headers=headers, body=text)
    )
    # An earlier try whose answer was lost, or the deadline, came first.
    if isinstance(answer, TurnedDown) and code_of(answer.problem) == "ended":
        ended = yield from wait(habits, saga, None)
        if ended["status"] == "compensated":
            return
    _answered(answer, f"the abort of the saga {saga}")


def note_of(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ fails
        text = type(error).__name__
    text = re.sub(r"[\x00-\x1f\x7f]+", " ", text)[:_NOTE_LENGTH].strip()
    return text.encode(errors="replace").decode()


def unaborted(saga: str, error: BaseException, abort_error: Exception) -> BaseException:
    """Returns what to raise where the saga failed and its abort failed as well."""
    what = f"the saga {saga} failed, and was not aborted: {abort_error}"
    if isinstance(error, Exception):
        return ExceptionGroup(what, [error, abort_error])
    error.add_note(what)  # what ends the program or its task has to stay what it is
    return error
