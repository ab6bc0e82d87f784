"""The words of reports, which are in data files, so that a writer of one sentence sees the others."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def words_of(name: str) -> Mapping[str, Any]:
    """Return the content of ``words.toml`` or ``remarks.toml`` in the folder of templates, by its stem."""
    path = resources.files("harness.reporting").joinpath(f"templates/{name}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    text = resources.files("harness.reporting").joinpath("legends.md").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in text.split("\n## ")[1:])
    return {
        name: tuple(" ".join(part.split()) for part in body.strip().split("\n\n"))
        for name, _, body in sections
    }


def legend_paragraphs(name: str) -> tuple[str, ...]:
    """Return the paragraphs of a section."""
    return _sections()[name]


def legend(name: str, **values: object) -> str:
    """Return a section as one paragraph, with values in the place of their names in braces."""
    return " ".join(_sections()[name]).format(**values)
