"""The items of a system, the same ids in every version: scores, draws, and whether the text is in its script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness import DataError, ItemRecord, Run, UsageError
from harness.languages.scripts import text_scripts
from harness.languages.table import known_languages
from harness.statistics import Codes, draw_codes
from harness.storage.records import DERIVED_COLUMNS, RECORD_COLUMNS
from harness.storage.run_folder import RunFolder
from harness_translation.gap.system import ZS, Condition, GapSystem

__all__ = [
    "CellColumns",
    "LanguageItems",
    "keyword_fields",
    "read_chosen",
    "read_columns",
    "read_fields",
    "read_languages",
    "translated_texts",
]

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
WRITTEN: Final = {"Hans": "Hani", "Hant": "Hani", "Hang": "Kore"}
"""Scripts of the language table, and their names in `harness.languages.scripts.text_scripts`."""
SIDES: Final = {
    "sequence_classification": ("inputs",),
    "multiple_choice": ("inputs", "choices"),
    "span_extraction": ("question",),
}
"""The fields whose text is translated, by kind of task."""
CONTEXT_STAYS: Final = frozenset({"span_extraction"})
"""Kinds of which only questions are translated: the context, and so the answer, is in one of two languages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellColumns:
    """The labelled items of a cell."""

    ids: list[str]
    clusters: list[str | None]
    references: list[str]
    """JSON texts, as stored."""
    scores: Floats
    """Shape (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageItems:
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


def read_languages(system: GapSystem, metric: str, *, common: bool = False) -> list[LanguageItems]:
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
    joined = {code: _Joined(system, code, metric, common=common) for code in codes}
    parallel = bool(system.spec.get("parallel"))
    parts = [(code, own.ids, own.clusters) for code, own in joined.items()]
    unpaired = system.spec.get("unpaired", ())
    draws = draw_codes(parts, linked=parallel, unpaired=unpaired)
    split = np.split(draws, np.cumsum([len(own.ids) for own in joined.values()])[:-1])
    source = joined.get(system.source)
    return [
        LanguageItems(
            language=code,
            ids=own.ids,
            draws=codes_of,
            scores=own.scores,
            source=_source_scores(source, own.ids) if parallel and code not in unpaired else None,
            matching=None if code == system.source else _matching(system, code, own.ids),
        )
        for (code, own), codes_of in zip(joined.items(), split, strict=True)
    ]


class _Joined:
    """The versions of one language on the same items, in the order of the first."""

    def __init__(self, system: GapSystem, code: str, metric: str, *, common: bool) -> None:
        self._where = f"{system.task!r} in {code!r}"
        self._metric = metric
        conditions = sorted(system.cells[code], key=lambda each: (each != ZS, each))
        cells = {
            (condition, seed): read_columns(*system.cells[code][condition][seed], metric)
            for condition in conditions
            for seed in system.seeds
        }
        titles = {key: key[0].title for key in cells}
        first = next(iter(cells.values()))
        kept = self._ids(cells, titles, common=common)
        rows = {key: _rows(own.ids, kept) for key, own in cells.items()}
        self._check_gold(cells, rows, titles, kept, apart=system.spec["kind"] in CONTEXT_STAYS)
        order = rows[next(iter(cells))]
        self.ids = kept
        self.clusters = [first.clusters[row] for row in order]
        self.scores = {
            condition: np.stack(
                [cells[condition, seed].scores[rows[condition, seed]] for seed in system.seeds]
            )
            for condition in conditions
        }

    def _ids(self, cells: Mapping[Any, CellColumns], titles: Mapping[Any, str], *, common: bool) -> list[str]:
        (first_key, first), *others = cells.items()
        kept = first.ids
        for key, own in others:
            if own.ids == kept:
                continue
            mine, theirs = set(kept), set(own.ids)
            if mine != theirs and not common:
                raise UsageError(
                    f"The items of {self._where} are not the same: {len(mine - theirs)} only in "
                    f"{titles[first_key]}, {len(theirs - mine)} only in {titles[key]}, {len(mine & theirs)} in both.",
                    hint="Evaluate all variants with the same --limit, or use the common items with --common.",
                )
            kept = [name for name in kept if name in theirs]
        if not kept:
            raise UsageError(f"No item of {self._where} is common to all of its versions.")
        return kept

    def _check_gold(
        self,
        cells: Mapping[Any, CellColumns],
        rows: Mapping[Any, list[int]],
        titles: Mapping[Any, str],
        ids: Sequence[str],
        *,
        apart: bool,
    ) -> None:
        seen: dict[bool, tuple[list[str], Any]] = {}
        for key, own in cells.items():
            gold = [own.references[row] for row in rows[key]]
            human, other = seen.setdefault(apart and key[0].variant in {"tt", "bt"}, (gold, key))
            if gold != human:
                place, count = _first_difference(gold, human)
                raise UsageError(
                    f"The gold answers of {self._where} are not the same in {titles[other]} and {titles[key]}: "
                    f"{count} items differ, the first is {ids[place]!r} ({human[place]} and {gold[place]}).",
                    hint="Make all variants from one release of the test set.",
                )


def _first_difference(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    differing = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return differing[0], len(differing)


def _rows(ids: list[str], kept: list[str]) -> list[int]:
    if ids == kept:
        return list(range(len(ids)))
    place = {name: row for row, name in enumerate(ids)}
    return [place[name] for name in kept]


def _source_scores(source: _Joined | None, ids: Sequence[str]) -> Floats | None:
    if source is None or ZS not in source.scores:
        return None
    place = {name: row for row, name in enumerate(source.ids)}
    if any(name not in place for name in ids):
        return None
    return source.scores[ZS][:, [place[name] for name in ids]]


def read_columns(run: Run, cell: Mapping[str, Any], metric: str) -> CellColumns:
    """Return the labelled items of a finished cell; raises as `read_languages` does."""
    table = _table(run, cell, ("id", "cluster", "reference", "scores"))
    scores, held = _item_scores(table["scores"], metric)
    references = table["reference"].to_pylist()
    rows = [row for row, text in enumerate(references) if text != "null"]
    where = f"{cell['task']!r} in {cell['language']!r} of {str(run.path)!r}"
    if np.isnan(scores[rows]).any():
        raise UsageError(
            f"The metric {metric!r} has no item scores for {where}, so gaps cannot be paired by items.",
            hint=f"Use a metric with item scores: --metric {' or '.join(sorted(held)) or '(there is none)'}.",
        )
    ids = table["id"].to_pylist()
    clusters = table["cluster"].to_pylist()
    if len(rows) < len(ids):
        ids, clusters = [ids[row] for row in rows], [clusters[row] for row in rows]
        references, scores = [references[row] for row in rows], scores[rows]
    if not ids:
        raise DataError(f"No item of {where} has a gold answer.")
    if len(set(ids)) < len(ids):
        doubled = next(name for name in ids if ids.count(name) > 1)
        raise DataError(f"The records of {where} have the id {doubled!r} more than once.")
    return CellColumns(ids=ids, clusters=clusters, references=references, scores=scores)


def _table(run: Run, cell: Mapping[str, Any], columns: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = RunFolder(run.path).records_of(cell)
    try:
        return pq.read_table(path, columns=list(columns), use_threads=False)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"The records {str(path)!r} cannot be read: {error}.") from error


def _item_scores(column: Any, metric: str) -> tuple[Floats, set[str]]:
    """Return the scores of a metric, NaN for items without a number, and the names of all metrics with item scores."""
    # Few texts of scores are distinct: each is parsed once.
    coded = column.combine_chunks().dictionary_encode()
    parsed = [json.loads(text) for text in coded.dictionary.to_pylist()]
    held = {name for own in parsed for name, value in own.items() if isinstance(value, int | float)}
    values = [own.get(metric) for own in parsed]
    known = np.array(
        [float(value) if isinstance(value, int | float) else np.nan for value in values], dtype=np.float64
    )
    rows = coded.indices.to_numpy(zero_copy_only=False)
    return known[rows], held


def _matching(system: GapSystem, code: str, ids: Sequence[str]) -> Booleans | None:
    script = _script(system, code)
    versions = system.cells[code]
    if script is None or ZS not in versions:
        return None
    run, cell = versions[ZS][system.seeds[0]]
    fields = read_fields(run, cell)
    kept = {
        name: translated_texts(own, system.spec["kind"], keyword_fields(run, system.task))
        for name, own in fields.items()
    }
    sides = [kept[name] for name in ids]
    distinct = list(dict.fromkeys(text for texts in sides for text in texts))
    if not distinct:
        return None
    allowed = {None, script, *({"Hani"} if script == "Jpan" else ())}
    right = {text for text, found in zip(distinct, text_scripts(distinct), strict=True) if found in allowed}
    return np.array([right.issuperset(texts) for texts in sides])


def _script(system: GapSystem, code: str) -> str | None:
    table = known_languages()
    script = (
        table.get(code).script
        if code in table
        else ((system.spec.get("languages") or {}).get(code) or ("", ""))[1]
    )
    return WRITTEN.get(script, script) or None


def read_fields(run: Run, cell: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields of the items of a cell without gold, by id."""
    table = _table(run, cell, ("id", "inputs"))
    texts = table["inputs"].to_pylist()
    rows: list[dict[str, Any]] = json.loads(
        "[" + ",".join("{}" if text is None else text for text in texts) + "]"
    )
    return dict(zip(table["id"].to_pylist(), rows, strict=True))


def read_chosen(run: Run, cell: Mapping[str, Any], ids: Iterable[str]) -> list[ItemRecord]:
    """Return the records of a few items of a cell, in its order; the others are not parsed. Raises `DataError`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Runs of older versions did not count tokens, which are not needed here.
    unread = {"tokens", *DERIVED_COLUMNS}
    table = _table(run, cell, [name for name in RECORD_COLUMNS if name not in unread])
    chosen = table.filter(pc.is_in(table["id"], value_set=pa.array(sorted(ids), type=pa.string())))
    parsed = ("prediction", "reference", "scores", "tags", "flags")
    return [
        ItemRecord(**{name: json.loads(text) if name in parsed else text for name, text in row.items()})
        for row in chosen.to_pylist()
    ]


def keyword_fields(run: Run, task: str) -> frozenset[str]:
    """Return the fields of a task that hold a keyword of the benchmark, not a text: ``question`` of XCOPA."""
    return frozenset((run.manifest.get("specs") or {}).get(task, {}).get("phrases") or ())


def translated_texts(fields: Mapping[str, Any], kind: str, words: frozenset[str] = frozenset()) -> list[str]:
    """Return the texts of an item that are translated; for unknown kinds, all texts."""
    found: list[str] = []
    for name in SIDES.get(kind, tuple(fields)):
        value = fields.get(name)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            found += [text for key, text in value.items() if isinstance(text, str) and key not in words]
        elif isinstance(value, list):
            found += [text for text in value if isinstance(text, str)]
    return found
