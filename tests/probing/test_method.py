"""The methods `probe` and `probe_paper` in a run, with a model that answers from hashes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.api import evaluate
from harness.cli.main import run_command
from harness.kinds.methods import MethodContext
from harness.storage.run_folder import Run
from harness_probing.problem import item_maker, output_of
from harness_probing.settings import PRESETS
from harness_probing.states import shared_blocks
from tests.probing.toy_tasks import rows, write_rows, write_tasks

InstallPlugin = Callable[..., Path]
RunToy = Callable[..., Run]


@pytest.fixture
def toy(tmp_path: Path, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder, with the model installed and its log empty."""
    install_plugin(
        "layered_adapter", Path(__file__).with_name("layered_adapter.py").read_text(encoding="utf-8")
    )
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    quick = {name: replace(own, max_epochs=12) for name, own in PRESETS.items()}
    quick["default"] = replace(quick["default"], fractions=(0.25, 1.0), learning_rate=1e-2)
    monkeypatch.setattr("harness_probing.settings.PRESETS", quick)
    monkeypatch.setenv("LAYERED_LOG", str(tmp_path / "asked.jsonl"))
    folder = tmp_path / "data" / "toy"
    write_tasks(tmp_path / "specs")
    for split, count, seed in (("train", 80, 1), ("dev", 30, 2), ("test", 40, 3)):
        write_rows(folder / f"hi.{split}.jsonl", rows(count, seed=seed))
    return folder


@pytest.fixture
def run(toy: Path, tmp_path: Path) -> RunToy:
    """A function that runs the toy tasks."""
    numbers = iter(range(9))

    def evaluated(*tasks: str, **settings: Any) -> Run:
        given = {"data": toy.parent, "tasks_from": [tmp_path / "specs"], "languages": ["hi"], "seeds": (0, 1)}
        given["output"] = tmp_path / f"run-{next(numbers)}"
        return evaluate(list(tasks), "layered:sound", **{**given, **settings})

    return evaluated


def _asked(tmp_path: Path) -> Counter[str]:
    log = tmp_path / "asked.jsonl"
    return Counter(log.read_text(encoding="utf-8").splitlines()) if log.exists() else Counter()


def _probing(cell: Any) -> Any:
    return cell.details["probing"]


def test_the_details_agree_with_the_scores_of_the_cells(run: RunToy) -> None:
    first, second = run("toy_pos").cells
    assert (first.method, first.seed, second.seed) == ("probe", 0, 1)
    assert not second.details
    found = _probing(first)
    problem = found["problem"]
    assert (problem["headline"]["chosen_on"], problem["headline"]["layer"]) == ("dev", 1)
    values = [cell.metrics["token_accuracy"].value for cell in (first, second)]
    assert problem["headline"]["accuracy"]["value"] == pytest.approx(np.mean(values))
    assert np.mean(values) > 0.8
    assert first.metrics["token_accuracy"].ci_method == "cluster bootstrap"
    assert problem["headline"]["clusters"] == 20
    assert (found["schema"], found["preset"], found["level"]) == (1, "default", "word")
    assert found["settings"]["seeds"] == [0, 1]
    assert found["train"] == {"language": "hi", "sentences": 80, "items": problem["items"]["train"]}
    layers = [layer["test"]["accuracy"]["value"] for layer in problem["layers"]]
    assert layers[1] > layers[2] > layers[0]
    assert problem["layers"][1]["selectivity"]["accuracy"]["value"] > 0.2
    random = found["random_encoder"]
    assert [layer["layer"] for layer in random["layers"]] == [0, 1, 2]
    assert random["headline"]["accuracy"]["value"] < 0.6
    json.dumps(found, allow_nan=False)


def test_unseen_types_have_their_own_score(run: RunToy, toy: Path) -> None:
    train = rows(80, seed=1)
    write_rows(
        toy / "hi.test.jsonl", [*train[:10], *({**one, "id": f"new {one['id']}"} for one in rows(5, seed=9))]
    )
    words = {word for one in train for word in one["tokens"]}
    test = [word for one in [*train[:10], *rows(5, seed=9)] for word in one["tokens"]]
    found = _probing(run("toy_pos").cells[0])["unseen_types"]
    assert (found["types"], found["unseen"]) == (len(set(test)), len(set(test) - words))
    assert (found["items"], found["unseen_items"]) == (len(test), sum(word not in words for word in test))
    assert 0 < found["weighted_f1_seen"] <= 1


def test_tasks_over_the_same_sentences_share_one_pass_and_are_scored_as_alone(
    run: RunToy, tmp_path: Path
) -> None:
    together = run("toy_pos", "toy_first")
    assert [cell.status for cell in together.cells] == ["ok"] * 4
    asked = _asked(tmp_path)
    assert (len(asked), set(asked.values())) == (150, {1})
    first = together.cells[2]
    assert (_probing(first)["level"], _probing(first)["unseen_types"]) == ("sentence", None)
    assert first.metrics["accuracy"].value > 0.7
    alone = run("toy_first").cells
    assert [cell.metrics for cell in alone] == [cell.metrics for cell in together.cells[2:]]
    own, shared = (_probing(cell)["problem"]["headline"]["weighted_f1"] for cell in (alone[0], first))
    assert own["value"] == pytest.approx(shared["value"])


def test_bad_data_fail_their_own_cells_only(run: RunToy, tmp_path: Path) -> None:
    finished = run("toy_broken", "toy_pos", "toy_first")
    status = {(cell.task, cell.status) for cell in finished.cells}
    assert status == {("toy_broken", "failed"), ("toy_pos", "ok"), ("toy_first", "ok")}
    assert "expected the text field 'lost'" in finished.cells[0].reason
    assert set(_asked(tmp_path).values()) == {1}


def test_one_class_in_train_fails(run: RunToy, toy: Path) -> None:
    write_rows(toy / "hi.train.jsonl", rows(40, seed=1, classes=("NOUN",)))
    cells = run("toy_pos").cells
    assert [cell.status for cell in cells] == ["failed", "failed"]
    assert "'NOUN' in train" in cells[0].reason


def test_empty_words_and_long_sentences_are_counted(run: RunToy, toy: Path) -> None:
    odd = {"id": "odd", "source": "odd", "sentence": "n1 ~ v2", "label": "NOUN"}
    words = {"tokens": ["n1", "~", "v2"], "tags": ["NOUN", "ADJ", "VERB"]}
    long = {"id": "long", "source": "long", "sentence": " ".join(["n1"] * 12), "label": "NOUN"}
    many = {"tokens": ["n1"] * 12, "tags": ["NOUN"] * 12}
    for split, seed in (("train", 1), ("test", 3)):
        write_rows(toy / f"hi.{split}.jsonl", [*rows(60, seed=seed), {**odd, **words}, {**long, **many}])
    finished = run("toy_pos", "toy_first")
    pos, first = _probing(finished.cells[0]), _probing(finished.cells[2])
    for split in ("train", "test"):
        assert pos["coverage"][split] == {"truncated_sentences": 0, "split_sentences": 1, "empty_words": 1}
        assert first["coverage"][split] == {"truncated_sentences": 1, "split_sentences": 1, "empty_words": 1}
    assert pos["problem"]["items"]["train"] == pos["train"]["items"] - 1  # The word without a vector.
    assert finished.cells[0].n == 62


def test_limits_take_as_many_items_as_they_say(run: RunToy, tmp_path: Path) -> None:
    finished = run("toy_pos", limit=7, train_limit=20)
    assert [cell.n for cell in finished.cells] == [7, 7]
    assert _probing(finished.cells[0])["train"]["sentences"] == 20
    assert sum(_asked(tmp_path).values()) == 20 + 20 + 7


def test_the_paper_preset_chooses_on_test_with_one_seed(run: RunToy) -> None:
    (cell,) = run("toy_pos", method="probe_paper", seeds=()).cells
    assert (cell.method, cell.seed, _probing(cell)["preset"]) == ("probe_paper", 42, "paper")
    problem = _probing(cell)["problem"]
    assert problem["headline"] == problem["best_on_test"]
    assert cell.metrics["token_accuracy"].value == pytest.approx(problem["headline"]["accuracy"]["value"])


@pytest.mark.thorough
def test_an_interrupted_run_goes_on_with_the_states_it_has(
    run: RunToy, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = rows(40, seed=3)
    content[4] |= {"tokens": ["stop", *content[4]["tokens"][1:]]}
    write_rows(toy / "hi.test.jsonl", content)
    with pytest.raises(KeyboardInterrupt):
        run("toy_pos")
    before = _asked(tmp_path)
    assert len(before) >= 110
    monkeypatch.setenv("LAYERED_PATIENT", "1")
    assert run_command(["eval", "--resume", str(tmp_path / "run-0")]) == 0
    finished = Run(tmp_path / "run-0")
    assert [cell.status for cell in finished.cells] == ["ok", "ok"]
    after = _asked(tmp_path) - before
    assert sum(after.values()) == 40  # Test only: the states of train and dev were on disk.
    whole = run("toy_pos")
    for cell, other in zip(finished.cells, whole.cells, strict=True):
        assert cell.metrics == other.metrics


def test_finished_cells_are_not_prepared_again(run: RunToy, tmp_path: Path) -> None:
    run("toy_pos")
    before = _asked(tmp_path)
    assert run_command(["eval", "--resume", str(tmp_path / "run-0")]) == 0
    assert _asked(tmp_path) == before


def test_unlabelled_test_items_are_predicted(run: RunToy, toy: Path) -> None:
    content = rows(10, seed=3)
    gold = [tag for row in content for tag in row.pop("tags")]
    write_rows(toy / "hi.test.jsonl", content)
    finished = run("toy_pos")
    assert [cell.metrics for cell in finished.cells] == [{}, {}]
    assert not finished.cells[0].details
    predicted = [tag for record in finished.records(finished.cells[0]) for tag in record.prediction]
    assert np.mean([tag == own for tag, own in zip(predicted, gold, strict=True)]) > 0.8


# Conversion -------------------------------------------------------------------------------------------


def _context(kind: str, **keys: Any) -> MethodContext:
    spec: Any = SimpleNamespace(kind=kind, label_names=("A", "B"), **keys)
    language: Any = None
    return MethodContext(spec=spec, language=language, protocol="frozen", seed=0)


def test_labelled_words_become_items() -> None:
    example = SimpleNamespace(id="x", cluster=None, tokens=("a", "b", "c"), targets=(0, 2), labels=("B", "A"))
    item = item_maker(_context("word_labelling"))(example)
    assert (item.words, item.cluster) == (("a", "b", "c"), "x")
    assert (item.positions, item.classes, item.types) == ((1, 3), (1, 0), ("a", "c"))
    assert output_of("word_labelling", ["B", "A"]) == ["B", "A"]


def test_texts_become_sentences_with_masked_words() -> None:
    example = SimpleNamespace(id="x", cluster="s", inputs={"one": "a [M] b", "two": "c"}, label="B")
    item = item_maker(_context("sequence_classification", mask_word="[M]"))(example)
    assert (item.words, item.positions, item.classes) == (("a", None, "b", "c"), (0,), (1,))
    assert item.types == ("a [M] b c",)
    unlabelled = SimpleNamespace(id="x", cluster="s", inputs={"one": ""}, label=None)
    empty = item_maker(_context("sequence_classification"))(unlabelled)
    assert (empty.words, empty.classes) == ((), None)
    assert output_of("sequence_classification", ["B"])["label"] == "B"


def test_blocks_hold_every_item_once_and_join_equal_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_probing.states.BLOCK", 3)
    monkeypatch.setattr("harness_probing.states.WINDOW", 8)
    make = item_maker(_context("sequence_classification"))

    def item(name: str, number: int) -> Any:
        fields = {"inputs": {"one": f"w{number % 30}"}, "label": "A"}
        return make(SimpleNamespace(id=f"{name}{number}", cluster=None, **fields))

    # The second has only some of the sentences, and others; both have some sentences twice.
    numbers = {"x": [*range(40)], "y": [*range(0, 40, 2), *range(100, 110)]}
    given = {name: [item(name, number) for number in own] for name, own in numbers.items()}
    blocks = [sentence for block in shared_blocks(given) for sentence in block]
    found = Counter(item.id for _, own in blocks for _, item in own)
    assert found == Counter(item.id for own in given.values() for item in own)
    assert all(item.words == words for words, own in blocks for _, item in own)
    assert sum(len({name for name, _ in own}) == 2 for _, own in blocks) >= 18
