"""Errors of too little memory, made on purpose: answers stay the same, batches become smaller, notes are taken."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from harness.errors import AdapterError
from harness.models.capabilities import Choice, SpanQuestion, TextInput
from harness.models.requests import GenerateOptions, LikelihoodRequest
from harness.testing.probe import agree
from harness_hf.inference.pieces import BatchPlan, TokenBudget, by_length, is_shortage

from .conftest import Open, Scarce

Check = Callable[..., None]
TEXTS = [" ".join(["cat", "dog", "the", "mat"][: 1 + number % 4] * (1 + number % 3)) for number in range(24)]
LABELS = ("no", "yes")
CPU = "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"
SHORTAGES = {
    "gpu": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "cpu": RuntimeError(CPU),
    "kernel": RuntimeError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA."),
    "numpy": MemoryError("Unable to allocate 8 GiB"),
}


def classify(model: Any) -> Any:
    return model.classify([TextInput(text=text) for text in TEXTS], LABELS)


def choose(model: Any) -> Any:
    return model.choose([Choice(context=text, choices=("yes", "no")) for text in TEXTS])


def tag(model: Any) -> Any:
    return model.tag([text.split() for text in [*TEXTS, "cat " * 150]])


def extract_spans(model: Any) -> Any:
    return model.extract_spans(
        [SpanQuestion(id=text, question="who", context=text) for text in [*TEXTS, "cat " * 150]]
    )


def embed(model: Any) -> Any:
    return model.embed(TEXTS, side="query")


def hidden_states(model: Any) -> Any:
    found = dict(model.hidden_states([text.split() for text in [*TEXTS, "cat " * 150]], [0, 2]))
    # Numbers next to 22 are sums of such ones: their rounding is that of the largest.
    largest = {number: np.abs(own).max(initial=1) for number, own in found.items()}
    return [found[number] / largest[number] for number in range(len(TEXTS) + 1)]


def loglikelihood(model: Any) -> Any:
    return model.loglikelihood(
        [LikelihoodRequest(context=text, continuation=end) for text in TEXTS for end in (" yes", " no")]
    )


def loglikelihood_of_many_choices(model: Any) -> Any:
    context = "The cat sat on the warm mat, and the dog slept near the door. The dog"
    ends = [f" {' '.join(text.split()[::-1])} end" for text in sorted(set(TEXTS))]
    return model.loglikelihood([LikelihoodRequest(context=context, continuation=end) for end in ends])


def generate(model: Any) -> Any:
    return model.generate(TEXTS, [GenerateOptions(max_tokens=4)] * len(TEXTS))


def rank(model: Any) -> Any:
    return model.generate(TEXTS, [GenerateOptions(choices=("yes", "no", "the mat"))] * len(TEXTS))


HEADS = {
    classify: AutoModelForSequenceClassification,
    choose: AutoModelForMultipleChoice,
    tag: AutoModelForTokenClassification,
    extract_spans: AutoModelForQuestionAnswering,
}
DECODING = [embed, hidden_states, loglikelihood, loglikelihood_of_many_choices, generate, rank]


@pytest.fixture
def check(scarce: Scarce) -> Check:
    """A function that lets memory run out: answers must stay the same, and the model says so once."""

    def check_(model: Any, ask: Callable[[Any], Any], most: int, error: Exception | None = None) -> None:
        expected = ask(model)
        assert not model.notices()
        block = model.block_characters("embed")
        session = model._session
        network = session.backbone if ask in (embed, hidden_states) else session.network
        with scarce(network, most, error) as rejected:
            found = ask(model)
            first = len(rejected)
            again = ask(model)
        assert 0 < first < 12
        assert len(rejected) == first, "the budget is not what is left for the rest of the run"
        for answers in (found, again):
            assert len(answers) == len(expected)
            assert all(
                agree(one, other, tolerance=1e-5) for one, other in zip(expected, answers, strict=True)
            )
        (notice,) = model.notices()
        budget = session.cache_budget if ask is generate else session.budget
        initial, left = budget.initial, budget.tokens
        name = {"rank": "generate", "loglikelihood_of_many_choices": "loglikelihood"}.get(
            ask.__name__, ask.__name__
        )
        assert re.findall(r"[\d,]*\d", notice) == [f"{initial:,}", f"{left:,}"]
        assert f"({name})" in notice
        assert left < initial
        assert model.block_characters("embed") == block

    return check_


@pytest.mark.parametrize("ask", [*HEADS, embed, hidden_states], ids=lambda ask: ask.__name__)
def test_encoders(
    folders: dict[str, Path], open_folder: Open, with_head: Open, check: Check, ask: Any
) -> None:
    labels = LABELS if ask in (classify, tag) else None
    folder = with_head(HEADS[ask], labels) if ask in HEADS else folders["bert"]
    check(open_folder(folder), ask, 3)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("ask", DECODING, ids=lambda ask: ask.__name__)
def test_decoders(
    decoder_folders: dict[str, Path], open_decoder: Open, check: Check, ask: Any, family: str
) -> None:
    check(open_decoder(decoder_folders[family]), ask, 3)


@pytest.mark.parametrize("kind", SHORTAGES)
def test_every_message_of_too_little_memory_is_known(open_bert: Open, check: Check, kind: str) -> None:
    check(open_bert(), embed, 5, SHORTAGES[kind])


def test_other_errors_are_not_taken_for_too_little_memory(bert: Any, scarce: Scarce) -> None:
    with scarce(bert._session.network, 3, RuntimeError("mat1 and mat2 must have the same dtype")):
        with pytest.raises(RuntimeError, match="same dtype"):
            embed(bert)
    assert not bert.notices()
    assert not is_shortage(RuntimeError(3))
    assert not is_shortage(RuntimeError("out of", "memory."))


def test_one_sequence_that_is_too_long_is_one_sentence(bert: Any, scarce: Scarce) -> None:
    with scarce(bert._session.network, 0):
        with pytest.raises(AdapterError, match=r"for one sequence of 14 pieces with '.*bert' \(embed\)"):
            embed(bert)
    # The failed cell does not make the others slow.
    assert bert._session.budget.tokens == bert._session.budget.initial
    assert len(embed(bert)) == len(TEXTS)


def test_kinds_of_work_have_a_notice_each(open_llama: Open, scarce: Scarce) -> None:
    """Texts that are read share the budget; that of texts that are written is the memory of their cache."""
    model = open_llama(batch_tokens=2048)
    session = model._session
    with scarce(session.backbone, 8):
        embed(model)
    first = session.budget.tokens
    with scarce(session.network, 8):
        generate(model)
    with scarce(session.network, 2):
        loglikelihood(model)
    room, left = session.cache_budget.initial, session.cache_budget.tokens
    assert left < room == 2048 * session.row_cost.row(1)
    assert [re.findall(r"[\d,]*\d|\(\w+\)", notice) for notice in model.notices()] == [
        [f"{room:,}", "(generate)", f"{left:,}"],
        ["2,048", "(embed)", f"{first:,}"],
        [f"{first:,}", "(loglikelihood)", f"{session.budget.tokens:,}"],
    ]


def test_the_failed_batch_and_those_after_it_are_packed_anew() -> None:
    budget, runs = TokenBudget("model", 64), []

    def forward(batch: list[int]) -> list[int]:
        runs.append(list(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError
        return [number * 10 for number in batch]

    lengths = [8, 8, 8, 8, 4, 4, 4, 4, 1, 1]
    plan = BatchPlan(ability="embed", pack=by_length(lengths), size=lengths.__getitem__)
    found: dict[int, int] = {}
    for batch, values in budget.run(range(10), forward, plan):
        found.update(zip(batch, values, strict=True))
    assert found == {number: number * 10 for number in range(10)}
    assert runs[0] == list(range(8))
    assert runs[1] == [0, 1, 2, 3]
    assert runs[2] == [0, 1]
    assert budget.tokens <= 16
