"""Predictions for generated cases, and their error rates with the floor that the templates force."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from harness import Problem, UsageError
from harness.specs import SpecModel
from harness.statistics import wilson
from harness_checklist.case import Case, case_defect, raise_faults, read_lines, read_text
from harness_checklist.suite import Profile

ExampleKey = tuple[str, str]
"""Language and id of an example: a draw has the same id in every language."""
COLUMNS: Final = (["id", "prediction"], ["language", "id", "prediction"])
ScoreRow = dict[str, str | int | float | None]
"""The scores of a system on a test in one language; rates are in [0, 1], with their 95 % interval (Wilson 1927).

``failed`` cases have a wrong example or none (XTREME-R 3.4), ``floor`` is the share of cases that cannot be passed,
``corrected_error`` the share of failed cases among the others; None where there are none.
"""


def score_cases(
    cases: Sequence[Case], predictions: Mapping[ExampleKey, str], profile_of: Callable[[str], Profile]
) -> list[ScoreRow]:
    """Return the scores by language and test, in the order of the cases.

    An example passes where prediction and answer are equal after the profile of its language, a case where all its
    examples do. Raises `KeyError` for an example without prediction.
    """
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.language, case.test), []).append(case)
    return [
        {"language": language, "test": test, **_score(test_cases, predictions, profile_of(language))}
        for (language, test), test_cases in groups.items()
    ]


def _score(cases: Sequence[Case], predictions: Mapping[ExampleKey, str], profile: Profile) -> ScoreRow:
    failed = failed_passable = wrong_examples = passable = examples = 0
    for case in cases:
        wrong = sum(
            profile.clean(predictions[case.language, example.id]) != profile.clean(example.answer)
            for example in case.examples
        )
        fails = wrong > 0 or not case.examples
        can_pass = case_defect(case.examples, profile) is None
        failed += fails
        failed_passable += fails and can_pass
        wrong_examples += wrong
        passable += can_pass
        examples += len(case.examples)
    low, high = wilson(failed, len(cases))
    corrected_low, corrected_high = wilson(failed_passable, passable) if passable else (None, None)
    return {
        "cases": len(cases),
        "failed": failed,
        "error": failed / len(cases),
        "error_low": low,
        "error_high": high,
        "examples": examples,
        "failed_examples": wrong_examples,
        "example_error": wrong_examples / examples if examples else None,
        "floor": (len(cases) - passable) / len(cases),
        "corrected_error": failed_passable / passable if passable else None,
        "corrected_low": corrected_low,
        "corrected_high": corrected_high,
    }


# Files of predictions -------------------------------------------------------------------------------------


class _Row(SpecModel):
    id: str
    prediction: str
    language: str | None = None


_ROW: Final = TypeAdapter(_Row)


def read_predictions(path: Path, cases: Sequence[Case]) -> dict[ExampleKey, str]:
    """Return the prediction of every example of the cases, by language and id.

    A ``.jsonl`` file has lines ``{"id": ..., "prediction": ...}``, a ``.tsv`` file ``id<TAB>prediction``, with or
    without a heading; both may name the ``language`` too (in a ``.tsv`` file first), and must where two languages
    share an id.

    Raises `SpecError` with all faults of the file: lines that cannot be read, ids that are unknown, doubled or
    missing. `UsageError` for another kind of file, `MissingDataError` where there is none.
    """
    if path.suffix not in {".jsonl", ".tsv"}:
        raise UsageError(f"The predictions {str(path)!r} are of no known kind: expected .jsonl or .tsv.")
    text = read_text(path)
    faults: list[Problem] = []
    rows = read_lines(text, _ROW, faults) if path.suffix == ".jsonl" else _tsv_rows(text, faults)
    predictions = _matched(rows, cases, faults)
    raise_faults(path, faults)
    return predictions


def _tsv_rows(text: str, faults: list[Problem]) -> list[tuple[int, _Row]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.removesuffix("\r").split("\t")
        if not line.strip() or (number == 1 and fields in COLUMNS):
            continue
        if len(fields) in (2, 3):
            names = COLUMNS[len(fields) - 2]
            rows.append((number, _Row(**dict(zip(names, fields, strict=True)))))
        else:
            message = f"expected an id, a tab and a prediction; found {len(fields)} columns"
            faults.append(Problem(message=message, line=number))
    return rows


def _matched(
    rows: Sequence[tuple[int, _Row]], cases: Sequence[Case], faults: list[Problem]
) -> dict[ExampleKey, str]:
    languages: dict[str, list[str]] = {}
    for case in cases:
        for example in case.examples:
            languages.setdefault(example.id, []).append(case.language)
    predictions: dict[ExampleKey, str] = {}
    first: dict[ExampleKey, int] = {}
    for line, row in rows:
        fault = _id_fault(row, languages)
        if fault is None:
            key = (row.language or languages[row.id][0], row.id)
            if first.setdefault(key, line) != line:
                fault = f"the id {row.id!r} is given twice: also on line {first[key]}"
            predictions[key] = row.prediction
        if fault is not None:
            faults.append(Problem(message=fault, line=line))
    missing = [
        (code, id_) for id_, codes in languages.items() for code in codes if (code, id_) not in predictions
    ]
    if missing:
        examples = ", ".join(f"{id_!r} ({code})" for code, id_ in missing[:5])
        noun = "example has" if len(missing) == 1 else "examples have"
        message = f"{len(missing)} {noun} no prediction: {examples}{' ...' if len(missing) > 5 else ''}"
        faults.append(Problem(message=message))
    return predictions


def _id_fault(row: _Row, languages: Mapping[str, Sequence[str]]) -> str | None:
    codes = languages.get(row.id)
    if codes is None:
        return f"no example has the id {row.id!r}"
    if row.language is None and len(codes) > 1:
        return f"the id {row.id!r} is in several languages ({', '.join(codes)}): add the language"
    if row.language is not None and row.language not in codes:
        return f"the example {row.id!r} is in {' and '.join(codes)}, not in {row.language!r}"
    return None
