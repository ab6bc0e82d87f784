"""Items that are read chunk by chunk: the same ones, and the same faults in the same words, as from a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.records import Row, draw, draw_items
from harness.errors import DataError
from harness.kinds import kind as kinds
from harness.kinds.kind import ReadContext, iter_examples, read_examples
from harness.planning.plan import Cell
from harness.planning.run_config import RunConfig, data_options
from harness.running import cell_reader as reading
from harness.running.cell_reader import CellReader
from harness.running.session import open_session, prepare

from .conftest import MakePlan

DataFolder = Callable[..., Path]
KIND = open_session().registry.kinds.get("sequence_classification")
CONTEXT = ReadContext(owner="mine", language="de", split="test", inputs=("text",), labels=("a", "b"))


def _outcome(read: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "examples", list(read())
    except DataError as error:
        return "error", str(error)


_ROW = st.fixed_dictionaries(
    {"text": st.text(max_size=1), "label": st.sampled_from(["a", "a", "a", "b", "c", None])},
    optional={"id": st.sampled_from("123456789")},
)


@given(st.lists(_ROW, max_size=8), st.booleans())
def test_examples_and_faults_are_those_of_a_list(fields: list[dict[str, Any]], broken: bool) -> None:
    def rows() -> Iterator[Row]:
        for line, item in enumerate(fields, start=1):
            yield Row(fields=item, path="f.jsonl", line=line)
        if broken:
            raise DataError("f.jsonl:99: expected JSON.")

    whole = _outcome(lambda: read_examples(KIND, rows(), CONTEXT))
    assert _outcome(lambda: iter_examples(KIND, rows, CONTEXT)) == whole


@given(st.lists(st.sampled_from("0123456789abcdef"), max_size=12))
def test_ids_of_equal_hashes_differ(ids: list[str]) -> None:
    def rows() -> Iterator[Row]:
        for line, identifier in enumerate(ids, start=1):
            yield Row(fields={"id": identifier, "text": "", "label": "a"}, path="f", line=line)

    whole = _outcome(lambda: read_examples(KIND, rows(), CONTEXT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "hash", lambda identifier: hash(identifier) % 3, raising=False)
        assert _outcome(lambda: iter_examples(KIND, rows, CONTEXT)) == whole


def test_training_data_are_read_as_a_list() -> None:
    context = ReadContext(owner="mine", language="de", split="train")
    with pytest.raises(ValueError, match="The ids of training data may repeat"):
        next(iter_examples(KIND, lambda: [], context))


@given(st.lists(st.text(max_size=3), unique=True, max_size=40), st.integers(0, 45), st.integers(0, 3))
def test_a_draw_from_a_stream_is_that_from_a_list(ids: list[str], limit: int, seed: int) -> None:
    named: dict[str, Any] = {"seed": seed, "task": "xnli", "language": "sw"}
    seen = []

    def stream() -> Iterator[str]:
        for identifier in ids:
            seen.append(identifier)
            yield identifier

    kept = draw_items(stream(), limit, str, **named)
    assert seen == ids
    assert [index for index, _ in kept] == draw(ids, limit, **named)
    assert all(ids[index] == identifier for index, identifier in kept)


# The items of a cell --------------------------------------------------------------------------------------


def _reader(folder: str | Path, task: str = "xnli:de") -> tuple[CellReader, Cell]:
    prepared = prepare(RunConfig(tasks=(task,), model="baseline:majority", data=data_options([folder])))
    return CellReader(prepared.session.registry, prepared.finder), prepared.plan.cells[0]


@pytest.mark.parametrize("held", [2, 24, 100])
@pytest.mark.parametrize("limit", [None, 1, 5, 24, 60])
def test_the_items_of_a_cell_are_those_of_a_list(
    held: int, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "HELD", held)
    reader, cell = _reader("sample")
    whole, pool = reader.read(cell)
    assert (len(whole), pool) == (24, None)
    language = None if cell.spec.parallel else "de"
    indices = draw([item.id for item in whole], limit, seed=0, task="xnli", language=language)
    items = reader.stream(cell, limit=limit, seed=0)
    assert (items.size, len(items)) == (24, len(indices))
    for _ in range(2):
        chunks = list(items.chunks(7))
        assert [len(chunk) for chunk in chunks[:-1]] == [7] * (len(chunks) - 1)
        assert [item for chunk in chunks for item in chunk] == [whole[index] for index in indices]
    assert len(items.pool) == 24
    assert list(items.pool) == whole
    assert items.pool[1:3] == whole[1:3]


def test_few_items_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, cell = _reader("sample")
    passes = []
    rows = reader._finder.rows

    def counted(found: Any) -> Iterator[Row]:
        passes.append(found)
        return rows(found)

    monkeypatch.setattr(reader._finder, "rows", counted)
    for limit in (None, 5):
        list(reader.stream(cell, limit=limit, seed=0))
    assert len(passes) == 2
    monkeypatch.setattr(reading, "HELD", 4)
    items = reader.stream(cell, limit=None, seed=0)
    list(items)
    assert len(passes) == 4


def test_faults_are_reported_before_the_first_item(data_folder: DataFolder) -> None:
    lines = "".join(f"p{number}\th{number}\tneutral\n" for number in range(4))
    folder = data_folder({"xnli/test-de.tsv": lines + "p\th\tneutrl\n", "xnli/train-en.tsv": lines})
    reader, cell = _reader(folder)
    with pytest.raises(DataError, match=r"test-de\.tsv:5: .*'neutrl'"):
        reader.stream(cell, limit=2, seed=0)


def test_a_file_that_changes_between_two_passes_is_rejected(
    data_folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "HELD", 2)
    lines = "".join(f"p{number}\th{number}\tneutral\n" for number in range(4))
    folder = data_folder({"xnli/test-de.tsv": lines, "xnli/train-en.tsv": lines})
    reader, cell = _reader(folder)
    items = reader.stream(cell, limit=None, seed=0)
    assert len(list(items)) == 4
    (folder / "xnli/test-de.tsv").write_text(lines + "p\th\tneutral\n", encoding="utf-8")
    with pytest.raises(DataError, match="The test items of 'xnli' changed while they were read"):
        list(items)


@pytest.mark.parametrize(
    ("task", "expected"), [("xnli:de", False), ("tatoeba:de", True), ("mewslix:de", True)]
)
def test_cells_that_need_all_items_say_so(task: str, expected: bool, make_plan: MakePlan) -> None:
    plan = make_plan(task, model="baseline:char-ngram", protocols=("frozen",) if task[0] != "x" else ())
    session = open_session()
    reader = CellReader(session.registry, None)  # type: ignore[arg-type]
    assert [reader.needs_list(cell) for cell in plan.cells] == [expected]
    if plan.cells[0].pool is not None:
        with pytest.raises(ValueError, match="has a pool of candidates"):
            reader.stream(plan.cells[0], limit=None, seed=0)
