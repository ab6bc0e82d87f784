"""What a trivial answer scores against what it may score: the findings of gold, constants, cut and shuffled answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import TYPE_CHECKING

from harness import Finding, Metric, Note
from harness_audit.answer import largest_constant
from harness_audit.split import AuditedSplit, named_ids
from harness_audit.trial import ROUNDING, Scored, Trial

if TYPE_CHECKING:
    from harness import TaskEntry

__all__ = ["Parts", "chance_notes", "collapse_notes", "judged"]

LEAST_PART = 0.1
"""What half of every gold answer scores at least where parts count."""
STANDARD_ERRORS = 3.0
"""By which a constant must exceed the declared chance of a task to be noted."""
ONE_LABEL = ("multiple_choice", "sequence_classification")
"""Kinds with one label per item, from a set that all items share."""
Parts = dict[str, dict[str, float]]
"""Metric -> language -> what half of every gold answer scores."""


def judged(task: str, split: AuditedSplit, metric: Metric, trial: Trial, scored: Scored) -> Iterator[Finding]:
    """Yield trials whose score is not the expected one; a rejected answer scores nothing.

    A metric that gives no number (NaN), or more than 1, is no fraction of what is right.
    """
    value = scored.goodness
    items = f" ({named_ids(scored.at_fault)})" if scored.at_fault else ""
    if trial.check == "gold":
        if value is None or not abs(value - 1) <= ROUNDING:
            found = (
                "an error: its references cannot be predicted"
                if value is None
                else f"{value * 100:.2f}{items}"
            )
            expected = f"100 ({metric.name}, {split.title}) for gold as prediction"
            yield Finding(
                task=task, languages=(split.language,), check="gold", expected=expected, found=found
            )
    elif value is not None and not value <= trial.ceiling + ROUNDING:
        expected = f"at most {trial.ceiling * 100:.1f} ({metric.name}, {split.title}) for {trial.name}"
        yield Finding(
            task=task,
            languages=(split.language,),
            check=trial.check,
            expected=expected,
            found=f"{value * 100:.1f}{items}",
        )


def collapse_notes(entry: TaskEntry, parts: Parts) -> Iterator[Note]:
    """Yield metrics that give a part of an answer its due in languages with spaces, and nothing in another."""
    for name, values in parts.items():
        if max(values.values()) < LEAST_PART:
            continue
        codes = [
            code
            for code, value in values.items()
            if value < LEAST_PART / 2 and entry.languages.get(code).segmentation == "character"
        ]
        if codes:
            reason = "which is exact match where words have no spaces"
            sentence = f"half of a gold answer scores nothing by {name!r}, {reason}"
            yield Note(task=entry.spec.task, languages=tuple(codes), check="parts", text=sentence)


def chance_notes(entry: TaskEntry, split: AuditedSplit, tried: Sequence[Trial]) -> Iterator[Note]:
    """Yield the constant that is right more often than the chance that a task declares, or a chance that none reaches.

    Of labels that all items share, the best constant is right at least as often as guessing.
    """
    chance, best = entry.spec.chance, largest_constant(tried)
    if chance is None or best is None:
        return
    error = sqrt(chance * (1 - chance) / len(split.examples))
    if best.ceiling > chance + STANDARD_ERRORS * error:
        sentence = (
            f"{best.name} is right in {best.ceiling * 100:.1f} % of the {len(split.examples):,} items of the "
            f"{split.title} split, and the task's chance is {chance * 100:.1f} %"
        )
    elif entry.spec.kind in ONE_LABEL and best.ceiling < chance - STANDARD_ERRORS * error:
        sentence = (
            f"the task's chance is {chance * 100:.1f} %, and no constant is right in more than "
            f"{best.ceiling * 100:.1f} % of the {len(split.examples):,} items of the {split.title} split"
        )
    else:
        return
    yield Note(task=entry.spec.task, languages=(split.language,), check="chance", text=sentence)
