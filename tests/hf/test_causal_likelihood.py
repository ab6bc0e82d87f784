from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.errors import AdapterError
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest
from harness.testing.examples import SENTENCES
from harness_hf import loading
from harness_hf.causal import likelihood, session as causal_session

from .conftest import PIECE_LIMIT, Open, save_decoder


def request(context: str, continuation: str) -> LikelihoodRequest:
    return LikelihoodRequest(context=context, continuation=continuation)


def choices() -> list[LikelihoodRequest]:
    """Items whose choices share a context, of one token and of several, with contexts of many lengths."""
    asked = []
    for text in SENTENCES:
        cut = text[:12]
        asked += [request(cut, choice) for choice in (" yes", " no", " a b c", " the cat sat near", "!", "?")]
        asked += [request("", f"{cut}, {word} der Hund") for word in ("yes", "no", "also")]
    return asked


def naive(folder: Path, asked: LikelihoodRequest) -> tuple[list[float], bool]:
    """Score one request with transformers alone: one text, full logits, no cache."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    context = tokenizer(asked.context)["input_ids"]
    ids = tokenizer(asked.context + asked.continuation)["input_ids"]
    assert ids[: len(context)] == context
    if not context:
        context, ids = [tokenizer.eos_token_id], [tokenizer.eos_token_id, *ids]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].float()
    logprobs = logits.log_softmax(dim=-1)
    places = range(len(context), len(ids))
    greedy = all(int(logits[place - 1].argmax()) == ids[place] for place in places)
    return [float(logprobs[place - 1, ids[place]]) for place in places], greedy


def assert_same(ones: Sequence[LikelihoodAnswer], others: Sequence[LikelihoodAnswer]) -> None:
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)
        assert (one.is_greedy, one.straddles, one.truncated) == (
            other.is_greedy,
            other.straddles,
            other.truncated,
        )


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_numbers_are_those_of_a_naive_loop(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    folder = decoder_folders[family]
    asked = choices()[:22]
    for one, answer in zip(asked, open_decoder(folder).loglikelihood(asked), strict=True):
        logprobs, greedy = naive(folder, one)
        assert answer.token_logprobs == pytest.approx(logprobs, abs=1e-4)
        assert answer.total == pytest.approx(sum(logprobs), abs=1e-3)
        assert answer.is_greedy == greedy
        assert answer.byte_length == len(one.continuation.encode())
        assert not answer.straddles
        assert not answer.truncated


def test_standard_scores_are_those_of_full_distributions(open_llama: Open) -> None:
    """Min-K%++: (log p - mean) / sd, both over the vocabulary under the model's own distribution."""
    texts = [text for text in SENTENCES if text][:6]
    decoder = open_llama(batch_tokens=60)
    network, tokens = decoder._session.network, decoder._session.tokens
    for text, scores in zip(texts, decoder.standard_scores(texts), strict=True):
        [one] = tokens.encode_requests([""], [text])
        with torch.no_grad():
            logits = network(torch.tensor([one.ids])).logits[0].double()
        for place, score in enumerate(scores, start=one.start):
            logprobs = logits[place - 1].log_softmax(dim=-1)
            values, shares = logprobs.numpy(), logprobs.exp().numpy()
            mean = np.average(values, weights=shares)
            sd = np.average((values - mean) ** 2, weights=shares) ** 0.5
            assert score == pytest.approx((values[one.ids[place]] - mean) / sd, abs=2e-3)
        assert len(scores) == len(one.ids) - one.start
    assert decoder.standard_scores([]) == []


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_sharing_prefixes_changes_nothing(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    folder, asked = decoder_folders[family], choices()
    alone = open_decoder(folder, share_prefixes=False, batch_tokens=1).loglikelihood(asked)
    for budget in (1, 50, 200, 5000):
        assert_same(open_decoder(folder, batch_tokens=budget).loglikelihood(asked), alone)
    mixed = random.Random(3).sample(range(len(asked)), len(asked))
    shuffled = open_decoder(folder, batch_tokens=300).loglikelihood([asked[index] for index in mixed])
    assert_same(shuffled, [alone[index] for index in mixed])


def test_sharing_saves_tokens(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One-token choices of a context are one text; whole sentences run their common beginning once."""
    runs: list[tuple[int, int]] = []
    network = llama._session.network
    forward = type(network).forward

    def counted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        runs.append(tuple(keywords["input_ids"].shape))
        return forward(self, *arguments, **keywords)

    monkeypatch.setattr(type(network), "forward", counted)
    llama.loglikelihood([request("The cat sat on the", choice) for choice in "!?,."])
    assert len(runs) == 1
    assert runs[0][0] == 1
    runs.clear()
    premise = "The cat sat on the warm mat, and the dog slept near the door."
    llama.loglikelihood([request("", f"{premise} {word}, good") for word in ("yes", "no", "one")])
    tokens = len(llama._session.tokens.encode([premise])[0])
    (stems, prefix), (branches, rest) = runs
    assert (stems, branches) == (1, 3)
    assert prefix >= tokens
    assert rest < 10


def test_a_greedy_continuation_is_greedy(decoder: Any) -> None:
    network, tokens = decoder._session.network, decoder._session.tokens
    context = "The cat sat"
    ids = tokens.encode([context])[0]
    with torch.no_grad():
        order = network(torch.tensor([ids])).logits[0, -1].argsort(descending=True).tolist()
    texts = [decoder._session.tokenizer.decode([token]) for token in order]
    usable = [
        text
        for text, token in zip(texts, order, strict=True)
        if tokens.encode([context + text]) == [[*ids, token]]
    ]
    answers = decoder.loglikelihood([request(context, text) for text in usable[:4]])
    totals = [answer.total for answer in answers]
    assert totals == sorted(totals, reverse=True)
    assert [answer.is_greedy for answer in answers[1:]] == [False] * 3
    assert answers[0].is_greedy == (usable[0] == texts[0])


def test_probabilities_of_all_tokens_sum_to_one(llama: Any) -> None:
    """All one-token continuations of a context: bytes and merged pieces together."""
    session = llama._session
    asked = []
    ids = session.tokens.encode(["The cat"])[0]
    for text in {session.tokenizer.decode([token]) for token in range(len(session.tokenizer))}:
        if "\ufffd" not in text and text and session.tokens.encode(["The cat" + text])[0][:-1] == ids:
            asked.append(request("The cat", text))
    total = sum(math.exp(answer.total) for answer in llama.loglikelihood(asked))
    assert len(asked) > 100
    assert 0.3 < total <= 1 + 1e-6


def test_a_token_across_the_boundary_belongs_to_the_continuation(decoder: Any) -> None:
    tokenizer = decoder._session.tokenizer
    whole = tokenizer(" the", add_special_tokens=False)["input_ids"]
    assert len(whole) == 1
    straddling, clean, spaced = decoder.loglikelihood(
        [request("cat t", "he mat"), request("cat", " the mat"), request("cat ", "the mat")]
    )
    assert straddling.straddles
    assert straddling.byte_length == 6
    assert not clean.straddles
    assert spaced.straddles
    assert straddling.token_logprobs == pytest.approx(clean.token_logprobs, abs=1e-5)
    assert spaced.token_logprobs == pytest.approx(clean.token_logprobs, abs=1e-5)


def test_a_character_of_several_tokens_at_the_boundary(decoder: Any) -> None:
    """Every token that holds bytes of the continuation is counted, none of the context's."""
    tokens = decoder._session.tokens
    for context, continuation in (("ok", "🇹🇿"), ("👍🏽", "🇹🇿 x"), ("क्षत्रिय", " स्त्री"), ("Cafe", "\u0301")):
        (answer,) = decoder.loglikelihood([request(context, continuation)])
        whole, before = tokens.encode([context + continuation, context])
        if whole[: len(before)] == before:
            assert len(answer.token_logprobs) == len(whole) - len(before)
            assert not answer.straddles
        else:
            assert len(answer.token_logprobs) > len(whole) - len(before)
        assert answer.byte_length == len(continuation.encode())


def test_the_context_is_cut_from_the_left(open_llama: Open) -> None:
    model = open_llama()
    long = "good bad happy sad " * 40
    cut, short = model.loglikelihood([request(long, " yes no"), request("good", " yes no")])
    assert cut.truncated
    assert not short.truncated
    assert len(cut.token_logprobs) == len(short.token_logprobs)
    tokens = model._session.tokens
    (kept,) = tokens.encode_requests([long], [" yes no"])
    assert len(kept.ids) == PIECE_LIMIT + 1
    assert kept.ids[0] == 0
    assert kept.ids[1:] == tokens.encode([long + " yes no"])[0][-PIECE_LIMIT:]
    with torch.no_grad():
        logprobs = model._session.network(torch.tensor([kept.ids[:-1]])).logits[0].log_softmax(-1)
    expected = [float(logprobs[place - 1, kept.ids[place]]) for place in range(kept.start, len(kept.ids))]
    assert cut.token_logprobs == pytest.approx(expected, abs=1e-4)


def test_the_longest_continuation_and_one_more(decoder: Any) -> None:
    texts = ["a b " * count for count in range(1, 40)]
    sizes = [len(ids) - len(decoder._session.tokens.before) for ids in decoder._session.tokens.encode(texts)]
    fits = max(index for index, size in enumerate(sizes) if size <= PIECE_LIMIT)
    (answer,) = decoder.loglikelihood([request("", texts[fits])])
    assert len(answer.token_logprobs) == sizes[fits]
    too_long = next(text for text, size in zip(texts, sizes, strict=True) if size > PIECE_LIMIT)
    with pytest.raises(AdapterError, match=rf"more than the {PIECE_LIMIT}"):
        decoder.loglikelihood([request("good", too_long)])


def test_a_continuation_of_nothing_is_rejected(decoder: Any) -> None:
    with pytest.raises(AdapterError, match="has no tokens"):
        decoder.loglikelihood([request("good", " yes"), request("good", "")])


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_special_tokens_are_those_of_the_tokenizer(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    tokens = open_decoder(decoder_folders[family])._session.tokens
    tokenizer = AutoTokenizer.from_pretrained(decoder_folders[family])
    for text in SENTENCES:
        assert tokens.encode([text]) == [tokenizer(text)["input_ids"]]
    assert tokens.encode([""]) == [[0]]  # Llama's <s>, GPT-2's <|endoftext|>
    begun = "<s>good" if family == "llama" else "<|endoftext|>good"
    assert tokens.encode([begun])[0].count(0) == 1


def test_a_large_vocabulary_is_projected_in_blocks(
    tmp_path: Path, open_decoder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """250,000 logits a position: never more than a block, never those of positions that are not scored."""
    monkeypatch.setattr(loading, "LEAST_VOCABULARY", 0.0)  # a tokenizer of that size takes long to train
    folder = save_decoder(tmp_path / "wide", "llama", vocab_size=250_000, hidden_size=16)
    asked = choices()
    expected = open_decoder(folder, batch_tokens=64).loglikelihood(asked)
    model = open_decoder(folder, batch_tokens=4096)
    sizes: list[int] = []
    head = model._session.network.get_output_embeddings()
    head.register_forward_hook(lambda module, given, logits: sizes.append(logits.numel()))
    monkeypatch.setattr(causal_session, "LOGITS_AT_ONCE", 3_000_000)
    answers = model.loglikelihood(asked)
    assert max(sizes) <= 3_000_000
    assert sum(sizes) <= 250_000 * sum(len(answer.token_logprobs) for answer in answers)
    assert_same(answers, expected)
    assert causal_session.LOGITS_AT_ONCE * 4 * 3 < 2**30


def test_an_output_layer_that_caps_its_logits(tmp_path: Path, open_decoder: Open) -> None:
    """What a network does behind its output layer is done to the chosen positions too, block by block."""
    from transformers import Gemma2Config, Gemma2ForCausalLM

    folder = save_decoder(tmp_path / "gemma2", "llama")
    torch.manual_seed(1)
    config = Gemma2Config(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=PIECE_LIMIT,
        sliding_window=6,
        final_logit_softcapping=2.0,
        initializer_range=0.5,
    )
    Gemma2ForCausalLM(config).save_pretrained(folder)
    asked = choices()[:18]
    model = open_decoder(folder, batch_tokens=500)
    assert model._session.caches_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(causal_session, "LOGITS_AT_ONCE", 1200)
        answers = model.loglikelihood(asked)
    for one, answer in zip(asked, answers, strict=True):
        assert answer.token_logprobs == pytest.approx(naive(folder, one)[0], abs=1e-4)


def test_numbers_that_are_not_finite_are_rejected(tmp_path: Path, open_decoder: Open) -> None:
    model = open_decoder(save_decoder(tmp_path / "broken", "llama"))
    with torch.no_grad():
        model._session.network.lm_head.weight.fill_(float("nan"))
    with pytest.raises(AdapterError, match="not finite"):
        model.loglikelihood([request("a", " b")])


def test_standard_scores_of_forbidden_words_and_certain_tokens_are_finite() -> None:
    logits = torch.tensor([[0.0, 1.0, -math.inf], [500.0, 0.0, 0.0]])
    rows, targets = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0])
    found = likelihood._standard_scores(logits, rows, targets).tolist()
    two = torch.log_softmax(torch.tensor([0.0, 1.0]), dim=-1)
    mean = (two.exp() * two).sum()
    sd = (two.exp() * (two - mean) ** 2).sum().sqrt()
    assert found == pytest.approx([*((two - mean) / sd).tolist(), 0.0], abs=1e-4)
