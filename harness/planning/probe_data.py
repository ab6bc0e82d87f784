"""Training data of methods that learn on top of a frozen model: found while a run is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.data.origin import Origin
from harness.data.sources import DataFinder, FoundData
from harness.errors import MissingDataError
from harness.kinds.methods import Method
from harness.planning.fits import stage_origin
from harness.planning.plan import LearningPlan, PlanRequest
from harness.specs.task_entry import TaskEntry


def plan_learning(
    request: PlanRequest,
    entry: TaskEntry,
    code: str,
    method: Method,
    conditions: Mapping[str, str],
    test: FoundData,
    seeds: Sequence[int],
) -> tuple[LearningPlan | None, str]:
    """Return the training data of a method for the cells of a language, and a note; None for methods that do not learn.

    The task's own splits in the language; where it has no train, those of its last training stage in the
    source language. Raises `MissingDataError` where there are none either.

    Args:
        request: What the plan is made of.
        entry: The task.
        code: The language of the cell.
        method: Of the cell.
        conditions: Values of the task's axes.
        test: What the cell is tested on: never learnt from.
        seeds: Of all cells that differ in the seed alone.
    """
    if not method.splits:
        return None, ""
    origin, note = Origin.of(entry), ""
    try:
        train = _find(request.finder, origin, code, "train", conditions, test)
    except MissingDataError as error:
        origin, code = _transferred(request, entry, error)
        conditions = conditions if origin.name == entry.spec.task else {}
        train = _find(request.finder, origin, code, "train", conditions, test)
    validation: FoundData | None = None
    if "validation" in method.splits:
        try:
            validation = _find(request.finder, origin, code, "validation", conditions, test)
        except MissingDataError as error:
            reason = str(error).splitlines()[0].removesuffix(".")
            note = f"Every tenth cluster of train is held out to choose on: {reason}"
    plan = LearningPlan(
        owner=origin.name,
        language=code,
        train=train,
        validation=validation,
        spec=origin.spec,
        limit=request.config.train_limit,
        seeds=tuple(seeds),
    )
    return plan, note


def _find(
    finder: DataFinder, origin: Origin, code: str, split: str, conditions: Mapping[str, str], test: FoundData
) -> FoundData:
    data = origin.find(finder, code, split, conditions)
    if set(data.files.paths) & set(test.files.paths):
        raise MissingDataError(
            f"The {split} split of {origin.name!r} in {code!r} is the file that is tested on "
            f"({data.files.describe}), so nothing can be learnt from it."
        )
    return data


def _transferred(request: PlanRequest, entry: TaskEntry, error: MissingDataError) -> tuple[Origin, str]:
    """Return the last training stage and the source language; raises what is missing otherwise."""
    spec = entry.spec
    if spec.transfer is None:
        raise error
    stage = spec.transfer.stages[-1]
    origin = stage_origin(request, stage)
    strange = sorted(set(origin.spec.label_names) - set(spec.label_names))
    if origin.spec.kind != spec.kind or strange:
        difference = f"the label {strange[0]!r}" if strange else f"the kind {origin.spec.kind!r}"
        raise MissingDataError(
            f"{error} Its training set {stage!r} has {difference}, which {spec.task!r} does not have."
        ) from error
    return origin, spec.transfer.source
