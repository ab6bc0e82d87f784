"""Remarks on a run: a whole sentence, and one line for the summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from harness.reporting.legends import words_of


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
