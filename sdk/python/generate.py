"""Writes src/rcrt/types.py from the OpenAPI document: a TypedDict for each shape on the wire. And,
for both clients, what the body of each response must have, so that they recognize another server.

`python generate.py` writes the files, `python generate.py --check` says whether they are current.
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parent / "openapi.json"
TARGET = HERE / "src" / "rcrt" / "types.py"
ANSWERS = HERE / "src" / "rcrt" / "_answers.py"
TYPESCRIPT_ANSWERS = HERE.parent / "typescript" / "src" / "answers.ts"
# In this document, `object` without properties is any JSON object.
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
# Fields that are wider on the wire than the document can express.
ANY = {("ToolResponse", "output"), ("Invocation", "input"), ("ContextMatch", "value")}

HEAD = '''"""The shapes on the wire, by the names that the OpenAPI document gives them. Written by generate.py."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union
'''


def type_of(schema: dict[str, Any] | bool) -> str:
    if isinstance(schema, bool) or not schema:
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return union([type_of(one) for one in schema[word]])
    if "allOf" in schema:
        if len(schema["allOf"]) == 1:
            return type_of(schema["allOf"][0])
        raise SystemExit("generate: an allOf inside of another schema has no type in Python; give it a name")
    kind = schema.get("type")
    if isinstance(kind, list):
        return union([type_of({**schema, "type": one}) for one in kind])
    if kind == "array":
        items = schema.get("items", {})
        return f"list[{type_of(items)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values)}]" if isinstance(values, dict) and values else "dict[str, Any]"
    return SIMPLE.get(str(kind), "Any")


def union(parts: list[str]) -> str:
    parts = list(dict.fromkeys(parts))
    return "Any" if "Any" in parts else parts[0] if len(parts) == 1 else f"Union[{', '.join(parts)}]"


def words(text: str | None, indent: str) -> list[str]:
    if not text:
        return []
    lines = textwrap.wrap(" ".join(text.replace('"""', "'''").replace("\\", "\\\\").split()), 116 - len(indent))
    if lines[-1].endswith('"'):
        lines[-1] += " "
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), f'{indent}"""']


def members(name: str, properties: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for field, schema in sorted(properties.items()):
        if keyword.iskeyword(field) or not field.isidentifier():
            raise SystemExit(f"generate: {name}.{field} is not a valid name in Python")
        lines.append(f"    {field}: {'Any' if (name, field) in ANY else type_of(schema)}")
        lines += words(schema.get("description") if isinstance(schema, dict) else None, "    ")
    return lines


def shape(name: str, schema: dict[str, Any], bases: list[str]) -> list[str]:
    properties = schema.get("properties", {})
    required = {field: properties[field] for field in schema.get("required", []) if field in properties}
    optional = {field: value for field, value in properties.items() if field not in required}
    about = words(schema.get("description"), "    ")
    if optional and (required or bases):
        first = f"class _{name}({', '.join(bases) or 'TypedDict'}):"
        return [first, *(members(name, required) or ["    pass"]), "", "", f"class {name}(_{name}, total=False):", *about, *members(name, optional)]
    total = ", total=False" if optional else ""
    return [f"class {name}({', '.join(bases) or 'TypedDict'}{total}):", *about, *(members(name, properties) or ([] if about else ["    pass"]))]


def written() -> str:
    schemas: dict[str, Any] = json.loads(SOURCE.read_text(encoding="utf-8"))["components"]["schemas"]
    classes: list[list[str]] = []
    aliases: list[list[str]] = []
    inherited: dict[str, tuple[list[str], list[str]]] = {}
    for name, schema in sorted(schemas.items()):
        parts = schema.get("allOf", [])
        bases = [type_of(part) for part in parts if "$ref" in part]
        if parts:
            inherited[name] = (bases, shape(name, own_fields(schema), bases))
        elif schema.get("type") == "object" and "properties" in schema:
            classes.append(shape(name, schema, []))
        else:
            # A string, so that the order does not matter.
            aliases.append([f'{name} = {forward(type_of(schema), schemas)}', *words(schema.get("description"), "")])
    blocks = ["\n".join(block) for block in aliases] + ["\n" + "\n".join(block) + "\n" for block in classes + after_their_bases(inherited)]
    return HEAD + "\n" + "\n".join(blocks)


def own_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """What an ``allOf`` adds to the schemas that it refers to."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for part in [*schema["allOf"], schema]:
        unknown = set(part) - {"$ref", "type", "properties", "required", "description", "allOf", "example"}
        if unknown:
            raise SystemExit(f"generate: {', '.join(sorted(unknown))} in an allOf cannot be a TypedDict")
        properties |= part.get("properties", {})
        required += part.get("required", [])
    return {"properties": properties, "required": required, "description": schema.get("description")}


def after_their_bases(inherited: dict[str, tuple[list[str], list[str]]]) -> list[list[str]]:
    order = TopologicalSorter({name: [base for base in bases if base in inherited] for name, (bases, _) in inherited.items()})
    return [inherited[name][1] for name in order.static_order()]


def forward(text: str, schemas: dict[str, Any]) -> str:
    for name in sorted(schemas, key=len, reverse=True):
        for before, after in (("[", "]"), ("[", ","), (" ", "]"), (" ", ",")):
            text = text.replace(f"{before}{name}{after}", f'{before}"{name}"{after}')
    return f'"{text}"' if text in schemas else text


Kind = tuple[str, list[str]]


def answers() -> dict[str, Kind]:
    """What the body of each JSON response is, by method, path and status: an ``object`` or a
    ``list``, and the required fields of it or of each element."""
    document: dict[str, Any] = json.loads(SOURCE.read_text(encoding="utf-8"))
    schemas = document["components"]["schemas"]
    found: dict[str, Kind] = {}
    for path, item in sorted(document["paths"].items()):
        for method, operation in sorted(item.items()):
            for status, response in sorted(operation["responses"].items()):
                schema = response.get("content", {}).get("application/json", {}).get("schema")
                if schema is not None:
                    found[f"{method.upper()} {path} {status}"] = kind_of(schema, schemas)
    return found


def kind_of(schema: dict[str, Any], schemas: dict[str, Any]) -> Kind:
    if "$ref" in schema:
        return kind_of(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    if schema.get("type") == "array":
        return "list", kind_of(schema["items"], schemas)[1]
    if "allOf" in schema:
        return "object", sorted({field for part in schema["allOf"] for field in kind_of(part, schemas)[1]})
    if "oneOf" in schema:
        alternatives = [set(kind_of(part, schemas)[1]) for part in schema["oneOf"]]
        return "object", sorted(set.intersection(*alternatives))
    if "anyOf" in schema:
        # One alternative for each `?format=`. The first is the answer without it.
        return kind_of(schema["anyOf"][0], schemas)
    return "object", sorted(schema.get("required", []))


def python_answers() -> str:
    lines = [f"    {json.dumps(name)}: ({json.dumps(kind)}, {json.dumps(fields)})," for name, (kind, fields) in answers().items()]
    about = '"""What each response is, and its required fields. Written by generate.py."""'
    return "\n".join([about, "", "ANSWERS: dict[str, tuple[str, list[str]]] = {", *lines, "}", ""])


def typescript_answers() -> str:
    lines = [f"  {json.dumps(name)}: [{json.dumps(kind)}, {json.dumps(fields)}]," for name, (kind, fields) in answers().items()]
    about = "/** What each response is, and its required fields. Written by sdk/python/generate.py. */"
    kind = 'export const ANSWERS: Record<string, ["object" | "list", string[]]> = {'
    return "\n".join([about, kind, *lines, "};", ""])


if __name__ == "__main__":
    for target, text in ((TARGET, written()), (ANSWERS, python_answers()), (TYPESCRIPT_ANSWERS, typescript_answers())):
        if "--check" not in sys.argv:
            target.write_text(text, encoding="utf-8")
        elif target.read_text(encoding="utf-8") != text:
            sys.exit(f"generate: {target.name} does not match openapi.json; run python generate.py")
