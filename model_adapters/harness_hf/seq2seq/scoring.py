"""Log-probabilities of decoder outputs, with one run of the encoder for all outputs of one input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers.modeling_outputs import BaseModelOutput

from harness import UsageError
from harness.models import Call
from harness_hf.inference.batching import Encoded
from harness_hf.inference.session import Inputs
from harness_hf.seq2seq.session import Seq2SeqSession, Source

LOGITS_AT_ONCE = 1 << 24
"""Numbers of a chunk of logits: 64 MiB, which are 67 positions of a vocabulary of 250,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRequest:
    """A decoder output to score after the input with the number `source`."""

    source: int
    tokens: Sequence[int]
    """All are scored; what the decoder reads before the first one is the session's prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTarget:
    """Natural log-probabilities of the tokens of a target."""

    logprobs: tuple[float, ...]
    is_greedy: bool


def score_targets(
    session: Seq2SeqSession, sources: Sequence[Source], targets: Sequence[TargetRequest], call: Call
) -> Iterator[tuple[list[int], list[ScoredTarget]]]:
    """Yield (numbers of targets, their scores) after every batch; every source is encoded once.

    Raises `UsageError` for a target longer than the decoder has positions for, `AdapterError` where the model
    gives numbers that are not finite.
    """
    _require_room(session, targets)
    by_source: list[list[int]] = [[] for _ in sources]
    for number, target in enumerate(targets):
        by_source[target.source].append(number)

    def encode(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        return session.backbone(**inputs).last_hidden_state, inputs["attention_mask"]

    for rows, (states, mask) in session.run(
        [source.encoded for source in sources], encode, ability=call.ability, stopping=call.stopping
    ):
        pairs = [(position, number) for position, row in enumerate(rows) for number in by_source[row]]
        width = states.shape[1]
        lengths = [width + len(session.prefix) + len(targets[number].tokens) for _, number in pairs]

        def decode(batch: list[int], pairs: Any = pairs, states: Any = states, mask: Any = mask) -> Any:
            positions = torch.tensor([pairs[index][0] for index in batch])
            tokens = [targets[pairs[index][1]].tokens for index in batch]
            return _score_batch(
                session, states[positions.to(states.device)], mask[positions.to(mask.device)], tokens
            )

        for batch, results in session.run_numbers(
            lengths, decode, ability=call.ability, stopping=call.stopping
        ):
            yield [pairs[index][1] for index in batch], results


def _require_room(session: Seq2SeqSession, targets: Sequence[TargetRequest]) -> None:
    limit = session.target_limit
    longest = max((len(target.tokens) for target in targets), default=0) + len(session.prefix) - 1
    if limit is not None and longest > limit:
        raise UsageError(
            f"A continuation has {longest} tokens; the decoder of {session.ref!r} takes at most {limit}."
        )


def _score_batch(
    session: Seq2SeqSession, states: torch.Tensor, mask: torch.Tensor, targets: Sequence[Sequence[int]]
) -> list[ScoredTarget]:
    prefix = list(session.prefix)
    inputs = session.pad([Encoded([*prefix, *tokens][:-1]) for tokens in targets])
    rows = np.repeat(np.arange(len(targets)), [len(tokens) for tokens in targets])
    columns = np.concatenate([len(prefix) - 1 + np.arange(len(tokens)) for tokens in targets])
    gold_tokens = torch.tensor([token for tokens in targets for token in tokens], device=session.device)
    logprobs, greedy = [], []
    done = 0
    for logits in _logits(session, states, mask, inputs, rows, columns):
        gold = gold_tokens[done : done + len(logits)].to(logits.device)
        done += len(logits)
        logprobs.append(torch.log_softmax(logits.float(), dim=-1).gather(1, gold[:, None])[:, 0].cpu())
        greedy.append((logits.argmax(dim=-1) == gold).cpu())
    values, likeliest = torch.cat(logprobs), torch.cat(greedy)
    session.require_finite(values, "log-probabilities")
    ends = np.cumsum([len(tokens) for tokens in targets])
    return [
        ScoredTarget(
            logprobs=tuple(values[end - len(tokens) : end].tolist()),
            is_greedy=bool(likeliest[end - len(tokens) : end].all()),
        )
        for end, tokens in zip(ends.tolist(), targets, strict=True)
    ]


def _logits(
    session: Seq2SeqSession,
    states: torch.Tensor,
    mask: torch.Tensor,
    decoder: dict[str, torch.Tensor],
    rows: Any,
    columns: Any,
) -> Iterator[torch.Tensor]:
    """Yield the logits at (rows, columns), a chunk of positions at a time.

    The network projects the first position of every row only; the others are projected here, in chunks. Where
    its logits of that position differ from those computed here (capped logits, no output module), the network
    projects all positions itself.
    """
    network = session.network
    head = network.get_output_embeddings()
    states_seen: list[torch.Tensor] = []

    def first_position(_: Any, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        states_seen.append(arguments[0])
        return (arguments[0][:, :1], *arguments[1:])

    keywords = {
        "encoder_outputs": BaseModelOutput(last_hidden_state=states),
        "attention_mask": mask,
        "decoder_input_ids": decoder["input_ids"],
        "decoder_attention_mask": decoder["attention_mask"],
        "use_cache": False,
    }
    handle = head.register_forward_pre_hook(first_position)
    try:
        logits = network(**keywords).logits
    finally:
        handle.remove()
    chunk = max(1, LOGITS_AT_ONCE // session.vocabulary)
    hidden = states_seen[0] if len(states_seen) == 1 else None
    if hidden is None or not torch.equal(_project(network, hidden[:, :1]).to(logits.device), logits):
        hidden, logits = None, network(**keywords).logits
    for start in range(0, len(rows), chunk):
        at = (rows[start : start + chunk], columns[start : start + chunk])
        yield logits[at] if hidden is None else _project(network, hidden[at])


def _project(network: Any, hidden: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = network.get_output_embeddings()(hidden)
    bias = getattr(network, "final_logits_bias", None)
    return logits if bias is None else logits + bias.to(logits.device)[0]
