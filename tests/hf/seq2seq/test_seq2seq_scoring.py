from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import AdapterError, UsageError
from harness.models.requests import Call, LikelihoodRequest
from harness_hf.seq2seq import generation as seq2seq_scoring

Open = Callable[..., Any]
PAIRS = [
    ("The cat sat on the mat.", "yes"),
    ("The cat sat on the mat.", "the dog slept near the door"),
    ("Der Hund schläft", "the dog"),
    ("", "猫坐在门边的垫子上"),
    ("The cat sat on the mat.", "Кошка сидит"),
]


def requests(*pairs: tuple[str, str]) -> list[LikelihoodRequest]:
    return [LikelihoodRequest(context=context, continuation=text) for context, text in pairs]


def plain_logits(model: Any, context: str, continuation: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and labels of one pair, through transformers' own handling of ``labels=``."""
    session = model._session
    inputs = session.tokenizer(context, return_tensors="pt")
    labels = session.tokenizer(text_target=continuation, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        output = session.network(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels
        )
    assert output.loss is not None
    return output.logits[0], labels[0]


def test_it_is_the_loss_of_transformers(seq2seq: Any, open_seq2seq_folder: Open) -> None:
    """With the end token, the mean over the target is minus the loss; BART's <s> is read, not scored."""
    model = open_seq2seq_folder(seq2seq._session.folder, score_eos=True)
    skipped = len(model._session.prefix) - 1
    answers, bare = model.loglikelihood(requests(*PAIRS)), seq2seq.loglikelihood(requests(*PAIRS))
    for (context, text), answer, without in zip(PAIRS, answers, bare, strict=True):
        logits, labels = plain_logits(model, context, text)
        expected = torch.log_softmax(logits, dim=-1)[torch.arange(len(labels)), labels][skipped:]
        np.testing.assert_allclose(answer.token_logprobs, expected, atol=2e-5)
        np.testing.assert_allclose(without.token_logprobs, expected[:-1], atol=2e-5)
        if not skipped:
            loss = torch.nn.functional.cross_entropy(logits, labels)
            assert -np.mean(answer.token_logprobs) == pytest.approx(float(loss), abs=2e-5)
        assert answer.byte_length == len(text.encode())
        assert not answer.straddles


def test_a_start_token_that_is_padding_is_read(t5: Any) -> None:
    """T5 starts with <pad>, which must not be masked; the same numbers come without any mask."""
    session = t5._session
    inputs = session.tokenizer("The cat", return_tensors="pt")["input_ids"]
    ids = session.tokenizer("yes no", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = session.network(input_ids=inputs, decoder_input_ids=torch.tensor([[0, *ids[:-1]]])).logits[0]
    expected = torch.log_softmax(logits, dim=-1)[torch.arange(len(ids)), torch.tensor(ids)]
    (answer,) = t5.loglikelihood(requests(("The cat", "yes no")))
    np.testing.assert_allclose(answer.token_logprobs, expected, atol=1e-5)


def test_the_likeliest_continuation_is_greedy(seq2seq: Any) -> None:
    session = seq2seq._session
    ids: list[int] = []
    inputs = session.tokenizer("The cat sat", return_tensors="pt")["input_ids"]
    for _ in range(3):
        prefix = torch.tensor([[*session.prefix, *ids]])
        with torch.no_grad():
            ids.append(
                int(session.network(input_ids=inputs, decoder_input_ids=prefix).logits[0, -1].argmax())
            )
    source = session.sources(["The cat sat"], 99)
    targets = [
        seq2seq_scoring.TargetRequest(source=0, tokens=tokens)
        for tokens in (ids, [*ids[:-1], ids[-1] + 1], [ids[0] + 1, *ids[1:]])
    ]
    scored: dict[int, seq2seq_scoring.ScoredTarget] = {}
    for numbers, found in seq2seq_scoring.score_targets(
        session, source, targets, Call(ability="loglikelihood")
    ):
        scored.update(zip(numbers, found, strict=True))
    assert [scored[number].is_greedy for number in range(3)] == [True, False, False]


@pytest.mark.parametrize("budget", [1, 40, 4096])
def test_every_context_is_encoded_once(seq2seq: Any, open_seq2seq_folder: Open, budget: int) -> None:
    """For all its choices, wherever they are among the requests, also where they fill several decoder batches."""
    model = open_seq2seq_folder(seq2seq._session.folder, batch_tokens=budget)
    contexts = sorted({context for context, _ in PAIRS})
    asked = [(context, text) for _, text in PAIRS for context in contexts] + PAIRS
    encoded: list[int] = []
    handle = model._session.network.get_encoder().register_forward_hook(
        lambda _, __, keywords, output: encoded.append(len(output[0])), with_kwargs=True
    )
    answers = model.loglikelihood(requests(*asked))
    handle.remove()
    assert sum(encoded) == len(contexts)
    for pair, last in zip(PAIRS, answers[-len(PAIRS) :], strict=True):
        [alone] = seq2seq.loglikelihood(requests(pair))
        np.testing.assert_allclose(last.token_logprobs, alone.token_logprobs, atol=2e-5)
        np.testing.assert_allclose(answers[asked.index(pair)].token_logprobs, alone.token_logprobs, atol=2e-5)


def test_the_projection_in_chunks_is_the_whole_one(seq2seq: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One position at a time; and where the network changes its logits afterwards, its own are taken."""
    expected = seq2seq.loglikelihood(requests(*PAIRS))
    sizes = []
    head = seq2seq._session.network.get_output_embeddings()
    handle = head.register_forward_hook(lambda _, __, output: sizes.append(output.numel()))
    monkeypatch.setattr(seq2seq_scoring, "LOGITS_AT_ONCE", 1)
    for one, other in zip(seq2seq.loglikelihood(requests(*PAIRS)), expected, strict=True):
        np.testing.assert_allclose(one.token_logprobs, other.token_logprobs, atol=2e-5)
    handle.remove()
    assert max(sizes) <= len(PAIRS) * seq2seq._session.vocabulary

    network = seq2seq._session.network
    real = network.forward

    def capped(**keywords: Any) -> Any:
        output = real(**keywords)
        output.logits = torch.tanh(output.logits)
        return output

    monkeypatch.setattr(network, "forward", capped)
    for one, (context, text) in zip(seq2seq.loglikelihood(requests(*PAIRS)), PAIRS, strict=True):
        logits, labels = plain_logits(seq2seq, context, text)
        skipped = len(seq2seq._session.prefix) - 1
        rows = torch.arange(len(labels))
        log_shares = torch.log_softmax(logits, dim=-1)[rows, labels][skipped:-1]
        np.testing.assert_allclose(one.token_logprobs, log_shares, atol=2e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_context_that_is_cut_says_so(t5: Any, open_seq2seq_folder: Open, side: str) -> None:
    model = open_seq2seq_folder(t5._session.folder, max_length=8, truncation_side=side)
    long = "The cat sat on the warm mat, and the dog slept near the door."
    tokens = t5._session.tokenizer(long, add_special_tokens=False)["input_ids"]
    kept = tokens[-7:] if side == "left" else tokens[:7]
    with torch.no_grad():
        logits = t5._session.network(
            input_ids=torch.tensor([[*kept, 1]]), decoder_input_ids=torch.tensor([[0]])
        ).logits[0, 0]
    cut, whole = model.loglikelihood(requests((long, "the"), ("cat", "the")))
    assert (cut.truncated, whole.truncated) == (True, False)
    first = model._session.target_tokens(["the"])[0][0]
    assert cut.token_logprobs[0] == pytest.approx(float(logits.log_softmax(-1)[first]), abs=1e-5)
    assert model.token_counts([long, ""]) == [len(tokens) + 1, 1]
    assert model.context_length() == 8
    assert t5.context_length() == 1024


def test_a_continuation_without_a_token_is_rejected(seq2seq: Any) -> None:
    for text in ("", "  "):
        with pytest.raises(UsageError, match="has no token that can be scored"):
            seq2seq.loglikelihood(requests(("The cat", text)))


def test_a_continuation_longer_than_the_positions_is_rejected(
    seq2seq_folders: dict[str, Path], open_seq2seq_folder: Open
) -> None:
    bart = open_seq2seq_folder(seq2seq_folders["bart"])
    assert bart.context_length() == 64
    with pytest.raises(UsageError, match=r"A continuation has \d+ tokens; .* takes at most 64"):
        bart.loglikelihood(requests(("The cat", "猫" * 90)))


def test_numbers_that_are_not_finite_are_rejected(t5: Any) -> None:
    with torch.no_grad():
        t5._session.network.get_output_embeddings().weight.fill_(float("nan"))
    with pytest.raises(AdapterError, match="not finite"):
        t5.loglikelihood(requests(("The cat", "yes")))
