"""Makes the types and the routes of the Python client from the OpenAPI document.

    generate.py OPENAPI FOLDER      writes FOLDER/schema.py and FOLDER/routes.py

What this does not understand in the document is an error: nothing is left out because nobody looked.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

# What the client is not for: pages of browsers, and what clients of MCP and of OAuth ask.
FOREIGN = re.compile(r"/(console|mcp|\.well-known)(/.*)?|/")
# Streams are not answers: what asks for one is left out where the answer may be a stream.
OF_STREAMS = ("follow", "Last-Event-ID")

# Keywords that bound a value, or explain it: a type says nothing about them.
SILENT = {"description", "minimum", "maximum", "minLength", "maxLength", "pattern", "format", "default"}
SILENT |= {"minItems", "maxItems", "minProperties", "maxProperties", "patternProperties", "examples", "title"}
SPOKEN = {"type", "enum", "const", "$ref", "oneOf", "anyOf", "required", "properties", "additionalProperties", "items"}

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def camel(name: str) -> str:
    parts = re.split(r"[^A-Za-z0-9]+", name)
    return "".join(part[:1].upper() + part[1:] for part in parts)


def snake(name: str) -> str:
    text = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.replace("-", "_")).lower()
    return f"{text}_" if keyword.iskeyword(text) else text


def quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


class Types:
    """The TypedDicts, in the order in which they are first needed."""

    def __init__(self, document: Schema) -> None:
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.lines: list[str] = []
        for name, schema in self.schemas.items():
            self.define(name, schema)

    def define(self, name: str, schema: Schema) -> None:
        if self.is_record(schema):
            self.record(name, schema)
        else:
            self.lines += ["", f'{name}: TypeAlias = "{self.spell(name, schema)}"']

    def is_record(self, schema: Schema) -> bool:
        return schema.get("type") in ("object", ["object", "null"]) and bool(schema.get("properties"))

    def record(self, name: str, schema: Schema) -> None:
        required = set(schema.get("required", []))
        members = schema["properties"]
        fields = []
        for member, each in members.items():
            kind = self.spell(name + camel(member), each)
            fields.append((member, kind if member in required else f"NotRequired[{kind}]"))
        if missing := required - set(members):
            raise SystemExit(f"{name}: {sorted(missing)} are required and not described")
        mine = ["", ""]
        if all(member.isidentifier() and not keyword.iskeyword(member) for member in members):
            mine += [f"class {name}(TypedDict):"]
            if "description" in schema:
                mine += [f"    {docstring(schema['description'])}", ""]
            mine += [f"    {member}: {kind}" for member, kind in fields]
        else:  # a member has a name that Python keeps for itself
            mine += [f"{name} = TypedDict(", f'    "{name}",', "    {"]
            mine += [f'        {quoted(member)}: "{kind}",' for member, kind in fields]
            mine += ["    },", ")"]
        # Behind what it is made of: the records of its members were written meanwhile.
        self.lines += mine

    def spell(self, name: str, schema: Schema | bool) -> str:
        """Returns a type as text; records that have no name of their own become `name`."""
        if schema is True or schema == {}:
            return "Any"
        if not isinstance(schema, dict):
            raise SystemExit(f"{name}: {schema!r} is no schema that has a type")
        if unknown := set(schema) - SILENT - SPOKEN:
            raise SystemExit(f"{name}: generate.py does not know {sorted(unknown)}")
        if "$ref" in schema:
            target = schema["$ref"].removeprefix("#/components/schemas/")
            if target not in self.schemas:
                raise SystemExit(f"{name}: there is no schema {schema['$ref']}")
            return target
        if "const" in schema or "enum" in schema:
            values = schema["enum"] if "enum" in schema else [schema["const"]]
            return f"Literal[{', '.join(quoted(value) for value in values)}]".replace('"', "'")
        choices = schema.get("oneOf", schema.get("anyOf"))
        if choices is not None and "properties" not in schema and schema.get("type") != "object":
            several = len(choices) > 1
            kinds = [self.spell(f"{name}{n + 1}" if several else name, each) for n, each in enumerate(choices)]
            return " | ".join(dict.fromkeys(kinds))
        # Else the choices only say which members go together.
        if "type" not in schema:
            if "properties" in schema or "items" in schema:
                raise SystemExit(f"{name}: it has members or items, and no type")
            return "Any"
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return " | ".join(self.spell_one(name, kind, schema) for kind in kinds)

    def spell_one(self, name: str, kind: str, schema: Schema) -> str:
        if kind in PLAIN:
            return PLAIN[kind]
        if kind == "array":
            return f"list[{self.spell(name, schema.get('items', True))}]"
        if kind != "object":
            raise SystemExit(f"{name}: generate.py does not know the type {kind}")
        if schema.get("properties"):
            self.record(name, schema)
            return name
        rest = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if rest in (True, False) else self.spell(name, rest)}]"


def docstring(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text[:1].upper()}{text[1:]}{"" if text.endswith(".") else "."}"""'


class Routes:
    """A function for each operation."""

    def __init__(self, document: Schema, types: Types) -> None:
        self.document = document
        self.types = types
        self.lines: list[str] = []
        for path, methods in document["paths"].items():
            if FOREIGN.fullmatch(path):
                continue
            for method, operation in methods.items():
                if method not in ("get", "post", "put", "patch", "delete"):
                    raise SystemExit(f"{path}: generate.py does not know {method}")
                self.route(path, method.upper(), operation)

    def resolved(self, parameter: Schema) -> Schema:
        if "$ref" not in parameter:
            return parameter
        name = parameter["$ref"].removeprefix("#/components/parameters/")
        found: Schema = self.document["components"]["parameters"][name]
        return found

    def route(self, path: str, method: str, operation: Schema) -> None:
        name = operation["operationId"]
        answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        contents = [content for answer in answers for content in answer.get("content", {}).items()]
        streams = any(media == "text/event-stream" for media, _ in contents)
        parameters = [self.resolved(each) for each in operation.get("parameters", [])]
        parameters = [each for each in parameters if not (streams and each["name"] in OF_STREAMS)]
        kinds = [
            self.types.spell(f"{camel(name)}Answer", each["schema"])
            for media, each in contents
            if media == "application/json"
        ]
        is_text = not kinds
        answer = " | ".join(dict.fromkeys(kinds)) or "str"
        first, named, query, headers = [], [], [], []
        spelled = path
        for each in parameters:
            argument = snake(each["name"])
            kind = self.types.spell(camel(name) + camel(each["name"]), each["schema"])
            place = each["in"]
            if place == "path":
                first.append(f"{argument}: {kind}")
                spelled = spelled.replace("{%s}" % each["name"], "{segment(%s)}" % argument)
                continue
            if place not in ("query", "header"):
                raise SystemExit(f"{name}: generate.py does not know parameters in {place}")
            named.append(f"{argument}: {kind}" + ("" if each.get("required") else " | None = None"))
            (query if place == "query" else headers).append(f"{quoted(each['name'])}: {argument}")
        parts = [quoted(method), ("f" if "{" in spelled else "") + quoted(spelled)]
        if query:
            parts.append(f"query={{{', '.join(query)}}}")
        if headers:
            parts.append(f"headers={{{', '.join(headers)}}}")
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            if list(content) != ["application/json"]:
                raise SystemExit(f"{name}: generate.py does not know the body {list(content)}")
            kind = self.types.spell(f"{camel(name)}Body", content["application/json"]["schema"])
            if operation["requestBody"].get("required"):
                first.append(f"body: {kind}")
                parts.append("body=json_of(body)")
            else:
                first.append(f"body: {kind} | Absent = ABSENT")
                parts.append("body=None if isinstance(body, Absent) else json_of(body)")
        if is_text:
            parts.append("is_text=True")
        arguments = [*first, *(["*", *named] if named else [])]
        summary = operation.get("summary") or operation["description"]
        self.lines += ["", "", f"def {snake(name)}("]
        self.lines += [f"    {argument}," for argument in arguments]
        self.lines += [f") -> Request[{answer}]:", f"    {docstring(f'{summary}: {method} {path}')}"]
        self.lines += [f"    return Request({', '.join(parts)})"]


def main(openapi: str, folder: str) -> None:
    document = json.loads(Path(openapi).read_text(encoding="utf-8"))
    types = Types(document)
    routes = Routes(document, types)
    note = "made from the OpenAPI document by generate.py; do not change it here."
    head = ["from __future__ import annotations", ""]
    text = [f'"""The types of what goes over the wire, {note}"""', "", *head]
    text += ["from typing import Any, Literal, NotRequired, TypeAlias, TypedDict"]
    Path(folder, "schema.py").write_text("\n".join([*text, *types.lines, ""]), encoding="utf-8")
    text = [f'"""Every route of the API, {note}', "", "Sagad.ask() sends what these functions return.", '"""']
    text += ["", *head, "from typing import Any, Literal", "", "from .schema import *  # noqa: F403"]
    text += ["from .wire import ABSENT, Absent, Request, json_of, segment"]
    Path(folder, "routes.py").write_text("\n".join([*text, *routes.lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: generate.py OPENAPI FOLDER")
    main(sys.argv[1], sys.argv[2])
