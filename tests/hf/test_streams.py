from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from transformers import (
    AutoModelForSequenceClassification,
)

from harness.errors import AdapterError, CapabilityError
from harness.models.requests import (
    Ability,
    Answered,
    Call,
    GenerateOptions,
    LikelihoodRequest,
)
from harness.testing.probe import agree

from .conftest import Open

WORDS = "the cat sat on warm mat and dog slept near door good bad happy sad yes no".split()


def texts(count: int) -> list[str]:
    """Texts of one to nine words."""
    return [
        " ".join(WORDS[(number * 5 + place) % len(WORDS)] for place in range(1 + number % 9))
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One ability of one model."""

    model: Any
    call: Call
    requests: Sequence[Any]

    def answers(self, blocks: Sequence[Sequence[Any]] | None = None, **changes: Any) -> dict[int, Any]:
        call = Call(ability=self.call.ability, arguments=self.call.arguments, **changes)
        return collect(self.model.stream(call, blocks or [self.requests]))


def collect(stream: Any) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for answered in stream:
        assert isinstance(answered, Answered)
        for index, answer in zip(answered.indices, answered.answers, strict=True):
            assert index not in found
            found[index] = answer
    return found


def requests_of(ability: Ability, count: int) -> list[Any]:
    """Requests of mixed lengths."""
    some = texts(count)
    if ability == "loglikelihood":
        ends = ("yes", "no")
        return [LikelihoodRequest(context=text, continuation=f" {end}") for text in some for end in ends]
    if ability == "generate":
        options = [
            GenerateOptions(max_tokens=1 + len(text) % 7, stop=("a",)[: len(text) % 2]) for text in some
        ]
        ranked = [(text, GenerateOptions(choices=("yes", "no mat"))) for text in some[:4]]
        return [*zip(some, options, strict=True), *ranked]
    return list(some)


def cut(requests: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [requests[start : start + size] for start in range(0, len(requests), size)]


@pytest.fixture
def make(open_bert: Open, llama: Any) -> Callable[..., Case]:
    """A function that opens a model for an ability and makes requests of it."""

    def case(ability: Ability, count: int = 24, **options: Any) -> Case:
        embeds = ability == "embed"
        return Case(
            model=open_bert(**options) if embeds else llama,
            call=Call(ability=ability, arguments={"side": "query"} if embeds else {}),
            requests=requests_of(ability, count),
        )

    return case


def assert_alike(found: dict[int, Any], expected: dict[int, Any]) -> None:
    assert sorted(found) == sorted(expected)
    for index, answer in expected.items():
        assert agree(answer, found[index], tolerance=1e-5)


def test_answers_come_after_every_batch_the_longest_first(make: Callable[..., Case]) -> None:
    case = make("embed", batch_tokens=24)
    stream = case.model.stream(case.call, cut(case.requests, 12))
    lengths = [len(one) for one in case.model._session.encode(case.requests, None, 64)]
    widths = []
    for answered in stream:
        batch = [lengths[index] for index in answered.indices]
        assert len(batch) * max(batch) <= 24
        assert len({index // 12 for index in answered.indices}) == 1
        widths.append((answered.indices[0] // 12, -max(batch)))
    assert widths == sorted(widths)
    assert len(widths) > 6


@pytest.mark.parametrize("ability", ["embed", "loglikelihood", "generate"])
def test_stopping_is_asked_before_every_batch(make: Callable[..., Case], ability: Ability) -> None:
    case = make(ability)
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    whole = case.answers()
    found = case.answers(cut(case.requests, 2), stopping=stopping)
    # One question before a block and one before each of its batches: the fourth is that of the second batch.
    assert found
    assert set(found) <= {0, 1}
    assert_alike(found, {index: whole[index] for index in found})


def test_the_next_block_is_tokenised_in_another_thread(make: Callable[..., Case]) -> None:
    case = make("embed")
    session = case.model._session
    encode, threads = session.encode, []

    def watched(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return encode(*arguments)

    session.encode = watched
    case.answers()
    assert threads == [threading.main_thread()]
    threads.clear()
    stream = case.model.stream(case.call, cut(case.requests, 3))
    next(stream)
    stream.close()
    assert 1 <= len(threads) <= 2
    assert threading.main_thread() not in threads
    assert not any(one.is_alive() for one in threads)
    threads.clear()
    assert len(collect(case.model.stream(case.call, cut(case.requests, 3)))) == len(case.requests)
    assert len(threads) == len(case.requests) // 3
    assert len(set(threads)) == 1
    assert not threads[0].is_alive()


def test_errors_of_the_thread_reach_the_caller(make: Callable[..., Case]) -> None:
    case = make("loglikelihood")
    bad = [*case.requests[:8], LikelihoodRequest(context="a", continuation="")]
    found: list[int] = []
    with pytest.raises(AdapterError, match="has no tokens"):
        for answered in case.model.stream(case.call, [bad[:4], bad[4:8], bad[8:]]):
            found += answered.indices
    assert sorted(found) == list(range(8))


def test_what_is_impossible_is_said_at_once(open_folder: Open, with_head: Open) -> None:
    model = open_folder(with_head(AutoModelForSequenceClassification, ("no", "yes")))
    with pytest.raises(CapabilityError, match="has the labels"):
        model.stream(Call(ability="classify", arguments={"labels": ("a", "b")}), [])
    with pytest.raises(CapabilityError, match="'generate'"):
        model.stream(Call(ability="generate"), [])


def test_encoding_during_decoding_is_safe(llama: Any) -> None:
    """Texts are decoded after every token while the next blocks are tokenised."""
    some = [text + " " + "mat " * 30 for text in texts(120)]
    asked = [(text, GenerateOptions(max_tokens=6, stop=("zz",))) for text in some]
    expected = llama.generate([text for text, _ in asked], [options for _, options in asked])
    found = collect(llama.stream(Call(ability="generate"), cut(asked, 2)))
    assert [found[index] for index in range(len(asked))] == expected


def test_counting_tokens_during_a_stream(llama: Any) -> None:
    requests = [LikelihoodRequest(context=text, continuation=" yes") for text in texts(60)]
    expected = llama.token_counts(texts(60))
    stream = llama.stream(Call(ability="loglikelihood"), cut(requests, 2))
    for _ in stream:
        assert llama.token_counts(texts(60)) == expected


def test_blocks_have_the_size_that_options_say(open_bert: Open, open_llama: Open) -> None:
    assert open_bert().block_characters("embed") == 8192
    assert open_bert(batch_tokens=100).block_characters("embed") == 800
    assert open_llama(batch_tokens=100).block_characters("generate") == 3200
    assert open_llama().block_characters("generate") == 32 * 16_384
