"""Ranking and writing: what is asked in which order, what is kept of the answers, which shots are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from harness.data.records import ClassificationExample, Prediction
from harness.errors import ContractError
from harness.models.requests import Generated, GenerateOptions, LikelihoodAnswer, LikelihoodRequest, Prompt
from harness.prompts.asking import generate_answers, rank_choices
from harness.prompts.preset import PromptItem, compile_prompt
from harness.prompts.prompter import Prompter
from harness.specs.documents import PromptSpec

NAMES = ("first", "second", "third")
WORDS = ("one", "two two", "drei drei drei")


class Asked:
    """A model whose tokens are words; what it is asked is kept."""

    def __init__(self, sums: dict[str, float] | None = None, *, context: int | None = None) -> None:
        self.requests: list[LikelihoodRequest] = []
        self.prompts: list[Prompt] = []
        self.options: list[GenerateOptions] = []
        self.counted: list[list[Prompt]] = []
        self._sums = sums or {}
        self._context = context

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        self.counted.append(list(prompts))
        return [len(str(prompt).split()) for prompt in prompts]

    def context_length(self) -> int | None:
        return self._context

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        self.requests += requests
        return [self._answer(request) for request in requests]

    def _answer(self, request: LikelihoodRequest) -> LikelihoodAnswer:
        words = request.continuation.split()
        total = self._sums.get(request.context + request.continuation, self._sums.get(words[0], -1.0))
        return LikelihoodAnswer(
            token_logprobs=(total / len(words),) * len(words),
            is_greedy=words[0] == "one",
            byte_length=len(request.continuation.encode()),
            truncated="cut" in request.context,
        )

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        self.prompts += prompts
        self.options += options
        return [
            Generated(
                text=str(prompt).rsplit("Q: ", maxsplit=1)[-1].split()[0],
                tokens=4,
                finished=True,
                truncated="cut" in str(prompt),
            )
            for prompt in prompts
        ]


def _example(identifier: str, text: str = "some words") -> ClassificationExample:
    return ClassificationExample(id=identifier, inputs={"text": text}, label="second")


def _item(example: Any) -> PromptItem:
    return PromptItem(fields=example.inputs, choices=NAMES, texts=WORDS, gold=example.label)


def _prompter(shots: int = 0, pool: Sequence[Any] = (), **changed: Any) -> Prompter:
    given = {
        "prompt": "own/p",
        "tasks": ("own",),
        "kind": "multiple_choice",
        "formulation": "cloze",
        "description": "d",
        "source": "s",
        "item": "Q: {text}\nA:",
        "choice": " {choice}",
        "max_tokens": 5,
    }
    prompt = compile_prompt(PromptSpec(**{**given, **changed}), "en")
    return Prompter(prompt=prompt, item=_item, task="own", language="en", shots=shots, pool=pool)


def _rank(model: Any, examples: Sequence[Any], prompter: Prompter | None = None) -> list[Prediction]:
    return rank_choices(model, examples, prompter or _prompter())


def _write(model: Any, examples: Sequence[Any], prompter: Prompter | None = None) -> list[Prediction]:
    asking = prompter or _prompter()

    def read(example: Any, text: str) -> tuple[Any, bool]:
        return {"label": text}, text != "bad"

    return generate_answers(model, examples, asking, asking.options, read)


def test_every_choice_of_every_item_is_asked_in_their_order() -> None:
    model = Asked()
    _rank(model, [_example("1", "x"), _example("2", "y")])
    asked = [(request.context, request.continuation) for request in model.requests]
    assert asked == [(f"Q: {text}\nA:", f" {word}") for text in "xy" for word in WORDS]


def test_the_choice_of_the_largest_sum_is_the_answer() -> None:
    """By tokens, characters and bytes other views are made later; their numbers are kept."""
    [prediction] = _rank(Asked({"one": -3.0, "two": -2.5, "drei": -9.0}), [_example("1")])
    assert prediction.output == {
        "label": "second",
        "scores": [-3.0, -2.5, -9.0],
        "tokens": [1, 2, 3],
        "characters": [len(f" {word}") for word in WORDS],
        "bytes": [len(f" {word}".encode()) for word in WORDS],
        "greedy": [True, False, False],
    }
    assert not prediction.truncated
    assert not prediction.unparsed


def test_choices_without_the_item_are_asked_once() -> None:
    model = Asked({"A: one": -7.0})
    predictions = _rank(model, [_example("1"), _example("2")], _prompter(unconditional="A:"))
    alone = [request for request in model.requests if request.context == "A:"]
    assert [request.continuation for request in alone] == [f" {word}" for word in WORDS]
    assert [prediction.output["unconditional"] for prediction in predictions] == [[-7.0, -1.0, -1.0]] * 2


def test_an_item_is_truncated_where_one_of_its_choices_is() -> None:
    predictions = _rank(Asked(), [_example("1"), _example("2", "cut it")])
    assert [prediction.truncated for prediction in predictions] == [False, True]


class Broken(Asked):
    """A model that breaks its contract."""

    def __init__(self, fault: str) -> None:
        super().__init__({"one": float("-inf")} if fault == "infinite" else {})
        self._fault = fault

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        answers = super().loglikelihood(requests)
        return answers[:-1] if self._fault == "count" else answers

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        answers = super().generate(prompts, options)
        return answers[:-1] if self._fault == "count" else [answer.text for answer in answers]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("ask", "fault", "message"),
    [
        (_rank, "count", r"loglikelihood\(\) returned 2 answers to 3 requests\."),
        (_rank, "infinite", r"loglikelihood\(\) returned a log-probability that is not finite\."),
        (_write, "count", r"generate\(\) returned 0 answers to 1 prompts\."),
        (_write, "texts", r"generate\(\) returned 1 answers to 1 prompts\."),
    ],
)
def test_a_broken_contract_is_reported(ask: Callable[..., Any], fault: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        ask(Broken(fault), [_example("1")])


def test_the_written_text_is_kept_next_to_the_parsed_answer() -> None:
    model = Asked()
    predictions = _write(model, [_example("1", "good one"), _example("2", "bad cut")])
    assert [prediction.output for prediction in predictions] == [
        {"label": "good", "raw": "good"},
        {"label": "bad", "raw": "bad"},
    ]
    assert [prediction.unparsed for prediction in predictions] == [False, True]
    assert [prediction.truncated for prediction in predictions] == [False, True]
    assert [prediction.tokens for prediction in predictions] == [4, 4]
    assert [option.max_tokens for option in model.options] == [5, 5]
    assert len({option.seed for option in model.options}) == 2


POOL = tuple(_example(f"s{number}", "a b c") for number in range(6))
"""A shot has seven words: ``Q: a b c A: two two``; an item has ``Q: some words A:``, four."""


@pytest.mark.parametrize(
    ("context", "kept"),
    # Ranked, an item needs room for its longest choice too: 4 + 3 words.
    [(None, 3), (28, 3), (27, 2), (21, 2), (20, 1), (14, 1), (13, 0), (7, 0), (1, 0)],
)
def test_shots_are_dropped_one_by_one_until_an_item_fits(context: int | None, kept: int) -> None:
    model = Asked(context=context)
    [prediction] = _rank(model, [_example("1")], _prompter(3, POOL))
    assert prediction.dropped_shots == 3 - kept
    assert {request.context.count("Q:") for request in model.requests} == {kept + 1}
    assert all(request.context.endswith("Q: some words\nA:") for request in model.requests)


@pytest.mark.parametrize(("context", "kept"), [(30, 3), (29, 2), (16, 1), (9, 0), (8, 0)])
def test_what_is_written_needs_room_too(context: int, kept: int) -> None:
    """A shot has seven words, the item four, and its answer five tokens at most."""
    model = Asked(context=context)
    [prediction] = _write(model, [_example("1")], _prompter(3, POOL))
    assert (prediction.dropped_shots, str(model.prompts[0]).count("Q:")) == (3 - kept, kept + 1)


def test_every_item_drops_its_own_shots_and_keeps_the_first() -> None:
    model = Asked(context=25)
    examples = [_example("1"), _example("2", "a very long item of so many words " * 2)]
    predictions = _write(model, examples, prompter := _prompter(2, POOL))
    assert [prediction.dropped_shots for prediction in predictions] == [0, 2]
    assert model.prompts[0] == prompter.generation(examples[0], 2)
    assert model.prompts[1] == prompter.generation(examples[1], 0)
    # What fits is not counted again.
    assert [len(batch) for batch in model.counted[:-1]] == [2, 1, 1]
    assert model.counted[-1] == model.prompts  # for the ledger, as they were sent


def test_a_model_that_counts_no_tokens_gets_all_shots() -> None:
    class Plain:
        def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
            assert all(str(prompt).count("Q:") == 4 for prompt in prompts)
            return [Generated(text="x", tokens=1, finished=True) for _ in prompts]

    [prediction] = _write(Plain(), [_example("1")], _prompter(3, POOL))
    assert prediction.dropped_shots == 0
    [prediction] = _write(Asked(context=100), [_example("1")], _prompter(9, POOL[:2]))
    assert prediction.dropped_shots == 0, "the pool has no more"


@pytest.mark.parametrize("ask", [_rank, _write])
def test_answers_do_not_depend_on_the_batch_or_its_order(ask: Callable[..., Any]) -> None:
    examples = [_example(str(number), "word " * (1 + number)) for number in range(7)]

    def asked(*batches: Sequence[Any]) -> dict[str, Prediction]:
        found: dict[str, Prediction] = {}
        for batch in batches:
            model = Asked(context=24)
            for prediction in ask(model, batch, _prompter(3, POOL)):
                found[prediction.id] = prediction
        return found

    whole = asked(examples)
    assert len({prediction.dropped_shots for prediction in whole.values()}) > 1
    assert asked(examples[::-1]) == whole
    assert asked(*[[example] for example in examples]) == whole


@pytest.mark.parametrize(
    ("sums", "tied"),
    [((-1.0, -1.0, -1.0), True), ((-2.0, -1.0, -1.0), True), ((-1.0, -2.0, -2.0), False)],
)
def test_equal_sums_of_the_best_choices_are_a_tie_that_the_first_wins(
    sums: tuple[float, ...], tied: bool
) -> None:
    given = {word.split()[0]: value for word, value in zip(WORDS, sums, strict=True)}
    [prediction] = _rank(Asked(sums=given), [_example("a")])
    assert prediction.tied is tied
    assert prediction.output["label"] == NAMES[int(np.argmax(sums))]


def test_stop_strings_are_cut_for_every_adapter() -> None:
    """Also those that the adapter ignores; the reasoning may hold them."""

    class Ignores(Asked):
        def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
            return [Generated(text="<think>a\nb</think>one\nQ: two\none", tokens=9, finished=False)]

    seen: list[str] = []

    def read(example: Any, text: str) -> tuple[Any, bool]:
        seen.append(text)
        return {"label": text}, True

    prompter = _prompter()
    [prediction] = generate_answers(Ignores(), [_example("1")], prompter, prompter.options, read)
    assert (seen, prediction.unfinished) == (["one"], False)
    assert (prediction.reasoning, prediction.output["raw"]) == ("a\nb", "one\nQ: two\none")
