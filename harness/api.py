"""`evaluate`: what ``harness eval`` does, as a Python function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from inspect import Parameter, Signature, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, Unpack, get_type_hints

from harness.errors import UsageError
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, RunSettings, settings
from harness.progress import Progress
from harness.running.processes import join_processes, launched
from harness.running.run import execute
from harness.running.session import Session, check_output_folder, open_session, prepare_together
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.reporting.overview.overview import LoadedRun


class SavesPretrained(Protocol):
    """A loaded model or tokenizer of transformers."""

    def save_pretrained(self, save_directory: Path) -> object:
        """Write it into a folder."""


def evaluate(
    tasks: str | Sequence[str],
    model: str | SavesPretrained,
    *,
    tokenizer: SavesPretrained | None = None,
    progress: Progress | None = None,
    **settings: Unpack[RunSettings],
) -> LoadedRun:
    """Evaluate a model and return the finished run, as `load` does; does what ``harness eval`` does.

    Args:
        tasks: Names of tasks or suites, globs, or ``xnli:sw+hi``.
        model: ``ADAPTER:NAME_OR_PATH``, such as ``hf:xlm-roberta-base`` or ``baseline:char-ngram``; or a loaded model
            of transformers. That is saved into a temporary folder and opened from there: another copy on the disk and
            in memory while the run lasts.
        tokenizer: Of a loaded model.
        progress: Shows the progress of the run. By default a notebook and a terminal show it, and nothing else does;
            ``Progress()`` shows nothing.
        settings: Further fields of `harness.planning.run_config.RunConfig`: ``data="sample"``, ``limit=100``,
            ``seeds=(1, 2)``, ``options={"device": "cpu"}``, ...

    Raises:
        UsageError: For unknown names, values of the wrong type, a loaded model without its tokenizer or in several
            processes, and a plan without cells. A failed cell does not raise: it is in the run's cells with its reason.
    """
    with ExitStack() as stack:
        name = _model_name(model, tokenizer, stack)
        values = {"tasks": tasks, "model": name, **settings}
        config = RunConfig.read(
            {key: value for key, value in values.items() if value is not None}, "evaluate"
        )
        check_output_folder(config)
        session = open_session(config.tasks_from, allow_code=config.allow_code)

        def show(_: Plan) -> Progress:
            from harness.cli.live import show_in_program

            return stack.enter_context(show_in_program()) if progress is None else progress

        folder, _ = run(config, session, show)
    return load(folder)


def _signature() -> Signature:
    """Return the signature of `evaluate` with all settings, for the completion and the help of notebooks."""
    hints = get_type_hints(RunSettings)
    parameters = [
        item for item in signature(evaluate).parameters.values() if item.kind is not Parameter.VAR_KEYWORD
    ]
    further = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=setting.default, annotation=hints[name])
        for name, setting in settings().items()
        if name in hints
    ]
    return Signature([*parameters, *further], return_annotation="LoadedRun")


evaluate.__signature__ = _signature()  # type: ignore[attr-defined]


def _model_name(model: str | SavesPretrained, tokenizer: SavesPretrained | None, stack: ExitStack) -> str:
    """Return the name of a model; a loaded one is saved into a folder that is removed when `stack` is closed."""
    if isinstance(model, str):
        if tokenizer is not None:
            raise UsageError(f"A tokenizer goes with a loaded model; {model!r} brings its own.")
        return model
    kind = type(model).__name__
    if not callable(getattr(model, "save_pretrained", None)):
        raise UsageError(
            f"The model must be a text such as 'hf:FOLDER' or a loaded model of transformers, not an object of the "
            f"class {kind!r}."
        )
    if tokenizer is None or not callable(getattr(tokenizer, "save_pretrained", None)):
        raise UsageError(
            f"The loaded model of the class {kind!r} needs its tokenizer.", hint="Add tokenizer=TOKENIZER."
        )
    if launched():
        raise UsageError(
            "A loaded model is evaluated in one process only.",
            hint="Save the model and its tokenizer with save_pretrained(FOLDER), then pass 'hf:FOLDER'.",
        )
    base = (
        re.sub(r"[^A-Za-z0-9._-]+", "-", Path(str(getattr(model, "name_or_path", ""))).name).strip("-.")
        or kind
    )
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="harness-"))) / f"{base}-loaded"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return f"hf:{folder}"


def load(path: str | Path) -> LoadedRun:
    """Return the run of a folder; a notebook shows it as a table, and ``run.plot`` has its charts.

    Raises:
        UsageError: Where there is no run, or it has no results yet.
        DataError: For a damaged run.
    """
    from harness.reporting.overview.overview import LoadedRun

    return LoadedRun(path)


def compare_runs(runs: Sequence[Run], **settings: Any) -> Comparison:
    """Return the comparison of ``harness compare``; see `harness.analysis.comparison.compare`."""
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
    num_processes, cpu = config.num_processes, config.options.get("device") == "cpu"
    processes = join_processes(session.registry, wanted=num_processes, cpu=cpu)
    try:
        prepared = prepare_together(config, session, processes)
        progress = show(prepared.plan) if processes.is_main else Progress()
        return execute(config, prepared, progress, processes=processes, resume=resume), processes.is_main
    finally:
        processes.close()
