"""``harness diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import option as o
from harness.cli.output import echo
from harness.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from harness.analysis.diagnosis import Diagnosis

app = typer.Typer(add_completion=False)
FORMATS = ("text", "json")

Tasks = Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Only these tasks; names or globs.")]
Languages = Annotated[
    list[str] | None, typer.Option("--languages", "-l", help="Only these codes, each by itself too.")
]
Attributes = Annotated[list[str] | None, typer.Option("--attributes", "-a", help="Only these attributes.")]
Training = Annotated[
    list[Path] | None,
    typer.Option("--training-text", metavar="FILE", help="Training text, for unknown words (oov)."),
]


@app.command()
def diagnose(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN [RUN]", help="A run folder, or two to be compared.")
    ],
    data_only: Annotated[
        bool, typer.Option("--data-only", help="Show how attributes are distributed over languages.")
    ] = False,
    tasks: Tasks = None,
    languages: Languages = None,
    attributes: Attributes = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Score with this one, not with the tasks' own.")
    ] = None,
    edges: Annotated[
        str, typer.Option("--edges", help="Of the buckets: language, pooled, or paper (Tables 25 and 26).")
    ] = "language",
    examples: Annotated[int, typer.Option("--examples", min=0, help="Ids of items in each row.")] = 3,
    common: Annotated[
        bool, typer.Option("--common", help="Compare runs that differ on what they have in common.")
    ] = False,
    training: Training = None,
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="Write the text or rows here.")
    ] = None,
    json_file: o.JsonFile = None,
    allow_code: o.AllowCode = False,
) -> None:
    """Split the scores of a run by attributes of its items; needs no model and no data.

    Example: harness diagnose runs/e5-small runs/char-ngram --tasks xquad
    """
    from harness.analysis.diagnosis import DiagnosisOptions
    from harness.analysis.diagnosis import diagnose as diagnose_runs
    from harness.cli.live import show_steps
    from harness.cli.output import check_output_file, reporting_broken_plugins
    from harness.running.session import open_session
    from harness.specs.selection import split_names
    from harness.storage.run_folder import Run

    if form not in FORMATS:
        raise UnknownNameError("format", form, FORMATS)
    runs = [Run(folder) for folder in folders]
    check_output_file(output)
    check_output_file(json_file)
    registry = open_session(allow_code=allow_code).registry
    options = DiagnosisOptions(
        tasks=split_names(tasks or []),
        languages=split_names(languages or []),
        attributes=split_names(attributes or []),
        metric=metric,
        edges=edges,
        examples=examples,
        common=common,
        vocabulary=_vocabulary(training or []),
    )
    with reporting_broken_plugins(registry.plugins), show_steps():
        found = diagnose_runs(runs, registry, options, data_only=data_only)
    _show(found, form, output, json_file, each_language=bool(languages))


def _show(
    found: Diagnosis, form: str, output: Path | None, json_file: Path | None, *, each_language: bool
) -> None:
    import json

    from harness.cli.display import print_report
    from harness.cli.output import write_file, write_rows
    from harness.reporting.console import print_blocks
    from harness.reporting.diagnosis import diagnosis_blocks

    if json_file is not None:
        write_rows(json_file, found.rows())
    if form == "json":
        text = json.dumps(found.rows(), ensure_ascii=False, indent=1) + "\n"
        if output is None:
            echo(text, nl=False)
    else:
        blocks = diagnosis_blocks(found, each_language=each_language)
        if output is None:
            print_report(blocks)
            return
        text = print_blocks(blocks)
    if output is not None:
        write_file(output, text)


def _vocabulary(files: list[Path]) -> frozenset[str] | None:
    """Return the words of files of text, in lower case; None without files."""
    from harness.languages.segmentation import words

    if not files:
        return None
    found: set[str] = set()
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"The training text {str(path)!r} cannot be read: {error}.") from error
        for own in words(text.lower().splitlines()):
            found.update(own)
    return frozenset(found)
