"""The board: systems side by side on every task and language, as pages without a server.

``harness board`` writes them; as a plugin this package adds the report format ``board``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Run
    from harness.registry import ReportFormat


@hookimpl
def harness_register_reports() -> list[ReportFormat]:
    """Return the board as a report format, so that ``harness report --format board`` writes one."""
    from harness.registry import ReportFormat

    return [ReportFormat(name="board", suffix=".html", render=_render, summary="one interactive page")]


def _render(runs: Sequence[Run]) -> str:
    from harness import open_session
    from harness_board.gathering import gather
    from harness_board.rendering import board_page

    return board_page(gather(runs=runs, catalog=open_session().catalog))
