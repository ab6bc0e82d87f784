"""Suspects in a terminal, as rows and as a page: every version of an item side by side, like the paper's Table 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.reporting.html.layout import fold, notes, section
from harness.reporting.markup.element import Element, element
from harness.reporting.markup.page import page
from harness.reporting.markup.text import model_text
from harness_translation.gap.suspect import Suspect, SuspectList, Version

__all__ = ["render_suspects", "suspect_page", "suspect_rows"]

LEGEND: Final = (
    "Suspicion: mean over systems and seeds of (right in the source language) x (share of TE and BT that are right) x "
    "(wrong in the human text). A ranking of items to inspect, not a finding: have a sample labelled together with a "
    "random control."
)


def suspect_rows(found: Sequence[SuspectList]) -> list[dict[str, Any]]:
    """Return one row per item, the most suspicious first within a task and language; scores in [0, 1]."""
    return [
        {
            "task": own.task,
            "language": own.language,
            "metric": own.metric,
            "rank": rank,
            "id": suspect.id,
            "gold": suspect.gold,
            "suspicion": suspect.suspicion,
            "votes": suspect.votes,
            "voters": len(own.voters),
            "tt_wrong": suspect.tt_wrong,
            "versions": [
                {
                    "version": version.title,
                    "texts": list(version.texts),
                    "score": version.score,
                    "answers": dict(version.answers),
                }
                for version in suspect.versions
            ],
        }
        for own in found
        for rank, suspect in enumerate(own.suspects, start=1)
    ]


def render_suspects(found: Sequence[SuspectList]) -> RenderableType:
    """Return all lists for printing with rich."""
    parts: list[RenderableType] = []
    for own in found:
        parts += [
            Text(_title(own), style="bold"),
            *(_item(rank, each) for rank, each in enumerate(own.suspects, 1)),
        ]
        parts += [Text(note) for note in own.notes]
    return Group(*parts, Text(LEGEND, style="dim"))


def _title(own: SuspectList) -> str:
    return (
        f"{own.task} {own.language} ({own.metric}): {own.suspected:,} of {own.items:,} items suspected by "
        f"{len(own.voters)} voters; the first {len(own.suspects)}"
    )


def _head(rank: int, suspect: Suspect) -> str:
    back = "" if suspect.tt_wrong is None else f", TT wrong {suspect.tt_wrong:.2f}"
    return f"{rank}. {suspect.id}: suspicion {suspect.suspicion:.2f}, gold {suspect.gold}{back}"


def _item(rank: int, suspect: Suspect) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=Text(_head(rank, suspect)),
                  title_justify="left")  # fmt: skip
    for head in ("version", "right", "answers", "text"):
        table.add_column(head, overflow="fold")
    for version in suspect.versions:
        # rich would read markup in a plain string.
        table.add_row(
            Text(version.title),
            f"{version.score:.2f}",
            Text(_answers(version.answers)),
            Text(" / ".join(version.texts)),
        )
    return table


def _answers(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in ordered)


def suspect_page(found: Sequence[SuspectList]) -> str:
    """Return all lists as one page that needs no network."""
    parts = [
        section(
            f"list-{number}",
            _title(own),
            notes(own.notes),
            fold("Voters", notes(own.voters)),
            [_figure(rank, suspect) for rank, suspect in enumerate(own.suspects, start=1)],
        )
        for number, own in enumerate(found)
    ]
    main = element(
        "main", element("h1", "Suspected translations"), element("p", LEGEND, class_="note"), parts, id="main"
    )
    return page(
        "Suspected translations", main, description=f"{sum(len(own.suspects) for own in found)} items."
    )


def _figure(rank: int, suspect: Suspect) -> Element:
    heads = ("version", "right", "answers", "text")
    return element(
        "div",
        element(
            "table",
            element("caption", _head(rank, suspect)),
            element("thead", element("tr", [element("th", head, scope="col") for head in heads])),
            element("tbody", [_version(version) for version in suspect.versions]),
        ),
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label=_head(rank, suspect),
    )


def _version(version: Version) -> Element:
    return element(
        "tr",
        element("th", version.title, scope="row"),
        element("td", f"{version.score:.2f}", class_="n"),
        element("td", _answers(version.answers)),
        element("td", [element("p", model_text(each)) for each in version.texts]),
    )
