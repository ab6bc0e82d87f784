"""Find the items of a benchmark that look wrong, from the answers of many runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import JsonFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness import Run
    from harness_suspects.answers import TaskAnswers
    from harness_suspects.suspect import Suspect

app = typer.Typer(add_completion=False)


@app.command()
def suspects(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of one task.")],
    task: Annotated[str | None, typer.Option("--task", help="The task, where the runs have several.")] = None,
    languages: Annotated[
        list[str] | None, typer.Option("--languages", "-l", help="Only these, or all but !CODE.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="The number of suspects.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", help="A new folder for the sheets that 'harness annotate' imports."
        ),
    ] = None,
    controls: Annotated[
        int,
        typer.Option(
            "--controls", min=0, help="Other items per suspect that the sheets hide the suspects among."
        ),
    ] = 1,
    annotators: Annotated[int, typer.Option("--annotators", min=1, help="People who label each sheet.")] = 2,
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page with all cards.")] = None,
    json_file: JsonFile = None,
    seed: Annotated[int, typer.Option("--seed", help="Of permutations and of the draw of controls.")] = 0,
) -> None:
    """Find the items of a parallel task that systems get wrong in one language and right in the others.

    Example: harness suspects runs/sib200-* --output sheets
    """
    # Imported here so that help stays fast.
    from harness import Run
    from harness.cli import check_output_file, print_report, write_file, write_rows
    from harness.reporting import render_html
    from harness.specs import split_names
    from harness_suspects.answers import read_answers
    from harness_suspects.signs import agreement_evidence, find_signs, sign_codes
    from harness_suspects.suspect import rank_suspects, suspect_blocks, suspect_report, suspect_rows
    from harness_suspects.verdict import find_families, judge

    check_output_file(json_file, ".json")
    check_output_file(html, ".html")
    runs = [Run(folder) for folder in folders]
    answers = read_answers(runs, task=task, languages=split_names(languages or []))
    families = find_families(answers.right)
    signs = find_signs(answers, families)
    codes = sign_codes(signs, answers.right.shape[1:])
    evidence = agreement_evidence(answers, families, signs)
    judgement = judge(
        answers.right, answers.chance, answers.clusters, codes, evidence, families=families, seed=seed
    )
    ranked = rank_suspects(answers, judgement, signs, top=top)
    remarks = _remarks(runs, answers)
    print_report(suspect_blocks(answers, judgement, ranked, remarks))
    if html is not None:
        write_file(html, render_html(suspect_report(answers, judgement, ranked, remarks)))
    if json_file is not None:
        write_rows(json_file, suspect_rows(answers, judgement, ranked))
    if output is not None:
        raise typer.Exit(_write_sheets(answers, folders, ranked, output, controls, annotators, seed))


def _remarks(runs: Sequence[Run], answers: TaskAnswers) -> list[str]:
    """Return the remarks on the task of the checks of data that ran with the runs."""
    notes = dict.fromkeys(note for run in runs for note in run.results.notes)
    return [
        note
        for note in notes
        for task, bracket, after in [note.partition(" [")]
        if bracket and task == answers.task and set(after.partition("]")[0].split()) & {*answers.languages}
    ]


def _write_sheets(
    answers: TaskAnswers,
    folders: Sequence[Path],
    ranked: Sequence[Suspect],
    output: Path,
    controls: int,
    annotators: int,
    seed: int,
) -> int:
    """Let ``harness annotate export`` write the sheets; return its exit status."""
    import json
    import tempfile

    from harness.cli import run_command
    from harness_suspects.suspect import sheet_items

    lines = [json.dumps(row) for row in sheet_items(answers, ranked, controls=controls, seed=seed)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        runs = [word for folder in folders for word in ("--run", str(folder))]
        options = ["--tasks", answers.task, "--annotators", str(annotators), "--seed", str(seed)]
        return run_command(
            ["annotate", "export", *runs, *options, "--items", file.name, "--output", str(output)]
        )
