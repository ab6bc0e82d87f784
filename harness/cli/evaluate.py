"""``harness eval``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.output import reporting_broken_plugins
from harness.errors import StoppedError
from harness.planning.run_config import OUTPUT, settings

if TYPE_CHECKING:
    from harness.planning.plan import Plan
    from harness.planning.run_config import RunConfig
    from harness.progress import Progress

app = typer.Typer(add_completion=False)


@app.command()
@o.takes_settings(*settings())
def evaluate(
    batch_tokens: o.BatchTokens = None,
    convert_weights: o.ConvertWeights = False,
    resume: o.Resume = None,
    config: o.ConfigFile = None,
    json_file: o.JsonFile = None,
    details: o.Details = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="Print every cell and note while the run works.", rich_help_panel=OUTPUT
        ),
    ] = False,
    **given: Any,
) -> int:
    """Evaluate a model on tasks: fine-tune or prompt it, score every language, print a summary.

    Example: harness eval --tasks xnli,xquad --model hf:xlm-roberta-base --data hub
    """
    options = {**given, "batch_tokens": batch_tokens, "convert_weights": convert_weights}
    run_config = (
        o.make_config(options, config) if resume is None else o.resumed_config(options, config, resume)
    )
    return _run(run_config, json_file, resume=resume is not None, verbose=verbose, details=details)


def _run(config: RunConfig, json_file: Path | None, *, resume: bool, verbose: bool, details: bool) -> int:
    from harness.api import run
    from harness.cli.display import show_fits, show_plan, show_run
    from harness.cli.fetch import print_downloads
    from harness.cli.live import show_progress, show_steps
    from harness.running.processes import Interrupted, needs_start, start_processes
    from harness.running.session import check_output_folder, open_session, prepare

    if not resume:
        check_output_folder(config)
    session = open_session(config.tasks_from, allow_code=config.allow_code)
    with ExitStack() as warnings, ExitStack() as progress:
        warnings.enter_context(reporting_broken_plugins(session.registry.plugins, session.catalog))
        warnings.enter_context(show_steps())
        print_downloads(config, session)
        if needs_start(session.registry, config.num_processes, config.options):
            prepare(config, session)  # errors are reported once, before processes are started
            return start_processes(session.registry, sys.argv[1:], config.num_processes, config.options)

        def show(plan: Plan) -> Progress:
            warnings.close()
            show_plan(plan, brief=True)
            return progress.enter_context(show_progress(verbose=verbose))

        try:
            folder, is_main = run(config, session, show, resume=resume)
        except Interrupted as error:
            raise StoppedError(error.message) from error
    if not is_main:
        return 0
    return show_fits(folder) if config.fits_only else show_run(folder, json_file, details=details)
