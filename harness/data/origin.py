"""Where the data of a task or a training set are looked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import cast

from harness.data.resolve import DataRef
from harness.data.sources import DataFinder, FoundData, data_ref, local_paths
from harness.errors import HarnessError, MissingDataError
from harness.languages.table import LanguageTable
from harness.specs.catalog import Catalog
from harness.specs.schema import Source, Split, TaskSpec, TrainingSpec
from harness.specs.task_entry import TaskEntry, described_languages


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A task or training set with its languages and the folders of their samples."""

    name: str
    spec: TaskSpec | TrainingSpec
    languages: LanguageTable
    folders: Mapping[str, Traversable]

    @classmethod
    def of(cls, entry: TaskEntry) -> Origin:
        """Return the origin of a task's own splits."""
        return cls(name=entry.spec.task, spec=entry.spec, languages=entry.languages, folders=entry.folders)

    @classmethod
    def named(cls, name: str, catalog: Catalog) -> Origin:
        """Return the training set of a name, or the task where there is no such training set."""
        if name not in catalog.names("training"):
            return cls.of(catalog.task(name))
        spec, entry = catalog.training(name)
        return cls(
            name=name,
            spec=spec,
            languages=described_languages(spec),
            folders=dict.fromkeys(spec.languages, entry.folder),
        )

    def source(self, code: str, split: str) -> Source | None:
        """Return the source of a split in a language, None where there is none."""
        return self.spec.source(code, cast("Split", split))

    def ref(
        self, code: str, split: str, source: Source, conditions: Mapping[str, str] | None = None
    ) -> DataRef:
        """Return where a source may be found in a language; its rows have the inputs and the label of the spec."""
        # A task without its source language (XCOPA) finds its items below the folder of any language it has.
        folder = self.folders.get(code) or next(iter(self.folders.values()), None)
        inputs = () if split == "candidates" else self.spec.input_names
        # A model learns from few languages, and is tested in all of them.
        codes = () if source.web is None or split in {"train", "validation"} else self.spec.languages
        return data_ref(
            source,
            owner=self.name,
            language=self.languages.get(code),
            split=split,
            folder=folder,
            conditions=conditions,
            others=map(self.languages.get, codes),
            fields=(*inputs, "label") if inputs and self.spec.label_names else inputs,
        )

    def refs(self, code: str, split: str, source: Source) -> Iterator[DataRef]:
        """Yield where a source may be found, for all values of the task's axes."""
        for conditions in self._conditions():
            # A spec with a fault is reported where its cell is planned.
            with suppress(HarnessError):
                yield self.ref(code, split, source, conditions)

    def local_paths(self, code: str, source: Source) -> Iterator[list[tuple[str, ...]]]:
        """Yield the `local_paths` of a source in a language, for all values of the task's axes."""
        language = self.languages.get(code)
        for conditions in self._conditions():
            with suppress(HarnessError):
                yield local_paths(source, owner=self.name, language=language, conditions=conditions)

    def _conditions(self) -> Iterator[dict[str, str]]:
        axes: Mapping[str, tuple[str, ...]] = getattr(self.spec, "axes", {})
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def train_finder(self, finder: DataFinder) -> Callable[[str, Source], FoundData]:
        """Return the finder of a language's training files at a source."""
        return lambda code, source: self.find(finder, code, "train", source=source)

    def find(
        self,
        finder: DataFinder,
        code: str,
        split: str,
        conditions: Mapping[str, str] | None = None,
        *,
        source: Source | None = None,
    ) -> FoundData:
        """Return the files of a split in a language; raises `MissingDataError`.

        Args:
            finder: Finds them.
            code: The language.
            split: The split, or ``candidates``.
            conditions: Values of the task's axes.
            source: Another source than that of the split.
        """
        source = source or self.spec.source(code, cast("Split", split))
        if source is None:
            raise MissingDataError(f"{self.name!r} has no {split} split in {code!r}.")
        return finder.find(source, self.ref(code, split, source, conditions))
