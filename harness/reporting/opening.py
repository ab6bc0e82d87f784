"""The head of a page: what the run is in a few words, and what a reader must know before any number."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from harness.languages.table import recorded_name
from harness.reporting.column import short_protocol
from harness.reporting.glance import Completeness, completeness
from harness.reporting.material import Material
from harness.reporting.model import Banner
from harness.reporting.remark import counted
from harness.storage.run_folder import Run

__all__ = ["MISSING", "banners", "chips"]

MISSING = "missing"
"""The anchor of the section that lists what has no score."""
SAMPLE = "They show that the machinery works and say nothing about a model."
_MADE = {
    "prompted": "prompted",
    "in_language": "fine-tuned in each language",
    "translate_train": "fine-tuned on translations",
    "translate_train_all": "fine-tuned on translations into all languages",
}
MOST_LANGUAGES = 3


def chips(run: Run) -> list[str]:
    """Return how a run was made, in a few words each: training, recipe, limits, data, date."""
    return list(dict.fromkeys(_chips(run)))


def _chips(run: Run) -> Iterator[str]:
    config = run.manifest.config
    scored = ((str(cell.protocol), str(cell.method)) for cell in run.cells if cell.status == "ok")
    for protocol, method in dict.fromkeys(scored):
        made = short_protocol(protocol, method) if protocol == "frozen" else _MADE.get(protocol, protocol)
        yield _trained(run) if protocol == "zero_shot_transfer" else made
    recipes = dict.fromkeys(str(stage["recipe"]) for stage in _stages(run) if stage.get("recipe"))
    yield from (f"recipe {name}" for name in recipes)
    if shots := config.get("shots"):
        yield counted(shots, "shot")
    if limit := config.get("limit"):
        yield f"{counted(limit, 'item')} per language"
    if precision := config.get("precision"):
        yield f"±{precision:g} points"
    if budget := config.get("budget"):
        yield f"{counted(budget, 'item')} in all"
    if train_limit := config.get("train_limit"):
        yield f"{train_limit:,} training examples"
    if run.results.run.data == "sample":
        yield "sample data"
    if run.results.model.parameters:
        yield f"{run.results.model.parameters / 1e6:,.0f} M parameters"
    if run.results.run.created:
        yield _date(run.results.run.created)


def _stages(run: Run) -> Iterator[dict[str, Any]]:
    return (stage for fit in run.results.fits.values() for stage in fit.stages)


def _trained(run: Run) -> str:
    codes = dict.fromkeys(
        code for stage in _stages(run) for code in stage.get("train", {}).get("languages", ())
    )
    names = [recorded_name(code, ()) for code in codes]
    if not names:
        return "zero-shot transfer"
    return (
        f"fine-tuned on {' and '.join(names) if len(names) <= MOST_LANGUAGES else f'{len(names)} languages'}"
    )


def _date(created: str) -> str:
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{moment.day} {moment:%b %Y}"


def banners(material: Material) -> list[Banner]:
    """Return what restricts the given runs: stopped, partial, or of the sample; nothing for whole runs on real data."""
    found = [_banner(run, material) for run in material.runs]
    sampled = [run for run in material.runs if run.results.run.data == "sample"]
    if sampled:
        names = "" if len(sampled) == len(material.runs) else ", ".join(map(material.name, sampled))
        found.insert(
            0, Banner(title=f"{names}{': ' if names else ''}Scores of the shipped sample.", text=SAMPLE)
        )
    return [banner for banner in found if banner is not None]


def _banner(run: Run, material: Material) -> Banner | None:
    name = f"{material.name(run)}: " if len(material.runs) > 1 else ""
    state, suites = completeness(run), " ".join(_suites(run))
    if state.is_whole:
        return Banner(title=f"{name}Part of a suite.", text=suites) if suites else None
    return Banner(
        title=f"{name}{'Stopped' if state.stopped else 'Partial'} run.",
        text=f"{_counts(state)} {suites}".rstrip(),
        href=f"#{MISSING}",
        command=f"harness eval --resume {shlex.quote(str(run.path))}" if state.stopped else "",
    )


def _counts(state: Completeness) -> str:
    parts = [
        f"{scored} of {counted(asked, noun)}"
        for (scored, asked), noun in ((state.tasks, "task"), (state.languages, "language"))
    ]
    for count, what in (
        (state.failed, "failed"),
        (state.skipped, "skipped"),
        (state.unlabelled, "without labels"),
        (state.stopped, "not reached"),
    ):
        if count:
            parts.append(f"{counted(count, 'cell')} {what}")
    return f"{', '.join(parts)}."


def _suites(run: Run) -> list[str]:
    """Return which suites have no score, or none that can be compared with the published ones."""
    rows: Sequence[Any] = run.results.suites
    none = dict.fromkeys(row.suite for row in rows if row.paper.value is None)
    fewer = dict.fromkeys(row.suite for row in rows if row.paper.value is not None and not row.complete)
    found = [f"No score of the suite {name}; not comparable with published ones." for name in none]
    return [
        *found,
        *(
            f"The score on {name} is over fewer languages; not comparable with published ones."
            for name in fewer
        ),
    ]
