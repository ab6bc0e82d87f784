"""Write a board of systems, tasks and languages: pages that need no server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import UsageError
from harness.cli import echo

if TYPE_CHECKING:
    from harness import Run

app = typer.Typer(add_completion=False)


Published = Annotated[
    str | None,
    typer.Option("--from-published", metavar="SUITE", help="Shipped published scores of a suite or task."),
]
Scores = Annotated[
    list[Path] | None, typer.Option("--from-scores", help="A .tsv file, or a folder of them, in percent.")
]
Repository = Annotated[
    Path | None, typer.Option("--from", metavar="REPO", help="A results repository (harness results).")
]
Rename = Annotated[
    list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="A model's name in score files.")
]
Metadata = Annotated[
    list[Path] | None, typer.Option("--metadata", help="A YAML file that describes one system.")
]
Diagnose = Annotated[bool, typer.Option("--with-diagnosis", help="Diagnose the runs: buckets and examples.")]
Site = Annotated[Path | None, typer.Option("--site", help="A folder: index, a page a task and language.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Also write the scores to this file.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the scores to this file.")]


@app.command()
def board(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Run folders, or folders that hold runs.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="One HTML file.")] = None,
    site: Site = None,
    repository: Repository = None,
    published: Published = None,
    scores: Scores = None,
    rename: Rename = None,
    metadata: Metadata = None,
    diagnose: Diagnose = False,
    title: Annotated[str, typer.Option(help="Heading.")] = "",
    csv_file: CsvFile = None,
    json_file: JsonFile = None,
) -> None:
    """Write a board: systems side by side on tasks and languages, as pages that need no server."""
    # Imported here so that help stays fast.
    from harness import open_session
    from harness.cli import check_output_file, write_file, write_files, write_rows
    from harness.reporting import csv_text
    from harness_board.document import COLUMNS, board_rows, diagnosed, with_diagnosis
    from harness_board.gathering import gather
    from harness_board.published import read_metadata
    from harness_board.rendering import board_page, site_pages
    from harness_board.repository_runs import read_repository

    for path, suffix in ((output, ".html"), (csv_file, ".csv"), (json_file, ".json")):
        check_output_file(path, suffix)
    if output is None and site is None and csv_file is None and json_file is None:
        raise UsageError("Where shall the board go?", hint="Give -o board.html, --site DIR, --csv or --json.")
    session = open_session()
    runs = _runs(folders or [])
    made = gather(
        runs=runs,
        stored=None if repository is None else read_repository(repository),
        published=published,
        scores=scores or [],
        renamed=_pairs(rename or []),
        metadata=[read_metadata(path) for path in metadata or []],
        catalog=session.catalog,
        means={own.name for own in session.registry.metrics if own.by_item and own.from_counts is None},
        title=title,
    )
    if diagnose:
        made = with_diagnosis(made, diagnosed(runs), runs)
    rows = board_rows(made)
    if csv_file is not None:
        write_file(csv_file, csv_text(rows, COLUMNS))
    if json_file is not None:
        write_rows(json_file, rows)
    if output is not None:
        write_file(output, board_page(made))
        counts = f"{len(made.systems)} systems, {len(made.tasks)} tasks, {len(made.languages)} languages"
        echo(f"Wrote {output}: {counts}.")
    if site is not None:
        pages = write_files(((name, make()) for name, make in site_pages(made).items()), site)
        echo(f"Wrote {len(pages)} pages to {site}: open index.html.")


def _runs(folders: list[Path]) -> list[Run]:
    """Return the runs of folders with their baselines, each once."""
    from harness import Run
    from harness.storage import run_folders, with_baselines

    named = [run for folder in run_folders(folders) for run in with_baselines(Run(folder))]
    return list({run.path.resolve(): run for run in named}.values())


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        old, _, new = text.partition("=")
        if not (old and new):
            raise UsageError(f"--rename takes OLD=NEW; found {text!r}.")
        pairs[old] = new
    return pairs
