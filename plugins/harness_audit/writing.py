"""What texts of known worth score once a method has read them: gold, nothing, and all labels at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness import (
    Finding,
    Generated,
    GenerateOptions,
    Method,
    MethodContext,
    Metric,
    MetricContext,
    Note,
    Prompt,
    TaskKind,
    TaskSpec,
)
from harness.languages.table import Language
from harness.prompts.prompter import Prompter
from harness_audit.prompt import TaskPrompt
from harness_audit.split import named_ids
from harness_audit.trial import ROUNDING, Scored, Trial

__all__ = ["Writing", "writing_results"]

LEAST_CARRIED = 0.8
"""The least that gold answers must score once they were written and read."""


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes what it was given."""

    texts: Sequence[str]

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        return [Generated(text=text, tokens=1, finished=True) for text in self.texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What a cell of written answers is scored with."""

    spec: TaskSpec
    kind: TaskKind
    method: Method
    metrics: Sequence[Metric]
    language: Language
    examples: Sequence[Any]
    references: Sequence[Any]
    most: float
    """What the best constant label may score."""


def writing_results(writing: Writing, prompt: TaskPrompt) -> Iterator[Finding | Note]:
    """Yield texts that score otherwise than they should once the method has read them.

    Formats that are published as they are cannot carry every gold answer, since they set punctuation apart or name an
    entity without its place: what they lose is a note, unless it is more than a fifth.
    """
    make = writing.kind.prompt_item
    assert make is not None
    items = [make(example) for example in writing.examples]
    gold = [prompt.compiled.answer(item) for item in items]
    size = len(items)
    yield from _length_findings(writing, prompt, gold)
    tried: list[tuple[str, str, Sequence[str], float]] = [
        ("gold", "the gold answers, written as the prompt has them,", gold, 1.0),
        ("empty", "no text", [""] * size, 0.0),
    ]
    if items[0].choices:
        for between in ("", " "):
            joined = [between.join(prompt.compiled.words(item)) for item in items]
            tried.append(("all labels", f"the text {joined[0][:60]!r}", joined, writing.most))
    for check, name, texts, expected in tried:
        yield from _judged(writing, prompt, check, name, _read(writing, prompt, texts), expected)


def _length_findings(writing: Writing, prompt: TaskPrompt, gold: Sequence[str]) -> Iterator[Finding]:
    """Yield that most gold answers are cut off: a word has one token at least."""
    most = prompt.spec.max_tokens
    pairs = zip(writing.examples, gold, strict=True)
    items = [example.id for example, text in pairs if len(text.split()) > most]
    if 2 * len(items) > len(gold):
        found = f"{len(items):,} of {len(gold):,} gold answers with more words ({named_ids(items)})"
        yield prompt.finding("length", f"answers of at most {most:,} tokens ('max_tokens')", found)


def _read(writing: Writing, prompt: TaskPrompt, texts: Sequence[str]) -> list[Any]:
    assert writing.kind.prompt_item is not None
    prompter = Prompter(
        prompt=prompt.compiled,
        item=writing.kind.prompt_item,
        task=writing.spec.task,
        language=writing.language.code,
    )
    context = MethodContext(
        spec=writing.spec, language=writing.language, protocol="prompted", seed=0, prompter=prompter
    )
    predictions = writing.method.predict(_Writer(texts), writing.examples, context)
    return [prediction.output for prediction in predictions]


def _judged(
    writing: Writing, prompt: TaskPrompt, check: str, name: str, outputs: Sequence[Any], expected: float
) -> Iterator[Finding | Note]:
    context = MetricContext(
        language=writing.language.code, labels=writing.spec.label_names, options=writing.spec.metric_options
    )
    trial = Trial(name=name, check=check, outputs=outputs, ceiling=expected)
    for metric in writing.metrics:
        scored = Scored.of(metric, trial, writing.examples, writing.references, context)
        value = scored.goodness or 0.0
        items = [named_ids(scored.at_fault)] if scored.at_fault else []
        wrong = not abs(value - 1) <= ROUNDING if check == "gold" else not value <= expected + ROUNDING
        if check == "gold" and LEAST_CARRIED <= value < 1 - ROUNDING:
            gold = f"the gold answers, written as the prompt {prompt.spec.prompt!r} has them"
            sentence = f"{gold}, score {value * 100:.1f}"
            yield Note(
                task=prompt.task,
                languages=(prompt.language,),
                check="written gold",
                text=f"{sentence} ({', '.join([metric.name, *items])})",
            )
        elif wrong:
            least = "100" if check == "gold" else f"at most {expected * 100:.1f}"
            found = " ".join([f"{value * 100:.1f}", *(f"({own})" for own in items)])
            yield prompt.finding(f"written {check}", f"{least} ({metric.name}) for {name}", found)
