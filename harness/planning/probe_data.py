"""What methods that learn on top of a frozen model are trained on: found while a run is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.data.sources import DataFinder, FoundData, find_split
from harness.errors import HarnessError, MissingDataError
from harness.kinds.methods import Method
from harness.languages.table import Language
from harness.planning.fits import FitPlanner
from harness.planning.plan import LearningPlan, RunConfig
from harness.specs.schema import Source, TaskSpec, TrainingSpec
from harness.specs.task_entry import TaskEntry

__all__ = ["LearningPlanner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where train and validation of a language may be."""

    owner: str
    spec: TaskSpec | TrainingSpec
    language: Language
    folder: Any
    conditions: Mapping[str, str]


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
        """Return what a method learns from for the cells of a language, None for methods that do not learn.

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
        spec = entry.spec
        folder = entry.folders.get(language.code)
        own = _Place(owner=spec.task, spec=spec, language=language, folder=folder, conditions=conditions)
        try:
            place, train = own, self._find(own, "train", test)
        except MissingDataError as error:
            place = self._transferred(entry, conditions, error)
            train = self._find(place, "train", test)
        return LearningPlan(
            owner=place.owner,
            language=place.language.code,
            train=train,
            validation=self._validation(place, test) if "validation" in method.splits else None,
            inputs=place.spec.input_names,
            labels=place.spec.label_names,
            phrases=place.spec.input_phrases,
            limit=self._config.train_limit,
            seeds=tuple(seeds),
        )

    def _find(self, place: _Place, split: Any, test: FoundData) -> FoundData:
        source: Source | None = place.spec.source(place.language.code, split)
        if source is None:
            raise MissingDataError(f"{place.owner!r} has no {split} split in {place.language.code!r}.")
        found = find_split(
            self._finder, source, place.owner, place.language, split, place.folder, place.conditions
        )
        if set(found.files.paths) & set(test.files.paths):
            raise MissingDataError(
                f"The {split} split of {place.owner!r} in {place.language.code!r} is the file that is tested on "
                f"({found.files.describe}), so nothing can be learnt from it."
            )
        return found

    def _transferred(
        self, entry: TaskEntry, conditions: Mapping[str, str], error: MissingDataError
    ) -> _Place:
        """Return where the last training stage is, in the source language; raises what is missing otherwise."""
        spec = entry.spec
        if spec.transfer is None:
            raise error
        stage, code = spec.transfer.stages[-1], spec.transfer.source
        origin = self._fits.origin(stage)
        strange = sorted(set(origin.labels) - set(spec.label_names))
        if origin.kind != spec.kind or strange:
            what = f"the label {strange[0]!r}" if strange else f"the kind {origin.kind!r}"
            raise MissingDataError(
                f"{error} Its training set {stage!r} has {what}, which {spec.task!r} does not have."
            ) from error
        return _Place(
            owner=stage,
            spec=origin.spec,
            language=origin.languages.get(code),
            folder=origin.folders.get(code),
            conditions=conditions if stage == spec.task else {},
        )

    def _validation(self, place: _Place, test: FoundData) -> FoundData | None:
        """Return the validation split, None where it is missing or is what the cell is tested on."""
        try:
            return self._find(place, "validation", test)
        except MissingDataError as error:
            reason: HarnessError = error
        first = str(reason).splitlines()[0].removesuffix(".")
        self.notes.append(f"Every tenth cluster of train is held out to choose on: {first}")
        return None
