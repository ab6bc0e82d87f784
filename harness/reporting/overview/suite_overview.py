"""The tasks of a suite as a table of a paper: sizes, test languages, metric, domain (XTREME-R, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.metrics.metric import metric_name
from harness.planning.origin import Origin
from harness.reporting.blocks.model import BLANK, make_table
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
        stages = [] if spec.transfer is None else spec.transfer.stages
        sizes = [Origin.named(stage, catalog).spec.sizes for stage in stages]
        row = {
            "category": category.get(task),
            "task": task,
            "train": "+".join(f"{size['train']:,}" for size in sizes if "train" in size),
            "dev": "+".join(f"{size['validation']:,}" for size in sizes[-1:] if "validation" in size),
            "test": _test_size(spec, codes),
            "test sets": "translations" if spec.parallel else "independent",
            "languages": str(len(codes)),
            "metric": " / ".join(map(metric_name, spec.headline)),
            "domain": spec.domain,
        }
        rows.append({head: text or BLANK for head, text in row.items()})
    return rows


def _test_size(spec: TaskSpec, codes: Sequence[str]) -> str:
    releases = list(spec.releases.values())[:1]
    counts = [count for release in releases for code in codes if (count := release.count(code))]
    ends = sorted({min(counts), max(counts)}) if counts else []
    return "–".join(f"{count:,}" for count in ends)


def suite_overview_text(name: str, rows: Sequence[Mapping[str, str]], format_name: str) -> str:
    """Return the rows of a suite as ``csv``, ``latex`` or ``markdown``."""
    if format_name == "csv":
        return csv_text(rows)
    table = make_table(
        f"The tasks of {name}", list(rows[0]), (tuple(row.values()) for row in rows), words={0, 4, 6, 7}
    )
    return render_latex([table]) if format_name == "latex" else render_markdown([table])
