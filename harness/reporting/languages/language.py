"""A page for every language that answers why it is weak: findings, scores and gaps, weakest buckets, worst items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.analysis.bucket_scoring import LEAST_ITEMS
from harness.languages.table import known_languages
from harness.reporting.blocks.model import BLANK, Block, Field, Fold, Note, Notes, Table, anchor, rows_of
from harness.reporting.blocks.number import p_text, percent, signed, signed_interval, uncertainty
from harness.reporting.blocks.remark import counted
from harness.reporting.overview.column import Column
from harness.reporting.overview.contrast import (
    Contrast,
    Estimate,
    from_others,
    from_source,
    mean_of_others,
    score_of,
)
from harness.reporting.overview.item_origin import is_added
from harness.reporting.overview.material import Material
from harness.reporting.overview.mean_row import row_of
from harness.reporting.overview.summary import script_of
from harness.reporting.weakness.items import WorstItem, item_index
from harness.reporting.weakness.weakness import Weakness, by_attribute
from harness.storage.run_folder import Run

BUCKETS = 3
"""Further buckets of a language that are shown, those furthest below the rest first."""
BRIEF = 8
"""Scores in the line that opens the page of a language."""
LEGEND = (
    "Languages that need work come first: those furthest below the mean of the other languages, then those in "
    "which some kind of items (a bucket) is below the rest of the language. The first finding is in the line of the "
    "language. The others: the mean of the other languages. The source: the language of the training data. Small "
    "numbers are 95 % intervals (± half of one); q is p after "
    f"Benjamini and Hochberg, significant up to 0.05, with {LEAST_ITEMS} items (or clusters) on both sides at "
    "least. A language and the mean of the others are taken as independent: too wide an interval, rather than too "
    "narrow, where they share their items."
)


def language_blocks(
    material: Material,
    weakness: Weakness,
    items: Mapping[str, Sequence[WorstItem]],
    sentences: Mapping[str, Sequence[str]],
) -> list[Block]:
    """Return the pages of all languages, folded; those with findings first, in the order of their largest shortfall.

    Nothing where no language has a cell. The others follow in one fold, without buckets.
    """
    languages = {code: (name, family) for code, name, family in material.languages}
    ordered = [
        *(code for code in sentences if code in languages),
        *(each for each in languages if each not in sentences),
    ]
    folds = {}
    for code in ordered:
        name, family = languages[code]
        texts = sentences.get(code, ())
        inside = [
            Note(_facts(material, code, family), "soft"),
            *([Notes(texts[1:], "findings")] if texts else []),
            *_scores(material, code, name),
            *(_buckets(weakness, code, name, texts) if texts else []),
            *item_index(items.get(code, ())),
        ]
        soft = texts[0] if texts else _brief(material, code)
        title, page_id = f"{name} ({code})", anchor("language", code)
        folds[code] = Fold(title=title, soft=soft, blocks=inside, anchor=page_id, heading=True)
    pages: list[Block] = [fold for code, fold in folds.items() if code in sentences]
    without_findings = [fold for code, fold in folds.items() if code not in sentences]
    if without_findings:
        title = f"{counted(len(without_findings), 'language')} without a significant finding"
        pages.append(Fold(title=title, blocks=without_findings, heading=True, is_open=not pages))
    return [Note(LEGEND, "note"), *pages] if pages else []


def _facts(material: Material, code: str, family: str) -> str:
    branch = known_languages().get(code).branch if code in known_languages() else ""
    script = f"script {script_of(material.runs[0], code)}"
    return ", ".join(fact for fact in (family, branch, script, *_made(material, code)) if fact)


def _made(material: Material, code: str) -> list[str]:
    """Return how the texts in one language were made, by task: ``human-translated: xnli, xquad``."""
    tasks: dict[str, dict[str, None]] = {}
    for cell in material.runs[0].cells:
        provenance = cell.provenance
        if cell.language == code and cell.status == "ok" and provenance and not cell.data.get("translated"):
            added = is_added(code, material.runs[0].manifest.tasks[cell.task])
            title = f"{cell.task} (added by others)" if added else cell.task
            tasks.setdefault(provenance, {})[title] = None
    return [f"{provenance}: {' '.join(names)}" for provenance, names in sorted(tasks.items())]


def _brief(material: Material, code: str) -> str:
    """Return the scores in one language in a few words, for the line that opens its page."""
    pairs = ((column, score_of(material.runs[0], column, code)) for column in material.summary.columns)
    scores = [f"{column.plain_title} {percent(score.value)}" for column, score in pairs if score is not None]
    more = [f"{len(scores) - BRIEF:,} more"] if len(scores) > BRIEF else []
    return ", ".join([*scores[:BRIEF], *more])


def _scores(material: Material, code: str, name: str) -> list[Block]:
    """Return the scores in one language: those of the first run next to other languages, then those of further runs."""
    first, *later_runs = material.runs
    further = [run for run in later_runs if any(score_of(run, column, code) for column in material.columns)]
    score_rows = (_score_row([first, *further], column, code) for column in material.columns)
    rows = [row for row in score_rows if row is not None]
    heads = ("task", "score", "minus the others", "minus the source", *map(material.name, further))
    return _table(f"Scores of {name}", heads, rows)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str | Field]]) -> list[Block]:
    corner, *further = heads
    table = Table(title=title, corner=corner, heads=tuple(further), rows=rows_of(rows))
    return [table] if rows else []


def _score_row(runs: Sequence[Run], column: Column, code: str) -> tuple[str | Field, ...] | None:
    run, (score, *further) = runs[0], [score_of(each, column, code) for each in runs]
    if score is None and not any(further):
        return None
    differences: tuple[str | Field, ...] = (BLANK, BLANK)
    if score is not None:
        row, origin = row_of(run, column), run.manifest.tasks[column.task].source
        codes = list(row.by_language) if row is not None else []
        source = score_of(run, column, origin) if origin and origin != code else None
        mean = mean_of_others(run, column, code, codes)
        differences = (
            _difference(score, mean, from_others(run, column, code, codes)),
            _difference(score, source, from_source(run, column, code, origin or "")),
        )
    return (column.plain_title, _score(score), *differences, *map(_score, further))


def _score(own: Estimate | None) -> str | Field:
    return (
        BLANK if own is None else Field(text=percent(own.value), small=uncertainty(own.value, own.interval))
    )


def _difference(own: Estimate, other: Estimate | None, found: Contrast | None) -> str | Field:
    if other is None:
        return BLANK
    if found is None:
        return signed(own.value - other.value)
    how = ", paired" if found.is_paired else ""
    return Field(text=signed(found.difference), small=f"({signed_interval(found.low, found.high)}{how})")


def _buckets(weakness: Weakness, code: str, name: str, sentences: Sequence[str]) -> list[Block]:
    """Return the tested buckets of the first run below the rest of one language that are in no sentence."""
    rows = [
        row for run in weakness.runs[:1] for row in run if row["kind"] == "single" and row["language"] == code
    ]
    shortfalls = [
        (row["difference"], task, phrase, row)
        for (task, *_), buckets in by_attribute(rows).items()
        for row in buckets
        if row["q"] is not None and row["difference"] < 0
        for phrase in [weakness.phrase(row, buckets)]
        if not any(text.startswith(f"{task}, {name}: {phrase}: ") for text in sentences)
    ]
    table_rows = [
        (
            f"{task}: {phrase}",
            percent(row["value"]),
            Field(
                text=signed(difference), small=f"({signed_interval(*(row['difference_ci'] or (None, None)))})"
            ),
            p_text(row["q"]),
            f"{row['n']:,}",
        )
        for difference, task, phrase, row in sorted(shortfalls, key=lambda one: one[:3])[:BUCKETS]
    ]
    more = f", the lowest {BUCKETS} of {len(shortfalls):,}" if len(shortfalls) > BUCKETS else ""
    heads = ("bucket", "score", "minus the rest", "q", "n")
    return _table(f"Further buckets below the rest of {name}{more}", heads, table_rows)
