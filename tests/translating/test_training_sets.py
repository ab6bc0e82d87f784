"""Translated training sets of questions: spans are looked for again, and what is lost is counted and shown."""

from __future__ import annotations

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
