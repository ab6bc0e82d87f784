"""The page of what the plugins that ship declare: kinds, readers, metrics, methods, adapters, reports and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from docs_site.command_reference import shipped_entry_points
from docs_site.markdown import GENERATED_NOTE, code, prose, table

__all__ = ["registry_page"]

INTRODUCTION = """\
# What is registered

{note}

The names that specs and commands take, as the plugins that ship declare them. A plugin adds to each list with the hook
that is named above it ([Hooks](hooks.md)).
"""


def registry_page() -> str:
    """Return the page: a table a sort of thing. Plugins that others installed are left out."""
    from harness.api import open_session

    session = open_session()
    registry = session.registry
    shipped = set(shipped_entry_points("harness"))

    def own(sort: Any) -> list[tuple[str, Any, str]]:
        found = [(name, sort.get(name), sort.plugin_of(name)) for name in sort.names]
        return [(name, item, plugin) for name, item, plugin in found if plugin in shipped]

    parts = [
        INTRODUCTION.format(note=GENERATED_NOTE).strip(),
        _sort("Kinds of task", "harness_register_kinds", own(registry.kinds), _summary),
        _sort("Methods", "harness_register_methods", own(registry.methods), _method),
        _sort("Readers", "harness_register_readers", own(registry.readers), _reader),
        _sort("Metrics", "harness_register_metrics", own(registry.metrics), _metric),
        _sort("Model adapters", "harness_register_adapters", own(registry.adapters), _summary),
        _sort("Translators", "harness_register_translators", own(registry.translators), _summary),
        _sort("Transliterators", "harness_register_transliterators", own(registry.transliterators), _summary),
        _sort("Word aligners", "harness_register_aligners", own(registry.aligners), _summary),
        _sort("Attributes of items", "harness_register_features", own(registry.features), _feature),
        _sort("Importers", "harness_register_importers", own(registry.importers), _summary),
        _sort("Report formats", "harness_register_reports", own(registry.reports), _summary),
        _sort("Launchers", "harness_register_launchers", own(registry.launchers), _launcher),
    ]
    return "\n\n".join(parts) + "\n"


def _sort(title: str, hook: str, items: Iterable[tuple[str, Any, str]], told: Any) -> str:
    rows: list[Sequence[str]] = [(code(name), told(item), code(plugin)) for name, item, plugin in items]
    return f"## {title}\n\nHook: [`{hook}`](hooks.md#{hook})\n\n" + table(
        ["name", "what it is", "plugin"], rows
    )


def _summary(item: Any) -> str:
    for name in ("summary", "description", "__doc__"):
        if text := getattr(item, name, None):
            return prose(str(text)).partition("\n\n")[0]
    return ""


def _launcher(item: Any) -> str:
    return f"Starts with {code(item.start)}."


def _method(item: Any) -> str:
    protocols = ", ".join(map(code, sorted(item.protocols)))
    return f"Asks for [`{item.requires}`](capabilities.md#{item.requires.lower()}); serves {protocols}."


def _feature(item: Any) -> str:
    kinds = ", ".join(map(code, sorted(item.kinds))) if item.kinds else "all kinds"
    return f"{prose(item.title)} ({kinds}). {prose(item.description)}".strip()


def _reader(item: Any) -> str:
    options = "; ".join(f"`{name}`: {prose(said)}" for name, said in item.options.items())
    return prose(item.summary) + (f" Options: {options}" if options else "")


def _metric(item: Any) -> str:
    source = f" Source: {prose(item.source)}." if item.source else ""
    return prose(item.description) + source
