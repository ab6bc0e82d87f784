"""Scores of texts of known worth once a method has read them: gold, and nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checks import Finding, Note
from harness.kinds import Method, MethodContext, TaskKind
from harness.languages import Language
from harness.metrics import Metric, MetricContext
from harness.models import Generated, GenerateOptions, Prompt
from harness.prompts import Prompter
from harness.specs import TaskSpec
from harness_audit.answers import Scored, Trial
from harness_audit.prompt import TaskPrompt
from harness_audit.split import named_ids

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
    """The method, metrics and items with which written answers are scored."""

    spec: TaskSpec
    kind: TaskKind
    method: Method
    metrics: Sequence[Metric]
    language: Language
    examples: Sequence[Any]

    def results(self, prompt: TaskPrompt) -> Iterator[Finding | Note]:
        """Yield texts that score otherwise than they should once the method has read them.

        Formats that are published as they are cannot carry every gold answer, since they set punctuation apart or
        name an entity without its place: what they lose is a note, unless it is more than a fifth.
        """
        assert self.kind.prompt_item is not None
        items = [self.kind.prompt_item(example) for example in self.examples]
        # Kinds whose answers are checked by rules have no gold text that could be written.
        written = [] if any(item.gold is None for item in items) else [*map(prompt.compiled.answer, items)]
        references = [self.kind.reference(example) for example in self.examples]
        context = MetricContext(
            language=self.language.code, labels=self.spec.label_names, options=self.spec.metric_options
        )
        for check, texts, ceiling in (("gold", written, 1.0), ("empty", [""] * len(items), 0.0)):
            if not texts:
                continue
            trial = Trial(name=check, check=check, outputs=self._read(prompt, texts), ceiling=ceiling)
            for metric in self.metrics:
                scored = Scored.of(metric, trial, self.examples, references, context)
                if not trial.is_expected(scored.goodness or 0.0):
                    yield self._result(prompt, metric, check, scored)

    def _read(self, prompt: TaskPrompt, texts: Sequence[str]) -> list[Any]:
        assert self.kind.prompt_item is not None
        prompter = Prompter(
            prompt=prompt.compiled,
            item=self.kind.prompt_item,
            task=self.spec.task,
            language=self.language.code,
        )
        context = MethodContext(
            spec=self.spec, language=self.language, protocol="prompted", seed=0, prompter=prompter
        )
        predictions = self.method.predict(_Writer(texts), self.examples, context)
        return [prediction.output for prediction in predictions]

    def _result(self, prompt: TaskPrompt, metric: Metric, check: str, scored: Scored) -> Finding | Note:
        value = scored.goodness or 0.0
        if check == "gold" and LEAST_CARRIED <= value < 1:
            items = ", ".join([metric.name, *([named_ids(scored.at_fault)] if scored.at_fault else [])])
            gold = f"the gold answers, written as the prompt {prompt.spec.prompt!r} has them, score"
            return Note(
                task=prompt.task,
                languages=(prompt.language,),
                check="written gold",
                text=f"{gold} {value * 100:.1f} ({items})",
            )
        name = "the gold answers, written as the prompt has them," if check == "gold" else "no text"
        expected = "100" if check == "gold" else "at most 0.0"
        score = f"{value * 100:.1f}" + (f" ({named_ids(scored.at_fault)})" if scored.at_fault else "")
        return prompt.finding(f"written {check}", f"{expected} ({metric.name}) for {name}", score)
