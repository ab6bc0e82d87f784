"""Markdown elements of the generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

GENERATED_NOTE = "*This page is generated from the code.*"


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown: its paragraphs, with code in single backticks and examples as blocks."""
    text = inspect.cleandoc(docstring or "")
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"`(harness\.[\w.]+)`", r"`\1`", text)
    return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def code(text: object) -> str:
    """Return text as inline code, or an empty string."""
    return f"`{text}`" if str(text) else ""


def field_comments(record: type) -> dict[str, str]:
    """Return the docstrings under the fields of a class and its base classes, by field."""
    pattern = re.compile(r'^    (\w+)(?::| =) [^\n]*\n    """(.+?)"""', flags=re.MULTILINE | re.DOTALL)
    own = [one for one in reversed(record.__mro__) if one.__module__.startswith("harness")]
    return {found[1]: prose(found[2]) for one in own for found in pattern.finditer(inspect.getsource(one))}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars and line ends in cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text.strip()).replace("|", r"\|")
