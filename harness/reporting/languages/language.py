"""A page for every language that answers why it is weak: findings, scores and gaps, weakest buckets, worst items.

Findings are significant differences of the languages of the first run with a sentence each, the largest first. Tables
of one language against another show how many items are right in one of them only, and some of these items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from harness.analysis.buckets import LEAST_ITEMS
from harness.analysis.diagnosis import SIGNIFICANCE
from harness.analysis.language_pair import LanguagePair, SplitItem
from harness.languages.table import known_languages
from harness.metrics.metric import metric_name
from harness.reporting.blocks.model import (
    BLANK,
    Block,
    Field,
    Fold,
    Note,
    Notes,
    Table,
    anchor,
    as_field,
    make_table,
    table_of,
)
from harness.reporting.blocks.number import (
    interval_text,
    level_text,
    p_text,
    percent,
    signed,
    signed_interval,
    uncertainty,
)
from harness.reporting.blocks.words import counted, legend
from harness.reporting.overview.column import Column
from harness.reporting.overview.means import (
    Contrast,
    Estimate,
    from_others,
    from_source,
    is_added,
    mean_of_others,
    row_of,
    score_of,
)
from harness.reporting.overview.summary import Material, script_of
from harness.reporting.weakness.diagnosis import DiagnosedBucket, Row, Weakness
from harness.reporting.weakness.items import (
    Parts,
    WorstItem,
    answer_parts,
    field_rows,
    gold_parts,
    item_index,
)
from harness.statistics import benjamini_hochberg
from harness.storage.run_folder import Run
from harness.table import grouped

BUCKETS = 3
"""Further buckets of a language that are shown, those furthest below the rest first."""
BRIEF = 8
"""Scores in the line that opens the page of a language."""
SENTENCES = 3


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
    folds = {}
    for code in dict.fromkeys(code for code in (*sentences, *languages) if code in languages):
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
    return [Note(legend("languages", least=LEAST_ITEMS), "note"), *pages] if pages else []


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
    return [make_table(title, heads, rows)] if rows else []


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
    if own is None:
        return BLANK
    return Field(text=percent(own.value), small=uncertainty(own.value, own.interval))


def _difference(own: Estimate, other: Estimate | None, found: Contrast | None) -> str | Field:
    if other is None:
        return BLANK
    if found is None:
        return signed(own.value - other.value)
    how = ", paired" if found.is_paired else ""
    return Field(text=signed(found.difference), small=f"({signed_interval(found.low, found.high)}{how})")


def _buckets(weakness: Weakness, code: str, name: str, sentences: Sequence[str]) -> list[Block]:
    """Return the tested buckets of the first run below the rest of one language that are in no sentence."""
    shortfalls = [
        bucket
        for bucket in weakness.buckets(_single_rows(weakness, code))
        if bucket.row["q"] is not None and bucket.difference < 0
        if not any(text.startswith(f"{bucket.task}, {name}: {bucket.phrase}: ") for text in sentences)
    ]
    rows = [
        (
            f"{bucket.task}: {bucket.phrase}",
            percent(bucket.row["value"]),
            Field(text=signed(bucket.difference), small=f"({_ends(bucket)})"),
            p_text(bucket.row["q"]),
            f"{bucket.row['n']:,}",
        )
        for bucket in sorted(shortfalls, key=lambda own: (own.difference, own.task, own.phrase))[:BUCKETS]
    ]
    more = f", the lowest {BUCKETS} of {len(shortfalls):,}" if len(shortfalls) > BUCKETS else ""
    heads = ("bucket", "score", "minus the rest", "q", "n")
    return _table(f"Further buckets below the rest of {name}{more}", heads, rows)


def _ends(bucket: DiagnosedBucket) -> str:
    return BLANK if bucket.interval is None else signed_interval(*bucket.interval)


def _single_rows(weakness: Weakness, code: str) -> list[Row]:
    """Return the buckets of the first run in one language."""
    rows = weakness.runs[0] if weakness.runs else ()
    return [row for row in rows if row["kind"] == "single" and row["language"] == code]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A significant difference of one language."""

    language: str
    text: str
    difference: float
    """As a fraction; below 0 where something is worse."""


def findings(material: Material, weakness: Weakness) -> dict[str, list[str]]:
    """Return up to three sentences per language; the language furthest below the others comes first.

    Differences of two runs follow the shortfalls of the first one.
    """
    every = [*shortfalls(material, weakness), *_pair_findings(weakness)]
    by_language = grouped((finding.language, finding.text) for finding in every)
    return {code: texts[:SENTENCES] for code, texts in by_language.items()}


def shortfalls(material: Material, weakness: Weakness) -> list[Finding]:
    """Return the significant shortfalls of the first run in single languages, the largest difference first.

    First come languages below the mean of the others, tested together (Benjamini and Hochberg at the rate of the
    diagnosis), then buckets below the rest of their language, which the diagnosis has tested and corrected.
    """
    names = {code: name for code, name, _ in material.languages}
    groups = (_behind_others(material), _bucket_findings(weakness, names))
    return [finding for group in groups for finding in sorted(group, key=lambda finding: finding.difference)]


def _behind_others(material: Material) -> Iterator[Finding]:
    run = material.runs[0]
    codes = [code for code, _, _ in material.languages]
    tested: list[tuple[str, str, Contrast]] = []
    for column in material.summary.columns:
        for code, name, _ in material.languages:
            score, mean = score_of(run, column, code), mean_of_others(run, column, code, codes)
            if score is None or mean is None or min(score.draws, mean.draws) < LEAST_ITEMS:
                continue
            contrast = from_others(run, column, code, codes)
            if contrast is not None:
                text = (
                    f"{column.task}: {name} scores {_points(contrast.difference)} lower ({metric_name(column.metric)}) "
                    "than the mean of the other languages "
                    f"(95 % interval {interval_text((-contrast.high, -contrast.low))}"
                )
                tested.append((code, text, contrast))
    rates = benjamini_hochberg([contrast.p for *_, contrast in tested]).tolist()
    for (code, text, contrast), q in zip(tested, rates, strict=True):
        if q <= SIGNIFICANCE and contrast.high < 0:
            how = "paired over the same items" if contrast.is_paired else "languages taken as independent"
            sentence = f"{text}, {level_text('q', q)}; {how})."
            yield Finding(language=code, text=sentence, difference=contrast.difference)


def _bucket_findings(weakness: Weakness, names: Mapping[str, str]) -> Iterator[Finding]:
    rows = [row for row in (weakness.runs[0] if weakness.runs else ()) if row["kind"] == "single"]
    systems = {row["task"]: row["system"] for row in reversed(rows)}
    firsts = (row for row in rows if row["language"] is not None and row["system"] == systems[row["task"]])
    for language, language_rows in grouped((row["language"], row) for row in firsts).items():
        for bucket in weakness.buckets(language_rows):
            if bucket.row["significant"] and bucket.difference < 0 and bucket.row["difference_ci"][1] < 0:
                text = bucket.shortfall(f"{bucket.task}, {names.get(language, language)}: {bucket.phrase}")
                yield Finding(language=language, text=text, difference=bucket.difference)


def _pair_findings(weakness: Weakness) -> list[Finding]:
    """Return in which buckets of one language two runs differ, the largest difference first."""
    rows = [row for row in weakness.pairs if row["kind"] == "pairwise" and row["language"] is not None]
    pair_findings = [
        Finding(language=language, text=_pair_text(bucket), difference=bucket.difference)
        for language, language_rows in grouped((row["language"], row) for row in rows).items()
        for bucket in weakness.buckets(language_rows)
        if bucket.row["significant"] and bucket.interval
    ]
    return sorted(pair_findings, key=lambda finding: -abs(finding.difference))


def _pair_text(bucket: DiagnosedBucket) -> str:
    """Return a difference of two runs in one bucket as a sentence."""
    first, second = bucket.row["systems"]
    low, high = bucket.row["ci"]
    direction, ends = ("above", (low, high)) if bucket.difference > 0 else ("below", (-high, -low))
    return (
        f"{bucket.task}: {bucket.phrase}: {first} is {_points(bucket.difference)} {direction} {second} "
        f"({interval_text(ends)}, {level_text('q', bucket.row['q'])}, {bucket.size})."
    )


def _points(difference: float) -> str:
    return f"{abs(difference) * 100:.1f} points"


def language_pair_blocks(
    pairs: Sequence[LanguagePair], notes: Sequence[str], *, examples: int
) -> list[Block]:
    """Return a table for each task and system, and up to `examples` items of each pair of languages."""
    blocks: list[Block] = []
    for (task, system, _), group in groupby(pairs, key=lambda pair: (pair.task, pair.system, pair.against)):
        task_pairs = list(group)
        blocks += [Note(f"{task}, {system}", "heading"), _pair_counts(task_pairs)]
        blocks += [block for pair in task_pairs for block in _pair_items(pair, examples)]
    tests, against = (dict.fromkeys(getattr(pair, name) for pair in pairs) for name in ("test", "against"))
    sentence = legend("language pair", against=" or ".join(against), tests=" or ".join(tests))
    return [*blocks, Notes(tuple(notes)), Note(sentence, "note")]


def _pair_counts(pairs: Sequence[LanguagePair]) -> Table:
    against = pairs[0].against
    columns: dict[str, Callable[[LanguagePair], str]] = {
        "right in": lambda pair: pair.language,
        "both": lambda pair: f"{pair.both:,}",
        f"{against}\nonly": lambda pair: f"{pair.lost:,}",
        "itself\nonly": lambda pair: f"{pair.gained:,}",
        "neither": lambda pair: f"{pair.neither:,}",
        "difference": lambda pair: signed(pair.difference),
        "95 % interval": lambda pair: BLANK if pair.ci is None else f"[{signed_interval(*pair.ci)}]",
        "p": lambda pair: p_text(pair.p),
    }
    ordered = sorted(pairs, key=lambda pair: (pair.difference, pair.language))
    return table_of(f"Items that are right in a language and in {against}", ordered, columns)


def _pair_items(pair: LanguagePair, examples: int) -> Iterator[Block]:
    lost = [item for item in pair.items if item.is_lost]
    yield from (_pair_item(pair, item) for item in lost[:examples])
    if len(lost) > examples:
        yield Note(
            f"{len(lost) - examples:,} more items are right in {pair.against}, wrong in {pair.language}: --examples N "
            "shows more, --json FILE writes all.",
            "note",
        )


def _pair_item(pair: LanguagePair, item: SplitItem) -> Table:
    names = (pair.against, pair.language)
    sides = ((pair.against_language, item.against), (pair.language, item.language))
    items = [
        WorstItem(title=pair.task, kind=pair.kind, language=code, record=record, answers=())
        for code, record in sides
    ]
    rows = [
        (f"{name} {row.label}", *(_plain_text(as_field(field)) for field in row.fields))
        for name, worst_item in zip(names, items, strict=True)
        for row in field_rows(worst_item)
    ]
    golds, answers = (
        [_parts_text(render(record, pair.kind, code, {})) for code, record in sides]
        for render in (gold_parts, answer_parts)
    )
    is_same = golds[0] == golds[1]
    rows += [("gold", golds[0])] if is_same else zip((f"{name} gold" for name in names), golds, strict=True)
    rows += zip((f"{name} answer" for name in names), answers, strict=True)
    title = f"Right in {pair.against}, wrong in {pair.language}: item {item.language.id[:200]}"
    return make_table(title, ("", ""), rows, words={0}, folding=True)


def _plain_text(field: Field) -> str:
    return field.text or _parts_text(field.parts)


def _parts_text(parts: Parts) -> str:
    return "".join(segment if isinstance(segment, str) else segment.text for segment in parts)
