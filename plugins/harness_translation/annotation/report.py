"""The report of an annotation: how many inherited labels hold in each text, and which do not.

The quantities are those of the human evaluation in the translation-errors paper (EACL 2024, section 4.1), with the
intervals and tests that it does not give. A report is a list of rows of plain values, whose ``row`` says what they are:

- ``agreement``, one per sheet: ``n`` rows with a final label, of which ``agree`` have the inherited one; ``agreement``
  with ``ci``, the estimated share in the whole text; ``each`` annotator's share, ``kappa`` of each pair and ``alpha``,
  all of first labels; ``stages``, the number of rows that each stage decided; ``confusion`` of inherited and final
  labels. While ``open`` rows are undecided, the share is None, since rows that annotators agree on are the easy ones;
  ``bounds`` has the share among the labelled rows if the open ones all disagreed, or all agreed.
- ``contrast``: two texts of one language (``across`` texts), or one text in two languages.
- ``item to fix``: an item whose final label is not the inherited one.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import UsageError
from harness.statistics import holm
from harness_translation.annotation.items import Key, Sheet
from harness_translation.annotation.labels import (
    ADJUDICATED,
    CORRECTION,
    FIRST,
    THIRD,
    Annotations,
    alpha_interval,
    cohen_kappa,
    deciding_stage,
    final_label,
    krippendorff_alpha,
    two_proportions,
    weighted_share,
)

Row = dict[str, Any]
Table = tuple[str, list[str], list[list[str]]]
"""The title, heads and fields of a table."""
_FEWEST_CONFUSED = 10
"""Labelled items of a text that has a table of confusion; of fewer, the items to fix say the same."""


def report_rows(key: Key, annotations: Annotations) -> list[Row]:
    """Return the report of what was imported so far; raises `UsageError` if no row has a final label."""
    sheets = [(sheet, final) for sheet in key.sheets if (final := _decided(sheet, annotations))]
    if not sheets:
        raise UsageError(
            "There is nothing to report: no row has a final label yet.",
            hint="Import filled-in sheets: harness annotate import DIR FILE...",
        )
    agreements = [_agreement(sheet, annotations, decided) for sheet, decided in sheets]
    to_fix = []
    for sheet, decided in sheets:
        for item in (row for row in sheet.rows if decided.get(row.row, row.gold) != row.gold):
            texts = {"inherited": item.gold, "text": {**item.fields, **item.choices}}
            to_fix.append({"row": "item to fix", **_gold_row(sheet, item.row, decided), **texts})
    return [*agreements, *_contrasts(agreements), *to_fix]


def gold_rows(key: Key, annotations: Annotations) -> list[Row]:
    """Return every final label with the identity of its item, as ``--gold`` reads them."""
    return [
        _gold_row(sheet, row, decided)
        for sheet in key.sheets
        for decided in [_decided(sheet, annotations)]
        for row in decided
    ]


def errata_files(key: Key, annotations: Annotations, revision: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of an errata file per task whose own text has items with another final label.

    An entry a line, so that a change in git is a line; `revision` says where the items come from. Raises `UsageError`
    for items without a digest: errata name items by it.
    """
    entries: dict[str, list[Row]] = defaultdict(list)
    for sheet in key.sheets:
        for name, label in _decided(sheet, annotations).items() if not sheet.view else ():
            item = sheet.by_row[name]
            if label == item.gold:
                continue
            if not item.digest:
                raise UsageError(
                    "The key has no digests of its items, since an older version wrote it.",
                    hint="Export the sheets again.",
                )
            identity = {"id": item.id, "language": sheet.language, "field": "label", "digest": item.digest}
            correction = {"was": item.gold, "is": label, **_votes(name, label, annotations)}
            entries[sheet.task].append({**identity, **correction})
    for task, of_task in entries.items():
        head = {
            "errata": task,
            "revision": revision,
            "source": "harness annotate",
            "reason": "People who labelled the item blind gave it another label",
        }
        lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
        lines += ["entries:", *(f"  - {json.dumps(entry, ensure_ascii=False)}" for entry in of_task)]
        yield f"{task}.yaml", "\n".join(lines) + "\n"


def _votes(row: str, label: str, annotations: Annotations) -> Row:
    names = [name for name, labels in {**annotations.labels, **annotations.third}.items() if row in labels]
    votes = annotations.votes(row)
    decided = [ADJUDICATED] if row in annotations.final else []
    return {"who": ", ".join([*names, *decided]), "votes": f"{votes[label]}/{votes.total()}"}


def _decided(sheet: Sheet, annotations: Annotations) -> dict[str, str]:
    final = {row: final_label(row, annotations) for row in sheet.by_row}
    return {row: label for row, label in final.items() if label is not None}


def _gold_row(sheet: Sheet, row: str, decided: Mapping[str, str]) -> Row:
    item = {"id": sheet.by_row[row].id, "label": decided[row]}
    return {"task": sheet.task, "language": sheet.language, **sheet.view, **item}


def _agreement(sheet: Sheet, annotations: Annotations, decided: Mapping[str, str]) -> Row:
    by_annotator = annotations.of(sheet)
    gold = {row.row: row.gold for row in sheet.rows}
    hits = [label == gold[row] for row, label in decided.items()]
    weights: dict[str, float] = defaultdict(float)
    for row in sheet.rows:
        weights[row.stratum] += row.weight
    share = weighted_share(hits, [sheet.by_row[name].stratum for name in decided], weights)
    labelled = {row for labels in by_annotator.values() for row in labels} | set(decided)
    undecided = len(labelled) - len(decided)
    units = [[labels[row] for labels in by_annotator.values() if row in labels] for row in sheet.by_row]
    alpha_ends = alpha_interval(units)
    stages = Counter(deciding[0] for row in sheet.by_row if (deciding := deciding_stage(row, annotations)))
    confusion = Counter((gold[row], label) for row, label in decided.items())
    return {
        "row": "agreement",
        "task": sheet.task,
        "language": sheet.language,
        "text": sheet.text,
        "n": len(decided),
        "agree": sum(hits),
        "agreement": None if undecided else share.value,
        "open": undecided,
        "unlabelled": len(sheet.rows) - len(labelled),
        "design": sheet.design,
        "alpha": krippendorff_alpha(units),
        "ci": None if undecided else [share.low, share.high],
        "each": {
            name: sum(label == gold[row] for row, label in labels.items()) / len(labels)
            for name, labels in by_annotator.items()
        },
        "bounds": [sum(hits) / len(labelled), (sum(hits) + undecided) / len(labelled)] if undecided else None,
        "alpha_ci": None if alpha_ends is None else list(alpha_ends),
        "kappa": list(_kappas(by_annotator)),
        "stages": {stage: stages[stage] for stage in (FIRST, CORRECTION, THIRD, ADJUDICATED)},
        "confusion": [
            {"inherited": inherited, "final": final, "n": count}
            for (inherited, final), count in sorted(confusion.items())
        ],
    }


def _kappas(given: Mapping[str, Mapping[str, str]]) -> Iterator[Row]:
    for pair in itertools.combinations(given, 2):
        first, second = (given[name] for name in pair)
        both = [row for row in first if row in second]
        if both:
            value = cohen_kappa([first[row] for row in both], [second[row] for row in both])
            yield {"annotators": list(pair), "value": value}


def _contrasts(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the contrasts between all texts in one language, and between the same text in two languages.

    Their items differ, so the two-proportion test pairs nothing. Holm's correction is applied to all contrasts of a
    task and sort. Weighted estimates are tested at their estimated successes.
    """
    families: dict[tuple[str, str], list[tuple[Row, Row, float]]] = defaultdict(list)
    for first, second in itertools.combinations(rows, 2):
        across = _across(first, second)
        if across and first["agreement"] is not None and second["agreement"] is not None:
            counts = [(row["agreement"] * row["n"], row["n"]) for row in (first, second)]
            families[first["task"], across].append((first, second, two_proportions(*counts[0], *counts[1])))
    for (task, across), members in sorted(families.items(), reverse=True):
        for (first, second, p), adjusted in zip(members, holm([p for *_, p in members]), strict=True):
            yield {
                "row": "contrast",
                "task": task,
                "across": across,
                "first": f"{first['language']} {first['text']}",
                "second": f"{second['language']} {second['text']}",
                "difference": second["agreement"] - first["agreement"],
                "p": p,
                "p_holm": float(adjusted),
            }


def _across(first: Row, second: Row) -> str | None:
    if first["task"] != second["task"]:
        return None
    if first["language"] == second["language"]:
        return "texts"
    return "languages" if first["text"].partition(",")[0] == second["text"].partition(",")[0] else None


def report_tables(rows: Sequence[Row], *, items: int) -> list[Table]:
    """Return the tables of a report that have rows; `items` limits the items to fix and the contrasts."""
    by_kind = {
        kind: [row for row in rows if row["row"] == kind] for kind in ("agreement", "contrast", "item to fix")
    }
    to_fix = by_kind["item to fix"]
    contrasts = by_kind["contrast"]
    if len(contrasts) > items:
        contrasts = sorted(contrasts, key=lambda row: row["p"])
    heads = "language,text,n,agreement,95 % interval,each,kappa,alpha,95 % interval".split(",")
    tables: list[Table] = [
        (
            "Agreement of annotators with the inherited label",
            heads,
            [_agreement_fields(row) for row in by_kind["agreement"]],
        ),
        (
            f"Texts compared (two-proportion test{_limited(contrasts, items, ', lowest p first')})",
            ["task", "compared", "first", "second", "difference", "p", "p (Holm)"],
            [
                [
                    *(row[name] for name in ("task", "across", "first", "second")),
                    f"{100 * row['difference']:+.1f}",
                    _p(row["p"]),
                    _p(row["p_holm"]),
                ]
                for row in contrasts[:items]
            ],
        ),
        (
            "Rows by the stage that decided them",
            ["language", "text", FIRST, CORRECTION, THIRD, ADJUDICATED, "open"],
            [
                [
                    f"{row['task']}:{row['language']}",
                    row["text"],
                    *map(str, row["stages"].values()),
                    str(row["open"]),
                ]
                for row in by_kind["agreement"]
                if row["open"] or sum(row["stages"].values()) > row["stages"][FIRST]
            ],
        ),
        *(_confusion_table(row) for row in by_kind["agreement"] if row["n"] >= _FEWEST_CONFUSED),
        (
            f"Items to fix{_limited(to_fix, items)}",
            ["text", "id", "inherited", "final", "content"],
            [
                [
                    f"{row['task']}:{row['language']} {row.get('variant', '')}".strip(),
                    *(row[name] for name in ("id", "inherited", "label")),
                    " | ".join(row["text"].values()),
                ]
                for row in to_fix[:items]
            ],
        ),
    ]
    return [table for table in tables if table[2]]


def _limited(rows: Sequence[Row], items: int, order: str = "") -> str:
    return f"; the first {items} of {len(rows):,}{order}" if len(rows) > items else ""


def _agreement_fields(row: Row) -> list[str]:
    return [
        f"{row['task']}:{row['language']}",
        row["text"],
        f"{row['n']:,}",
        "open" if row["agreement"] is None else f"{100 * row['agreement']:.1f}",
        _between(row["ci"], 100, 1),
        " ".join(f"{100 * share:.1f}" for share in row["each"].values()) or "-",
        " ".join(_number(kappa["value"]) for kappa in row["kappa"]) or "-",
        _number(row["alpha"]),
        _between(row["alpha_ci"], 1, 2),
    ]


def _confusion_table(row: Row) -> Table:
    counts = {(cell["inherited"], cell["final"]): cell["n"] for cell in row["confusion"]}
    final = sorted({label for pair in counts for label in pair})
    rows = []
    for label in sorted({label for label, _ in counts}):
        row_counts = [counts.get((label, column), 0) for column in final]
        rows.append(
            [label, *map(str, row_counts), f"{100 * counts.get((label, label), 0) / sum(row_counts):.1f}"]
        )
    title = (
        f"{row['task']}:{row['language']}, {row['text']}: inherited label (rows) and final label (columns)"
    )
    return title, ["inherited", *final, "kept"], rows


def report_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield notes that explain the tables."""
    yield (
        "In percent. Intervals: Wilson's; each: annotators by themselves; kappa: Cohen's, for "
        "each pair of them; alpha: Krippendorff's for nominal labels, its interval by resampling items; all three by "
        "the first labels."
    )
    agreements = [row for row in rows if row["row"] == "agreement"]
    designs: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in agreements:
        designs[row["task"], row["text"], row["design"]].append(row["language"])
    for (task, text, design), languages in designs.items():
        if design != "simple":
            name = f"{task}:{'+'.join(languages)}, {text}"
            yield f"{name}: the sample is {design}; strata are weighted by their size in the test set."
    for row in agreements:
        name = f"{row['task']}:{row['language']}, {row['text']}"
        if row["open"]:
            yield (
                f"{name}: annotators disagree on {row['open']} undecided rows, so the agreement of the labelled "
                f"rows is in the range {_between(row['bounds'], 100, 1)}. Decide them in the sheets for adjudication."
            )
        if row["unlabelled"]:
            yield f"{name}: {row['unlabelled']} rows have no label and are not counted."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _between(ends: Sequence[float] | None, scale: float, digits: int) -> str:
    return "-" if ends is None else f"{scale * ends[0]:.{digits}f} to {scale * ends[1]:.{digits}f}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
