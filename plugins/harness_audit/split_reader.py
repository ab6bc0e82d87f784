"""Reading of the splits that an audit looks at: all tests, and all that a model learns from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from harness import DataError, Finding, MissingDataError, ReadContext, UsageError, read_examples
from harness.data.pool import CandidatePool
from harness.data.sources import find_split
from harness.specs.task_entry import described_languages
from harness_audit.split import AuditedSplit

if TYPE_CHECKING:
    from harness import TaskEntry, TaskSpec
    from harness.data.sources import DataFinder, FoundData
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog
    from harness.specs.schema import TrainingSpec

__all__ = ["SplitReader", "test_context"]

Learned = Literal["train", "validation"]
LEARNED: tuple[Learned, ...] = ("train", "validation")


def test_context(spec: TaskSpec, language: str, found: FoundData) -> ReadContext:
    """Return what rows of a task's test split need to become examples."""
    return _context(spec, spec.task, language, "test", found)


def _context(
    spec: TaskSpec | TrainingSpec, owner: str, language: str, split: str, found: FoundData
) -> ReadContext:
    return ReadContext(
        owner=owner,
        language=language,
        split=split,
        inputs=spec.input_names,
        labels=spec.label_names,
        label_map=found.label_map,
        cluster=getattr(spec, "cluster", None) if split == "test" else None,
        phrases=spec.input_phrases,
    )


class SplitReader:
    """Reads the splits of one task; what cannot be read is kept as a finding, what is not there as a reason."""

    def __init__(self, entry: TaskEntry, registry: Registry, catalog: Catalog, finder: DataFinder) -> None:
        self._entry = entry
        self._registry = registry
        self._catalog = catalog
        self._finder = finder
        self.findings: list[Finding] = []
        self.missing: dict[str, None] = {}
        """Languages without test items."""
        self._asked: dict[tuple[str, str], bool] = {}
        """Whether any file was found of a split, by owner and name."""
        self._pools: dict[tuple[str, ...], CandidatePool] = {}
        """By the languages that add to it."""

    @property
    def pool_missing(self) -> tuple[str, ...]:
        """Languages whose candidates are not in the pool of the task."""
        return tuple(dict.fromkeys(code for pool in self._pools.values() for code in pool.missing))

    def has_tests(self, codes: Sequence[str] = ()) -> bool:
        """Return whether test items of any of the languages (none means all) were found, once `tests` was read."""
        return any(code not in self.missing for code in codes or self._entry.spec.languages)

    def test_files(self, code: str) -> str:
        """Return how a spec names the test items of a language."""
        source = self._entry.spec.source(code, "test")
        if source is None:
            return "no source"
        paths = [path for files in source.alternatives for path in files.paths]
        if not paths:
            return "the Hub" if source.hub is not None else "no source"
        return " or ".join(dict.fromkeys(map(repr, paths)))

    def missing_learned(self) -> list[str]:
        """Return the splits to learn from that the specs name and that were not found, once `learned` was read."""
        return [
            f"the {split} split of {owner!r}"
            for (owner, split), found in self._asked.items()
            if split in LEARNED and not found
        ]

    def tests(self) -> Iterator[AuditedSplit]:
        """Yield the test items of every language that is found, under every value of the task's axes."""
        spec = self._entry.spec
        for code in spec.languages:
            self.missing[code] = None
            for values in itertools.product(*spec.axes.values()):
                conditions = dict(zip(spec.axes, values, strict=True))
                folder = self._entry.folders.get(code)
                language = self._entry.languages.get(code)
                split = self._read(spec, spec.task, spec.kind, language, "test", folder, conditions)
                if split is not None:
                    yield split

    def learned(self) -> Iterator[AuditedSplit]:
        """Yield the training and validation sets of the task and its stages: all languages of what is its own."""
        spec = self._entry.spec
        stages: tuple[str, ...] = () if spec.transfer is None else spec.transfer.stages
        for name in dict.fromkeys((spec.task, *stages)):
            if name == spec.task:
                yield from self._own(self._entry, list(spec.languages))
            elif name in self._catalog.names("training"):
                yield from self._training(name)
            elif spec.transfer is not None:
                yield from self._own(self._catalog.task(name), [spec.transfer.source])

    def _own(self, entry: TaskEntry, codes: Sequence[str]) -> Iterator[AuditedSplit]:
        spec = entry.spec
        for code, split in itertools.product(codes, LEARNED):
            for values in itertools.product(*spec.axes.values()) if code in spec.languages else ():
                conditions = dict(zip(spec.axes, values, strict=True))
                language, folder = entry.languages.get(code), entry.folders.get(code)
                found = self._read(spec, spec.task, spec.kind, language, split, folder, conditions)
                if found is not None:
                    yield found

    def _training(self, name: str) -> Iterator[AuditedSplit]:
        training, document = self._catalog.training(name)
        languages = described_languages(training.languages)
        for code, split in itertools.product(training.languages, LEARNED):
            language = languages.get(code)
            found = self._read(training, name, training.kind, language, split, document.folder, {})
            if found is not None:
                yield found

    def _read(
        self,
        spec: TaskSpec | TrainingSpec,
        owner: str,
        kind: str,
        language: Any,
        split: Learned | Literal["test"],
        folder: Any,
        conditions: Mapping[str, str],
    ) -> AuditedSplit | None:
        source = spec.source(language.code, split)
        if source is None:
            return None
        self._asked.setdefault((owner, split), False)
        try:
            found = find_split(self._finder, source, owner, language, split, folder, conditions)
        except MissingDataError:
            return None
        self._asked[owner, split] = True
        if split == "test":
            self.missing.pop(language.code, None)
        own = self._entry.spec
        ranks = split == "test" and owner == own.task and own.pool_source is not None
        context = _context(spec, owner, language.code, split, found)
        try:
            examples = read_examples(self._registry.kinds.get(kind), self._finder.rows(found), context)
            pool = self._candidates(language.code) if ranks else None
            join = self._registry.kinds.get(kind).join
            if pool is not None and join is not None:
                examples = join(examples, pool)
        except (DataError, UsageError) as error:
            # A reader rejects options that do not fit the file only when it reads.
            self.findings.append(
                Finding(
                    task=self._entry.spec.task,
                    languages=(language.code,),
                    check="data",
                    expected=f"a readable {split} split of {owner!r}",
                    found=str(error).rstrip("."),
                )
            )
            return None
        return AuditedSplit(
            owner=owner,
            language=language.code,
            split=split,
            axes=tuple(conditions.values()),
            found=found,
            examples=examples,
            candidates=() if pool is None else list(pool.row_of),
        )

    def _candidates(self, language: str) -> CandidatePool | None:
        """Return the pool of a language's queries, read once; None where none of its files is found."""
        codes = self._entry.pool_languages(language)
        pool = self._pools.get(codes) or self._read_pool(codes)
        if pool is not None:
            self._pools[codes] = pool
        return pool

    def _read_pool(self, codes: Sequence[str]) -> CandidatePool | None:
        spec, source = self._entry.spec, self._entry.spec.pool_source
        make = self._registry.kinds.get(spec.kind).candidate
        if source is None or make is None:
            return None
        candidates, read, missing = [], [], []
        for code in codes:
            language, folder = self._entry.languages.get(code), self._entry.folders.get(code)
            try:
                found = find_split(self._finder, source, spec.task, language, "candidates", folder)
            except MissingDataError:
                missing.append(code)
                continue
            context = ReadContext(owner=spec.task, language=code, split="test", inputs=spec.input_names)
            candidates += [make(row, context) for row in self._finder.rows(found)]
            read.append(code)
        if not candidates:
            return None
        return CandidatePool(candidates, owner=spec.task, languages=read, missing=missing)
