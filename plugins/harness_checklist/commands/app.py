"""``harness checklist``: behavioural tests on the command line."""

from __future__ import annotations

import typer

from harness_checklist.commands.failures import failures
from harness_checklist.commands.generate import generate
from harness_checklist.commands.import_ import import_
from harness_checklist.commands.lint import lint
from harness_checklist.commands.score import score
from harness_checklist.commands.sheet import sheet

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Behavioural tests from templates.")


@app.callback()
def checklist() -> None:
    """Behavioural tests of question answering from templates, in many languages."""


app.command("generate")(generate)
app.command("failures")(failures)
app.command("import")(import_)
app.command("lint")(lint)
app.command("score")(score)
app.command("sheet")(sheet)
