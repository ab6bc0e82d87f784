"""Asks a model what is not known yet: each request once, shared by all processes, written down as it is answered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.errors import ContractError
from harness.models.capabilities import Capability, capability_protocols
from harness.models.requests import Ability, Answered, Call, Streams
from harness.running.codec import FORMS, Form, request_keys, source_digest
from harness.running.processes import ProcessGroup
from harness.running.signals import Interruption
from harness.storage.journal import Journal

BLOCK_CHARACTERS = 16_384
"""Text that an adapter which does not stream gets in one call: what a kill may lose."""


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

    def wrap(self, adapter: Any, identity: Mapping[str, str], watch: Watch | None = None) -> Any:
        """Return an adapter with the same capabilities, which asks `adapter` through this one.

        Args:
            adapter: The opened model.
            identity: The adapter's own, with whatever else makes its answers what they are.
            watch: Follows its requests.
        """
        source = source_digest(identity)
        self.journal.describe(source, identity)
        methods = {
            name: method
            for capability, capability_methods in _METHODS.items()
            if isinstance(adapter, capability_protocols()[capability])
            for name, method in capability_methods.items()
        }
        return type("Asked", (_Asked,), methods)(self, adapter, source, watch or Watch())

    def ask(
        self, adapter: Any, source: bytes, call: Call, requests: Sequence[Any], watch: Watch
    ) -> list[Any]:
        """Return one answer per request, in order.

        Raises `ContractError` where the adapter answers another number of requests, and `Interrupted` where the user
        wants to stop; what was answered is in the journal.
        """
        if not requests:
            return []
        watch.asking()
        form = FORMS[call.ability]
        keys = request_keys(source, call.ability, call.arguments, requests)
        first = {key: number for number, key in reversed(list(enumerate(keys)))}
        chosen = sorted(first.values())
        share = _Share(
            keys=[keys[number] for number in chosen],
            requests=[requests[number] for number in chosen],
            form=form,
        )
        self._answer_known(share)
        count = len(share.requests) - int(share.known.sum())
        self._ask_model(adapter, source, call, share, watch)
        answers = self._collect(share)
        self.counts.planned += len(requests)
        self.counts.asked += count
        self.counts.reused += len(requests) - count
        positions = {keys[number]: position for position, number in enumerate(chosen)}
        return [answers[positions[key]] for key in keys]

    def _answer_known(self, own: _Share) -> None:
        """Find out which process knows what; take the answers that are this process's to give."""
        held = self.journal.known(own.keys)
        maps = [
            np.unpackbits(np.frombuffer(body, dtype=np.uint8), count=len(held)).astype(bool)
            for body in self.processes.gather(np.packbits(held).tobytes())
        ]
        table = np.stack(maps)
        own.known = table.any(axis=0)
        holder = table.argmax(axis=0)
        mine = np.flatnonzero(own.known & (holder == self.processes.rank))
        bodies = self.journal.read([own.keys[number] for number in mine.tolist()])
        own.bodies |= dict(zip(mine.tolist(), bodies, strict=True))

    def _ask_model(self, adapter: Any, source: bytes, call: Call, own: _Share, watch: Watch) -> None:
        blocks = self._own_blocks(adapter, call, own)
        numbers = [number for block in blocks for number in block]
        remaining = len(numbers)
        batches = [[own.requests[number] for number in block] for block in blocks]
        watch.answered(0, remaining)
        for answered in _stream(adapter, call, batches) if remaining else ():
            answered_numbers = [numbers[index] for index in answered.indices]
            repeated = len(set(answered_numbers)) < len(
                answered_numbers
            ) or not own.answers.keys().isdisjoint(answered_numbers)
            if repeated or len(answered_numbers) != len(answered.answers):
                raise ContractError(f"stream() answered a request of {call.ability}() twice, or none.")
            self._write(source, call.ability, own, answered_numbers, answered.answers)
            remaining -= len(answered_numbers)
            watch.answered(len(numbers) - remaining, len(numbers))
        if remaining:
            self.interruption.check()
            raise ContractError(
                f"{call.ability}() returned {len(numbers) - remaining} answers to {len(numbers)} requests."
            )

    def _own_blocks(self, adapter: Any, call: Call, own: _Share) -> list[list[int]]:
        """Return this process's share of the unanswered requests, in blocks."""
        form = own.form
        lengths = [form.length(request) for request in own.requests]
        groups = None if form.group is None else [form.group(request) for request in own.requests]
        size = adapter.block_characters(call.ability) if isinstance(adapter, Streams) else BLOCK_CHARACTERS
        if size is None and not self.processes.is_single:
            size = max(1, -(-sum(lengths) // (4 * self.processes.count)))
        blocks = plan_blocks(lengths, groups, size)[self.processes.rank :: self.processes.count]
        unanswered = [[number for number in block if not own.known[number]] for block in blocks]
        return [block for block in unanswered if block]

    def _write(
        self, source: bytes, ability: Ability, own: _Share, places: Sequence[int], answers: Sequence[Any]
    ) -> None:
        answers = [own.form.clean(answer) for answer in answers]
        if own.form.is_row:  # as it is read back
            answers = [np.asarray(answer, dtype=np.float32) for answer in answers]
        own.answers |= dict(zip(places, answers, strict=True))
        sound = [number for number in places if own.form.is_sound(own.answers[number])]
        bodies = [own.form.encode(own.answers[number]) for number in sound]
        self.journal.append(source, ability, [own.keys[number] for number in sound], bodies)
        if not self.processes.is_single:
            own.bodies |= dict(zip(sound, bodies, strict=True))
            own.bodies |= {
                number: own.form.encode(own.answers[number]) for number in places if number not in own.bodies
            }

    def _collect(self, own: _Share) -> list[Any]:
        """Return the answers of all processes."""
        decode = own.form.decode
        if self.processes.is_single:
            return [
                own.answers[number] if number in own.answers else decode(own.bodies[number])
                for number in range(len(own.requests))
            ]
        answers: list[Any] = [None] * len(own.requests)
        for message in self.processes.gather(_packed(own.bodies)):
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


def _stream(adapter: Any, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
    """Yield answers as they come; from an adapter that does not stream, block by block."""
    if isinstance(adapter, Streams):
        yield from adapter.stream(call, blocks)
        return
    start = 0
    for block in blocks:
        if call.stopping():
            return
        answers = _invoke(adapter, call, block)
        if len(answers) != len(block):
            raise ContractError(f"{call.ability}() returned {len(answers)} answers to {len(block)} requests.")
        yield Answered(indices=range(start, start + len(block)), answers=answers)
        start += len(block)


def _invoke(adapter: Any, call: Call, block: Sequence[Any]) -> Any:
    if call.ability == "generate":
        return adapter.generate([prompt for prompt, _ in block], [options for _, options in block])
    return getattr(adapter, call.ability)(block, **call.arguments)


class _Asked:
    """An adapter whose answers go through a `CachedModel`; what is no question to the model goes straight through."""

    def __init__(self, cached_model: CachedModel, adapter: Any, source: bytes, watch: Watch) -> None:
        self.adapter = adapter
        self._cached_model = cached_model
        self._source = source
        self._watch = watch
        self.interruption = cached_model.interruption

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.adapter, name)
        if name == "subword_counts":
            # What it counts is not in the journal: the first signal of the user ends it.
            return self.interruption.immediate()(attribute)
        return attribute

    def ask(self, ability: Ability, requests: Sequence[Any], **arguments: Any) -> Any:
        """Return the answers, an array of those that are rows of numbers."""
        call = Call(ability=ability, arguments=arguments, stopping=self.interruption.requested)
        answers = self._cached_model.ask(self.adapter, self._source, call, requests, self._watch)
        # An adapter that is asked nothing knows the shape of nothing.
        return _array(answers) if FORMS[ability].is_row and answers else answers


def _array(rows: Sequence[Any]) -> Any:
    widths = {np.shape(row) for row in rows}
    if len(widths) != 1:
        raise ContractError(f"The model gave rows of different shapes: {sorted(widths)}.")
    return np.stack(rows)


def _classify(own: _Asked, inputs: Sequence[Any], labels: Sequence[str]) -> Any:
    return (
        own.ask("classify", inputs, labels=tuple(labels)) if inputs else own.adapter.classify(inputs, labels)
    )


def _embed(own: _Asked, texts: Sequence[str], *, side: Any, options: Any = None) -> Any:
    if not texts:
        return own.adapter.embed(texts, side=side, options=options)
    return own.ask("embed", texts, side=side, options=options)


def _generate(own: _Asked, prompts: Sequence[Any], options: Sequence[Any]) -> Any:
    return own.ask("generate", list(zip(prompts, options, strict=True)))


def _token_counts(own: _Asked, prompts: Sequence[Any]) -> Any:
    with own.interruption.immediate():
        return own.adapter.token_counts(prompts)


def _method(ability: Ability) -> Callable[[_Asked, Sequence[Any]], Any]:
    return lambda own, requests: own.ask(ability, requests)


def _passed(name: str) -> Callable[..., Any]:
    """Return a method of the adapter itself: what it returns is not in the journal."""
    return lambda own, *given, **named: getattr(own.adapter, name)(*given, **named)


_METHODS: Mapping[Capability, Mapping[str, Callable[..., Any]]] = {
    Capability.CLASSIFIES: {"classify": _classify},
    Capability.CHOOSES_BEST: {"choose": _method("choose")},
    Capability.TAGS: {"tag": _method("tag")},
    Capability.EXTRACTS_SPANS: {"extract_spans": _method("extract_spans")},
    Capability.EMBEDS: {"embed": _embed},
    Capability.SCORES_CONTINUATIONS: {"loglikelihood": _method("loglikelihood")},
    Capability.FILLS_MASKS: {"fill_masks": _method("fill_masks")},
    Capability.GENERATES: {"generate": _generate},
    Capability.COUNTS_TOKENS: {"token_counts": _token_counts, "context_length": _passed("context_length")},
    Capability.EXPOSES_HIDDEN_STATES: {name: _passed(name) for name in ("hidden_states", "layer_count")},
    Capability.EXPOSES_ATTENTIONS: {"attentions": _passed("attentions")},
}
"""The methods of every capability, as a wrapped model has them."""
