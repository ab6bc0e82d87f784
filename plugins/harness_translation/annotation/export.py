"""Writes the folder of an annotation: blind sheets for each annotator, as CSV and for Label Studio, and the key."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from harness import UsageError
from harness.storage import write_atomically
from harness_translation.annotation.item import TextItems, read_run_texts, read_texts
from harness_translation.annotation.key import Key, Sheet, SheetRow, write_key
from harness_translation.annotation.labels import (
    ADJUDICATED,
    COLUMNS,
    CORRECTION,
    STAGE,
    THIRD,
    Annotations,
    open_rows,
    undecided_rows,
)
from harness_translation.annotation.sample import Allocation, draw_sheets, listed_sheets, read_listed

MEANINGS: Final[Mapping[str, str]] = {
    "entailment": "the premise makes the hypothesis true",
    "contradiction": "the hypothesis cannot be true given the premise",
    "neutral": "the hypothesis may or may not be true given the premise",
}
"""Labels of natural language inference: after Table 5 of the translation-errors paper (EACL 2024)."""
SUFFIXES: Final = (".csv", ".json", ".xml")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The options of ``harness annotate export``."""

    tasks: tuple[str, ...] = ()
    languages: tuple[str, ...] | None = None
    variants: tuple[str, ...] = ()
    runs: tuple[Path, ...] = ()
    data: tuple[str, ...] = ()
    tasks_from: tuple[Path, ...] = ()
    size: int = 200
    seed: int = 0
    annotators: int = 2
    stratify: str | None = None
    allocation: Allocation = "proportional"
    instructions: Path | None = None
    items: Path | None = None
    """A list of the items, which then are not drawn."""


def export_sheets(request: ExportRequest, folder: Path) -> Key:
    """Draw the items, write everything below a new folder, and return the key.

    Raises:
        UsageError: If the options do not fit each other or the items, or the folder is not empty.
        DataError: If the items cannot be read.
    """
    if not request.tasks and not request.runs:
        raise UsageError("No task was named.", hint="Give --tasks, or --run to use the items of a run.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"The folder {str(folder)!r} is not empty; its labels could be lost.",
            hint="Give another folder with --output.",
        )
    texts = _texts(request)
    if request.items is not None:
        sheets = listed_sheets(texts, read_listed(request.items), seed=request.seed)
    else:
        sheets = draw_sheets(
            texts,
            size=request.size,
            seed=request.seed,
            stratify=request.stratify,
            allocation=request.allocation,
        )
    custom = _instructions(request.instructions)
    key = Key(
        seed=request.seed,
        annotators=tuple(str(number) for number in range(1, request.annotators + 1)),
        instructions={
            sheet.task: custom or default_instructions(sheet.labels, choices=bool(sheet.rows[0].choices))
            for sheet in sheets
        },
        sheets=sheets,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_key(key, folder)
    for annotator in key.annotators:
        for sheet in sheets:
            _write_sheet(sheet, annotator, key, folder / "sheets" / f"annotator-{annotator}")
    return key


def _texts(request: ExportRequest) -> list[TextItems]:
    from harness import Run, open_session

    if request.runs:
        runs = [Run(path) for path in request.runs]
        return read_run_texts(runs, request.tasks, request.languages, request.variants)
    from harness.data import DataFinder
    from harness.planning import data_options
    from harness.storage import cache_folder

    session = open_session(request.tasks_from)
    finder = DataFinder(data_options(request.data), session.registry, cache_folder() / "data")
    return read_texts(session, finder, request.tasks, request.languages, request.variants)


def _instructions(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The instructions {str(path)!r} cannot be read: {error}.") from error
    return tuple(" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip())


def default_instructions(labels: Sequence[str], *, choices: bool = False) -> tuple[str, ...]:
    """Return the default instructions for annotators, by paragraph."""
    meant = [f"{label}: {MEANINGS[label]}." for label in labels if label in MEANINGS]
    if choices:
        meant = ["Choose the text that goes with the others, and give its name."]
    elif not meant:
        meant = [f"The labels are: {', '.join(labels)}."]
    return (
        "Read each text as it is, in its own language, and give it one label.",
        *meant,
        "Work alone: compare neither with others nor with the original of a translation.",
        "Where a text makes no sense, give the label that fits best and say why under 'comment'.",
    )


def annotator_rows(sheet: Sheet, annotator: str) -> list[SheetRow]:
    """Return the rows in this annotator's order; every annotator has a different one."""
    return sorted(
        sheet.rows, key=lambda row: blake2b(f"{annotator}\0{row.row}".encode(), digest_size=8).digest()
    )


def _write_sheet(
    sheet: Sheet,
    annotator: str,
    key: Key,
    folder: Path,
    *,
    only: Sequence[str] | None = None,
    stage: str = "",
    given: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write the files of a sheet, or of some of its rows at a later stage with the labels that it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for row in annotator_rows(sheet, annotator) if only is None or row.row in only]
    instructions = key.instructions[sheet.task]
    # Spreadsheets recognise UTF-8 by the byte order mark.
    table = "\ufeff" + sheet_table(sheet, annotator, rows, instructions, given=given, stage=stage)
    write_atomically(folder / f"{sheet.name}.csv", table)
    if given is None:  # Label Studio would not show the labels.
        write_atomically(folder / f"{sheet.name}.json", labelling_tasks(rows, stage))
        write_atomically(folder / f"{sheet.name}.xml", labelling_setup(sheet, instructions))


def sheet_table(
    sheet: Sheet,
    annotator: str,
    rows: Sequence[SheetRow],
    instructions: Sequence[str],
    *,
    given: Mapping[str, Mapping[str, str]] | None = None,
    stage: str = "",
) -> str:
    """Return a sheet as CSV: instructions as comments, then one row per item with an empty label.

    Args:
        sheet: The sheet of the rows.
        annotator: The annotator who labels it.
        rows: The rows in their order.
        instructions: The instructions, by paragraph.
        given: Labels to show in a correction or to an adjudicator, by annotator and row.
        stage: The later stage that these rows are for; empty for the first labels.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in (*instructions, f"Labels: {', '.join(sheet.labels)}."):
        writer.writerow([f"# {line}"])
    names = list(_shown(rows[0]))
    label_columns = {f"label of {name}": labels for name, labels in (given or {}).items()}
    writer.writerow([COLUMNS[0], *([STAGE] if stage else []), *names, *label_columns, *COLUMNS[1:]])
    for row in rows:
        fields = _shown(row)
        given_labels = [labels.get(row.row, "") for labels in label_columns.values()]
        # A spreadsheet must not read a text as a formula.
        texts = [f"'{fields[name]}" if fields[name].startswith(_FORMULA) else fields[name] for name in names]
        writer.writerow([row.row, *([stage] if stage else []), *texts, *given_labels, annotator, "", ""])
    return text.getvalue()


def _shown(row: SheetRow) -> dict[str, str]:
    """Return the texts of a row by column; one with the name of a fixed column gets a prefix."""
    texts = {**row.fields, **row.choices}
    return {f"text_{name}" if name in (*COLUMNS, STAGE) else name: value for name, value in texts.items()}


def labelling_tasks(rows: Sequence[SheetRow], stage: str = "") -> str:
    """Return rows as the JSON list of tasks that Label Studio imports (labelstud.io/guide/tasks).

    Its export as CSV has the columns that the import reads: ``row``, and ``annotator``, ``label`` and ``comment``.
    """
    later = {STAGE: stage} if stage else {}
    tasks = [{"data": {"row": row.row, **later, **_shown(row)}} for row in rows]
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def labelling_setup(sheet: Sheet, instructions: Sequence[str]) -> str:
    """Return the labelling configuration of Label Studio for the tasks of a sheet (labelstud.io/tags)."""
    names = list(_shown(sheet.rows[0]))
    texts = [
        f"  <Header value={quoteattr(name)}/>\n  <Text name={quoteattr(name)} value={quoteattr('$' + name)}/>"
        for name in names
    ]
    choices = [f"    <Choice value={quoteattr(label)}/>" for label in sheet.labels]
    lines = [
        "<View>",
        *(f"  <Header size='6' value={quoteattr(line)}/>" for line in instructions),
        *texts,
        f"  <Choices name='label' toName={quoteattr(names[0])} choice='single' required='true'>",
        *choices,
        "  </Choices>",
        f"  <TextArea name='comment' toName={quoteattr(names[0])}/>",
        "</View>",
    ]
    return "\n".join(lines) + "\n"


def write_stages(key: Key, annotations: Annotations, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write the sheets of the next stage of every undecided row; yield each CSV file and its number of rows.

    A sheet for correction has the first labels of all annotators; that of a third annotator is blind. Files whose rows
    are decided, or are at another stage, are removed.
    """
    for sheet in key.sheets:
        first_labels, waiting = annotations.of(sheet), open_rows(sheet, annotations)
        destinations = [
            *(
                (CORRECTION, name, folder / CORRECTION / f"annotator-{_safe(name)}", first_labels)
                for name in first_labels
            ),
            (THIRD, THIRD, folder / THIRD, None),
        ]
        for stage, name, destination, visible in destinations:
            rows = waiting.get((stage, name), [])
            if rows:
                _write_sheet(sheet, name, key, destination, only=rows, stage=stage, given=visible)
                yield destination / f"{sheet.name}.csv", len(rows)
            else:
                for suffix in SUFFIXES:
                    (destination / f"{sheet.name}{suffix}").unlink(missing_ok=True)


def _safe(name: str) -> str:
    """Return an annotator's name as a part of a path."""
    return "".join(char if char.isalnum() or char in "_-@" else "-" for char in name)


def write_adjudication(key: Key, annotations: Annotations, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write a sheet of the undecided rows of each text; yield its file and the number of rows.

    Files of earlier disagreements that are now decided are removed.
    """
    for sheet in key.sheets:
        path = folder / "adjudication" / f"{sheet.name}.csv"
        by_annotator = annotations.of(sheet)
        for labels in (annotations.corrected, annotations.third):
            later = {
                name: {row: by_row[row] for row in by_row if row in sheet.by_row}
                for name, by_row in labels.items()
            }
            by_annotator |= {
                f"{name} (later)" if name in by_annotator else name: by_row
                for name, by_row in later.items()
                if by_row
            }
        undecided = undecided_rows(sheet, annotations) if len(by_annotator) > 1 else []
        if not undecided:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(exist_ok=True)
        rows = [sheet.by_row[row] for row in undecided]
        instructions = key.instructions[sheet.task]
        table = sheet_table(sheet, ADJUDICATED, rows, instructions, given=by_annotator, stage=ADJUDICATED)
        write_atomically(path, "\ufeff" + table)
        yield path, len(undecided)
