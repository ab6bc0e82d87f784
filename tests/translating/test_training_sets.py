"""Translated training sets of questions: spans are looked for again, and what is lost is counted and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.data.records import Row
from harness.data.resolve import DataOptions
from harness.data.translation.variants import LostAnswers, TextChange, Translations
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
    run = (
        "eval",
        "--tasks",
        "xquad:es",
        "--data",
        "sample",
        "--model",
        "baseline:random",
        "--recipe",
        "quick",
    )
    status, _, err = cli(
        *run,
        *given,
        "--translator",
        "reverse",
        "--train-limit",
        "20",
        "--limit",
        "2",
        "--output",
        tmp_path / "run",
    )
    assert status == 0, err
    [fit] = Run(tmp_path / "run").results.fits.values()
    [stage] = fit.stages
    [lost] = stage["train"]["lost"]
    assert (lost["language"], lost["of"]) == ("es", 20)
    assert stage["train"]["examples"] == 20 - lost["lost"]
    assert 0 < lost["lost"] < 20
    sentence = f"In es, {lost['lost']} of 20 questions "
    assert sentence in stage["note"]
    out = cli("report", tmp_path / "run", "--notes")[1]
    assert f"({lost['lost']} of 20 lost their answer in translation)" in " ".join(out.split())


def test_languages_without_a_translation_have_no_score(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"source": "en", "target": "sw", "text": "a", "translation": "b"}\n', encoding="utf-8")
    config: dict[str, Any] = {"translators": (f"g=file:{path}",), "data": DataOptions(mode="sample")}
    plan = prepare(
        RunConfig(tasks=("xnli:sw+hi",), model="baseline:random", protocols=("translate_train",), **config)
    ).plan
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
    asked = (
        "translate",
        "--tasks",
        "xnli,xquad,xcopa,tydiqa",
        "--data",
        "sample",
        "--train-variant",
        variant,
    )
    limited = (*asked, "--train-limit", "30")
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


def test_options_of_training_sets_need_a_variant(cli: Cli) -> None:
    common = ("translate", "--tasks", "xnli", "--data", "sample", "--translator", "reverse")
    for given in (
        ("--train-pivot", "hi"),
        ("--train-limit", "3"),
        ("--train-variant", "t-train", "--limit", "3"),
    ):
        assert cli(*common, *given)[0] == 2


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
    given: dict[str, Any] = {
        "model": "baseline:random",
        "translators": ("released",),
        "data": DataOptions(mode="local", folders=(tmp_path,)),
    }

    def prepared(**settings: Any) -> Any:
        return prepare(RunConfig(tasks=(f"{task}:{code}",), **given, **settings))

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
    given: dict[str, Any] = {"model": "baseline:random", "data": DataOptions(mode="sample")}
    asked = RunConfig(tasks=("tydiqa:fi",), translators=("reverse",), variants=("tt", "te", "bt"), **given)
    plan = prepare(asked).plan
    assert not plan.cells and all("only its training set" in skip.reason for skip in plan.skipped)
    asked = RunConfig(
        tasks=("tydiqa:fi+ru",), translators=("reverse",), protocols=("translate_train_all",), **given
    )
    [fit] = prepare(asked).plan.fits
    languages = [language for language, _ in fit.stages[0].train]
    assert languages[0] == "en" and {"fi", "ru", "te"} <= set(languages)
