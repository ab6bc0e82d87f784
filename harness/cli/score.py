"""``harness score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import option as o
from harness.cli.files import JsonRows

app = typer.Typer(add_completion=False)


@app.command()
def score(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "--metric",
            help="Further metrics, where they fit the kind of task; NAME=COMMAND asks a program (COMET).",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", min=1, help="End a metric's COMMAND that writes nothing for these seconds; 600."
        ),
    ] = None,
    gold: o.Gold = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", help="With --gold: the folder of the new run; RUN stays as it is."),
    ] = None,
    allow_code: o.AllowCode = False,
    json_file: JsonRows = None,
) -> int:
    """Score a run again from its records; needs neither the model nor the data.

    Example: harness score runs/my-run --gold relabelled.jsonl --output runs/my-run-relabelled
    """
    from harness.analysis.metric_process import MetricCommand, is_command
    from harness.analysis.rescoring import relabel, rescore
    from harness.cli.display import show_run
    from harness.cli.output import reporting_broken_plugins
    from harness.data.gold import read_gold
    from harness.errors import UsageError
    from harness.running.session import open_session
    from harness.specs.selection import split_names

    if (gold is None) is not (output is None):
        raise UsageError("--gold makes another run of RUN: give it together with --output DIR.")
    commands = [MetricCommand.of(text, timeout) for text in metrics or [] if is_command(text)]
    metric_names = split_names([text for text in metrics or [] if not is_command(text)])
    if gold is not None and commands:
        raise UsageError(
            "--gold and a metric's command cannot be given together.",
            hint="Score the new run with the command afterwards.",
        )
    registry = open_session(allow_code=allow_code).registry
    with reporting_broken_plugins(registry.plugins):
        if gold is not None and output is not None:
            relabel(folder, read_gold(gold), output, registry, tuple(metric_names))
        else:
            rescore(folder, registry, metric_names, commands)
    return show_run(output or folder, json_file)
