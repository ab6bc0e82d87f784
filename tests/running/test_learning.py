"""Planned training data of methods that learn on top of a frozen model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.data.sources import DataFinder
from harness.errors import DataError
from harness.planning.resolution import resolve_plan
from harness.planning.run_config import data_options
from harness.running.cell_reader import CellReader
from harness.running.session import open_session

from .conftest import DataFolder, MakePlan

pytestmark = pytest.mark.usefixtures("calls")


def _sentences(*names: str) -> str:
    return "".join(f"{name}\tNOUN\nruns\tVERB\n\n" for name in names)


@pytest.fixture
def folder(data_folder: DataFolder) -> Path:
    """UD-POS: everything in Hindi, English to learn from; a dev set used as Tamil's test set."""
    many = [f"w{number}" for number in range(30)]
    return data_folder(
        {
            "udpos/train-hi.tsv": _sentences(*many),
            "udpos/dev-hi.tsv": _sentences("dev"),
            "udpos/test-hi.tsv": _sentences("test"),
            "udpos/train-en.tsv": _sentences(*many[::-1]),
            "udpos/dev-en.tsv": _sentences("english"),
            "udpos/test-en.tsv": _sentences("test"),
            "udpos/train-ta.tsv": _sentences(*many),
            "udpos-xtreme/dev-ta.tsv": _sentences("stands", "in"),
            "udpos/test-mr.tsv": _sentences("test"),
        }
    )


def _reader(folder: Path) -> CellReader:
    registry = open_session().registry
    return CellReader(registry, DataFinder(data_options([folder]), registry, folder / "cache"))


def test_probing_is_never_chosen_by_itself(make_plan: MakePlan, folder: Path) -> None:
    plan = make_plan("udpos:hi", model="asks:learns", data=folder)
    assert {cell.pairing.method.name for cell in plan.cells} == {"head"}
    bare = make_plan("udpos:hi", model="asks:states", data=folder)
    assert not bare.cells
    assert [skip.language for skip in bare.skipped] == ["hi"]
    frozen = make_plan("udpos:hi", model="asks:states", data=folder, protocols=("frozen",))
    assert not frozen.cells


@pytest.mark.parametrize("ref", ["learns", "states"])
def test_a_method_that_is_named_gets_one_cell_a_seed(make_plan: MakePlan, folder: Path, ref: str) -> None:
    plan = make_plan("udpos:hi", model=f"asks:{ref}", data=folder, method="probe")
    assert [cell.seed for cell in plan.cells] == [0, 1, 2, 3, 4]
    assert {(cell.pairing.protocol, cell.pairing.method.name) for cell in plan.cells} == {("frozen", "probe")}
    assert len({cell.digest for cell in plan.cells}) == 5
    assert [cell.fit for cell in plan.cells] == [None] * 5
    paper = make_plan("udpos:hi", model=f"asks:{ref}", data=folder, method="probe_paper")
    assert [cell.seed for cell in paper.cells] == [42]
    few = make_plan("udpos:hi", model=f"asks:{ref}", data=folder, method="probe", seeds=(7, 8))
    assert [cell.seed for cell in few.cells] == [7, 8]


def test_the_language_itself_is_learnt_from_or_the_source_language(make_plan: MakePlan, folder: Path) -> None:
    plan = make_plan("udpos:hi+mr", model="asks:states", data=folder, method="probe", seeds=(0,))
    hindi, marathi = plan.cells
    assert hindi.learning is not None and marathi.learning is not None
    assert (hindi.learning.language, dict(hindi.view)) == ("hi", {})
    assert (marathi.learning.language, dict(marathi.view)) == ("en", {"probe_train": "en"})
    assert marathi.learning.train.files.paths == (folder / "udpos/train-en.tsv",)
    assert marathi.learning.validation is not None
    assert marathi.learning.validation.files.paths == (folder / "udpos/dev-en.tsv",)


def test_a_dev_set_that_is_tested_on_chooses_nothing(make_plan: MakePlan, folder: Path) -> None:
    plan = make_plan("udpos:ta", model="asks:states", data=folder, method="probe", seeds=(0,))
    (cell,) = plan.cells
    assert cell.test.files.stands_in
    assert cell.learning is not None
    assert cell.learning.validation is None
    assert any("Every tenth cluster of train is held out" in note for note in plan.notes)
    reader = _reader(folder)
    train, held = reader.learning(cell, "train"), reader.learning(cell, "validation")
    assert [example.tokens[0] for example in held] == ["w9", "w19", "w29"]
    assert len(train) == 27
    assert not {example.id for example in train} & {example.id for example in held}


def test_a_limit_keeps_the_same_items_for_every_seed(make_plan: MakePlan, folder: Path) -> None:
    plan = make_plan(
        "udpos:hi", model="asks:states", data=folder, method="probe", seeds=(0, 1), train_limit=5
    )
    reader = _reader(folder)
    kept = [[example.id for example in reader.learning(cell, "train")] for cell in plan.cells]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 5
    assert len(reader.learning(plan.cells[0], "validation")) == 1


def test_missing_train_data_are_a_reason(make_plan: MakePlan, folder: Path) -> None:
    (folder / "udpos/train-en.tsv").unlink()
    plan = make_plan("udpos:mr", model="asks:states", data=folder, method="probe")
    assert not plan.cells
    (skip,) = plan.skipped
    assert (skip.language, skip.protocol) == ("mr", "frozen")
    assert "train" in skip.reason


def test_a_cell_is_another_one_when_its_train_data_are(make_plan: MakePlan, folder: Path) -> None:
    settings: dict[str, Any] = {"model": "asks:states", "data": folder, "method": "probe", "seeds": (0,)}
    before = make_plan("udpos:hi", **settings)
    digest = before.cells[0].digest
    session = open_session()
    splits = {split.split: split for split in resolve_plan(before, session.catalog).data}
    assert set(splits) == {"test", "train", "validation"}
    assert splits["train"].files[0].name == "udpos/train-hi.tsv"
    (folder / "udpos/train-hi.tsv").write_text(_sentences("other"), encoding="utf-8")
    after = make_plan("udpos:hi", **settings)
    assert digest != after.cells[0].digest
    more = make_plan("udpos:hi", **{**settings, "seeds": (0, 1)})
    assert more.cells[0].digest != after.cells[0].digest  # The layer is chosen over all seeds.


def test_a_model_without_states_is_reported(make_plan: MakePlan, folder: Path) -> None:
    plan = make_plan("udpos:hi", data=folder, method="probe")
    assert not plan.cells
    assert "'frozen' needs ExposesHiddenStates" in plan.skipped[0].reason


def test_a_kind_without_the_method_is_reported(make_plan: MakePlan) -> None:
    plan = make_plan("xquad:de", model="asks:learns", method="probe")
    assert not plan.cells
    assert "the method 'probe' does not serve" in plan.skipped[0].reason


def test_unlabelled_train_data_are_rejected(make_plan: MakePlan, folder: Path) -> None:
    (folder / "udpos/train-hi.tsv").write_text("a\nb\n\nc\n", encoding="utf-8")
    (cell,) = make_plan("udpos:hi", model="asks:states", data=folder, method="probe", seeds=(0,)).cells
    with pytest.raises(DataError, match="without labels"):
        _reader(folder).learning(cell, "train")


def test_results_say_what_was_learnt_from(make_plan: MakePlan, folder: Path) -> None:
    (cell,) = make_plan("udpos:hi", model="asks:states", data=folder, method="probe", seeds=(0,)).cells
    assert cell.learning is not None
    kept = json.loads(json.dumps(cell.learning.to_json()))
    assert kept["language"] == "hi"
    assert kept["train"]["digest"] == cell.learning.train.digest()
