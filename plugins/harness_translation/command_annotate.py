"""``harness annotate``: sheets for people, their labels, and what these say of a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.errors import UsageError

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
    output: Annotated[Path, typer.Option("--output", "--out", help="A new folder for sheets and key.")],
    tasks: Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Tasks, as for eval.")] = None,
    languages: Annotated[list[str] | None, typer.Option("--languages", "-l", help="Their codes.")] = None,
    variants: Annotated[
        list[str] | None,
        typer.Option("--variant", "--variants", help="Versions of the text; 'original' is the task's own."),
    ] = None,
    runs: Annotated[
        list[Path] | None, typer.Option("--run", help="Take the items from this run, not from data files.")
    ] = None,
    data: Annotated[list[str] | None, typer.Option("--data", "-d", help="hub, sample, or folders.")] = None,
    tasks_from: Annotated[
        list[Path] | None, typer.Option("--tasks-from", help="File or folder with further specs.")
    ] = None,
    size: Annotated[int, typer.Option("--size", help="Rows of a sheet.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other items.")] = 0,
    annotators: Annotated[int, typer.Option("--annotators", min=1, help="People who label each sheet.")] = 2,
    stratify: Annotated[
        str | None, typer.Option("--stratify", help="label, or an attribute of the items, such as genre.")
    ] = None,
    strata: Annotated[
        Path | None, typer.Option("--strata", help="With --stratify: the stratum of every item.")
    ] = None,
    allocation: Annotated[
        Literal["proportional", "equal"], typer.Option("--allocation", help="Rows of each stratum.")
    ] = "proportional",
    suspects: Annotated[
        Path | None, typer.Option("--suspects", help="Ranked items, as 'harness gap --suspects' writes them.")
    ] = None,
    control_share: Annotated[
        float, typer.Option("--control-share", help="Share of a sheet drawn at random beside the suspects.")
    ] = 0.5,
    instructions: Annotated[
        Path | None, typer.Option("--instructions", help="What annotators are told, in place of ours.")
    ] = None,
    page: Annotated[
        bool,
        typer.Option("--page", help="Write pages to label in, beside the CSV files; they need no network."),
    ] = False,
) -> None:
    """Write blind sheets of test items for annotators, and their key apart.

    Sheets of different texts share no item. Give away only the folders below 'sheets'; keep key.json.

    Example: harness annotate export --tasks xnli --languages hi,ur --size 200 --annotators 2 --page --output relabel
    """
    from harness.specs.selection import split_names
    from harness_translation.annotation_export import ExportRequest, export_sheets

    request = ExportRequest(
        tasks=tuple(split_names(tasks or [])),
        languages=tuple(split_names(languages)) if languages else None,
        variants=tuple(split_names(variants or [])),
        runs=tuple(runs or ()),
        data=tuple(data or ()),
        tasks_from=tuple(tasks_from or ()),
        size=size,
        seed=seed,
        annotators=annotators,
        stratify=stratify,
        strata=strata,
        allocation=allocation,
        suspects=suspects,
        control_share=control_share,
        instructions=instructions,
        page=page,
    )
    key = export_sheets(request, output)
    for sheet in key.sheets:
        typer.echo(
            f"{sheet.name}: {len(sheet.rows)} of {sheet.population:,} items of {sheet.text} ({sheet.design})"
        )
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

    from harness.cli.display import print_table, refuse_file, write_file, write_rows
    from harness_translation.agreement_report import report_counts, report_sheets
    from harness_translation.annotation_key import read_key
    from harness_translation.annotation_store import read_annotations
    from harness_translation.annotation_table import as_markdown, as_rows, final_lines, notes, tables

    for path in (json_file, markdown, gold):
        refuse_file(path)
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
