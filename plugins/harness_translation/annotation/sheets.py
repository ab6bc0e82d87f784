"""The sheets of an annotation: the draw of their items, and the folder of blind sheets, as CSV and for Label Studio."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import UnknownNameError, UsageError
from harness.data import draw
from harness.storage import write_atomically
from harness_translation.annotation.items import (
    AnnotationItem,
    Key,
    Sheet,
    SheetRow,
    TextItems,
    read_run_texts,
    read_texts,
    row_name,
    sheet_names,
    write_key,
)
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

_Allocation = Literal["proportional", "equal"]
ALL: Final = "all"
"""The one stratum of a simple random sample."""
MEANINGS: Final[Mapping[str, str]] = {
    "entailment": "the premise makes the hypothesis true",
    "contradiction": "the hypothesis cannot be true given the premise",
    "neutral": "the hypothesis may or may not be true given the premise",
}
"""Labels of natural language inference: after Table 5 of the translation-errors paper (EACL 2024)."""
SUFFIXES: Final = (".csv", ".json", ".xml")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class ListedItem(BaseModel):
    """One line of a list of items that were chosen elsewhere, as ``harness suspects`` writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    language: str
    id: str
    stratum: str = ALL
    weight: float = Field(default=1.0, gt=0)
    """The number of items of its stratum that it represents."""


def _read_listed(path: Path) -> dict[tuple[str, str], list[ListedItem]]:
    """Return the items of a file of JSON lines by task and language; raises `UsageError` for a faulty line."""
    listed: dict[tuple[str, str], list[ListedItem]] = defaultdict(list)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The list of items {str(path)!r} cannot be read: {error}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = ListedItem.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the line"
            raise UsageError(f"{path}:{number}: {field}: {first['msg']}.") from error
        if any(item.id == other.id for other in listed[(item.task, item.language)]):
            raise UsageError(
                f"{path}:{number}: the item {item.id!r} of {item.task}:{item.language} is listed twice."
            )
        listed[(item.task, item.language)].append(item)
    if not listed:
        raise UsageError(f"The list of items {str(path)!r} is empty.")
    return listed


def draw_sheets(
    texts: Sequence[TextItems],
    *,
    size: int,
    seed: int,
    stratify: str | None = None,
    allocation: _Allocation = "proportional",
) -> tuple[Sheet, ...]:
    """Return the sheet of every text, in the order of the texts.

    Args:
        texts: The texts to draw from; items of a parallel task are the same in all of them.
        size: Items per sheet.
        seed: The seed of all draws.
        stratify: ``label`` or an attribute of the items; None draws a simple random sample.
        allocation: Rows per stratum: ``proportional`` to its size, or ``equal`` for all.

    Raises:
        UsageError: If a text has too few items that are in no other sheet, an item does not have the attribute,
            or a stratum would get no row.
    """
    if size < 1:
        raise UsageError(f"--size must be at least 1, got {size}.")
    used: dict[str, set[str]] = defaultdict(set)
    sheets = []
    for text, name in zip(texts, sheet_names(texts, seed), strict=True):
        # Ids mean the same items in all texts of a parallel task, else in all texts of one language.
        used_ids = used[text.task if text.parallel else f"{text.task}\0{text.language}"]
        free = [item for item in text.items if item.id not in used_ids]
        if size > len(free):
            raise UsageError(
                f"{text} has {len(free)} items that are in no other sheet; --size {size} needs {size}.",
                hint="Give a smaller --size or fewer texts.",
            )
        rows = _draw_rows(text, free, size, seed, stratify, allocation)
        used_ids |= {row.id for row in rows}
        design = "simple" if stratify is None else f"stratified by {stratify}"
        sheets.append(_sheet(text, name, rows, design))
    names = [row.row for sheet in sheets for row in sheet.rows]
    if len(set(names)) != len(names):
        raise UsageError("Two rows would have the same digest.", hint="Give another --seed.")
    return tuple(sheets)


def _listed_sheets(
    texts: Sequence[TextItems], listed: Mapping[tuple[str, str], Sequence[ListedItem]], *, seed: int
) -> tuple[Sheet, ...]:
    """Return the sheets of items that a list names, in the order of the texts; those without any get none.

    Args:
        texts: The texts that have the items.
        listed: The items by task and language.
        seed: Of the names of rows.

    Raises:
        UsageError: If a text that the list names is missing or there are two of it, or it does not have an item.
    """
    kept = [text for text in texts if (text.task, text.language) in listed]
    names = [f"{text.task}:{text.language}" for text in kept]
    for task, language in listed:
        if names.count(f"{task}:{language}") != 1:
            raise UsageError(
                f"The list of items has some of {task}:{language}, of which there are "
                f"{names.count(f'{task}:{language}')} texts, not one.",
                hint="Choose tasks, languages or a variant so that one is left.",
            )
    sheets = []
    for text, name in zip(kept, sheet_names(kept, seed), strict=True):
        by_id = {item.id: item for item in text.items}
        rows = []
        for entry in listed[(text.task, text.language)]:
            if entry.id not in by_id:
                raise UnknownNameError(f"item of {text}", entry.id, by_id)
            rows.append(_row(text, by_id[entry.id], entry.stratum, entry.weight, seed))
        sheets.append(_sheet(text, name, rows, "stratified by the list of items"))
    return tuple(sheets)


def _row(text: TextItems, item: AnnotationItem, stratum: str, weight: float, seed: int) -> SheetRow:
    return SheetRow(
        row=row_name(text, item.id, seed),
        id=item.id,
        gold=item.gold,
        digest=item.digest,
        stratum=stratum,
        weight=weight,
        fields=dict(item.fields),
        choices=dict(item.choices),
    )


def _sheet(text: TextItems, name: str, rows: Sequence[SheetRow], design: str) -> Sheet:
    return Sheet(
        name=name,
        task=text.task,
        language=text.language,
        view=dict(text.view),
        labels=text.labels,
        provenance=text.provenance,
        design=design,
        population=len(text.items),
        rows=tuple(sorted(rows, key=lambda row: row.row)),
    )


def _draw_rows(
    text: TextItems,
    free: Sequence[AnnotationItem],
    size: int,
    seed: int,
    stratify: str | None,
    allocation: _Allocation,
) -> list[SheetRow]:
    population = Counter(_stratum(item, stratify, text) for item in text.items)
    strata: dict[str, list[AnnotationItem]] = {name: [] for name in population}
    for item in free:
        strata[_stratum(item, stratify, text)].append(item)
    rows = []
    for name, count in sorted(_allocate(population, size, allocation).items()):
        items = strata[name]
        if not 0 < count <= len(items):
            raise UsageError(
                f"{text}: the stratum {name!r} would get {count} of its {population[name]} items; "
                f"{len(items)} of them are in no other sheet.",
                hint="Change --size, or stratify by another attribute.",
            )
        language = None if text.parallel else text.language
        drawn = draw([item.id for item in items], count, seed=seed, task=text.task, language=language)
        rows += [
            _row(text, item, name, population[name] / count, seed)
            for item in (items[index] for index in drawn)
        ]
    return rows


def _stratum(item: AnnotationItem, name: str | None, text: TextItems) -> str:
    if name is None:
        return ALL
    if name == "label":
        return item.gold
    if name not in item.attributes:
        names = ", ".join(["label", *sorted(item.attributes)])
        raise UsageError(f"The items of {text} have no attribute {name!r} to stratify by; known: {names}.")
    return item.attributes[name]


def _allocate(population: Mapping[str, int], size: int, allocation: _Allocation) -> dict[str, int]:
    """Return the rows of every stratum, which sum up to `size`: quotas, rounded by their largest remainders."""
    total = sum(population.values())
    quotas = {
        name: size / len(population) if allocation == "equal" else size * count / total
        for name, count in population.items()
    }
    rows = {name: int(quota) for name, quota in quotas.items()}
    order = sorted(quotas, key=lambda name: (rows[name] - quotas[name], name))
    for name in order[: size - sum(rows.values())]:
        rows[name] += 1
    return rows


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
    allocation: _Allocation = "proportional"
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
        sheets = _listed_sheets(texts, _read_listed(request.items), seed=request.seed)
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
