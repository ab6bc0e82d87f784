"""`evaluate`: what ``harness eval`` does, as a Python function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from harness.errors import UnknownNameError, UsageError
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
from harness.specs.selection import split_names
from harness.storage.run_folder import Run

__all__ = ["evaluate"]


def evaluate(
    tasks: str | Sequence[str],
    model: str,
    *,
    options: Mapping[str, Any] | None = None,
    languages: str | Sequence[str] | None = None,
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
        UsageError: For unknown names, values of the wrong type, and a plan without cells. A failed cell does not
            raise: it is in the run's cells with its reason.
    """
    config = _config(tasks, model, options, languages, data, settings)
    check_output_folder(config)
    session = open_session(config.tasks_from, allow_code=config.allow_code)
    processes = join_processes(
        session.registry, wanted=config.num_processes, cpu=config.options.get("device") == "cpu"
    )
    prepared = prepare_together(config, session, processes)
    return Run(execute(config, prepared, progress or SilentProgress(), processes=processes))


def _config(
    tasks: str | Sequence[str],
    model: str,
    options: Mapping[str, Any] | None,
    languages: str | Sequence[str] | None,
    data: str | Path | Sequence[str | Path],
    settings: Mapping[str, Any],
) -> RunConfig:
    """Return the configuration of a call; names may be one text with commas, as on the command line."""
    from pydantic import TypeAdapter, ValidationError

    if not isinstance(model, str):
        raise UsageError(
            f"The model must be a text such as 'hf:FOLDER', not an object of the class {type(model).__name__!r}.",
            hint="Save the model and its tokenizer with save_pretrained(FOLDER), then pass 'hf:FOLDER'.",
        )
    known = {one.name for one in fields(RunConfig)}
    for name in settings:
        if name not in known:
            raise UnknownNameError("setting of evaluate", name, known)
    if options is not None and not isinstance(options, Mapping):
        raise UsageError(f"The options must be a mapping such as {{'device': 'cpu'}}, not {options!r}.")
    places = [data] if isinstance(data, str | Path) else list(data)
    values = {"tasks": tasks, **({} if languages is None else {"languages": languages}), **settings}
    several = {one.name for one in fields(RunConfig) if str(one.type).startswith("tuple[")}
    for name in several & set(values):
        value = values[name]
        if isinstance(value, str):
            values[name] = split_names([value])
        elif isinstance(value, int | Path):
            values[name] = [value]
    values |= {
        "model": model,
        "options": {key: str(value) for key, value in (options or {}).items()},
        "data": data_options(places),
    }
    try:
        return TypeAdapter(RunConfig).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"The setting {str(first['loc'][0])!r} of evaluate cannot be {first['input']!r}: {first['msg']}."
        ) from error
