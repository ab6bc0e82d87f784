"""The adapter of chat endpoints, and embeddings from a pooling server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.errors import AdapterError, CapabilityError
from harness.models.capabilities import Capability, EmbedOptions, capability_protocols
from harness.models.requests import Generated, GenerateOptions, Turn

Open = Callable[..., Any]
OPTIONS = GenerateOptions(max_tokens=8)


# Chat endpoints ---------------------------------------------------------------------------------------


def test_a_text_is_one_user_turn(chat: Open, stand_in: Any) -> None:
    model = chat()
    text, turn = model.generate(["The cat", (Turn(role="user", text="The cat"),)], [OPTIONS] * 2)
    ids = [1, *stand_in.ids("user: The cat"), 2]
    written, ended = stand_in.written(ids, 8)
    assert text == turn == Generated(text=written, tokens=len(written.split()), finished=ended)
    assert stand_in.posted("chat/completions")[0] == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "The cat"}],
        "max_tokens": 8,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 0,
    }


def test_the_limit_may_have_another_name(chat: Open, stand_in: Any) -> None:
    model = chat(token_limit_field="max_completion_tokens")
    model.generate(["The cat"], [OPTIONS])
    [request] = stand_in.posted("chat/completions")
    assert request["max_completion_tokens"] == 8
    assert "max_tokens" not in request


def test_it_generates_only(chat: Open) -> None:
    model = chat()
    can = {
        capability for capability, protocol in capability_protocols().items() if isinstance(model, protocol)
    }
    assert can == {Capability.GENERATES}


def test_a_json_schema_is_the_only_constraint(chat: Open, stand_in: Any) -> None:
    model = chat()
    schema = {"type": "object"}
    stand_in.missing = {"constraints"}
    with pytest.raises(AdapterError, match="ignored the constraint"):
        model.generate(["a"], [GenerateOptions(json_schema=schema)])
    sent = stand_in.posted("chat/completions")[0]["response_format"]
    assert sent == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }
    for options, what in (
        (GenerateOptions(choices=("a",)), "choices"),
        (GenerateOptions(regex="a"), "a regular"),
    ):
        with pytest.raises(CapabilityError, match=what):
            model.generate(["a"], [options])


def test_the_key_stays_in_the_environment(
    chat: Open, stand_in: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in.key = "sk-secret"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = chat()
    assert len(model.generate(["a"], [OPTIONS])) == 1
    model.close()
    assert dict(model.identity()) == {"adapter": "openai", "model": "tiny", "host": "127.0.0.1"}
    assert "secret" not in "".join(capfd.readouterr())


def test_repeated_requests_are_reported(chat: Open, stand_in: Any, capfd: pytest.CaptureFixture[str]) -> None:
    model = chat()
    stand_in.faults += ["500", "429"]
    model.generate(["a"], [OPTIONS])
    model.close()
    assert "2 requests were repeated." in capfd.readouterr().err


# Embeddings -------------------------------------------------------------------------------------------


def test_vectors_are_unit_rows_in_order(embedder: Open, stand_in: Any) -> None:
    model = embedder()
    texts = [f"text {number}" for number in range(70)]
    vectors = model.embed(texts, side="query")
    wanted = np.array([stand_in.embedding(text) for text in texts], np.float64)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, wanted, atol=1e-6)
    assert [len(request["input"]) for request in stand_in.posted("embeddings")].count(32) == 2
    assert model.embed([], side="query").shape[0] == 0


def test_prefixes_and_limits_are_sent(embedder: Open, stand_in: Any) -> None:
    given = {"query_prefix": "query: ", "passage_prefix": "passage: "}
    model = embedder(**given)
    model.embed(["a"], side="query")
    model.embed(["a"], side="passage", options=EmbedOptions(max_length=16))
    model.embed(["a"], side="passage", options=EmbedOptions(prefixes=False, max_length=999))
    sent = stand_in.posted("embeddings")
    assert [request["input"] for request in sent] == [["query: a"], ["passage: a"], ["a"]]
    assert [request["truncate_prompt_tokens"] for request in sent] == [-1, 16, 64]
    assert {request["truncation_side"] for request in sent} == {"right"}


def test_what_a_server_does_not_give_is_rejected(embedder: Open) -> None:
    model = embedder()
    with pytest.raises(CapabilityError, match="from the last layer, not from the layer 'xtreme_r'"):
        model.embed(["a"], side="query", options=EmbedOptions(layer="xtreme_r"))
    with pytest.raises(CapabilityError, match="pools by what its model folder says, not by 'mean'"):
        model.embed(["a"], side="query", options=EmbedOptions(pooling="mean"))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("fewer", "gave 2 vectors for 3 texts"),
        ("zero", "'a'"),
        ("shorter", "vectors of different lengths"),
        ("empty", "gave 0 vectors for 3 texts"),
        ("malformed", "no JSON"),
    ],
)
def test_a_wrong_answer_is_never_a_vector(embedder: Open, stand_in: Any, fault: str, message: str) -> None:
    model = embedder(retries=0)
    stand_in.faults.append(fault)
    with pytest.raises(AdapterError, match=message):
        model.embed(["a", "b", "c"], side="query")


def test_a_generating_server_does_not_embed(embedder: Open, stand_in: Any) -> None:
    stand_in.missing.add("embeddings")
    model = embedder()
    with pytest.raises(AdapterError, match=r"does not embed.*--runner pooling"):
        model.embed(["a"], side="query")


# Servers that do not do what they are asked -------------------------------------------------------------


def plain_answer(text: str, tokens: int, **usage: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"content": text}, "text": text, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"completion_tokens": tokens, **usage}}


@pytest.mark.parametrize("adapter", ["vllm", "openai"])
@pytest.mark.parametrize(
    ("text", "tokens", "expected", "finished"),
    [
        ("Die Antwort ist 12.\nFrage: 2+2?\nDie Antwort ist 4.", 12, "Die Antwort ist 12.", True),
        ("答えは12です。\n問題: 2+2", 6, "答えは12です。", True),
        ("eins zwei drei vier", 4, "eins zwei drei vier", True),
        ("eins " * 16, 16, "eins " * 8, False),
        ("eins \nFrage: " * 8, 32, "eins ", True),
        ("12", 500, "12", True),  # reasoning that is counted and not shown
    ],
)
def test_ignored_stop_strings_and_limits_are_kept_here(
    open_model: Open,
    stand_in: Any,
    folders: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    adapter: str,
    text: str,
    tokens: int,
    expected: str,
    finished: bool,
) -> None:
    local = {"tokenizer": folders["plain"]} if adapter == "vllm" else {}
    model = open_model(adapter, stand_in.url, **local)
    monkeypatch.setattr(model._session.client, "post", lambda path, payload: plain_answer(text, tokens))
    options = GenerateOptions(max_tokens=8, stop=("\nFrage", "\n問題"))
    for prompt in ("The cat", (Turn(role="user", text="The cat"),)):
        [answer] = model.generate([prompt], [options])
        assert (answer.text, answer.finished, answer.tokens) == (expected, finished, tokens)


def test_hidden_reasoning_is_no_part_of_the_limit(chat: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    model = chat()
    reply = plain_answer("eins zwei " * 3, 300, completion_tokens_details={"reasoning_tokens": 294})
    monkeypatch.setattr(model._session.client, "post", lambda path, payload: reply)
    [answer] = model.generate(["The cat"], [OPTIONS])
    assert (answer.text, answer.finished, answer.reasoning_tokens) == ("eins zwei " * 3, True, 294)


TALK = (
    Turn(role="system", text="Be brief."),
    Turn(role="user", text="The dog?"),
    Turn(role="assistant", text="Here."),
    Turn(role="user", text="The cat?"),
)


@pytest.mark.parametrize("adapter", ["vllm", "openai"])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("400", "System role not supported"),
        ("500", "Conversation roles must alternate user/assistant/user/assistant/..."),
        ("dropped", ""),
    ],
)
def test_a_server_without_a_system_role_gets_its_text_in_the_first_user_turn(
    open_model: Open,
    stand_in: Any,
    folders: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    adapter: str,
    status: str,
    message: str,
) -> None:
    local = {"tokenizer": folders["plain"]} if adapter == "vllm" else {}
    model = open_model(adapter, stand_in.url, retries=1, concurrency=1, **local)
    handler, usual = stand_in.RequestHandlerClass, stand_in.RequestHandlerClass.chat_ids

    def chat_ids(self: Any, payload: dict[str, Any]) -> Any:
        turns = [turn for turn in payload["messages"] if turn["role"] != "system"]
        return usual(self, {**payload, "messages": turns})

    def serve(self: Any, route: str, payload: dict[str, Any], fault: str | None) -> None:
        if status != "dropped" and payload.get("messages", [{}])[0].get("role") == "system":
            self.reject(int(status), message)
        else:
            served(self, route, payload, fault)

    served = handler.serve
    monkeypatch.setattr(handler, "serve", serve)
    monkeypatch.setattr(handler, "chat_ids", chat_ids)
    answers = model.generate([TALK] * 2, [OPTIONS] * 2)
    assert answers[0] == answers[1]
    last = stand_in.posted("chat/completions")[-1]["messages"]
    if (adapter, status) == ("openai", "dropped"):  # nothing shows it
        assert (len(last), model.notices()) == (4, [])
    else:
        assert [turn["content"] for turn in last] == ["Be brief.\n\nThe dog?", "Here.", "The cat?"]
        assert len(model.notices()) == 1


def test_other_errors_of_a_conversation_stay_what_they_are(chat: Open, stand_in: Any) -> None:
    model = chat(concurrency=1)
    stand_in.faults += ["400"]
    with pytest.raises(AdapterError, match="planted fault"):
        model.generate([TALK], [OPTIONS])
    assert len(stand_in.posted("chat/completions")) == 0 or model.notices() == []
