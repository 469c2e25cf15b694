"""The example of the kit's page, and what a service on WSGI or ASGI cannot do by mistake.

    check_participant.py README      with PG* in the environment, and the kit and the page's table in the database
"""

import asyncio
import io
import re
import sys
from functools import partial
from wsgiref.util import setup_testing_defaults

import psycopg
from sagad_participant import asgi, wsgi

page = open(sys.argv[1], encoding="utf-8").read()
example = {"__name__": "example"}
exec(re.search(r"```py\n(.*?)```", page, re.S)[1], example)
shop = example["app"].test_client()
key = {"Idempotency-Key": "order-1"}
for replayed in (None, "true"):
    paid = shop.post("/charges", json={"customer": "ada", "amount": 5}, headers=key)
    assert (paid.status_code, paid.json, paid.headers.get("Idempotent-Replayed")) == (201, {"id": 1}, replayed), paid
assert shop.delete("/charges/by-key/order-1").json == {"undone": True}
assert shop.get("/charges/by-key/order-1").json == {"status": 201, "answer": {"id": 1}, "undone": True}
with psycopg.connect() as connection:
    assert connection.execute("select id, customer, refunded from charge").fetchall() == [(1, "ada", True)]

LOCK = "select count(*) from pg_locks where locktype = 'advisory'"


def service(environ, start_response):
    assert environ["wsgi.input"].read() == b'{"amount": 5}' or environ["PATH_INFO"] == "/other"
    start_response("201 Created", [("content-type", "application/json"), ("x-own", "1")])
    return [b'{"has_sql": %s}' % (b"true" if "sagad.sql" in environ else b"false")]


def ask(participant, path="/charges", body=b'{"amount": 5}', length=None, key="a-key"):
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "HTTP_IDEMPOTENCY_KEY": key}
    environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body) if length is None else length)}
    setup_testing_defaults(environ)
    said = []
    chunks = participant(environ, lambda status, headers: said.append((int(status.split()[0]), dict(headers))))
    return said[0][0], b"".join(chunks), said[0][1]


def refused(kind, make, *args, **options):
    try:
        make(*args, **options)
    except kind as error:
        return str(error)
    raise AssertionError(f"{args} {options} is taken")


new = partial(wsgi.Participant, service, psycopg.connect)
kit = new(once=["POST /charges"], body_bytes_max=1000)

# Requests that are no part of the rules pass.
assert ask(kit, "/other")[:2] == (201, b'{"has_sql": false}')
assert ask(kit, "/charges/")[:2] == (201, b'{"has_sql": false}')  # the service itself then misses its `sagad.sql`
assert ask(kit, body=b"x" * 1001)[0] == 413
assert ask(kit, length=14)[0] == 400  # cut off
assert ask(kit, length="-1")[0] == 400
first, again = ask(kit), ask(kit)
assert first[:2] == again[:2] == (201, b'{"has_sql": true}'), (first, again)
assert again[2].pop("idempotent-replayed") == "true" and first[2] == again[2]  # no header that repeats would not have

# A connection on which the claim would be kept without its effect is refused, and nothing is claimed.
careless = wsgi.Participant(service, partial(psycopg.connect, autocommit=True), once=["POST /charges"])
assert "autocommit" in refused(ValueError, ask, careless, key="another-key")
with psycopg.connect() as connection:
    count = "select count(*) from sagad_participant.request where key = 'another-key'"
    assert connection.execute(count).fetchone() == (0,)
    assert connection.execute(LOCK).fetchone() == (0,)

# Routes that mean nothing.
assert "a list of routes" in refused(TypeError, new, once="POST /charges")
assert "is not like" in refused(ValueError, new, once=["/charges"])
assert "has no {key}" in refused(ValueError, new, once=[], undo=["DELETE /charges/{id}"])
assert "has no {key}" in refused(ValueError, asgi.Participant, None, None, once=[], look=["GET /charges"])


# What is no request passes, and a caller that leaves in the middle of its request has asked for nothing.
async def leave():
    asked = []

    async def app(scope, receive, send):
        asked.append(scope["type"])

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        raise AssertionError(message)

    kit = asgi.Participant(app, psycopg.AsyncConnection.connect, once=["POST /charges"])
    await kit({"type": "lifespan"}, receive, send)
    await kit({"type": "http", "method": "POST", "path": "/charges", "headers": []}, receive, send)
    assert asked == ["lifespan"], asked


asyncio.run(leave())
