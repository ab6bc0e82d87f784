"""Builds the prompts of one cell: the item, its shots before it, as a text or as a conversation.

Which shots an item gets depends on (seed, task, language, item id) only, and for parallel tasks not even on the
language; never on batches, order or the number of processes. An item is never its own shot, nor is its translation:
what is the same is a matter of text, not of files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from harness.models.requests import GenerateOptions, Prompt, Turn
from harness.prompts.preset import ChoicePrompt, CompiledPrompt, PromptItem


def item_seed(seed: int, task: str, language: str | None, identifier: str, repeat: int = 0) -> int:
    """Return a number below 2**32 that depends on nothing but its arguments; no language for parallel tasks."""
    key = json.dumps([seed, task, language or "", identifier, *([repeat] if repeat else [])])
    return int.from_bytes(blake2b(key.encode("ascii"), digest_size=4).digest(), "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompter:
    """Renders the examples of one cell."""

    prompt: CompiledPrompt
    """With the words of the instruction's language, for shots of any language too: an item's choices are theirs."""
    item: Callable[[Any], PromptItem]
    """The kind's `prompt_item`."""
    task: str
    language: str | None
    """None for parallel tasks."""
    seed: int = 0
    shots: int = 0
    pool: Sequence[Any] = field(default_factory=tuple)
    """The examples that shots are drawn from."""
    twins: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By id: the `text_key` of an item in the language of the pool, where the pool has another language."""
    chat: bool = False
    constrained: bool = False
    repeats: int = 1
    """How many answers every item gets."""

    @property
    def stop(self) -> tuple[str, ...]:
        """The strings that end a written answer."""
        return self.prompt.spec.chat_stop if self.chat else self.prompt.stop

    def seed_of(self, example: Any, repeat: int = 0) -> int:
        """Return the seed of everything that is drawn for an item, or for its second answer and the further ones."""
        return item_seed(self.seed, self.task, self.language, example.id, repeat)

    def shots_of(self, example: Any, count: int) -> list[PromptItem]:
        """Return the first `count` shots of an item: a smaller number takes a part of what a larger one takes."""
        return self._drawn(example)[0][:count]

    def excluded_shots(self, example: Any) -> int:
        """Return how many shots of an item were drawn and replaced, since they have its text or its translation's."""
        return self._drawn(example)[1]

    def _drawn(self, example: Any) -> tuple[list[PromptItem], int]:
        most = min(self.shots, len(self.pool))
        if not most:
            return [], 0
        tested = {self.item(example).text_key, self.twins.get(example.id)} - {frozenset()}
        shots: list[PromptItem] = []
        excluded = 0
        for index in self._order(example, most):
            shot = self.item(self.pool[index])
            if shot.text_key in tested:
                excluded += 1
            else:
                shots.append(shot)
            if len(shots) == most:
                break
        return shots, excluded

    def _order(self, example: Any, most: int) -> Iterator[int]:
        """Yield the numbers of the pool's examples in the order in which they become shots of an item."""
        numbers = range(len(self.pool))
        if self.prompt.spec.shot_order == "file":
            yield from numbers
            return
        generator = random.Random(self.seed_of(example))  # noqa: S311
        drawn = generator.sample(numbers, most)
        yield from drawn
        further = sorted(set(numbers).difference(drawn))
        yield from generator.sample(further, len(further))

    def ranking(self, example: Any, shots: int) -> ChoicePrompt:
        """Return the choices that are ranked for an item, with so many shots before it."""
        item = self.item(example)
        ranked = self.prompt.ranking(item)
        before = self._before(item, example, shots)
        return ChoicePrompt(
            context=before + ranked.context,
            continuations=ranked.continuations,
            unconditional=ranked.unconditional,
        )

    def generation(self, example: Any, shots: int) -> Prompt:
        """Return the prompt that the model continues: a text, or with `chat` a conversation."""
        item = self.item(example)
        if not self.chat:
            return self._before(item, example, shots) + self.prompt.context(item)
        system = self.prompt.system(item).strip()
        turns = [Turn(role="system", text=system)] if system else []
        for shot in self.shots_of(example, shots):
            turns.append(Turn(role="user", text=self.prompt.context(shot).strip()))
            turns.append(Turn(role="assistant", text=self.prompt.answer(shot).strip()))
        return (*turns, Turn(role="user", text=self.prompt.context(item).strip()))

    def _before(self, item: PromptItem, example: Any, shots: int) -> str:
        between = self.prompt.spec.between
        solved = [self.prompt.shot(shot) + between for shot in self.shots_of(example, shots)]
        return self.prompt.system(item) + "".join(solved)

    def options(
        self, example: Any, *, choices: tuple[str, ...] | None = None, regex: str | None = None
    ) -> GenerateOptions:
        """Return how an item's answer is generated; constraints only where the run asks for them."""
        spec = self.prompt.spec
        return GenerateOptions(
            max_tokens=spec.max_tokens,
            stop=self.stop,
            temperature=spec.temperature,
            top_p=spec.top_p,
            seed=self.seed_of(example),
            choices=choices if self.constrained else None,
            regex=regex if self.constrained else None,
            reasoning_markers=spec.reasoning_markers,
        )
