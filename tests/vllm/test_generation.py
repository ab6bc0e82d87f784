"""Text written by the stand-in: limits, stops, seeds, constraints, conversations, prompts that are too long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError, CapabilityError
from harness.models.requests import Generated, GenerateOptions, Turn

Ranker = Callable[..., Any]
TURNS = (Turn(role="system", text="Be short."), Turn(role="user", text="The cat?"))


def test_texts_tokens_and_ends(ranker: Ranker, stand_in: Any) -> None:
    prompts = [f"number {number}" for number in range(24)]
    for count in (2, 8):
        answers = ranker().generate(prompts, [GenerateOptions(max_tokens=count)] * 24)
        for prompt, answer in zip(prompts, answers, strict=True):
            text, ended = stand_in.written(stand_in.ids(prompt), count)
            assert answer == Generated(text=text, tokens=len(text.split()), finished=ended)
        assert {answer.finished for answer in answers} == ({True, False} if count == 2 else {True})


def test_what_is_sent(ranker: Ranker, stand_in: Any) -> None:
    options = GenerateOptions(max_tokens=5, stop=("\n",), temperature=0.7, top_p=0.9, seed=11)
    ranker().generate(["The cat"], [options])
    assert stand_in.posted("completions") == [
        {
            "model": "tiny",
            "prompt": stand_in.ids("The cat"),
            "max_tokens": 5,
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 11,
            "stop": ["\n"],
            "top_k": -1,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        }
    ]


def test_seeds_belong_to_items(ranker: Ranker) -> None:
    options = [GenerateOptions(max_tokens=8, temperature=1.0, seed=seed) for seed in (1, 2, 1)]
    first, second, third = ranker().generate(["The cat"] * 3, options)
    assert first == third != second


def test_stop_strings_end_a_text(ranker: Ranker) -> None:
    model = ranker()
    whole = model.generate(["number 3"], [GenerateOptions(max_tokens=8)])[0].text
    word = whole.split()[-1]
    [cut] = model.generate(["number 3"], [GenerateOptions(max_tokens=8, stop=(word,))])
    assert cut.text == whole[: whole.index(word)]
    assert cut.finished


def test_long_prompts_lose_their_beginning(ranker: Ranker, stand_in: Any, folders: dict[str, Path]) -> None:
    stand_in.missing.add("tokenize")
    prompt = "The dog and the cat. " * 40
    for name, first in (("plain", []), ("bos", [0])):
        long, short = ranker(tokenizer=folders[name]).generate(
            [prompt, "a"], [GenerateOptions(max_tokens=8)] * 2
        )
        sent = [*first, *stand_in.ids(prompt)[-(64 - 8 - len(first)) :]]
        assert sent in [request["prompt"] for request in stand_in.posted("completions")]
        assert long.text == stand_in.written(sent, 8)[0]
        assert (long.truncated, short.truncated) == (True, False)


def test_no_room_for_a_prompt_is_rejected(ranker: Ranker) -> None:
    with pytest.raises(AdapterError, match=r"max_tokens=64.* 64 "):
        ranker().generate(["a"], [GenerateOptions(max_tokens=64)])


def test_an_empty_prompt_begins_with_the_end_token(ranker: Ranker, stand_in: Any) -> None:
    ranker().generate([""], [GenerateOptions(max_tokens=2)])
    assert stand_in.posted("completions")[0]["prompt"] == [1]


# Constraints ------------------------------------------------------------------------------------------

CONSTRAINTS = [
    ("choice", GenerateOptions(max_tokens=8, choices=("yes", "no")), ["yes", "no"]),
    ("regex", GenerateOptions(max_tokens=8, regex=r"\d+"), r"\d+"),
    ("json", GenerateOptions(max_tokens=8, json_schema={"type": "object"}), {"type": "object"}),
]


@pytest.mark.parametrize(("name", "options", "value"), CONSTRAINTS)
@pytest.mark.parametrize("prompt", ["The cat", TURNS], ids=["text", "conversation"])
def test_constraints(ranker: Ranker, stand_in: Any, name: str, options: Any, value: Any, prompt: Any) -> None:
    [answer] = ranker().generate([prompt], [options])
    assert answer.text in ("yes", "no", "42", '{"answer": 42}')
    route = "completions" if isinstance(prompt, str) else "chat/completions"
    assert stand_in.posted(route)[0]["structured_outputs"] == {name: value}


@pytest.mark.parametrize(("version", "guided"), [("0.11.2", True), ("0.12.0", False), ("0.1.dev9+g1", False)])
def test_constraints_had_other_names_before_vllm_0_12(
    ranker: Ranker, stand_in: Any, version: str, guided: bool
) -> None:
    stand_in.version = version
    ranker().generate(["The cat"], [CONSTRAINTS[0][1]])
    [request] = stand_in.posted("completions")
    assert ("guided_choice" in request, "structured_outputs" in request) == (guided, not guided)


@pytest.mark.parametrize(("name", "options", "value"), CONSTRAINTS)
def test_a_server_that_ignores_constraints_is_found_out(
    ranker: Ranker, stand_in: Any, name: str, options: Any, value: Any
) -> None:
    stand_in.missing.add("constraints")
    with pytest.raises(AdapterError, match="constraint"):
        ranker().generate(["The cat"], [options])


def test_two_constraints_are_rejected(ranker: Ranker) -> None:
    with pytest.raises(CapabilityError, match="one way at a time, not by choice and regex"):
        ranker().generate(["a"], [GenerateOptions(max_tokens=8, choices=("a",), regex="b")])


# Conversations ----------------------------------------------------------------------------------------


def test_conversations_go_through_the_chat_template(ranker: Ranker, stand_in: Any) -> None:
    [answer] = ranker().generate([TURNS], [GenerateOptions(max_tokens=8)])
    ids = [1, *stand_in.ids("system: Be short.\nuser: The cat?"), 2]
    assert answer.text == stand_in.written(ids, 8)[0]
    [request] = stand_in.posted("chat/completions")
    assert request["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "The cat?"},
    ]


@pytest.mark.parametrize("words", [18, 60], ids=["too little room", "rejected by the server"])
def test_long_conversations_lose_their_beginning(ranker: Ranker, stand_in: Any, words: int) -> None:
    turns = (Turn(role="user", text="the dog and " * words),)
    [answer] = ranker().generate([turns], [GenerateOptions(max_tokens=8)])
    ids = [1, *stand_in.ids("user: " + "the dog and " * words), 2]
    assert len(ids) > 64 - 8
    assert stand_in.posted("completions")[0]["prompt"] == ids[-56:]
    assert answer.truncated
    assert answer.text == stand_in.written(ids[-56:], 8)[0]


def test_a_model_without_a_chat_template_says_so(ranker: Ranker, stand_in: Any) -> None:
    stand_in.missing.add("chat template")
    with pytest.raises(CapabilityError, match="'tiny' has no chat template, so it takes no conversations"):
        ranker().generate([TURNS], [GenerateOptions(max_tokens=8)])


def test_token_counts(either_ranker: Ranker, stand_in: Any) -> None:
    model = either_ranker()
    counts = model.token_counts(["The cat", "a", TURNS])
    chat = len(stand_in.ids("system: Be short.\nuser: The cat?")) + 2
    assert counts == [len(stand_in.ids("The cat")), 1, chat]
    assert model.context_length() == 64


def test_subword_counts(either_ranker: Ranker, stand_in: Any) -> None:
    model = either_ranker()
    texts = ["The cat", "", "कख", "The cat"]
    assert [count.tokens for count in model.subword_counts(texts)] == [
        len(stand_in.ids(text)) for text in texts
    ]
    assert {count.unknown for count in model.subword_counts(texts)} == {None}
    assert model.subword_counts([]) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("malformed", "something that is no JSON"),
        ("fewer", "gave 0 choices for 1 prompts"),
        ("empty", "without choices"),
        ("no usage", "without a count of written tokens"),
        ("abort", "stopped writing because of 'abort'"),
    ],
)
def test_a_wrong_answer_is_never_a_text(ranker: Ranker, stand_in: Any, fault: str, message: str) -> None:
    stand_in.faults.append(fault)
    with pytest.raises(AdapterError, match=message):
        ranker(retries=0).generate(["The cat"], [GenerateOptions(max_tokens=8)])
