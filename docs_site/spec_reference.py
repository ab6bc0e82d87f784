"""The reference page of all spec keys, from the JSON schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs_site.markdown import GENERATED_NOTE, code, field_comments, prose, table

SCHEMA = Path(__file__).resolve().parents[1] / "task_specs/harness_task_specs/task.schema.json"
INTRODUCTION = """\
# Spec keys

{note}

This page lists all keys of a YAML document. Other keys are errors. `harness tasks schema` prints the same list as a
JSON schema, for editors that complete and check specs. [Add a task](../add-a-task.md) shows a complete example.
"""
WORDS = {
    "array": "list of",
    "object": "map to",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
SHARED = {
    "citation": "The source to cite, as a bibliography key.",
    "columns": "Names of the columns in order, or field -> column.",
    "description": "One sentence about it.",
    "inputs": "The fields that the model sees, in order.",
    "kind": "The kind of its items.",
    "label_map": "Label in the file -> label of the task.",
    "labels": "The labels, in order.",
    "license": "Licence of the data, as a lower-case SPDX code if there is one.",
    "output_type": "As in lm-evaluation-harness.",
    "options": "Options of the reader.",
    "phrases": "Field -> value in the file -> the words that the model sees.",
    "protocol": "How the systems are trained or prompted.",
    "reader": "The registered reader of the files.",
    "split": "The name of the split there.",
    "version": "Raised when items or scoring change.",
}
"""Meanings of keys that many documents share."""
DOCUMENTS = (
    ("FragmentSpec", "A fragment: languages for a task of another package"),
    ("TrainingSpec", "A training set"),
    ("RecipeSpec", "A recipe"),
    ("PromptSpec", "A prompt"),
    ("SuiteSpec", "A suite"),
    ("PublishedSpec", "Published scores"),
)


def spec_page() -> str:
    """Return the page: keys of all tasks, keys by kind, the other documents, their parts."""
    definitions: Mapping[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    kinds = {name: one for name, one in definitions.items() if {"kind", "task"} <= one["properties"].keys()}
    first, *others = kinds
    shared = set(definitions[first]["properties"]).intersection(
        *(kinds[name]["properties"] for name in others)
    )
    parts = [INTRODUCTION.format(note=GENERATED_NOTE).strip(), "## A task", "Keys of all kinds:"]
    parts.append(_keys(first, kinds[first], lambda key: key in shared - {"kind"}))
    for name, one in kinds.items():
        parts.append(f"### {one['properties']['kind']['const']}")
        parts.append(_keys(name, one, lambda key: key not in shared) or "No further keys.")
    named = [name for name, _ in DOCUMENTS]
    for name, title in DOCUMENTS:
        parts += [f"## {title}", prose(definitions[name].get("description")), _keys(name, definitions[name])]
    parts.append("## Parts")
    for name, one in definitions.items():
        if name not in kinds and name not in named:
            parts += [f"### {name}", prose(one.get("description")), _keys(name, one)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _keys(name: str, one: Mapping[str, Any], wanted: Callable[[str], bool] = lambda _: True) -> str:
    """Return the table of the wanted keys of a definition, without empty columns."""
    model = _models().get(name)
    said = field_comments(model) if model else {}
    rows = [
        (
            code(key) + (" **required**" if key in one.get("required", ()) else ""),
            _type(value),
            "" if value.get("default") in (None, [], {}, "") else code(json.dumps(value["default"])),
            prose(value.get("description")) or said.get(key) or SHARED.get(key, ""),
        )
        for key, value in one.get("properties", {}).items()
        if wanted(key)
    ]
    heads = ("key", "value", "default", "description")
    full = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    return (
        table([heads[place] for place in full], [[row[place] for place in full] for row in rows])
        if rows
        else ""
    )


@cache
def _models() -> Mapping[str, type]:
    """Return the models of specs by name. Loading the kinds defines theirs."""
    from harness.running.session import open_session
    from harness.specs import documents  # noqa: F401  it defines models
    from harness.specs.schema import SpecModel

    assert len(open_session().registry.kinds)
    found: dict[str, type] = {}
    waiting: list[type] = [SpecModel]
    while waiting:
        model = waiting.pop()
        found[model.__name__] = model
        waiting += model.__subclasses__()
    return found


def _type(value: Mapping[str, Any]) -> str:
    """Return a schema in words, with links to its parts."""
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
