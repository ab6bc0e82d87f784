"""What a run gives to a notebook: typed results, items as a table, a comparison; and one digest for a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import compare_runs
from harness.analysis.comparison import Comparison
from harness.errors import DataError, UnknownNameError
from harness.scores.table import read_scores
from harness.storage import TaskScore
from harness.storage.results import DamagedRunError, Manifest

from .conftest import RunTasks

CELL = ["model", "task", "language", "protocol", "method", "fit", "seed", "view"]
ITEM = ["id", "inputs", "gold", "answer", "correct"]
REST = ["cluster", "group", "tags", "truncated", "unparsed", "unfinished", "tokens", "reasoning"]


def test_items_are_a_table_with_one_row_per_item(run: RunTasks) -> None:
    finished = run(["xnli:de+sw", "udpos:de", "lareqa:en"])
    table = finished.items("xnli", "sw")
    assert table.column_names == [*CELL, *ITEM, "accuracy", *REST]
    [cell] = [cell for cell in finished.cells if (cell.task, cell.language) == ("xnli", "sw")]
    records = list(finished.records(cell))
    rows = table.to_pylist()
    assert [row["id"] for row in rows] == [record.id for record in records]
    assert [row["gold"] for row in rows] == [record.reference for record in records]
    assert [row["accuracy"] for row in rows] == [record.scores["accuracy"] for record in records]
    assert {row["fit"] for row in rows} == {cell.fit}
    assert {row["model"] for row in rows + read_scores([finished]).to_dicts()} == {
        finished.manifest.model_name
    }
    assert rows[0]["inputs"].keys() == {"premise", "hypothesis"}
    assert finished.items("xnli").num_rows == 10
    whole = finished.items()
    assert whole.num_rows == sum(cell.n for cell in finished.cells)
    assert set(whole.column("language").to_pylist()) == {"de", "sw", "en"}
    assert " " in finished.items("udpos").to_pylist()[0]["gold"]
    assert " | " in finished.items("lareqa").to_pylist()[0]["gold"]


def test_a_data_frame_has_the_same_rows(run: RunTasks) -> None:
    pytest.importorskip("pandas")
    finished = run("xnli:de+sw")
    frame = finished.to_pandas(language="sw")
    assert list(frame.columns) == finished.items().column_names
    assert len(frame) == 5


def test_the_folder_of_records_is_one_table(run: RunTasks) -> None:
    import pyarrow.parquet as pq

    finished = run(["xnli:de+sw", "udpos:de"])
    columns = ["model", "task", "language", "id", "answer", "correct"]
    table = pq.read_table(finished.path / "records", columns=columns)
    assert sorted(map(str, table.to_pylist())) == sorted(
        map(str, finished.items().select(columns).to_pylist())
    )
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(finished.path / "records")
    assert list(frame.groupby(["model", "task", "language"]).size()) == [
        cell.n for cell in sorted(finished.cells, key=lambda cell: (cell.task, cell.language))
    ]


@pytest.mark.parametrize(
    ("given", "near"), [(("xnlj", None), "xnli"), ((None, "se"), "sw"), (("tatoeba", "sw"), "de")]
)
def test_names_that_the_run_does_not_have(run: RunTasks, given: Any, near: str) -> None:
    with pytest.raises(UnknownNameError, match=near):
        run(["xnli:sw", "tatoeba:de"]).items(*given)


def test_runs_are_compared(run: RunTasks) -> None:
    first, second = run("xnli:de"), run("xnli:de", "baseline:majority")
    found = compare_runs([first, second], tasks=["xnli"])
    assert isinstance(found, Comparison)
    assert found.tasks[0].items == 5
    with pytest.raises(DataError):
        compare_runs([first, second], metric="f1")


def test_results_are_typed_and_one_digest_says_what_a_fit_is(run: RunTasks, tmp_path: Path) -> None:
    finished = run("xnli:de+sw")
    assert all(isinstance(score, TaskScore) for score in finished.results.tasks)
    [fit] = {cell.fit for cell in finished.cells if cell.fit != "none"}
    assert list(finished.results.fits) == [fit]
    assert (tmp_path / "cache" / "fits" / str(fit)).is_dir()
    assert finished.results.fits[str(fit)].stages[-1]["digest"] == fit


def test_a_manifest_names_the_task_that_it_does_not_have() -> None:
    with pytest.raises(DamagedRunError, match="xnli"):
        Manifest().tasks["xnli"]
