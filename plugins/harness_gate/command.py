"""Decide in CI whether a run is no worse than an earlier one: GO or NO-GO."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def gate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of the new model.")],
    against: Annotated[
        Path, typer.Option("--against", metavar="BASE", help="The run that it is compared with.")
    ],
    policy_file: Annotated[
        Path | None, typer.Option("--policy", help="A YAML file; without one a drop of 2 points is accepted.")
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Print all tests.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML to this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Also write a job summary in Markdown to this file.")
    ] = None,
) -> None:
    """Decide whether a run is no worse than an earlier one: exit status 0 GO, 1 NO-GO, 3 INCONCLUSIVE, 4 unreadable.

    Example: harness gate runs/new --against runs/released --policy gate.yaml
    """
    # Imported here so that help stays fast.
    from harness import HarnessError, Run, open_session
    from harness.cli import (
        check_output_file,
        print_report,
        printable,
        reporting_broken_plugins,
        write_file,
        write_rows,
    )
    from harness.reporting import render_markdown
    from harness_gate.report import decision_blocks, decision_rows, junit_text
    from harness_gate.verdict import EXIT, UNREADABLE, decide, read_policy

    check_output_file(junit, ".xml", ".junit")
    check_output_file(markdown, ".md", ".markdown")
    policy = read_policy(policy_file)
    try:
        new, base = Run(folder), Run(against)
        registry = open_session().registry
        with reporting_broken_plugins(registry.plugins):
            decision = decide(new, base, registry.metrics, policy)
    except HarnessError as error:
        error.exit_code = UNREADABLE if error.exit_code == EXIT["NO-GO"] else error.exit_code
        raise
    write_rows(json_file, decision_rows(decision))
    if junit is not None:
        write_file(junit, junit_text(decision))
    if markdown is not None:
        write_file(markdown, printable(render_markdown(decision_blocks(decision, details=True))))
    print_report(decision_blocks(decision, details=details))
    raise typer.Exit(decision.exit_code)
