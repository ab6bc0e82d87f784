"""Where the data of a task or a training set are looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import cast

from harness.data.sources import DataFinder, FoundData, find_split
from harness.errors import MissingDataError
from harness.languages.table import LanguageTable
from harness.specs.catalog import Catalog
from harness.specs.schema import Source, Split, TaskSpec, TrainingSpec
from harness.specs.task_entry import TaskEntry, described_languages

__all__ = ["Origin"]


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
        # A task without its source language (XCOPA) finds its items below the folder of any language it has.
        folder = self.folders.get(code) or next(iter(self.folders.values()), None)
        return find_split(finder, source, self.name, self.languages.get(code), split, folder, conditions)
