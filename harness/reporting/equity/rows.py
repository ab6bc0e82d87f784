"""The equity report as rows of plain values, for ``--json`` and CSV, and in the formats that can be of it alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.reporting.console import print_blocks
from harness.reporting.equity.report import EquityRow, EquityTable, equity_report
from harness.reporting.equity.table import equity_blocks
from harness.reporting.markdown import render_markdown
from harness.reporting.rows import csv_text
from harness.running.answer_language import LANGUAGE_GROUPS, SCRIPT_GROUPS
from harness.storage.run_folder import Run

__all__ = ["equity_csv", "equity_format", "equity_rows"]


def equity_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for every language of every table, the tables over all tasks first (their task is empty)."""
    report = equity_report(runs)
    return [_row(table, row) for table in (*report.overall, *report.tables) for row in table.rows]


def _row(table: EquityTable, row: EquityRow) -> dict[str, Any]:
    cost, premium = row.cost, row.premium
    answers, reasoning = row.answers or {}, row.reasoning or {}
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
        "reasoning_tokens": cost.reasoned,
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
        "reasoning": reasoning.get("answers"),
        **{f"reasoning_{group}": (reasoning.get("languages") or {}).get(group) for group in LANGUAGE_GROUPS},
    }


def equity_csv(runs: Sequence[Run]) -> str:
    """Return the rows as CSV with a header; a field that a spreadsheet would run as a formula gets a quote."""
    return csv_text(equity_rows(runs))


Render = Callable[[Sequence[Run]], str]
_FORMATS: Mapping[str, Render] = {
    "console": lambda runs: print_blocks(equity_blocks(equity_report(runs))),
    "csv": equity_csv,
    "json": lambda runs: json.dumps(equity_rows(runs), ensure_ascii=False, indent=1) + "\n",
    "markdown": lambda runs: render_markdown(equity_blocks(equity_report(runs))).lstrip(),
}


def equity_format(name: str, whole: Render) -> Render:
    """Return what writes the equity report as `name`; raises `UsageError` for formats that do not have it.

    Args:
        name: The format.
        whole: What writes the whole report in it.
    """
    if name == "html":
        return whole
    if name not in _FORMATS:
        raise UsageError(
            f"--equity cannot be written as {name!r}; expected {', '.join(_FORMATS)} or html, which has all sections."
        )
    return _FORMATS[name]
