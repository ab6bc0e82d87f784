"""``harness plan``."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.output import echo, reporting_broken_plugins, write_rows
from harness.errors import UsageError
from harness.planning.run_config import settings

if TYPE_CHECKING:
    from harness.analysis.plan_estimates import Assumption, Detectable
    from harness.running.session import Prepared
    from harness.storage.run_folder import Run

Power = Annotated[
    bool, typer.Option("--power", help="Show the smallest difference that each test set can detect.")
]
Assume = Annotated[
    list[Path] | None,
    typer.Option(
        "--assume",
        help="For --power: its spread, or that of two. For --tokens: its tokens per character.",
    ),
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
Tokens = Annotated[
    bool, typer.Option("--tokens", help="Show the tokens that each language will cost, before the run.")
]
Price = Annotated[
    str | None,
    typer.Option(
        "--price", metavar="IN,OUT", help="With --tokens: the price of a million tokens read, and written."
    ),
]
app = typer.Typer(add_completion=False)


@app.command()
@o.takes_settings(*(name for name, setting in settings().items() if setting.of_plan))
def plan(
    config: o.ConfigFile = None,
    power: Power = False,
    assume: Assume = None,
    score: ExpectedScore = 0.5,
    correlation: Correlation = 0.5,
    detect: Detect = None,
    tokens: Tokens = False,
    price: Price = None,
    json_file: o.JsonFile = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show every cell, and every reason for what is skipped.")
    ] = False,
    **given: Any,
) -> None:
    """Show what eval would run, the models it would fit, and what it would skip and why."""
    from harness.cli.display import print_report, show_plan
    from harness.cli.fetch import print_downloads
    from harness.cli.live import show_steps
    from harness.running.session import open_session, prepare

    run_config = o.make_config(given, config)
    session = open_session(run_config.tasks_from)
    with reporting_broken_plugins(session.registry.plugins, session.catalog), show_steps():
        print_downloads(run_config, session)
        prepared = prepare(run_config, session)
    runs: tuple[Run, ...] = ()
    if assume:
        from harness.storage.run_folder import Run

        runs = tuple(map(Run, assume))
    if tokens:
        rows = _show_tokens(prepared, runs, run_config.limit, _prices(price))
    elif price is not None:
        raise UsageError("--price needs --tokens.")
    elif power:
        from harness.analysis.plan_estimates import Assumption
        from harness.reporting.comparison.comparison import power_blocks, power_rows

        difference = None if detect is None else detect / 100
        assumption = Assumption(score=score, correlation=correlation, runs=runs, detect=difference)
        detectable = _detectable(prepared, assumption, run_config.limit)
        print_report(power_blocks(detectable))
        rows = power_rows(detectable)
    else:
        show_plan(prepared.plan, details=details)
        rows = [cell.identity() for cell in prepared.plan.cells]
    write_rows(json_file, rows)


def _prices(text: str | None) -> tuple[float, float] | None:
    """Return the prices of input and output; raises `UsageError` for anything but two numbers."""
    if text is None:
        return None
    try:
        read, written = map(float, text.split(","))
    except ValueError:
        read = -1.0
    if not (0 <= read < math.inf and 0 <= written < math.inf):
        raise UsageError(
            f"--price {text!r} is not IN,OUT: two prices of a million tokens, such as 0.15,0.60."
        )
    return read, written


def _show_tokens(
    prepared: Prepared, runs: tuple[Run, ...], limit: int | None, price: tuple[float, float] | None
) -> list[dict[str, Any]]:
    """Print the tokens of a plan by task and language, and return them as rows."""
    from harness.analysis.plan_estimates import TokenCounter, planned_tokens
    from harness.cli.display import print_table
    from harness.planning.plan import require_cells
    from harness.running.cell_reader import CellReader

    require_cells(prepared.plan)
    registry, plan = prepared.session.registry, prepared.plan
    counter = TokenCounter.of(plan.model, runs)
    planned = planned_tokens(plan.cells, CellReader(registry, prepared.finder), registry, counter, limit)
    rows = [asdict(tokens) | ({} if price is None else {"cost": tokens.cost(price)}) for tokens in planned]
    total = {
        name: sum(row[name] for row in rows)
        for name in rows[0]
        if name in {"items", "input", "output", "cost"}
    }
    lines = [
        [
            row["task"],
            row["language"],
            *(f"{row[name]:,.4g}" if name == "cost" else f"{row[name]:,}" for name in total),
        ]
        for row in [*rows, {"task": "all", "language": "", **total}]
    ]
    print_table(["task", "language", *total], lines)
    how = (
        "estimated: the model's tokenizer is not on this machine"
        if counter.estimates
        else "by the model's tokenizer"
    )
    echo(f"Tokens {how}; output at most; trainings, chat templates and repeated requests not counted.")
    if counter.estimates and not runs:
        echo(
            "A token is taken as 4 bytes, too few for some languages: give an earlier run with --assume RUN."
        )
    return rows


def _detectable(prepared: Prepared, assumption: Assumption, limit: int | None) -> list[Detectable]:
    from harness.analysis.plan_estimates import detectable_differences
    from harness.running.cell_reader import CellReader

    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    # Nothing is translated for a plan: sizes and clusters are those of the language's own items.
    cells = [replace(cell, test=cell.test.aligned or cell.test.untranslated) for cell in prepared.plan.cells]
    return detectable_differences(cells, reader, registry, assumption, limit=limit)
