"""Let people label items again, blind; agreement, kappa, a corrected gold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness import UsageError
from harness.cli import echo

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Let people relabel test items, and report how far they agree.",
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that export wrote.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
Output = Annotated[Path, typer.Option("--output", "--out", help="A new folder for sheets and key.")]
Tasks = Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Tasks, as for eval.")]
Languages = Annotated[list[str] | None, typer.Option("--languages", "-l", help="Their codes.")]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", "--variants", help="Versions of the text; 'original' is the task's own."),
]
Runs = Annotated[list[Path] | None, typer.Option("--run", help="Use the items of this run, not data files.")]
Data = Annotated[list[str] | None, typer.Option("--data", "-d", help="hub, sample, or folders.")]
TasksFrom = Annotated[
    list[Path] | None, typer.Option("--tasks-from", help="File or folder with further specs.")
]
Size = Annotated[int, typer.Option("--size", help="Rows per sheet.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the draw.")]
Annotators = Annotated[int, typer.Option("--annotators", min=1, help="People who label each sheet.")]
Stratify = Annotated[
    str | None, typer.Option("--stratify", help="label, or an attribute of the items, such as genre.")
]
AllocationName = Annotated[
    Literal["proportional", "equal"], typer.Option("--allocation", help="How rows are allocated to strata.")
]
Instructions = Annotated[
    Path | None,
    typer.Option("--instructions", help="Instructions for annotators that replace the default ones."),
]
Items = Annotated[
    Path | None,
    typer.Option(
        "--items", help="Take the items of this list (JSON lines: task, language, id), and draw none."
    ),
]


@app.callback()
def annotate() -> None:
    """Make blind sheets of test items, import labels, and report their agreement with the inherited labels."""


@app.command("export")
def export(
    output: Output,
    tasks: Tasks = None,
    languages: Languages = None,
    variants: Variants = None,
    runs: Runs = None,
    data: Data = None,
    tasks_from: TasksFrom = None,
    size: Size = 200,
    seed: Seed = 0,
    annotators: Annotators = 2,
    stratify: Stratify = None,
    allocation: AllocationName = "proportional",
    instructions: Instructions = None,
    items: Items = None,
) -> None:
    """Write blind sheets of test items for annotators, and a separate key.

    A sheet is a CSV file, and a pair of files for Label Studio: its tasks (.json) and its setup (.xml). Sheets of
    different texts share no item. Send out only the folders below 'sheets'; keep key.json.

    Example: harness annotate export --tasks xnli --languages hi,ur --size 200 --annotators 2 --output relabel
    """
    arguments = dict(locals())
    del arguments["output"]
    from harness.specs import split_names
    from harness_translation.annotation.sheets import ExportRequest, export_sheets

    for name in ("tasks", "languages", "variants"):
        arguments[name] = tuple(split_names(arguments[name] or []))
    for name in ("runs", "data", "tasks_from"):
        arguments[name] = tuple(arguments[name] or ())
    arguments["languages"] = arguments["languages"] or None
    key = export_sheets(ExportRequest(**arguments), output)
    for sheet in key.sheets:
        counts = f"{len(sheet.rows)} of {sheet.population:,} items"
        echo(f"{sheet.name}: {counts} of {sheet.task}:{sheet.language} {sheet.text} ({sheet.design})")
    people = "1 annotator" if annotators == 1 else f"{annotators} annotators"
    echo(
        f"Wrote the sheets of {people} below {output / 'sheets'}. Keep {output / 'key.json'}: it holds the labels.\n"
        f"Import the filled-in files: harness annotate import {output} FILE..."
    )


@app.command("import")
def import_(
    folder: Folder,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Filled-in .csv or .tsv files."),
    ],
    annotator: Annotated[
        str | None,
        typer.Option("--annotator", help="Name of the annotator; replaces the names in the files."),
    ] = None,
    adjudicated: Annotated[
        bool, typer.Option("--adjudicated", help="These are the final labels of an adjudicator.")
    ] = False,
    allow_skipped: Annotated[
        bool, typer.Option("--allow-skipped", help="Allow rows without a label.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace labels that were imported before.")
    ] = False,
) -> None:
    """Import filled-in sheets; nothing is imported if any of them has a fault.

    Files that Label Studio exports as CSV can be imported too. Rows on which annotators disagree are written to new
    sheets: for correction by the same annotators, then blind for a third one, or at once for an adjudicator. Import
    those as well; first labels are kept.

    Example: harness annotate import relabel relabel/sheets/annotator-1/xnli-hi-1.csv
    """
    from harness_translation.annotation.items import read_key
    from harness_translation.annotation.labels import (
        ADJUDICATED,
        merge,
        read_annotations,
        read_sheets,
        write_annotations,
    )
    from harness_translation.annotation.sheets import write_adjudication, write_stages

    if adjudicated and annotator is not None:
        raise UsageError("--adjudicated and --annotator cannot be used together: both name the annotator.")
    key = read_key(folder)
    name = ADJUDICATED if adjudicated else annotator
    new, skipped = read_sheets(files, key, annotator=name, allow_skipped=allow_skipped)
    annotations = merge(read_annotations(folder), new, key, replace=replace)
    write_annotations(annotations, folder)
    for who, labels, stage in new.counted():
        echo(f"{who}: {labels} labels{stage}")
    if skipped:
        echo(f"{skipped} rows have no label.")
    for path, count in write_adjudication(key, annotations, folder):
        echo(f"{count} rows have no final label yet: {path}")
    for path, count in write_stages(key, annotations, folder):
        echo(
            f"  {count} rows wait for {'a third annotator' if path.parts[-2] == 'third' else 'correction'}: {path}"
        )


@app.command("report")
def report(
    folder: Folder,
    items: Annotated[int, typer.Option("--items", min=0, help="Items to fix, and comparisons, shown.")] = 10,
    gold: Annotated[
        Path | None, typer.Option("--write-gold", help="Write the final labels here, for eval --gold.")
    ] = None,
    errata: Annotated[
        Path | None,
        typer.Option("--write-errata", help="Write labels that differ here as errata, for score --errata."),
    ] = None,
    revision: Annotated[
        str, typer.Option("--revision", help="With --write-errata: where the items come from.")
    ] = "as annotated",
    json_file: Json = None,
) -> None:
    """Show how far people agree with the inherited labels and each other, and the items to fix.

    Example: harness annotate report relabel --write-gold relabelled.jsonl
    """
    import json

    from harness.cli import check_output_file, print_table, write_file, write_rows
    from harness_translation.annotation.items import read_key
    from harness_translation.annotation.labels import read_annotations
    from harness_translation.annotation.report import (
        errata_files,
        gold_rows,
        report_notes,
        report_rows,
        report_tables,
    )

    check_output_file(json_file, ".json")
    check_output_file(gold, ".jsonl")
    key, annotations = read_key(folder), read_annotations(folder)
    findings = report_rows(key, annotations)
    for title, heads, rows in report_tables(findings, items=items):
        echo(f"\n{title}")
        print_table(heads, rows)
    echo("")
    for note in report_notes(findings):
        echo(note)
    if gold is not None:
        lines = [json.dumps(row, ensure_ascii=False) for row in gold_rows(key, annotations)]
        write_file(gold, "\n".join(lines) + "\n")
        echo(f"Wrote {len(lines)} final labels: harness eval --gold {gold} ...")
    if errata is not None:
        files = dict(errata_files(key, annotations, revision))
        errata.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_file(errata / name, text)
        echo(
            f"Wrote {', '.join(files) or 'nothing: no label differs'} into {errata}: harness errata check {errata}"
        )
    if json_file is not None:
        write_rows(json_file, findings)
