"""The items of a system, the same ids in every version of a language, with their scores and draws."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness import DataError, Run, UsageError
from harness.languages import known_languages, script_of_texts, text_scripts
from harness.statistics import Codes, draw_codes
from harness.storage import CellResult, read_columns
from harness_translation.gap.system import ZS, Condition, GapSystem

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
SIDES: Final = {
    "sequence_classification": ("inputs",),
    "multiple_choice": ("inputs", "choices"),
    "span_extraction": ("question",),
}
"""The fields whose text is translated, by kind of task; all fields for other kinds."""
CONTEXT_STAYS: Final = frozenset({"span_extraction"})
"""Kinds of which only questions are translated: the context, and so the answer, is in one of two languages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantItems:
    """The items that all versions of one language have."""

    language: str
    ids: Sequence[str]
    draws: Codes
    """Shape (n,): the number of each item's draw; in a parallel task the same number is the same draw everywhere."""
    scores: Mapping[Condition, Floats]
    """By version: shape (seeds, n)."""
    source: Floats | None
    """Scores of the same items in the source language, shape (seeds, n); None if it is missing or not parallel."""
    matching: Booleans | None
    """Shape (n,): whether the human text is in the language's script; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """The labelled items of a cell, by id."""

    title: str
    clusters: Mapping[str, str | None]
    references: Mapping[str, str]
    """JSON texts, as stored."""
    scores: Mapping[str, float]


_Cells = Mapping[tuple[Condition, int], _Cell]
"""By version and seed."""


def read_languages(system: GapSystem, metric: str, *, common: bool = False) -> list[VariantItems]:
    """Return the items of every language of a system, the source language first if it is present.

    Args:
        system: The system whose cells are read.
        metric: A metric that is a mean of item scores.
        common: Whether items that some version of a language does not have are skipped; else they are an error.

    Raises:
        UsageError: If ids or gold answers differ between versions, or the metric has no item scores.
        DataError: If records are missing or broken, or an id occurs twice.
    """
    codes = sorted(system.cells, key=lambda code: (code != system.source, code))
    cells = {code: _read_cells(system, code, metric) for code in codes}
    ids = {code: _joined_ids(system, code, own, common=common) for code, own in cells.items()}
    parallel = bool(system.spec.parallel)
    unpaired = system.spec.unpaired
    clusters = {code: next(iter(own.values())).clusters for code, own in cells.items()}
    items = [(code, own, [clusters[code][name] for name in own]) for code, own in ids.items()]
    draws = draw_codes(items, linked=parallel, unpaired=unpaired)
    split = np.split(draws, np.cumsum([len(own) for own in ids.values()])[:-1])
    human = {seed: own for (condition, seed), own in cells.get(system.source, {}).items() if condition == ZS}
    source_ids = set(ids.get(system.source, ()))
    return [
        VariantItems(
            language=code,
            ids=ids[code],
            draws=own_draws,
            scores={
                condition: _stacked({seed: cells[code][condition, seed] for seed in system.seeds}, ids[code])
                for condition in sorted(system.cells[code], key=lambda each: (each != ZS, each))
            },
            source=(
                _stacked(human, ids[code])
                if parallel and code not in unpaired and human and source_ids.issuperset(ids[code])
                else None
            ),
            matching=None if code == system.source else _matching(system, code, ids[code]),
        )
        for code, own_draws in zip(codes, split, strict=True)
    ]


def _stacked(cells: Mapping[int, _Cell], ids: Sequence[str]) -> Floats:
    """Return the scores of the items by seed, shape (seeds, n)."""
    return np.array([[cell.scores[name] for name in ids] for cell in cells.values()], dtype=np.float64)


def _joined_ids(system: GapSystem, code: str, cells: _Cells, *, common: bool) -> list[str]:
    """Return the ids that all versions of a language have, in the order of the first; their gold must be the same."""
    where = f"{system.task!r} in {code!r}"
    (_, first), *later = cells.items()
    shared = list(first.scores)
    for _, cell in later:
        mine, theirs = set(shared), set(cell.scores)
        if mine != theirs and not common:
            raise UsageError(
                f"The items of {where} are not the same: {len(mine - theirs)} only in {first.title}, "
                f"{len(theirs - mine)} only in {cell.title}, {len(mine & theirs)} in both.",
                hint="Evaluate all variants with the same --limit, or use the common items with --common.",
            )
        shared = [name for name in shared if name in theirs]
    if not shared:
        raise UsageError(f"No item of {where} is common to all of its versions.")
    apart = system.spec.kind in CONTEXT_STAYS
    reference_cells: dict[bool, _Cell] = {}
    for (condition, _), cell in cells.items():
        reference = reference_cells.setdefault(apart and condition.variant in {"tt", "bt"}, cell)
        differing = [name for name in shared if cell.references[name] != reference.references[name]]
        if differing:
            name = differing[0]
            raise UsageError(
                f"The gold answers of {where} are not the same in {reference.title} and {cell.title}: {len(differing)} "
                f"items differ, the first is {name!r} ({reference.references[name]} and {cell.references[name]}).",
                hint="Make all variants from one release of the test set.",
            )
    return shared


def _read_cells(system: GapSystem, code: str, metric: str) -> _Cells:
    conditions = sorted(system.cells[code], key=lambda each: (each != ZS, each))
    return {
        (condition, seed): _read_cell(*system.cells[code][condition][seed], metric, condition.title)
        for condition in conditions
        for seed in system.seeds
    }


def _read_cell(run: Run, cell: CellResult, metric: str, title: str) -> _Cell:
    columns = read_columns(run.records_of(cell), ("id", "cluster", "reference", "scores"))
    # Few texts of scores are distinct: each is parsed once.
    parsed = {text: json.loads(text) for text in set(columns["scores"])}
    values = {text: by_metric.get(metric) for text, by_metric in parsed.items()}
    by_text: dict[str, Any] = {
        text: value if isinstance(value, int | float) else None for text, value in values.items()
    }
    scores = [by_text[text] for text in columns["scores"]]
    ids, clusters, references = columns["id"], columns["cluster"], columns["reference"]
    rows = [row for row, text in enumerate(references) if text != "null"]
    where = f"{cell.task!r} in {cell.language!r} of {str(run.path)!r}"
    if any(scores[row] is None for row in rows):
        held = {
            name
            for by_metric in parsed.values()
            for name, value in by_metric.items()
            if isinstance(value, int | float)
        }
        raise UsageError(
            f"The metric {metric!r} has no item scores for {where}, so gaps cannot be paired by items.",
            hint=f"Use a metric with item scores: --metric {' or '.join(sorted(held)) or '(there is none)'}.",
        )
    if not rows:
        raise DataError(f"No item of {where} has a gold answer.")
    if len({ids[row] for row in rows}) < len(rows):
        doubled = next(name for name in ids if ids.count(name) > 1)
        raise DataError(f"The records of {where} have the id {doubled!r} more than once.")
    return _Cell(
        title=title,
        clusters={ids[row]: clusters[row] for row in rows},
        references={ids[row]: references[row] for row in rows},
        scores={ids[row]: float(scores[row]) for row in rows},
    )


def _matching(system: GapSystem, code: str, ids: Sequence[str]) -> Booleans | None:
    """Return which items have their human text in the language's script."""
    languages, versions = known_languages(), system.cells[code]
    declared = (system.spec.languages or {}).get(code) or ("", "")
    script = script_of_texts(languages.get(code)) if code in languages else declared[1]
    if not script or ZS not in versions:
        return None
    run, cell = versions[ZS][system.seeds[0]]
    # ``question`` of XCOPA is a keyword of the benchmark, not a text.
    keywords = (run.manifest.specs or {}).get(system.task, {}).get("phrases") or ()
    columns = read_columns(run.records_of(cell), ("id", "inputs"))
    if not columns["inputs"]:
        return None
    fields = json.loads("[" + ",".join(text or "{}" for text in columns["inputs"]) + "]")
    names = SIDES.get(system.spec.kind)
    texts = {
        name: [text for side in names or inputs for text in _texts(inputs.get(side), keywords)]
        for name, inputs in zip(columns["id"], fields, strict=True)
    }
    distinct = list(dict.fromkeys(text for name in ids for text in texts[name]))
    if not distinct:
        return None
    allowed = {None, script, *({"Hani"} if script == "Jpan" else ())}
    right = {
        text for text, detected in zip(distinct, text_scripts(distinct), strict=True) if detected in allowed
    }
    return np.array([right.issuperset(texts[name]) for name in ids])


def _texts(value: Any, keywords: Sequence[str]) -> list[str]:
    values = (
        [field for name, field in value.items() if name not in keywords]
        if isinstance(value, Mapping)
        else value
    )
    return [text for text in (values if isinstance(values, list) else [values]) if isinstance(text, str)]
