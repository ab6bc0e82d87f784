"""Models behind a server that reason before they answer: what is sent, and what of the answer is the reasoning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.models.requests import GenerateOptions, Turn

Ranker = Callable[..., Any]
TURNS = (Turn(role="user", text="The cat?"),)
ANSWER = GenerateOptions(max_tokens=6, stop=("\n",))
THOUGHT = "the user asks,\nso I think about it"


def chat_ids(stand_in: Any) -> list[int]:
    last = stand_in.ids("<think>") if stand_in.thinks == "opened" else [2]
    return [1, *stand_in.ids("user: The cat?"), *last]


@pytest.mark.parametrize("way", ["text", "opened", "field"])
@pytest.mark.parametrize("thinking", ["auto", "on"])
def test_the_reasoning_is_separated(ranker: Ranker, stand_in: Any, way: str, thinking: str) -> None:
    stand_in.thinks = way
    [answer] = ranker(thinking=thinking).generate([TURNS], [ANSWER])
    assert answer.reasoning == THOUGHT
    assert answer.text == stand_in.written(chat_ids(stand_in), 9)[0]
    assert answer.finished
    assert 7 <= answer.reasoning_tokens < answer.tokens
    *first, last = stand_in.posted("chat/completions")
    assert len(first) == (thinking == "auto" and way != "opened"), "asked again where it reasons unasked"
    assert "stop" not in last
    assert last["max_tokens"] == 64 - len(chat_ids(stand_in))
    switch = {"enable_thinking": True, "thinking": True}
    assert last.get("chat_template_kwargs") == (switch if thinking == "on" else None)


@pytest.mark.parametrize("way", ["text", "opened", "field"])
def test_reasoning_that_is_cut_has_no_answer(ranker: Ranker, stand_in: Any, way: str) -> None:
    stand_in.thinks = way
    [cut] = ranker(thinking="on", reasoning_budget=1).generate([TURNS], [GenerateOptions(max_tokens=2)])
    assert (cut.text, cut.finished) == ("", False)
    assert THOUGHT.startswith(cut.reasoning or "never")
    assert stand_in.posted("chat/completions")[-1]["max_tokens"] == 3


def test_without_reasoning_the_request_is_the_usual_one(ranker: Ranker, stand_in: Any) -> None:
    stand_in.thinks = "text"
    [answer] = ranker(thinking="off").generate([TURNS], [ANSWER])
    assert (answer.text, answer.reasoning) == (stand_in.written(chat_ids(stand_in), 6)[0], None)
    [sent] = stand_in.posted("chat/completions")
    assert (sent["max_tokens"], sent["stop"]) == (6, ["\n"])
    assert sent["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


def test_effort_and_identity(ranker: Ranker, stand_in: Any, folders: dict[str, Path]) -> None:
    stand_in.thinks = "field"
    model = ranker(reasoning_effort="low")
    model.generate([TURNS], [ANSWER])
    assert stand_in.posted("chat/completions")[0]["reasoning_effort"] == "low"
    assert model.identity() != ranker().identity()


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_chat_endpoints(open_model: Callable[..., Any], stand_in: Any, field: str) -> None:
    stand_in.thinks, stand_in.context, stand_in.reasoning_field = "field", None, field
    model = open_model("openai", stand_in.url, reasoning_budget=100)
    [answer] = model.generate(["The cat?"], [ANSWER])
    assert (answer.reasoning, answer.finished) == (THOUGHT, True)
    assert answer.text == stand_in.written(chat_ids(stand_in), 9)[0]
    assert answer.reasoning_tokens is None, "the endpoint does not count them"
    [sent] = stand_in.posted("chat/completions")
    assert sent["max_tokens"] == 106
    assert "chat_template_kwargs" not in sent
