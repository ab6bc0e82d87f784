"""``harness score``, ``harness merge`` and ``harness journal``: commands on the folders of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.files import JsonRows
from harness.cli.output import echo, reporting_broken_plugins, write_rows
from harness.errors import UsageError

score_app = typer.Typer(add_completion=False)


@score_app.command()
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
    from harness.data.gold import read_gold
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


merge_app = typer.Typer(add_completion=False)


@merge_app.command()
def merge_runs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of one model.")],
    output: Annotated[
        Path, typer.Option("--output", "--out", help="The new run folder.", rich_help_panel=o.OUTPUT)
    ],
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Merge although shards are missing; they are skipped.")
    ] = False,
    json_file: o.JsonFile = None,
) -> int:
    """Make one run of the shards of a plan, or of runs over different tasks and languages.

    Example: harness merge runs/part-1 runs/part-2 --output runs/whole
    """
    from harness.analysis.merge import merge_runs
    from harness.cli.display import show_run
    from harness.running.session import open_session

    for line in merge_runs(runs, output, open_session().registry.metrics, incomplete=incomplete):
        echo(f"Note: {line}.", err=True)
    return show_run(output, json_file)


journal_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Check the answers that a run has written down."
)


@journal_app.callback()
def _journal() -> None:
    """Check the answers that a run has written down."""


_RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]


@journal_app.command()
def verify(folder: _RunFolder, json_file: JsonRows = None) -> int:
    """Read all logs, and name the bytes that are no good records; exit status 1 where there are any."""
    from harness.storage.journal_log import DESCRIPTION, KEY_BYTES, Log

    rows: list[dict[str, Any]] = []
    answers = 0
    logs = [Log(path) for path in _logs(folder)]
    for log in logs:
        answers += sum(content[KEY_BYTES] != DESCRIPTION for _, _, content in log.records())
        for bad in log.bad:
            echo(f"{log.path}: bytes {bad.start:,} to {bad.stop - 1:,} are no good records.")
            rows.append({"log": log.path.name, "from": bad.start, "to": bad.stop})
    counted = [
        _counted(len(logs), "log"),
        _counted(answers, "good answer"),
        _counted(len(rows), "bad stretch", "es"),
    ]
    lost = sum(row["to"] - row["from"] for row in rows)
    end = f" ({lost:,} bytes); a resumed run asks again what is missing" if rows else ""
    echo(f"{', '.join(counted)}{end}.")
    write_rows(json_file, rows)
    return int(bool(rows))


def _logs(folder: Path) -> list[Path]:
    """Return the logs of a run, finished or not; raises `UsageError` where there is no run or no journal."""
    from harness.storage.journal_log import log_paths

    if not folder.is_dir():
        raise UsageError(f"The run folder {str(folder)!r} does not exist.", hint="Look below 'runs'.")
    if (folder / "journal").is_dir():
        return log_paths(folder / "journal")
    if (folder / "manifest.json").is_file():
        raise UsageError(f"The run {str(folder)!r} has no journal: it has no folder 'journal'.")
    raise UsageError(
        f"The folder {str(folder)!r} is no run: it has no manifest.json.",
        hint="A run folder is what 'harness eval --output DIR' wrote.",
    )


def _counted(number: int, unit: str, plural: str = "s") -> str:
    return f"{number:,} {unit}{'' if number == 1 else plural}"
