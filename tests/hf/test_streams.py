from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from harness.errors import AdapterError, CapabilityError
from harness.models.capabilities import Choice, SpanQuestion, TextInput
from harness.models.requests import (
    Ability,
    Answered,
    Call,
    GenerateOptions,
    HasNotices,
    LikelihoodRequest,
    Streams,
)
from harness.testing.probe import agree

Open = Callable[..., Any]
WORDS = "the cat sat on warm mat and dog slept near door good bad happy sad yes no".split()
LABELS = ("no", "yes")
LONG = 200


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


def cut(requests: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [requests[start : start + size] for start in range(0, len(requests), size)]


HEADS: dict[Ability, tuple[Any, tuple[str, ...] | None]] = {
    "classify": (AutoModelForSequenceClassification, LABELS),
    "choose": (AutoModelForMultipleChoice, None),
    "tag": (AutoModelForTokenClassification, LABELS),
    "extract_spans": (AutoModelForQuestionAnswering, None),
}
ABILITIES: tuple[Ability, ...] = (*HEADS, "embed", "loglikelihood", "generate")


def requests_of(ability: Ability, count: int) -> list[Any]:
    """Requests of mixed lengths, some of which take several windows."""
    long = "cat " * LONG
    some = texts(count)
    match ability:
        case "classify":
            return [TextInput(text=text, text_pair="good" if len(text) % 2 else None) for text in some]
        case "choose":
            return [Choice(context=text, choices=("yes", "no", text)[: 2 + len(text) % 2]) for text in some]
        case "tag":
            return [tuple(text.split()) for text in [*some[1:], long]]
        case "extract_spans":
            return [SpanQuestion(id=text, question="who", context=text) for text in [*some[1:], long]]
        case "loglikelihood":
            return [
                LikelihoodRequest(context=text, continuation=f" {end}")
                for text in some
                for end in ("yes", "no")
            ]
        case "generate":
            free = [
                (text, GenerateOptions(max_tokens=1 + len(text) % 7, stop=("a",)[: len(text) % 2]))
                for text in some
            ]
            return [*free, *((text, GenerateOptions(choices=("yes", "no mat"))) for text in some[:4])]
    return list(some)


@pytest.fixture
def make(folders: dict[str, Path], open_folder: Open, with_head: Open, llama: Any) -> Callable[..., Case]:
    """A function that opens a model for an ability and makes requests of it."""

    def case(ability: Ability, count: int = 24, **options: Any) -> Case:
        arguments: dict[str, Any] = {}
        if ability in HEADS:
            auto_class, labels = HEADS[ability]
            model = open_folder(with_head(auto_class, labels), **options)
            arguments = {"labels": LABELS} if ability == "classify" else {}
        elif ability == "embed":
            model = open_folder(folders["bert"], **options)
            arguments = {"side": "query"}
        else:
            model = llama
        return Case(
            model=model,
            call=Call(ability=ability, arguments=arguments),
            requests=requests_of(ability, count),
        )

    return case


def assert_alike(found: dict[int, Any], expected: dict[int, Any]) -> None:
    assert sorted(found) == sorted(expected)
    for index, answer in expected.items():
        assert agree(answer, found[index], tolerance=1e-5)


@pytest.mark.parametrize("ability", ABILITIES)
def test_blocks_of_any_size_give_the_same(make: Callable[..., Case], ability: Ability) -> None:
    case = make(ability)
    whole = case.answers()
    assert sorted(whole) == list(range(len(case.requests)))
    for size in (1, 5):
        assert_alike(case.answers(cut(case.requests, size)), whole)
    assert isinstance(case.model, Streams)
    assert isinstance(case.model, HasNotices)
    assert not case.model.notices()


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


@pytest.mark.parametrize("ability", ABILITIES)
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


def test_what_is_impossible_is_said_at_once(make: Callable[..., Case]) -> None:
    model = make("classify").model
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


def test_blocks_have_the_size_that_options_say(
    folders: dict[str, Path], decoder_folders: dict[str, Path], open_folder: Open, open_decoder: Open
) -> None:
    assert open_folder(folders["bert"]).block_characters("embed") == 8192
    assert open_folder(folders["bert"], batch_tokens=100).block_characters("embed") == 800
    assert open_decoder(decoder_folders["llama"], batch_tokens=100).block_characters("generate") == 3200
    assert open_decoder(decoder_folders["llama"]).block_characters("generate") == 32 * 16_384


def test_methods_are_streams_in_order(make: Callable[..., Case]) -> None:
    case = make("embed")
    vectors = case.model.embed(case.requests, side="query")
    np.testing.assert_array_equal(vectors, np.stack([case.answers()[index] for index in range(24)]))
