"""The formats that can be of the equity report alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from harness.errors import UsageError
from harness.reporting.equity.console import WIDTH, render_equity
from harness.reporting.equity.report import equity_report
from harness.reporting.equity.rows import equity_csv, equity_lines, equity_rows
from harness.storage.run_folder import Run

__all__ = ["equity_format"]

Render = Callable[[Sequence[Run]], str]


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


def _text(runs: Sequence[Run]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, legacy_windows=False, emoji=False)
    console.print(render_equity(equity_report(runs), width=console.width))
    return out.getvalue()


def _json(runs: Sequence[Run]) -> str:
    return json.dumps(equity_rows(runs), ensure_ascii=False, indent=1) + "\n"


def _markdown(runs: Sequence[Run]) -> str:
    return "\n".join(equity_lines(equity_report(runs))).lstrip() + "\n"


_FORMATS: Mapping[str, Render] = {"console": _text, "csv": equity_csv, "json": _json, "markdown": _markdown}
