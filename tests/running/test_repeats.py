"""Whole runs with several answers per item, several prompts, and reasoning before answers."""

from __future__ import annotations

from typing import Any

import pytest

from harness.api import evaluate
from harness.errors import CapabilityError, UsageError
from harness.prompts.prompter import item_seed
from harness.reporting.documents import terminal_text
from harness.reporting.prompting import prompt_pairs, prompt_scores, read_asked
from harness.storage.run_folder import Run

from .conftest import RunTasks

pytestmark = pytest.mark.usefixtures("calls")
SAYS = "A|B|<think>hm</think>C|I do not know"


def _sampled(run: RunTasks, **settings: Any) -> Run:
    options = {"says": SAYS, "temperature": "1"}
    given = {"prompt": "letters", "repeats": 4, "options": options, **settings}
    return run("xnli:en+sw", "asks:writes", **given)


def test_every_item_is_asked_with_seeds_of_its_own(run: RunTasks, calls: list[Any]) -> None:
    finished = _sampled(run)
    asked = [request[1] for name, request in calls if name == "write"]
    ids = {record.id for cell in finished.cells for record in finished.records(cell)}
    expected = {item_seed(42, "xnli", None, name, repeat) for name in ids for repeat in range(4)}
    assert {options.seed for options in asked} == expected
    assert len(asked) == 2 * 5 * 4
    assert {options.temperature for options in asked} == {1.0}


def test_scores_and_records(run: RunTasks) -> None:
    finished = _sampled(run)
    for cell in finished.cells:
        assert cell.status == "ok", cell.reason
        assert cell.view == {"prompt": "letters", "repeats": "4", "temperature": "1"}
        right = []
        for record in finished.records(cell):
            answers = record.prediction["repeats"]
            assert len(answers) == 4
            hits = [answer["label"] == record.reference for answer in answers]
            assert record.scores["accuracy"] == sum(hits) / 4
            assert record.scores["pass@4"] == float(any(hits))
            assert record.correct == (record.scores["majority@4"] == 1.0)
            assert [answer.get("reasoning") == "hm" for answer in answers] == [
                answer["raw"] == "C" for answer in answers
            ]
            right.append(sum(hits) / 4)
        values = {name: metric.value for name, metric in cell.metrics.items()}
        assert values["accuracy"] == pytest.approx(sum(right) / len(right))
        assert values["pass@1"] == pytest.approx(values["accuracy"])
        assert set(values) == {"accuracy", "pass@1", "pass@2", "pass@4", "majority@4"}
    report = read_asked([finished])
    assert report is not None
    unread, repeated = report.rows()[:2], report.rows()[2:]
    assert [row["language"] for row in unread] == [row["language"] for row in repeated] == ["en", "sw"]
    assert [row["about"] for row in unread] == ["unread"] * 2


def test_a_resumed_run_asks_no_answer_twice(run: RunTasks, calls: list[Any]) -> None:
    finished = _sampled(run)
    calls.clear()
    again = _sampled(run, reuse=(finished.path,))
    assert not [name for name, _ in calls if name == "write"]
    assert again.results.run.requests["asked"] == 0
    assert [cell.metrics for cell in again.cells] == [cell.metrics for cell in finished.cells]


def test_greedy_repeats_and_answers_with_parts_are_rejected() -> None:
    given: dict[str, Any] = {"data": "sample", "limit": 2, "repeats": 4, "prompt": "letters"}
    with pytest.raises(UsageError, match="temperature"):
        evaluate("xnli:en", "asks:writes", **given)
    with pytest.raises(CapabilityError, match="parts"):
        evaluate("wikiann:de", "asks:writes", **{**given, "prompt": None, "options": {"temperature": "1"}})


def test_ranking_is_rejected_where_the_model_is_to_reason() -> None:
    for options in ({"thinking": "on"}, {"reasoning_budget": "9"}):
        with pytest.raises(CapabilityError, match=r"log-likelihood.*--chat"):
            evaluate("xnli:en", "asks:ranks", data="sample", options=options)
    with pytest.raises(CapabilityError, match="--chat"):
        evaluate("xnli:en", "asks:both", data="sample", method="generate", prompt="letters",
                 options={"thinking": "off"})  # fmt: skip
    with pytest.raises(UsageError, match="--chat"):
        evaluate("xnli:en", "asks:both", data="sample", method="rank", chat=True)


def test_reasoning_is_kept_and_counted(run: RunTasks) -> None:
    finished = run("xnli:sw", "asks:writes", prompt="letters", options={"says": "<think>I think</think>A"})
    [cell] = finished.cells
    assert (cell.unparsed, cell.unfinished, cell.reasoning_tokens) == (0, 0, None)
    assert cell.ledger["reasoning"]["answers"] == cell.ledger["answers"]["answers"] == 5
    for record in finished.records(cell):
        assert record.reasoning == "I think"
        assert record.prediction["raw"] == "A"


def test_prompts_are_compared(run: RunTasks) -> None:
    finished = run("xnli:en+sw", "asks:ranks", prompt="letters,hybrid,default")
    assert [cell.view.get("prompt") for cell in finished.cells if cell.language == "sw"] == [
        "letters", "hybrid", None,
    ]  # fmt: skip
    scores = list(prompt_scores(finished))
    by_language = {cell.language: cell.metrics["accuracy"].value for cell in finished.cells}
    for own in scores:
        assert set(own["scores"]) == {"letters", "hybrid", "default"}
        assert own["spread"] == max(own["scores"].values()) - min(own["scores"].values())
        assert own["mean"] == pytest.approx(by_language[own["language"]]), (
            "the adapter always takes the first"
        )
    assert [(pair["first"], pair["second"]) for pair in prompt_pairs(finished)] == [
        ("letters", "hybrid"), ("letters", "default"), ("hybrid", "default"),
    ]  # fmt: skip


def test_options_of_writing_reach_the_model_and_the_reader(run: RunTasks, calls: list[Any]) -> None:
    given = {"max_tokens": "7", "stop": "##,\\n", "system": "Say {it}.", "answer_regex": "is ([A-C])"}
    options = {"says": "I think it is B, not A", **given}
    finished = run("xnli:sw", "asks:writes", prompt="letters", options=options)
    (cell,) = finished.cells
    asked = [request for name, request in calls if name == "write"]
    assert {(own.max_tokens, own.stop) for _, own in asked} == {(7, ("##", "\n"))}
    assert all(str(prompt).startswith("Say {it}.\n\n") for prompt, _ in asked)
    assert {record.prediction["label"] for record in finished.records(cell)} == {"entailment"}
    assert all(record.prediction["raw"] == "I think it is B, not A" for record in finished.records(cell))
    assert cell.unparsed == 0
    assert given.keys() <= cell.view.keys()


def test_a_regular_expression_that_could_hang_is_rejected(run: RunTasks) -> None:
    with pytest.raises(UsageError, match="answer_regex"):
        run("xnli:sw", "asks:writes", prompt="letters", options={"says": "A", "answer_regex": "(a+)+"})


@pytest.mark.parametrize(("says", "equal"), [("A", 5), (SAYS, 0)])
def test_equal_answers_where_they_are_sampled_are_counted_and_noted(
    run: RunTasks, says: str, equal: int
) -> None:
    options = {"says": says, "temperature": "1"}
    finished = run("xnli:en", "asks:writes", prompt="letters", repeats=8, options=options)
    [cell] = finished.cells
    assert cell.equal_repeats == equal
    assert ("'temperature' or 'seed'" in terminal_text([finished], width=200)) == bool(equal)
