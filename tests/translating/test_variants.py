"""Tasks in translation: variants, training sets, added languages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.data.records import Row
from harness.data.resolve import DataOptions
from harness.data.translation.variants import LostAnswers, TextChange, Translations
from harness.errors import UsageError
from harness.languages.table import known_languages
from harness.planning.run_config import RunConfig
from harness.running.session import open_session, prepare
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]


def row(number: int, context: str, *answers: str) -> Row:
    spans = [{"text": text, "start": context.index(text)} for text in answers]
    fields = {"id": str(number), "context": context, "question": "who ?", "answers": spans}
    return Row(fields=fields, path="squad.json", line=number)


def test_answers_are_found_again_or_lost(tmp_path: Path) -> None:
    change = TextChange(
        translator="r",
        reference="reverse",
        steps=(("en", "es"),),
        fields=("context", "question"),
        answers="answers",
    )
    rows = [
        row(1, "Anna met Otto", "Otto"),
        row(2, "Anna met Otto", "Anna", "met Otto"),
        row(3, "in New York, they met", "New York"),
        row(4, "Otto met Otto", "Otto"),
    ]
    translations = Translations(open_session().registry, tmp_path)
    found = {item.fields["id"]: item.fields for item in translations.rows(change, rows, "squad")}
    # "York, New" is no place of "York New".
    assert list(found) == ["1", "2", "4"]
    assert [answer["start"] for answer in found["4"]["answers"]] == [0], "the first of two places"
    assert (found["1"]["context"], found["1"]["question"]) == ("Otto met Anna", "? who")
    for fields in found.values():
        for answer in fields["answers"]:
            start, text = answer["start"], answer["text"]
            assert fields["context"][start : start + len(text)] == text
    assert [answer["text"] for answer in found["2"]["answers"]] == ["Anna", "Otto met"]
    assert translations.lost == {("squad", change): LostAnswers(lost=1, of=4)}


def test_a_step_whose_texts_are_not_there_yet_is_estimated(tmp_path: Path) -> None:
    steps = (("en", "es"), ("es", "en"))
    change = TextChange(translator="r", reference="reverse", steps=steps, fields=("question",))
    rows = [row(1, "x", "x"), row(2, "y", "y")]
    translations = Translations(open_session().registry, tmp_path)

    def estimated() -> list[tuple[str, int, bool]]:
        load = translations.workload([(change, rows)])
        return [(part["pair"], part["calls"], part["estimated"]) for part in load]

    assert estimated() == [("en->es", 1, False), ("es->en", 1, True)]
    translations.prepare([(change, rows)])
    assert estimated() == [("en->es", 0, False), ("es->en", 0, False)]


@pytest.mark.parametrize("given", [("--protocol", "translate_train"), ("--train-variant", "t-train")])
def test_the_fit_says_what_was_lost(cli: Cli, tmp_path: Path, given: tuple[str, ...]) -> None:
    run = "eval --tasks xquad:es --data sample --model baseline:random --recipe quick --translator reverse"
    limits = "--train-limit 20 --limit 2 --output"
    status, _, err = cli(*run.split(), *given, *limits.split(), tmp_path / "run")
    assert status == 0, err
    [fit] = Run(tmp_path / "run").results.fits.values()
    [stage] = fit.stages
    [lost] = stage["train"]["lost"]
    assert (lost["language"], lost["of"]) == ("es", 20)
    assert stage["train"]["examples"] == 20 - lost["lost"]
    assert 0 < lost["lost"] < 20
    assert f"In es, {lost['lost']} of 20 questions " in stage["note"]
    out = cli("report", tmp_path / "run", "--notes")[1]
    assert f"({lost['lost']} of 20 lost their answer in translation)" in " ".join(out.split())


def test_languages_without_a_translation_have_no_score(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"source": "en", "target": "sw", "text": "a", "translation": "b"}\n', encoding="utf-8")
    plan = prepare(config("xnli:sw+hi", protocols=("translate_train",), translators=(f"g=file:{path}",))).plan
    assert [cell.language.code for cell in plan.cells] == ["sw"]
    [skip] = plan.skipped
    assert (skip.language, skip.protocol) == ("hi", "translate_train")
    assert "does not translate 'en' into 'hi'" in skip.reason


def _rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.relative_to(folder).parts[0]: [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]
        for path in folder.glob("*/*/*.jsonl")
    }


@pytest.mark.parametrize("variant", ["t-train", "b-train", "mt-hi"])
def test_training_sets_are_translated_by_themselves(cli: Cli, tmp_path: Path, variant: str) -> None:
    """All stages of all tasks, counted first; the folder makes the same sets without the translator."""
    selection = "translate --tasks xnli,xquad,xcopa,tydiqa --data sample --train-limit 30".split()
    limited = (*selection, "--train-variant", variant)
    out = cli(*limited, "--translator", "r=reverse", "--dry-run", "--price", "20")[1]
    assert "cost" in out and "segments" in out
    first, second = tmp_path / "first", tmp_path / "second"
    status, out, err = cli(*limited, "--translator", "r=reverse", "--output", first)
    assert status == 0, err
    assert out.index("characters") < out.index("mnli")
    made = _rows(first)
    assert set(made) == {"mnli", "squad", "siqa", "copa", "tydiqa"}
    for row in (*made["squad"], *made["tydiqa"]):
        for answer in row["answers"]:
            assert row["context"][answer["start"] :].startswith(answer["text"])
    [table] = json.loads((first / "card.json").read_text(encoding="utf-8"))["translator"]
    name, reference = table.split("=file:")
    assert cli(*limited, "--translator", f"{name}=file:{first / reference}", "--output", second)[0] == 0
    assert _rows(second) == made


def test_dev_sets_are_translated_too(cli: Cli, tmp_path: Path) -> None:
    for name, text in (("dev-sw", "paka"), ("test-sw", "mbwa")):
        path = tmp_path / "data" / "xnli" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\t{text}\tneutral\n", encoding="utf-8")
    common = ("translate", "--tasks", "xnli:sw", "--variants", "tt", "--translator", "i=identity")
    for split, text in (("validation", "paka"), ("test", "mbwa")):
        output = tmp_path / split
        status, _, err = cli(*common, "--data", tmp_path / "data", "--split", split, "--output", output)
        assert status == 0, err
        assert _rows(output)["xnli"][0]["premise"] == text


@pytest.mark.parametrize(
    "options", ["--train-pivot hi", "--train-limit 3", "--train-variant t-train --limit 3"]
)
def test_options_of_training_sets_need_a_variant(cli: Cli, options: str) -> None:
    common = "translate --tasks xnli --data sample --translator reverse"
    assert cli(*common.split(), *options.split())[0] == 2


def _squad(*questions: tuple[str, str, str, int]) -> str:
    """Return a SQuAD file of (id, context, answer, offset), each in a paragraph of its own."""
    paragraphs = [
        {
            "context": context,
            "qas": [{"id": name, "question": "q", "answers": [{"text": text, "answer_start": start}]}],
        }
        for name, context, text, start in questions
    ]
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


RELEASED = {
    "xquad": ("squad/train-v1.1.json", "SQuAD/translate-train/squad.translate.train.en-{}.json"),
    "tydiqa": (
        "tydiqa-goldp/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json",
        "xtreme_translations/TyDiQA-GoldP/translate-train/tydiqa.translate.train.en-{}.json",
    ),
}


@pytest.mark.parametrize(("task", "code"), [("xquad", "de"), ("tydiqa", "fi"), ("xquad", "zh")])
def test_released_translations_keep_their_own_answer_spans(tmp_path: Path, task: str, code: str) -> None:
    train, released = RELEASED[task]
    test = {
        "xquad": f"xquad/xquad.{code}.json",
        "tydiqa": f"tydiqa-goldp/tydiqa-goldp-v1.1-dev/tydiqa.goldp.{code}.dev.json",
    }[task]
    translated = _squad(
        ("own", "rot und rot", "rot", 8),
        ("moved", " blau", "blau", 0),
        ("absent", "grün", "gelb", -1),
        ("last", "gelb", "gelb", 0),
    )
    english = _squad(("own", "red and red", "red", 0))
    for name, text in ((train, english), (released.format(code), translated), (test, english)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    data = DataOptions(mode="local", folders=(tmp_path,))

    def prepared(**settings: Any) -> Any:
        return prepare(config(f"{task}:{code}", data=data, translators=("released",), **settings))

    run = prepared(protocols=("translate_train",))
    [fit] = run.plan.fits
    [(language, found)] = fit.stages[0].train
    rows = [row.fields for row in run.finder.rows(found)]
    assert language == code
    assert {row["id"]: row["answers"][0]["start"] for row in rows} == {"own": 8, "moved": 1, "last": 0}
    third = prepared(train_variant=f"mt-{code}").plan.fits[0].stages[0].train[0][1]
    assert len(list(run.finder.rows(third))) == 1 and third.digest() != found.digest()
    [skip] = prepared(train_variant="b-train", train_pivot=code).plan.skipped
    assert "no released translation" in skip.reason


def test_tydiqa_translates_its_training_set_and_no_test_items() -> None:
    plan = prepare(config("tydiqa:fi", translators=("reverse",), variants=("tt", "te", "bt"))).plan
    assert not plan.cells and all("only its training set" in skip.reason for skip in plan.skipped)
    every = config("tydiqa:fi+ru", translators=("reverse",), protocols=("translate_train_all",))
    [fit] = prepare(every).plan.fits
    languages = [language for language, _ in fit.stages[0].train]
    assert languages[0] == "en" and {"fi", "ru", "te"} <= set(languages)


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


def test_ids_and_labels_are_those_of_the_source_items(run: Run) -> None:
    own = {key: item.reference for key, item in records(run, "en").items()}
    for variant in ("tt", "te", "bt"):
        for name in ("i", "r"):
            made = records(run, "sw", variant=variant, translator=name)
            assert {key: item.reference for key, item in made.items()} == own
    skipped = [(cell.language, cell.view["variant"]) for cell in run.cells if cell.status == "skipped"]
    assert {*skipped} == {("en", name) for name in ("tt", "te", "bt")}
    view = {"variant": "bt", "translator": "r"}
    [cell] = [cell for cell in run.cells if (cell.language, cell.view) == ("sw", view)]
    assert cell.data["translated"] == {
        "translator": "r",
        "reference": "reverse",
        "steps": ["en->sw", "sw->en"],
        "fields": ["premise", "hypothesis"],
    }


def test_the_identity_and_a_round_trip_of_reversed_words_are_the_text(run: Run) -> None:
    def texts(language: str, **view: str) -> list[Any]:
        return [item.inputs for item in records(run, language, **view).values()]

    english = texts("en")
    assert texts("sw", variant="tt", translator="i") == texts("sw") != english
    assert texts("sw", variant="te", translator="i") == texts("sw", variant="bt", translator="i") == english
    back = records(run, "sw", variant="bt", translator="r")
    there = records(run, "sw", variant="te", translator="r")
    for key, item in records(run, "en").items():
        assert back[key].fields == item.fields
        words = item.fields["inputs"]["premise"].split()
        assert there[key].fields["inputs"]["premise"].split() == words[::-1]


def config(task: str = "xnli:sw", **settings: Any) -> RunConfig:
    return RunConfig(
        tasks=(task,), **{"model": "baseline:random", "data": DataOptions(mode="sample"), **settings}
    )


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"variants": ("tt",)}, "'tt'"),
        ({"train_variant": "b-train"}, "b-train"),
        ({"train_variant": "btrain"}, "'b-train'"),
        ({"train_variant": "mt-en", "translators": ("reverse",)}, "'mnli'.*'en'"),
        ({"train_variant": "b-train", "train_pivot": "en", "translators": ("reverse",)}, "'en'"),
        ({"train_variant": "mt-xx", "translators": ("reverse",)}, "'xx'"),
        ({"variants": ("tt",), "translators": ("reverse", "reverse")}, "twice"),
        ({"variants": ("tt",), "translators": ("revers",)}, "'revers'.*'reverse'"),
        ({"protocols": ("translate_train",)}, "'translate_train'"),
    ],
)
def test_what_cannot_be_planned(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        prepare(config(**settings))


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
    variant: str, parts: list[tuple[str, list[str] | None, float]]
) -> None:
    plan = prepare(config(train_variant=variant, translators=("reverse",))).plan
    [fit] = plan.fits
    train = [
        (code, None if found.change is None else found.change.to_json()["steps"], found.share)
        for code, found in fit.stages[0].train
    ]
    assert train == parts
    assert {cell.view["train_variant"] for cell in plan.cells} == {variant}


def test_translate_train_all_has_english_and_every_language() -> None:
    every, single = (
        prepare(config(protocols=(protocol,), translators=("reverse",))).plan
        for protocol in ("translate_train_all", "translate_train")
    )
    codes = [code for code, _ in every.fits[0].stages[0].train]
    assert codes[0] == "en"
    assert len(codes) == len(set(codes)) == 15
    assert [code for code, _ in single.fits[0].stages[0].train] == ["sw"]
    assert single.fits[0].key != every.fits[0].key


def test_every_stage_of_a_fit_is_translated() -> None:
    settings = config("xcopa:it", protocols=("translate_train",), translators=("r=reverse",))
    [fit] = prepare(settings).plan.fits
    assert fit.title == "siqa (it) then copa (it), translated by r, seed 42"
    fields = [found.change.fields for stage in fit.stages for _, found in stage.train if found.change]
    assert fields == [
        ("context", "question", "answerA", "answerB", "answerC"),
        ("premise", "choice1", "choice2"),
    ]


FRAGMENT = """\
extends: xnli
languages:
  qpf:
    name: Palatine German
    script: Latn
    family: Indo-European
    flores: pfl_Latn
    provenance: post-edited
    test: {sample: "xnli/{language}.jsonl"}
"""


@pytest.fixture(scope="module")
def added_language_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fragment, with the Swahili sample in place of Palatine German, and translations of it."""
    sample = open_session().catalog.entry("task", "xnli").folder.joinpath("sample/xnli/sw.jsonl")
    swahili = sample.read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("qpf")
    (folder / "sample/xnli").mkdir(parents=True)
    (folder / "sample/xnli/qpf.jsonl").write_text(swahili, encoding="utf-8")
    (folder / "qpf.yaml").write_text(FRAGMENT, encoding="utf-8")
    rows = [json.loads(line) for line in swahili.splitlines()]
    texts = dict.fromkeys(row[name] for row in rows for name in ("premise", "hypothesis"))
    known = [
        {"source": "qpf", "target": "en", "text": text, "translation": f"English {number}"}
        for number, text in enumerate(texts)
    ]
    (folder / "known.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def added_language_run(added_language_folder: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(added_language_folder / "cache"))
        return evaluate(
            "xnli:en+qpf",
            "baseline:majority",
            data="sample",
            variants=("zs", "tt", "te", "bt"),
            translators=("i=identity", f"f=file:{added_language_folder / 'known.jsonl'}"),
            tasks_from=(added_language_folder / "qpf.yaml",),
            limit=5,
            output=added_language_folder / "added_language_run",
        )


def test_all_variants_of_an_unknown_code_are_made(added_language_run: Run) -> None:
    own = [cell for cell in added_language_run.cells if cell.language == "qpf"]
    cells = {tuple(cell.view.values()): cell for cell in own if cell.status == "ok"}
    assert sorted(cells) == [(), ("f", "tt"), ("i", "bt"), ("i", "te"), ("i", "tt")]
    ids = {view: [record.id for record in added_language_run.records(cell)] for view, cell in cells.items()}
    assert len(set(map(tuple, ids.values()))) == 1
    assert len(ids[()]) == 5
    made = {view: cell.provenance for view, cell in cells.items()}
    assert made.pop(()) == "post-edited"
    assert set(made.values()) == {"machine-translated"}
    texts = [record.fields["inputs"]["premise"] for record in added_language_run.records(cells["f", "tt"])]
    assert all(text.startswith("English ") for text in texts)
    skipped = {cell.view["variant"]: cell.reason for cell in own if cell.status == "skipped"}
    assert {*skipped} == {"te", "bt"}
    assert all("does not translate 'en' into 'qpf'" in reason for reason in skipped.values())


def test_translators_know_the_codes_that_a_fragment_gives(added_language_folder: Path) -> None:
    languages = open_session([added_language_folder / "qpf.yaml"]).registry.languages
    language = languages.get("qpf")
    assert (language.flores, language.name, language.segmentation) == ("pfl_Latn", "Palatine German", "space")
    assert "qpf" not in known_languages()
    assert "qpf" not in open_session().registry.languages
    assert languages.get("sw") is known_languages().get("sw"), "a fragment does not change the table's codes"


def test_a_second_description_does_not_replace_the_first(added_language_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        FRAGMENT.replace("xnli\n", "pawsx\n").replace("Palatine German", "Palatinate"), encoding="utf-8"
    )
    session = open_session([added_language_folder / "qpf.yaml", other])
    assert session.registry.languages.get("qpf").name == "Palatine German"
    assert session.catalog.task("pawsx").languages.get("qpf").name == "Palatinate"
