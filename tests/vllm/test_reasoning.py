"""Models behind a server that reason before they answer: what is sent, and what of the answer is the reasoning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError
from harness.models.requests import GenerateOptions, Turn

pytestmark = pytest.mark.thorough

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


@pytest.mark.parametrize("adapter", ["vllm", "openai"])
def test_it_is_asked_twice_only_where_it_changes(
    open_model: Callable[..., Any], stand_in: Any, folders: dict[str, Path], adapter: str
) -> None:
    """A model that reasons unasked, then one that does not; each answer is that of a model asked for the first time."""
    local = {"tokenizer": folders["plain"]} if adapter == "vllm" else {}
    stand_in.context = 4096

    def opened() -> Any:
        return open_model(adapter, stand_in.url, concurrency=1, **local)

    model, found, posted = opened(), [], []
    for way in ("text", "text", "text", None, None, "text"):
        stand_in.thinks = way
        before = len(stand_in.posted("chat/completions"))
        found += model.generate([TURNS], [ANSWER])
        posted.append(len(stand_in.posted("chat/completions")) - before)
        assert opened().generate([TURNS], [ANSWER]) == [found[-1]]
    assert posted == [2, 1, 1, 2, 1, 2]
    assert [answer.reasoning for answer in found] == [*[THOUGHT] * 3, None, None, THOUGHT]


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


@pytest.mark.parametrize("thinks", ["text", None])
def test_the_responses_api(open_model: Callable[..., Any], stand_in: Any, thinks: str | None) -> None:
    """Its answers are those of chat completions, with the tokens of the reasoning."""
    stand_in.thinks, stand_in.context = thinks, None
    for options in (ANSWER, GenerateOptions(max_tokens=2)):
        found = [
            open_model("openai", stand_in.url, api=api).generate(["The cat?"], [options])[0]
            for api in ("chat", "responses")
        ]
        chat, answer = found
        assert answer.text == chat.text
        # Here the answer's own tokens are known, and so whether they are too many.
        assert answer.finished == (chat.finished and (thinks is None or options is ANSWER))
        assert (answer.reasoning is not None, answer.tokens) == (thinks is not None, chat.tokens)
        if thinks is not None:
            assert answer.reasoning == THOUGHT
            assert answer.reasoning_tokens == len(stand_in.ids(f" {THOUGHT} "))
        sent = stand_in.posted("responses")
        assert not {"stop", "seed", "max_tokens", "messages"} & set(sent[-1])


def test_responses_constrain_by_schema_and_effort(open_model: Callable[..., Any], stand_in: Any) -> None:
    stand_in.context = None
    options = GenerateOptions(max_tokens=6, json_schema={"type": "object"})
    model = open_model("openai", stand_in.url, api="responses", reasoning_effort="low")
    with pytest.raises(AdapterError, match="ignored the constraint"):
        model.generate(["The cat?"], [options])
    [sent] = stand_in.posted("responses")
    assert sent["reasoning"] == {"effort": "low", "summary": "auto"}
    schema = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    assert sent["text"] == {"format": {"type": "json_schema", **schema}}
    assert model.identity()["option.api"] == "responses"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"status": "failed", "output": []}, "status 'failed'"),
        ({"status": "completed"}, "without output"),
        (
            {"status": "incomplete", "output": [], "usage": {"output_tokens": 3}},
            "stopped writing because of None",
        ),
    ],
)
def test_a_response_that_failed_is_no_answer(
    open_model: Callable[..., Any], stand_in: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, message: str
) -> None:
    model = open_model("openai", stand_in.url, api="responses")
    monkeypatch.setattr(model._session.client, "post", lambda path, payload: answer)
    with pytest.raises(AdapterError, match=message):
        model.generate(["a"], [ANSWER])
