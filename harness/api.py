"""`evaluate`: what ``harness eval`` does, as a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig
from harness.progress import Progress
from harness.running.launch import join_processes
from harness.running.run import execute
from harness.running.session import Session, check_output_folder, open_session, prepare_together
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.reporting.notebook import LoadedRun

__all__ = ["compare_runs", "evaluate", "load", "run"]


def evaluate(
    tasks: str | Sequence[str],
    model: str,
    *,
    options: Mapping[str, Any] | None = None,
    languages: str | Sequence[str] | None = None,
    data: str | Path | Sequence[str | Path] = "hub",
    progress: Progress | None = None,
    **settings: Any,
) -> LoadedRun:
    """Evaluate a model and return the finished run, as `load` does; does what ``harness eval`` does.

    Args:
        tasks: Names of tasks or suites, globs, or ``xnli:sw+hi``.
        model: ``ADAPTER:NAME_OR_PATH``, such as ``hf:xlm-roberta-base`` or ``baseline:char-ngram``.
        options: Options of the adapter.
        languages: Codes to restrict all tasks to.
        data: ``hub``, ``sample``, or folders that hold the published files.
        progress: Shows the progress of the run; nothing is shown by default.
        settings: Further fields of `harness.planning.run_config.RunConfig`: ``limit=100``, ``seeds=(1, 2)``, ...

    Raises:
        UsageError: For unknown names, values of the wrong type, and a plan without cells. A failed cell does not
            raise: it is in the run's cells with its reason.
    """
    if not isinstance(model, str):
        raise UsageError(
            f"The model must be a text such as 'hf:FOLDER', not an object of the class {type(model).__name__!r}.",
            hint="Save the model and its tokenizer with save_pretrained(FOLDER), then pass 'hf:FOLDER'.",
        )
    given = {"tasks": tasks, "model": model, "languages": languages, "data": data, **settings}
    config = RunConfig.read(given | ({} if options is None else {"options": options}), "evaluate")
    check_output_folder(config)
    session = open_session(config.tasks_from, allow_code=config.allow_code)
    folder, _ = run(config, session, lambda _: progress or Progress())
    return load(folder)


def load(path: str | Path) -> LoadedRun:
    """Return the run of a folder; a notebook shows it as a table, and ``run.plot`` has its charts.

    Raises:
        UsageError: Where there is no run, or it has no results yet.
        DataError: For a damaged run.
    """
    from harness.reporting.notebook import LoadedRun

    return LoadedRun(path)


def compare_runs(runs: Sequence[Run], **settings: Any) -> Comparison:
    """Return what ``harness compare`` computes; see `harness.analysis.comparison.compare`."""
    from harness.analysis.comparison import compare

    return compare(runs, open_session().registry.metrics, **settings)


def run(
    config: RunConfig, session: Session, show: Callable[[Plan], Progress], *, resume: bool = False
) -> tuple[Path, bool]:
    """Run a configuration, in this process and those that a launcher started with it.

    Args:
        config: What was asked for.
        session: The plugins and specs.
        show: Shows the plan before it is run, in the main process, and returns where progress is shown.
        resume: Whether ``config.output`` is a run that is resumed.

    Returns:
        The run folder, and whether this is the main process.
    """
    wanted, cpu = config.num_processes, config.options.get("device") == "cpu"
    processes = join_processes(session.registry, wanted=wanted, cpu=cpu)
    try:
        prepared = prepare_together(config, session, processes)
        progress = show(prepared.plan) if processes.is_main else Progress()
        return execute(config, prepared, progress, processes=processes, resume=resume), processes.is_main
    finally:
        processes.close()
