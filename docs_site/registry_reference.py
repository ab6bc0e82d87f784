"""The reference page of all registered names: kinds, readers, metrics, methods, adapters, reports and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from docs_site.command_reference import shipped_entry_points
from docs_site.markdown import GENERATED_NOTE, code, prose, table

INTRODUCTION = """\
# Registered names

{note}

These names can be used in specs and commands. The shipped plugins declare them. To add a name, implement the hook above
its list ([Hooks](hooks.md)).
"""


def registry_page() -> str:
    """Return the page: one section per table of the registry, with the shipped plugins only."""
    from harness.registry.registry import Registry, Slot
    from harness.running.session import open_session

    registry = open_session().registry
    shipped = set(shipped_entry_points("harness"))
    sorts = [name for name, member in vars(Registry).items() if isinstance(member, cached_property | Slot)]
    parts = [INTRODUCTION.format(note=GENERATED_NOTE).strip()]
    for sort in sorted(sorts, key=lambda name: [*TITLES, name].index(name)):
        found = getattr(registry, sort)
        own = [name for name in found.names if found.plugin_of(name) in shipped]
        describe = DESCRIPTIONS.get(sort, _summary)
        rows = [(code(name), describe(found.get(name)), code(found.plugin_of(name))) for name in own]
        hook = HOOKS.get(sort, f"harness_register_{sort}")
        parts.append(f"## {TITLES.get(sort, sort.capitalize())}\n\nHook: [`{hook}`](hooks.md#{hook})")
        parts.append(
            table(["name", "description", "plugin"], rows) if rows else "No shipped plugin registers one."
        )
    return "\n\n".join(parts) + "\n"


def _summary(item: Any) -> str:
    for name in ("summary", "description", "__doc__"):
        if text := getattr(item, name, None):
            return prose(str(text)).partition("\n\n")[0]
    return ""


def _launcher(item: Any) -> str:
    return f"Starts with {code(item.start)}."


def _method(item: Any) -> str:
    protocols = ", ".join(map(code, sorted(item.protocols)))
    return f"Needs [`{item.requires}`](capabilities.md#{item.requires.lower()}); used under {protocols}."


def _feature(item: Any) -> str:
    kinds = ", ".join(map(code, sorted(item.kinds))) if item.kinds else "all kinds"
    return f"{prose(item.title)} ({kinds}). {prose(item.description)}".strip()


def _reader(item: Any) -> str:
    options = "; ".join(f"`{name}`: {prose(said)}" for name, said in item.options.items())
    return prose(item.summary) + (f" Options: {options}" if options else "")


def _metric(item: Any) -> str:
    source = f" Source: {prose(item.source)}." if item.source else ""
    return prose(item.description) + source


HOOKS = {"report_sections": "harness_register_reports"}
"""Hooks that are not named after their table."""
TITLES = {
    "kinds": "Kinds of task",
    "methods": "Methods",
    "readers": "Readers",
    "metrics": "Metrics",
    "adapters": "Model adapters",
    "translators": "Translators",
    "transliterators": "Transliterators",
    "aligners": "Word aligners",
    "features": "Attributes of items",
    "reports": "Report formats",
    "trackers": "Trackers",
    "launchers": "Launchers",
    "fleet_backends": "Fleet backends",
}
"""Titles of the tables, in the order of the page; others come last."""
DESCRIPTIONS: Mapping[str, Callable[[Any], str]] = {
    "methods": _method,
    "readers": _reader,
    "metrics": _metric,
    "features": _feature,
    "launchers": _launcher,
}
"""Functions that describe an entry; the default is its summary."""
