"""Runs as published and corrected: both scores of the same answers, and what changes in the order of systems."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness import Run, UsageError
from harness.analysis import relabel
from harness.reporting import conditions_of, percent, signed, system_names, uncertainty
from harness.statistics import mean_ranks
from harness.storage import CellResult, MetricValue, TaskScore
from harness_errata.document import Errata
from harness_errata.fitting import FittedFile, fit_run, gold_of

if TYPE_CHECKING:
    from harness.registry import Registry

MEAN: Final = "mean"
"""In the place of a language: the score of the task."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRun:
    """A run, the same answers scored with errata, and what the errata say of its items."""

    published: Run
    corrected: Run
    fitted: Sequence[FittedFile]
    left: Sequence[str]
    """Tasks whose errata are of other items, with the reason."""


def correct_runs(
    folders: Sequence[Path], errata: Errata, registry: Registry, output: Path | None
) -> list[CorrectedRun]:
    """Score every run with errata, and return it with its corrected run; no model is asked.

    Args:
        folders: The runs, which stay as they are.
        errata: The corrections.
        registry: Has the metrics.
        output: The new run, or with several runs a new folder of them; None keeps none.

    Raises:
        UsageError: Where a run has no task of the errata, or nothing of them applies to it.
        DataError: Where the errata are of other items.
    """
    runs = [Run(folder) for folder in folders]
    fits = [fit_run(errata, run) for run in runs]
    for run, (fitted, _) in zip(runs, fits, strict=True):
        if not any(item.applied for item in fitted):
            raise UsageError(
                f"No entry of the errata {str(errata.folder)!r} applies to an item of the run {str(run.path)!r}: "
                + "; ".join(_counts(item) for item in fitted)
                + "."
            )
    names = [folder.name for folder in folders]
    if output is not None and len(set(names)) < len(names):
        raise UsageError("Two of the runs have folders of the same name.", hint="Give them one by one.")
    corrected = []
    with tempfile.TemporaryDirectory() as temporary:
        for run, name, (fitted, left) in zip(runs, names, fits, strict=True):
            target = output if output is not None and len(runs) == 1 else (output or Path(temporary)) / name
            relabel(run.path, gold_of(errata, fitted), target, registry)
            corrected.append(CorrectedRun(published=run, corrected=Run(target), fitted=fitted, left=left))
    return corrected


def score_rows(runs: Sequence[CorrectedRun], errata: Errata, registry: Registry) -> list[Row]:
    """Return a row per system, task and metric for every corrected language and the task's mean: both scores.

    Its ``rank`` pairs are among the systems with the same languages and conditions; None where it is the only one.
    """
    rows: list[Row] = []
    for name, run in zip(system_names([item.published for item in runs]), runs, strict=True):
        for row in _run_rows(run):
            rows.append({"system": name, **row, "errata": errata.digest})
    for same in _comparable(rows):
        better = -1.0 if registry.metrics.get(same[0]["metric"]).higher_is_better else 1.0
        ranks = [
            mean_ranks(better * np.array([row[version]["value"] for row in same]))
            for version in ("published", "corrected")
        ]
        for row, before, after in zip(same, *ranks, strict=True):
            row["rank"] = [float(before), float(after)]
    return rows


def _comparable(rows: Sequence[Row]) -> Iterator[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        of = ",".join(row["languages"])
        groups.setdefault((row["task"], row["language"], row["metric"], row["conditions"], of), []).append(
            row
        )
    for same in groups.values():
        if len(same) > 1 and len({row["system"] for row in same}) == len(same):
            yield same


def _run_rows(run: CorrectedRun) -> Iterator[Row]:
    tasks = {item.file.document.errata for item in run.fitted if item.applied}
    touched: dict[str, list[tuple[CellResult, CellResult]]] = {}
    for before, after in zip(run.published.cells, run.corrected.cells, strict=True):
        counts = after.gold or {}
        if after.task in tasks and (counts.get("removed") or counts.get("changed")):
            touched.setdefault(after.task, []).append((before, after))
    for task, pairs in touched.items():
        headline = run.published.manifest.tasks[task].headline
        seeds = {before.seed for before, _ in pairs}
        for before, after in pairs:
            seed = {"seed": str(before.seed)} if len(seeds) > 1 else {}
            for metric in (name for name in headline if name in before.metrics and name in after.metrics):
                counts = after.gold or {}
                yield {
                    "task": task,
                    "language": after.language,
                    "languages": [after.language],
                    "conditions": conditions_of({"method": before.method or "", **before.view, **seed}),
                    "metric": metric,
                    "items": [before.n, after.n],
                    "removed": counts.get("removed", 0),
                    "changed": counts["changed"],
                    **_versions(before.metrics[metric], after.metrics[metric]),
                }
        yield from _mean_rows(run, task, headline)


def _mean_rows(run: CorrectedRun, task: str, headline: Sequence[str]) -> Iterator[Row]:
    def of(score: TaskScore) -> tuple[Any, ...]:
        view = {name: value for name, value in score.view.items() if name != "gold"}
        return score.metric, score.protocol, score.method, tuple(sorted(view.items())), tuple(score.fit)

    after = {of(score): score for score in run.corrected.results.tasks if score.task == task}
    for score in run.published.results.tasks:
        if score.task == task and score.metric in headline and of(score) in after:
            yield {
                "task": task,
                "language": MEAN,
                "languages": sorted(score.by_language),
                "conditions": conditions_of({"method": score.method, **score.view}),
                "metric": score.metric,
                "items": None,
                "removed": None,
                "changed": None,
                **_versions(score, after[of(score)]),
            }


def _versions(before: MetricValue | TaskScore, after: MetricValue | TaskScore) -> Row:
    return {
        "published": {"value": before.value, "ci": before.ci},
        "corrected": {"value": after.value, "ci": after.ci},
        "change": after.value - before.value,
        "rank": None,
    }


def score_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and fields of the table of both scores."""
    ranked = any(row["rank"] for row in rows)
    several = len({row["conditions"] for row in rows}) > 1
    columns: dict[str, Callable[[Row], str]] = {
        "system": lambda row: row["system"],
        "task": lambda row: row["task"],
        "language": lambda row: row["language"],
        **({"conditions": lambda row: row["conditions"]} if several else {}),
        "metric": lambda row: row["metric"],
        "items": _items,
        "published": lambda row: _score(row["published"]),
        "corrected": lambda row: _score(row["corrected"]),
        "change": lambda row: signed(row["change"]),
        **({"rank": _rank} if ranked else {}),
    }
    return list(columns), [[field(row) for field in columns.values()] for row in rows]


def _items(row: Row) -> str:
    if row["items"] is None:
        return f"{len(row['languages'])} languages"
    parts = [
        f"-{row['removed']}" if row["removed"] else "",
        f"{row['changed']} changed" if row["changed"] else "",
    ]
    return f"{row['items'][0]:,} ({', '.join(filter(None, parts))})"


def _score(version: Mapping[str, Any]) -> str:
    return f"{percent(version['value'])} {uncertainty(version['value'], version['ci'])}".strip()


def _rank(row: Row) -> str:
    if row["rank"] is None:
        return "-"
    before, after = (f"{rank:g}" for rank in row["rank"])
    return before if before == after else f"{before} → {after}"


def notes(runs: Sequence[CorrectedRun], errata: Errata) -> list[str]:
    """Return the notes below the table: which errata were applied, and what was not corrected."""
    lines = [f"Errata: {errata.folder}, digest {errata.digest[:16]}. Both scores are of the same answers."]
    for run in runs:
        for item in run.fitted:
            lines.append(f"{run.published.path.name}: {_counts(item)}.")
            if item.texts:
                lines.append(
                    f"  {len(item.texts)} entries correct input texts: their scores need the model to be asked "
                    "again, and are as published in both columns."
                )
        lines += [f"{run.published.path.name}: not corrected, other items: {reason}." for reason in run.left]
    return list(dict.fromkeys(lines))


def _counts(item: FittedFile) -> str:
    counts = {
        "applied": len(item.applied),
        "of texts": len(item.texts),
        "of items that the run does not have": len(item.absent),
        "of languages that it does not have": len(item.unread),
    }
    said = ", ".join(f"{count} {title}" for title, count in counts.items() if count)
    return f"{item.file.path.name} ({item.file.document.revision}): {said or 'no entries'}"
