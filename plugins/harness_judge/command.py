"""``harness judge``: the task of a judge, and what its run shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Let a second model rate the answers of finished runs."
)


@app.callback()
def judge() -> None:
    """Write answers as a task for a judge, and report its verdicts and how far they can be believed."""


@app.command("export")
def export(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN [RUN]", help="The judged run, or two.")],
    output: Annotated[Path, typer.Option("--output", "--out", help="A new folder for the task.")],
    rubric: Annotated[
        str, typer.Option("--rubric", help="correct, translation, summary, preference, or a YAML file.")
    ] = "correct",
) -> None:
    """Write the answers of a run, or two, as a task that `harness eval` asks any model.

    Example: harness judge export runs/mgsm --output judging
    """
    # Imported here so that help stays fast.
    from harness import Run
    from harness.cli import echo
    from harness_judge.rubric import read_rubric
    from harness_judge.task_folder import write_tasks

    read = read_rubric(rubric)
    written = write_tasks([Run(folder) for folder in folders], read, output)
    for name, items in written.items():
        counts = ", ".join(f"{code} {count}" for code, count in items.items())
        echo(f"{name}: items by language: {counts}")
        english = [code for code in items if code not in read.literals]
        if english:
            echo(f"  The rubric has no words in {', '.join(english)}: the judge is asked in English.")
    echo(
        f"Next: harness eval --tasks {','.join(written)} --tasks-from {output} --data {output} "
        "--model JUDGE --output RUN"
    )


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run of the judge.")],
    calibration: Annotated[
        list[Path] | None,
        typer.Option("--calibration", help="A run of the same judge on a task with gold."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
) -> None:
    """Show the verdicts by language, and in which languages the judge agrees with gold.

    Example: harness judge report runs/judged --calibration runs/judged-mgsm
    """
    from harness import Run
    from harness.cli import check_output_file, echo, print_table, write_rows
    from harness_judge.report import KAPPA, calibrations, report_rows, report_table

    check_output_file(json_file, ".json")
    run = Run(folder)
    gold = [run] if any(KAPPA in cell.metrics for cell in run.cells) else []
    rows = report_rows(run, calibrations([*gold, *map(Run, calibration or ())], run))
    head = run.results.model
    echo(f"Judge: {head.adapter}:{head.ref}" + (f", revision {head.revision}" if head.revision else ""))
    for task in dict.fromkeys(row["task"] for row in rows):
        echo(f"\n{task}: {run.manifest.specs.get(task, {}).get('description', '')}")
        print_table(*report_table([row for row in rows if row["task"] == task]))
    echo(
        "\nScores x100; ± half the 95 % interval, (a–b) its ends. Calibrated: the interval of Cohen's kappa with gold "
        "is above 0. Unreadable: refusals and other texts without a verdict."
    )
    if json_file is not None:
        write_rows(json_file, rows)
