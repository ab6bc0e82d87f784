"""The steps of a run, from its plans to the results on disk.

`execute` opens the run folder and runs the plan of the model and those of its baselines. For every group of cells that
share a model it calls `fit`, then for every cell `predict` and `score` (in `cell_run`), and at the end `summarise`. All
processes of a run walk through the same cells; each asks the model its share, and the main one scores and writes.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.data.checksums import Checksums
from harness.data.translation.guards import translation_notes
from harness.errors import HarnessError, StorageError
from harness.models.adapters import gc_rare
from harness.models.capabilities import Adapter
from harness.models.requests import HasNotices
from harness.planning.lock_file import locked_model
from harness.planning.plan import Cell, FitPlan, Plan, require_cells
from harness.planning.run_config import RunConfig
from harness.planning.sampling import can_be_sampled
from harness.planning.shared_rows import FoundTest, copied_files_notes
from harness.progress import Progress
from harness.registry.requirement import installed_version
from harness.running.cell_reader import CellContexts, CellReader
from harness.running.cell_run import evaluate, look
from harness.running.data_remarks import data_remarks
from harness.running.fit_store import FitStore, Fitted
from harness.running.inference import CachedModel
from harness.running.planned import outcome_of, planned_cells, planned_fits
from harness.running.processes import PeerError, ProcessGroup
from harness.running.run_logs import RunLogs
from harness.running.sequential import Sampling
from harness.running.session import Prepared
from harness.running.signals import Interrupted, Interruption
from harness.running.start import (
    Command,
    Work,
    baseline_folder,
    journals_of,
    make_metrics_ready,
    new_folder,
    now,
    open_manifest,
    require_same_model,
)
from harness.running.summaries import (
    empty_result,
    further_metrics_notes,
    suite_summaries,
)
from harness.running.token_ledger import unknown_notes
from harness.scores.aggregation import aggregate_tasks
from harness.scores.suites import aggregate_suites
from harness.scores.task_intervals import add_task_intervals
from harness.storage.files import cache_folder
from harness.storage.redaction import clean_text
from harness.storage.results import (
    SCHEMA,
    STOPPED,
    CellResult,
    FitResult,
    Manifest,
    ModelHead,
    RunHead,
    RunResults,
)
from harness.storage.run_folder import FinishedCell, Run

WRITE_EVERY = 5.0
"""Seconds between two writes of ``results.json`` while cells are finishing."""


def execute(
    config: RunConfig,
    prepared: Prepared,
    progress: Progress,
    *,
    created: str | None = None,
    processes: ProcessGroup | None = None,
    resume: bool = False,
) -> Path:
    """Run prepared plans and return the run folder.

    Args:
        config: What was asked for.
        prepared: The plans.
        progress: Shows how far the run is, in the main process.
        created: When the run began, by default now.
        processes: The processes that share the work.
        resume: Whether ``config.output`` is a run that is resumed.

    Raises:
        UsageError: A run to reuse has no journal, or another command is using the folder.
        Interrupted: After Ctrl-C, with the command that resumes the run.
        StorageError: Where the run folder or the cache can no longer be written.
    """
    require_cells(prepared.plan)
    make_metrics_ready(prepared)
    if not resume:
        # A run that ends because a package is missing would leave a folder that the same command rejects.
        prepared.plan.model.entry.make_ready()
    processes = processes or ProcessGroup()
    command = Command(
        config=config,
        prepared=prepared,
        progress=progress if processes.is_main else Progress(),
        created=processes.share(created or now()),
        processes=processes,
        interruption=Interruption(progress.announce),
        resume=resume,
        journals=[path for run in config.reuse for path in journals_of(run)],
    )
    name = config.output or new_folder(prepared.plan, command.created)
    path = Path(processes.share(str(name)))
    resume_hint = f"Resume it with: harness eval --resume {path}"
    try:
        with command.interruption.listening(), command.hold(Run.at(path)), command.tracked(path) as logs:
            _run_plan(command, prepared.plan, Run.at(path), logs)
            for plan in prepared.baselines:
                if plan.cells:
                    _run_plan(command, plan, Run.at(baseline_folder(path, plan)), RunLogs())
    except KeyboardInterrupt as error:
        raise Interrupted(f"Stopped. All answers so far are kept. {resume_hint}") from error
    except StorageError as error:
        if "--resume" not in (error.hint or "") and (path / "manifest.json").is_file():
            error.hint = " ".join(filter(None, (error.hint, "All answers so far are kept.", resume_hint)))
        raise
    return path


# A plan ------------------------------------------------------------------------------------------------


def _run_plan(command: Command, plan: Plan, run: Run, logs: RunLogs) -> None:
    """Run one plan into its folder: the manifest first, then translations, then the cells."""
    processes = command.processes
    with processes.collective():
        manifest = processes.share(open_manifest(command, plan, run).to_json() if processes.is_main else None)
        if not (run.path / "manifest.json").is_file():
            raise StorageError(
                f"Process {processes.rank} does not see the run folder {str(run.path)!r}.",
                hint="Give --output a folder that all hosts share.",
            )
        run.manifest = Manifest.model_validate(manifest)
        run.keep_trackers(logs.ids, write=processes.is_main)
        journal = run.open_journal(processes.rank, command.journals)
    try:
        if journal.dropped:
            subject = "place is" if journal.dropped == 1 else "places are"
            command.progress.announce(
                f"{journal.dropped} {subject} damaged in the journal; the answers there are asked again."
            )
        model = CachedModel(processes=processes, journal=journal, interruption=command.interruption)
        config = command.config
        sampling = Sampling(precision=config.precision, budget=config.budget, limit=config.limit)
        folders = {str(entry.folder): entry.folder for entry in command.prepared.session.catalog.entries}
        work = Work(
            command=command,
            plan=plan,
            run=run,
            model=model,
            checksums=Checksums.read(folders.values()),
            logs=logs,
            sampling=sampling,
        )
        _translate(work)
        with processes.collective():
            if processes.is_main and plan is command.prepared.plan:
                work.note(data_remarks(work))
        with processes.collective():
            run_cells(work)
    finally:
        journal.close()


def _translate(work: Work) -> None:
    """Translate what is missing for the plan's variants and training sets, before a model takes the memory.

    The main process translates; the others learn its engines and find everything in the store.
    """
    splits = {
        data.digest(): data
        for cell in work.plan.cells
        for data in (
            cell.test,
            *(split for stage in (cell.fit.stages if cell.fit else ()) for _, split in stage.train),
        )
        if data.change is not None
    }
    if not splits:
        return
    command, finder = work.command, work.command.prepared.finder
    with command.processes.collective():
        if command.processes.is_main:
            with command.interruption.immediate():
                finder.translate(splits.values(), command.progress)
            faults = translation_notes(finder.translations)
            work.notes.update(dict.fromkeys(faults))
            work.announce(faults)
        finder.translations.adopt(command.processes.share(finder.translations.engines()))
        work.run.keep_translators(finder.translations.engines(), write=command.processes.is_main)


def run_cells(work: Work) -> None:
    """Run all cells that are not finished; the main process writes ``results.json``, after Ctrl-C too.

    Raises:
        StorageError: Where nothing can be kept any more.
        PeerError: Where another process could not open the model.
    """
    _take_finished(work)
    tests: dict[str, list[FoundTest]] = {}
    for cell in work.plan.cells:
        test = FoundTest(language=cell.language.code, view=cell.view, found=cell.test)
        tests.setdefault(cell.spec.task, []).append(test)
    work.note(note for task, group in tests.items() for note in copied_files_notes(task, group))
    is_main, run = work.command.processes.is_main, work.run
    try:
        with gc_rare():
            _run_groups(work)
    except BaseException:
        if is_main:
            run.write_results(summarise(work))
        raise
    if is_main:
        work.command.progress.status("computing the intervals of means")
        # What is done is on disk before the intervals of means are computed from the records.
        run.write_results(summarise(work))
        registry, tasks, suites = work.registry, run.manifest.tasks, suite_summaries(work.plan)
        run.write_results(add_task_intervals(run.results, tasks, suites, run.records_of, registry.metrics))
        work.announce(registry.run_finished(run.path))
        work.announce(work.logs.run_finished(run.path))


def _take_finished(work: Work) -> None:
    """Load the cells that an earlier attempt finished."""
    processes = work.command.processes
    contents = {digest: cell.to_json() for digest, cell in work.run.finished_cells().items()}
    finished = {
        digest: FinishedCell.model_validate(cell) for digest, cell in processes.share(contents).items()
    }
    for digest, cell in finished.items():
        work.cells[digest] = cell.result
        work.model.counts.add({**cell.requests, "asked": 0, "reused": cell.requests["planned"]})
        if cell.fit is not None:
            work.fits[cell.fit.key] = cell.fit
    work.sampling.recall({digest: cell.result.looks for digest, cell in finished.items()})
    if finished and processes.is_main:
        work.announce([f"{len(finished)} of {len(work.plan.cells)} cells are done already."])
        finished_results = (work.cells[cell.digest] for cell in work.plan.cells if cell.digest in finished)
        work.announce(work.logs.cells_taken(finished_results))


def _run_groups(work: Work) -> None:
    """Open the model and run the cells of every fit together."""
    fits_only = work.command.config.fits_only
    groups = [
        (plan, [cell for cell in cells if cell.digest not in work.cells])
        for plan, cells in work.plan.groups()
        if plan is not None or not fits_only
    ]
    if not any(cells for _, cells in groups):
        return
    command, model = work.command, work.plan.model
    command.progress.start(f"Opening {model.name}", 0, "")
    with command.processes.collective(), command.interruption.immediate():
        adapter = model.entry.open(model.description, model.options)
    command.progress.finish()
    try:
        with command.processes.collective():
            identity = dict(adapter.identity())
            require_same_model(command.processes, identity)
            locked = command.prepared.locked
            if locked is not None and work.plan is command.prepared.plan:  # baselines are not locked
                locked_model(locked, model.description, identity, model.options.model_dump(mode="json"))
            work.run.keep_identity(identity, write=command.processes.is_main)
        _report_plan(work, adapter, [plan for plan, cells in groups if plan is not None and cells])
        while not fits_only and work.sampling.next_round(_sampled(work)):
            for plan, cells in groups:
                _run_group(work, adapter, plan, _open(work, cells), only_look=True)
        for plan, cells in groups:
            _run_group(work, adapter, plan, [cell for cell in cells if cell.digest not in work.cells])
    finally:
        adapter.close()


def _sampled(work: Work) -> list[str]:
    """Return the cells that share a budget: all that have not failed."""
    failed = {digest for digest, result in work.cells.items() if result.status != "ok"}
    return [cell.digest for cell in work.plan.cells if cell.digest not in failed]


def _open(work: Work, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of which this round of a budget takes a look."""
    limit_of = work.sampling.wanted
    return [cell for cell in cells if cell.digest not in work.cells and limit_of(cell.digest) is not None]


def _report_plan(work: Work, adapter: Adapter, fits: Sequence[FitPlan]) -> None:
    """Report the cells of the plan and the training stages that are not in the cache."""
    if not work.command.processes.is_main:
        return
    plan, store = work.plan, _fit_store(work)
    cells = () if work.command.config.fits_only else plan.cells
    stages = {digest: stage for fit_plan in fits for digest, stage in store.missing(adapter, fit_plan)}
    headlines = {cell.digest: cell.spec.headline for cell in cells}
    work.command.progress.plan(
        plan.model.name,
        planned_cells(cells, work.command.config.limit),
        planned_fits(stages),
        [outcome_of(work.cells[digest], headlines[digest]) for digest in headlines if digest in work.cells],
    )


def _run_group(
    work: Work, adapter: Adapter, plan: FitPlan | None, cells: Sequence[Cell], *, only_look: bool = False
) -> None:
    """Fit the model of a group and run its cells, or take a look at them, unless only fits are wanted.

    A failed fit fails its cells, and leaves the others alone.
    """
    if not cells:
        return
    fitted: Fitted | None = None
    if plan is not None:
        try:
            fitted = fit(work, adapter, plan)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001, RUF100
            for cell in cells:
                _keep_failure(work, cell, error)
            return
        if work.command.config.fits_only:
            fitted.adapter.close()
            return
    chosen = adapter if fitted is None else fitted.adapter
    check = work.command.interruption.check
    try:
        identity = dict(chosen.identity())
        if fitted is not None:
            identity["harness.fit"] = fitted.record.digest
        contexts = CellContexts(
            reader=CellReader(work.registry, work.command.prepared.finder),
            cells=cells,
            is_done=lambda cell: cell.digest in work.cells,
            limit=work.command.config.limit,
            folder=cache_folder(),
            progress=work.command.progress,
            check=check,
        )
        for cell in cells:
            check()
            _run_cell(work, chosen, identity, cell, contexts, only_look=only_look)
            _take_notices(work, chosen)
    finally:
        if fitted is not None:
            fitted.adapter.close()


def fit(work: Work, adapter: Adapter, plan: FitPlan) -> Fitted:
    """Return the model that a group of cells shares: fine-tuned now, or loaded from the cache."""
    with work.command.processes.collective():
        fitted = _fit_store(work).fit(adapter, plan)
    work.fits[plan.key] = fitted.record
    return fitted


def _fit_store(work: Work) -> FitStore:
    command = work.command
    return FitStore(
        cache_folder(), command.prepared.finder, command.progress, command.processes, command.interruption
    )


# A cell ------------------------------------------------------------------------------------------------


def _run_cell(
    work: Work,
    adapter: Any,
    identity: Mapping[str, str],
    cell: Cell,
    contexts: CellContexts,
    *,
    only_look: bool = False,
) -> None:
    """Run one cell and keep it; one that fails is kept with its reason, and leaves the others alone."""
    progress = work.command.progress
    progress.cell_started(cell.digest)
    try:
        with work.command.processes.collective():
            if work.sampling.grows and can_be_sampled(cell):
                look(work, adapter, identity, cell, contexts)
            if only_look:
                return
            result = evaluate(work, adapter, identity, cell, contexts)
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001, RUF100
        _keep_failure(work, cell, error)
        return
    finally:
        progress.finish()
    work.cells[cell.digest] = result
    if work.command.processes.is_main:
        progress.cell_finished(outcome_of(result, cell.spec.headline))
        work.announce(work.registry.cell_finished(result))
        work.announce(work.logs.cell_finished(result))
        if time.monotonic() - work.written > WRITE_EVERY:
            work.run.write_results(summarise(work))
            work.written = time.monotonic()


def _keep_failure(work: Work, cell: Cell, error: Exception) -> None:
    reason = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    reason = clean_text(reason)
    processes = work.command.processes
    name = f"{cell.digest}.txt" if processes.is_main else f"{cell.digest}-{processes.rank}.txt"
    if processes.is_main or not isinstance(error, PeerError):
        work.run.keep_failure(name, f"{cell.title}\n{''.join(traceback.format_exception(error))}")
    result = {**work.head(cell), **empty_result("failed", reason), "traceback": f"failures/{name}"}
    work.cells[cell.digest] = CellResult(**result)
    work.command.progress.cell_finished(outcome_of(work.cells[cell.digest], cell.spec.headline))


def _take_notices(work: Work, adapter: Any) -> None:
    """Add the notes of an adapter on its answers, and those on the files that were read, to the run's notes."""
    notices = list(adapter.notices()) if isinstance(adapter, HasNotices) else []
    for message in work.command.processes.gather(json.dumps(notices).encode()):
        work.note(json.loads(message))
    work.note(list(work.command.prepared.finder.notes))


# Results -----------------------------------------------------------------------------------------------


def summarise(work: Work) -> RunResults:
    """Return the current content of ``results.json``: all cells of the plan, and the means of those that are done."""
    plan, command, manifest = work.plan, work.command, work.run.manifest
    stopped = empty_result("skipped", STOPPED)
    done = [work.cells.get(cell.digest) or CellResult(**work.head(cell), **stopped) for cell in plan.cells]
    skipped = [
        CellResult(
            task=skip.task,
            language=skip.language,
            protocol=skip.protocol,
            view=dict(skip.view),
            **empty_result("skipped", skip.reason),
        )
        for skip in plan.skipped
    ]
    described = plan.model.description
    fits = [work.fits[one.key] for one in plan.fits if one.key in work.fits]
    tasks = aggregate_tasks([*done, *skipped], manifest.tasks)
    return RunResults(
        schema=SCHEMA,
        run=RunHead(
            id=work.run.path.name,
            created=manifest.created,
            harness=installed_version("multilingual-harness"),
            data=command.config.data.mode,
            processes=command.processes.count,
            resumed=len(manifest.resumed),
            seconds=round(time.monotonic() - work.started, 2),
            requests=work.model.counts.to_json(),
        ),
        model=ModelHead(
            adapter=described.adapter,
            ref=described.ref,
            revision=described.revision,
            parameters=described.parameters,
            metadata={**described.metadata, **manifest.identity},
        ),
        fits={one.digest: FitResult(title=one.title, stages=one.stages) for one in fits},
        notes=[
            *unknown_notes(done),
            *further_metrics_notes(done, plan, manifest.tasks),
            *plan.notes,
            *work.notes,
        ],
        cells=[*done, *skipped],
        tasks=tasks,
        suites=aggregate_suites(tasks, suite_summaries(plan)),
    )
