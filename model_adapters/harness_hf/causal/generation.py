"""Text written token by token, the same whatever else is in the batch: a row that is done makes room for a waiting one.

The continuous batching of transformers (5.23) is not used. It has no seed and no stop strings per text: all rows draw
from one generator, so that a sampled text depends on its neighbours. On a CPU it takes 8.8 times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import pad

from harness.models import (
    Call,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    Markers,
    Prompt,
    before_stop,
    split_reasoning,
)
from harness_hf.causal.likelihood import Continuations, score_continuations
from harness_hf.causal.prefix import (
    choose_rows,
    continue_inputs,
    grow_in_place,
    join_rows,
    keep_rows,
    share_prefixes,
)
from harness_hf.causal.session import CausalSession, PromptTokens
from harness_hf.inference.pieces import BatchPlan
from harness_hf.inference.text_vectors import check_writing, choose_likeliest

OPENING = 16
"""Tokens at the end of a prompt among which the mark before the reasoning is looked for."""
MOST_ROWS = {"cpu": 64, "gpu": 256}
"""Texts written at once at most: above, the arithmetic of a step takes longer, and no token is faster."""
GROWTH = 256
"""Tokens of a text whose memory is reserved at once: most texts, above all reasoning, end long before their limit."""
FREE_SHARE = 8
"""New texts are begun once this part of the rows is free."""
LIKELIEST = 512
"""Tokens that are put in order before all are, where the nucleus is sought."""
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
    for option in options:
        check_writing(option, session)
    free = [index for index, option in enumerate(options) if option.choices is None]
    ids = session.tokens.encode_prompts([prompts[index] for index in free])
    writings = [
        _new_writing(
            session, index, session.tokens.cut_prompt(tokens, options[index].max_tokens), options[index]
        )
        for index, tokens in zip(free, ids, strict=True)
    ]
    pairs = [(index, choice) for index, option in enumerate(options) for choice in option.choices or ()]
    choices = Continuations.encode(
        session, [prompts[index] for index, _ in pairs], [choice for _, choice in pairs]
    )
    return Writings(free=writings, choices=choices, owners=[index for index, _ in pairs], count=len(prompts))


def write_texts(
    session: CausalSession, writings: Writings, call: Call
) -> Iterator[tuple[list[int], list[Generated]]]:
    """Yield (numbers of prompts, what the model writes after them) after every batch."""
    for done in _write_all(session, writings.free, call):
        yield [writing.index for writing in done], [writing.generated() for writing in done]
    choices = writings.choices
    answers: dict[int, LikelihoodAnswer] = {}

    def score() -> Iterator[tuple[list[int], list[float]]]:
        for numbers, likelihoods in score_continuations(session, choices, call):
            answers.update(zip(numbers, likelihoods, strict=True))
            yield numbers, [answer.total for answer in likelihoods]

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
    stem: tuple[int, ...] = ()
    """The beginning of the prompt that others share, and that is read once."""
    length: int = 0
    """The most columns that prompt and text take in a cache: prompts behind a shared beginning end at one column."""
    ids: list[int] = field(default_factory=list)
    phase: Literal["begins", "reasons", "answers"] = "begins"
    reasoned: int = 0
    """How many of the tokens are of the reasoning."""
    text: str = ""
    reasoning: str | None = None
    finished: bool = False
    done: bool = False
    random: Any = None

    @property
    def tokens(self) -> list[int]:
        """The prompt and what is written after it."""
        return [*self.prompt.ids, *self.ids]

    @property
    def columns(self) -> int:
        """The columns of a cache that are reserved for prompt and text; `GROWTH` more whenever the text fills them."""
        blocks = (len(self.ids) // GROWTH + 1) * GROWTH
        return self.length - self.most + max(len(self.ids), min(self.most, blocks))

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
            starts = [marker.start for marker in self.markers]
            if any(begun.startswith(start) for start in starts):
                self.phase = "reasons"
            elif begun and not any(start.startswith(begun) for start in starts):
                self.phase = "answers"
        if not session.may_end_with(self.ids[-1], {marker.end[-1] for marker in self.markers}, self.markers):
            return
        # The answer of gpt-oss may have no reasoning before it, but its mark.
        span = max(len(marker.end.encode("utf-8")) for marker in self.markers) + SLACK
        tail = session.decode_marked(self.ids[-span:], self.markers)
        if any(marker.end in tail for marker in self.markers):
            self.phase, self.reasoned = "answers", len(self.ids)

    def _read(self, session: CausalSession, ids: Sequence[int]) -> bool:
        """Take the parts of the text, and return whether there is a stop string in the answer."""
        text = session.decode_marked(ids, self.markers)
        split = split_reasoning(text, self.markers, opened=self.opened)
        answer = text if split.reasoning is None else split.answer
        self.reasoning = split.reasoning
        self.text, stopped = before_stop(answer, self.options.stop)
        return stopped

    def _may_stop(self, session: CausalSession) -> bool:
        """Return whether a stop string is at the end of the text, or the text is as long as it may be."""
        ends = {stop[-1] for stop in self.options.stop}
        if not (self.done or session.may_end_with(self.ids[-1], ends, self.markers)):
            return False
        span = max(len(stop.encode("utf-8")) for stop in self.options.stop) + SLACK
        tail = session.decode_marked(self.ids[-span:], self.markers)
        return self.done or any(stop in tail for stop in self.options.stop)


def _new_writing(
    session: CausalSession, index: int, prompt: PromptTokens, options: GenerateOptions
) -> _Writing:
    markers = session.options.markers(options.reasoning_markers)
    tail = session.decode_marked(prompt.ids[-OPENING:], markers).rstrip()
    opened = any(tail.endswith(marker.start) for marker in markers)
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


def _share_beginnings(session: CausalSession, writings: Sequence[_Writing]) -> list[_Writing]:
    """Return the texts in the order in which they are begun, the longest first and those with one beginning together.

    The last token of a prompt is never shared: it predicts the first of the answer. Layers with windows keep too
    little of a beginning.
    """
    share = session.options.share_prefixes and session.caches_rows and not session.row_cost.has_windows
    order: list[list[_Writing]] = []
    for group in share_prefixes([writing.prompt.ids[:-1] for writing in writings], share=share):
        members = [writings[member] for member in group.members]
        for writing in members:
            writing.stem = tuple(writing.prompt.ids[: group.stem]) if len(members) > 1 else ()
            writing.length = group.longest + 1 + writing.most
        order.append(sorted(members, key=lambda writing: (-writing.length, writing.index)))
    order.sort(key=lambda members: (-members[0].length, members[0].index))
    return [writing for members in order for writing in members]


def _pack(session: CausalSession, writings: Sequence[_Writing], room: int) -> Iterator[list[_Writing]]:
    """Yield texts that are written together, in this order: what is reserved of their caches fits the room.

    A model that carries recurrent states gets texts of one length at a time, without padding.
    """
    most = MOST_ROWS["cpu" if session.device.type == "cpu" else "gpu"]
    batch: list[_Writing] = []
    longest = 0
    for writing in writings:
        longest = max(longest, writing.columns)
        full = len(batch) >= most or (len(batch) + 1) * session.row_cost.row(longest) > room
        uneven = not session.caches_rows and len((batch or [writing])[0].tokens) != len(writing.tokens)
        if batch and (full or uneven):
            yield batch
            batch, longest = [], writing.columns
        batch.append(writing)
    if batch:
        yield batch


def _write_all(session: CausalSession, writings: Sequence[_Writing], call: Call) -> Iterator[list[_Writing]]:
    """Yield texts as they are done, until all are, or the call is stopping and those that have begun are done.

    Texts that outgrow the memory wait, those that began last first, and are continued when there is room: their
    tokens are read again. Where memory is short all the same, the texts in work are begun again, fewer at a time.
    """
    plan: BatchPlan[_Writing] = BatchPlan(
        ability=call.ability,
        pack=lambda some, room: _pack(session, some, room),
        size=lambda writing: writing.length,
    )
    budget, before = session.cache_budget, session.cache_budget.state()
    waiting = _share_beginnings(session, writings)
    for writing in waiting:
        writing.restart()
    rows, admitting = _Rows(session), True
    while waiting or rows.active:
        waiting[:0] = rows.suspend()
        if call.stopping():
            waiting = [writing for writing in waiting if writing.ids]
        new = rows.choose(waiting) if admitting else []
        if not new and not rows.active:
            return
        del waiting[: len(new)]
        together = [*rows.active, *new]
        result = budget.attempt(together, rows.advance, plan, before)
        if result is None:
            for writing in together:
                writing.restart()
            waiting, rows = [*together, *waiting], _Rows(session)
            continue
        admitting = bool(new or result[0])
        if result[0]:
            yield result[0]


class _Rows:
    """The texts that are being written, one row each, and the cache of all their tokens but the last."""

    def __init__(self, session: CausalSession) -> None:
        self.active: list[_Writing] = []
        self._session = session
        self._cache: Any = None
        self._mask = torch.zeros((0, 0), dtype=torch.int64)
        """Which columns of the cache hold tokens of a row, of shape (rows, columns)."""
        self._stem: tuple[tuple[int, ...], Any] = ((), None)
        """The beginning that texts of the last group share, and its cache."""

    def choose(self, waiting: Sequence[_Writing]) -> list[_Writing]:
        """Return the waiting texts that are begun now: they fit next to the active ones, and share their beginning.

        Their prompts are read at once, so few rows that are free wait for more, and many tokens are read in turns.
        """
        session, active = self._session, len(self.active)
        together = [*self.active, *waiting[: MOST_ROWS["gpu"]]]
        fitting = next(_pack(session, together, session.cache_budget.tokens), [])[active:]
        if (not session.caches_rows and active) or len(fitting) < min(len(waiting), active // FREE_SHARE):
            return []
        new: list[_Writing] = []
        longest = 0
        for writing in fitting:
            longest = max(longest, len(writing.tokens) - len(writing.stem))
            if new and (writing.stem != new[0].stem or (len(new) + 1) * longest > session.budget.tokens):
                break
            new.append(writing)
        return new

    def advance(self, together: Sequence[_Writing]) -> list[_Writing]:
        """Begin the texts after the active ones, or write one token of these; return those that are done, and leave."""
        new = together[len(self.active) :]
        writings = new or self.active
        if not self._session.caches_rows:
            blocks, cache, mask = self._read([writing.tokens for writing in writings])
        elif new:
            blocks, cache, mask = self._begin(new)
        else:
            last = [writing.ids[-1:] for writing in writings]
            blocks, cache, mask = self._read(last, self._mask, self._cache)
        for writing, token in zip(writings, _next_tokens(blocks, writings, self._session), strict=True):
            writing.add(token, self._session)
        if new and self.active:
            join_rows(self._cache, cache)
            width = max(mask.shape[1], self._mask.shape[1])
            self._mask = torch.cat([pad(rows, (width - rows.shape[1], 0)) for rows in (self._mask, mask)])
        else:
            self._cache, self._mask = cache, mask
        self.active += new
        done = [writing for writing in self.active if writing.done]
        if done:
            self._keep([row for row, writing in enumerate(self.active) if not writing.done])
        return done

    def suspend(self) -> list[_Writing]:
        """Drop the rows of the texts for which there is no memory any more, never the first, and return these texts."""
        room = self._session.cache_budget.tokens
        fitting = len(next(_pack(self._session, self.active, room), []))
        suspended = self.active[fitting:]
        if suspended:
            self._keep(range(fitting))
        return suspended

    def _begin(self, new: Sequence[_Writing]) -> tuple[Any, Any, torch.Tensor]:
        """Read prompts, and what is written after them; return logits after them, their cache and their mask."""
        stem, past = new[0].stem, None
        if stem:
            if stem != self._stem[0]:
                self._stem = (stem, self._read([stem])[1])
            past = choose_rows(self._stem[1], torch.zeros(len(new), dtype=torch.int64))
        before = torch.ones((len(new), len(stem)), dtype=torch.int64)
        blocks, cache, mask = self._read([writing.tokens[len(stem) :] for writing in new], before, past)
        grow_in_place(cache)
        return blocks, cache, mask

    def _read(
        self, texts: Sequence[Sequence[int]], before: torch.Tensor | None = None, past: Any = None
    ) -> tuple[Any, Any, torch.Tensor]:
        """Read texts behind cached ones, padded on the left; return logits after them, their cache and their mask."""
        session, count, width = self._session, len(texts), max(len(text) for text in texts)
        before = torch.ones((count, 0), dtype=torch.int64) if before is None else before
        inputs = continue_inputs(texts, [width - len(text) for text in texts], before, session.pad_id)
        columns, keep = [width - 1] * count, session.caches_rows
        blocks, cache = session.forward(inputs, range(count), columns, past=past, keep_cache=keep)
        return blocks, cache, inputs["attention_mask"]

    def _keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows, and the columns that only they needed."""
        indices = torch.tensor(rows, dtype=torch.int64)
        self.active = [self.active[row] for row in rows]
        if not self.active:
            self._cache = None
        elif self._session.caches_rows:
            columns = int((self._mask[indices].cumsum(dim=1) > 0).sum(dim=1).max())
            self._mask = self._mask[indices, -columns:]
            keep_rows(self._cache, indices, columns)


def _next_tokens(blocks: Any, active: Sequence[_Writing], session: CausalSession) -> list[int]:
    tokens: list[int] = []
    for start, logits in blocks:
        session.require_finite(logits.amax(dim=-1), "numbers")
        best = logits.argmax(dim=-1).tolist()
        for row, token in enumerate(best):
            writing = active[start + row]
            sampled = writing.options.temperature > 0
            tokens.append(_sample(logits[row].cpu().numpy(), writing) if sampled else int(token))
    return tokens


def _sample(logits: npt.NDArray[np.float32], writing: _Writing) -> int:
    """Return a token drawn from the smallest set of likeliest tokens whose probability reaches `top_p`.

    Nucleus sampling of Holtzman et al. (2020, "The Curious Case of Neural Text Degeneration"), after the
    temperature. Every token draws a number from the text's own generator, and the largest sum of logit and number wins
    (Gumbel-max): last bits that differ between batches change a text only where two tokens are equal but for them.
    """
    options = writing.options
    scaled = logits.astype(np.float64) / options.temperature
    race = scaled - np.log(writing.random.standard_exponential(len(scaled)))
    if options.top_p == 1:
        return int(race.argmax())
    weights = np.exp(scaled - scaled.max())
    shares = weights / weights.sum()
    order = _likeliest(shares, LIKELIEST)
    if shares[order].sum() <= options.top_p:
        order = _likeliest(shares, len(shares))
    nucleus = order[: int(np.searchsorted(np.cumsum(shares[order]), options.top_p)) + 1]
    return int(nucleus[race[nucleus].argmax()])


def _likeliest(shares: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Return at most `count` tokens, the likeliest first, the first at ties; those at the limit are complete."""
    if count >= len(shares):
        return np.argsort(-shares, kind="stable")
    limit = np.partition(shares, len(shares) - count)[len(shares) - count]
    above = np.flatnonzero(shares > limit)
    return above[np.argsort(-shares[above], kind="stable")]
