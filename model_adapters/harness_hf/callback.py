"""`EvaluateLanguages`: scores of languages in the logs of a training, with what is more than noise."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import transformers
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled

from harness import HarnessError, Progress, Run, UsageError
from harness.analysis import compare_group, group_systems
from harness.planning import Plan, RunConfig, require_cells
from harness.running import Prepared, execute, open_session, prepare
from harness_hf.loaded_model import WATCH, LoadedEntry, bare_network, describe_loaded, kept_state

FOLDER = "_evaluations"
"""Within the training's output; names with this first character are not pushed to the Hub."""
OF_THE_CALLBACK = (
    "fits_only",
    "log",
    "model",
    "name",
    "num_processes",
    "shard",
    "tokenizer",
    "with_baselines",
)
"""Settings of a run that have no meaning here."""


class EvaluateLanguages(transformers.TrainerCallback):
    """Evaluates the model that a `Trainer` trains, every so many steps, and logs the scores by language.

    ``trainer.add_callback(EvaluateLanguages(trainer, tasks="xnli", languages=["sw", "hi"], every=500))``

    The network is asked where it is, frozen or prompted; nothing is fitted, and the training continues as without it.
    All loggers get ``eval/TASK/LANGUAGE`` (in `log_history` ``eval_TASK/LANGUAGE``), a fraction of the task's first
    headline metric, the same with ``mean``, and after the first evaluation ``..._change``, ``..._change_low`` and
    ``..._change_high``: the paired difference from the evaluation before on the same items, and its 95 % interval.
    Every evaluation is a run folder, for ``harness report`` and ``harness compare --history``.
    """

    def __init__(
        self,
        trainer: transformers.Trainer,
        tasks: str | Sequence[str],
        *,
        languages: str | Sequence[str] | None = None,
        every: int = 500,
        limit: int | None = 100,
        at_start: bool = True,
        output: str | Path | None = None,
        tokenizer: Any = None,
        raise_errors: bool = False,
        **settings: Any,
    ) -> None:
        """Keep what to evaluate; data are looked for when the training begins.

        Args:
            trainer: Whose model is evaluated, and whose loggers get the scores.
            tasks: As `harness.evaluate` takes them.
            languages: Codes; None takes all of the tasks.
            every: Optimizer steps between two evaluations; the last step is evaluated too.
            limit: Items a cell, drawn by a seed that is the same at all steps; None takes all.
            at_start: Whether the model is evaluated before its first step.
            output: The folder for the run folders; by default ``_evaluations`` in the training's output.
            tokenizer: By default the trainer's.
            raise_errors: Whether a failed evaluation ends the training; by default it warns.
            settings: Further settings of `harness.evaluate`: ``data``, ``protocols``, ``prompt``, ``options`` ...

        Raises:
            UsageError: For settings that do not exist or have no meaning here.
        """
        rejected = [name for name in OF_THE_CALLBACK if name in settings]
        if rejected:
            raise UsageError(f"EvaluateLanguages has no setting {rejected[0]!r}.")
        if every < 1:
            raise UsageError(f"every must be at least 1, got {every}.")
        values = {**settings, "tasks": tasks, "languages": languages, "limit": limit, "model": "hf:in-memory"}
        self.config = RunConfig.read(
            {name: value for name, value in values.items() if value is not None}, "EvaluateLanguages"
        )
        self.trainer = trainer
        self.every = every
        self.at_start = at_start
        self.output = Path(output or Path(str(trainer.args.output_dir)) / FOLDER)
        self.raise_errors = raise_errors
        self.previous: Run | None = None
        """The last evaluation that was finished."""
        self._tokenizer = tokenizer or trainer.processing_class
        self._training = token_hex(8)
        self._prepared: Prepared | None = None
        self._files = Path(mkdtemp(prefix="harness-"))
        weakref.finalize(self, rmtree, self._files, ignore_errors=True)

    # Events of the trainer ----------------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Plan the evaluation, and evaluate the model as it is; only the main process does either.

        Raises `HarnessError` for what no evaluation could do, before the training's first step.
        """
        if not state.is_world_process_zero:
            return
        is_divided = is_deepspeed_zero3_enabled()  # type: ignore[no-untyped-call]
        if is_divided or self.trainer.is_fsdp_enabled:
            raise UsageError(
                "The weights of the model are divided over processes, so none of them can evaluate it.",
                hint=WATCH,
            )
        with kept_state(objects["model"]):
            self._prepared = self._plan(objects["model"])
        if self.at_start:
            self._evaluate(objects["model"], state.global_step, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Evaluate the model every so many steps and after the last one."""
        is_due = state.global_step % self.every == 0 or state.global_step >= state.max_steps
        if is_due and self._prepared is not None:
            self._evaluate(objects["model"], state.global_step, control)

    # An evaluation ------------------------------------------------------------------------------------

    def _plan(self, network: Any) -> Prepared:
        if self._tokenizer is None:
            raise UsageError(
                "EvaluateLanguages needs the tokenizer of the model.",
                hint="Give it to the Trainer as processing_class, or here as tokenizer.",
            )
        session = open_session(self.config.tasks_from, allow_code=self.config.allow_code)
        model = describe_loaded(bare_network(network), self._tokenizer, self._files, self.config.options)
        prepared = prepare(self.config, session, model=model)
        require_cells(prepared.plan)
        _require_one_cell(prepared.plan)
        for skip in prepared.plan.skipped:
            self._warn(f"{skip.task} {skip.language} is not evaluated: {skip.reason}")
        return prepared

    def _evaluate(self, network: Any, step: int, control: Any) -> None:
        """Evaluate the network and log its scores; an error is a warning unless errors are raised."""
        started = time.monotonic()
        try:
            with kept_state(network):
                run = self._run(step)
                logs = {**_scores(run), **self._changes(run)}
        except Exception as error:  # noqa: BLE001, RUF100
            if self.raise_errors:
                raise
            self._warn(f"The evaluation at step {step} failed: {_sentence(error)}")
            return
        self.previous = run
        logs["eval_languages/seconds"] = round(time.monotonic() - started, 3)
        # `log` counts as the log of the step, whose own is still to come.
        should_log = control.should_log
        self.trainer.log(logs)
        control.should_log = should_log

    def _run(self, step: int) -> Run:
        """Return the finished run of this step; raises `HarnessError` where none of its cells has a score."""
        assert self._prepared is not None
        plan, name = self._prepared.plan, f"step {step}"
        assert isinstance(plan.model.entry, LoadedEntry)
        entry = plan.model.entry.at(f"training {self._training}, {name}")
        plan = replace(plan, model=replace(plan.model, entry=entry, chosen_name=name))
        folder = execute(
            replace(self.config, name=name, output=self._new_folder(step)),
            replace(self._prepared, plan=plan),
            Progress(),
        )
        run = Run(folder)
        for cell in run.cells:
            if cell.status == "failed":
                message = f"{cell.task} {cell.language} failed at step {step}: {cell.reason}"
                if self.raise_errors:
                    raise HarnessError(message)
                self._warn(message)
        return run

    def _new_folder(self, step: int) -> Path:
        """Return the folder of a step; a training that is resumed may come to a step again."""
        folder, number = self.output / f"step-{step:06}", 2
        while folder.exists():
            folder, number = self.output / f"step-{step:06}-{number}", number + 1
        return folder

    def _changes(self, run: Run) -> dict[str, float]:
        """Return the paired differences from the previous evaluation, with their intervals where there are any."""
        if self.previous is None or not any(cell.is_scored for cell in run.cells):
            return {}
        assert self._prepared is not None
        logs: dict[str, float] = {}
        for group in group_systems([run, self.previous], least=1):
            if len(group.systems) < 2:
                continue
            metric = run.manifest.tasks[group.task].headline[0]
            compared = compare_group(group, self._prepared.session.registry.metrics, metric=metric)
            if compared is None or not compared.items:
                continue
            rows = [(language.language, language.scores[0]) for language in compared.languages]
            for place, scores in [*rows, ("mean", compared.scores[0])]:
                difference, key = scores.differences[1], f"eval_{group.task}/{place}_change"
                if difference is None:
                    continue
                logs[key] = difference.value
                if difference.low is not None and difference.high is not None:
                    logs |= {f"{key}_low": difference.low, f"{key}_high": difference.high}
        return logs

    def _warn(self, message: str) -> None:
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _scores(run: Run) -> dict[str, float]:
    """Return the scores of the cells that have some, and their means over languages, as a logger's entries."""
    logs: dict[str, float] = {}
    for cell in run.cells:
        if cell.is_scored:
            metric = run.manifest.tasks[cell.task].headline[0]
            logs[f"eval_{cell.task}/{cell.language}"] = cell.metrics[metric].value
    for row in run.results.tasks:
        if row.metric == run.manifest.tasks[row.task].headline[0]:
            logs[f"eval_{row.task}/mean"] = row.value
    return logs


def _require_one_cell(plan: Plan) -> None:
    """Raise `UsageError` where a task has several cells in a language: their scores would have one name."""
    ways: dict[str, list[str]] = {}
    for cell in plan.cells:
        conditions = [
            cell.pairing.protocol,
            cell.pairing.method.name,
            *cell.view.values(),
            f"seed {cell.seed}",
        ]
        ways.setdefault(cell.title, []).append(", ".join(conditions))
    for title, conditions in ways.items():
        if len(conditions) > 1:
            raise UsageError(
                f"{title} would be evaluated in {len(conditions)} ways: {'; '.join(conditions)}.",
                hint="Choose one with protocols, method, prompt, variants or seeds.",
            )


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
