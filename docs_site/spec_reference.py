"""The page of all keys of specs, from the schema that editors use."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs_site.markdown import GENERATED_NOTE, code, field_comments, prose, table

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
SHARED = {
    "citation": "Whom to cite, as a key of a bibliography.",
    "columns": "Names of the columns in order, or field -> column.",
    "description": "One sentence on what it is.",
    "inputs": "The fields that a model gets, in order.",
    "kind": "The kind of task whose items it has.",
    "label_map": "Label in the file -> label of the task.",
    "labels": "The labels, in order.",
    "license": "Of the data, as an SPDX code in small letters where there is one.",
    "output_type": "That of lm-evaluation-harness.",
    "options": "What the reader is told.",
    "phrases": "Field -> value in the file -> the words that a model gets for it.",
    "protocol": "How the systems are trained or asked.",
    "reader": "How the files are read: a registered reader.",
    "split": "The name that the split has there.",
    "version": "Raised when items or scoring change.",
}
"""What keys mean that many documents have alike."""
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
    kinds = {name: one for name, one in definitions.items() if {"kind", "task"} <= one["properties"].keys()}
    first, *others = kinds
    shared = set(definitions[first]["properties"]).intersection(
        *(kinds[name]["properties"] for name in others)
    )
    parts = [INTRODUCTION.format(note=GENERATED_NOTE).strip(), "## A task", "What tasks of every kind have:"]
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
    """Return the table of the keys of a definition that are wanted, without columns that are empty."""
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
    heads = ("key", "value", "default", "what it is")
    full = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    return (
        table([heads[place] for place in full], [[row[place] for place in full] for row in rows])
        if rows
        else ""
    )


@cache
def _models() -> Mapping[str, type]:
    """Return the models of specs by name; those of kinds are known once the kinds are loaded."""
    from harness.api import open_session
    from harness.specs import prompt, published, recipe  # noqa: F401  whose models are wanted, too
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
