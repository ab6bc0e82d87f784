"""The page of all capabilities, from ``harness/models/capabilities.py``."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from docs_site.markdown import GENERATED_NOTE, field_comments, prose, table
from harness.models import capabilities
from harness.models.capabilities import HEAD_CAPABILITY, Capability, capability_protocols

__all__ = ["ability_page"]

INTRODUCTION = """\
# Capabilities

{note}

A capability is one thing that a model can do. An adapter says in its `ModelDescription` which ones a model has before
it is loaded; each is a protocol of `harness.models.capabilities` with the methods below. Every method keeps the
order of its inputs, returns as many answers as it got requests, and answers an empty list with an empty list.
[Add a model adapter](../add-an-adapter.md) shows one from end to end.
"""


def ability_page() -> str:
    """Return the page: heads, then a section a capability, then the records that go in and out."""
    heads = [(f"`{head}`", f"[`{ability}`](#{ability.lower()})") for head, ability in HEAD_CAPABILITY.items()]
    parts = [
        INTRODUCTION.format(note=GENERATED_NOTE).strip(),
        "## Heads\n\nWhat `Fits` can train on top of a model, and what the fitted model can do then:",
        table(["head", "capability"], heads),
        *(_section(ability) for ability in Capability),
        "## Records",
        *(_record(name) for name in capabilities.__all__ if _is_record(name)),
    ]
    return "\n\n".join(parts) + "\n"


def _section(ability: Capability) -> str:
    protocol = capability_protocols().get(ability)
    if protocol is None:
        return f"## {ability}\n\nHas predictions already, as a submission does; it has no methods."
    methods = [
        member for name, member in vars(protocol).items() if inspect.isfunction(member) and name[0] != "_"
    ]
    parts = [f"## {ability}", prose(protocol.__doc__)]
    for method in methods:
        parts += [f"```python\n{_signature(method)}\n```", prose(method.__doc__)]
    return "\n\n".join(parts)


def _signature(method: Any) -> str:
    inspected = inspect.signature(method)
    written = [str(one).replace("'", "") for one in inspected.parameters.values()]
    line = f"def {method.__name__}({', '.join(written)}) -> {inspected.return_annotation}: ..."
    return (
        line
        if len(line) <= 100
        else line.replace("(self, ", "(\n    self,\n    ", 1).replace(") ->", ",\n) ->")
    )


def _is_record(name: str) -> bool:
    return dataclasses.is_dataclass(getattr(capabilities, name))


def _record(name: str) -> str:
    """Return a section on a record: its docstring, and a table of its fields with what the source says of them."""
    record = getattr(capabilities, name)
    said = field_comments(record)
    rows = [
        (f"`{one.name}`", f"`{one.type}`", _default(one), said.get(one.name, ""))
        for one in dataclasses.fields(record)
    ]
    return f"### {name}\n\n{prose(record.__doc__)}\n\n" + table(
        ["field", "type", "default", "what it is"], rows
    )


def _default(one: dataclasses.Field[Any]) -> str:
    if one.default is not dataclasses.MISSING:
        value = one.default
    elif one.default_factory is not dataclasses.MISSING:
        value = one.default_factory()
    else:
        return ""
    return "a function" if callable(value) and not isinstance(value, type) else f"`{value!r}`"
