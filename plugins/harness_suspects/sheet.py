"""The items of the sheets for annotators: suspects, hidden among others that are drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.data import draw
from harness_suspects.answers import TaskAnswers
from harness_suspects.suspect import Suspect


def sheet_items(
    answers: TaskAnswers, suspects: Sequence[Suspect], *, controls: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows that ``harness annotate export --items`` reads.

    In every language suspects are a stratum that is whole, and the others one of which some are drawn, so that the
    report on the labels has unbiased shares for all items of the language.

    Args:
        answers: All answers.
        suspects: The suspects.
        controls: Others per suspect; as many as there are, where there are fewer.
        seed: Of the draw.
    """
    for language, code in enumerate(answers.languages):
        suspected = [suspect.id for suspect in suspects if suspect.language == code]
        if not suspected:
            continue
        remaining = [
            name
            for number, name in enumerate(answers.ids)
            if (language, number) in answers.items and name not in suspected
        ]
        count = min(controls * len(suspected), len(remaining))
        drawn = draw(remaining, count, seed=seed, task=answers.task, language=code)
        row = {"task": answers.task, "language": code}
        yield from ({**row, "id": name, "stratum": "suspect", "weight": 1.0} for name in suspected)
        weight = len(remaining) / count if count else 0.0
        yield from ({**row, "id": remaining[index], "stratum": "other", "weight": weight} for index in drawn)
