"""The tasks of a suite as a table of a paper: sizes, test languages, metric, domain (XTREME-R, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.metrics.naming import metric_name
from harness.planning.origin import Origin
from harness.reporting.blocks.model import BLANK, Table, rows_of
from harness.reporting.render.latex import render_latex
from harness.reporting.render.markdown import render_markdown
from harness.reporting.render.rows import csv_text
from harness.specs.catalog import Catalog
from harness.specs.schema import TaskSpec


def suite_overview(catalog: Catalog, name: str) -> list[dict[str, str]]:
    """Return a row per task of a suite; ``-`` where the specs do not say.

    Training and development sets are those in the language that models are trained on; stages are joined with ``+``.
    Test sizes are the smallest and largest of the suite's languages in the first known release. Raises
    `UnknownNameError` for an unknown suite.
    """
    suite = catalog.suite(name)
    category = {task: group.replace("_", " ") for group, tasks in suite.categories.items() for task in tasks}
    rows = []
    for task in suite.tasks:
        entry = catalog.task(task)
        spec = entry.spec
        codes = suite.languages.get(task) or [code for code in spec.languages if code not in entry.added]
        stages = (
            []
            if spec.transfer is None
            else [Origin.named(stage, catalog).spec for stage in spec.transfer.stages]
        )
        train = [f"{stage.sizes['train']:,}" for stage in stages if "train" in stage.sizes]
        dev = [f"{stage.sizes['validation']:,}" for stage in stages[-1:] if "validation" in stage.sizes]
        rows.append(
            {
                "category": category.get(task, BLANK),
                "task": task,
                "train": "+".join(train) or BLANK,
                "dev": "+".join(dev) or BLANK,
                "test": _test_size(spec, codes),
                "test sets": "translations" if spec.parallel else "independent",
                "languages": str(len(codes)),
                "metric": " / ".join(map(metric_name, spec.headline)),
                "domain": spec.domain or BLANK,
            }
        )
    return rows


def _test_size(spec: TaskSpec, codes: Sequence[str]) -> str:
    counts = [
        count
        for release in list(spec.releases.values())[:1]
        for code in codes
        if (count := release.count(code))
    ]
    ends = sorted({min(counts), max(counts)}) if counts else []
    return "–".join(f"{count:,}" for count in ends) or BLANK


def suite_overview_text(name: str, rows: Sequence[Mapping[str, str]], format_name: str) -> str:
    """Return the rows of a suite as ``csv``, ``latex`` or ``markdown``."""
    if format_name == "csv":
        return csv_text(rows)
    corner, *heads = rows[0]
    table = Table(
        title=f"The tasks of {name}",
        corner=corner,
        heads=tuple(heads),
        rows=rows_of(tuple(row.values()) for row in rows),
        words=frozenset({0, 4, 6, 7}),
    )
    return render_latex([table]) if format_name == "latex" else render_markdown([table])
