"""Error rates of predictions on generated cases, with the floor that the templates force."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.statistics.proportion import wilson
from harness_checklist.generation.case import Case
from harness_checklist.generation.defect import case_defect
from harness_checklist.reporting.prediction import ExampleKey
from harness_checklist.suites.profile import Profile

__all__ = ["TestScore", "score_cases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestScore:
    """The scores of a system on a test in one language; all rates in [0, 1]."""

    __test__ = False

    language: str
    test: str
    cases: int
    failed: int
    """Cases with a wrong example or without examples (XTREME-R 3.4)."""
    examples: int
    failed_examples: int
    defective: int
    """Cases that cannot be passed (`defect.case_defect`)."""
    failed_passable: int
    """Failed cases that can be passed."""

    @property
    def error(self) -> float:
        """The share of failed cases."""
        return self.failed / self.cases

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval (Wilson 1927)."""
        return wilson(self.failed, self.cases)

    @property
    def example_error(self) -> float | None:
        """The share of wrong examples; None without examples."""
        return self.failed_examples / self.examples if self.examples else None

    @property
    def floor(self) -> float:
        """The share of cases that cannot be passed."""
        return self.defective / self.cases

    @property
    def corrected_error(self) -> float | None:
        """The share of failed cases among those that can be passed; None where none can."""
        passable = self.cases - self.defective
        return self.failed_passable / passable if passable else None

    @property
    def corrected_interval(self) -> tuple[float, float] | None:
        """Its 95 % interval (Wilson 1927)."""
        passable = self.cases - self.defective
        return wilson(self.failed_passable, passable) if passable else None

    def as_row(self) -> dict[str, str | int | float | None]:
        """Return the score as a plain object."""
        low, high = self.interval
        corrected_low, corrected_high = self.corrected_interval or (None, None)
        return {
            "language": self.language,
            "test": self.test,
            "cases": self.cases,
            "failed": self.failed,
            "error": self.error,
            "error_low": low,
            "error_high": high,
            "examples": self.examples,
            "failed_examples": self.failed_examples,
            "example_error": self.example_error,
            "floor": self.floor,
            "corrected_error": self.corrected_error,
            "corrected_low": corrected_low,
            "corrected_high": corrected_high,
        }


def score_cases(
    cases: Sequence[Case], predictions: Mapping[ExampleKey, str], profile_of: Callable[[str], Profile]
) -> list[TestScore]:
    """Return the scores by language and test, in the order of the cases.

    An example passes where prediction and answer are equal after the profile of its language, a case where all its
    examples do. Raises `KeyError` for an example without prediction.
    """
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.language, case.test), []).append(case)
    return [
        _score(language, test, own, predictions, profile_of(language))
        for (language, test), own in groups.items()
    ]


def _score(
    language: str,
    test: str,
    cases: Sequence[Case],
    predictions: Mapping[ExampleKey, str],
    profile: Profile,
) -> TestScore:
    failed = failed_passable = wrong_examples = defective = 0
    for case in cases:
        wrong = sum(
            profile.clean(predictions[language, example.id]) != profile.clean(example.answer)
            for example in case.examples
        )
        fails = wrong > 0 or not case.examples
        passable = case_defect(case.examples, profile) is None
        failed += fails
        failed_passable += fails and passable
        wrong_examples += wrong
        defective += not passable
    return TestScore(
        language=language,
        test=test,
        cases=len(cases),
        failed=failed,
        examples=sum(len(case.examples) for case in cases),
        failed_examples=wrong_examples,
        defective=defective,
        failed_passable=failed_passable,
    )
