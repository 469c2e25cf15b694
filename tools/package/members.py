"""Prints the members of definition documents as sections of a manual page, in the language of scdoc.

    members.py FOLDER      the folder of definition.schema.json and tool.schema.json

The JSON Schemas are what editors go by, and the tests hold them against the check of the engine: so the page says what
the engine takes. An object that several members have is a section of its own; one that only one member has stands
under the name of that member.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

TITLES = {
    "definition.schema.json": "The document",
    "definition.schema.json#/$defs/saga": "A saga",
    "definition.schema.json#/$defs/step": "A step",
    "tool.schema.json": "A tool",
}
WORDS = {"string": "text", "object": "object", "array": "array", "boolean": "true or false"}


def escaped(text: str) -> str:
    return re.sub(r"([\\_*`#~])", r"\\\1", " ".join(text.split()))


class Pages:
    def __init__(self, folder: Path) -> None:
        names = ("definition.schema.json", "tool.schema.json")
        self.files = {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in names}
        self.sections = list(TITLES)  # in order; grows with what these refer to

    def found(self, ref: str) -> Schema:
        file, _, inside = ref.partition("#/$defs/")
        return self.files[file]["$defs"][inside] if inside else self.files[file]

    def whole(self, ref: str, file: str) -> str:
        return file + ref if ref.startswith("#") else ref

    def properties(self, schema: Schema, file: str) -> dict[str, Schema]:
        """Of an object, with those of what it is all of."""
        own: dict[str, Schema] = {}
        for part in schema.get("allOf", []):
            if "$ref" in part:
                ref = self.whole(part["$ref"], file)
                own |= self.properties(self.found(ref), ref.split("#")[0])
        return own | schema.get("properties", {})

    def is_section(self, ref: str) -> bool:
        target = self.found(ref)
        return target.get("type") == "object" and bool(self.properties(target, ref.split("#")[0]))

    def mentioned(self, ref: str) -> str:
        """The word for what is referred to; a section of its own is made for an object."""
        if ref == "tool.schema.json#/$defs/tool_body":
            return "a tool without name"
        if self.is_section(ref) and ref not in self.sections:
            self.sections.append(ref)
        name = ref.rsplit("/", 1)[-1].replace("_", " ")
        return TITLES[ref].lower() if ref in TITLES else name

    def kind(self, schema: Schema, file: str) -> str:
        if "$ref" in schema:
            return self.mentioned(self.whole(schema["$ref"], file))
        if "enum" in schema:
            return " | ".join(str(word) for word in schema["enum"])
        if "const" in schema:
            return str(schema["const"])
        if "anyOf" in schema or "oneOf" in schema:
            kinds = [self.kind(one, file) for one in schema.get("anyOf", []) + schema.get("oneOf", [])]
            return " or ".join(dict.fromkeys(kind for kind in kinds if kind))
        types = schema.get("type", [])
        if types == "array" and isinstance(schema.get("items"), dict) and self.kind(schema["items"], file):
            return f"array of {self.kind(schema['items'], file)}"
        return " or ".join(WORDS.get(one, one) for one in ([types] if isinstance(types, str) else types))

    def said(self, schema: Schema, file: str) -> str:
        """The description; without one, that of what is referred to, unless that has a section."""
        if "description" in schema or "$ref" not in schema:
            return str(schema.get("description", ""))
        ref = self.whole(schema["$ref"], file)
        return "" if self.is_section(ref) else self.said(self.found(ref), ref.split("#")[0])

    def inner(self, schema: Schema, file: str) -> Iterator[tuple[Schema, str]]:
        """What stands under the name of its member: it is written in place, or is no object only."""
        yield schema, file
        for part in schema.get("anyOf", []) + schema.get("oneOf", []):
            yield from self.inner(part, file)
        if isinstance(schema.get("items"), dict):
            yield from self.inner(schema["items"], file)
        if "$ref" in schema:
            ref = self.whole(schema["$ref"], file)
            if not self.is_section(ref) and self.found(ref).get("type") != ["object", "boolean"]:
                yield from self.inner(self.found(ref), ref.split("#")[0])

    def members(self, schema: Schema, file: str, before: str = "") -> Iterator[str]:
        required = schema.get("required", [])
        for name, member in self.properties(schema, file).items():
            # What an included schema refers to lies in its own file.
            own = file if name in schema.get("properties", {}) else "tool.schema.json"
            kind, said = self.kind(member, own), self.said(member, own)
            note = ", ".join(word for word in (kind, "required" if name in required else "") if word)
            yield f"*{escaped(before + name)}*" + (f" ({escaped(note)})" if note else "")
            yield (f"\t{escaped(said)}\n" if said else "")
            for part, near in self.inner(member, own):
                if part.get("properties"):
                    yield from self.members(part, near, f"{before}{name}.")

    def section(self, ref: str) -> Iterator[str]:
        schema, file = self.found(ref), ref.split("#")[0]
        name = ref.rsplit("/", 1)[-1].replace("_", " ")
        yield f"# {TITLES.get(ref, 'The object ' + name).upper()}\n"
        if schema.get("description"):
            yield escaped(schema["description"]) + "\n"
        yield from self.members(schema, file)


def main() -> None:
    pages = Pages(Path(sys.argv[1]))
    for ref in pages.sections:  # grows meanwhile
        for line in pages.section(ref):
            print(line)


if __name__ == "__main__":
    main()
