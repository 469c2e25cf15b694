"""Holds the Python client, as it is installed, against the OpenAPI document: every member of every schema, every route,
every parameter.

    check_python.py OPENAPI      prints what is missing, and exits 1 when there is something
"""

import inspect
import json
import re
import sys

from sagad_client import ABSENT, Request, routes, schema

document = json.load(open(sys.argv[1], encoding="utf-8"))
faults = []


def compare(what, found, wanted):
    if found != wanted:
        faults.append(f"{what}: {sorted(found ^ wanted)} on one side only")


def argument_of(name):
    return {"Idempotency-Key": "idempotency_key", "from": "from_"}.get(name, name)


for name, each in document["components"]["schemas"].items():
    if not hasattr(schema, name):
        faults.append(f"{name}: there is no such type")
    elif each.get("type") == "object" and "properties" in each:
        compare(name, set(getattr(schema, name).__annotations__), set(each["properties"]))

shared = document["components"]["parameters"]
wanted_routes = set()
for path, methods in document["paths"].items():
    if path == "/" or re.match(r"/(console|mcp|\.well-known)(/|$)", path):
        continue
    for method, operation in methods.items():
        name = re.sub(r"([A-Z])", r"_\1", operation["operationId"]).lower()
        wanted_routes.add(name)
        make = getattr(routes, name, None)
        if make is None:
            faults.append(f"{method} {path}: there is no {name}()")
            continue
        parameters = [shared[each["$ref"].split("/")[-1]] if "$ref" in each else each
                      for each in operation.get("parameters", [])]
        names = {argument_of(each["name"]) for each in parameters}
        if "follow" in names:
            names -= {"follow", "Last-Event-ID"}
        has_body = {"body"} if "requestBody" in operation else set()
        compare(f"{method} {path}", set(inspect.signature(make).parameters), names | has_body)
        needed = {argument_of(each["name"]) for each in parameters if each.get("required")}
        values = dict.fromkeys(needed, "a/b") | dict.fromkeys(has_body, {})
        made = make(**values)
        compare(f"{method} {path}, sent", {made.method, made.path}, {method.upper(), re.sub(r"{\w+}", "a%2Fb", path)})
compare("routes", {name for name, each in vars(routes).items()
                   if inspect.isfunction(each) and each.__module__ == routes.__name__}, wanted_routes)

sent = routes.list_sagas(status=["running", "paused"], tag={"team": "a&b"}, limit=3).target
if sent != "/v1/sagas?limit=3&status=running,paused&tag.team=a%26b":
    faults.append(f"a query is {sent}")
if Request("POST", "/").target != "/" or repr(ABSENT) != "ABSENT":
    faults.append("a request without a query has one")

print("\n".join(faults))
sys.exit(1 if faults else 0)
