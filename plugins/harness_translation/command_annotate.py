"""``harness annotate``: sheets for people, their labels, and what these say of a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UsageError
from harness_translation import annotation_option as o

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Let people label test items anew, and report what they say.",
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that export wrote.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]


@app.callback()
def annotate() -> None:
    """Blind sheets of test items, labels of several people, and their agreement with the inherited labels."""


@app.command("export")
def export(
    output: o.Output,
    tasks: o.Tasks = None,
    languages: o.Languages = None,
    variants: o.Variants = None,
    runs: o.Runs = None,
    data: o.Data = None,
    tasks_from: o.TasksFrom = None,
    size: o.Size = 200,
    seed: o.Seed = 0,
    annotators: o.Annotators = 2,
    stratify: o.Stratify = None,
    strata: o.Strata = None,
    allocation: o.AllocationName = "proportional",
    suspects: o.Suspects = None,
    control_share: o.ControlShare = 0.5,
    instructions: o.Instructions = None,
    page: o.Page = False,
) -> None:
    """Write blind sheets of test items for annotators, and their key apart.

    Sheets of different texts share no item. Give away only the folders below 'sheets'; keep key.json.

    Example: harness annotate export --tasks xnli --languages hi,ur --size 200 --annotators 2 --page --output relabel
    """
    given = dict(locals())
    del given["output"]
    from harness.specs.selection import split_names
    from harness_translation.annotation_export import ExportRequest, export_sheets

    for name in ("tasks", "languages", "variants"):
        given[name] = tuple(split_names(given[name] or []))
    for name in ("runs", "data", "tasks_from"):
        given[name] = tuple(given[name] or ())
    given["languages"] = given["languages"] or None
    key = export_sheets(ExportRequest(**given), output)
    for sheet in key.sheets:
        counts = f"{len(sheet.rows)} of {sheet.population:,} items"
        typer.echo(f"{sheet.name}: {counts} of {sheet.text} ({sheet.design})")
    people = "1 annotator" if annotators == 1 else f"{annotators} annotators"
    typer.echo(
        f"Wrote the sheets of {people} below {output / 'sheets'}. Keep {output / 'key.json'}: it holds the labels.\n"
        f"Import what comes back: harness annotate import {output} FILE..."
    )


@app.command("import")
def import_(
    folder: Folder,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Filled-in .csv, .tsv or .json files.")
    ],
    annotator: Annotated[
        str | None, typer.Option("--annotator", help="Whose labels these are, whatever the files say.")
    ] = None,
    adjudicated: Annotated[
        bool, typer.Option("--adjudicated", help="These are the final labels of an adjudicator.")
    ] = False,
    allow_skipped: Annotated[
        bool, typer.Option("--allow-skipped", help="Rows may be without a label.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="In the place of what was imported.")] = False,
) -> None:
    """Take filled-in sheets in; nothing is taken while any of them has a fault.

    Rows on which annotators disagree are written to new sheets for an adjudicator; import those, too.

    Example: harness annotate import relabel relabel/sheets/annotator-1/xnli-hi-1.csv
    """
    from harness_translation.annotation_export import write_adjudication
    from harness_translation.annotation_key import read_key
    from harness_translation.annotation_store import merge, read_annotations, write_annotations
    from harness_translation.sheet import ADJUDICATED
    from harness_translation.sheet_reading import read_sheets

    if adjudicated and annotator is not None:
        raise UsageError("--adjudicated and --annotator cannot both say whose labels these are.")
    key = read_key(folder)
    name = ADJUDICATED if adjudicated else annotator
    new = read_sheets(files, key, annotator=name, allow_skipped=allow_skipped)
    annotations = merge(read_annotations(folder), new, key, replace=replace)
    write_annotations(annotations, folder)
    for who, labels in new.labels.items():
        typer.echo(f"{who}: {len(labels)} labels")
    if new.skipped:
        typer.echo(f"{new.skipped} rows have no label.")
    for path, count in write_adjudication(key, annotations, folder):
        typer.echo(f"{count} rows have no final label yet: {path}")


@app.command("report")
def report(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The folder that export wrote.")
    ] = None,
    from_table: Annotated[
        Path | None, typer.Option("--from-table", help="Published shares in the place of a folder.")
    ] = None,
    items: Annotated[int, typer.Option("--items", min=0, help="Items to fix that are shown.")] = 10,
    gold: Annotated[
        Path | None, typer.Option("--write-gold", help="Write the final labels here, for --gold of eval.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Also write a .md file.")] = None,
    json_file: Json = None,
) -> None:
    """Show how far people agree with the inherited labels and each other, and the items to fix.

    Example: harness annotate report relabel --write-gold relabelled.jsonl --markdown report.md
    """
    import json

    from harness.cli.display import check_output_file, print_table, write_file, write_rows
    from harness_translation.agreement_report import report_counts, report_sheets
    from harness_translation.annotation_key import read_key
    from harness_translation.annotation_store import read_annotations
    from harness_translation.annotation_table import as_markdown, as_rows, final_lines, notes, tables

    for path in (json_file, markdown, gold):
        check_output_file(path)
    if (folder is None) is (from_table is None):
        raise UsageError("Give either the folder of an annotation or --from-table FILE.")
    if from_table is not None:
        found = report_counts(from_table)
    else:
        assert folder is not None
        found = report_sheets(read_key(folder), read_annotations(folder))
    for table in tables(found, items=items):
        typer.echo(f"\n{table.title}")
        print_table(table.heads, table.rows)
    typer.echo("")
    for note in notes(found):
        typer.echo(note)
    if gold is not None:
        lines = [json.dumps(row, ensure_ascii=False) for row in final_lines(found.labels)]
        write_file(gold, "\n".join(lines) + "\n")
        typer.echo(f"Wrote {len(lines)} final labels: harness eval --gold {gold} ...")
    if markdown is not None:
        write_file(markdown, as_markdown(found, items=items))
    if json_file is not None:
        write_rows(json_file, as_rows(found))
