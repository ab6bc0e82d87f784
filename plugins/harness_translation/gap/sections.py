"""Gaps as sections of a report: the answer in words, tables, figures, and rows for ``--json``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.languages import recorded_name
from harness.metrics import metric_name
from harness.reporting import (
    BLANK,
    Bar,
    BarChart,
    Block,
    Charts,
    CurveChart,
    Field,
    Line,
    Note,
    Notes,
    Section,
    Table,
    anchor,
    interval_text,
    percent,
    rows_of,
    signed,
)
from harness_translation.gap.correlation import Correlation, pretraining_size
from harness_translation.gap.measure import ALL, GapValue, SystemGaps
from harness_translation.gap.system import CONTRASTS, FLAGGED, HEADS, TITLES, TRANSFER, VARIANTS, ZS

ASKED: Final = ("bt_tt", "te_zs", "delta")
"""Contrasts of machine-made with human-made text; the first one that was computed answers."""
_ORDER: Final = ("yes", "no evidence", "no", "undecided")
CURVES: Final = {"tt": "human text (TT)", "bt": "machine text (BT)"}
LABEL_WIDTH = 18
CAUTION: Final = (
    "Caution: BT is source-language text that went through two translations. It no longer tests the target language, "
    "and favours models trained on translated text; compare TE - ZS with delta."
)
LEGEND: Final = (
    "Scores and differences x100. ZS: human translation; TT: it, translated into the source language; TE: the source "
    "text, translated; BT: that, translated back; delta: BT - max(ZS, TT). Intervals: 95 %, bootstrap over clusters of "
    "items, all versions in the same resamples. Means are means of the languages' own values. * exceeds k standard "
    "errors for every translator. ~ compares more than translations. A mean over other languages than those of its "
    "row is not shown."
)


def _answer_blocks(gaps: SystemGaps, *, k: float) -> list[Block]:
    """Return the question with its answer for every language, those that lose most first; nothing without a contrast.

    The answer is yes where the gap exceeds k standard errors for every translator and its interval is above 0, no
    where its interval is below 0, and undecided where only one of the two holds or there is no interval. Where some
    translator has no such contrast, there is no verdict: the values of the others are given, each by its name.
    """
    complete = {value.quantity for value in gaps.values if value.translator == ALL}
    partial = {value.quantity for value in gaps.values}
    quantity = next((name for held in (complete, partial) for name in ASKED if name in held), None)
    if quantity is None:
        return []
    answers: list[tuple[int, float, str]] = []
    for code in gaps.languages:
        value = gaps.find(quantity, code, ALL)
        if value is not None:
            answers.append((_ORDER.index(_answer(value)), -value.estimate.value, _sentence(value, code)))
        elif gaps.translators_of(quantity, code):
            answers.append((len(_ORDER), 0.0, _partial_sentence(gaps, quantity, code)))
    question = f"Does the human translation cost {gaps.system.model_name} its score on {gaps.system.task}?"
    how = (
        f"{TITLES[quantity]}: the score on machine translations ({_whose(gaps, quantity)}) minus that on the human "
        f"one. Yes: more than {k:g} standard errors, interval above 0; each language by itself, without a correction "
        "for their number."
    )
    texts = [text for *_, text in sorted(answers)]
    return [Note(question, "heading"), Notes(texts, "findings"), Note(how, "note")] if texts else []


def _whose(gaps: SystemGaps, quantity: str) -> str:
    """Return the translators of a contrast, and those that have none."""
    every = gaps.system.translators
    by_code = [gaps.translators_of(quantity, code) for code in gaps.languages]
    if every in by_code:
        return f"by {every[0]}" if len(every) == 1 else f"by every one of {', '.join(every)}"
    names = [name for name in every if any(name in translators for translators in by_code)]
    missing = ", ".join(name for name in every if name not in names)
    remark = f"there is none by {missing}" if missing else "no language has it by all of them"
    return f"by {', '.join(names)}; {remark}"


def _partial_sentence(gaps: SystemGaps, quantity: str, code: str) -> str:
    names = gaps.translators_of(quantity, code)
    missing = ", ".join(name for name in gaps.system.translators if name not in names)
    values = [(name, gaps.find(quantity, code, name)) for name in names]
    listed = "; ".join(f"by {name} alone {_points(value)}" for name, value in values if value is not None)
    name = recorded_name(code, ())
    return f"{name}: no verdict on every translator, since {missing} has no {HEADS[quantity]}; {listed}."


def _answer(value: GapValue) -> str:
    low, high = value.estimate.interval.low, value.estimate.interval.high
    if low is None or high is None or value.flagged != (low > 0):
        return "undecided"
    return "yes" if value.flagged else "no" if high < 0 else "no evidence"


def _sentence(value: GapValue, code: str) -> str:
    answer = _answer(value)
    why = ", the human text scores higher" if answer == "no" else ""
    return f"{recorded_name(code, ())}: {answer}{why}, {_points(value)}."


def _points(value: GapValue) -> str:
    """Return the value with its interval: ``+16.7 points (4.2 to 33.3)``."""
    low, high = value.estimate.interval.low, value.estimate.interval.high
    points = f"{signed(value.estimate.value)} points"
    if low is None or high is None:
        return f"{points} without an interval"
    unfair = "; the two sides differ in more than their translation" if value.unfair else ""
    return f"{points} ({interval_text((low, high))}){unfair}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A score as it is shown, with its interval if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


def paper_table(
    title: str,
    source: str,
    codes: Sequence[str],
    translators: Sequence[str],
    text: Callable[[str, str, str | None], str],
) -> Table:
    """Return versions as rows and languages as columns; versions without any score are skipped.

    Args:
        title: The caption.
        source: The source language, the first column.
        codes: The other languages.
        translators: Their names, as in ``BT-g``.
        text: Returns a field: quantity, translator and language, None for the mean; empty without one.
    """
    versions = [("zs", ""), *((name, each) for each in translators for name in ("tt", "te", "bt", "delta"))]
    rows = []
    for quantity, translator in versions:
        fields = [text(quantity, translator, code) for code in (source, *codes, None)]
        if any(fields):
            name = quantity if quantity == "delta" else quantity.upper()
            rows.append(["-".join(filter(None, (name, translator))), *(field or BLANK for field in fields)])
    return Table(title=title, corner="", heads=(source, *codes, "avg"), rows=rows_of(rows))


def transfer_chart(
    title: str, source: str, points: Mapping[str, Mapping[str, Point]], codes: Sequence[str]
) -> CurveChart | None:
    """Return Figure 1; None unless two languages have both curves.

    Args:
        title: The title.
        source: The source language.
        points: By variant and language; ``zs`` of the source language is the line.
        codes: The languages, in the order of the axis.
    """
    both = [code for code in codes if all(code in points.get(variant, {}) for variant in CURVES)]
    if len(both) < 2:
        return None
    lines = [
        _curve(label, group, [points[variant][code] for code in both])
        for group, (variant, label) in enumerate(CURVES.items())
    ]
    english = points.get("zs", {}).get(source)
    if english is not None:
        ends = ((0.0, english.value), (len(both) - 1.0, english.value))
        lines.append(Line(label=f"{source} (ZS)", points=ends, group=6, stroke="dashed", is_guide=True))
    return CurveChart(
        title=title,
        lines=tuple(lines),
        groups=tuple(CURVES.values()),
        x_label="languages, largest pre-training data first",
        y_label="score",
        x_names=tuple(both),
        summary="; ".join(
            f"{label}: {', '.join(f'{code} {points[variant][code].value:.1f}' for code in both)}"
            for variant, label in CURVES.items()
        ),
        strokes=() if english is None else (("dashed", f"{source}, its own test set ({english.value:.1f})"),),
    )


def _curve(label: str, group: int, points: Sequence[Point]) -> Line:
    return Line(
        label=label,
        points=tuple((float(position), point.value) for position, point in enumerate(points)),
        group=group,
        whiskers=tuple(
            (float(position), point.low, point.high)
            for position, point in enumerate(points)
            if point.low is not None and point.high is not None
        ),
    )


def gap_section(
    title: str,
    tables: Sequence[Table],
    notes: Iterable[str],
    *,
    figure: str,
    bars: Sequence[Bar],
    unit: str = "points",
    answers: Sequence[Block] = (),
) -> Section:
    """Return the section of one system, or of one published table.

    The bars are by language and translator, the largest language first; they may be none. The answers come first.
    """
    chart = BarChart(title=figure, bars=tuple(bars), low=None, unit=unit)
    blocks: list[Block] = [*answers, *([Charts(charts=(chart,))] if bars else [])]
    return Section(name=anchor("gaps", title), title=title, blocks=[*blocks, *tables, Notes(list(notes))])


def gap_table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str | Field]], *, words: Collection[int] = ()
) -> Table:
    """Return a table whose first column names the rows; `words` are columns of words, where 0 is the second one.

    A narrow terminal shows it in parts, or folds it where several columns hold words.
    """
    return Table(
        title=title,
        corner=heads[0],
        heads=tuple(heads[1:]),
        rows=rows_of(rows),
        words=frozenset(words),
        folding=True,
        label_width=LABEL_WIDTH,
        divided=len(words) < 2,
    )


def system_section(gaps: SystemGaps, *, k: float) -> Section:
    """Return the section of one system and metric."""
    names = gaps.system.translators
    held = {value.quantity for value in gaps.values}
    contrasts = [name for name in CONTRASTS if name in held]
    # BT - TT as in the paper, else the first contrast that could be computed.
    charted = next((name for name in ("bt_tt", "te_zs", "delta", "tt_zs") if name in held), "")
    tables: list[Table] = []
    means = [ALL] if len(names) > 1 and any(value.translator == ALL for value in gaps.values) else []
    for name in (*names, *means):
        tables += [_score_table(gaps, name), _contrast_table(gaps, name, contrasts)]
    unfair = {value.quantity: value.unfair for value in gaps.values if value.unfair}
    notes = [
        *_flag_texts(gaps, k),
        *(_correlation_text(correlation) for correlation in gaps.correlations),
        _script_text(gaps),
        *([CAUTION] if "bt" in held else []),
        *(unfair_text(name, why) for name, why in unfair.items()),
        *gaps.notes,
    ]
    return gap_section(
        f"{gaps.system.title}: {metric_name(gaps.metric)}",
        [*tables, *_f1_table(gaps), *_script_table(gaps)],
        notes,
        figure=f"{TITLES[charted]} by language, largest pre-training data first" if charted else "",
        bars=[
            _bar(value, index)
            for code in gaps.languages
            for index, name in enumerate(names)
            if (value := gaps.find(charted, code, name)) is not None
        ],
        answers=_answer_blocks(gaps, k=k),
    )


def system_curve(gaps: SystemGaps, translator: str) -> CurveChart | None:
    """Return Figure 1 of the paper for one system, metric and translator; None without both curves."""
    source = gaps.system.source
    return transfer_chart(
        f"{gaps.system.model_name} on {gaps.system.task}: {metric_name(gaps.metric)} of text in {source}, {translator}",
        source,
        {
            variant: {
                code: _point(value)
                for code in (source, *gaps.languages)
                if (value := gaps.find(variant, code, "" if variant == "zs" else translator)) is not None
            }
            for variant in VARIANTS
        },
        gaps.languages,
    )


def _point(value: GapValue) -> Point:
    ends = (value.estimate.interval.low, value.estimate.interval.high)
    low, high = (None if end is None else end * 100 for end in ends)
    return Point(value=value.estimate.value * 100, low=low, high=high)


def system_table(gaps: SystemGaps) -> Table:
    """Return the scores of one system and metric in the paper's orientation."""

    def text(quantity: str, translator: str, code: str | None) -> str:
        value = gaps.find(quantity, code, translator)
        # A mean over fewer languages cannot stand next to the others.
        if value is None or (code is None and len(value.languages) < len(gaps.languages)):
            return ""
        return f"{value.estimate.value * 100:.1f}"

    title = f"{gaps.system.title}: {metric_name(gaps.metric)}"
    return paper_table(title, gaps.system.source, gaps.languages, gaps.system.translators, text)


def unfair_text(quantity: str, why: str, task: str = "") -> str:
    """Return a sentence about a contrast that compares more than translations."""
    return f"Not a fair contrast{f' in {task}' if task else ''}: {TITLES[quantity]}: {why}."


def size_text(code: str) -> str:
    """Return the pre-training size of a language: ``1.6 GiB``; empty if it is unknown."""
    size = pretraining_size(code)
    return "" if size is None else size.text


def _bar(value: GapValue, group: int) -> Bar:
    low, high = value.estimate.interval.low, value.estimate.interval.high
    return Bar(
        label=f"{value.language} {size_text(str(value.language))} {value.translator}",
        value=value.estimate.value * 100,
        low=None if low is None else low * 100,
        high=None if high is None else high * 100,
        n=value.items,
        group=group,
    )


def _score_table(gaps: SystemGaps, translator: str) -> Table:
    names = (*VARIANTS, *TRANSFER)
    rows = []
    source = gaps.find("zs", gaps.system.source, "")
    if source is not None:
        fields = [percent(source.estimate.value), *[BLANK] * 7, str(source.items)]
        rows.append([f"{gaps.system.source} (source)", size_text(gaps.system.source), *fields])
    # The source language on the items of a language that has fewer, as in the paper's Table 4.
    for language in gaps.languages:
        same = gaps.find("source", language, "")
        if source is not None and same is not None and gaps.paired(language) and same.items != source.items:
            name = f"{gaps.system.source}@{language}"
            rows.append([name, "", percent(same.estimate.value), *[BLANK] * 7, str(same.items)])
    for code, head, values in _by_language(gaps, names, translator):
        fields = [
            (percent if name in VARIANTS else signed)(None if value is None else value.estimate.value)
            for name, value in zip(names, values, strict=True)
        ]
        items = next(str(value.items) for value in values if value is not None)
        rows.append([head, size_text(code) if code else "", *fields, items])
    heads = ["", "size", *(HEADS[name] for name in names), "items"]
    return gap_table(f"Scores and transfer gaps, {_translator(translator)}", heads, rows, words={0})


def _f1_table(gaps: SystemGaps) -> list[Table]:
    """Return the macro-F1 of every version, where the metric is accuracy."""
    conditions = sorted({condition for _, condition in gaps.f1}, key=lambda each: (each != ZS, each))
    codes = [code for code in (gaps.system.source, *gaps.languages) if (code, ZS) in gaps.f1]
    rows = [[code, *(percent(gaps.f1.get((code, condition))) for condition in conditions)] for code in codes]
    heads = ["", *(condition.title for condition in conditions)]
    return [gap_table("Macro-F1 of the same answers", heads, rows)] if rows else []


def _contrast_table(gaps: SystemGaps, translator: str, names: Sequence[str]) -> Table:
    rows: list[list[str | Field]] = [
        [head, *(_contrast(value) for value in values)]
        for _, head, values in _by_language(gaps, names, translator)
    ]
    return gap_table(f"Contrasts, {_translator(translator)}", ["", *(HEADS[name] for name in names)], rows)


def _by_language(
    gaps: SystemGaps, names: Sequence[str], translator: str
) -> Iterable[tuple[str | None, str, list[GapValue | None]]]:
    """Yield the code, head and values of every language that has one, then of the mean.

    The mean is over the languages of the value with the fewest; a mean over others is not comparable.
    """
    for code in (*gaps.languages, None):
        values = [
            gaps.find(name, code, "" if name in {"zs", "transfer_gap_zs"} else translator) for name in names
        ]
        present = [value for value in values if value is not None]
        if not present:
            continue
        fewest = min(present, key=lambda value: len(value.languages))
        alike = [value if value and value.languages == fewest.languages else None for value in values]
        mean = f"mean of {len(fewest.languages)}: {' '.join(fewest.languages)}"
        yield code, code or mean, alike


def _script_table(gaps: SystemGaps) -> list[Table]:
    """Return the table of contrasts without items in another script, or nothing where all items are in theirs."""
    translators = {*gaps.system.translators, *([ALL] if len(gaps.system.translators) > 1 else [])}
    rows: list[list[str | Field]] = []
    for value in gaps.values:
        if value.quantity in CONTRASTS and value.translator in translators and value.subset != "all":
            every = gaps.find(value.quantity, value.language, value.translator)
            names = [value.language or "mean", _translator(value.translator), HEADS[value.quantity]]
            rows.append([*names, _contrast(value), _contrast(every), str(value.items)])
    heads = ["language", "translator", "contrast", "these", "all items", "items"]
    title = "Items in the script of their language"
    return [gap_table(title, heads, rows, words={0, 1})] if rows else []


def _contrast(value: GapValue | None) -> Field:
    """Return a contrast with its marks and interval: ``+2.9* [+1.2, +4.6]``."""
    if value is None:
        return Field(text=BLANK)
    mark = f"{'~' if value.unfair else ''}{'*' if value.flagged else ''}"
    low, high = value.estimate.interval.low, value.estimate.interval.high
    ends = "" if low is None or high is None else f"[{signed(low)}, {signed(high)}]"
    return Field(text=f"{signed(value.estimate.value)}{mark}", small=ends)


def _translator(name: str) -> str:
    return {ALL: "all translators", "": "no translator"}.get(name, name)


def _flag_texts(gaps: SystemGaps, k: float) -> list[str]:
    """Return a sentence for every contrast: the languages that exceed k standard errors for every translator."""
    names = gaps.system.translators
    alone = f" (one translator, {names[0]}: the translator may be the cause)" if len(names) == 1 else ""
    texts = []
    for quantity in FLAGGED:
        by_code = {code: gaps.translators_of(quantity, code) for code in gaps.languages}
        partial = [
            f"{code} ({', '.join(translators)})"
            for code, translators in by_code.items()
            if 0 < len(translators) < len(names)
        ]
        if any(len(translators) == len(names) for translators in by_code.values() if translators):
            flagged = " ".join(gaps.flagged[quantity]) or "no language"
            texts.append(
                f"{TITLES[quantity]}: beyond {k:g} standard errors for every translator{alone}: {flagged}."
            )
        if partial:
            texts.append(
                f"{TITLES[quantity]}: no verdict on every translator in {', '.join(partial)}: only the named "
                "translators have it."
            )
    return texts


def _correlation_text(own: Correlation) -> str:
    items = (
        ""
        if own.item_low is None or own.item_high is None
        else f"; over items with languages fixed {own.item_low:+.2f} to {own.item_high:+.2f}"
    )
    return (
        f"{TITLES[own.quantity]}, {_translator(own.translator)}: Spearman's rho with pre-training size "
        f"{own.rho:+.2f} (95 % {own.low:+.2f} to {own.high:+.2f} over {len(own.languages)} languages, "
        f"p = {own.p:.3f}{items})."
    )


def _script_text(gaps: SystemGaps) -> str:
    counts = ", ".join(f"{code} {count:,}" for code, count in gaps.mismatched.items() if count)
    if not gaps.mismatched:
        return "The script of the human text is unknown."
    if not counts:
        return "All human text is in the script of its language."
    return f"Items whose human text is not in the script of its language: {counts}."


def gap_rows(found: Sequence[SystemGaps]) -> list[dict[str, Any]]:
    """Return one row per system, metric, quantity, translator and language (None for a mean), then the correlations.

    Values are fractions in [0, 1].
    """
    rows: list[dict[str, Any]] = []
    for gaps in found:
        system = gaps.system
        head = {
            "task": system.task,
            "model": system.model,
            "train": system.train,
            "conditions": dict(system.conditions),
            "metric": gaps.metric,
        }
        rows += [{**head, **_value_row(value, system.seeds)} for value in gaps.values]
        rows += [{**head, **_correlation_row(correlation)} for correlation in gaps.correlations]
        rows += [
            {
                **head,
                "metric": "macro_f1",
                "quantity": condition.variant,
                "translator": condition.translator or None,
                "language": code,
                "value": score,
            }
            for (code, condition), score in sorted(gaps.f1.items())
        ]
    return rows


def _value_row(value: GapValue, seeds: Sequence[int]) -> dict[str, Any]:
    size = None if value.language is None else pretraining_size(value.language)
    interval = value.estimate.interval
    return {
        "quantity": value.quantity,
        "translator": value.translator or None,
        "language": value.language,
        "languages": list(value.languages),
        "pretraining_size": None if size is None else size.value,
        "pretraining_unit": None if size is None else size.unit,
        "pretraining_source": None if size is None else size.source,
        "subset": value.subset,
        "value": value.estimate.value,
        "se": interval.se,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "ci_method": interval.method,
        "n": value.items,
        "clusters": interval.groups,
        "seed_sd": value.estimate.seed_sd,
        "seeds": list(seeds),
        "flagged": value.flagged,
        "unfair": value.unfair or None,
    }


def _correlation_row(own: Correlation) -> dict[str, Any]:
    return {
        "quantity": f"rank_correlation_{own.quantity}",
        "translator": own.translator or None,
        "language": None,
        "languages": list(own.languages),
        "value": own.rho,
        "ci_low": own.low,
        "ci_high": own.high,
        "ci_method": "Bonett and Wright, over languages",
        "p": own.p,
        "item_ci_low": own.item_low,
        "item_ci_high": own.item_high,
    }
