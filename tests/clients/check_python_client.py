"""What the exchanges do not show of the Python client: what is wrong before anything is sent, what ends a program or
its task, servers that drip or break off, and routes without a method.

    check_python_client.py      with SAGAD_URL and SAGAD_TOKEN in the environment
"""

import asyncio
import http.client
import os
import socket
import threading
from contextlib import contextmanager

from sagad_client import AsyncSagad, Sagad, SagadProblem, SagadUnreachable, Trace, in_run, in_trace, result_of, routes
from sagad_client.transport import Transport
from sagad_client.wire import Request

URL, TOKEN = os.environ["SAGAD_URL"], os.environ["SAGAD_TOKEN"]
sagad = Sagad(URL, token=TOKEN)


def raises(kind, work):
    try:
        work()
    except kind as error:
        return error
    raise AssertionError(f"no {kind}")


@contextmanager
def server(answer):
    """Somebody who is not sagad, for one request. `answer` is told its text, and a socket."""

    def serve():
        connection, _ = listener.accept()
        with connection:
            text = b""
            while b"\r\n\r\n" not in text:
                text += connection.recv(65536)
            answer(text.decode(), connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/base"
        thread.join()


# Nothing is sent: nobody listens there, and a request that was sent would be tried for a minute.
nobody = Sagad("http://127.0.0.1:1", token="t")
raises(TypeError, lambda: nobody.call("say"))
raises(ValueError, lambda: nobody.call("say", run="r", args=float("nan")))
raises(TypeError, lambda: nobody.call("say", run="r", args={1, 2}))
raises(ValueError, lambda: nobody.call("say", run="r", emission="a\nb"))
raises(ValueError, lambda: nobody.call("say", run="r", emission="é" * 129))
for url in ("127.0.0.1:8077", "ftp://a", "http://", "http://user@a", "http://a/?b"):
    raises(ValueError, lambda: Sagad(url))
with sagad.open(id="p-1"):
    assert "another server" in str(raises(TypeError, lambda: nobody.call("say")))
    with in_run("p-1-run"):
        assert result_of(sagad.call("say", args=[1])) == [1]  # the inner one counts


# What ends the program, or its task, undoes an open saga and goes on as it is.
def interrupted():
    with sagad.open(id="p-2") as saga:
        ids.append(saga.id)
        result_of(saga.call("room"))
        raise KeyboardInterrupt


async def cancelled():
    mine = AsyncSagad(URL, token=TOKEN)
    entered = asyncio.Event()

    async def work():
        async with mine.open(id="p-3") as saga:
            ids.append(saga.id)
            result_of(await saga.call("room"))
            entered.set()
            await asyncio.Event().wait()

    async def wait_for_nothing():
        await mine.start("nap", id="p-4")
        entered.set()
        await mine.wait(("nap", "p-4"))

    for each in (work, wait_for_nothing):  # between requests, and within one
        entered.clear()
        task = asyncio.create_task(each())
        await entered.wait()
        await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task])
        assert task.cancelled(), done


ids = []
raises(KeyboardInterrupt, interrupted)
asyncio.run(cancelled())
for id in ids:
    assert sagad.wait(id)["status"] == "compensated", id

# Servers that drip, or break off.
ask = Request("GET", "/v1/me")


def drip(_, connection):
    try:
        while True:
            connection.sendall(b"H")
            threading.Event().wait(0.02)
    except OSError:
        pass  # the client has left


def drip_body(text, connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    drip(text, connection)


def break_off(_, connection):
    connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"state": "completed"}')


for answer, error in ((drip, TimeoutError), (drip_body, TimeoutError), (break_off, http.client.IncompleteRead)):
    with server(answer) as url:
        raises(error, lambda: Transport(url, None, None).send(ask, 0.3 if error is TimeoutError else 60))

# Every route, once.
assert sagad.ask(routes.get_me())["role"] == "agent"
assert sagad.ask(routes.list_sagas(status=["compensated"], limit=1))["items"][0]["status"] == "compensated"
assert sagad.ask(routes.readyz())["status"]
NOBODY = "00000000-0000-7000-8000-000000000000"
assert raises(SagadProblem, lambda: sagad.ask(routes.get_saga(NOBODY))).code == "not-found"
assert raises(SagadProblem, lambda: sagad.ask(routes.define({"tools": []}))).code == "forbidden"
assert sagad.ask(routes.get_metrics()).startswith("# ")  # text
raises(SagadUnreachable, lambda: nobody.ask(routes.get_me()))

# Headers: a token that is fetched for each request, the trace of a tracer before that of the context, and the path.
seen = []


def show(text, connection):
    seen.append(text)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")


parents = [f"00-{digit * 32}-{digit * 16}-01" for digit in "ab"]
for trace in (lambda: Trace(parents[1], "k=v"), None):
    with server(show) as url, in_trace(parents[0]):
        assert Sagad(url, token=lambda: " fresh\n", trace=trace).ask(routes.get_me()) == {}
assert all(text.startswith("GET /base/v1/me HTTP/1.1\r\n") and "Bearer fresh\r\n" in text for text in seen), seen
assert f"traceparent: {parents[1]}\r\ntracestate: k=v\r\n" in seen[0] and parents[0] in seen[1], seen
