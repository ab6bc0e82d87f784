"""What ``manifest.json`` and ``results.json`` say of tasks, suites, pools and releases."""

from __future__ import annotations

from typing import Any

from harness.data.pool import CandidatePool
from harness.planning.plan import Cell, Plan
from harness.specs.schema import TaskSpec

__all__ = [
    "empty_result",
    "pool_summary",
    "release_summary",
    "spec_summary",
    "suite_summaries",
    "task_summaries",
]


def task_summaries(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return `spec_summary` of every task of a plan."""
    families = _families(plan)
    return {cell.spec.task: spec_summary(cell.spec, families, plan) for cell in plan.cells}


def _families(plan: Plan) -> dict[str, tuple[str, str]]:
    return {cell.language.code: (cell.language.family, cell.language.script) for cell in plan.cells}


def suite_summaries(plan: Plan) -> list[dict[str, Any]]:
    """Return what aggregation needs of the suites that were asked for; kept in the manifest."""
    return [
        {
            "suite": suite.suite,
            "protocol": suite.protocol,
            "tasks": list(suite.tasks),
            "categories": {name: list(tasks) for name, tasks in suite.categories.items()},
            "languages": {task: list(plan.published.get(task, ())) for task in suite.tasks},
            **({"views": {task: dict(view) for task, view in suite.views.items()}} if suite.views else {}),
        }
        for suite in plan.suites
    ]


def spec_summary(spec: TaskSpec, languages: dict[str, tuple[str, str]], plan: Plan) -> dict[str, Any]:
    """Return what aggregation and rescoring need of a spec; kept in the manifest."""
    return {
        "kind": spec.kind,
        "metrics": list(spec.metrics),
        "headline": list(spec.headline),
        "metric_options": spec.metric_options,
        "labels": list(spec.label_names),
        "parallel": spec.parallel,
        **_of_languages(spec, plan),
        "chance": spec.chance,
        "source": spec.transfer.source if spec.transfer is not None else None,
        "axes": list(spec.axes),
        "human": dict(plan.human.get(spec.task, {})),
        "published_languages": list(plan.published.get(spec.task, ())),
        "languages": {code: list(pair) for code, pair in languages.items()},
    }


def _of_languages(spec: TaskSpec, plan: Plan) -> dict[str, Any]:
    """Return what only tasks have that fragments extend, or that describe languages themselves."""
    described = {
        code: entry.name for code, entry in spec.languages.items() if entry is not None and entry.name
    }
    parts = {"unpaired": spec.unpaired, "added": dict(plan.added.get(spec.task, {})), "names": described}
    return {name: part for name, part in parts.items() if part}


def release_summary(cell: Cell, size: int) -> dict[str, Any] | None:
    """Return which known release a test set is, by its size; None where the task names none for the language."""
    code = cell.language.code
    if cell.test.files.origin == "sample" or not cell.spec.knows_release(code):
        return None
    name = cell.spec.release_of(code, size)
    if name is not None:
        return {"name": name, "note": cell.spec.releases[name].note}
    if cell.test.files.stands_in:
        # The known numbers are those of test sets, unless one is of the other split.
        return None
    known = ", ".join(name for name, release in cell.spec.releases.items() if release.count(code))
    return {"name": None, "note": f"the number of items is that of no known release ({known})"}


def pool_summary(pool: CandidatePool) -> dict[str, Any]:
    """Return what results record of a candidate pool."""
    return {
        "size": len(pool),
        "languages": list(pool.languages),
        "missing": list(pool.missing),
        "digest": pool.digest,
    }


def empty_result(status: str, reason: str) -> dict[str, Any]:
    """Return the numbers of a cell without scores."""
    return {
        "n": 0,
        "status": status,
        "reason": reason,
        "metrics": {},
        "truncated": 0,
        "unparsed": 0,
        "seconds": 0.0,
    }
