"""Systems, the cells of runs that differ only in the version of the test set, and their items with scores and draws.

The items of a language have the same ids in every version. The differences between versions are those of "Translation
Errors ..." (EACL 2024), section 3.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness import DataError, Run, UnknownNameError, UsageError
from harness.languages import known_languages, script_of_texts, text_scripts
from harness.statistics import Codes, draw_codes
from harness.storage import CellResult, TaskSummary, read_columns

VARIANTS: Final = ("zs", "tt", "te", "bt")
CONTRASTS: Final = {
    "delta": ("zs", "tt", "bt"),
    "te_zs": ("zs", "te"),
    "bt_tt": ("tt", "bt"),
    "tt_zs": ("zs", "tt"),
}
"""The variants that each contrast needs."""
FLAGGED: Final = ("delta", "te_zs", "bt_tt")
"""The contrasts of machine-made with human-made text: a value above zero speaks against the human text."""
TITLES: Final = {
    "delta": "delta = BT - max(ZS, TT)",
    "te_zs": "TE - ZS",
    "bt_tt": "BT - TT",
    "tt_zs": "TT - ZS",
}
TRANSFER: Final = tuple(f"transfer_gap_{variant}" for variant in VARIANTS)
HEADS: Final = {
    **{name: name.upper() for name in VARIANTS},
    **{name: name.upper().replace("_", "-") for name in CONTRASTS},
    **{name: f"gap {variant.upper()}" for name, variant in zip(TRANSFER, VARIANTS, strict=True)},
}
"""The heads of the columns, by quantity."""
ORIGINAL: Final = "ORIG"
"""The train variant of a cell without one in its view."""
_AXES: Final = ("variant", "translator", "train_variant")
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


def contrast(quantity: str, scores: dict[str, Any]) -> Any:
    """Return a contrast of scores by variant, in their unit and shape (arrays element by element).

    ``delta`` is BT minus the better of ZS and TT: for arrays element by element, so that each resample has
    its own maximum. Sources: section 3.1 and Tables 1, 2 and 9 of the paper.
    """
    if quantity == "delta":
        return scores["bt"] - np.maximum(scores["zs"], scores["tt"])
    less, more = CONTRASTS[quantity]
    return scores[more] - scores[less]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Condition:
    """A version of the test set: ``zs``, or another variant with its translator."""

    variant: str
    translator: str = ""

    @property
    def title(self) -> str:
        """``bt (nllb)``."""
        return f"{self.variant} ({self.translator})" if self.translator else self.variant


ZS: Final = Condition(variant="zs")


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSystem:
    """The finished cells of one system in one task, by version of the test set."""

    task: str
    model: str
    model_name: str
    train: str
    conditions: Mapping[str, str]
    """Protocol, method and the rest of its view."""
    source: str
    """The language that the test set was translated from."""
    spec: TaskSummary
    """The task in the manifest."""
    seeds: tuple[int, ...]
    """The seeds that all of its cells have."""
    cells: Mapping[str, Mapping[Condition, Mapping[int, tuple[Run, CellResult]]]]
    """By language, version and seed."""
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """``xnli, hf:xlm-r (train ORIG, protocol=zero_shot_transfer, method=head)``."""
        conditions = ", ".join(f"{name}={value}" for name, value in self.conditions.items())
        return f"{self.task}, {self.model_name} (train {self.train}, {conditions})"

    @property
    def translators(self) -> tuple[str, ...]:
        """The translators of any language, sorted."""
        names = {condition.translator for versions in self.cells.values() for condition in versions}
        return tuple(sorted(names - {""}))


def command_for(system: GapSystem, languages: Sequence[str], variants: Sequence[str], translator: str) -> str:
    """Return the command that makes missing cells."""
    translator_option = f" --translator {translator or 'NAME'}" if set(variants) - {"zs"} else ""
    train = "" if system.train == ORIGINAL else f" --train-variant {system.train}"
    if split := system.conditions.get("split"):
        train += f" --split {split}"
    codes = "+".join(languages)
    return (
        f"harness eval --tasks {system.task}:{codes} --model {system.model} --variants {','.join(variants)}"
        f"{translator_option}{train}"
    )


def gap_systems(
    runs: Sequence[Run], *, tasks: Sequence[str] = (), languages: Sequence[str] = ()
) -> list[GapSystem]:
    """Return the systems of runs.

    Args:
        runs: Run folders; the versions of a test set may be in several.
        tasks: Names or globs to restrict it to.
        languages: Codes to restrict it to; the source language stays.

    Raises:
        UsageError: If a run is named twice, a name is unknown, or no finished cell is left.
        DataError: If a cell occurs twice, or versions of a test set were answered by different fits.
    """
    paths = [run.path.resolve() for run in runs]
    for run, path in zip(runs, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"The run {str(run.path)!r} is named twice; its cells would count twice.")
    finished = [(run, cell) for run in runs for cell in run.cells if cell.status == "ok"]
    names, codes = {cell.task for _, cell in finished}, {cell.language for _, cell in finished}
    for pattern in tasks:
        if not fnmatch.filter(names, pattern):
            raise UnknownNameError("finished task of these runs", pattern, names)
    for code in languages:
        if code not in codes:
            raise UnknownNameError("finished language of these runs", code, codes)
    groups: dict[str, list[tuple[Run, CellResult]]] = {}
    for run, cell in finished:
        selected = not tasks or any(fnmatch.fnmatchcase(cell.task, pattern) for pattern in tasks)
        if selected and (not languages or cell.language in {*languages, _source(run, cell)}):
            train, conditions = cell.view.get("train_variant", ORIGINAL), sorted(_others(cell).items())
            key = json.dumps([cell.task, run.manifest.model, run.manifest.model_name, train, conditions])
            groups.setdefault(key, []).append((run, cell))
    if not groups:
        raise UsageError(
            "There are no finished cells in these runs to compute gaps from.",
            hint="Make cells with: harness eval --tasks xnli --model MODEL --variants zs,tt,te,bt --translator NAME",
        )
    return [_system(members) for members in groups.values()]


def _source(run: Run, cell: CellResult) -> str:
    return run.manifest.tasks[cell.task].source or "en"


def _others(cell: CellResult) -> dict[str, str]:
    """Return the conditions that every version must share."""
    conditions = {name: value for name, value in cell.view.items() if name not in _AXES}
    variant = cell.view.get("variant")
    if variant not in {None, "original", *VARIANTS}:
        # A corrected or simplified test set of the task has no translated versions.
        conditions["variant"] = str(variant)
    return {"protocol": str(cell.protocol), "method": str(cell.method), **conditions}


def _condition(run: Run, cell: CellResult) -> Condition:
    variant = cell.view.get("variant")
    if variant not in VARIANTS or variant == "zs":
        return ZS
    translator = cell.view.get("translator")
    if not translator:
        raise DataError(
            f"The run {str(run.path)!r} has a cell of {cell.task!r} in {cell.language!r} of variant "
            f"{variant!r} without a translator in its view."
        )
    return Condition(variant=variant, translator=str(translator))


def _system(members: Sequence[tuple[Run, CellResult]]) -> GapSystem:
    run, first = members[0]
    cells: dict[str, dict[Condition, dict[int, tuple[Run, CellResult]]]] = {}
    fits: dict[tuple[str, int], tuple[str, str, Run]] = {}
    for cell_run, cell in members:
        code, seed, condition = cell.language, cell.seed or 0, _condition(cell_run, cell)
        by_seed = cells.setdefault(code, {}).setdefault(condition, {})
        if seed in by_seed:
            earlier_path = str(by_seed[seed][0].path)
            where = f"both {earlier_path!r} and" if earlier_path != str(cell_run.path) else "twice"
            raise DataError(
                f"{cell.task!r} in {code!r}, {condition.title}, seed {seed}, is in {where} {str(cell_run.path)!r}: "
                "the two cells cannot be distinguished.",
                hint="Give only one of the runs.",
            )
        by_seed[seed] = (cell_run, cell)
        fit = str(cell.fit)
        first_fit, title, elsewhere = fits.setdefault((code, seed), (fit, condition.title, cell_run))
        if first_fit != fit:
            raise DataError(
                f"{cell.task!r} in {code!r}, seed {seed}: {title} of {str(elsewhere.path)!r} was answered by the "
                f"fit {first_fit!r}, {condition.title} of {str(cell_run.path)!r} by {fit!r}, so their difference "
                "is not only due to the translation.",
                hint="Evaluate all variants with one fit: harness eval --variants zs,tt,te,bt --reuse RUN",
            )
    seeds = [set(by_seed) for versions in cells.values() for by_seed in versions.values()]
    common = seeds[0].intersection(*seeds)
    partial_seeds = seeds[0].union(*seeds) - common
    if not common:
        raise DataError(
            f"No seed is common to all versions of {first.task!r}: one or another does not have "
            f"{' '.join(map(str, sorted(partial_seeds)))}.",
            hint="Evaluate all versions with the same --seeds.",
        )
    skipped = f"Skipped seeds that some version does not have: {' '.join(map(str, sorted(partial_seeds)))}."
    return GapSystem(
        task=first.task,
        model=str(run.manifest.model),
        model_name=run.manifest.model_name,
        train=str(first.view.get("train_variant", ORIGINAL)),
        conditions=_others(first),
        source=_source(run, first),
        spec=run.manifest.tasks[first.task],
        seeds=tuple(sorted(common)),
        cells=cells,
        notes=(skipped,) if partial_seeds else (),
    )


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
