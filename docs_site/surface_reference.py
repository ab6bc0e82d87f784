"""The page of the public surface, made from ``harness/__init__.pyi``."""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib

from docs_site.markdown import GENERATED_NOTE, prose, table

INTRODUCTION = """\
# Public surface

{note}

Programs import `harness`; plugins and adapters import the package that owns what they need, such as
`harness.models`; contract suites are in `harness.testing`. Each name is imported at first use, so `import harness` is
fast. Modules inside these packages may change without notice.
"""


def doors() -> list[str]:
    """Return the public modules: `harness`, and its packages in alphabetical order."""
    folder = pathlib.Path(str(importlib.import_module("harness").__file__)).parent
    return ["harness", *sorted(f"harness.{stub.parent.name}" for stub in folder.glob("*/__init__.pyi"))]


def surface_names() -> dict[str, dict[str, list[str]]]:
    """Return door -> module -> the public names that it defines, in the order of the stub."""
    names: dict[str, dict[str, list[str]]] = {}
    for door in doors():
        stub = pathlib.Path(str(importlib.import_module(door).__file__)).with_suffix(".pyi")
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                aliases = names.setdefault(door, {}).setdefault(f"{door}.{node.module}", [])
                aliases.extend(alias.name for alias in node.names)
    return names


def surface_page() -> str:
    """Return the page: a section per door, a row per name with the first line of its docstring."""
    sections = [INTRODUCTION.format(note=GENERATED_NOTE).strip()]
    for door, modules in surface_names().items():
        rows = [
            (f"`{name}`", _summary(getattr(importlib.import_module(module), name), name), f"`{module}`")
            for module, names in modules.items()
            for name in names
        ]
        sections += [f"## {door}", table(["name", "what it is", "defined in"], sorted(rows))]
    return "\n\n".join(sections) + "\n"


def _summary(member: object, name: str) -> str:
    if not (inspect.isclass(member) or inspect.isfunction(member)):
        return ALIASES.get(name, "")
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
