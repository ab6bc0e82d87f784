"""The labels of annotators: read from filled-in sheets, kept in one file, decided row by row, and their agreement.

Agreement has chance-corrected coefficients, and estimates and tests of shares.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from harness import DataError, UsageError, near_names
from harness.statistics import bootstrap_counts, percentile_interval, wilson
from harness.storage import write_atomically
from harness_translation.annotation.items import Key, Sheet

Floats = npt.NDArray[np.float64]
Units = Sequence[Sequence[str]]
"""The labels of each item, in no order of annotators; missing labels are skipped."""
ADJUDICATED: Final = "adjudicated"
"""The annotator's name in a file of final labels, and a column for them."""
COLUMNS: Final = ("row", "annotator", "label", "comment")
"""The columns that the import reads; the others are texts."""
STAGE: Final = "stage"
"""The column of sheets of a later stage: of some rows of a sheet, so that no row is missing."""
FIRST: Final = "first"
CORRECTION: Final = "correction"
THIRD: Final = "third"
FILE: Final = "annotations.json"
SHOWN_FAULTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """An estimated share with its interval of 95 %."""

    value: float
    low: float
    high: float


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Return Cohen's kappa of two annotators' labels of the same items (Cohen 1960).

    kappa = (p_o - p_e) / (1 - p_e) with p_e from each annotator's own shares. None without items, and if both
    gave the same label to all items, so that chance agreement is 1.
    """
    if not first:
        return None
    n = len(first)
    observed = sum(ours == theirs for ours, theirs in zip(first, second, strict=True)) / n
    labels = {*first, *second}
    expected = sum(first.count(label) * second.count(label) for label in labels) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def krippendorff_alpha(units: Units) -> float | None:
    """Return Krippendorff's alpha for nominal labels and any number of annotators (Krippendorff 2011).

    alpha = 1 - D_o / D_e over the coincidences within the items that at least two people labelled. None if there are
    no such items, or all labels are the same.
    """
    return _alpha(_coincidences(units).sum(axis=0))


def alpha_interval(units: Units, *, draws: int = 1_000, seed: int = 0) -> tuple[float, float] | None:
    """Return the percentile interval (95 %) of alpha over items drawn with replacement; None if there is none."""
    coincidences = _coincidences(units)
    if len(coincidences) < 2:
        return None
    replicates = bootstrap_counts(
        coincidences, np.arange(len(coincidences)), _alpha_or_nan, draws=draws, seed=seed
    )
    # A resample in which all items have the same label has no alpha; it is rare, and does not show agreement.
    defined = replicates[np.isfinite(replicates)]
    if not defined.size:
        return None
    interval = percentile_interval(defined, seed=seed)
    return None if interval.low is None or interval.high is None else (interval.low, interval.high)


def _coincidences(units: Units) -> Floats:
    """Return the coincidences of every item with at least two labels, shape (items, labels * labels)."""
    labels = sorted({label for unit in units for label in unit})
    index = {label: number for number, label in enumerate(labels)}
    matrices = []
    for unit in units:
        if len(unit) < 2:
            continue
        matrix = np.zeros((len(labels), len(labels)))
        for first, second in itertools.permutations(unit, 2):
            matrix[index[first], index[second]] += 1 / (len(unit) - 1)
        matrices.append(matrix.ravel())
    return np.array(matrices).reshape(len(matrices), len(labels) ** 2)


def _alpha(sums: Floats) -> float | None:
    size = math.isqrt(len(sums))
    matrix = sums.reshape(size, size)
    margins = matrix.sum(axis=1)
    n = margins.sum()
    expected = n**2 - (margins**2).sum()
    if n < 2 or expected <= 0:
        return None
    return float(1 - (n - 1) * (n - np.trace(matrix)) / expected)


def _alpha_or_nan(sums: Floats) -> float:
    alpha = _alpha(sums)
    return math.nan if alpha is None else alpha


def two_proportions(first: float, n_first: int, second: float, n_second: int) -> float:
    """Return the two-sided p of two independent shares being the same: the pooled z test, without correction.

    p is 1 where all or none of the items are successes.

    Args:
        first: Successes of the first sample.
        n_first: Its size.
        second: Successes of the second sample.
        n_second: Its size.
    """
    from scipy.special import ndtr

    pooled = (first + second) / (n_first + n_second)
    se = math.sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_second))
    if se == 0:
        return 1.0
    return 2 * float(ndtr(-abs(first / n_first - second / n_second) / se))


def weighted_share(hits: Sequence[bool], strata: Sequence[str], weights: Mapping[str, float]) -> Share:
    """Return a share over strata that were drawn with different probabilities.

    The estimate is sum_h W_h p_h with W_h the share of all items that are in the stratum; its interval is Wilson's
    at the sample size that has the same variance p (1 - p) / n (Korn and Graubard 1998). With one stratum, or weights
    that are all the same and strata of the same share, it is Wilson's plain interval.

    Args:
        hits: Whether each drawn item counts.
        strata: The stratum of each.
        weights: By stratum: the number of items in the whole text.
    """
    names = sorted(set(strata))
    total = sum(weights[name] for name in names)
    estimate = variance = 0.0
    for name in names:
        stratum_hits = [hit for hit, stratum in zip(hits, strata, strict=True) if stratum == name]
        share, size = weights[name] / total, len(stratum_hits)
        p = sum(stratum_hits) / size
        estimate += share * p
        variance += share**2 * p * (1 - p) / (size if len(names) == 1 else max(size - 1, 1))
    spread = estimate * (1 - estimate)
    effective = spread / variance if variance > 0 and spread > 0 else float(len(hits))
    low, high = wilson(estimate * effective, effective)
    return Share(value=estimate, low=low, high=high)


class Annotations(BaseModel):
    """Labels by annotator and row."""

    model_config = ConfigDict(frozen=True)

    labels: dict[str, dict[str, str]] = {}
    """The first labels of annotators."""
    corrected: dict[str, dict[str, str]] = {}
    """The labels of the same annotators after the round of correction."""
    third: dict[str, dict[str, str]] = {}
    """Those of third annotators, of rows that the first ones disagree on."""
    final: dict[str, str] = {}
    """The decisions of the adjudicator, by row."""
    comments: dict[str, dict[str, str]] = {}

    def of(self, sheet: Sheet) -> dict[str, dict[str, str]]:
        """Return the first labels of a sheet's rows, by annotator and row; annotators without labels are skipped."""
        by_annotator = {
            name: {row: label for row, label in labels.items() if row in sheet.by_row}
            for name, labels in sorted(self.labels.items())
        }
        return {name: labels for name, labels in by_annotator.items() if labels}

    def counted(self) -> Iterator[tuple[str, int, str]]:
        """Yield every annotator with a number of labels and their stage in words."""
        stages = {"": self.labels, " after correction": self.corrected, " as a third annotator": self.third}
        for stage, by_name in [*stages.items(), ("", {ADJUDICATED: self.final})]:
            for name, labels in by_name.items():
                if labels:
                    yield name, len(labels), stage

    def votes(self, row: str, *, stage: str = THIRD) -> Counter[str]:
        """Return the labels of a row with their numbers, up to the first stage, the correction or the third."""
        later = {} if stage == FIRST else self.corrected
        votes = Counter(
            later.get(name, {}).get(row, labels[row]) for name, labels in self.labels.items() if row in labels
        )
        return votes + Counter(
            by_row[row] for by_row in self.third.values() if stage == THIRD and row in by_row
        )


def read_annotations(folder: Path) -> Annotations:
    """Return the imported labels, which may be none; raises `DataError` for a broken file."""
    path = folder / FILE
    try:
        return Annotations.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Annotations()
    except (OSError, ValidationError) as error:
        raise DataError(f"The labels {str(path)!r} cannot be read: {error}.") from error


def write_annotations(annotations: Annotations, folder: Path) -> None:
    """Write all labels into the folder of an annotation."""
    write_atomically(folder / FILE, annotations.model_dump_json(indent=1) + "\n")


def deciding_stage(row: str, annotations: Annotations) -> tuple[str, str] | None:
    """Return the stage that decides a row and its final label; None while it is undecided.

    It is the adjudicator's label, or else the label of more than half of the annotators: by their first labels, by
    those after the correction, or with those of third annotators; with two annotators, both.
    """
    if row in annotations.final:
        return ADJUDICATED, annotations.final[row]
    for stage in (FIRST, CORRECTION, THIRD):
        votes = annotations.votes(row, stage=stage)
        label, most = next(iter(votes.most_common(1)), ("", 0))
        if 2 * most > votes.total():
            return stage, label
    return None


def final_label(row: str, annotations: Annotations) -> str | None:
    """Return the final label of a row; None while it is undecided."""
    decided = deciding_stage(row, annotations)
    return None if decided is None else decided[1]


def undecided_rows(sheet: Sheet, annotations: Annotations) -> list[str]:
    """Return the rows that were labelled and still have no final label, in the order of the sheet."""
    labelled = {row for labels in annotations.labels.values() for row in labels}
    return [row for row in sheet.by_row if row in labelled and final_label(row, annotations) is None]


def open_rows(sheet: Sheet, annotations: Annotations) -> dict[tuple[str, str], list[str]]:
    """Return the undecided rows that wait for a label, by stage and annotator.

    An annotator corrects each row once; when all have, a third annotator labels it.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for row in undecided_rows(sheet, annotations):
        first = [name for name, labels in annotations.of(sheet).items() if row in labels]
        waiting = [name for name in first if row not in annotations.corrected.get(name, {})]
        for name in waiting if len(first) > 1 else ():
            rows.setdefault((CORRECTION, name), []).append(row)
        if len(first) > 1 and not waiting and not any(row in by_row for by_row in annotations.third.values()):
            rows.setdefault((THIRD, THIRD), []).append(row)
    return rows


def merge(annotations: Annotations, new: Annotations, key: Key, *, replace: bool = False) -> Annotations:
    """Return the labels with new ones added.

    Raises `UsageError` if an annotator's first labels of a sheet, or another label of a row, exist already and
    `replace` is not set, if somebody corrects labels of another person, or is the third annotator of own rows.
    """
    merged = annotations.model_copy(deep=True)
    first = {name: {**annotations.labels.get(name, {}), **by_row} for name, by_row in new.labels.items()}
    first = {**annotations.labels, **first}
    for name, by_row in new.corrected.items():
        if row := next((row for row in by_row if row not in first.get(name, {})), None):
            raise UsageError(
                f"The annotator {name!r} has no first label of the row {row!r}, so there is nothing to correct.",
                hint=f"The annotators with first labels are: {', '.join(first) or 'none'}.",
            )
    for name, by_row in new.third.items():
        if row := next((row for row in by_row if row in first.get(name, {})), None):
            raise UsageError(
                f"The annotator {name!r} cannot be the third one of the row {row!r}, having labelled it before.",
                hint="Name another person with --annotator NAME.",
            )
    for name, by_row in new.labels.items():
        _add(merged.labels.setdefault(name, {}), by_row, key, name, whole=True, replace=replace)
    for target, labels in ((merged.corrected, new.corrected), (merged.third, new.third)):
        for name, by_row in labels.items():
            _add(target.setdefault(name, {}), by_row, key, name, replace=replace)
    _add(merged.final, new.final, key, ADJUDICATED, replace=replace)
    for name, comments in new.comments.items():
        merged.comments.setdefault(name, {}).update(comments)
    return merged


def _add(
    target: dict[str, str],
    own: Mapping[str, str],
    key: Key,
    name: str,
    *,
    whole: bool = False,
    replace: bool = False,
) -> None:
    """Add an annotator's labels; `whole` replaces those of all rows of their sheets."""
    for sheet in key.sheets:
        rows = [row for row in own if row in sheet.by_row]
        there = [row for row in (sheet.by_row if whole else rows) if row in target] if rows else []
        if there and not replace:
            raise UsageError(
                f"The annotator {name!r} already has labels of the sheet {sheet.name!r}; the first row is "
                f"{there[0]!r}.",
                hint="Replace them with --replace, or name another annotator with --annotator NAME.",
            )
        for row in there:
            del target[row]
    target.update(own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    where: str
    row: str
    annotator: str
    label: str
    comment: str
    stage: str = ""


def read_sheets(
    paths: Sequence[Path], key: Key, *, annotator: str | None = None, allow_skipped: bool = False
) -> tuple[Annotations, int]:
    """Return the labels of filled-in sheets, and the number of rows of these sheets without one.

    Args:
        paths: ``.csv`` or ``.tsv`` files: filled-in sheets, or exports of Label Studio.
        key: The key of the rows.
        annotator: The annotator of all labels; None uses the names in the files. On a sheet for the adjudicator, the
            name of a person makes these labels a third annotator's. Labels in a column ``adjudicated`` are always final
            labels.
        allow_skipped: Whether rows may be without a label.

    Raises:
        DataError: With all faults of all files, by line: unknown rows, rows that one annotator labelled
            twice, labels that the task does not have, and rows without a label unless `allow_skipped`.
        UsageError: For a file that cannot be read.
    """
    faults: list[str] = []
    skipped: list[str] = []
    first_lines: dict[tuple[str, str], _Line] = {}
    found = Annotations()
    for line in (line for path in paths for line in _lines(path, annotator, faults)):
        sheet, first = key.sheet_of(line.row), first_lines.setdefault((line.annotator, line.row), line)
        fault = _fault(line, sheet, first)
        if fault:
            faults.append(f"{line.where}: {fault}")
            continue
        if label := _label(line, sheet):
            _labels_of(line, found)[line.row] = label
        if line.comment:
            found.comments.setdefault(line.annotator, {})[line.row] = line.comment
        if not line.label:
            skipped.append(f"{line.where}: the row {line.row!r} has no label")
    unlabelled = len(skipped)
    for sheet in key.sheets:
        for name in {name: None for name, row in first_lines if row in sheet.by_row}:
            missing = [row for row in sheet.by_row if (name, row) not in first_lines]
            stages = [
                line.stage for (who, row), line in first_lines.items() if who == name and row in sheet.by_row
            ]
            # Sheets of a later stage have some of the rows only.
            if missing and name != ADJUDICATED and not all(stages):
                unlabelled += len(missing)
                rows = "row" if len(missing) == 1 else "rows"
                skipped.append(
                    f"{_file(first_lines, name, sheet)}: {len(missing)} {rows} of the sheet {sheet.name!r} are "
                    f"missing for the annotator {name!r}, first row {missing[0]!r}"
                )
    every = faults if allow_skipped else [*faults, *skipped]
    if every:
        count = "1 fault" if len(every) == 1 else f"{len(every)} faults"
        listed = "".join(f"\n  {fault}" for fault in every[:SHOWN_FAULTS])
        more = f"\n  and {len(every) - SHOWN_FAULTS} more" if len(every) > SHOWN_FAULTS else ""
        hint = "\nTo allow rows without a label, use --allow-skipped." if skipped else None
        raise DataError(f"The sheets have {count}; nothing was imported:{listed}{more}", hint=hint)
    return found, unlabelled


def _labels_of(line: _Line, annotations: Annotations) -> dict[str, str]:
    """Return the labels that a line belongs to: of an annotator and stage."""
    if line.annotator == ADJUDICATED:
        return annotations.final
    if line.stage == CORRECTION:
        return annotations.corrected.setdefault(line.annotator, {})
    return (annotations.third if line.stage else annotations.labels).setdefault(line.annotator, {})


def _fault(line: _Line, sheet: Sheet | None, first: _Line) -> str:
    """Return the fault of a line, or an empty text."""
    if sheet is None:
        return f"no sheet has the row {line.row!r}"
    if line.stage == CORRECTION and line.annotator == ADJUDICATED:
        return f"the row {line.row!r} of a correction needs the name of its annotator"
    if first is not line:
        return f"the annotator {line.annotator!r} has the row {line.row!r} twice, first at {first.where}"
    if line.label and not _label(line, sheet):
        near = near_names(line.label, sheet.labels)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown label {line.label!r}; expected one of {', '.join(sheet.labels)}{meant}"
    return ""


def _label(line: _Line, sheet: Sheet | None) -> str:
    """Return the label that a line means, ignoring case; an empty text without one."""
    by_case = {label.casefold(): label for label in sheet.labels} if sheet else {}
    return by_case.get(line.label.casefold(), "")


def _file(seen: Mapping[tuple[str, str], _Line], name: str, sheet: Sheet) -> str:
    """Return the first file with rows of an annotator's sheet."""
    locations = (line.where for (who, row), line in seen.items() if who == name and row in sheet.by_row)
    return next(locations).rpartition(":")[0]


def _lines(path: Path, annotator: str | None, faults: list[str]) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The sheet {str(path)!r} cannot be read as UTF-8 text: {error}.") from error
    if path.suffix not in {".csv", ".tsv"}:
        raise UsageError(f"The sheet {str(path)!r} has an unknown format: expected .csv or .tsv.")
    # In many countries, spreadsheets write semicolons into .csv files.
    heading = next((line for line in text.splitlines() if line and not line.lstrip('"').startswith("#")), "")
    delimiter = "\t" if path.suffix == ".tsv" else max(",;\t", key=heading.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    end = 0
    for values in reader:
        start, end = end + 1, reader.line_num
        if not any(value.strip() for value in values) or values[0].startswith("#"):
            continue
        if not names:
            names = [value.strip() for value in values]
            if not {"row", "label"} <= set(names):
                faults.append(f"{path}:{start}: expected the columns row and label, found {', '.join(names)}")
                return
            continue
        if len(values) > len(names):
            faults.append(f"{path}:{start}: found {len(values)} fields for {len(names)} columns")
            continue
        fields = dict(zip(names, values, strict=False))
        row, sheet_annotator, label, comment = (fields.get(name, "").strip() for name in COLUMNS)
        name = annotator or sheet_annotator or path.stem
        stage = fields.get(STAGE, "").strip() or (ADJUDICATED if sheet_annotator == ADJUDICATED else "")
        yield _Line(
            where=f"{path}:{start}", row=row, annotator=name, label=label, comment=comment, stage=stage
        )
        final = fields.get(ADJUDICATED, "").strip()
        if final:
            yield _Line(where=f"{path}:{start}", row=row, annotator=ADJUDICATED, label=final, comment="")
    if not names:
        faults.append(f"{path}: has no heading and no rows")
