"""Text written token by token, the same whatever else is in the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from harness import (
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    Prompt,
)
from harness.models.reasoning import Markers, split_reasoning
from harness.models.requests import Call
from harness_hf.causal.likelihood import Continuations, score_continuations
from harness_hf.causal.session import CausalSession
from harness_hf.causal.tokens import PromptTokens
from harness_hf.inference.batching import BatchPlan
from harness_hf.inference.writing import before_stop, check_writing, choose_likeliest

__all__ = ["Writings", "encode_prompts", "write_texts"]

OPENING = 16
"""Tokens at the end of a prompt among which the mark before the reasoning is looked for."""
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
    writings = [
        _new_writing(
            session, index, session.tokens.cut_prompt(tokens, options[index].max_tokens), options[index]
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
        size=lambda one: len(one.prompt.ids) + one.most,
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
    """One text that is being written: first the reasoning, where there is any, then the answer."""

    index: int
    prompt: PromptTokens
    options: GenerateOptions
    end: frozenset[int]
    stops: frozenset[int]
    """The stop strings that are tokens of their own."""
    markers: Sequence[Markers]
    opened: bool
    """Whether the prompt ends with the mark before the reasoning, as some chat templates do."""
    budget: int
    """The most tokens of the reasoning."""
    most: int
    """The tokens that it is expected to have at most."""
    ids: list[int] = field(default_factory=list)
    phase: Literal["begins", "reasons", "answers"] = "begins"
    reasoned: int = 0
    """How many of the tokens are of the reasoning."""
    text: str = ""
    reasoning: str | None = None
    finished: bool = False
    done: bool = False
    random: Any = None

    def restart(self) -> None:
        self.ids, self.text, self.reasoning, self.finished, self.done = [], "", None, False, False
        self.phase, self.reasoned = ("reasons" if self.opened else "begins"), 0
        self.random = np.random.default_rng(self.options.seed)

    def add(self, token: int, session: CausalSession) -> None:
        """Add a token; the text is done at an end token, and at a stop string or the limit of its part."""
        self.ids.append(token)
        if token in self.end or (token in self.stops and self.phase != "reasons"):
            self._read(session, self.ids[:-1])
            self.finished = self.done = True
            return
        if self.phase != "answers":
            self._advance(session)
        if self.phase == "reasons":
            self.done = len(self.ids) >= self.budget
        else:
            self.done = len(self.ids) - self.reasoned >= self.options.max_tokens
            if self.options.stop and self._may_stop(session):
                self.finished = self._read(session, self.ids)
                self.done = self.done or self.finished
        if self.done and not self.finished:
            self._read(session, self.ids)

    def generated(self) -> Generated:
        return Generated(
            text=self.text,
            tokens=len(self.ids),
            finished=self.finished,
            truncated=self.prompt.truncated,
            reasoning=self.reasoning,
            reasoning_tokens=len(self.ids) if self.phase == "reasons" else self.reasoned,
        )

    def _advance(self, session: CausalSession) -> None:
        """Notice the marks before and after the reasoning."""
        if self.phase == "begins":
            begun = session.decode_marked(self.ids, self.markers).lstrip()
            starts = [own.start for own in self.markers]
            if any(begun.startswith(start) for start in starts):
                self.phase = "reasons"
            elif begun and not any(start.startswith(begun) for start in starts):
                self.phase = "answers"
        # The answer of gpt-oss may have no reasoning before it, but its mark.
        span = max(len(own.end.encode("utf-8")) for own in self.markers) + SLACK
        tail = session.decode_marked(self.ids[-span:], self.markers)
        if any(own.end in tail for own in self.markers):
            self.phase, self.reasoned = "answers", len(self.ids)

    def _read(self, session: CausalSession, ids: Sequence[int]) -> bool:
        """Take the parts of the text, and return whether there is a stop string in the answer."""
        text = session.decode_marked(ids, self.markers)
        found = split_reasoning(text, self.markers, opened=self.opened)
        answer = text if found.reasoning is None else found.answer
        self.reasoning = found.reasoning
        self.text, stopped = before_stop(answer, self.options.stop)
        return stopped

    def _may_stop(self, session: CausalSession) -> bool:
        """Return whether a stop string is at the end of the text, or the text is as long as it may be."""
        span = max(len(stop.encode("utf-8")) for stop in self.options.stop) + SLACK
        tail = session.decode_marked(self.ids[-span:], self.markers)
        return self.done or any(stop in tail for stop in self.options.stop)


def _new_writing(
    session: CausalSession, index: int, prompt: PromptTokens, options: GenerateOptions
) -> _Writing:
    markers = session.options.markers(options.reasoning_markers)
    tail = session.decode_marked(prompt.ids[-OPENING:], markers).rstrip()
    opened = any(tail.endswith(own.start) for own in markers)
    budget = min(session.options.budget, session.window - len(prompt.ids) - options.max_tokens)
    reasons = opened or session.options.reasons
    return _Writing(
        index=index,
        prompt=prompt,
        options=options,
        end=session.end_tokens(),
        stops=_special_stops(session, options.stop),
        markers=markers,
        opened=opened,
        budget=max(1, budget),
        most=options.max_tokens + (max(0, budget) if reasons else 0),
    )


def _special_stops(session: CausalSession, stops: Sequence[str]) -> frozenset[int]:
    """Return the stop strings that are tokens of their own: the text is decoded without special ones."""
    added = session.tokenizer.get_added_vocab() if stops else {}
    return frozenset(int(added[stop]) for stop in stops if stop in added)


def _batches(writings: Sequence[_Writing], budget: int, *, even: bool) -> Iterator[list[_Writing]]:
    """Yield batches of prompts of similar length whose tokens, padding and answers included, fit the budget.

    The longest come first. A model that carries recurrent states gets prompts of one length at a time, without
    padding.
    """
    ordered = sorted(writings, key=lambda one: (-len(one.prompt.ids), -one.most, one.index))
    batch: list[_Writing] = []
    for writing in ordered:
        longest = batch[0] if batch else writing
        most = max(one.most for one in [*batch, writing])
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
