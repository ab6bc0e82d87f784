"""The words of reports, which are in data files, so that a writer of one sentence sees the others; and remarks."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
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


class Weight(IntEnum):
    """How a remark changes the way in which the numbers are read, the least first."""

    PROVENANCE = 0
    """Not at all: how the run was made, where a number comes from."""
    DETAIL = 1
    PARTIAL = 2
    """A part of the items or seeds is missing in a score."""
    INCOMPARABLE = 3
    """Scores cannot be compared with those of others."""
    INVALID = 4
    """There is no score, or what is shown as one says nothing about the task."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that is known of a run."""

    text: str = ""
    """The whole sentence; empty where a sentence that the run recorded says it already."""
    brief: str = ""
    """The same in a few words, with a count; empty for provenance."""
    weight: Weight = Weight.PROVENANCE


def remark_of(name: str, /, **values: object) -> Remark:
    """Return the remark of this name in ``templates/remarks.toml``, with values in the place of their names."""
    entry = words_of("remarks")[name]
    text, brief = (entry.get(key, "").format_map(values) for key in ("text", "brief"))
    return Remark(text, brief, Weight[entry.get("weight", "provenance").upper()])


def sentences(remarks: Iterable[Remark]) -> tuple[str, ...]:
    """Return the whole sentences, each once."""
    return tuple(dict.fromkeys(remark.text for remark in remarks if remark.text))


def leading(remarks: Sequence[Remark], count: int) -> tuple[list[str], int]:
    """Return the lines of the weightiest remarks that change how the numbers are read, and how many more there are."""
    ranked = sorted(
        (remark for remark in remarks if remark.brief and remark.weight), key=lambda remark: -remark.weight
    )
    lines = list(dict.fromkeys(remark.brief for remark in ranked))
    return lines[:count], len(lines[count:])


def counted(count: int, one: str) -> str:
    """Return a count with its noun: ``1 cell``, ``1,200 cells``."""
    return f"{count:,} {one if count == 1 else f'{one}s'}"
