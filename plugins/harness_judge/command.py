"""Rate answers of finished runs with a second model; its agreement with gold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Let a second model rate the answers of finished runs."
)

Json = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]


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
    from harness_judge.task_folder import read_rubric, write_tasks

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
    passports: Annotated[
        list[Path] | None,
        typer.Option("--passport", help="A passport of this judge: its languages get corrected scores."),
    ] = None,
    uncertified: Annotated[
        bool, typer.Option("--uncertified", help="Show judged scores of languages without a passport, too.")
    ] = False,
    json_file: Json = None,
) -> None:
    """Show the verdicts by language, and in which languages the judge agrees with gold and people.

    A language without a passport shows no judged score.

    Example: harness judge report runs/judged --calibration runs/judged-mgsm
    """
    from harness import Run
    from harness.cli import check_output_file, echo, print_table, write_rows
    from harness_judge.passport import read_passport
    from harness_judge.report import KAPPA, calibrations, report_notes, report_rows, report_table

    check_output_file(json_file, ".json")
    run = Run(folder)
    gold = [run] if any(KAPPA in cell.metrics for cell in run.cells) else []
    rows = report_rows(
        run,
        calibrations([*gold, *map(Run, calibration or ())], run),
        [read_passport(path, run) for path in passports or ()],
        uncertified=uncertified,
    )
    head = run.results.model
    echo(f"Judge: {head.adapter}:{head.ref}" + (f", revision {head.revision}" if head.revision else ""))
    for task in dict.fromkeys(row["task"] for row in rows):
        echo(f"\n{task}: {run.manifest.specs.get(task, {}).get('description', '')}")
        print_table(*report_table([row for row in rows if row["task"] == task]))
    echo(
        "\nScores x100; ± half the 95 % interval, (a–b) its ends. Calibrated: the interval of Cohen's kappa with gold "
        "is above 0. Unreadable: refusals and other texts without a verdict."
    )
    for note in report_notes(rows):
        echo(note)
    if json_file is not None:
        write_rows(json_file, rows)


@app.command("certify")
def certify(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run of the judge.")],
    output: Annotated[Path, typer.Option("--output", "--out", help="The passport, a .json file.")],
    human: Annotated[
        Path | None,
        typer.Option(
            "--human",
            metavar="FILE",
            help="Verdicts of people on a random sample of RUN's items (.jsonl, .csv or .tsv: task, language, id, "
            "label); without it RUN's own gold.",
        ),
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--other-words", metavar="RUN", help="The same judge and items with --instruction-language."
        ),
    ] = None,
    json_file: Json = None,
) -> None:
    """Write the passport of a judge: its agreement with people and its biases, by language.

    Example: harness judge certify runs/ratings --human verdicts.csv --output judge.json
    """
    from harness import Run
    from harness.cli import check_output_file, echo, print_table, write_rows
    from harness_judge.passport import certify as certify_run, write_passport
    from harness_judge.report import passport_rows, passport_table

    check_output_file(json_file, ".json")
    check_output_file(output, ".json")
    passport = certify_run(Run(folder), human, [Run(other) for other in others or ()])
    write_passport(output, passport)
    echo(f"Judge: {passport.judge}, digest {passport.judge_digest[:16]}; rubric {passport.rubric}")
    rows = passport_rows(passport)
    print_table(*passport_table(rows))
    echo(
        "\nScores x100. Biases: judge minus people (position: first minus second answer; words: these minus those), of "
        f"the whole scale.\nWrote {output}. Next: harness judge report RUN --passport {output}"
    )
    if json_file is not None:
        write_rows(json_file, rows)
