"""The page of all keys of specs, from the schema that editors use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs_site.markdown import GENERATED_NOTE, code, prose, table

__all__ = ["spec_page"]

SCHEMA = Path(__file__).resolve().parents[1] / "task_specs/harness_task_specs/task.schema.json"
INTRODUCTION = """\
# Keys of specs

{note}

What a YAML document may say. `harness tasks schema` prints the same as a JSON schema, with which editors complete and
check specs. Keys that are not listed are refused. [Add a task](../add-a-task.md) shows how they play together.
"""
WORDS = {
    "array": "list of",
    "object": "map to",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
DOCUMENTS = (
    ("FragmentSpec", "A fragment: languages for a task of another package"),
    ("TrainingSpec", "A training set"),
    ("RecipeSpec", "A recipe"),
    ("PromptSpec", "A prompt"),
    ("SuiteSpec", "A suite"),
    ("PublishedSpec", "Published scores"),
)


def spec_page() -> str:
    """Return the page: what all tasks share, what each kind adds, the other documents, the parts of them."""
    definitions: Mapping[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    kinds = {
        name: one
        for name, one in definitions.items()
        if "kind" in one["properties"] and "task" in one["properties"]
    }
    shared = [
        key
        for key in next(iter(kinds.values()))["properties"]
        if all(key in one["properties"] for one in kinds.values())
    ]
    first = next(iter(kinds.values()))
    parts = [INTRODUCTION.format(note=GENERATED_NOTE).strip(), "## A task", "What tasks of every kind have:"]
    parts.append(
        _keys({key: first["properties"][key] for key in shared}, first.get("required", []), definitions)
    )
    for one in kinds.values():
        own = {key: value for key, value in one["properties"].items() if key not in shared}
        kind = one["properties"]["kind"]["const"]
        parts.append(f"### {kind}")
        parts.append(_keys(own, one.get("required", []), definitions) if own else "No further keys.")
    done = set(kinds)
    for name, title in DOCUMENTS:
        parts += [f"## {title}", _definition(definitions[name], definitions)]
        done.add(name)
    parts.append("## Parts")
    for name, one in definitions.items():
        if name not in done:
            parts += [f"### {name}", _definition(one, definitions)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _definition(one: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    described = prose(one.get("description"))
    return f"{described}\n\n{_keys(one.get('properties', {}), one.get('required', []), definitions)}".strip()


def _keys(properties: Mapping[str, Any], required: list[str], definitions: Mapping[str, Any]) -> str:
    rows = [
        (
            code(key) + (" **required**" if key in required else ""),
            _type(value),
            "" if value.get("default") in (None, [], {}, "") else code(json.dumps(value["default"])),
            prose(value.get("description")),
        )
        for key, value in properties.items()
    ]
    return table(["key", "value", "default", "what it is"], rows)


def _type(value: Mapping[str, Any]) -> str:
    """Return a schema in words, with links to the parts that it names."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        options = [_type(one) for one in value["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(options))
    if named := value.get("enum") or [value[key] for key in ("const",) if key in value]:
        return " or ".join(code(one) for one in named)
    inside = value.get("items") or value.get("additionalProperties")
    inside = inside or next(iter(value.get("patternProperties", {}).values()), None)
    word = WORDS.get(value.get("type", ""), "anything")
    return (
        f"{word} {_type(inside)}"
        if isinstance(inside, dict)
        else word.removesuffix(" of").removesuffix(" to")
    )
