"""Drives the Python client as it is installed: one JSON line with an ask on standard input, one JSON line with what the
client says of it on standard output.

    drive_python.py [asyncio]      by Sagad, or by AsyncSagad

An ask has `url`, `token`, `verb` and what the verb takes; see cases.mjs. `tokens` are handed out one a request.
"""

import asyncio
import json
import sys
from contextlib import nullcontext

from sagad_client import AsyncSagad, Done, Sagad, SagadProblem, in_run, in_trace, result_of


class Error(Exception):
    """What the block of an open saga raises."""


def named(ask):
    names = {"patienceMs": "patience_ms", "onTimeout": "on_timeout"}
    return {names.get(name, name): value for name, value in ask.items()}


def error_of(error):
    name = "AggregateError" if isinstance(error, ExceptionGroup) else type(error).__name__
    return {"error": name, "message": str(error), **({"code": error.code} if isinstance(error, SagadProblem) else {})}


def outcome_of(outcome):
    if isinstance(outcome, Done):
        return {"kind": outcome.kind, "result": outcome.result, "replayed": outcome.replayed}
    code = getattr(outcome, "code", None)
    return {"kind": outcome.kind, **({"code": code} if code else {})}


def of_call(run, traceparent):
    trace = in_trace(traceparent) if traceparent else nullcontext()
    return in_run(run), trace


def name_of(ask):
    return ask.pop("sagaId", None) or (ask.pop("saga"), ask.pop("businessId"))


class Verbs:
    def __init__(self, sagad):
        self.sagad = sagad

    def start(self, saga, **ask):
        started = self.sagad.start(saga, **ask)
        return {"started": started["saga"], "id": started["id"]}

    def wait(self, **ask):
        return {"status": self.sagad.wait(name_of(ask), **ask)["status"]}

    def call(self, tool, run, traceparent=None, **ask):
        run, trace = of_call(run, traceparent)
        with run, trace:
            return outcome_of(self.sagad.call(tool, **ask))

    def open(self, calls, lenient=False, returns=None, throws=None, **ask):
        said = {"outcomes": []}
        try:
            with self.sagad.open(**ask) as saga:
                said["id"] = saga.id
                for n, each in enumerate(calls):  # by the context, and by name
                    outcome = (self.sagad if n % 2 == 0 else saga).call(**named(each))
                    said["outcomes"].append(outcome.kind)
                    if not lenient:
                        result_of(outcome)
                if throws:
                    raise Error(throws)
                if returns is not None:
                    saga.output = returns
            return {"value": returns, **said}
        except Exception as error:
            return {**error_of(error), **said}


class AsyncVerbs:
    def __init__(self, sagad):
        self.sagad = sagad

    async def start(self, saga, **ask):
        started = await self.sagad.start(saga, **ask)
        return {"started": started["saga"], "id": started["id"]}

    async def wait(self, **ask):
        return {"status": (await self.sagad.wait(name_of(ask), **ask))["status"]}

    async def call(self, tool, run, traceparent=None, **ask):
        run, trace = of_call(run, traceparent)
        with run, trace:
            return outcome_of(await self.sagad.call(tool, **ask))

    async def open(self, calls, lenient=False, returns=None, throws=None, **ask):
        said = {"outcomes": []}
        try:
            async with self.sagad.open(**ask) as saga:
                said["id"] = saga.id
                for n, each in enumerate(calls):
                    outcome = await (self.sagad if n % 2 == 0 else saga).call(**named(each))
                    said["outcomes"].append(outcome.kind)
                    if not lenient:
                        result_of(outcome)
                if throws:
                    raise Error(throws)
                if returns is not None:
                    saga.output = returns
            return {"value": returns, **said}
        except Exception as error:
            return {**error_of(error), **said}


def main(is_async):
    for line in sys.stdin:
        ask = json.loads(line)
        url, token, tokens, verb = ask.pop("url"), ask.pop("token"), ask.pop("tokens", None), ask.pop("verb")
        left = list(tokens or [])
        source = (lambda: left.pop(0) if len(left) > 1 else left[0]) if tokens else token
        try:
            if is_async:
                said = asyncio.run(getattr(AsyncVerbs(AsyncSagad(url, token=source)), verb)(**named(ask)))
            else:
                said = getattr(Verbs(Sagad(url, token=source)), verb)(**named(ask))
        except Exception as error:
            said = error_of(error)
        print(json.dumps(said), flush=True)


main(sys.argv[1:] == ["asyncio"])
