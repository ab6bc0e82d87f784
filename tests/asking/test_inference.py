"""Requests of a run: cut into blocks, sent once, and answered from the journal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.errors import ContractError
from harness.models.capabilities import EmbedOptions, TextInput
from harness.models.requests import Answered, Call, Generated, GenerateOptions, LikelihoodRequest
from harness.running.inference import BLOCK_CHARACTERS, CachedModel, Watch, plan_blocks
from harness.running.processes import Interrupted, Interruption

MakeCachedModel = Callable[..., CachedModel]
LABELS = ("no", "yes")


def texts(*lengths: int) -> list[TextInput]:
    return [TextInput(text="x" * length) for length in lengths]


def classified(
    cached_model: CachedModel, model: Any, lengths: Sequence[int], watch: Watch | None = None, **identity: str
) -> list[float]:
    """The first column of what the model answers."""
    wrapped = cached_model.wrap(model, {**model.identity(), **identity}, watch)
    return [round(float(row[0]) * 3) for row in wrapped.classify(texts(*lengths), LABELS)]


def counts(cached_model: CachedModel) -> tuple[int, int, int]:
    return cached_model.counts.planned, cached_model.counts.asked, cached_model.counts.reused


class Reporting(Watch):
    """Keeps the states of the meter, and wishes to stop once a number of requests are answered."""

    def __init__(self, interruption: Interruption | None = None, at: int = 0) -> None:
        self.reports: list[tuple[int, int]] = []
        self._interruption, self._at = interruption, at

    def answered(self, done: int, total: int) -> None:
        self.reports.append((done, total))
        if self._interruption is not None and done == self._at:
            self._interruption._asked = 0.0


@pytest.mark.parametrize("kind", ["plain", "streaming"])
def test_answers_come_in_the_order_of_the_requests(
    make_cached_model: MakeCachedModel, request: pytest.FixtureRequest, kind: str
) -> None:
    model, cached_model, watch = request.getfixturevalue(kind)(), make_cached_model(), Reporting()
    lengths = [3, 30, 1, 12, 7, 25, 0, 9]
    assert classified(cached_model, model, lengths, watch) == lengths
    assert sorted(len(item.text) for item in model.asked) == sorted(lengths)
    assert len(model.asked[0].text) == 30, "the longest first"
    assert counts(cached_model) == (8, 8, 0)
    assert (watch.reports[0], watch.reports[-1]) == ((0, 8), (8, 8))
    assert [done for done, _ in watch.reports] == sorted(done for done, _ in watch.reports)


def test_a_plain_adapter_gets_blocks_of_so_many_characters(
    make_cached_model: MakeCachedModel, plain: Any
) -> None:
    model, quarter = plain(), BLOCK_CHARACTERS // 4
    lengths = [quarter - number for number in range(9)]
    assert classified(make_cached_model(), model, lengths) == lengths
    assert [len(call) for call in model.calls] == [4, 4, 1]


def test_a_request_that_repeats_is_asked_once(make_cached_model: MakeCachedModel, plain: Any) -> None:
    model, cached_model = plain(), make_cached_model()
    assert classified(cached_model, model, [5, 2, 5, 5, 2]) == [5, 2, 5, 5, 2]
    assert len(model.asked) == 2
    assert counts(cached_model) == (5, 2, 3)
    assert classified(cached_model, model, [2, 4]) == [2, 4]
    assert counts(cached_model) == (7, 3, 4)
    classified(cached_model, model, [2], weights="others")
    wrapped = cached_model.wrap(model, model.identity())
    wrapped.classify(texts(2), ("yes", "no"))
    assert len(model.asked) == 5, "another model and other arguments are asked"
    assert wrapped.tag([]) == wrapped.loglikelihood([]) == []
    assert wrapped.classify([], LABELS).shape == (0,)
    assert counts(cached_model) == (9, 5, 4)
    assert not hasattr(wrapped, "embed") and wrapped.identity() == model.identity()


@pytest.mark.parametrize("kind", ["plain", "streaming"])
def test_what_the_journal_holds_is_not_asked(
    make_cached_model: MakeCachedModel, request: pytest.FixtureRequest, kind: str
) -> None:
    make = request.getfixturevalue(kind)
    first = make_cached_model()
    rows = first.wrap(make(), make().identity()).classify(texts(3, 30, 1), LABELS)
    first.journal.close()
    second, model = make_cached_model(), make()
    again = second.wrap(model, model.identity()).classify(texts(3, 30, 1), LABELS)
    assert (again.dtype, again.tobytes()) == (np.float32, rows.tobytes())
    assert model.calls == []
    assert counts(second) == (3, 0, 3)
    assert classified(second, model, [1, 8]) == [1, 8]
    assert [len(item.text) for item in model.asked] == [8]


def test_requests_of_one_group_are_asked_together(make_cached_model: MakeCachedModel, plain: Any) -> None:
    model = plain()
    contexts = ["c" * (BLOCK_CHARACTERS // 3), "d" * (BLOCK_CHARACTERS // 3)]
    requests = [
        LikelihoodRequest(context=context, continuation=word)
        for word in ("a", "bb", "ccc")
        for context in contexts
    ]
    answers = make_cached_model().wrap(model, {}).loglikelihood(requests)
    assert [answer.total for answer in answers] == [-len(item.continuation) / 7 for item in requests]
    assert [{item.context for item in call} for call in model.calls] == [{context} for context in contexts]


def test_all_other_abilities(make_cached_model: MakeCachedModel) -> None:
    calls: list[Any] = []

    class All:
        def choose(self, items: Any) -> Any:
            return [tuple(float(len(choice)) for choice in item) for item in items]

        def embed(self, texts: Any, *, side: Any, options: Any = None) -> Any:
            calls.append((side, options))
            return np.eye(len(texts), dtype=np.float32)

        def generate(self, prompts: Any, options: Any) -> Any:
            calls.append((prompts, options))
            return [Generated(text=prompt, tokens=1, finished=True) for prompt in prompts]

        def token_counts(self, prompts: Any) -> Any:
            return [len(prompt) for prompt in prompts]

        def context_length(self) -> int:
            return 7

        def hidden_states(self, sentences: Any, layers: Any) -> Any:
            yield 0, layers

        def layer_count(self) -> int:
            return 3

    wrapped = make_cached_model().wrap(All(), {})
    assert wrapped.embed(["a", "b"], side="query", options=EmbedOptions(layer=2)).shape == (2, 2)
    assert calls == [("query", EmbedOptions(layer=2))]
    options = [GenerateOptions(max_tokens=number) for number in (1, 2)]
    assert [answer.text for answer in wrapped.generate(["p", "qq"], options)] == ["p", "qq"]
    assert calls[-1] == (["qq", "p"], options[::-1])
    assert (wrapped.token_counts(["abc"]), wrapped.context_length(), wrapped.layer_count()) == ([3], 7, 3)
    assert list(wrapped.hidden_states([], [1])) == [(0, [1])]
    with pytest.raises(ValueError, match="zip"):
        wrapped.generate(["p"], [])


class Faulty:
    """Streams the given answers."""

    def __init__(self, *given: tuple[list[int], list[list[float]]]) -> None:
        self._given = given

    def block_characters(self, ability: str) -> None:
        return None

    def classify(self, inputs: Any, labels: Any) -> Any:
        raise AssertionError("it streams")

    def stream(self, call: Call, blocks: Any) -> Iterator[Answered]:
        assert call.ability == "classify"
        assert call.arguments == {"labels": LABELS}
        for indices, answers in self._given:
            yield Answered(indices=indices, answers=answers)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([([0], [[1.0]])], "1 answers to 2 requests"),
        ([], "0 answers to 2 requests"),
        ([([0], [[1.0]]), ([0], [[1.0]])], "twice"),
        ([([0, 0], [[1.0], [1.0]])], "twice"),
        ([([0, 1], [[1.0]])], "twice, or none"),
        ([([0, 1], [[1.0], [1.0, 2.0]])], r"\[\(1,\), \(2,\)\]"),
    ],
)
def test_a_stream_that_breaks_its_contract(
    make_cached_model: MakeCachedModel, given: Any, reason: str
) -> None:
    wrapped = make_cached_model().wrap(Faulty(*given), {})
    with pytest.raises(ContractError, match=reason):
        wrapped.classify(texts(3, 4), LABELS)


def test_what_came_before_a_fault_is_kept(make_cached_model: MakeCachedModel, plain: Any) -> None:
    class Short(plain):  # type: ignore[misc]
        def classify(self, inputs: Any, labels: Any) -> Any:
            return super().classify(inputs, labels)[: 9 - len(self.asked)]

    half = BLOCK_CHARACTERS // 2
    cached_model = make_cached_model()
    with pytest.raises(ContractError, match=r"classify\(\) returned 1 answers to 2 requests\."):
        cached_model.wrap(Short(), {"adapter": "plain", "says": "1.0"}).classify(
            texts(*range(half, half - 10, -1)), LABELS
        )
    assert counts(cached_model) == (0, 0, 0)
    again, model = make_cached_model(), plain()
    classified(again, model, range(half, half - 10, -1))
    assert [half - len(item.text) for item in model.asked] == [6, 7, 8, 9]
    assert counts(again) == (10, 4, 6)


def test_an_answer_that_is_not_finite_is_given_on_and_forgotten(
    make_cached_model: MakeCachedModel, plain: Any
) -> None:
    class Spoiled(plain):  # type: ignore[misc]
        def classify(self, inputs: Any, labels: Any) -> Any:
            scores = super().classify(inputs, labels)
            scores[[len(item.text) == 4 for item in inputs]] = np.nan
            return scores

    identity = {"adapter": "plain"}
    rows = make_cached_model().wrap(Spoiled(), identity).classify(texts(3, 4, 5), LABELS)
    assert np.isnan(rows).all(axis=1).tolist() == [False, True, False]
    model = plain()
    rows = make_cached_model().wrap(model, identity).classify(texts(3, 4, 5), LABELS)
    assert np.isfinite(rows).all()
    assert [len(item.text) for item in model.asked] == [4]


@pytest.mark.parametrize("kind", ["plain", "streaming"])
def test_a_stop_in_the_middle_keeps_what_was_answered(
    make_cached_model: MakeCachedModel, request: pytest.FixtureRequest, kind: str
) -> None:
    make = request.getfixturevalue(kind)
    interruption = Interruption()
    size = BLOCK_CHARACTERS if kind == "plain" else make.size
    lengths = list(range(size, size - 6, -1))
    watch = Reporting(interruption, at=2)
    cached_model = make_cached_model(interruption=interruption)
    with pytest.raises(Interrupted):
        classified(cached_model, make(), lengths, watch)
    assert watch.reports == [(0, 6), (1, 6), (2, 6)]
    assert counts(cached_model) == (0, 0, 0)
    again, model = make_cached_model(), make()
    assert classified(again, model, lengths) == lengths
    assert [len(item.text) for item in model.asked] == lengths[2:]
    assert counts(again) == (6, 4, 2)


LENGTHS = st.lists(st.integers(0, 60), max_size=30)


@given(LENGTHS, st.none() | st.integers(1, 100), st.data())
def test_every_request_is_in_one_block(lengths: list[int], size: int | None, data: st.DataObject) -> None:
    groups: Sequence[Hashable] | None = None
    if data.draw(st.booleans()):
        groups = data.draw(st.lists(st.sampled_from("abc"), min_size=len(lengths), max_size=len(lengths)))
    blocks = plan_blocks(lengths, groups, size)
    assert sorted(number for block in blocks for number in block) == list(range(len(lengths)))
    assert all(blocks)
    names = groups if groups is not None else list(range(len(lengths)))
    weight = {name: max(lengths[i] for i in range(len(lengths)) if names[i] == name) for name in names}
    for block in blocks:
        inside = {names[number] for number in block}
        assert sum(weight[names[number]] for number in block) <= (size or 10**9) or len(inside) == 1
        for name in inside:  # whole and in order
            own = [number for number in block if names[number] == name]
            assert own == [number for number in range(len(lengths)) if names[number] == name]
    order = [weight[names[number]] for block in blocks for number in block]
    assert order == sorted(order, reverse=True)
    if size is None:
        assert len(blocks) <= 1


@pytest.mark.parametrize(
    ("lengths", "groups", "size", "expected"),
    [
        ([], None, 10, []),
        ([], [], None, []),
        ([3, 5, 4], None, None, [[1, 2, 0]]),
        ([3, 5, 4], None, 9, [[1, 2], [0]]),
        ([3, 3, 3], None, 6, [[0, 1], [2]]),
        ([50, 1, 1], None, 10, [[0], [1, 2]]),
        ([0, 0, 0], None, 1, [[0, 1, 2]]),
        ([2, 9, 3, 9], ["a", "b", "a", "b"], 10, [[1, 3], [0, 2]]),
        ([1] * 10, None, 4, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
    ],
)
def test_blocks(
    lengths: list[int], groups: list[Hashable] | None, size: int | None, expected: object
) -> None:
    assert plan_blocks(lengths, groups, size) == expected
