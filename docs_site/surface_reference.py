"""The page of the public surface, made from ``harness/__init__.pyi``."""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib

from docs_site.markdown import GENERATED_NOTE, prose, table

__all__ = ["surface_names", "surface_page"]

INTRODUCTION = """\
# Public surface

{note}

Programs and plugins import these names from `harness`, and contract suites from `harness.testing`. Each is imported at
first use, so `import harness` is fast. Other modules of the harness may change without notice.
"""

TITLES = {
    "api": "Run an evaluation",
    "hookspecs": "Plugins",
    "errors": "Errors",
    "models": "Adapters, capabilities and requests",
    "specs": "Specs",
    "data": "Data, features and translation",
    "kinds": "Kinds and methods",
    "metrics": "Metrics",
    "prompts": "Prompts",
    "registry": "Plugins",
    "planning": "Plans",
    "reporting": "Reports",
    "running": "Sessions and processes",
    "storage": "Runs",
    "progress": "Sessions and processes",
}


def surface_names() -> dict[str, list[str]]:
    """Return module -> the public names that it defines, in the order of the stub."""
    stub = pathlib.Path(str(importlib.import_module("harness").__file__)).with_suffix(".pyi")
    found: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(f"harness.{node.module}", []).extend(alias.name for alias in node.names)
    return found


def surface_page() -> str:
    """Return the page: a section per package, a row per name with the first line of its docstring."""
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for module, names in surface_names().items():
        title = TITLES[module.split(".")[1]]
        for name in names:
            member = getattr(importlib.import_module(module), name)
            sections.setdefault(title, []).append((f"`{name}`", _summary(member, name), f"`{module}`"))
    parts = [INTRODUCTION.format(note=GENERATED_NOTE).strip()]
    for title in dict.fromkeys(TITLES.values()):
        if title in sections:
            parts += [f"## {title}", table(["name", "what it is", "defined in"], sections[title])]
    return "\n\n".join(parts) + "\n"


def _summary(member: object, name: str) -> str:
    if not (inspect.isclass(member) or inspect.isfunction(member)):
        return ALIASES[name]
    return prose(inspect.getdoc(member)).partition("\n\n")[0]


ALIASES = {
    "Ability": "The name of a method whose answers may be streamed: `generate`, `classify`.",
    "Code": "A language code as specs write it.",
    "FloatArray": "A numpy array of float32.",
    "Prompt": "A text, or the turns of a chat.",
    "Side": "`query` or `passage`: what an embedded text is.",
    "hookimpl": "Marks a function of a plugin as the implementation of a hook.",
}
"""What names without a docstring of their own are."""
