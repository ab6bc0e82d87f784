"""Log-probabilities of continuations: shared beginnings run once, logits at scored positions only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from harness.models import Call, LikelihoodAnswer, Prompt
from harness_hf.causal.prefix import (
    CACHE_FACTOR,
    PrefixGroup,
    choose_rows,
    continue_inputs,
    pack_groups,
    share_prefixes,
)
from harness_hf.causal.session import CausalSession, ScoredTokens
from harness_hf.inference.pieces import BatchPlan

LEAST_SAVED = 64
"""Tokens that another run must save."""
_Stretch = tuple[int, list[int], int]
"""Row of the beginning, texts that share the stretch, and where it ends in them."""
LEAST_SD = 1e-6
"""The standard deviation of log p where the model is certain of one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuations:
    """Contexts and continuations as the model reads them."""

    texts: Sequence[str]
    tokens: Sequence[ScoredTokens]

    @classmethod
    def encode(
        cls, session: CausalSession, contexts: Sequence[Prompt], continuations: Sequence[str]
    ) -> Continuations:
        """Return the tokens; raises `AdapterError` where one has none, or more than the context window."""
        return cls(texts=continuations, tokens=session.tokens.encode_requests(contexts, continuations))


def score_continuations(
    session: CausalSession, continuations: Continuations, call: Call
) -> Iterator[tuple[list[int], list[LikelihoodAnswer]]]:
    """Yield (numbers of continuations, their token log-probabilities) after every batch.

    Where the call says ``standardised``, a token's number is its standard score instead: see `_standard_scores`.
    Raises `AdapterError` for numbers that are not finite.
    """
    scores = _Scores(continuations.tokens)
    for done in _Scorer(session, continuations.tokens, scores, call).run():
        yield done, [scores.answer(number, continuations.texts[number], session) for number in done]


class _Scores:
    """Log-probabilities as they come in, by request and token."""

    def __init__(self, scored: Sequence[ScoredTokens]) -> None:
        self._scored = scored
        self._offsets = np.cumsum([0, *(len(sequence.ids) - sequence.start for sequence in scored)])
        self._logprobs = np.full(int(self._offsets[-1]), np.nan, dtype=np.float64)
        self._greedy = np.zeros(int(self._offsets[-1]), dtype=np.bool_)

    def slot(self, request: int, token: int) -> int:
        """Return where the number of a request's token at the index `token` belongs."""
        return int(self._offsets[request]) + token - self._scored[request].start

    def fill(self, slots: Any, logprobs: Any, greedy: Any) -> None:
        self._logprobs[slots] = logprobs
        self._greedy[slots] = greedy

    def answer(self, request: int, continuation: str, session: CausalSession) -> LikelihoodAnswer:
        sequence = self._scored[request]
        span = slice(int(self._offsets[request]), int(self._offsets[request + 1]))
        session.require_finite(self._logprobs[span], "log-probabilities")
        return LikelihoodAnswer(
            token_logprobs=tuple(self._logprobs[span].tolist()),
            is_greedy=bool(self._greedy[span].all()),
            byte_length=len(continuation.encode("utf-8")),
            truncated=sequence.truncated,
            straddles=sequence.straddles,
        )


@dataclass(slots=True)
class _Readout:
    """Positions of one run of the network whose logits are needed, and the tokens read off them."""

    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """For every number to read: which of the positions it is read at."""
    targets: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    _known: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, row: int, column: int, target: int, slot: int) -> None:
        position = self._known.setdefault((row, column), len(self.rows))
        if position == len(self.rows):
            self.rows.append(row)
            self.columns.append(column)
        self.positions.append(position)
        self.targets.append(target)
        self.slots.append(slot)


class _Scorer:
    """Runs the distinct texts of many requests, and reads the scored tokens off the logits."""

    def __init__(
        self, session: CausalSession, scored: Sequence[ScoredTokens], scores: _Scores, call: Call
    ) -> None:
        self._session = session
        self._scored = scored
        self._scores = scores
        self._call = call
        self._number = _standard_scores if call.arguments.get("standardised") else _log_probabilities
        # The last token is predicted, never read: choices of one token after one context are one text.
        self._requests: dict[tuple[int, ...], list[int]] = {}
        for request, sequence in enumerate(scored):
            self._requests.setdefault(tuple(sequence.ids[:-1]), []).append(request)
        self._texts = list(self._requests)

    def run(self) -> Iterator[list[int]]:
        """Yield the requests that are scored completely, after every batch."""
        session = self._session
        share = session.options.share_prefixes and session.caches_rows
        plan: BatchPlan[PrefixGroup] = BatchPlan(
            ability=self._call.ability,
            pack=lambda groups, tokens: pack_groups(groups, self._texts, tokens),
            size=lambda group: group.longest,
            stopping=self._call.stopping,
        )
        groups = share_prefixes(self._texts, share=share)
        for batch, _ in session.budget.run(groups, self._run_batch, plan):
            members = [member for group in batch for member in group.members]
            yield [request for member in members for request in self._requests[self._texts[member]]]

    def _run_batch(self, batch: list[PrefixGroup]) -> None:
        """Run the shared beginnings, then the rest of every text after the cached beginning of its group."""
        branches = [
            (row, member)
            for row, group in enumerate(batch)
            for member in group.members
            if len(self._texts[member]) > group.stem
        ]
        width = max(group.stem for group in batch)
        # Shared beginnings end at the same column, so that runs can continue from their caches.
        pads = [width - group.stem if branches else 0 for group in batch]
        readout = _Readout()
        for row, group in enumerate(batch):
            for member in group.members:
                self._want(readout, member, row, pads[row], range(group.stem))
        stems = [self._texts[group.members[0]][: group.stem] for group in batch]
        nothing = torch.ones((len(batch), 0), dtype=torch.int64)
        inputs = continue_inputs(stems, pads, nothing, self._session.pad_id)
        mask = inputs["attention_mask"]
        if not any(pads):
            # What follows a text is padding that a decoder's earlier positions do not see.
            inputs = {"input_ids": inputs["input_ids"]}
        blocks, cache = self._session.forward(
            inputs, readout.rows, readout.columns, keep_cache=bool(branches)
        )
        self._read(readout, blocks)
        if branches:
            self._continue(cache, mask, branches)

    def _continue(self, cache: Any, before: torch.Tensor, branches: Sequence[tuple[int, int]]) -> None:
        """Run the rest of texts behind cached beginnings; what several of them share is run once, then their rest.

        Args:
            cache: Of the beginnings, a row each.
            before: Which columns of the cache hold tokens of a row.
            branches: (row of the beginning, text) pairs.
        """
        session = self._session
        lengths = before.sum(dim=1).tolist()
        stretches = self._share_rests(branches, lengths)
        longest = stretches[0][2] - lengths[stretches[0][0]]
        tokens = session.budget.tokens
        most = max(1, min(tokens // longest, CACHE_FACTOR * tokens // (before.shape[1] + longest)))
        for first in range(0, len(stretches), most):
            chunk = stretches[first : first + most]
            readout, waiting, rests = _Readout(), [], []
            starts = [lengths[row] for row, _, _ in chunk]
            for number, ((_, members, stop), start) in enumerate(zip(chunk, starts, strict=True)):
                for member in members:
                    self._want(readout, member, number, -start, range(start, stop))
                rests.append(self._texts[members[0]][start:stop])
                waiting += [(number, member) for member in members if len(self._texts[member]) > stop]
            rows = torch.tensor([row for row, _, _ in chunk])
            inputs = continue_inputs(rests, [0] * len(rests), before[rows], session.pad_id)
            blocks, after = session.forward(
                inputs, readout.rows, readout.columns, past=choose_rows(cache, rows), keep_cache=True
            )
            self._read(readout, blocks)
            if waiting:
                self._continue(after, inputs["attention_mask"], waiting)

    def _share_rests(self, branches: Sequence[tuple[int, int]], lengths: Sequence[int]) -> list[_Stretch]:
        """Return the next stretches of texts, shared where that saves a quarter of the tokens, the longest first.

        Layers with windows count columns, so for them no padding may come between the tokens of a text.
        """
        rows: dict[int, list[int]] = {}
        for row, member in branches:
            rows.setdefault(row, []).append(member)
        total = sum(len(self._texts[member]) - lengths[row] for row, member in branches)
        saved, shared = 0, []
        for row, members in rows.items():
            start = lengths[row]
            groups = share_prefixes([self._texts[member][start:] for member in members], share=True)
            saved += sum((len(group.members) - 1) * group.stem for group in groups)
            shared += [
                (row, [members[index] for index in group.members], start + group.stem) for group in groups
            ]
        if self._session.row_cost.has_windows or saved < max(LEAST_SAVED, total // 4):
            shared = [(row, [member], len(self._texts[member])) for row, member in branches]
        return sorted(shared, key=lambda stretch: lengths[stretch[0]] - stretch[2])

    def _want(self, readout: _Readout, member: int, row: int, shift: int, within: range) -> None:
        """Ask for the scored tokens of a text that are predicted at positions `within` of it."""
        for request in self._requests[self._texts[member]]:
            sequence = self._scored[request]
            first, last = max(sequence.start - 1, within.start), min(len(sequence.ids) - 1, within.stop)
            for position in range(first, last):
                slot = self._scores.slot(request, position + 1)
                readout.add(row, position + shift, sequence.ids[position + 1], slot)

    def _read(self, readout: _Readout, blocks: Any) -> None:
        """Read the log-probabilities off blocks of logits; the softmax is over float32."""
        positions = np.asarray(readout.positions, dtype=np.int64)
        targets, slots = np.asarray(readout.targets, np.int64), np.asarray(readout.slots, np.int64)
        for start, logits in blocks:
            here = np.flatnonzero((positions >= start) & (positions < start + len(logits)))
            if not here.size:
                continue
            row = torch.from_numpy(positions[here] - start).to(logits.device)
            target = torch.from_numpy(targets[here]).to(logits.device)
            numbers = self._number(logits, row, target)
            greedy = logits.argmax(dim=-1)[row] == target
            self._scores.fill(slots[here], numbers.double().cpu().numpy(), greedy.cpu().numpy())


def _log_probabilities(logits: torch.Tensor, row: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return logits[row, target] - torch.logsumexp(logits, dim=-1)[row]


def _standard_scores(logits: torch.Tensor, row: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return (log p - mean) / sd, mean and sd of log p under the model's own distribution at the position.

    The number that Min-K%++ averages over the least likely tokens (Zhang et al. 2024, arXiv 2404.02936).
    """
    logprobs = torch.log_softmax(logits, dim=-1)
    shares = logprobs.exp()
    # A word that a model forbids has the logit minus infinity and adds nothing.
    mean = torch.nan_to_num(shares * logprobs, nan=0.0).sum(dim=-1)
    variance = torch.nan_to_num(shares * (logprobs - mean[:, None]) ** 2, nan=0.0).sum(dim=-1)
    return (logprobs[row, target] - mean[row]) / variance.sqrt().clamp(min=LEAST_SD)[row]
