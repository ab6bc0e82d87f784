"""Preview of the prompt for one item, shots included, with the words that were taken and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.models.requests import Prompt
from harness.prompts.preset import LiteralPolicy, choose_literals
from harness.prompts.prompter import Prompter
from harness.specs.prompt import PromptSpec

START, END = "⟦", "⟧"
"""Stand around every text, so that spaces and line ends at its borders are seen."""
SHORT_CONTEXT, SHORT_ANSWER = 64, 32
"""Characters that one line shows of a context, and of what is to follow it."""


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
            yield f"context {START}{self.context}{END}"
        else:
            yield from (f"{turn.role:9} {START}{turn.text}{END}" for turn in self.context)
        if self.unconditional is not None:
            yield f"without the item {START}{self.unconditional}{END}"
        width = max((len(name) for name, _ in self.choices), default=0)
        for name, text in self.choices:
            mark = "*" if name == self.gold else " "
            yield f"{mark} {name:{width}} {START}{text}{END}"
        if not self.choices:
            expected = "unknown: the item is not labelled"
            yield f"answer  {expected if self.answer is None else START + self.answer + END}"

    def line(self) -> str:
        """Return one line: the context, shortened in the middle, and what must follow it."""
        answer = dict(self.choices).get(self.gold or "", self.answer)
        context = self.context if isinstance(self.context, str) else self.context[-1].text
        shortened = START + _short(context, SHORT_CONTEXT) + END
        if answer is not None:
            shortened += f" {START}{_short(answer, SHORT_ANSWER)}{END}"
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
