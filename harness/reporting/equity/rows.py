"""The equity report as rows of plain values, for ``--json`` and CSV, and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from harness.reporting.equity.report import EquityReport, EquityRow, EquityTable, equity_report
from harness.reporting.equity.table import (
    ANSWER_HEADS,
    HEADS,
    LEGEND,
    PROMPT_HEADS,
    FieldRow,
    answer_rows,
    cost_rows,
    prompt_rows,
    table_notes,
)
from harness.reporting.rows import inert
from harness.running.answer_language import LANGUAGE_GROUPS, SCRIPT_GROUPS
from harness.storage.run_folder import Run

__all__ = ["equity_csv", "equity_lines", "equity_rows"]


def equity_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for every language of every table, the tables over all tasks first (their task is empty)."""
    report = equity_report(runs)
    return [_row(table, row) for table in (*report.overall, *report.tables) for row in table.rows]


def _row(table: EquityTable, row: EquityRow) -> dict[str, Any]:
    cost, premium = row.cost, row.premium
    answers = row.answers or {}
    languages, scripts = answers.get("languages") or {}, answers.get("scripts") or {}
    return {
        "model": table.system,
        "task": table.task,
        "protocol": table.protocol,
        "method": table.method,
        "view": table.view,
        "language": row.code,
        "script": row.script,
        "seeds": row.seeds,
        "items": cost.items,
        "words": cost.words,
        "words_that_are_letters": cost.unspaced,
        "characters": cost.characters,
        "bytes": cost.bytes,
        "tokens": cost.tokens,
        "unknown": cost.unknown,
        "truncated": cost.truncated if cost.truncated_of else None,
        "seconds": round(cost.seconds, 3),
        "seconds_of_all_items": cost.is_timed,
        "prompt_tokens": cost.prompts,
        "generated_tokens": cost.generated,
        "fertility": cost.fertility,
        "tokens_per_character": cost.tokens_per_character,
        "bytes_per_token": cost.bytes_per_token,
        "unknown_share": cost.unknown_share,
        "truncated_share": cost.truncated_share,
        "tokens_per_second": cost.tokens_per_second if cost.is_timed else None,
        "premium": premium.tokens,
        "premium_low": premium.low,
        "premium_high": premium.high,
        "premium_items": premium.items,
        "premium_bytes": premium.bytes,
        "premium_seconds": premium.seconds,
        "premium_reason": premium.reason,
        "score": row.score,
        "answers": answers.get("answers"),
        "answers_detector": answers.get("detector"),
        **{f"answers_{group}": languages.get(group) for group in LANGUAGE_GROUPS},
        **{f"answers_script_{group}": scripts.get(group) for group in SCRIPT_GROUPS},
    }


def equity_csv(runs: Sequence[Run]) -> str:
    """Return the rows as CSV with a header; a field that a spreadsheet would run as a formula gets a quote."""
    rows = equity_rows(runs)
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: inert(value) for name, value in row.items()})
    return out.getvalue()


def equity_lines(report: EquityReport) -> list[str]:
    """Return the report as the lines of a Markdown section; none where nothing was counted."""
    if not report:
        return []
    lines = ["", "## What the languages cost"]
    for overall in report.overall:
        own = [table for table in report.tables if table.system == overall.system]
        for table in [*([overall] if len(own) > 1 else []), *own]:
            lines += ["", f"### {_escape(f'{table.system}: {table.title}')}"]
            lines += _table(HEADS, cost_rows(table))
            if prompts := prompt_rows(table):
                lines += _table(PROMPT_HEADS, prompts)
            if answers := answer_rows(table):
                lines += _table(ANSWER_HEADS, answers)
            lines += ["", *(f"- {_escape(note)}" for note in table_notes(table))]
    return [*lines, "", *(f"- {_escape(note)}" for note in (*LEGEND, *report.notes))]


def _table(heads: Sequence[str], rows: Iterable[FieldRow]) -> list[str]:
    lines = ["", "| language | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for row in rows:
        label = f"**{_escape(row.label)}**" if row.is_sum else _escape(row.label)
        lines.append(f"| {label} | " + " | ".join(row.fields) + " |")
    return lines


def _escape(text: str) -> str:
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")
