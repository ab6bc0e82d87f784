"""``harness diagnose``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.files import OnlyTasks, OtherMetric
from harness.cli.output import (
    FIGURES,
    check_output_file,
    choose_format,
    format_suffixes,
    reporting_broken_plugins,
    write_or_print,
    write_rows,
)
from harness.errors import DataError, UsageError

if TYPE_CHECKING:
    from harness.analysis.diagnosis import Diagnosis
    from harness.reporting.blocks.model import Block
    from harness.storage.run_folder import Run

app = typer.Typer(add_completion=False)
FORMATS = format_suffixes("text", "json", "csv", "latex", "markdown", *FIGURES)
OF_PAIRS = format_suffixes("text", "json")
"""Formats of ``--against``."""

Languages = Annotated[
    list[str] | None,
    typer.Option("--languages", "--language", "-l", help="Only these codes, each by itself too."),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="CODE", help="List what is right in this language, wrong in --languages."
    ),
]
Versions = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="te,bt",
        help="List what is right in this version, wrong in the human translation.",
    ),
]
Attributes = Annotated[list[str] | None, typer.Option("--attributes", "-a", help="Only these attributes.")]
Training = Annotated[
    list[Path] | None,
    typer.Option("--training-text", metavar="FILE", help="Training text, for unknown words (oov)."),
]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN [RUN]", help="A run folder, or two to be compared.")]
DataOnly = Annotated[
    bool, typer.Option("--data-only", help="Show how attributes are distributed over languages.")
]
Edges = Annotated[
    str, typer.Option("--edges", help="Of the buckets: language, pooled, or paper (Tables 25 and 26).")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Reject two runs whose items, data or version of a task differ.")
]
Examples = Annotated[int, typer.Option("--examples", min=0, help="Ids of items in each row.")]
Form = Annotated[
    str | None,
    typer.Option("--format", help="text, json, csv, latex, markdown, svg, pdf, png; default by --output."),
]
Output = Annotated[Path | None, typer.Option("--output", "--out", help="Write the text or rows here.")]


@app.command()
def diagnose(
    folders: Runs,
    data_only: DataOnly = False,
    tasks: OnlyTasks = None,
    languages: Languages = None,
    against: Against = None,
    variant: Versions = None,
    attributes: Attributes = None,
    metric: OtherMetric = None,
    edges: Edges = "language",
    examples: Examples = 3,
    strict: Strict = False,
    training: Training = None,
    form: Form = None,
    output: Output = None,
    json_file: o.JsonFile = None,
    allow_code: o.AllowCode = False,
) -> None:
    """Split the scores of a run by attributes of its items; needs no model and no data.

    Example: harness diagnose runs/e5-small --language sw --against en
    """
    from harness.analysis import diagnosis
    from harness.cli.live import show_steps
    from harness.reporting.weakness.diagnosis import diagnosis_blocks
    from harness.running.session import open_session
    from harness.specs.selection import language_codes, split_names
    from harness.storage.run_folder import Run

    form = choose_format(form, output, OF_PAIRS if against is not None or variant else FORMATS)
    runs = [Run(folder) for folder in folders]
    check_output_file(output)
    names, codes = split_names(tasks or []), language_codes(languages)
    if against is not None or variant:
        _check_alone(attributes=attributes, data_only=data_only, metric=metric, training_text=training)
        rows, blocks = _pairs(runs, names, codes, against, split_names(variant or []), examples)
    else:
        registry = open_session(allow_code=allow_code).registry
        options = diagnosis.DiagnosisOptions(
            tasks=names,
            languages=codes,
            attributes=split_names(attributes or []),
            metric=metric,
            edges=edges,
            examples=examples,
            strict=strict,
            vocabulary=_vocabulary(training or []),
        )
        with reporting_broken_plugins(registry.plugins), show_steps():
            report = diagnosis.diagnose(runs, registry, options, data_only=data_only)
        rows = report.rows()
        blocks = partial(diagnosis_blocks, report, each_language=bool(languages))
    write_rows(json_file, rows)
    if form in OF_PAIRS:
        _show(rows, blocks, form, output)
    else:
        _write(report, form, output)


def _pairs(
    runs: Sequence[Run],
    tasks: Sequence[str],
    codes: Sequence[str],
    against: str | None,
    variants: list[str],
    examples: int,
) -> tuple[list[dict[str, Any]], Callable[[], list[Block]]]:
    """Return the rows of languages against another one, or their translated versions, and what makes their blocks."""
    from harness.analysis.language_pair import language_pairs, version_pairs
    from harness.cli.live import show_steps
    from harness.reporting.languages.language import language_pair_blocks

    if against is not None and variants:
        raise UsageError("--against names a language, and --variant a version of the same language.")
    with show_steps():
        if against is None:
            pairs, notes = version_pairs(runs, codes, variants, tasks=tasks)
        else:
            pairs, notes = language_pairs(runs, codes, against, tasks=tasks)
    blocks = partial(language_pair_blocks, pairs, notes, examples=examples)
    return [row for pair in pairs for row in pair.rows()], blocks


def _check_alone(**given: object) -> None:
    """Raise `UsageError` for an option of buckets: languages are compared by the answers that are right."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if names:
        raise UsageError(
            f"--against and --variant do not split by attributes: got {' '.join(names)} too.",
            hint="Run 'harness diagnose' once with it and once without.",
        )


def _show(
    rows: list[dict[str, Any]], blocks: Callable[[], list[Block]], form: str, output: Path | None
) -> None:
    import json

    from harness.cli.display import print_report
    from harness.reporting.render.console import print_blocks

    if form == "json":
        write_or_print(output, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    elif output is None:
        print_report(blocks())
    else:
        write_or_print(output, print_blocks(blocks()))


def _write(diagnosis: Diagnosis, form: str, output: Path | None) -> None:
    """Print or write a diagnosis in a format of documents or of figures."""
    from harness.reporting.weakness.diagnosis_files import diagnosis_figure, diagnosis_text

    if output is not None and form in FIGURES:
        diagnosis_figure(diagnosis).save(output, form)
    else:
        write_or_print(output, diagnosis_text(diagnosis, form))


def _vocabulary(files: list[Path]) -> frozenset[str] | None:
    """Return the words of files of text, in lower case; None without files."""
    from harness.languages.segmentation import words

    if not files:
        return None
    vocabulary: set[str] = set()
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"The training text {str(path)!r} cannot be read: {error}.") from error
        for line_words in words(text.lower().splitlines()):
            vocabulary.update(line_words)
    return frozenset(vocabulary)
