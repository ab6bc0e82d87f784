"""The reference page of all capabilities, from ``harness/models/capabilities.py``."""

from __future__ import annotations

import dataclasses
import inspect
from types import ModuleType
from typing import Any

from docs_site.markdown import GENERATED_NOTE, field_comments, prose, table
from harness import open_session
from harness.models import capabilities, requests
from harness.models.capabilities import HEAD_CAPABILITY, Capability, capability_protocols

INTRODUCTION = """\
# Capabilities

{note}

A capability is one thing that a model can do. An adapter lists the capabilities of a model in its `ModelDescription`,
before the model is loaded. Each is a protocol of `harness.models.capabilities` with the methods below. Every method
keeps the order of its inputs and returns one answer per request. [Add a model adapter](../add-an-adapter.md) has a
complete example.
"""


def capability_page() -> str:
    """Return the page: heads, one section per capability, and their records."""
    heads = [
        (f"`{head}`", f"[`{capability}`](#{capability.lower()})")
        for head, capability in HEAD_CAPABILITY.items()
    ]
    parts = [
        INTRODUCTION.format(note=GENERATED_NOTE).strip(),
        "## Heads\n\nThe heads that `Fits` can train, and the capability of the fitted model:",
        table(["head", "capability"], heads),
        *(_section(capability) for capability in Capability),
        "## Records",
        *(_record(record) for module in (capabilities, requests) for record in _records(module)),
    ]
    return "\n\n".join(parts) + "\n"


def _section(capability: Capability) -> str:
    protocol = capability_protocols().get(capability)
    if protocol is None:
        comment = prose(field_comments(Capability)[capability.name])
        return "\n\n".join([f"## {capability}", f"{comment} There are no methods.", *_users(capability)])
    methods = [
        member for name, member in vars(protocol).items() if inspect.isfunction(member) and name[0] != "_"
    ]
    parts = [f"## {capability}", prose(protocol.__doc__), *_users(capability)]
    for method in methods:
        parts += [f"```python\n{_signature(method)}\n```", prose(method.__doc__)]
    return "\n\n".join(parts)


def _users(capability: Capability) -> list[str]:
    """Return a sentence with the methods that ask for a capability and their kinds of tasks; none where none does."""
    kinds: dict[str, list[str]] = {}
    for method in open_session().registry.methods:
        if method.requires == capability:
            kinds.setdefault(method.name, []).append(f"`{method.kind}`")
    uses = [f"the method `{name}` of {', '.join(sorted(names))}" for name, names in sorted(kinds.items())]
    return [f"Used by {'; '.join(uses)}."] if uses else []


def _signature(method: Any) -> str:
    inspected = inspect.signature(method)
    written = [str(one).replace("'", "") for one in inspected.parameters.values()]
    line = f"def {method.__name__}({', '.join(written)}) -> {inspected.return_annotation}: ..."
    return (
        line
        if len(line) <= 100
        else line.replace("(self, ", "(\n    self,\n    ", 1).replace(") ->", ",\n) ->")
    )


def _records(module: ModuleType) -> list[type]:
    """Return the dataclasses that a module makes public."""
    defined = [value for name, value in sorted(vars(module).items()) if not name.startswith("_")]
    return [
        record
        for record in defined
        if isinstance(record, type)
        and dataclasses.is_dataclass(record)
        and record.__module__ == module.__name__
    ]


def _record(record: type) -> str:
    """Return a section about a record: its docstring, and a table of its fields with their docstrings."""
    said = field_comments(record)
    rows = [
        (f"`{one.name}`", f"`{one.type}`", _default(one), said.get(one.name, ""))
        for one in dataclasses.fields(record)
    ]
    return f"### {record.__name__}\n\n{prose(record.__doc__)}\n\n" + table(
        ["field", "type", "default", "description"], rows
    )


def _default(one: dataclasses.Field[Any]) -> str:
    if one.default is not dataclasses.MISSING:
        value = one.default
    elif one.default_factory is not dataclasses.MISSING:
        value = one.default_factory()
    else:
        return ""
    if callable(value) and not isinstance(value, type):
        return "a function"
    if f"object at {id(value):#x}" in repr(value):
        return f"a `{type(value).__name__}`"
    return f"`{value!r}`"
