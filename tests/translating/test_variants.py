"""Runs with variants that a translator makes: ids, labels and items stay those of the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.data.resolve import DataOptions
from harness.errors import UsageError
from harness.planning.run_config import RunConfig
from harness.running.session import prepare
from harness.storage.run_folder import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("variants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return evaluate(
            "xnli",
            "baseline:char-ngram",
            languages=("en", "sw"),
            data="sample",
            variants=("zs", "tt", "te", "bt"),
            translators=("i=identity,r=reverse",),
            limit=10,
            output=folder / "run",
        )


def records(run: Run, language: str, **view: str) -> dict[str, Any]:
    [cell] = [cell for cell in run.cells if (cell.language, cell.view) == (language, view)]
    assert cell.status == "ok", cell.reason
    assert cell.n == 10
    return {record.id: record for record in run.records(cell)}


@pytest.mark.parametrize("variant", ["tt", "te", "bt"])
def test_ids_and_labels_are_those_of_the_source_items(run: Run, variant: str) -> None:
    own = records(run, "en")
    for name in ("i", "r"):
        made = records(run, "sw", variant=variant, translator=name)
        assert {key: item.reference for key, item in made.items()} == {
            key: item.reference for key, item in own.items()
        }


def test_the_identity_gives_the_items_it_begins_with(run: Run) -> None:
    texts = {
        (language, *view.values()): [item.inputs for item in records(run, language, **view).values()]
        for language, view in (
            ("en", {}),
            ("sw", {}),
            *(("sw", {"variant": name, "translator": "i"}) for name in ("tt", "te", "bt")),
        )
    }
    assert texts[("sw", "tt", "i")] == texts[("sw",)]
    assert texts[("sw", "te", "i")] == texts[("sw", "bt", "i")] == texts[("en",)]
    assert texts[("sw",)] != texts[("en",)]


def test_a_round_trip_of_reversed_words_is_the_text(run: Run) -> None:
    back = records(run, "sw", variant="bt", translator="r")
    there = records(run, "sw", variant="te", translator="r")
    for key, item in records(run, "en").items():
        assert back[key].fields == item.fields
        words = item.fields["inputs"]["premise"].split()
        assert there[key].fields["inputs"]["premise"].split() == words[::-1]


def test_the_source_language_has_no_variants(run: Run) -> None:
    skipped = [cell for cell in run.cells if cell.status == "skipped"]
    assert {(cell.language, cell.view["variant"]) for cell in skipped} == {
        ("en", name) for name in ("tt", "te", "bt")
    }


def test_the_chain_is_recorded(run: Run) -> None:
    [cell] = [
        cell
        for cell in run.cells
        if (cell.language, cell.view) == ("sw", {"variant": "bt", "translator": "r"})
    ]
    assert cell.data["translated"] == {
        "translator": "r",
        "reference": "reverse",
        "steps": ["en->sw", "sw->en"],
        "fields": ["premise", "hypothesis"],
    }


def config(tmp_path: Path, **settings: Any) -> RunConfig:
    return RunConfig(
        tasks=("xnli:sw",),
        model="baseline:char-ngram",
        data=DataOptions(mode="sample"),
        **settings,
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"variants": ("tt",)}, "The variant 'tt' needs a translator"),
        ({"train_variant": "b-train"}, "--train-variant b-train needs a translator"),
        ({"train_variant": "btrain"}, "Did you mean 'b-train'"),
        ({"train_variant": "mt-en", "translators": ("reverse",)}, "'mnli' is in 'en' already"),
        (
            {"train_variant": "b-train", "train_pivot": "en", "translators": ("reverse",)},
            "is in 'en' already",
        ),
        ({"train_variant": "mt-xx", "translators": ("reverse",)}, "No language named 'xx'"),
        ({"variants": ("tt",), "translators": ("reverse", "reverse")}, "given twice"),
        ({"protocols": ("translate_train",)}, "'translate_train' needs a translator"),
    ],
)
def test_what_cannot_be_planned(tmp_path: Path, settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        prepare(config(tmp_path, **settings))


def test_an_unknown_translator_is_an_error_before_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'revers'.*'reverse'"):
        evaluate(
            "xnli:sw",
            "baseline:char-ngram",
            data="sample",
            variants=("tt",),
            translators=("revers",),
            output=tmp_path / "run",
        )


@pytest.mark.parametrize(
    ("variant", "parts"),
    [
        ("t-train", [("es", ["en->es"], 1.0)]),
        ("b-train", [("en", ["en->es", "es->en"], 1.0)]),
        ("bt-orig", [("en", ["en->es", "es->en"], 1.0), ("en", None, 1.0)]),
        ("mt-hi", [("hi", ["en->hi"], 1 / 3)]),
    ],
)
def test_training_sets_are_made_of_the_source_set(
    tmp_path: Path, variant: str, parts: list[tuple[str, list[str] | None, float]]
) -> None:
    plan = prepare(config(tmp_path, train_variant=variant, translators=("reverse",))).plan
    [fit] = plan.fits
    train = [
        (code, None if found.change is None else found.change.to_json()["steps"], found.share)
        for code, found in fit.stages[0].train
    ]
    assert train == parts
    assert {cell.view["train_variant"] for cell in plan.cells} == {variant}


def test_translate_train_all_has_english_and_every_language(tmp_path: Path) -> None:
    plan = prepare(config(tmp_path, protocols=("translate_train_all",), translators=("reverse",))).plan
    codes = [code for code, _ in plan.fits[0].stages[0].train]
    assert codes[0] == "en"
    assert len(codes) == len(set(codes)) == 15
    one = prepare(config(tmp_path, protocols=("translate_train",), translators=("reverse",))).plan
    assert [code for code, _ in one.fits[0].stages[0].train] == ["sw"]
    assert one.fits[0].key != plan.fits[0].key


def test_every_stage_of_a_fit_is_translated(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": "baseline:random", "data": DataOptions(mode="sample")}
    plan = prepare(
        RunConfig(tasks=("xcopa:it",), protocols=("translate_train",), translators=("r=reverse",), **settings)
    ).plan
    [fit] = plan.fits
    assert fit.title == "siqa (it) then copa (it), translated by r, seed 42"
    fields = [found.change.fields for stage in fit.stages for _, found in stage.train if found.change]
    assert fields == [
        ("context", "question", "answerA", "answerB", "answerC"),
        ("premise", "choice1", "choice2"),
    ]
