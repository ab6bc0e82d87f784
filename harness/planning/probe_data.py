"""Training data of methods that learn on top of a frozen model: found while a run is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.data.sources import DataFinder, FoundData
from harness.errors import MissingDataError
from harness.kinds.methods import Method
from harness.languages.table import Language
from harness.planning.fits import FitPlanner
from harness.planning.origin import Origin
from harness.planning.plan import LearningPlan
from harness.planning.run_config import RunConfig
from harness.specs.task_entry import TaskEntry


class LearningPlanner:
    """Finds the splits of methods that learn by themselves."""

    def __init__(self, config: RunConfig, finder: DataFinder, fits: FitPlanner) -> None:
        self._config = config
        self._finder = finder
        self._fits = fits
        self.notes: list[str] = []

    def plan(
        self,
        entry: TaskEntry,
        language: Language,
        method: Method,
        conditions: Mapping[str, str],
        test: FoundData,
        seeds: Sequence[int],
    ) -> LearningPlan | None:
        """Return the training data of a method for the cells of a language, None for methods that do not learn.

        The task's own splits in the language; where it has no train, those of its last training stage in the
        source language. Raises `MissingDataError` where there are none either.

        Args:
            entry: The task.
            language: Of the cell.
            method: Of the cell.
            conditions: Values of the task's axes.
            test: What the cell is tested on: never learnt from.
            seeds: Of all cells that differ in the seed alone.
        """
        if not method.splits:
            return None
        origin, code = Origin.of(entry), language.code
        try:
            train = self._find(origin, code, "train", conditions, test)
        except MissingDataError as error:
            origin, code = self._transferred(entry, error)
            conditions = conditions if origin.name == entry.spec.task else {}
            train = self._find(origin, code, "train", conditions, test)
        return LearningPlan(
            owner=origin.name,
            language=code,
            train=train,
            validation=self._validation(origin, code, conditions, test)
            if "validation" in method.splits
            else None,
            spec=origin.spec,
            limit=self._config.train_limit,
            seeds=tuple(seeds),
        )

    def _find(
        self, origin: Origin, code: str, split: str, conditions: Mapping[str, str], test: FoundData
    ) -> FoundData:
        data = origin.find(self._finder, code, split, conditions)
        if set(data.files.paths) & set(test.files.paths):
            raise MissingDataError(
                f"The {split} split of {origin.name!r} in {code!r} is the file that is tested on "
                f"({data.files.describe}), so nothing can be learnt from it."
            )
        return data

    def _transferred(self, entry: TaskEntry, error: MissingDataError) -> tuple[Origin, str]:
        """Return the last training stage and the source language; raises what is missing otherwise."""
        spec = entry.spec
        if spec.transfer is None:
            raise error
        stage = spec.transfer.stages[-1]
        origin = self._fits.origin(stage)
        strange = sorted(set(origin.spec.label_names) - set(spec.label_names))
        if origin.spec.kind != spec.kind or strange:
            difference = f"the label {strange[0]!r}" if strange else f"the kind {origin.spec.kind!r}"
            raise MissingDataError(
                f"{error} Its training set {stage!r} has {difference}, which {spec.task!r} does not have."
            ) from error
        return origin, spec.transfer.source

    def _validation(
        self, origin: Origin, code: str, conditions: Mapping[str, str], test: FoundData
    ) -> FoundData | None:
        """Return the validation split, None where it is missing or is what the cell is tested on."""
        try:
            return self._find(origin, code, "validation", conditions, test)
        except MissingDataError as error:
            first = str(error).splitlines()[0].removesuffix(".")
        self.notes.append(f"Every tenth cluster of train is held out to choose on: {first}")
        return None
