"""A service that takes money, on the participant kit as it is installed. Its charges are rows of the database.

    participant_service.py flask|starlette      with PG* in the environment

Prints the port. A customer decides what happens: `declined` is refused for good, `later` for now, `breaks` raises after
the effect, `commits` ends the transaction too early, and `waits` holds the work until GET /go.
"""

import asyncio
import logging
import os
import socket
import sys
import threading

import psycopg
from sagad_participant import asgi, wsgi

framework = sys.argv[1]
routes = {
    "once": ["POST /charges"],
    "undo": ["DELETE /charges/by-key/{key}"],
    "look": ["GET /charges/by-key/{key}"],
    "promise": ["GET /idempotency"],
}
timeout_ms = int(os.environ.get("TIMEOUT_MS", "30000"))
held = 0  # requests that have come to the gate
INSERT = "insert into charge (key, customer, amount) values (%s, %s, %s)"
REFUND = "update charge set refunds = refunds + 1 where key = %s"
COUNT = "select count(*)::int4 as made from charge where customer = %s"
REFUSALS = {"declined": ({"error": "declined"}, 402), "later": (None, 503)}


class Broken(Exception):
    """What the work raises after the effect."""


def make_flask():
    from flask import Flask, jsonify, request

    app = Flask("service")
    gate = threading.Event()

    @app.post("/charges")
    def charge():
        global held
        sql, key = request.environ["sagad.sql"], request.headers["Idempotency-Key"]
        body = request.get_json()
        customer = body["customer"]
        sql.execute(INSERT, (key, customer, body["amount"]))
        if customer in REFUSALS:
            said, status = REFUSALS[customer]
            return jsonify(said), status
        if customer == "html":
            return "<p>no</p>", 403
        if customer == "breaks":
            raise Broken
        if customer == "commits":
            sql.execute("commit")
        if customer == "waits":
            held += 1
            gate.wait()
        return {"id": key, "amount": body["amount"]}, 201

    @app.delete("/charges/by-key/<key>")
    def refund(key):
        if request.environ["sagad.first"].json()["id"] != key:
            raise Broken
        request.environ["sagad.sql"].execute(REFUND, (key,))
        return {}

    @app.get("/customers/<customer>")
    def customers(customer):
        with psycopg.connect() as connection:
            return {"made": connection.execute(COUNT, (customer,)).fetchone()[0]}

    @app.get("/held")
    def get_held():
        return {"held": held}

    @app.get("/go")
    def go():
        gate.set()
        return {}

    app.wsgi_app = wsgi.Participant(app.wsgi_app, psycopg.connect, timeout_ms=timeout_ms, **routes)
    return app


def make_starlette():
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, JSONResponse
    from starlette.routing import Route

    gate = asyncio.Event()

    async def charge(request):
        global held
        sql, key = request.scope["sagad.sql"], request.headers["Idempotency-Key"]
        body = await request.json()
        customer = body["customer"]
        await sql.execute(INSERT, (key, customer, body["amount"]))
        if customer in REFUSALS:
            said, status = REFUSALS[customer]
            return JSONResponse(said, status)
        if customer == "html":
            return HTMLResponse("<p>no</p>", 403)
        if customer == "breaks":
            raise Broken
        if customer == "commits":
            await sql.execute("commit")
        if customer == "waits":
            held += 1
            await gate.wait()
        return JSONResponse({"id": key, "amount": body["amount"]}, 201)

    async def refund(request):
        key = request.path_params["key"]
        if request.scope["sagad.first"].json()["id"] != key:
            raise Broken
        await request.scope["sagad.sql"].execute(REFUND, (key,))
        return JSONResponse({})

    async def customers(request):
        async with await psycopg.AsyncConnection.connect() as connection:
            found = await connection.execute(COUNT, (request.path_params["customer"],))
            return JSONResponse({"made": (await found.fetchone())[0]})

    async def get_held(_):
        return JSONResponse({"held": held})

    async def go(_):
        gate.set()
        return JSONResponse({})

    app = Starlette(
        routes=[
            Route("/charges", charge, methods=["POST"]),
            Route("/charges/by-key/{key}", refund, methods=["DELETE"]),
            Route("/customers/{customer}", customers),
            Route("/held", get_held),
            Route("/go", go),
        ]
    )
    return asgi.Participant(app, psycopg.AsyncConnection.connect, timeout_ms=timeout_ms, **routes)


listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
if framework == "flask":
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").disabled = True
    make_server("127.0.0.1", 0, make_flask(), threaded=True, fd=listener.fileno()).serve_forever()
else:
    import uvicorn

    config = uvicorn.Config(make_starlette(), log_level="critical", lifespan="off")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
