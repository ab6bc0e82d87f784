"""Remarks of a run on its test files before the first cell: changed files, and signs of damage in unknown ones.

A damaged file that can still be read is scored: that is a remark and never an error, since it may be meant so. Files
that are released ones have no signs of damage, so that a run on them starts as fast as without.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from harness.data.checksums import CHANGED, RELEASED
from harness.errors import HarnessError
from harness.planning.plan import Cell
from harness.planning.task_checks import CheckedItems
from harness.running.cell_reader import CellReader
from harness.running.start import RunState

LOOKED_AT = 10_000
"""Items of a test set that are looked at."""


def data_remarks(state: RunState) -> Iterator[str]:
    """Yield the remarks on the test files of a plan, each set of items once; what cannot be read fails its cell."""
    reader = CellReader(state.registry, state.finder)
    for cell in {
        f"{cell.spec.task} {cell.test.untranslated.digest()}": cell for cell in state.plan.cells
    }.values():
        files = state.file_state(cell)
        for name, released in () if files is None else files.changed.items():
            clause = "" if released is None else f"; its content is that of the published file {released!r}"
            yield (
                f"{cell.spec.task} {cell.language.code}: {CHANGED} {name!r}: its SHA-256 is not that of a version that "
                f"the specs know{clause}"
            )
        is_known = cell.test.files.origin == "sample" or (files is not None and files.word == RELEASED)
        # Of texts that were translated before, the language is another one.
        if not is_known and cell.test.change is None and cell.text_language == cell.language:
            yield from _signs(state, reader, cell)


def _signs(state: RunState, reader: CellReader, cell: Cell) -> Iterator[str]:
    try:
        examples = list(islice(reader.examples(cell), LOOKED_AT))
    except HarnessError:
        return
    reference = state.registry.kinds.get(cell.spec.kind).reference
    items = CheckedItems(
        spec=cell.spec,
        language=cell.language.code,
        axes=tuple(cell.view[axis] for axis in cell.spec.axes),
        found=cell.test,
        examples=examples,
        references=[reference(example) for example in examples],
        languages=state.catalog.task(cell.spec.task).languages,
    )
    for checks in state.registry.task_checks:
        yield from checks.load(checks.remarks)(items) if checks.remarks else ()
