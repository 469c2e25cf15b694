"""One logical request, sent as often as the API calls it safe, until its time is over.

What a client does is written once, as generators that yield what they need: a Send, which is answered with a Reply or
with the exception of a try that was not answered, or a Pause. `client.py` and `asynchronous.py` perform it.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, Union

from .problem import code_of, is_under_way, leaves_doubt, read_problem
from .schema import Problem
from .wire import Reply, Request


@dataclass(frozen=True)
class Send:
    request: Request[Any]
    limit_s: float  # for the whole exchange


@dataclass(frozen=True)
class Pause:
    seconds: float


T = TypeVar("T")
Heard: TypeAlias = Union[Reply, Exception, None]
Talk: TypeAlias = Generator[Union[Send, Pause], Heard, T]


@dataclass(frozen=True)
class Answered:
    data: Any
    reply: Reply


@dataclass(frozen=True)
class TurnedDown:
    problem: Problem
    retry_after_ms: int | None
    may_have_arrived: bool


@dataclass(frozen=True)
class Unheard:
    cause: Exception


Answer: TypeAlias = Union[Answered, TurnedDown, Unheard]

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_LONGEST_WAIT_MS = 60_000
GRACE_S = 15.0  # beside the wait that sagad was asked for


def retry_after_ms(reply: Reply) -> int | None:
    text = reply.headers.get("retry-after", "")
    return int(text) * 1000 if re.fullmatch(r"[0-9]{1,6}", text) else None


def _never(_: Any) -> bool:
    return False


def ask(
    patience_ms: int,
    make: Callable[[int], Request[Any]],
    *,
    is_enough: Callable[[str], bool] = _never,  # a problem ends the request although it is retryable
    is_early: Callable[[Answered], bool] = _never,  # an answer is not the last one
) -> Talk[Answer]:
    """Sends what `make` makes of the time for which sagad may hold its answer, until an answer stands or the time is
    over. A request that had no answer is sent again: whoever calls this has named it, so that sagad knows it again."""
    end = time.monotonic() + patience_ms / 1000
    may_have_arrived = False
    tries = 0
    while True:
        left_ms = max(end - time.monotonic(), 0) * 1000
        wait_ms = round(min(left_ms, _LONGEST_WAIT_MS))
        heard = yield Send(make(wait_ms), wait_ms / 1000 + GRACE_S)
        after_ms: int | None = None
        answer: Answer
        if isinstance(heard, Reply):
            data = heard.json()
            problem = None if heard.is_ok else read_problem(data)
            after_ms = retry_after_ms(heard)
            if heard.is_ok and isinstance(data, dict):
                answer = Answered(data, heard)
                if not is_early(answer):
                    return answer
                may_have_arrived = True
            elif problem is not None:
                answer = TurnedDown(problem, after_ms, may_have_arrived)
                if not problem["retryable"] or is_enough(code_of(problem)):
                    return answer
                may_have_arrived = may_have_arrived or is_under_way(problem) or leaves_doubt(problem)
            else:
                answer = Unheard(ValueError(f"an answer with the status {heard.status}, not of sagad"))
                may_have_arrived = True
        else:
            answer = Unheard(heard or ConnectionError("no answer"))
            may_have_arrived = True
        backoff_s = min(_FIRST_PAUSE_S * 2 ** min(tries, 10), _LONGEST_PAUSE_S)
        pause_s = max((after_ms or 0) / 1000, backoff_s * random.uniform(0.5, 1))
        if time.monotonic() + pause_s >= end:
            return answer
        yield Pause(pause_s)
        tries += 1
