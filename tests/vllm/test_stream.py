"""Answers as they come: those of the plain methods, every one once, and what ends a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest

from harness.errors import AdapterError, CapabilityError
from harness.models.requests import Answered, Call, GenerateOptions, LikelihoodRequest, Streams

Ranker = Callable[..., Any]
OPTIONS = GenerateOptions(max_tokens=8)
PAIRS = [(f"number {number}", OPTIONS) for number in range(60)]
REQUESTS = [
    LikelihoodRequest(context=context, continuation=rest)
    for number in range(20)
    for context, rest in ((f"the {number}", " yes no"), (f"the {number} yes", " no"), ("cat", f" {number}"))
]


def collect(stream: Iterator[Answered]) -> dict[int, Any]:
    """The answers by index; an index that comes twice is an error."""
    found: dict[int, Any] = {}
    for answered in stream:
        for index, answer in zip(answered.indices, answered.answers, strict=True):
            assert index not in found
            found[index] = answer
    return found


def parts(requests: Sequence[Any], *sizes: int) -> list[Sequence[Any]]:
    rest = iter(requests)
    return [*(list(islice(rest, size)) for size in sizes), list(rest)]


@pytest.mark.parametrize("sizes", [(), (0, 7, 1), (59,)], ids=["one block", "four blocks", "two blocks"])
@pytest.mark.parametrize("ability", ["generate", "loglikelihood"])
def test_a_stream_gives_what_the_method_gives(ranker: Ranker, ability: Any, sizes: tuple[int, ...]) -> None:
    model = ranker(concurrency=4)
    streams: object = model
    assert isinstance(streams, Streams)
    assert model.block_characters(ability) is None
    if ability == "generate":
        requests: Sequence[Any] = PAIRS
        wanted = model.generate([prompt for prompt, _ in PAIRS], [OPTIONS] * len(PAIRS))
    else:
        requests, wanted = REQUESTS, model.loglikelihood(REQUESTS)
    found = collect(model.stream(Call(ability=ability), parts(requests, *sizes)))
    assert [found[index] for index in range(len(requests))] == wanted
    assert len(set(map(repr, wanted))) > 20, "different requests have equal answers"
    assert collect(model.stream(Call(ability=ability), [[], []])) == {}


def test_a_stream_of_vectors_gives_what_embed_gives(embedder: Ranker, stand_in: Any) -> None:
    model = embedder(query_prefix="query: ")
    texts = [f"text {number}" for number in range(70)]
    call = Call(ability="embed", arguments={"side": "query", "options": None})
    wanted = model.embed(texts, side="query")
    for sizes in ((), (1, 40)):
        found = collect(model.stream(call, parts(texts, *sizes)))
        np.testing.assert_array_equal(np.stack([found[index] for index in range(70)]), wanted)
    sent = [len(request["input"]) for request in stand_in.posted("embeddings")[-4:]]
    assert sorted(sent) == [1, 8, 29, 32], "a batch crossed the border of a block"


def test_abilities_of_other_models_are_rejected(ranker: Ranker, chat: Ranker, embedder: Ranker) -> None:
    for model in (
        ranker(),
        chat(),
        embedder(),
    ):
        with pytest.raises(CapabilityError, match="'classify'"):
            model.stream(Call(ability="classify"), [])


def test_equal_tokens_are_sent_once_and_answered_all(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(scoring="prompt_logprobs")
    pair = [
        LikelihoodRequest(context="the", continuation=" yes no red"),
        LikelihoodRequest(context="the yes", continuation=" no red"),
    ]
    model.loglikelihood(pair)  # it learns what the server can do
    stand_in.requests.clear()
    found = list(model.stream(Call(ability="loglikelihood"), [pair * 3]))
    assert len(stand_in.posted("completions")) == 1
    assert [sorted(answered.indices) for answered in found] == [[0, 1, 2, 3, 4, 5]]


def test_answers_come_while_others_are_under_way(ranker: Ranker, stand_in: Any) -> None:
    stand_in.pause = 0.02
    stream = ranker(concurrency=4).stream(Call(ability="generate"), [PAIRS])
    next(stream)
    assert len(stand_in.posted("completions")) <= 1 + 2 * 4
    stream.close()


def test_few_requests_are_handed_over_ahead(ranker: Ranker) -> None:
    taken: list[int] = []

    class Watched(list[int]):
        def __getitem__(self, index: Any) -> Any:
            taken.append(index)
            return super().__getitem__(index)

    numbers = Watched(range(1000))
    stream = ranker(concurrency=4)._session.stream(lambda number: number, numbers)
    for count in range(1, 100):
        next(stream)
        assert len(taken) <= 2 * 4 + count - 1
    assert len(dict(stream)) == 1000 - 99
    assert taken == list(range(1000))


@pytest.mark.parametrize("ability", ["generate", "loglikelihood"])
def test_who_wants_to_stop_gets_what_is_under_way(ranker: Ranker, stand_in: Any, ability: Any) -> None:
    model = ranker(concurrency=4, prompts_per_request=1, scoring="prompt_logprobs")
    model.loglikelihood(REQUESTS[:2])  # it learns what the server can do
    stand_in.requests.clear()
    stand_in.pause = 0.05
    stop = threading.Event()
    requests = PAIRS if ability == "generate" else REQUESTS
    found: dict[int, Any] = {}
    for answered in model.stream(Call(ability=ability, stopping=stop.is_set), [requests]):
        found.update(zip(answered.indices, answered.answers, strict=True))
        stop.set()
    posted = len(stand_in.posted("completions"))
    assert 1 <= posted <= 2 * 4, "a request began behind the wish"
    answers = {tuple(request["prompt"]) for request in stand_in.posted("completions")}
    assert len(found) >= len(answers) == posted, "a request under way was lost"
    assert collect(model.stream(Call(ability=ability, stopping=stop.is_set), [requests])) == {}
    assert len(stand_in.posted("completions")) == posted


def test_the_wish_to_stop_is_seen_while_the_server_is_silent(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(concurrency=1, retries=0, timeout=10)
    stand_in.pause = 0.6
    stop = threading.Event()
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    assert list(collect(model.stream(Call(ability="generate", stopping=stop.is_set), [PAIRS]))) == [0]
    timer.join()
    assert len(stand_in.posted("completions")) == 1


def test_a_remote_tokenizer_stops_too(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(tokenizer=None, concurrency=2)
    stand_in.pause = 0.05
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    assert collect(model.stream(Call(ability="loglikelihood", stopping=stop.is_set), [REQUESTS])) == {}
    assert len(stand_in.posted("tokenize")) < 40
    assert stand_in.posted("completions") == []


def test_a_closed_stream_calls_its_requests_off(ranker: Ranker, stand_in: Any) -> None:
    stand_in.hang_seconds = 60.0
    model = ranker(concurrency=4)
    stand_in.faults += ["none"] * 3 + ["hang"] * 50
    stream = model.stream(Call(ability="generate"), [PAIRS])
    for _ in range(3):
        next(stream)
    started = time.monotonic()
    stream.close()
    assert time.monotonic() - started < 30
    time.sleep(0.5)  # what was on its way when the stream was closed arrives
    posted = len(stand_in.posted("completions"))
    stand_in.faults.clear()
    assert len(model.generate(["a", "b"], [OPTIONS] * 2)) == 2, "it works again afterwards"
    assert len(stand_in.posted("completions")) == posted + 2


def test_a_failure_comes_behind_the_answers_under_way(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(concurrency=4)
    stand_in.pause = 0.1
    stand_in.faults += ["400"]
    found: dict[int, Any] = {}
    with pytest.raises(AdapterError, match="answered 400: planted fault"):
        for answered in model.stream(Call(ability="generate"), [PAIRS]):
            found.update(zip(answered.indices, answered.answers, strict=True))
    posted = len(stand_in.posted("completions"))
    assert posted >= 4
    assert len(found) == posted - 1, "an answer was lost"
    stand_in.pause = 0.0
    assert len(collect(model.stream(Call(ability="generate"), [PAIRS]))) == len(PAIRS), "it works again"


def test_a_server_that_has_gone_is_not_asked_for_every_request_in_turn(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(concurrency=4, retries=3)
    stream = model.stream(Call(ability="generate"), [PAIRS])
    next(stream)
    stand_in.shutdown()
    stand_in.server_close()
    stand_in.faults += ["close"] * 100  # its threads would go on to answer on connections that are open
    with pytest.raises(AdapterError, match=r"nothing accepts connections there|closed the connection"):
        collect(stream)
    assert model._session.client.repeated <= 2 * 4 * 3


def test_who_hangs_is_not_awaited_where_the_server_has_gone(ranker: Ranker, stand_in: Any) -> None:
    stand_in.hang_seconds = 60.0
    model = ranker(concurrency=2, retries=1)
    stand_in.faults += ["hang"]
    stream = model.stream(Call(ability="generate"), [PAIRS])
    next(stream)
    stand_in.shutdown()
    stand_in.server_close()
    stand_in.faults += ["close"] * 100
    started = time.monotonic()
    with pytest.raises(AdapterError, match="nothing accepts connections there"):
        collect(stream)
    assert time.monotonic() - started < 30
