"""How a text is divided into reasoning and answer."""

from __future__ import annotations

import pytest

from harness.models.requests import (
    KNOWN_MARKERS,
    Generated,
    Markers,
    SplitText,
    separate_reasoning,
    split_reasoning,
    within_stops,
)

HARMONY = "<|channel|>analysis<|message|>They ask.<|end|><|start|>assistant<|channel|>final<|message|>Paris"


@pytest.mark.parametrize(
    ("text", "reasoning", "answer", "closed"),
    [
        ("Paris", None, "Paris", True),
        ("<think>\nCapital of France.\n</think>\n\nParis\n", "Capital of France.", "Paris\n", True),
        (" <think>a</think>b", "a", "b", True),
        ("Capital of France.</think>Paris", "Capital of France.", "Paris", True),
        ("<think></think>Paris", "", "Paris", True),
        ("<think>a</think><think>b</think>Paris", "a\nb", "Paris", True),
        ("<think>Capital of", "Capital of", "", False),
        ("Well. <think>Capital</think>Paris", "Well. Capital", "Paris", True),
        ("[THINK]a[/THINK]b", "a", "b", True),
        (HARMONY, "They ask.", "Paris", True),
        ("<|channel|>final<|message|>Paris", "", "Paris", True),
        ("<|channel|>analysis<|message|>They", "They", "", False),
        ("I think</thinking>", None, "I think</thinking>", True),
        ("", None, "", True),
    ],
)
def test_texts(text: str, reasoning: str | None, answer: str, closed: bool) -> None:
    expected = SplitText(reasoning=reasoning, answer=answer, closed=closed)
    assert split_reasoning(text, KNOWN_MARKERS) == expected


def test_a_prompt_that_opened_the_reasoning() -> None:
    assert split_reasoning("Capital of", KNOWN_MARKERS, opened=True).answer == ""
    assert not split_reasoning("Capital of", KNOWN_MARKERS, opened=True).closed
    assert split_reasoning("Capital</think>Paris", KNOWN_MARKERS, opened=True).answer == "Paris"


def test_marks_of_a_prompt() -> None:
    markers = (Markers("Reasoning:", "Answer:"), *KNOWN_MARKERS)
    found = split_reasoning("Reasoning: 1 + 1\nAnswer: 2", markers)
    assert (found.reasoning, found.answer) == ("1 + 1", "2")


def test_answers_of_adapters_that_separate_nothing() -> None:
    answer = Generated(text="<think>a</think>b", tokens=5, finished=True)
    found = separate_reasoning(answer, None)
    assert (found.text, found.reasoning, found.reasoning_tokens) == ("b", "a", None)
    own = separate_reasoning(Generated(text="a Answer: b", tokens=5, finished=True), ("Steps:", "Answer:"))
    assert (own.text, own.reasoning) == ("b", "a")
    plain = Generated(text="b", tokens=1, finished=True)
    assert separate_reasoning(plain, None) is plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.\n\nFrage: 2+2", ("12.", True)),
        ("\n\n 12.\nFrage: 2+2", ("\n\n 12.", True)),
        ("\nFrage: 2+2", ("", True)),
        ("12. Frage", ("12. Frage", False)),
        (" \n", (" \n", False)),
    ],
)
def test_the_answer_is_before_the_first_stop_string(text: str, expected: tuple[str, bool]) -> None:
    assert within_stops(text, ("\n", "\nFrage", "")) == expected
