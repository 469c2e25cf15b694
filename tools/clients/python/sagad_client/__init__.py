"""A client of sagad. README.md shows it; talks.py is the file to read first."""

from . import routes, schema
from .asynchronous import AsyncOpenSaga, AsyncSagad
from .client import OpenSaga, Sagad
from .context import Trace, in_run, in_trace
from .outcome import Done, Failed, InFlight, NeedsPerson, NotDone, Outcome, Refused, Unknown, result_of
from .problem import SagadProblem, SagadUnreachable
from .schema import Operation, Problem, Saga
from .talks import SagaName
from .wire import ABSENT, Request

__all__ = [
    "ABSENT",
    "AsyncOpenSaga",
    "AsyncSagad",
    "Done",
    "Failed",
    "InFlight",
    "NeedsPerson",
    "NotDone",
    "OpenSaga",
    "Operation",
    "Outcome",
    "Problem",
    "Refused",
    "Request",
    "Saga",
    "SagaName",
    "Sagad",
    "SagadProblem",
    "SagadUnreachable",
    "Trace",
    "Unknown",
    "in_run",
    "in_trace",
    "result_of",
    "routes",
    "schema",
]
