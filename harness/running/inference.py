"""Deduplicates requests, shards them over processes, and journals every answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from harness.errors import ContractError
from harness.models.requests import Ability, Answered, Call, Streams
from harness.running.codec import FORMS, Form, request_keys, source_digest
from harness.running.processes import Interruption, ProcessGroup
from harness.storage.journal import Journal

BLOCK_CHARACTERS = 16_384
"""Text that an adapter which does not stream gets in one call: what a kill may lose."""
COUNTING = ("subword_counts", "token_counts")
"""Methods of adapters that take long on many texts."""
PASSED_ON = ("token_counts", "context_length", "hidden_states", "layer_count", "attentions")
"""Methods of capabilities whose answers are not kept."""


@dataclass(slots=True)
class RequestCounts:
    """Requests of a run over all processes; planned = asked + reused."""

    planned: int = 0
    asked: int = 0
    reused: int = 0

    def add(self, other: Mapping[str, int]) -> None:
        """Count what was counted elsewhere."""
        self.planned += other["planned"]
        self.asked += other["asked"]
        self.reused += other["reused"]

    def move(self, asked: int) -> None:
        """Count so many reused requests as asked: this run asked them, for a smaller sample."""
        self.asked += asked
        self.reused -= asked

    def to_json(self) -> dict[str, int]:
        """Return the form that ``results.json`` keeps."""
        return {"planned": self.planned, "asked": self.asked, "reused": self.reused}


class Watch:
    """Follows the requests of a wrapped model; this one does nothing."""

    def asking(self) -> None:
        """Called before every call of the model."""

    def answered(self, done: int, total: int) -> None:
        """Called after every answer: so many of the requests of the current call are answered."""


@dataclass(slots=True, kw_only=True)
class CachedModel:
    """Answers requests from the journal and sends only new ones to the model.

    A request is named by its content: by the identity of the model (weights, options, precision, versions) and by the
    rendered request. What the journal holds under that name is not asked again.
    """

    processes: ProcessGroup
    journal: Journal
    interruption: Interruption
    counts: RequestCounts = field(default_factory=RequestCounts)

    def wrap(self, adapter: Any, identity: Mapping[str, str], watch: Watch | None = None) -> CachedAdapter:
        """Return an adapter with the same capabilities, whose answers go through the journal.

        Args:
            adapter: The opened model.
            identity: The adapter's own, with whatever else makes its answers what they are.
            watch: Follows its requests.
        """
        source = source_digest(identity)
        self.journal.describe(source, identity)
        return CachedAdapter(self, adapter, source, watch or Watch())


class CachedAdapter:
    """An adapter whose answers come from the journal where it has them; what is no request is passed on.

    The methods of the adapter's capabilities are attributes of the object, so that it fulfils the same protocols.
    """

    def __init__(self, cached_model: CachedModel, adapter: Any, source: bytes, watch: Watch) -> None:
        self.adapter = adapter
        self.interruption = cached_model.interruption
        self._counts = cached_model.counts
        self._journal = cached_model.journal
        self._processes = cached_model.processes
        self._source = source
        self._watch = watch
        for ability in FORMS:
            if hasattr(adapter, ability):
                setattr(self, ability, getattr(self, f"_{ability}", partial(self._ask, ability)))
        for name in PASSED_ON:
            if hasattr(adapter, name):
                setattr(self, name, getattr(self, name))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.adapter, name)
        # What they count is not in the journal: the first signal of the user ends it.
        return self.interruption.immediate()(attribute) if name in COUNTING else attribute

    def _classify(self, inputs: Sequence[Any], labels: Sequence[str]) -> Any:
        return self._ask("classify", inputs, labels=tuple(labels))

    def _embed(self, texts: Sequence[str], *, side: Any, options: Any = None) -> Any:
        return self._ask("embed", texts, side=side, options=options)

    def _generate(self, prompts: Sequence[Any], options: Sequence[Any]) -> Any:
        return self._ask("generate", list(zip(prompts, options, strict=True)))

    def _ask(self, ability: Ability, requests: Sequence[Any], **arguments: Any) -> Any:
        """Return one answer per request, in order; an array of those that are rows of numbers.

        Raises `ContractError` where the adapter answers another number of requests, and `Interrupted` where the user
        wants to stop; what was answered is in the journal.
        """
        if not requests:
            # An adapter that is asked nothing knows the shape of nothing.
            return getattr(self.adapter, ability)(requests, **arguments) if arguments else []
        self._watch.asking()
        call = Call(ability=ability, arguments=arguments, stopping=self.interruption.requested)
        keys = request_keys(self._source, ability, arguments, requests)
        first = {key: number for number, key in reversed(list(enumerate(keys)))}
        chosen = sorted(first.values())
        share = _Share(
            keys=[keys[number] for number in chosen],
            requests=[requests[number] for number in chosen],
            form=FORMS[ability],
        )
        self._answer_known(share)
        blocks = self._blocks(ability, share)
        numbers = [number for block in blocks for number in block]
        batches = [[share.requests[number] for number in block] for block in blocks]
        stream = (
            self.adapter.stream if isinstance(self.adapter, Streams) else partial(_by_block, self.adapter)
        )
        remaining = len(numbers)
        self._watch.answered(0, remaining)
        for answered in stream(call, batches) if remaining else ():
            self._write(ability, share, [numbers[index] for index in answered.indices], answered.answers)
            remaining -= len(answered.answers)
            self._watch.answered(len(numbers) - remaining, len(numbers))
        if remaining:
            self.interruption.check()
            raise ContractError(
                f"{ability}() returned {len(numbers) - remaining} answers to {len(numbers)} requests."
            )
        answers = self._collect(share)
        asked = len(share.requests) - int(share.known.sum())
        self._counts.add({"planned": len(requests), "asked": asked, "reused": len(requests) - asked})
        positions = {keys[number]: position for position, number in enumerate(chosen)}
        ordered = [answers[positions[key]] for key in keys]
        return _array(ordered) if share.form.is_row else ordered

    def _answer_known(self, share: _Share) -> None:
        """Find out which process has which answers; read those that are this process's to give."""
        held = self._journal.known(share.keys)
        maps = [
            np.unpackbits(np.frombuffer(body, dtype=np.uint8), count=len(held)).astype(bool)
            for body in self._processes.gather(np.packbits(held).tobytes())
        ]
        table = np.stack(maps)
        share.known = table.any(axis=0)
        holder = table.argmax(axis=0)
        mine = np.flatnonzero(share.known & (holder == self._processes.rank))
        bodies = self._journal.read([share.keys[number] for number in mine.tolist()])
        share.bodies |= dict(zip(mine.tolist(), bodies, strict=True))

    def _blocks(self, ability: Ability, share: _Share) -> list[list[int]]:
        """Return this process's share of the unanswered requests, in blocks."""
        form, processes = share.form, self._processes
        lengths = [form.length(request) for request in share.requests]
        groups = None if form.group is None else [form.group(request) for request in share.requests]
        streams = isinstance(self.adapter, Streams)
        size = self.adapter.block_characters(ability) if streams else BLOCK_CHARACTERS
        if size is None and not processes.is_single:
            size = max(1, -(-sum(lengths) // (4 * processes.count)))
        blocks = plan_blocks(lengths, groups, size)[processes.rank :: processes.count]
        unanswered = [[number for number in block if not share.known[number]] for block in blocks]
        return [block for block in unanswered if block]

    def _write(self, ability: Ability, share: _Share, numbers: Sequence[int], answers: Sequence[Any]) -> None:
        """Keep answers to the requests of these numbers; raises `ContractError` for a request answered before."""
        if len({*numbers} - share.answers.keys()) < len(numbers) or len(numbers) != len(answers):
            raise ContractError(f"stream() answered a request of {ability}() twice, or none.")
        form = share.form
        answers = [form.clean(answer) for answer in answers]
        if form.is_row:  # as it is read back
            answers = [np.asarray(answer, dtype=np.float32) for answer in answers]
        share.answers |= dict(zip(numbers, answers, strict=True))
        sound = [number for number in numbers if form.is_sound(share.answers[number])]
        bodies = [form.encode(share.answers[number]) for number in sound]
        self._journal.append(self._source, ability, [share.keys[number] for number in sound], bodies)
        if not self._processes.is_single:
            share.bodies |= dict(zip(sound, bodies, strict=True))
            unsound = {*numbers} - {*sound}
            share.bodies |= {number: form.encode(share.answers[number]) for number in unsound}

    def _collect(self, share: _Share) -> list[Any]:
        """Return the answers of all processes."""
        decode = share.form.decode
        if self._processes.is_single:
            return [
                share.answers[number] if number in share.answers else decode(share.bodies[number])
                for number in range(len(share.requests))
            ]
        answers: list[Any] = [None] * len(share.requests)
        for message in self._processes.gather(_packed(share.bodies)):
            for number, body in _unpacked(message):
                answers[number] = decode(body)
        return answers


@dataclass(slots=True, kw_only=True)
class _Share:
    """The different requests of a call, and what this process knows of their answers."""

    keys: list[bytes]
    requests: list[Any]
    form: Form
    known: Any = None
    """Whether some process's journal has the answer."""
    bodies: dict[int, bytes] = field(default_factory=dict)
    answers: dict[int, Any] = field(default_factory=dict)


# Which requests are asked together ----------------------------------------------------------------------


def plan_blocks(
    lengths: Sequence[int], groups: Sequence[Hashable] | None, size: int | None
) -> list[list[int]]:
    """Return lists of request numbers, each with at most `size` characters of text, or a single group.

    The longest come first: where memory is too small, that shows at the start, and an estimate of the time left is
    too long rather than too short. Requests of one group stay together. `size` None makes one block.

    Blocks depend on the requests alone, not on how many processes share them nor on what has been answered before: so
    are the batches in them, and so every answer is the same to the bit for any number of processes.
    """
    if not lengths:
        return []
    members, weights = _grouped(lengths, groups)
    order = np.argsort(-np.asarray(weights, dtype=np.int64), kind="stable").tolist()
    blocks: list[list[int]] = [[]]
    filled = 0
    for number in order:
        added = weights[number] * len(members[number])
        if size is not None and blocks[-1] and filled + added > size:
            blocks.append([])
            filled = 0
        blocks[-1] += members[number]
        filled += added
    return blocks


def _grouped(lengths: Sequence[int], groups: Sequence[Hashable] | None) -> tuple[list[list[int]], list[int]]:
    """Return the requests of every group in order, and the longest length of each."""
    if groups is None:
        return [[index] for index in range(len(lengths))], list(lengths)
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return list(members.values()), [max(lengths[index] for index in indices) for indices in members.values()]


def _packed(bodies: Mapping[int, bytes]) -> bytes:
    heads = np.array([(number, len(body)) for number, body in bodies.items()], dtype="<i8").reshape(-1, 2)
    return len(bodies).to_bytes(8, "little") + heads.tobytes() + b"".join(bodies.values())


def _unpacked(message: bytes) -> Iterator[tuple[int, bytes]]:
    count = int.from_bytes(message[:8], "little")
    heads = np.frombuffer(message, dtype="<i8", count=2 * count, offset=8).reshape(-1, 2)
    start = 8 + 16 * count
    for number, size in heads.tolist():
        yield number, message[start : start + size]
        start += size


def _by_block(adapter: Any, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
    """Yield the answers of an adapter that does not stream, block by block."""
    start = 0
    for block in blocks:
        if call.stopping():
            return
        if call.ability == "generate":
            answers = adapter.generate([prompt for prompt, _ in block], [options for _, options in block])
        else:
            answers = getattr(adapter, call.ability)(block, **call.arguments)
        if len(answers) != len(block):
            raise ContractError(f"{call.ability}() returned {len(answers)} answers to {len(block)} requests.")
        yield Answered(indices=range(start, start + len(block)), answers=answers)
        start += len(block)


def _array(rows: Sequence[Any]) -> Any:
    widths = {np.shape(row) for row in rows}
    if len(widths) != 1:
        raise ContractError(f"The model gave rows of different shapes: {sorted(widths)}.")
    return np.stack(rows)
