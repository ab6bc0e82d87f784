"""Languages that fragments added to tasks, and test sets made by machine: shown, marked, and in no published mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import Run
from harness.languages.table import known_languages, recorded_name
from harness.reporting.html.layout import table
from harness.reporting.item_origin import ADDED, PROVENANCE_MARKS, is_added, origin_mark
from harness.reporting.markup.element import Element, element

__all__ = [
    "LEGEND",
    "Extension",
    "added_languages",
    "described_languages",
    "extension_table",
    "extensions",
    "language_marks",
]

OTHER_SPLIT = "*"
LEGEND = {OTHER_SPLIT: "scored on another split than test (hover shows in which system)"}
LEGEND |= {mark: f"{made} test items" for made, mark in PROVENANCE_MARKS.items()} | {
    ADDED: "added to the task by others, in none of its means"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A score with and without the languages that others added, in points."""

    system: str
    name: str
    """``suite xtreme_r`` or ``xnli (accuracy)``."""
    published: float | None
    extended: float
    languages: str


def added_languages(run: Run, task: str) -> tuple[str, ...]:
    """Return the languages of a task that fragments added and that a run has scores in."""
    spec = run.manifest["tasks"][task]
    rows = [row for row in run.results["tasks"] if row["task"] == task]
    met = dict.fromkeys(code for row in rows for code in row.get("by_language", {}))
    return tuple(code for code in met if is_added(code, spec))


def language_marks(run: Run, task: str) -> dict[str, str]:
    """Return the marks of a task's languages; those without marks are skipped."""
    spec = run.manifest["tasks"][task]
    cells = [cell for cell in run.cells if cell["task"] == task and cell["status"] == "ok"]
    found: dict[str, str] = {}
    for cell in cells:
        marks = (OTHER_SPLIT if cell["stands_in"] else "") + origin_mark(cell, spec)
        found[cell["language"]] = "".join(dict.fromkeys(found.get(cell["language"], "") + marks))
    return {code: marks for code, marks in found.items() if marks}


def described_languages(run: Run, task: str) -> dict[str, dict[str, str]]:
    """Return name, family and script of a task's languages that are not in the language table."""
    spec = run.manifest["tasks"][task]
    return {
        code: {"name": recorded_name(code, [spec]), "family": str(family), "script": str(script)}
        for code, (family, script) in spec["languages"].items()
        if code not in known_languages()
    }


def extensions(runs: Sequence[Run]) -> tuple[Extension, ...]:
    """Return the means of suites and tasks with added languages, next to the means without them."""
    return tuple(found for run in runs for found in [*_of_suites(run), *_of_tasks(run)])


def _of_suites(run: Run) -> Iterator[Extension]:
    for row in run.results["suites"]:
        extended = row.get("extended")
        if extended is not None and extended["paper"]["value"] is not None:
            named = extended.get("languages", {})
            yield Extension(
                system=run.manifest["model"],
                name=f"suite {row['suite']}",
                published=_points(row["paper"]["value"]),
                extended=extended["paper"]["value"] * 100,
                languages="; ".join(f"{task} {' '.join(codes)}" for task, codes in named.items()),
            )


def _of_tasks(run: Run) -> Iterator[Extension]:
    for row in run.results["tasks"]:
        spec = run.manifest["tasks"][row["task"]]
        added = [code for code in row["by_language"] if is_added(code, spec)]
        if added and row["headline"]:
            own = [value for code, value in row["by_language"].items() if code not in added]
            yield Extension(
                system=run.manifest["model"],
                name=" ".join([row["task"], f"({row['metric']})", *_view(row)]),
                published=_points(sum(own) / len(own) if own else None),
                extended=row["value"] * 100,
                languages=" ".join(added),
            )


def _view(row: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(row["view"].items())]


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


def extension_table(found: Sequence[Extension]) -> Element | None:
    """Return the means with added languages as a section; None where there are none."""
    if not found:
        return None
    rows = [
        (
            one.system,
            one.name,
            "-" if one.published is None else f"{one.published:.1f}",
            f"{one.extended:.1f}{ADDED}",
            one.languages,
        )
        for one in found
    ]
    heads = ("system", "mean of", "published languages", f"with added ones {ADDED}", "added")
    caption = "Means with the languages that others added; not comparable with published scores"
    return element(
        "section",
        element("h2", "With added languages"),
        table(caption, heads, rows, texts={1, 4}),
        id="extended",
    )
