"""``harness checklist``: behavioural tests on the command line."""

from __future__ import annotations

import typer

from harness_checklist.command_generate import generate

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Behavioural tests from templates.")


@app.callback()
def checklist() -> None:
    """Behavioural tests of question answering from templates, in many languages."""


app.command("generate")(generate)
