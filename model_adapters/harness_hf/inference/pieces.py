"""The pieces of texts: special ones, counts, offsets checked against texts, and batches of similar length as tensors.

Batches fit into the free memory.
"""

from __future__ import annotations

import gc
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import psutil
import torch
from accelerate.utils.memory import should_reduce_batch_size

from harness import AdapterError
from harness.models import SubwordCount

if TYPE_CHECKING:
    from harness_hf.inference.session import ModelSession

SHARES = {"cpu": 0.25, "cuda": 0.8, "mps": 0.5}
"""Share of the free memory that batches may take; a CPU's is used by other programs too."""
CGROUP = Path("/sys/fs/cgroup")
"""Where Linux keeps the limit of a container."""
LEAST_TOKENS, MOST_TOKENS = 1024, 131_072
"""Pieces of a batch on a GPU; above, a batch takes longer and no piece is faster."""
FURTHER_SHORTAGES = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Messages of CUDA about too little memory that accelerate does not recognise."""


def free_memory(device: torch.device) -> int:
    """Return the bytes of a device that batches may take."""
    return int(SHARES[device.type] * _free(device))


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.current_allocated_memory())
    available = int(psutil.virtual_memory().available)
    try:
        limit, used = ((CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        return max(0, min(available, int(limit) - int(used)))
    except (OSError, ValueError):  # no container, or one without a limit
        return available


def tokens_within(memory: int, network: Any, cached: int) -> int:
    """Return how many pieces a batch may have whose activations, and `cached` bytes per piece, fit into the memory.

    About eight states are alive while a piece runs through a layer: residual, normalised, queries, keys, values,
    attention and copies; and three of the feed-forward part.
    """
    config = network.config.get_text_config()
    hidden = int(getattr(config, "hidden_size", None) or 4096)
    inner = int(getattr(config, "intermediate_size", None) or getattr(config, "d_ff", None) or 4 * hidden)
    # A decoder behind an encoder keeps keys and values of its own tokens and of the encoder's.
    cross_attention = (
        4 * config.num_hidden_layers if getattr(network.config, "is_encoder_decoder", False) else 0
    )
    piece: int = network.dtype.itemsize * ((8 + cross_attention) * hidden + 3 * inner) + cached
    return min(MOST_TOKENS, max(LEAST_TOKENS, memory // piece))


@dataclass(frozen=True, slots=True)
class Encoded:
    """The pieces of one sequence, special pieces included."""

    input_ids: Sequence[int]
    type_ids: Sequence[int] = field(default=())
    """Segment of every piece; empty where all are of the first."""

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self.input_ids)


def length_sorted_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield lists of indices, longest sequences first, with (size x longest) of each at most `budget`.

    A sequence longer than the budget is alone in its batch. The longest come first so that memory runs out at once, if
    at all. Ties keep their order, so the batches are the same every time.
    """
    batch: list[int] = []
    for index in np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist():
        if batch and (len(batch) + 1) * max(lengths[batch[0]], 1) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad_batch(batch: Sequence[Encoded], pad_id: int, names: Sequence[str]) -> Mapping[str, torch.Tensor]:
    """Return the named model inputs, each of shape (len(batch), longest), padded on the right."""
    width = max(1, *(len(encoded) for encoded in batch))
    shape = (len(batch), width)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    types = np.zeros(shape, dtype=np.int64)
    for row, encoded in enumerate(batch):
        size = len(encoded)
        input_ids[row, :size] = encoded.input_ids
        mask[row, :size] = 1
        if encoded.type_ids:
            types[row, :size] = encoded.type_ids
    arrays = {"input_ids": input_ids, "attention_mask": mask}
    if "token_type_ids" in names:
        arrays["token_type_ids"] = types
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


Work = TypeVar("Work")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan(Generic[Work]):
    """How one kind of work is divided into batches."""

    ability: str
    """What is done, for messages: ``classify``."""
    pack: Callable[[Sequence[Work], int], Iterable[list[Work]]]
    """Called as ``pack(work, tokens)``; batches of one token at most hold one sequence each."""
    size: Callable[[Work], int]
    """Tokens of a piece of work, for messages."""
    stopping: Callable[[], bool] = lambda: False
    """Called before every batch; once it returns True, no further batch starts."""


class TokenBudget:
    """The tokens of a batch, halved for the rest of the run wherever a batch finds too little memory.

    Batches of texts that are written count the bytes of their cache instead.
    """

    def __init__(self, ref: str, tokens: int, unit: str = "pieces") -> None:
        self.initial = tokens
        """The number that options, device and free memory set."""
        self.tokens = tokens
        """The current number: `initial`, or less after a shortage."""
        self._ref = ref
        self._unit = unit
        self._shortages: dict[str, tuple[int, int]] = {}

    def run(
        self, work: Sequence[Work], forward: Callable[[list[Work]], Result], plan: BatchPlan[Work]
    ) -> Iterator[tuple[list[Work], Result]]:
        """Yield (a batch, what `forward` returned for it) until all work is done, or `plan.stopping` returns True.

        `forward` runs in inference mode. A batch that finds too little memory is run again in smaller ones,
        and so is all that comes after it. Raises `AdapterError` where one sequence alone is too long.
        """
        waiting, before = list(work), self.state()
        while waiting:
            batches = list(plan.pack(waiting, self.tokens))
            waiting = []
            for number, batch in enumerate(batches):
                if plan.stopping():
                    return
                result = self.attempt(batch, forward, plan, before)
                if result is None:
                    waiting = [item for later in batches[number:] for item in later]
                    break
                yield batch, result[0]

    def state(self) -> tuple[int, dict[str, tuple[int, int]]]:
        """Return the current number and the shortages until now, to which a failed run returns."""
        return self.tokens, dict(self._shortages)

    def attempt(
        self, batch: list[Work], forward: Callable[[list[Work]], Result], plan: BatchPlan[Work], before: Any
    ) -> tuple[Result] | None:
        """Return the output of `forward` for a batch; None where memory was short, and `tokens` divides the batch now.

        Raises `AdapterError` where one sequence alone is too long; `before` is the `state` to return to then.
        """
        result = _attempt(forward, batch)
        if not isinstance(result, Exception):
            return result
        if self._shrink(batch, plan):
            return None
        # The sequence is too long, whatever the batch size: the other batches keep their size.
        self.tokens, self._shortages = before
        raise self._too_long(batch[0], plan) from result

    def notices(self) -> list[str]:
        """Return one sentence for every kind of work that found too little memory."""
        return [
            f"Out of memory with batches of {first:,} {self._unit} ({ability}); continued with {last:,}."
            for ability, (first, last) in self._shortages.items()
        ]

    def _shrink(self, batch: list[Work], plan: BatchPlan[Work]) -> bool:
        """Halve the budget until it divides the batch; return whether it does, as for one sequence it never can."""
        if torch.cuda.is_available():
            gc.collect()
            torch.cuda.empty_cache()
        tokens = self.tokens
        while tokens > 1:
            tokens //= 2
            if sum(1 for _ in plan.pack(batch, tokens)) > 1:
                first, _ = self._shortages.get(plan.ability, (self.tokens, 0))
                self._shortages[plan.ability] = (first, tokens)
                self.tokens = tokens
                return True
        return False

    def _too_long(self, item: Work, plan: BatchPlan[Work]) -> AdapterError:
        return AdapterError(
            f"There is too little memory for one sequence of {plan.size(item):,} pieces with {self._ref!r} "
            f"({plan.ability}).",
            hint="Pass a smaller -o max_length, or -o device=cpu where it ran on a GPU.",
        )


def by_length(lengths: Sequence[int]) -> Callable[[Sequence[int], int], Iterator[list[int]]]:
    """Return how numbers of sequences are packed whose lengths are these: see `length_sorted_batches`."""

    def pack(chosen: Sequence[int], tokens: int) -> Iterator[list[int]]:
        for batch in length_sorted_batches([lengths[number] for number in chosen], tokens):
            yield [chosen[position] for position in batch]

    return pack


def is_shortage(error: Exception) -> bool:
    """Return whether an error says that a device, or the machine, has too little memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if not (isinstance(error, RuntimeError) and len(error.args) == 1 and isinstance(error.args[0], str)):
        return False
    is_recognised = bool(should_reduce_batch_size(error))
    return is_recognised or any(text in error.args[0] for text in FURTHER_SHORTAGES)


def _attempt(forward: Callable[[list[Work]], Result], batch: list[Work]) -> tuple[Result] | Exception:
    """Return the output of `forward`, or the error that says that memory is short."""
    try:
        with torch.inference_mode():
            return (forward(batch),)
    except Exception as error:
        if not is_shortage(error):
            raise
        # Its frames hold the tensors that have to be freed.
        return error.with_traceback(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """Special pieces before, between and after the texts, with the segment of each piece."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    before_types: tuple[int, ...]
    between_types: tuple[int, ...]
    after_types: tuple[int, ...]
    first_type: int
    second_type: int

    @classmethod
    def around(cls, before: Sequence[int], after: Sequence[int] = ()) -> SpecialTokens:
        """Return the template of one text, all of it of the first segment."""
        return cls(
            before=tuple(before),
            between=(),
            after=tuple(after),
            before_types=(0,) * len(before),
            between_types=(),
            after_types=(0,) * len(after),
            first_type=0,
            second_type=0,
        )

    def separated_by(self, pieces: Sequence[int]) -> SpecialTokens:
        """Return the template with these pieces between the texts, of the first segment."""
        return replace(self, between=tuple(pieces), between_types=(self.first_type,) * len(pieces))

    @property
    def size(self) -> int:
        """The number of special pieces."""
        return len(self.before) + len(self.between) + len(self.after)

    def wrap(self, first: list[int], second: list[int] | None = None) -> Encoded:
        """Return the pieces of the texts with the special pieces around them."""
        second = second if second is not None else []
        return Encoded(
            [*self.before, *first, *self.between, *second, *self.after],
            [
                *self.before_types,
                *[self.first_type] * len(first),
                *self.between_types,
                *[self.second_type] * len(second),
                *self.after_types,
            ],
        )

    def second_start(self, first_length: int) -> int:
        """Return the index of the second text's first piece."""
        return len(self.before) + first_length + len(self.between)


def read_affixes(tokenizer: Any, ref: str, side: str = "text") -> SpecialTokens:
    """Return the special pieces around an input (side ``text``) or an output (``text_target``), found by a probe."""
    plain = list(tokenizer(**{side: "a"}, add_special_tokens=False)["input_ids"])
    pieces = list(tokenizer(**{side: "a"})["input_ids"])
    for start in range(len(pieces) - len(plain) + 1):
        if plain and pieces[start : start + len(plain)] == plain:
            return SpecialTokens.around(pieces[:start], pieces[start + len(plain) :])
    raise AdapterError(
        f"The tokenizer of {ref!r} changes a text when special tokens are added, so it cannot be used here."
    )


def read_templates(tokenizer: Any) -> tuple[SpecialTokens, SpecialTokens]:
    """Return the templates of one text and of a pair, found by encoding a probe with and without them."""
    probe = tokenizer("a", add_special_tokens=False)["input_ids"] or [tokenizer.unk_token_id]
    single = tokenizer("a", return_token_type_ids=True)
    pair = tokenizer("a", "a", return_token_type_ids=True)
    return (
        _parse(single["input_ids"], single["token_type_ids"], probe, texts=1),
        _parse(pair["input_ids"], pair["token_type_ids"], probe, texts=2),
    )


def _parse(ids: list[int], types: list[int], probe: list[int], *, texts: int) -> SpecialTokens:
    """Split encoded texts at the pieces of the probe."""
    starts = [i for i in range(len(ids)) if ids[i : i + len(probe)] == probe]
    if len(starts) < texts:
        raise AdapterError(
            "The tokenizer changes a text when special pieces are added, so it cannot be used here."
        )
    first, second = starts[0], starts[-1] if texts == 2 else len(ids)
    first_end = first + len(probe)
    after = second + len(probe) if texts == 2 else first_end
    middle = slice(first_end, second if texts == 2 else first_end)
    return SpecialTokens(
        before=tuple(ids[:first]),
        between=tuple(ids[middle]),
        after=tuple(ids[after:]),
        before_types=tuple(types[:first]),
        between_types=tuple(types[middle]),
        after_types=tuple(types[after:]),
        first_type=types[first],
        second_type=types[second] if texts == 2 else types[first],
    )


class SubwordCounting:
    """`CountsSubwords` of an adapter whose session has a tokenizer."""

    _session: ModelSession

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return one count per text, without special tokens, prefixes and padding, before anything is cut."""
        session = self._session
        unknown = session.tokenizer.unk_token_id
        return [
            SubwordCount(tokens=len(ids), unknown=None if unknown is None else ids.count(unknown))
            for ids in subword_ids(session, texts)
        ]


def subword_ids(session: ModelSession, texts: Sequence[str]) -> list[list[int]]:
    """Return the pieces of texts without special ones, uncut; no piece for an empty text."""
    with session.tokenizing:
        return plain_pieces(session.tokenizer, texts)


def plain_pieces(tokenizer: Any, texts: Sequence[str], side: str = "text") -> list[list[int]]:
    """Return the pieces of inputs (side ``text``) or outputs (``text_target``) without special ones, uncut."""
    if not texts:
        return []
    encoded = tokenizer(
        **{side: list(texts)}, add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return list(encoded["input_ids"])


def piece_offsets(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the offsets of a text's pieces, repaired, without blanks at their ends; shape (pieces, 2), code points.

    What a tokenizer reports is checked: neighbouring pieces leave no visible character out. Byte-level tokenizers trim
    one character off every piece that begins with a space sign, also where their pre-tokenizer has removed the space
    (RobBERT): a word then loses its first letter, and a word of one letter has no piece. A character without a piece
    belongs to the piece that follows without a blank, else to the piece before it; one between blanks to none. An
    empty piece right after a visible character is that character's, as an inserted space sign is its word's.
    """
    covered = bytearray(len(text))
    for start, end in offsets:
        covered[start:end] = b"\1" * (end - start)
    repaired = []
    for start, end in offsets:
        first = start - 1 if start == end and start and _is_visible(text[start - 1]) else start
        while first and not covered[first - 1] and not text[first - 1].isspace():
            first -= 1
        while first < start and not _is_visible(text[first]):
            first += 1
        covered[first:start] = b"\1" * (start - first)
        repaired.append((first, end))
    return [_without_blanks(text, *_extended(text, covered, *pair)) for pair in repaired]


def _extended(text: str, covered: bytearray, start: int, end: int) -> tuple[int, int]:
    """Return a piece with the visible characters after it that no piece has."""
    last = end
    while start < end and last < len(text) and not covered[last] and not text[last].isspace():
        last += 1
    while last > end and not _is_visible(text[last - 1]):
        last -= 1
    return start, last


def _is_visible(character: str) -> bool:
    """Return whether a character is a letter, number, punctuation or symbol: no space, mark or format character."""
    return not character.isspace() and unicodedata.category(character)[0] in "LNPS"


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a piece without the spaces that sentencepiece counts to it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
