"""All that runs know of one item: its texts, what every system was asked and answered, the gold answer, the scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import HarnessError, UnknownNameError
from harness.languages.table import recorded_name
from harness.prompts.prompter import Rendering
from harness.reporting.blocks.number import percent
from harness.reporting.overview.means import UNREADABLE
from harness.reporting.overview.run_remarks import COUNTS
from harness.reporting.weakness.items import named_fields
from harness.running.item_prompt import RecordedPrompts
from harness.storage.records import REPEATS, ItemRecord, find_record, read_batches
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

INDENT = 12
"""Columns of the names of fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSheet:
    """One item in one task, language and system."""

    group: SystemGroup
    system: System
    cell: CellResult
    record: ItemRecord
    prompt: Rendering | str | None
    """Prompt of the model; why it cannot be shown; None for a model that was not asked with a prompt."""

    @property
    def title(self) -> str:
        """The task with its view, the language, and the system."""
        name = recorded_name(self.cell.language, [self.system.spec.names])
        return f"{self.group.title}, {name} ({self.cell.language}), {self.system.name}"

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``harness report RUN --item ID`` prints of it."""
        record = self.record
        yield self.title
        for name, texts in named_fields(record, self.system.spec.kind):
            yield from (_line(name, text) for text in texts)
        yield _line("gold", "not labelled" if record.gold is None else record.gold)
        verdict = {True: " (right)", False: " (wrong)", None: ""}[record.correct]
        yield _line("answer", f"{'none' if record.answer is None else record.answer}{verdict}")
        if flags := [name for name, is_set in record.flags.items() if is_set]:
            labels = (UNREADABLE if name in {"unparsed", "unanswered"} else name for name in flags)
            notes = (f"{name}: {COUNTS[name]}" if name in COUNTS else name for name in labels)
            yield _line("note", "; ".join(notes))
        for written in _written(record):
            yield _line("written", written)
        if record.reasoning is not None:
            yield _line("reasoning", record.reasoning)
        for name, value in record.scores.items():
            if isinstance(value, int | float):  # others are an item's part in a score of the whole set
                yield _line(name, percent(value))
        if isinstance(self.prompt, Rendering):
            yield from self.prompt.lines()
        elif self.prompt is not None:
            yield f"The prompt is not shown: {self.prompt}"

    def row(self) -> dict[str, Any]:
        """Return it as plain values."""
        record, prompt = self.record, self.prompt
        return {
            "task": self.cell.task,
            "language": self.cell.language,
            "view": dict(self.cell.view),
            "system": self.system.name,
            "id": record.id,
            "inputs": dict(record.fields),
            **{name: getattr(record, name) for name in ("gold", "answer", "correct")},
            **{"scores": dict(record.scores), "flags": dict(record.flags)},
            **{"prediction": record.prediction, "reasoning": record.reasoning},
            "prompt": prompt.to_json() if isinstance(prompt, Rendering) else None,
            "prompt_missing": prompt if isinstance(prompt, str) else None,
        }


def item_sheets(
    runs: Sequence[Run], identifier: str, *, tasks: Sequence[str] = (), languages: Sequence[str] = ()
) -> list[ItemSheet]:
    """Return an item in every task, language and system of runs that has it.

    Raises `UsageError` for unknown names, and `DataError` for records that cannot be read.
    """
    prompts: dict[Path, RecordedPrompts] = {}
    sheets = []
    groups = group_systems(runs, tasks=tasks, languages=languages, least=1)
    for group in groups:
        for code in dict.fromkeys(code for system in group.systems for code in system.cells):
            for system in group.systems:
                cell = system.cells.get(code)
                record = None if cell is None else find_record(system.run.records_of(cell), identifier)
                if cell is not None and record is not None:
                    prompt = _prompt(system.run, cell, record, prompts)
                    sheets.append(
                        ItemSheet(group=group, system=system, cell=cell, record=record, prompt=prompt)
                    )
    if not sheets:
        raise UnknownNameError("item of these cells", identifier, _ids(groups))
    return sheets


def _prompt(
    run: Run, cell: CellResult, record: ItemRecord, known: dict[Path, RecordedPrompts]
) -> Rendering | str | None:
    if cell.prompt is None:
        return None
    try:
        if run.path not in known:
            known[run.path] = RecordedPrompts(run)
        return known[run.path].render(cell, record)
    except HarnessError as error:
        return str(error)


def _written(record: ItemRecord) -> list[str]:
    """Return the texts that the model wrote, answer by answer, where the record keeps them."""
    output = record.prediction
    if not isinstance(output, dict):
        return []
    answers = [answer for answer in output.get(REPEATS) or [output] if isinstance(answer, dict)]
    return [str(answer["raw"]) for answer in answers if answer.get("raw") is not None]


def _ids(groups: Sequence[SystemGroup]) -> Iterator[str]:
    for group in groups:
        for system in group.systems:
            for cell in system.cells.values():
                for batch in read_batches(system.run.records_of(cell), ("id",)):
                    yield from batch.column("id").to_pylist()


def _line(name: str, text: str) -> str:
    """Return a field; the further lines of its text are below the first one."""
    return f"  {name:{INDENT}} {text}".replace("\n", "\n" + " " * (INDENT + 3))
