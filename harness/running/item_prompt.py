"""Prompts of single items, rendered again as a run renders them: from a plan, without the model."""

from __future__ import annotations

from dataclasses import replace

from harness.data.sources import DataFinder
from harness.errors import MissingDataError, UnknownNameError, UsageError
from harness.kinds.methods import FITTING_PROTOCOLS
from harness.models.adapters import AdapterEntry, ModelReference
from harness.models.capabilities import Capability, Head, ModelDescription
from harness.models.options import ReasoningOptions
from harness.planning.plan import Cell, Model, Plan
from harness.planning.planner import make_plan
from harness.planning.prompts import DEFAULT_PRESET
from harness.planning.run_config import RunConfig
from harness.prompts.prompter import Rendering, render_item
from harness.running.cell_reader import CellReader
from harness.running.cell_writer import inputs_digest
from harness.running.manifest import read_configuration_of
from harness.running.session import Session, open_session
from harness.storage.files import cache_folder
from harness.storage.records import ItemRecord
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

WRITES = "generate"


def render_first_item(config: RunConfig, session: Session, finder: DataFinder) -> Rendering:
    """Return the first item of one language of a task, as a run with this configuration asks for it.

    Raises:
        UnknownNameError: There is no such task, language or prompt.
        UsageError: The task's kind is not prompted.
        MissingDataError: There are no items, or no data for the shots.
        CapabilityError: The prompt cannot be used in this way.
    """
    task, _, language = config.tasks[0].rpartition(":")
    spec = session.catalog.task(task).spec
    if language not in spec.languages:
        raise UnknownNameError(f"language of {task!r}", language, spec.languages)
    if session.registry.kinds.get(spec.kind).prompt_item is None:
        raise UsageError(f"The task {task!r} cannot be prompted: its kind {spec.kind!r} has no prompt items.")
    prompts = [session.catalog.prompt(task, name) for name in config.prompt or (DEFAULT_PRESET,)]
    method = "rank" if prompts[0].choice and not config.chat else WRITES
    plan = _plan(replace(config, method=method, protocols=("prompted",)), session, finder)
    if not plan.cells:
        raise MissingDataError(plan.skipped[0].reason)
    return _render(plan.cells[0], session, finder)


class RecordedPrompts:
    """The prompts of a finished run: rendered again, and shown only where all they are made of is unchanged."""

    def __init__(self, run: Run) -> None:
        """Read how the run was started; raises `HarnessError` where that is not known to this version or machine."""
        self._config = read_configuration_of(run.manifest, run.path)
        self._session = open_session(self._config.tasks_from, allow_code=self._config.allow_code)
        self._finder = DataFinder(self._config.data, self._session.registry, cache_folder() / "data")

    def render(self, result: CellResult, record: ItemRecord) -> Rendering:
        """Return the requests to the model for a recorded item.

        Raises:
            UsageError: The prompt or its shots are not those of the run.
            MissingDataError: The item is not there any more, or it changed.
            HarnessError: What planning its cell again raises.
        """
        cell = self._cell(result)
        rendering = _render(cell, self._session, self._finder, record)
        if result.dropped_shots:
            note = f"{rendering.shots}; {result.dropped_shots:,} shots of this cell were dropped, maybe some of these"
            return replace(rendering, shots=note)
        return rendering

    def _cell(self, result: CellResult) -> Cell:
        recorded = (result.prompt or {}).get("digest")
        config = replace(
            self._config,
            tasks=(f"{result.task}:{result.language}",),
            languages=None,
            method=result.method,
            protocols=(result.protocol or "prompted",),
            limit=None,
        )
        plan = _plan(config, self._session, self._finder)
        view = {name: value for name, value in result.view.items() if name != "gold"}
        same = [cell for cell in plan.cells if dict(cell.view) == view and cell.seed == result.seed]
        cell = next(
            (candidate for candidate in same if candidate.prompt and candidate.prompt.digest == recorded),
            None,
        )
        if cell is not None:
            return cell
        changed = "its digest is not the run's, so the prompt, the data of its shots or the harness changed"
        raise UsageError(next((skip.reason for skip in plan.skipped), changed))


def _plan(config: RunConfig, session: Session, finder: DataFinder) -> Plan:
    """Return the plan of a model that can do what the configuration's method needs; no other model is looked at."""
    needed = {method.requires for method in session.registry.methods if method.name == config.method}
    fits = bool(set(config.protocols) & FITTING_PROTOCOLS)
    description = ModelDescription(
        adapter="any",
        ref="model",
        offers=frozenset(needed | ({Capability.FITS} if fits else set())),
        after_fit={Head.TEXT_TO_TEXT: frozenset(needed)} if fits else {},
    )
    fields = ReasoningOptions.model_fields
    options = {name: value for name, value in config.options.items() if name in fields}
    model = Model(
        reference=ModelReference(scheme="any", ref="model"),
        entry=AdapterEntry(name="any", target="", describe="", options="", summary=""),
        options=ReasoningOptions.model_validate(options),
        description=description,
    )
    return make_plan(config, session.registry, session.catalog, finder, model)


def _render(cell: Cell, session: Session, finder: DataFinder, record: ItemRecord | None = None) -> Rendering:
    """Return the first item of a cell, or the recorded one."""
    reader = CellReader(session.registry, finder)
    prompter, prompt = reader.prompter(cell), cell.prompt
    assert prompter is not None
    assert prompt is not None
    examples = reader.examples(cell)
    if record is None:
        example = next(examples)
    else:
        example = next((candidate for candidate in examples if candidate.id == record.id), None)
        if example is None or inputs_digest(example) != record.inputs_digest:
            raise MissingDataError(f"the item {record.id!r} is not in the data any more, or it changed")
    pool = prompt.pool
    origin = "" if pool is None else f" from {pool.split} of {pool.owner} in {pool.language}"
    return render_item(
        prompter,
        example,
        prompt.instruction,
        inherited=prompt.inherited,
        policy=prompt.policy,
        writes=cell.pairing.method.name == WRITES,
        shots=f"{prompt.shots}{origin}" if prompt.shots else "",
    )
