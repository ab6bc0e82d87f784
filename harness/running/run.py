"""The steps of a run, from its plans to the results on disk.

`execute` opens the run folder and runs the plan of the model and those of its baselines. For every group of cells that
share a model it calls `fit`, then for every cell `evaluate` (in `cell_run`), and at the end `summarise`. All processes
of a run walk through the same cells; each asks the model its share, and the main one scores and writes.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from harness.checks.shared_rows import FoundTest, copied_files_notes
from harness.data.origin import Checksums
from harness.data.translation.guards import translation_notes
from harness.errors import HarnessError, StorageError
from harness.models.adapters import gc_rare
from harness.models.capabilities import Adapter
from harness.models.requests import HasNotices
from harness.planning.lock_file import locked_model
from harness.planning.plan import Cell, FitPlan, require_cells
from harness.planning.run_config import RunConfig
from harness.planning.sampling import can_be_sampled
from harness.progress import Progress
from harness.registry.plugin import installed_version
from harness.running.cell_counts import unknown_notes
from harness.running.cell_reader import CellReader
from harness.running.cell_run import CellGroup, evaluate, look
from harness.running.fit_store import FitStore, Fitted
from harness.running.inference import CachedModel
from harness.running.manifest import (
    empty_result,
    further_metrics_notes,
    suite_summaries,
)
from harness.running.processes import Interrupted, Interruption, PeerError, ProcessGroup
from harness.running.run_logs import outcome_of, planned_cells, planned_fits
from harness.running.session import Prepared
from harness.running.start import (
    RunState,
    data_remarks,
    hold_folder,
    journals_of,
    make_metrics_ready,
    new_folder,
    now,
    open_manifest,
    require_same_model,
    track,
)
from harness.scores.aggregation import aggregate_suites, aggregate_tasks
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
    created = processes.share(created or now())
    path = Path(processes.share(str(config.output or new_folder(prepared.plan, created))))
    state = _new_state(config, prepared, progress, processes, Run.at(path), created, resume=resume)
    resume_hint = f"Resume it with: harness eval --resume {path}"
    try:
        with state.interruption.listening(), hold_folder(state), track(state):
            for plan_state in (
                state,
                *(state.of_baseline(plan) for plan in prepared.baselines if plan.cells),
            ):
                with open_run(plan_state):
                    run_cells(plan_state)
    except KeyboardInterrupt as error:
        raise Interrupted(f"Stopped. All answers so far are kept. {resume_hint}") from error
    except StorageError as error:
        if "--resume" not in (error.hint or "") and (path / "manifest.json").is_file():
            error.hint = " ".join(filter(None, (error.hint, "All answers so far are kept.", resume_hint)))
        raise
    return path


def _new_state(
    config: RunConfig,
    prepared: Prepared,
    progress: Progress,
    processes: ProcessGroup,
    run: Run,
    created: str,
    *,
    resume: bool,
) -> RunState:
    """Return the state of a model's run before its first step; raises `UsageError` for a reused run without journal."""
    session = prepared.session
    folders = {str(entry.folder): entry.folder for entry in session.catalog.entries}
    return RunState(
        config=config,
        plan=prepared.plan,
        run=run,
        registry=session.registry,
        catalog=session.catalog,
        finder=prepared.finder,
        checksums=Checksums.read(folders.values()),
        locked=prepared.locked,
        progress=progress if processes.is_main else Progress(),
        processes=processes,
        interruption=Interruption(progress.announce),
        created=created,
        resume=resume,
        journals=[journal for reused in config.reuse for journal in journals_of(reused)],
    )


# A plan ------------------------------------------------------------------------------------------------


@contextmanager
def open_run(state: RunState) -> Iterator[None]:
    """Open the folder of a plan for its cells: the manifest first, then the journal, then translations."""
    processes, run = state.processes, state.run
    with processes.collective():
        manifest = processes.share(open_manifest(state).to_json() if state.is_main else None)
        if not (run.path / "manifest.json").is_file():
            raise StorageError(
                f"Process {processes.rank} does not see the run folder {str(run.path)!r}.",
                hint="Give --output a folder that all hosts share.",
            )
        run.manifest = Manifest.model_validate(manifest)
        run.keep_trackers(state.logs.ids, write=state.is_main)
        journal = run.open_journal(processes.rank, state.journals)
    try:
        if journal.dropped:
            subject = "place is" if journal.dropped == 1 else "places are"
            state.progress.announce(
                f"{journal.dropped} {subject} damaged in the journal; the answers there are asked again."
            )
        state.model = CachedModel(processes=processes, journal=journal, interruption=state.interruption)
        _translate(state)
        with processes.collective():
            if state.is_main and not state.is_baseline:
                state.note(data_remarks(state))
        with processes.collective():
            yield
    finally:
        journal.close()


def _translate(state: RunState) -> None:
    """Translate what is missing for the plan's variants and training sets, before a model takes the memory.

    The main process translates; the others learn its engines and find everything in the store.
    """
    splits = {
        data.digest(): data
        for cell in state.plan.cells
        for data in (
            cell.test,
            *(split for stage in (cell.fit.stages if cell.fit else ()) for _, split in stage.train),
        )
        if data.change is not None
    }
    if not splits:
        return
    finder, processes = state.finder, state.processes
    with processes.collective():
        if state.is_main:
            with state.interruption.immediate():
                finder.translate(splits.values(), state.progress)
            faults = translation_notes(finder.translations)
            state.notes.update(dict.fromkeys(faults))
            state.announce(faults)
        finder.translations.adopt(processes.share(finder.translations.engines()))
        state.run.keep_translators(finder.translations.engines(), write=state.is_main)


def run_cells(state: RunState) -> None:
    """Run all cells that are not finished; the main process writes ``results.json``, after Ctrl-C too.

    Raises:
        StorageError: Where nothing can be kept any more.
        PeerError: Where another process could not open the model.
    """
    _take_finished(state)
    tests: dict[str, list[FoundTest]] = {}
    for cell in state.plan.cells:
        test = FoundTest(language=cell.language.code, view=cell.view, found=cell.test)
        tests.setdefault(cell.spec.task, []).append(test)
    state.note(note for task, group in tests.items() for note in copied_files_notes(task, group))
    groups = _unfinished_groups(state)
    results: RunResults | None = None
    try:
        with gc_rare(), _open_model(state, groups) if groups else nullcontext() as adapter:
            for plan, cells, only_look in _rounds(state, groups):
                with _open_group(state, adapter, plan, cells) as group:
                    for cell in group.cells:
                        state.interruption.check()
                        _run_cell(state, group, cell, only_look=only_look)
                        _take_notices(state, group.adapter)
        if state.is_main:
            state.progress.status("computing the intervals of means")
            results = add_task_intervals(
                summarise(state),
                state.run.manifest.tasks,
                suite_summaries(state.plan),
                state.run.records_of,
                state.registry.metrics,
            )
    except BaseException:
        if state.is_main:
            state.run.write_results(summarise(state))
        raise
    if results is not None:
        state.run.write_results(results)
        state.announce(state.registry.run_finished(state.run.path))
        state.announce(state.logs.run_finished(state.run.path))


def _take_finished(state: RunState) -> None:
    """Load the cells that an earlier attempt finished."""
    contents = {digest: cell.to_json() for digest, cell in state.run.finished_cells().items()}
    finished = {
        digest: FinishedCell.model_validate(cell) for digest, cell in state.processes.share(contents).items()
    }
    for digest, cell in finished.items():
        state.cells[digest] = cell.result
        state.model.counts.add({**cell.requests, "asked": 0, "reused": cell.requests["planned"]})
        if cell.fit is not None:
            state.fits[cell.fit.key] = cell.fit
    state.sampling.recall({digest: cell.result.looks for digest, cell in finished.items()})
    if finished and state.is_main:
        state.announce([f"{len(finished)} of {len(state.plan.cells)} cells are done already."])
        finished_results = (state.cells[cell.digest] for cell in state.plan.cells if cell.digest in finished)
        state.announce(state.logs.cells_taken(finished_results))


def _unfinished_groups(state: RunState) -> list[tuple[FitPlan | None, list[Cell]]]:
    """Return the fits with their unfinished cells; nothing where all cells are finished."""
    groups = [
        (plan, _unfinished(state, cells))
        for plan, cells in state.plan.groups()
        if plan is not None or not state.config.fits_only
    ]
    return groups if any(cells for _, cells in groups) else []


def _unfinished(state: RunState, cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.digest not in state.cells]


@contextmanager
def _open_model(state: RunState, groups: Sequence[tuple[FitPlan | None, list[Cell]]]) -> Iterator[Adapter]:
    """Open the model of a plan and report what it will be asked."""
    processes, model = state.processes, state.plan.model
    state.progress.start(f"Opening {model.name}", 0, "")
    with processes.collective(), state.interruption.immediate():
        adapter = model.entry.open(model.description, model.options)
    state.progress.finish()
    try:
        with processes.collective():
            identity = dict(adapter.identity())
            require_same_model(processes, identity)
            if state.locked is not None:
                locked_model(state.locked, model.description, identity, model.options.model_dump(mode="json"))
            state.run.keep_identity(identity, write=state.is_main)
        if state.is_main:
            _report_plan(state, adapter, [plan for plan, cells in groups if plan is not None and cells])
        yield adapter
    finally:
        adapter.close()


def _report_plan(state: RunState, adapter: Adapter, fits: Sequence[FitPlan]) -> None:
    """Report the cells of the plan and the training stages that are not in the cache."""
    plan, store = state.plan, _fit_store(state)
    cells = () if state.config.fits_only else plan.cells
    stages = {digest: stage for fit_plan in fits for digest, stage in store.missing(adapter, fit_plan)}
    headlines = {cell.digest: cell.spec.headline for cell in cells}
    state.progress.plan(
        plan.model.name,
        planned_cells(cells, state.config.limit),
        planned_fits(stages),
        [outcome_of(state.cells[digest], headlines[digest]) for digest in headlines if digest in state.cells],
    )


def _rounds(
    state: RunState, groups: Sequence[tuple[FitPlan | None, list[Cell]]]
) -> Iterator[tuple[FitPlan | None, list[Cell], bool]]:
    """Yield every fit with its unfinished cells, and whether they are only looked at, as in the rounds of a budget."""
    limit_of = state.sampling.wanted
    while groups and not state.config.fits_only and state.sampling.next_round(_sampled(state)):
        for plan, cells in groups:
            yield (
                plan,
                [cell for cell in _unfinished(state, cells) if limit_of(cell.digest) is not None],
                True,
            )
    for plan, cells in groups:
        yield plan, _unfinished(state, cells), False


def _sampled(state: RunState) -> list[str]:
    """Return the cells that share a budget: all that have not failed."""
    failed = {digest for digest, result in state.cells.items() if result.status != "ok"}
    return [cell.digest for cell in state.plan.cells if cell.digest not in failed]


@contextmanager
def _open_group(
    state: RunState, adapter: Any, plan: FitPlan | None, cells: Sequence[Cell]
) -> Iterator[CellGroup]:
    """Fit the model of some cells; the group is empty for a failed fit, which fails them, and for fits alone."""
    model, identity = adapter, dict[str, str]()
    try:
        if cells and plan is not None:
            fitted = fit(state, adapter, plan)
            model, identity["harness.fit"] = fitted.adapter, fitted.record.digest
        if state.config.fits_only:
            cells = ()
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001, RUF100
        for cell in cells:
            _keep_failure(state, cell, error)
        cells = ()
    try:
        reader = CellReader(state.registry, state.finder)
        identity = {**model.identity(), **identity} if cells else {}
        yield CellGroup(adapter=model, identity=identity, reader=reader, cells=cells)
    finally:
        if model is not adapter:
            model.close()


def fit(state: RunState, adapter: Adapter, plan: FitPlan) -> Fitted:
    """Return the model that a group of cells shares: fine-tuned now, or loaded from the cache."""
    with state.processes.collective():
        fitted = _fit_store(state).fit(adapter, plan)
    state.fits[plan.key] = fitted.record
    return fitted


def _fit_store(state: RunState) -> FitStore:
    return FitStore(cache_folder(), state.finder, state.progress, state.processes, state.interruption)


# A cell ------------------------------------------------------------------------------------------------


def _run_cell(state: RunState, group: CellGroup, cell: Cell, *, only_look: bool) -> None:
    """Run one cell and keep it; one that fails is kept with its reason, and leaves the others alone."""
    progress = state.progress
    progress.cell_started(cell.digest)
    try:
        with state.processes.collective():
            if state.sampling.grows and can_be_sampled(cell):
                look(state, group, cell)
            if only_look:
                return
            result = evaluate(state, group, cell)
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001, RUF100
        _keep_failure(state, cell, error)
        return
    finally:
        progress.finish()
    state.cells[cell.digest] = result
    if state.is_main:
        progress.cell_finished(outcome_of(result, cell.spec.headline))
        state.announce(state.registry.cell_finished(result))
        state.announce(state.logs.cell_finished(result))
        if time.monotonic() - state.written > WRITE_EVERY:
            state.run.write_results(summarise(state))
            state.written = time.monotonic()


def _keep_failure(state: RunState, cell: Cell, error: Exception) -> None:
    reason = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    reason = clean_text(reason)
    name = f"{cell.digest}.txt" if state.is_main else f"{cell.digest}-{state.processes.rank}.txt"
    if state.is_main or not isinstance(error, PeerError):
        state.run.keep_failure(name, f"{cell.title}\n{''.join(traceback.format_exception(error))}")
    result = {**state.head(cell), **empty_result("failed", reason), "traceback": f"failures/{name}"}
    state.cells[cell.digest] = CellResult(**result)
    state.progress.cell_finished(outcome_of(state.cells[cell.digest], cell.spec.headline))


def _take_notices(state: RunState, adapter: Any) -> None:
    """Add the notes of an adapter on its answers, and those on the files that were read, to the run's notes."""
    notices = list(adapter.notices()) if isinstance(adapter, HasNotices) else []
    for message in state.processes.gather(json.dumps(notices).encode()):
        state.note(json.loads(message))
    state.note(list(state.finder.notes))


# Results -----------------------------------------------------------------------------------------------


def summarise(state: RunState) -> RunResults:
    """Return the current content of ``results.json``: all cells of the plan, and the means of those that are done."""
    plan, manifest = state.plan, state.run.manifest
    stopped = empty_result("skipped", STOPPED)
    done = [state.cells.get(cell.digest) or CellResult(**state.head(cell), **stopped) for cell in plan.cells]
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
    fits = [state.fits[planned.key] for planned in plan.fits if planned.key in state.fits]
    tasks = aggregate_tasks([*done, *skipped], manifest.tasks)
    return RunResults(
        schema=SCHEMA,
        run=RunHead(
            id=state.run.path.name,
            created=manifest.created,
            harness=installed_version("multilingual-harness"),
            data=state.config.data.mode,
            processes=state.processes.count,
            resumed=len(manifest.resumed),
            seconds=round(time.monotonic() - state.started, 2),
            requests=state.model.counts.to_json(),
        ),
        model=ModelHead(
            adapter=described.adapter,
            ref=described.ref,
            revision=described.revision,
            parameters=described.parameters,
            metadata={**described.metadata, **manifest.identity},
        ),
        fits={fitted.digest: FitResult(title=fitted.title, stages=fitted.stages) for fitted in fits},
        notes=[
            *unknown_notes(done),
            *further_metrics_notes(done, plan, manifest.tasks),
            *plan.notes,
            *state.notes,
        ],
        cells=[*done, *skipped],
        tasks=tasks,
        suites=aggregate_suites(tasks, suite_summaries(plan)),
    )
