from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import AdapterError, UsageError
from harness.models.requests import Call, GenerateOptions, LikelihoodRequest
from harness.testing.probe import agree

Open = Callable[..., Any]
Scarce = Callable[..., AbstractContextManager[list[int]]]
WORDS = ("one", "two", "three", "four", "yes", "no")
TEXTS = [" ".join(WORDS[: 1 + number % 6] * (1 + number % 2)) for number in range(18)]
CHOICES = GenerateOptions(choices=("yes", "no no", "two"))


def embed(model: Any) -> Any:
    return model.embed(TEXTS, side="query")


def loglikelihood(model: Any) -> Any:
    return model.loglikelihood(
        [LikelihoodRequest(context=text, continuation=end) for text in TEXTS for end in ("yes", "no no")]
    )


def generate(model: Any) -> Any:
    return model.generate(TEXTS, [GenerateOptions(max_tokens=2 + number % 3) for number in range(len(TEXTS))])


def rank(model: Any) -> Any:
    return model.generate(TEXTS, [CHOICES] * len(TEXTS))


@pytest.mark.parametrize("family", ["t5", "bart"])
@pytest.mark.parametrize("ask", [embed, loglikelihood, generate, rank], ids=lambda ask: ask.__name__)
def test_too_little_memory_changes_no_answer(
    seq2seq_folders: dict[str, Path], open_seq2seq_folder: Open, scarce: Scarce, family: str, ask: Any
) -> None:
    model = open_seq2seq_folder(seq2seq_folders[family])
    expected, session = ask(model), model._session
    with scarce(session.backbone, 3) as rejected:
        found = ask(model)
        first = len(rejected)
        assert 0 < first < 12
        ask(model)
        assert len(rejected) == first
    assert all(agree(one, other, tolerance=1e-5) for one, other in zip(expected, found, strict=True))
    (notice,) = model.notices()
    name = {"rank": "generate"}.get(ask.__name__, ask.__name__)
    assert re.findall(r"[\d,]*\d", notice) == ["1,024", f"{session.budget.tokens}"]
    assert f"({name})" in notice
    assert model.block_characters(name) == 32 * 1024
    with scarce(session.backbone, 0), pytest.raises(AdapterError, match=r"one sequence of \d+ pieces"):
        ask(model)


def test_too_little_memory_of_the_decoder(t5: Any, scarce: Scarce) -> None:
    """One encoder batch stays, the outputs that go through the decoder become fewer."""
    expected = loglikelihood(t5)
    with scarce(t5._session.network.get_decoder(), 2) as rejected:
        found = loglikelihood(t5)
    assert rejected
    assert all(agree(one, other, tolerance=1e-5) for one, other in zip(expected, found, strict=True))


def test_stopping_between_encoder_and_decoder(t5: Any) -> None:
    call = Call(ability="loglikelihood", stopping=iter([False, False, *[True] * 99]).__next__)
    requests = [LikelihoodRequest(context=text, continuation=" yes") for text in TEXTS]
    assert list(t5.stream(call, [requests])) == []


def test_a_device_map(seq2seq_folders: dict[str, Path], open_seq2seq_folder: Open) -> None:
    plain = open_seq2seq_folder(seq2seq_folders["bart"])
    divided = open_seq2seq_folder(seq2seq_folders["bart"], device_map="auto")
    np.testing.assert_allclose(embed(divided), embed(plain), atol=1e-6)
    assert generate(divided) == generate(plain)
    assert rank(divided) == rank(plain)
    assert divided.identity() == plain.identity()
    assert plain.identity()["device"] == "cpu"


def test_as_many_options_as_prompts(t5: Any) -> None:
    with pytest.raises(UsageError, match="2 prompts and 1 options"):
        t5.generate(["a", "b"], [GenerateOptions(max_tokens=1)])
