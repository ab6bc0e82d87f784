"""Writes the folder of an annotation: sheets and pages for each annotator, and the key."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import UsageError
from harness.storage.files import write_atomically
from harness_translation.annotation.item import (
    ORIGINAL,
    TEXT_VIEW,
    TextItems,
    add_strata,
    read_run_texts,
    read_strata,
    read_texts,
)
from harness_translation.annotation.key import Key, make_key, write_key
from harness_translation.annotation.sample import Allocation, draw_samples
from harness_translation.annotation.sheet import (
    ADJUDICATED,
    annotator_rows,
    default_instructions,
    write_sheet,
)
from harness_translation.annotation.store import Annotations, disagreements, shown_to_adjudicator

__all__ = ["ExportRequest", "export_sheets", "read_suspects", "write_adjudication"]


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
    strata: Path | None = None
    allocation: Allocation = "proportional"
    suspects: Path | None = None
    control_share: float = 0.5
    instructions: Path | None = None
    page: bool = False


def export_sheets(request: ExportRequest, folder: Path) -> Key:
    """Draw the items, write everything below a new folder, and return the key.

    Raises:
        UsageError: If the options do not fit each other or the items, or the folder is not empty.
        DataError: If the items cannot be read.
    """
    _check(request, folder)
    texts = _texts(request)
    if request.strata is not None and request.stratify is not None:
        texts = [add_strata(text, request.stratify, read_strata(request.strata, text)) for text in texts]
    suspects = None
    if request.suspects is not None:
        suspects = _by_text(read_suspects(request.suspects), texts, request.suspects)
    samples = draw_samples(
        texts,
        size=request.size,
        seed=request.seed,
        stratify=request.stratify,
        allocation=request.allocation,
        suspects=suspects,
        control_share=request.control_share,
    )
    custom = _instructions(request.instructions)
    key = make_key(
        samples,
        seed=request.seed,
        annotators=[str(number) for number in range(1, request.annotators + 1)],
        instructions={
            text.text.task: custom or default_instructions(text.labels, choices=bool(text.items[0].choices))
            for text in texts
        },
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_key(key, folder)
    _write_sheets(key, folder, page=request.page)
    return key


def _check(request: ExportRequest, folder: Path) -> None:
    if not request.tasks and not request.runs:
        raise UsageError("No task was named.", hint="Give --tasks, or --run to use the items of a run.")
    if request.strata is not None and request.stratify is None:
        raise UsageError("--strata needs --stratify with the name of the attribute, such as genre.")
    if request.suspects is not None and request.stratify is not None:
        raise UsageError("--suspects and --stratify cannot be used together.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"The folder {str(folder)!r} is not empty; its labels could be lost.",
            hint="Give another folder with --output.",
        )


def _texts(request: ExportRequest) -> list[TextItems]:
    if request.runs:
        from harness import Run

        runs = [Run(path) for path in request.runs]
        return read_run_texts(runs, request.tasks, request.languages, request.variants)
    from harness import open_session
    from harness.data.sources import DataFinder
    from harness.running.session import data_options
    from harness.storage.files import cache_folder

    session = open_session(request.tasks_from)
    finder = DataFinder(data_options(request.data), session.registry, cache_folder() / "data")
    return read_texts(session, finder, request.tasks, request.languages, request.variants)


def _instructions(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The instructions {str(path)!r} cannot be read: {error}.") from error
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _write_sheets(key: Key, folder: Path, *, page: bool) -> None:
    for annotator in key.annotators:
        own = folder / "sheets" / f"annotator-{annotator}"
        own.mkdir(parents=True)
        for sheet in key.sheets:
            rows = annotator_rows(sheet, annotator)
            instructions = key.instructions[sheet.text.task]
            # Spreadsheets recognise UTF-8 by the byte order mark.
            write_atomically(
                own / f"{sheet.name}.csv", "\ufeff" + write_sheet(sheet, annotator, rows, instructions)
            )
            if page:
                from harness_translation.annotation.sheet_page import sheet_page

                write_atomically(own / f"{sheet.name}.html", sheet_page(sheet, annotator, rows, instructions))


def write_adjudication(key: Key, annotations: Annotations, folder: Path) -> Iterator[tuple[Path, int]]:
    """Write a sheet of the undecided rows of each text; yield its file and the number of rows.

    Files of earlier disagreements that are now decided are removed.
    """
    for sheet in key.sheets:
        path = folder / "adjudication" / f"{sheet.name}.csv"
        left = disagreements(sheet, annotations) if len(annotations.of(sheet)) > 1 else []
        if not left:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(exist_ok=True)
        rows = [sheet.by_row[row] for row in left]
        instructions = key.instructions[sheet.text.task]
        given = shown_to_adjudicator(sheet, annotations, left)
        write_atomically(path, "\ufeff" + write_sheet(sheet, ADJUDICATED, rows, instructions, given=given))
        yield path, len(left)


def read_suspects(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a ranking, the worst item first: a JSON list, JSON lines, or a table with a heading.

    A row has an ``id`` and may say ``task``, ``language`` (or ``lang``), ``variant``, ``translator`` and ``rank``.
    Raises `UsageError` for any other file.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".json":
            rows = json.loads(text)
            rows = rows.get("suspects") if isinstance(rows, dict) else rows
        elif path.suffix == ".jsonl":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            rows = list(csv.DictReader(text.splitlines(), delimiter="," if path.suffix == ".csv" else "\t"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The suspects {str(path)!r} cannot be read: {error}.") from error
    if (
        not isinstance(rows, list)
        or not rows
        or not all(isinstance(row, dict) and row.get("id") for row in rows)
    ):
        raise UsageError(
            f"The suspects {str(path)!r} are not a ranking: expected rows with an 'id', the worst item first.",
            hint="Make one: harness gap RUN... --suspects --json FILE",
        )
    if all(str(row.get("rank") or "").isdigit() for row in rows):
        rows.sort(key=lambda row: int(row["rank"]))
    return rows


def _by_text(
    rows: Sequence[Mapping[str, Any]], texts: Sequence[TextItems], path: Path
) -> dict[int, list[str]]:
    found = {
        number: [str(row["id"]) for row in rows if _is_of(row, text)] for number, text in enumerate(texts)
    }
    for number, ids in found.items():
        if not ids:
            raise UsageError(f"The suspects {str(path)!r} name no items of {texts[number].text}.")
    return found


def _is_of(row: Mapping[str, Any], text: TextItems) -> bool:
    own = text.text
    return (
        (row.get("task") or own.task) == own.task
        and (row.get("language") or row.get("lang") or own.language) == own.language
        and all(
            (row.get(name) or default) in {own.view.get(name, default), default}
            for name, default in zip(TEXT_VIEW, (ORIGINAL, ""), strict=True)
        )
    )
