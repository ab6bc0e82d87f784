"""Log-probabilities and texts of a sequence-to-sequence model: greedy, seeded sampling, or one of a few given texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList
from transformers.modeling_outputs import BaseModelOutput

from harness import CapabilityError, UsageError
from harness.models import Call, Generated, GenerateOptions, Prompt, before_stop
from harness_hf.inference.pieces import Encoded
from harness_hf.inference.session import Inputs
from harness_hf.inference.text_vectors import check_writing, choose_likeliest
from harness_hf.loading import quiet_transformers
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Writings:
    """Prompts as the model reads them, with their options, and the choices of the prompts that have some."""

    sources: Sequence[Source]
    options: Sequence[GenerateOptions]
    choices: Sequence[str]
    targets: Sequence[TargetRequest]
    """One per choice, its end token included."""


def encode_prompts(
    session: Seq2SeqSession, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]
) -> Writings:
    """Return the tokens of prompts; see `TextWriter.generate` for the errors."""
    for option in options:
        check_writing(option, session)
        if option.choices is not None and option.temperature > 0:
            raise CapabilityError("The adapter 'hf-seq2seq' ranks choices; it cannot sample one of them.")
    pairs = [(number, text) for number, option in enumerate(options) for text in option.choices or ()]
    tokens = session.target_tokens([text for _, text in pairs])
    return Writings(
        sources=_sources(session, prompts, options),
        options=options,
        choices=[text for _, text in pairs],
        targets=[
            TargetRequest(source=number, tokens=[*ids, *session.ends[:1]])
            for (number, _), ids in zip(pairs, tokens, strict=True)
        ],
    )


def _sources(
    session: Seq2SeqSession, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]
) -> list[Source]:
    """Return the encoder inputs of prompts, each with the codes of its languages."""
    groups: dict[tuple[str, str] | None, list[int]] = {}
    for number, option in enumerate(options):
        groups.setdefault(option.languages, []).append(number)
    sources: dict[int, Source] = {}
    for languages, numbers in groups.items():
        direction = session.direction(languages)
        encoded = session.prompt_sources(
            [prompts[index] for index in numbers], session.length_limit(), direction
        )
        sources |= zip(numbers, encoded, strict=True)
    return [sources[number] for number in range(len(prompts))]


def write_texts(
    session: Seq2SeqSession, writings: Writings, call: Call
) -> Iterator[tuple[list[int], list[Generated]]]:
    """Yield (numbers of prompts, what the model writes for them) after every batch."""
    sources, options = writings.sources, writings.options
    groups: dict[tuple[int, int], list[int]] = {}
    for number, option in enumerate(options):
        if option.choices is None:
            start = len(sources[number].prefix)
            groups.setdefault((_room(session, option.max_tokens, start), start), []).append(number)
    for (room, _), numbers in sorted(groups.items(), reverse=True):
        lengths = [len(sources[number].encoded) + room for number in numbers]

        def write(batch: list[int], numbers: list[int] = numbers, room: int = room) -> list[Generated]:
            rows = [numbers[index] for index in batch]
            return _write(session, [sources[row] for row in rows], [options[row] for row in rows], room)

        for batch, texts in session.run_numbers(lengths, write, ability=call.ability, stopping=call.stopping):
            yield [numbers[index] for index in batch], texts
    yield from _choose(session, writings, call)


def _room(session: Seq2SeqSession, max_tokens: int, start: int) -> int:
    """Return how many tokens the decoder can write after the first ones: the last one is not read again."""
    limit = session.target_limit
    return max_tokens if limit is None else min(max_tokens, limit - start + 1)


def _choose(
    session: Seq2SeqSession, writings: Writings, call: Call
) -> Iterator[tuple[list[int], list[Generated]]]:
    """Yield the likeliest of the choices of each item, the end token after it included."""
    targets = writings.targets
    # Only inputs that have choices are encoded.
    row_of = {source: row for row, source in enumerate(dict.fromkeys(target.source for target in targets))}
    rows = [TargetRequest(source=row_of[target.source], tokens=target.tokens) for target in targets]
    scored = score_targets(session, [writings.sources[source] for source in row_of], rows, call)

    def chosen(number: int) -> Generated:
        return Generated(
            text=writings.choices[number],
            tokens=len(targets[number].tokens),
            finished=True,
            truncated=writings.sources[targets[number].source].truncated,
        )

    yield from choose_likeliest(
        [target.source for target in targets],
        len(writings.sources),
        ((numbers, [sum(score.logprobs) for score in scores]) for numbers, scores in scored),
        chosen,
    )


def _write(
    session: Seq2SeqSession, sources: Sequence[Source], options: Sequence[GenerateOptions], room: int
) -> list[Generated]:
    inputs = session.pad([source.encoded for source in sources])
    start = len(sources[0].prefix)
    prefix = torch.tensor([source.prefix for source in sources], device=session.device)
    stops = StopText(session, start, [option.stop for option in options])
    with quiet_transformers():
        rows = session.network.generate(
            **inputs,
            decoder_input_ids=prefix,
            decoder_start_token_id=prefix[:, 0].tolist(),  # transformers puts its own before any other
            max_new_tokens=room,
            logits_processor=LogitsProcessorList([SeededChoice(options)]),
            stopping_criteria=StoppingCriteriaList([stops]),
        )
    return [
        _read(session, ids[start:], stops.lengths[number], options[number], source)
        for number, (ids, source) in enumerate(zip(rows.tolist(), sources, strict=True))
    ]


def _read(
    session: Seq2SeqSession, ids: list[int], stopped: int | None, option: GenerateOptions, source: Source
) -> Generated:
    """Return the text of one row of a batch, without the padding that waited for longer rows."""
    end = next((position for position, token in enumerate(ids[:stopped]) if token in session.ends), None)
    text = session.decode(ids[: stopped if end is None else end])
    return Generated(
        text=before_stop(text, option.stop)[0],
        tokens=len(ids[:stopped]) if end is None else end + 1,
        finished=end is not None or stopped is not None,
        truncated=source.truncated,
    )


class SeededChoice(LogitsProcessor):
    """Leaves one token to the rows that are sampled; what it is depends on the row's own seed and scores."""

    def __init__(self, options: Sequence[GenerateOptions]) -> None:
        self._options = options
        self._random = [torch.Generator().manual_seed(option.seed) for option in options]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return the scores, where sampled rows have one token that is not impossible."""
        for row, (option, random) in enumerate(zip(self._options, self._random, strict=True)):
            if option.temperature > 0:
                token = _sample(scores[row], option, random)
                scores[row] = float("-inf")
                scores[row, token] = 0.0
        return scores


def _sample(scores: torch.Tensor, option: GenerateOptions, random: torch.Generator) -> int:
    """Return a token drawn from the nucleus: the likeliest tokens whose share reaches `top_p`."""
    shares = torch.softmax(scores.double().cpu() / option.temperature, dim=-1)
    ordered, tokens = torch.sort(shares, descending=True, stable=True)
    sums = ordered.cumsum(dim=0)
    nucleus = int((sums - ordered < option.top_p).sum())
    point = torch.rand(1, generator=random, dtype=torch.float64) * sums[nucleus - 1]
    return int(tokens[min(int(torch.searchsorted(sums, point, right=True)), nucleus - 1)])


class StopText(StoppingCriteria):
    """Ends every row whose text holds one of its own stop strings."""

    def __init__(self, session: Seq2SeqSession, start: int, stops: Sequence[tuple[str, ...]]) -> None:
        self._session = session
        self._start = start
        self._stops = stops
        self.lengths: list[int | None] = [None] * len(stops)
        """Tokens of a row when its stop string appeared."""

    def __call__(
        self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **kwargs: Any
    ) -> torch.BoolTensor:
        """Return which rows have ended, of shape (rows,)."""
        for row, stops in enumerate(self._stops):
            if stops and self.lengths[row] is None:
                text = self._session.decode(input_ids[row, self._start :].tolist())
                if any(stop in text for stop in stops):
                    self.lengths[row] = input_ids.shape[1] - self._start
        ended = [length is not None for length in self.lengths]
        return torch.tensor(ended, device=input_ids.device)  # type: ignore[return-value]
