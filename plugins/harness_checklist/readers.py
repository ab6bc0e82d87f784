"""Readers of test cases: generated JSON lines, and the released templates, whose cases are drawn while reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import UsageError
from harness.data import Reader, Row

if TYPE_CHECKING:
    from harness_checklist.case import Case

CASES = 200
"""Cases of a test, as in the paper."""


def case_rows(case: Case, path: str, line: int) -> Iterator[Row]:
    """Yield one row an example: its text, its answer with its place, its case and test, and its tags.

    Args:
        case: The case.
        path: The file it comes from.
        line: Its line there, or its number.
    """
    from harness_checklist.case import example_defects
    from harness_checklist.metrics import profile_tag

    defects = example_defects(case.examples, case.normalise)
    for example, defect in zip(case.examples, defects, strict=True):
        tags = {"capability": case.capability, "normalise": profile_tag(case.normalise)}
        if defect is not None:
            tags["defect"] = defect
        fields = {
            "id": example.id,
            "case": case.id,
            "group": case.test,
            "tags": tags,
            "context": example.context,
            "question": example.question,
            "answers": [{"text": example.answer, "start": example.context.find(example.answer)}],
        }
        yield Row(fields=fields, path=path, line=line)


def _read_cases(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    from harness_checklist.case import read_cases

    for path in paths:
        for number, case in enumerate(read_cases(path), start=1):
            yield from case_rows(case, str(path), number)


def _read_released(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    from harness_checklist.generation import draw_cases
    from harness_checklist.released import read_released

    language = options.get("language")
    if not language:
        raise UsageError("The reader 'checklist_templates' needs the option 'language'.")
    try:
        n, seed = int(options.get("cases", CASES)), int(options.get("seed", 0))
    except ValueError as error:
        raise UsageError(
            f"The options 'cases' and 'seed' of 'checklist_templates' are numbers: {error}."
        ) from error
    for path in paths:
        suite = read_released(path)
        if language not in suite.languages:
            codes = ", ".join(suite.languages)
            raise UsageError(f"{path} has no templates in {language!r}; it has {codes}.")
        number = 0
        for test in suite.languages[language].tests:
            for case in draw_cases(suite, test, language, n, seed).cases:
                number += 1
                yield from case_rows(case, str(path), number)


READERS = (
    Reader(
        name="checklist",
        read=_read_cases,
        summary="test cases that 'harness checklist generate' wrote: JSON lines, one case per line",
    ),
    Reader(
        name="checklist_templates",
        read=_read_released,
        summary="the released MultiCheckList templates, 'checklist_templates.tsv'; draws the cases",
        options={
            "language": "code of the language",
            "cases": "cases per test, 200 by default",
            "seed": "of the draw, 0 by default",
        },
    ),
)
