"""The four accuracies of IFEval, prompts and instructions that an answer follows, strictly and loosely; their mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from harness.metrics import (
    Floats,
    GroupScore,
    Metric,
    MetricContext,
    MetricFunction,
    MetricResult,
    check_pairs,
    field_of,
)
from harness_instructions.rules import Instruction, follows, loosened, require_detector

_RESPONSE_LANGUAGE: Final = "language:response_language"


def followed(answer: str, turn: Mapping[str, Any], language: str, *, loose: bool) -> list[bool]:
    """Return for each instruction of a turn whether the answer follows it.

    The answer is expected in the language that an instruction asks for, and otherwise in that of the items.
    """
    instructions = turn["instructions"]
    asked = [values["language"] for identifier, values in instructions if identifier == _RESPONSE_LANGUAGE]
    code = str(asked[0] if asked else language).split("-")[0]
    texts = loosened(answer) if loose else [answer]
    return [
        any(
            follows(text, identifier, Instruction(values=values, prompt=turn["prompt"], language=code))
            for text in texts
        )
        for identifier, values in instructions
    ]


def _accuracy(
    predictions: Sequence[Any],
    references: Sequence[Any],
    context: MetricContext,
    *,
    loose: bool,
    by_prompt: bool,
) -> MetricResult:
    """Return the share of prompts or instructions; groups are turns, or the sorts of instructions."""
    check_pairs(predictions, references)
    counts = np.zeros((len(references), 2))
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for index, (prediction, turns) in enumerate(zip(predictions, references, strict=True)):
        answers = field_of(prediction, "answers", index)
        for number, (answer, turn) in enumerate(zip(answers, turns, strict=True), start=1):
            verdicts = followed(answer, turn, context.language, loose=loose)
            names = [identifier for identifier, _ in turn["instructions"]]
            if by_prompt:
                verdicts, names = [all(verdicts)], [f"turn {number}"]
            counts[index] += sum(verdicts), len(verdicts)
            for name, verdict in zip(names, verdicts, strict=True):
                groups[name].append(verdict)
    parts = {
        name: GroupScore(value=sum(verdicts) / len(verdicts), n=len(verdicts))
        for name, verdicts in sorted(groups.items())
    }
    value = _share(counts.sum(axis=0))
    return MetricResult(value=value, counts=counts, groups=parts if len(parts) > 1 else {})


def _share(sums: Floats) -> float:
    return float(sums[0] / sums[1])


def _metric(name: str, subject: str, manner: str, compute: MetricFunction) -> Metric:
    return Metric(
        name=name,
        compute=compute,
        kinds=frozenset({"instruction_following"}),
        description=f"share of {subject} that the answer follows {manner}",
        source="Zhou et al. 2023, IFEval, section 3; google-research instruction_following_eval",
        from_counts=_share,
        ready=require_detector,
    )


_WHOLE: Final = "prompts with all their instructions"
_STRICTLY: Final = "as it stands"
_LOOSELY: Final = "in one of eight forms: without its first or last line, or asterisks"
ACCURACIES: Final = (
    _metric("prompt_level_strict_acc", _WHOLE, _STRICTLY, partial(_accuracy, loose=False, by_prompt=True)),
    _metric(
        "inst_level_strict_acc", "instructions", _STRICTLY, partial(_accuracy, loose=False, by_prompt=False)
    ),
    _metric("prompt_level_loose_acc", _WHOLE, _LOOSELY, partial(_accuracy, loose=True, by_prompt=True)),
    _metric(
        "inst_level_loose_acc", "instructions", _LOOSELY, partial(_accuracy, loose=True, by_prompt=False)
    ),
)


def _mean_accuracy(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the mean of the four accuracies; groups are turns."""
    check_pairs(predictions, references)
    counts = np.zeros((len(references), 2 * len(ACCURACIES)))
    turns: dict[str, GroupScore] = {}
    for number in range(max(map(len, references))):
        rows = [index for index, conversation in enumerate(references) if number < len(conversation)]
        answers = [
            {"answers": field_of(predictions[index], "answers", index)[number : number + 1]} for index in rows
        ]
        instructed = [references[index][number : number + 1] for index in rows]
        results = [metric.compute(answers, instructed, context).counts for metric in ACCURACIES]
        of_turn = np.hstack([result for result in results if result is not None])
        counts[rows] += of_turn
        turns[f"turn {number + 1}"] = GroupScore(value=_mean_share(of_turn.sum(axis=0)), n=len(rows))
    value = _mean_share(counts.sum(axis=0))
    return MetricResult(value=value, counts=counts, groups=turns if len(turns) > 1 else {})


def _mean_share(sums: Floats) -> float:
    """Return the mean of shares, of which each has its numerator and its denominator."""
    return float((sums[0::2] / sums[1::2]).mean())


METRICS: Final = (
    *ACCURACIES,
    Metric(
        name="ifeval_mean_acc",
        compute=_mean_accuracy,
        kinds=frozenset({"instruction_following"}),
        description="mean of the four accuracies, which Multi-IF's authors print by turn",
        source="He et al. 2024, Multi-IF",
        from_counts=_mean_share,
        ready=require_detector,
    ),
)
