"""Which prompt, words and shots a cell gets, and why a cell has no prompt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError, CapabilityError, UnknownNameError, UsageError
from harness.models.adapters import AdapterEntry
from harness.planning.plan import Cell, Plan, require_cells

from .conftest import DataFolder, MakePlan

pytestmark = pytest.mark.usefixtures("calls")


def _only(plan: Plan) -> Cell:
    assert plan.skipped == ()
    [cell] = plan.cells
    return cell


def _reasons(plan: Plan) -> set[str]:
    return {skip.reason for skip in plan.skipped}


@pytest.mark.parametrize(
    ("task", "ref", "settings", "expected"),
    [
        ("xnli", "both", {}, ("rank", "xnli/default")),
        ("xnli", "ranks", {}, ("rank", "xnli/default")),
        ("xnli", "writes", {}, ("generate", "xnli/letters")),
        ("xnli", "both", {"prompt": ("letters",)}, ("rank", "xnli/letters")),
        ("xnli", "both", {"prompt": ("letters",), "method": "generate"}, ("generate", "xnli/letters")),
        # A conversation is continued, and nothing in it can be ranked.
        ("xnli", "both", {"chat": True}, ("generate", "xnli/letters")),
        # A text that breaks off is for models that continue it; a conversation is asked with a request.
        ("ntrex_mt", "both", {}, ("generate", "translation/default")),
        ("ntrex_mt", "both", {"chat": True}, ("generate", "translation/instruct")),
        ("ntrex_mt", "both", {"chat": True, "prompt": ("default",)}, ("generate", "translation/default")),
        ("mgsm", "both", {"chat": True}, ("generate", "mgsm/default")),
        # mT5's format has no choices to rank, so a model that does both writes.
        ("xnli", "both", {"prompt": ("mt5",)}, ("generate", "xnli/mt5")),
        ("xquad", "both", {}, ("generate", "qa/default")),
        ("udpos", "writes", {"prompt": ("mega",)}, ("generate", "udpos/mega")),
        ("wikiann_raw", "writes", {}, ("generate", "wikiann_raw/default")),
    ],
)
def test_a_model_that_is_asked_gets_a_method_and_its_prompt(
    make_plan: MakePlan, task: str, ref: str, settings: dict[str, Any], expected: tuple[str, str]
) -> None:
    cell = _only(make_plan(f"{task}:de", model=f"asks:{ref}", **settings))
    assert cell.prompt is not None
    assert (cell.pairing.protocol, cell.fit) == ("prompted", None)
    assert (cell.pairing.method.name, cell.prompt.spec.prompt) == expected


@pytest.mark.parametrize(
    ("task", "ref", "settings", "reason"),
    [
        ("udpos_raw", "both", {}, "No prompt of 'udpos_raw' named 'default'."),
        ("udpos_raw", "both", {"prompt": ("mega",)}, "No prompt of 'udpos_raw' named 'mega'."),
        ("xnli", "ranks", {"prompt": ("mt5",)}, "'prompted' needs Generates; asks:ranks offers"),
        ("xnli", "ranks", {"chat": True}, "'prompted' needs Generates; asks:ranks offers"),
        ("xquad", "ranks", {}, "needs Generates; asks:ranks offers"),
        ("udpos", "both", {"method": "rank"}, "the method 'rank' does not serve the protocol 'prompted'"),
        ("xcopa", "embeds", {"protocols": ("prompted",)}, "needs Generates or ScoresContinuations"),
    ],
)
def test_what_cannot_be_asked_is_skipped_with_a_reason(
    make_plan: MakePlan, task: str, ref: str, settings: dict[str, Any], reason: str
) -> None:
    code = "sw" if task == "xcopa" else "de"
    settings = {"protocols": ("prompted",), **settings}
    plan = make_plan(f"{task}:{code}", model=f"asks:{ref}", **settings)
    assert plan.cells == ()
    [found] = _reasons(plan)
    assert reason in found
    with pytest.raises(CapabilityError, match="Nothing is left to run"):
        require_cells(plan)


def test_an_encoder_is_trained_whatever_prompt_is_named(make_plan: MakePlan) -> None:
    cell = _only(make_plan("xnli:de", prompt=("letters",), shots=2, recipe="quick"))
    assert (cell.prompt, cell.pairing.method.name, dict(cell.view)) == (None, "head", {})


@pytest.mark.parametrize(
    ("settings", "view"),
    [
        ({}, {}),
        ({"prompt": ("default",)}, {}),
        ({"prompt": ("letters",)}, {"prompt": "letters"}),
        ({"shots": 2}, {"shots": "2"}),
        ({"shots": 2, "shots_from": "validation"}, {"shots": "2", "shots_from": "validation"}),
        ({"shots_language": "target"}, {}),
        ({"instruction_language": "en"}, {"instruction": "en"}),
        ({"chat": True, "constrained": True}, {"chat": "yes", "constrained": "yes", "prompt": "letters"}),
        ({"literals": "fail"}, {}),
    ],
)
def test_what_is_unusual_of_a_prompt_is_in_the_view(
    make_plan: MakePlan, settings: dict[str, Any], view: dict[str, str]
) -> None:
    assert dict(_only(make_plan("xnli:sw", model="asks:both", **settings)).view) == view


def test_other_prompts_are_other_cells(make_plan: MakePlan) -> None:
    given: list[dict[str, Any]] = [
        {},
        {"prompt": ("letters",)},
        {"shots": 1},
        {"shots": 2},
        {"shots": 2, "shots_from": "validation"},
        {"instruction_language": "en"},
        {"chat": True, "method": "generate"},
        {"constrained": True},
        {"literals": "fail"},
    ]
    cells = [_only(make_plan("xnli:sw", model="asks:both", **settings)) for settings in given]
    digests = [cell.digest for cell in cells]
    assert len(set(digests)) == len(given)
    assert len({cell.prompt.digest for cell in cells if cell.prompt is not None}) == len(given)
    assert _only(make_plan("xnli:sw", model="asks:both")).digest == digests[0]


def _shots_from(plan: Plan) -> tuple[str, str, str, list[str]]:
    prompt = _only(plan).prompt
    assert prompt is not None
    assert prompt.pool is not None
    pool = prompt.pool
    return pool.owner, pool.language, pool.split, [path.name for path in pool.found.files.paths]


@pytest.mark.parametrize(
    ("task", "settings", "expected"),
    [
        ("xnli:sw", {}, ("mnli", "en", "train", ["en.train.jsonl"])),
        ("xnli:sw", {"shots_from": "validation"}, ("xnli", "en", "validation", ["en.validation.jsonl"])),
        ("udpos:de", {}, ("udpos", "en", "train", ["en.train.jsonl"])),
        ("xcopa:sw", {}, ("copa", "en", "train", ["en.train.jsonl"])),
        ("xquad:de", {}, ("squad", "en", "train", ["en.train.jsonl"])),
    ],
)
def test_shots_are_the_training_data_in_the_source_language(
    make_plan: MakePlan, task: str, settings: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    assert _shots_from(make_plan(task, model="asks:both", shots=2, **settings)) == expected


TRAIN = "The\tDET\n\nA\tDET\n"


def test_shots_in_the_language_of_the_items(make_plan: MakePlan, data_folder: DataFolder) -> None:
    folder = data_folder(
        {"udpos/train-de.tsv": TRAIN, "udpos/test-de.tsv": TRAIN, "udpos/test-hi.tsv": TRAIN}
    )
    plan = make_plan("udpos:de+hi", model="asks:both", data=folder, shots=1, shots_language="target")
    [cell] = plan.cells
    assert cell.prompt is not None
    assert cell.prompt.pool is not None
    assert (cell.language.code, cell.prompt.pool.language) == ("de", "de")
    assert dict(cell.view) == {"shots": "1", "shots_language": "target"}
    [skip] = plan.skipped
    assert skip.language == "hi"
    assert skip.reason.startswith("No train data in 'hi' were found for the shots of 'udpos'")
    assert "Try --shots-from validation" in skip.reason


def test_a_dev_file_used_as_the_test_file_gives_no_shots(
    make_plan: MakePlan, data_folder: DataFolder
) -> None:
    folder = data_folder({"udpos-xtreme/dev-de.tsv": TRAIN, "udpos-xtreme/dev-en.tsv": TRAIN})
    asked = {"model": "asks:both", "data": folder, "shots": 1, "shots_from": "validation"}
    plan = make_plan("udpos:de", shots_language="target", **asked)
    assert plan.cells == ()
    [reason] = _reasons(plan)
    assert "apart from what is tested" in reason
    assert "Try --shots-from train" in reason
    # The English file holds other sentences.
    assert _shots_from(make_plan("udpos:de", **asked))[3] == ["dev-en.tsv"]


def test_the_dev_set_of_a_parallel_task_gives_no_shots_where_one_language_is_tested_on_it(
    make_plan: MakePlan, data_folder: DataFolder, tmp_path: Path
) -> None:
    rows = "".join(json.dumps({"id": n, "text": f"t{n}", "label": "a"}) + "\n" for n in range(3))
    folder = data_folder({"dev-en.jsonl": rows, "dev-de.jsonl": rows, "test-fr.jsonl": rows})
    (tmp_path / "mine.yaml").write_text(
        "task: mine\nkind: sequence_classification\nversion: 1\ndescription: d\ncitation: c\nlicense: l\n"
        "inputs: [text]\nlabels: [a, b]\nmetrics: [accuracy]\nparallel: true\n"
        "transfer: {source: en, stages: [mine]}\n"
        "splits:\n  validation: {local: 'dev-{language}.jsonl', reader: jsonl}\n"
        "  test: {local: ['test-{language}.jsonl', {path: 'dev-{language}.jsonl', split: validation}], reader: jsonl}\n"
        "languages: {en: {}, de: {}, fr: {}}\n",
        encoding="utf-8",
    )
    (tmp_path / "prompt.yaml").write_text(
        "prompt: mine/default\ntasks: [mine]\nkind: sequence_classification\nformulation: cloze\ndescription: d\n"
        "source: s\nitem: '{text}'\nchoice: ' {label}'\n"
        "literals: {mul: {provenance: native, words: {label.a: x, label.b: y}}}\n",
        encoding="utf-8",
    )
    files = (tmp_path / "mine.yaml", tmp_path / "prompt.yaml")
    asked = {"model": "asks:both", "shots": 1, "shots_from": "validation"}
    plan = make_plan("mine:de+fr", data=folder, tasks_from=files, **asked)
    assert [cell.language.code for cell in plan.cells] == ["fr"]
    assert [skip.language for skip in plan.skipped] == ["de"]


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"shots": -1}, "--shots"),
        ({"shots_from": "test"}, "--shots-from"),
        ({"shots_language": "de"}, "--shots-language"),
        ({"literals": "german"}, "--literals"),
    ],
)
def test_wrong_settings_are_reported(make_plan: MakePlan, settings: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_plan("xnli:de", model="asks:both", **settings)
    assert caught.value.message.startswith(f"{option} ")


def test_the_words_are_those_of_the_item_unless_the_user_says_otherwise(make_plan: MakePlan) -> None:
    def words(**settings: Any) -> str:
        prompt = _only(make_plan("xnli:sw", model="asks:both", **settings)).prompt
        assert prompt is not None
        return str(prompt.to_json(prompt.compiled(prompt.instruction))["words"])

    assert (words(), words(instruction_language="de")) == ("sw", "de")
    assert words(instruction_language="yo") == "en"
    with pytest.raises(UnknownNameError, match="'xx'"):
        words(instruction_language="xx")


def test_more_shots_than_there_are_items_are_in_the_plan(make_plan: MakePlan) -> None:
    plan = make_plan("xnli:de+en", model="asks:both", shots=100_000)
    assert plan.cells == ()
    assert len({skip.language for skip in plan.skipped}) == 2
    [reason] = _reasons(plan)
    assert "--shots 100000" in reason
    with pytest.raises(CapabilityError) as caught:
        require_cells(make_plan("xnli", model="asks:both", shots=100_000))
    assert "--shots" in str(caught.value).partition("(2)")[0]  # before languages without data
    assert str(caught.value).count("--shots 100000.") == 1


@pytest.mark.parametrize(
    ("task", "keeps", "settings", "runs"),
    [
        ("xnli", None, {}, True),  # only an attempt shows it
        ("xnli", {"choices"}, {}, True),
        ("xnli", {"json_schema"}, {}, False),
        ("xcopa", {"json_schema"}, {}, False),
        ("udpos", {"choices"}, {}, False),
        ("udpos", {"regex"}, {}, True),
        ("wikiann", {"json_schema"}, {"prompt": ("default",)}, True),  # entities have no form to keep to
        ("mgsm", set(), {}, True),
        ("xnli", {"json_schema"}, {"constrained": False}, True),
    ],
)
def test_a_constraint_that_the_model_cannot_keep_is_in_the_plan(
    make_plan: MakePlan,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    keeps: set[str] | None,
    settings: dict[str, Any],
    runs: bool,
) -> None:
    describe = AdapterEntry.describe_model
    allowed: Any = None if keeps is None else frozenset(keeps)
    monkeypatch.setattr(
        AdapterEntry,
        "describe_model",
        lambda entry, ref, options: replace(describe(entry, ref, options), constraints=allowed),
    )
    language = "tr" if task == "xcopa" else "de"
    plan = make_plan(
        f"{task}:{language}", model="asks:writes", **{"chat": True, "constrained": True, **settings}
    )
    assert bool(plan.cells) == runs
    assert all("--constrained" in reason for reason in _reasons(plan))


def test_a_model_that_cannot_be_opened_is_in_the_plan(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = AdapterEntry.describe_model
    monkeypatch.setattr(
        AdapterEntry,
        "describe_model",
        lambda entry, ref, options: replace(describe(entry, ref, options), fault="no tokenizer"),
    )
    with pytest.raises(AdapterError, match="no tokenizer"):
        make_plan("xnli:de", model="asks:both")
