"""Numeric answers, translations and summaries: how their rows, prompts and answers are read."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness.data.records import Row
from harness.errors import DataError
from harness.kinds.kind import ReadContext
from harness.kinds.methods import MethodContext
from harness.kinds.questions import _read_number as read_number
from harness.kinds.source_text import METHODS, _read as read_text
from harness.models.requests import Generated
from harness.prompts.preset import compile_prompt
from harness.prompts.prompter import Prompter
from harness.running.session import Session, open_session
from harness.specs.schema import TaskSpec


@cache
def session() -> Session:
    return open_session()


def spec_of(task: str) -> TaskSpec:
    return session().catalog.task(task).spec


def example(task: str, language: str, split: str = "test", **fields: Any) -> Any:
    spec = spec_of(task)
    context = ReadContext.of(spec, task, language, split, {})
    return session().registry.kinds.get(spec.kind).example(Row(fields=fields, path="f", line=1), 1, context)


def prompter(
    task: str, preset: str, language: str, *, pool: tuple[Any, ...] = (), shots: int = 0
) -> Prompter:
    spec = spec_of(task)
    prompt = compile_prompt(session().catalog.prompt(task, preset), language)
    item = session().registry.kinds.get(spec.kind).prompt_item
    assert item is not None
    return Prompter(prompt=prompt, item=item, task=task, language=None, shots=shots, pool=pool)


EXEMPLARS = tuple(
    ("Frage: Wie viel ist {0} + 1?", "Schritt-für-Schritt-Antwort: Es ist {1}. Die Antwort ist {1}.", number)
    for number in (2, 5, 7)
)


def shots() -> tuple[Any, ...]:
    return tuple(
        example("mgsm", "de", "train", id=str(n), question=q.format(n, n + 1), solution=a.format(n, n + 1))
        for q, a, n in EXEMPLARS
    )


def test_exemplars_lose_their_headings_and_keep_their_order() -> None:
    pool = shots()
    assert [shot.value for shot in pool] == ["3", "6", "8"]
    item = example("mgsm", "de", question="Wie viel ist 4 + 4?", answer="8")
    asked = prompter("mgsm", "default", "de", pool=pool, shots=2).generation(item, 2)
    assert asked == (
        "Frage: Wie viel ist 2 + 1?\nSchritt-für-Schritt-Antwort: Es ist 3. Die Antwort ist 3.\n\n"
        "Frage: Wie viel ist 5 + 1?\nSchritt-für-Schritt-Antwort: Es ist 6. Die Antwort ist 6.\n\n"
        "Frage: Wie viel ist 4 + 4?\nSchritt-für-Schritt-Antwort:"
    )
    assert prompter("mgsm", "default", "de").options(item).stop == ("\nFrage:",)
    assert prompter("mgsm", "default", "zh").options(item).stop == ("\n问题：",)
    english = prompter("mgsm", "en_cot", "de").prompt
    assert (english.literals_language, english.spec.shots_language) == ("en", "en")


@pytest.mark.parametrize(
    ("preset", "language", "text"),
    [  # what lm-eval 0.4.13 sends for a document without a worked-out answer
        ("lm_eval", "de", "Frage: Q\nAntwort:"),
        ("lm_eval", "bn", "প্রশ্ন: Q\nAnswer:"),
        ("lm_eval", "zh", "问题： Q\nAnswer:"),
        ("lm_eval_cot", "ru", "Задача: Q\nПошаговоерешение:"),
        ("lm_eval_cot", "fr", "Question : Q\nRéponse étape par étape :"),
    ],
)
def test_presets_of_lm_eval(preset: str, language: str, text: str) -> None:
    assert prompter("mgsm", preset, language).generation(example("mgsm", language, question="Q"), 0) == text


def test_published_answers_are_written_the_english_way_in_every_language() -> None:
    assert example("mgsm", "de", question="Q", answer="2,125").value == "2125"
    assert example("msvamp", "de", question="Q", answer="8.0").value == "8"
    assert example("polymath", "de", question="Q", answer="$\\frac{3}{4}$").value == "0.75"
    with pytest.raises(DataError, match="f:1: expected a number"):
        example("mgsm", "de", question="Q", answer="many")


def test_a_number_that_could_be_two_is_unread() -> None:
    output, is_read = read_number(example("mgsm", "fr", question="Q"), "2.125", language="fr", phrases=())
    assert (output, is_read) == ({"text": "2.125", "value": None}, False)
    output, is_read = read_number(example("mgsm", "de", question="Q"), "2.125", language="de", phrases=())
    assert (output, is_read) == ({"text": "2.125", "value": "2125"}, True)


def test_translations_name_both_languages_and_their_answers() -> None:
    into = example("ntrex_mt", "de", source="Good morning.", target="Guten Morgen.")
    assert prompter("ntrex_mt", "default", "de").generation(into, 0) == "English: Good morning.\nGerman:"
    back = example("ntrex_mt_to_en", "de", source="Guten Morgen.", target="Good morning.")
    assert (
        prompter("ntrex_mt_to_en", "default", "de").generation(back, 0) == "German: Guten Morgen.\nEnglish:"
    )
    assert (spec_of("ntrex_mt").answer_language, spec_of("ntrex_mt_to_en").answer_language) == (None, "en")


@pytest.mark.parametrize(
    ("task", "texts", "pair"), [("ntrex_mt", "de", ("en", "de")), ("ntrex_mt_to_en", "en", ("de", "en"))]
)
def test_translation_models_are_asked_for_both_languages(
    task: str, texts: str, pair: tuple[str, str]
) -> None:
    asked: list[Any] = []

    class Model:
        def generate(self, prompts: Any, options: Any) -> list[Generated]:
            asked.extend(zip(prompts, [one.languages for one in options], strict=True))
            return [Generated(text="Ja", tokens=1, finished=True)]

    languages = session().registry.languages
    context = MethodContext(
        spec=spec_of(task),
        language=languages.get(texts),
        cell_language=languages.get("de"),
        protocol="prompted",
        seed=0,
    )
    (method,) = [one for one in METHODS if one.name == "translate"]
    item = example(task, "de", source="Yes", target="Ja")
    (prediction,) = method.predict(Model(), [item], context)
    assert asked == [("Yes", pair)]
    assert prediction.output == {"text": "Ja", "copied": False, "raw": "Ja"}


def test_a_translation_shares_one_side() -> None:
    given = spec_of("ntrex_mt").model_dump(exclude_unset=True)
    for sides in ({}, {"source_language": "en", "target_language": "de"}):
        changed = {name: value for name, value in given.items() if name != "source_language"} | sides
        with pytest.raises(ValidationError, match="either 'source_language' or 'target_language'"):
            type(spec_of("ntrex_mt")).model_validate(changed)


def test_copies_and_empty_answers_are_seen() -> None:
    item = example("ntrex_mt", "de", source="Good  morning.", target="Guten Morgen.")
    assert read_text(item, " good morning.\n") == ({"text": "good morning.", "copied": True}, True)
    assert read_text(item, "Guten\nMorgen.") == ({"text": "Guten Morgen.", "copied": False}, True)
    assert read_text(item, " \n") == ({"text": "", "copied": False}, False)


@pytest.mark.skipif("HARNESS_TEST_DATA" not in os.environ, reason="published data are needed")
def test_published_exemplars_and_answers_are_read() -> None:
    data = Path(os.environ["HARNESS_TEST_DATA"]) / "mgsm"
    for path in sorted(data.glob("exemplars_*.jsonl")):
        language = path.stem.removeprefix("exemplars_")
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found = [
            example("mgsm", language, "train", id=row["number"], question=row["q"], solution=row["a"])
            for row in rows
        ]
        # The eight problems are the same in all languages.
        assert [shot.value for shot in found] == ["11", "29", "39", "9", "33", "8", "8", "5"], language
        question, solution = spec_of("mgsm").headings[language]  # type: ignore[attr-defined]
        assert all(row["q"].startswith(question) and row["a"].startswith(solution) for row in rows)
        assert not any(shot.question.startswith(question) for shot in found)
