"""The reference page of all hooks, from ``harness/hookspecs.py`` and the shipped plugins."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs_site.command_reference import shipped_entry_points
from docs_site.markdown import GENERATED_NOTE, prose, table
from harness import hookspecs

OBSERVERS = Path(__file__).with_name("observer_example.py")
"""Examples of the hooks that no shipped plugin implements."""


@cache
def hooks() -> Mapping[str, Any]:
    """Return the specification of every hook by name, in the order of the file."""
    members = vars(hookspecs.HookSpecs).items()
    return {name: function for name, function in members if name.startswith("harness_")}


@cache
def implementations() -> Mapping[str, list[str]]:
    """Return the modules of the project that implement a hook, by hook."""
    found: dict[str, list[str]] = {name: [] for name in hooks()}
    for target in shipped_entry_points("harness").values():
        module = importlib.import_module(target)
        for name in hooks():
            if hasattr(getattr(module, name, None), f"{hookspecs.PROJECT}_impl"):
                found[name].append(target)
    return found


def hook_page() -> str:
    """Return the page: the introduction of the file, a table, one section per hook."""
    introduction, example = _introduction()
    rows = [(f"[`{name}`](#{name})", _first_sentence(function.__doc__)) for name, function in hooks().items()]
    parts = [
        "# Hooks",
        GENERATED_NOTE,
        introduction,
        example,
        table(["hook", "purpose"], rows),
        *(_section(name, function) for name, function in hooks().items()),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction() -> tuple[str, str]:
    """Return the prose of the module's docstring, and its example as blocks."""
    text = inspect.cleandoc(hookspecs.__doc__ or "")
    before, _, rest = text.partition("::\n")
    example, after = re.split(r"\n\n(?=\S)", rest, maxsplit=1)
    python, toml = inspect.cleandoc(example).split("# pyproject.toml\n")
    opening = prose(before.partition("\n")[2].strip())
    module = python.partition("\n")[2].strip()
    blocks = f"```python file=my_package/__init__.py\n{module}\n```\n\n```toml file=pyproject.toml\n{toml.strip()}\n```"
    return f"{opening}:\n\n{blocks}", prose(after)


def _section(name: str, function: Any) -> str:
    options = getattr(function, f"{hookspecs.PROJECT}_spec")
    parts = [f"## {name}", f"```python\n{signature(name, function)}\n```", prose(function.__doc__)]
    if options["firstresult"]:
        parts.append("The first result that is not None wins; later plugins are not called.")
    if links := _types(function):
        parts.append(table(["type", "module", "description"], links))
    shipped = implementations()[name]
    names = ", ".join(f"`{module}`" for module in shipped) or "no shipped plugin"
    parts.append(f"**Implemented by**: {names}.")
    place, source = _example(name)
    parts.append(f"```python file={place}\n{source}\n```")
    return "\n\n".join(parts)


def signature(name: str, function: Any) -> str:
    """Return the hook as a plugin defines it: without ``self``, with its written types."""
    inspected = inspect.signature(function)
    arguments = [one for key, one in inspected.parameters.items() if key != "self"]
    written = ", ".join(f"{one.name}: {one.annotation}" for one in arguments)
    return f"@hookimpl\ndef {name}({written}) -> {inspected.return_annotation}: ..."


def _types(function: Any) -> list[tuple[str, str, str]]:
    """Return (name, module, first sentence) of the project's types in a signature."""
    inspected = inspect.signature(function)
    annotations = [one.annotation for one in inspected.parameters.values()] + [inspected.return_annotation]
    names = dict.fromkeys(re.findall(r"\w+", " ".join(map(str, annotations))))
    rows = []
    for name in names:
        if module := _imported_types().get(name):
            documented = getattr(importlib.import_module(module), name).__doc__
            rows.append((f"`{name}`", f"`{module}`", _first_sentence(documented)))
    return rows


@cache
def _imported_types() -> Mapping[str, str]:
    """Return the module of every type of the project that the file names."""
    tree = ast.parse(inspect.getsource(hookspecs))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        name.name: node.module
        for node in imports
        if node.module and node.module.startswith("harness.")
        for name in node.names
    }


def _example(name: str) -> tuple[str, str]:
    """Return the path and the source of the shortest implementation."""
    modules = implementations()[name]
    if not modules:
        return "my_package/__init__.py", _function(OBSERVERS.read_text(encoding="utf-8"), name)
    sources = [
        (inspect.getsource(getattr(importlib.import_module(module), name)).strip(), module)
        for module in modules
    ]
    source, module = min(sources, key=lambda pair: (len(pair[0]), pair[1]))
    return module.replace(".", "/") + ("/__init__.py" if "." not in module else ".py"), source


def _function(source: str, name: str) -> str:
    """Return the source of one function of a module, with its decorator."""
    tree = ast.parse(source)
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    if not found:
        raise ValueError(f"no shipped plugin implements {name!r}: add an example to {OBSERVERS.name}")
    node = found[0]
    lines = source.splitlines()[node.decorator_list[0].lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def _first_sentence(docstring: str | None) -> str:
    paragraph = prose(docstring).partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0]
