"""``harness plan``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o

if TYPE_CHECKING:
    from harness.analysis.power import Assumption, Detectable
    from harness.running.session import Prepared

Power = Annotated[
    bool, typer.Option("--power", help="Show the smallest difference that each test set can detect.")
]
Assume = Annotated[
    list[Path] | None,
    typer.Option("--assume", help="With --power: take the spread from this run, or from two runs compared."),
]
ExpectedScore = Annotated[float, typer.Option("--score", help="With --power: the expected score.")]
Correlation = Annotated[
    float, typer.Option("--correlation", help="With --power: that of two systems' item scores.")
]
Detect = Annotated[
    float | None,
    typer.Option(
        "--detect", help="With --power: show the items and languages that this difference needs, in points."
    ),
]
app = typer.Typer(add_completion=False)


@app.command()
@o.takes_settings(*(name for name, setting in o.settings().items() if setting.of_plan))
def plan(
    config: o.ConfigFile = None,
    power: Power = False,
    assume: Assume = None,
    score: ExpectedScore = 0.5,
    correlation: Correlation = 0.5,
    detect: Detect = None,
    json_file: o.JsonFile = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show every cell, and every reason for what is skipped.")
    ] = False,
    **given: Any,
) -> None:
    """Show what eval would run, the models it would fit, and what it would skip and why."""
    from harness.cli.configuration import make_config
    from harness.cli.display import print_report, show_plan
    from harness.cli.output import reporting_broken_plugins, write_rows
    from harness.running.session import open_session, prepare
    from harness.storage.run_folder import Run

    run_config = make_config(given, config)
    session = open_session(run_config.tasks_from)
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        prepared = prepare(run_config, session)
    if power:
        from harness.analysis.power import Assumption
        from harness.reporting.power import power_blocks, power_rows

        runs = tuple(map(Run, assume or []))
        wanted = None if detect is None else detect / 100
        assumption = Assumption(score=score, correlation=correlation, runs=runs, detect=wanted)
        found = _detectable(prepared, assumption, run_config.limit)
        print_report(power_blocks(found))
        rows = power_rows(found)
    else:
        show_plan(prepared.plan, details=details)
        rows = [cell.identity() for cell in prepared.plan.cells]
    if json_file is not None:
        write_rows(json_file, rows)


def _detectable(prepared: Prepared, assumption: Assumption, limit: int | None) -> list[Detectable]:
    from harness.analysis.power import detectable_differences
    from harness.running.cell_reader import CellReader

    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    # Nothing is translated for a plan: sizes and clusters are those of the language's own items.
    cells = [replace(cell, test=cell.test.aligned or cell.test.untranslated) for cell in prepared.plan.cells]
    return detectable_differences(cells, reader, registry, assumption, limit=limit)
