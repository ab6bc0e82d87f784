"""``--errata DIR`` of ``harness eval`` and ``harness score``: both scores of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import extends

Folder = Annotated[
    Path | None,
    typer.Option(
        "--errata",
        metavar="DIR",
        help="Show the scores as published and with the corrections of this folder; 'shipped' has the harness's.",
    ),
]


def in_eval(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``harness eval`` the option: the run is made as without it, then scored twice."""

    @extends(command)
    def evaluate(errata: Folder = None, **given: Any) -> Any:
        if errata is None:
            return command(**given)
        from harness.cli import echo
        from harness_errata import FINISHED
        from harness_errata.command import show_both
        from harness_errata.document import read_errata

        read = read_errata(errata)  # before the model is opened
        FINISHED.clear()
        status = command(**given)
        if FINISHED:  # elsewhere this process started others, of which one shows it
            echo("")
            show_both(FINISHED[-1:], read, allow_code=bool(given.get("allow_code")))
        return status

    return evaluate


def in_score(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``harness score`` the option: RUN stays as it is, and ``--output`` keeps the corrected run."""

    @extends(command)
    def score(errata: Folder = None, **given: Any) -> Any:
        if errata is None:
            return command(**given)
        from harness import UsageError
        from harness.cli import check_output_file
        from harness_errata.command import show_both
        from harness_errata.document import read_errata

        for name in ("gold", "metrics", "timeout"):
            if given[name] is not None:
                raise UsageError(
                    f"--errata and --{name} cannot be given together.",
                    hint="Keep the corrected run with --output, and score that one.",
                )
        check_output_file(given["json_file"], ".json")
        show_both(
            [given["folder"]],
            read_errata(errata),
            given["output"],
            given["json_file"],
            allow_code=given["allow_code"],
        )
        return 0

    return score
