"""`evaluate`: what ``harness eval`` does, as a Python function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UnknownNameError
from harness.planning.plan import RunConfig
from harness.progress import Progress, SilentProgress
from harness.running.launch import join_processes
from harness.running.run import execute
from harness.running.session import (
    check_output_folder,
    data_options,
    open_session,
    prepare_together,
)
from harness.storage.run_folder import Run

__all__ = ["evaluate"]

SEVERAL = ("protocols", "train_languages", "translators", "variants")
"""Settings of `evaluate` that hold several names; one name may be given as a text."""


def evaluate(
    tasks: str | Sequence[str],
    model: str,
    *,
    options: Mapping[str, Any] | None = None,
    languages: Sequence[str] | None = None,
    data: str | Path | Sequence[str | Path] = "hub",
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Evaluate a model and return the finished run; does what ``harness eval`` does.

    Args:
        tasks: Names of tasks or suites, globs, or ``xnli:sw+hi``.
        model: ``ADAPTER:NAME_OR_PATH``, such as ``hf:xlm-roberta-base`` or ``baseline:char-ngram``.
        options: Options of the adapter.
        languages: Codes to restrict all tasks to.
        data: ``hub``, ``sample``, or folders that hold the published files.
        progress: Shows the progress of the run; nothing is shown by default.
        settings: Further fields of `harness.planning.planner.RunConfig`: ``limit=100``, ``seeds=(1, 2)``, ...

    Raises:
        UsageError: For unknown names and for a plan without cells. A failed cell does not raise: it
            is in the run's cells with its reason.
    """
    places = [data] if isinstance(data, str | Path) else list(data)
    for name in settings:
        if name not in RunConfig.__slots__:
            raise UnknownNameError("setting of evaluate", name, RunConfig.__slots__)
    for name in ("output", "gold"):
        if settings.get(name) is not None:
            settings[name] = Path(settings[name])
    settings |= {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
    settings |= {name: (settings[name],) for name in SEVERAL if isinstance(settings.get(name), str)}
    config = RunConfig(
        tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks),
        model=model,
        options={key: str(value) for key, value in (options or {}).items()},
        languages=None if languages is None else tuple(languages),
        data=data_options(places),
        **settings,
    )
    check_output_folder(config)
    session = open_session(config.tasks_from, allow_code=config.allow_code)
    processes = join_processes(
        session.registry, wanted=config.num_processes, cpu=config.options.get("device") == "cpu"
    )
    prepared = prepare_together(config, session, processes)
    return Run(execute(config, prepared, progress or SilentProgress(), processes=processes))
