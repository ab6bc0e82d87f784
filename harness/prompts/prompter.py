"""Builds the prompts of one cell: the item, its shots before it, as a text or as a conversation; and previews of them.

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
from harness.prompts.preset import ChoicePrompt, CompiledPrompt, LiteralPolicy, PromptItem, choose_literals
from harness.specs.documents import PromptSpec

_START, _END = "⟦", "⟧"
"""Stand around every text, so that spaces and line ends at its borders are seen."""
_SHORT_CONTEXT, _SHORT_ANSWER = 64, 32
"""Characters that one line shows of a context, and of what is to follow it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One item as a model sees it."""

    prompt: PromptSpec
    language: str
    """Of the item."""
    item: str
    """The item's id."""
    words: str
    """The language of the words and their provenance, as a phrase."""
    literals: str
    """The language of the words: English where there are none in the item's."""
    context: Prompt
    """With its shots; a conversation where the model is asked in turns."""
    shots: str = ""
    """How many there are and where they come from; empty without any."""
    choices: tuple[tuple[str, str], ...] = ()
    """Name and continuation of what is ranked; empty where the model writes."""
    unconditional: str | None = None
    gold: str | None = None
    """The name of the right choice; None for an unlabelled item."""
    answer: str | None = None
    """The text that is expected where the model writes; None for an unlabelled item."""

    def lines(self) -> Iterator[str]:
        """Yield the lines that `harness tasks show --render` prints; ``*`` marks the right choice."""
        yield f"prompt  {self.prompt.prompt} ({self.prompt.formulation}), item {self.item!r}"
        yield f"words   {self.words}"
        if self.shots:
            yield f"shots   {self.shots}"
        if isinstance(self.context, str):
            yield f"context {_START}{self.context}{_END}"
        else:
            yield from (f"{turn.role:9} {_START}{turn.text}{_END}" for turn in self.context)
        if self.unconditional is not None:
            yield f"without the item {_START}{self.unconditional}{_END}"
        width = max((len(name) for name, _ in self.choices), default=0)
        for name, text in self.choices:
            mark = "*" if name == self.gold else " "
            yield f"{mark} {name:{width}} {_START}{text}{_END}"
        if not self.choices:
            expected = "unknown: the item is not labelled"
            yield f"answer  {expected if self.answer is None else _START + self.answer + _END}"

    def line(self) -> str:
        """Return one line: the context, shortened in the middle, and what must follow it."""
        answer = dict(self.choices).get(self.gold or "", self.answer)
        context = self.context if isinstance(self.context, str) else self.context[-1].text
        shortened = _START + _short(context, _SHORT_CONTEXT) + _END
        if answer is not None:
            shortened += f" {_START}{_short(answer, _SHORT_ANSWER)}{_END}"
        words = "" if self.literals == self.language else f" (words: {self.literals})"
        return f"{self.language}{words} {shortened}"

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` writes of it."""
        return {
            "prompt": self.prompt.prompt,
            "formulation": self.prompt.formulation,
            "language": self.language,
            "item": self.item,
            "words": self.words,
            "context": self.context
            if isinstance(self.context, str)
            else [{"role": turn.role, "content": turn.text} for turn in self.context],
            "shots": self.shots,
            "choices": dict(self.choices),
            "unconditional": self.unconditional,
            "gold": self.gold,
            "answer": self.answer,
        }


def _short(text: str, length: int) -> str:
    line = text.replace("\n", "\u21b5")
    half = (length - 1) // 2
    return line if len(line) <= length else f"{line[:half]}\u2026{line[-half:]}"


def render_item(
    prompter: Prompter,
    example: Any,
    language: str,
    *,
    inherited: PromptSpec | None = None,
    policy: LiteralPolicy = "english",
    writes: bool | None = None,
    shots: str = "",
) -> Rendering:
    """Return one item as a prompter asks for it; raises `MissingDataError` or `SpecError` as its prompt does.

    Args:
        prompter: Of the item's cell.
        example: The item.
        language: Of the words.
        inherited: What the prompt takes words from.
        policy: What happens where a language has no words.
        writes: Whether the model writes its answer; None where the prompt alone decides.
        shots: How many there are and where they come from.
    """
    compiled, item = prompter.prompt, prompter.item(example)
    spec, count = compiled.spec, min(prompter.shots, len(prompter.pool))
    common: dict[str, Any] = {"prompt": spec, "language": language, "item": example.id, "gold": item.gold}
    common |= {"words": _words(spec, language, policy, inherited), "literals": compiled.literals_language}
    if spec.formulation == "generation" if writes is None else writes:
        answer = None if item.gold is None else compiled.answer(item)
        if answer is not None and prompter.chat:
            answer = answer.strip()
        return Rendering(**common, shots=shots, context=prompter.generation(example, count), answer=answer)
    ranked = prompter.ranking(example, count)
    return Rendering(
        **common,
        shots=shots,
        context=ranked.context,
        choices=tuple(zip(item.choices, ranked.continuations, strict=True)),
        unconditional=ranked.unconditional,
    )


def _words(prompt: PromptSpec, language: str, policy: LiteralPolicy, inherited: PromptSpec | None) -> str:
    chosen, words = choose_literals(prompt, language, policy=policy, inherited=inherited)
    if words is None:
        return "the same in all languages"
    word_language = (
        chosen if chosen in {**({} if inherited is None else inherited.literals), **prompt.literals} else None
    )
    where = "the same in all languages" if word_language is None else word_language
    source = f" from {words.source}" if words.source else ""
    missing = "" if word_language in {None, language} else f"; there are none in {language}"
    return f"{where} ({words.provenance}{source}){missing}"
