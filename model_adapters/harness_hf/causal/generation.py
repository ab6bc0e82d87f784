"""Text written token by token, the same whatever else is in the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from harness import (
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    Prompt,
)
from harness.models.requests import Call
from harness_hf.causal.likelihood import Continuations, score_continuations
from harness_hf.causal.session import CausalSession
from harness_hf.causal.tokens import PromptTokens
from harness_hf.inference.batching import BatchPlan
from harness_hf.inference.writing import before_stop, check_writing, choose_likeliest

__all__ = ["Writings", "encode_prompts", "write_texts"]

SLACK = 8
"""Tokens looked at beyond those that a stop string can span: some are special or parts of characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writings:
    """Prompts as the model reads them: those that it continues, and those that it chooses an answer for."""

    free: Sequence[_Writing]
    choices: Continuations
    owners: Sequence[int]
    """Number of the prompt that each choice is one of."""
    count: int
    """All prompts."""


def encode_prompts(
    session: CausalSession, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]
) -> Writings:
    """Return the tokens of prompts.

    Raises `UsageError` for options that make no sense, `CapabilityError` for a constraint that this adapter
    cannot keep, and `AdapterError` where a prompt leaves no room for the answer.
    """
    for one in options:
        check_writing(one, session)
    free = [index for index, one in enumerate(options) if one.choices is None]
    ids = session.tokens.encode_prompts([prompts[index] for index in free])
    end = session.end_tokens()
    writings = [
        _Writing(
            index=index,
            prompt=session.tokens.cut_prompt(tokens, options[index].max_tokens),
            options=options[index],
            end=end | _special_stops(session, options[index].stop),
        )
        for index, tokens in zip(free, ids, strict=True)
    ]
    asked = [(index, choice) for index, one in enumerate(options) for choice in one.choices or ()]
    choices = Continuations.encode(
        session, [prompts[index] for index, _ in asked], [choice for _, choice in asked]
    )
    return Writings(free=writings, choices=choices, owners=[index for index, _ in asked], count=len(prompts))


def write_texts(
    session: CausalSession, writings: Writings, call: Call
) -> Iterator[tuple[list[int], list[Generated]]]:
    """Yield (numbers of prompts, what the model writes after them) after every batch."""

    def write(batch: list[_Writing]) -> None:
        for writing in batch:
            writing.restart()
        _write(session, batch)

    plan: BatchPlan[_Writing] = BatchPlan(
        ability=call.ability,
        pack=lambda some, tokens: _batches(some, tokens, even=not session.caches_rows),
        size=lambda one: len(one.prompt.ids) + one.options.max_tokens,
        stopping=call.stopping,
    )
    for batch, _ in session.budget.run(writings.free, write, plan):
        yield [one.index for one in batch], [one.generated() for one in batch]
    choices = writings.choices
    answers: dict[int, LikelihoodAnswer] = {}

    def score() -> Iterator[tuple[list[int], list[float]]]:
        for numbers, found in score_continuations(session, choices, call):
            answers.update(zip(numbers, found, strict=True))
            yield numbers, [answer.total for answer in found]

    def chosen(number: int) -> Generated:
        return Generated(
            text=choices.texts[number],
            tokens=len(answers[number].token_logprobs),
            finished=True,
            truncated=answers[number].truncated,
        )

    yield from choose_likeliest(writings.owners, writings.count, score(), chosen)


@dataclass(slots=True, kw_only=True)
class _Writing:
    """One text that is being written."""

    index: int
    prompt: PromptTokens
    options: GenerateOptions
    end: frozenset[int]
    ids: list[int] = field(default_factory=list)
    text: str = ""
    finished: bool = False
    done: bool = False
    random: Any = None

    def restart(self) -> None:
        self.ids, self.text, self.finished, self.done = [], "", False, False
        self.random = np.random.default_rng(self.options.seed)

    def add(self, token: int, session: CausalSession) -> None:
        """Add a token; the text is done at an end token, a stop string or the token limit."""
        self.ids.append(token)
        if token in self.end:
            self.text = before_stop(session.decode(self.ids[:-1]), self.options.stop)[0]
            self.finished = self.done = True
            return
        self.done = len(self.ids) >= self.options.max_tokens
        if self.options.stop and self._may_stop(session):
            self.text, self.finished = before_stop(session.decode(self.ids), self.options.stop)
            self.done = self.done or self.finished
        elif self.done:
            self.text = session.decode(self.ids)

    def generated(self) -> Generated:
        return Generated(
            text=self.text, tokens=len(self.ids), finished=self.finished, truncated=self.prompt.truncated
        )

    def _may_stop(self, session: CausalSession) -> bool:
        """Return whether a stop string is at the end of the text, or the text is as long as it may be."""
        span = max(len(stop.encode("utf-8")) for stop in self.options.stop) + SLACK
        tail = session.decode(self.ids[-span:])
        return self.done or any(stop in tail for stop in self.options.stop)


def _special_stops(session: CausalSession, stops: Sequence[str]) -> frozenset[int]:
    """Return the stop strings that are tokens of their own: the text is decoded without special ones."""
    added = session.tokenizer.get_added_vocab() if stops else {}
    return frozenset(int(added[stop]) for stop in stops if stop in added)


def _batches(writings: Sequence[_Writing], budget: int, *, even: bool) -> Iterator[list[_Writing]]:
    """Yield batches of prompts of similar length whose tokens, padding and answers included, fit the budget.

    The longest come first. A model that carries recurrent states gets prompts of one length at a time, without
    padding.
    """
    ordered = sorted(writings, key=lambda one: (-len(one.prompt.ids), -one.options.max_tokens, one.index))
    batch: list[_Writing] = []
    for writing in ordered:
        longest = batch[0] if batch else writing
        most = max(one.options.max_tokens for one in [*batch, writing])
        full = (len(batch) + 1) * (len(longest.prompt.ids) + most) > budget
        uneven = even and len(longest.prompt.ids) != len(writing.prompt.ids)
        if batch and (full or uneven):
            yield batch
            batch = []
        batch.append(writing)
    if batch:
        yield batch


def _write(session: CausalSession, batch: list[_Writing]) -> None:
    """Write all texts of a batch; a text that is done leaves it."""
    width = max(len(one.prompt.ids) for one in batch)
    mask = torch.zeros((len(batch), width), dtype=torch.int64)
    ids = torch.full((len(batch), width), session.pad_id, dtype=torch.int64)
    for row, one in enumerate(batch):
        ids[row, width - len(one.prompt.ids) :] = torch.tensor(one.prompt.ids)
        mask[row, width - len(one.prompt.ids) :] = 1
    cache, active = None, list(batch)
    while active:
        positions = (mask.cumsum(dim=1) - 1).clamp_(min=0)[:, -ids.shape[1] :]
        inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        columns = [ids.shape[1] - 1] * len(active)
        blocks, cache = session.forward(
            inputs, range(len(active)), columns, past=cache, keep_cache=session.caches_rows
        )
        tokens = _next_tokens(blocks, active, session)
        for one, token in zip(active, tokens, strict=True):
            one.add(token, session)
        kept = [row for row, one in enumerate(active) if not one.done]
        following = torch.tensor([[tokens[row]] for row in kept], dtype=torch.int64).reshape(-1, 1)
        mask = torch.cat([mask[kept], torch.ones_like(following)], dim=1)
        if session.caches_rows:
            ids = following
            if kept and len(kept) < len(active):
                cache.batch_select_indices(torch.tensor(kept, device=session.index_device))
        else:
            ids, cache = torch.cat([ids[kept], following], dim=1), None
        active = [active[row] for row in kept]


def _next_tokens(blocks: Any, active: Sequence[_Writing], session: CausalSession) -> list[int]:
    tokens: list[int] = []
    for start, logits in blocks:
        session.require_finite(logits.amax(dim=-1), "numbers")
        best = logits.argmax(dim=-1).tolist()
        for row, token in enumerate(best):
            one = active[start + row]
            sampled = one.options.temperature > 0
            tokens.append(_sample(logits[row].cpu().numpy(), one) if sampled else int(token))
    return tokens


def _sample(logits: npt.NDArray[np.float32], writing: _Writing) -> int:
    """Return a token drawn from the smallest set of likeliest tokens whose probability reaches `top_p`.

    Nucleus sampling of Holtzman et al. (2020, "The Curious Case of Neural Text Degeneration"), after the
    temperature. One uniform number per token, from the text's own generator, decides.
    """
    options = writing.options
    scaled = logits.astype(np.float64) / options.temperature
    weights = np.exp(scaled - scaled.max())
    order = np.argsort(-weights, kind="stable")
    cumulated = np.cumsum(weights[order] / weights.sum())
    size = min(int(np.searchsorted(cumulated, options.top_p)) + 1, len(order))
    drawn = writing.random.random() * cumulated[size - 1]
    return int(order[min(int(np.searchsorted(cumulated[:size], drawn, side="right")), size - 1)])
