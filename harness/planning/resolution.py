"""What a plan or a selection of tasks resolves to: every split with its files and digests, every document used."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.data.resolve import DataMode
from harness.data.sources import DataFinder, FoundData, find_split
from harness.errors import MissingDataError, UnknownNameError
from harness.languages.table import Language
from harness.planning.plan import Cell, Plan, PromptPlan
from harness.planning.translations import MACHINE_VARIANTS, beginning, source_language
from harness.specs.catalog import Catalog
from harness.specs.schema import TRANSLATED, Source, Split, TaskSpec
from harness.specs.selection import SelectedTask
from harness.specs.task_entry import TaskEntry, described_languages

__all__ = [
    "HubSplit",
    "LockEntry",
    "LockedDocument",
    "LockedFile",
    "LockedSplit",
    "Resolution",
    "TasksResolver",
    "read_resolution",
    "resolve_plan",
]

View = Mapping[str, str]
_LEARNED: tuple[Split, ...] = ("train", "validation")
"""The splits that a model may learn from."""


class LockEntry(BaseModel):
    """The base of what a lock file holds: strict, frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LockedFile(LockEntry):
    """A file of a split."""

    name: str
    """Relative to the data folder; of a Hub dataset, the file that the split is kept in."""
    sha256: str


class HubSplit(LockEntry):
    """The split of a Hub dataset that was loaded."""

    path: str
    config: str | None
    split: str
    revision: str | None
    """The commit; null where none was seen."""


class LockedSplit(LockEntry):
    """One split of one language of a task or training set, and what it was read from."""

    owner: str
    language: str
    split: str
    view: dict[str, str] = {}
    """Variant and axes of the items, where the task has them."""
    origin: DataMode
    split_used: str
    files: tuple[LockedFile, ...]
    hub: HubSplit | None = None
    digest: str
    """`harness.data.sources.FoundData.digest`: the files and how they are read."""

    @property
    def key(self) -> tuple[str, ...]:
        """What two entries for the same data share."""
        return _key(self.owner, self.language, self.split, self.view)

    @property
    def title(self) -> str:
        """``'xnli' in 'sw' (test)``."""
        view = "".join(f", {name} {value}" for name, value in sorted(self.view.items()))
        return f"{self.owner!r} in {self.language!r} ({self.split}{view})"

    @property
    def pinned(self) -> bool:
        """Whether the same files can be fetched again by name: those of a Hub dataset only by their commit."""
        return self.origin != "hub" or (self.hub is not None and self.hub.revision is not None)


class LockedDocument(LockEntry):
    """A document that was used."""

    sort: str
    """``task``, ``training``, ``recipe``, ``prompt``, or ``extends`` for a language of another package."""
    name: str
    version: int | None
    """Null for sorts of documents without versions."""
    digest: str
    """SHA-256 of its content, whatever its layout and comments."""

    @property
    def key(self) -> tuple[str, str]:
        """What two entries for the same document share."""
        return (self.sort, self.name)


class Resolution(LockEntry):
    """All data and documents that numbers depend on, each once, sorted."""

    data: tuple[LockedSplit, ...]
    specs: tuple[LockedDocument, ...]

    def joined(self, other: Resolution) -> Resolution:
        """Return both together; of entries for the same thing the own one stays."""
        splits = {entry.key: entry for entry in (*other.data, *self.data)}
        documents = {entry.key: entry for entry in (*other.specs, *self.specs)}
        return Resolution(
            data=tuple(splits[key] for key in sorted(splits)),
            specs=tuple(documents[key] for key in sorted(documents)),
        )


def read_resolution(content: Any) -> Resolution:
    """Return what a manifest records as ``resolved``; raises `pydantic.ValidationError` for anything else."""
    return Resolution.model_validate_json(json.dumps(content))


def resolve_plan(plan: Plan, catalog: Catalog) -> Resolution:
    """Return what the cells of a plan read and by which documents."""
    found: dict[tuple[str, ...], LockedSplit] = {}
    uses = _Uses()
    for cell in plan.cells:
        uses.add_cell(cell)
        for data, view in _data_of(cell):
            # What a source resolves to depends on nothing else, so that each is digested once.
            key = _key(data.ref.owner, data.ref.language, data.ref.split, view)
            if key not in found:
                found[key] = _locked_split(data, view)
    return _resolution(found.values(), uses, catalog)


def _key(owner: str, language: str, split: str, view: View) -> tuple[str, ...]:
    return (owner, language, split, json.dumps(dict(view), sort_keys=True) if view else "{}")


def _data_of(cell: Cell) -> Iterator[tuple[FoundData, View]]:
    # Of what is translated, the files before: the manifest has the translator, by its fingerprint.
    yield cell.test.untranslated, _item_view(cell.view, cell.spec)
    if cell.test.aligned is not None:
        yield cell.test.aligned, {}
    for _, data in () if cell.pool is None else cell.pool.parts:
        yield data, {}
    for stage in () if cell.fit is None else cell.fit.stages:
        for _, data in (*stage.train, *([] if stage.validation is None else [stage.validation])):
            yield data.untranslated, {}
    learning = cell.learning
    if learning is not None:
        own = learning.owner == cell.spec.task
        axes = {axis: cell.view[axis] for axis in cell.spec.axes} if own else {}
        learnt = (learning.train, learning.validation)
        yield from ((data, axes) for data in learnt if data is not None)
    if cell.prompt is not None and cell.prompt.pool is not None:
        yield cell.prompt.pool.found, {}


def _item_view(view: View, spec: TaskSpec) -> dict[str, str]:
    """Return the part of a view that chooses the items: variant and axes."""
    return {name: value for name, value in view.items() if name == "variant" or name in spec.axes}


class _Uses:
    """Names of the documents that are used besides those of the data."""

    def __init__(self) -> None:
        self.recipes: set[str] = set()
        self.prompts: set[str] = set()

    def add_cell(self, cell: Cell) -> None:
        self._add_prompt(cell.prompt)
        if cell.fit is not None:
            self.recipes.add(cell.fit.recipe)
            for stage in cell.fit.stages:
                self._add_prompt(stage.prompt)

    def _add_prompt(self, prompt: PromptPlan | None) -> None:
        for spec in () if prompt is None else (prompt.spec, prompt.inherited):
            if spec is not None:
                self.prompts.add(spec.prompt)


def _resolution(entries: Iterable[LockedSplit], uses: _Uses, catalog: Catalog) -> Resolution:
    splits = sorted(entries, key=lambda entry: entry.key)
    documents = [_document(catalog, "recipe", name) for name in uses.recipes]
    documents += [_document(catalog, "prompt", name) for name in uses.prompts]
    for owner in {entry.owner for entry in splits}:
        if owner in catalog.names("training"):
            documents.append(_document(catalog, "training", owner))
            continue
        documents.append(_document(catalog, "task", owner))
        fragments = catalog.task(owner).fragments
        for code in {entry.language for entry in splits if entry.owner == owner} & set(fragments):
            digest = _content_digest(fragments[code].data)
            name = f"{owner}:{code}"
            documents.append(LockedDocument(sort="extends", name=name, version=None, digest=digest))
        documents += _word_documents(
            catalog.task(owner), {entry.language for entry in splits if entry.owner == owner}
        )
    return Resolution(data=tuple(splits), specs=tuple(sorted(documents, key=lambda entry: entry.key)))


def _word_documents(entry: TaskEntry, codes: Collection[str]) -> Iterator[LockedDocument]:
    """Yield the fragments that bring nothing but words for prompts in some of the languages."""
    for (preset, code), given in sorted(entry.words.items()):
        if code in codes and entry.fragments.get(code) is not given.document:
            digest = _content_digest(given.document.data)
            name = f"{entry.spec.task}:{code}:{preset}"
            yield LockedDocument(sort="extends", name=name, version=None, digest=digest)


def _document(catalog: Catalog, sort: str, name: str) -> LockedDocument:
    data = catalog.entry(sort, name).document.data
    version = data.get("version")
    return LockedDocument(
        sort=sort,
        name=name,
        version=version if isinstance(version, int) else None,
        digest=_content_digest(data),
    )


def _content_digest(content: Any) -> str:
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _locked_split(data: FoundData, view: View) -> LockedSplit:
    files, ref = data.files, data.ref
    named = zip(files.paths, files.file_digests(), strict=True)
    return LockedSplit(
        owner=ref.owner,
        language=ref.language,
        split=ref.split,
        view=dict(sorted(view.items())),
        origin=files.origin,
        split_used=files.split_used,
        files=tuple(LockedFile(name=_relative(path, data), sha256=digest) for path, digest in named),
        hub=None
        if files.origin != "hub" or ref.hub is None
        else HubSplit(path=ref.hub.path, config=ref.hub.config, split=ref.hub.split, revision=files.revision),
        digest=data.digest(),
    )


def _relative(path: Path, data: FoundData) -> str:
    """Return a file's path below the data folder that it was found in, or its name in a cache of downloads."""
    sample = () if data.ref.sample is None else data.ref.sample.paths
    for pattern in (*(name for files in data.ref.local for name in files.paths), *sample):
        literal = "*".join(escape(part) for part in pattern.split("*"))
        if path.match(literal):
            return "/".join(path.parts[-len(Path(pattern).parts) :])
    return path.name


class TasksResolver:
    """Resolves selected tasks without a model: tests, pools, and the training data and prompts a model may need."""

    def __init__(
        self,
        catalog: Catalog,
        finder: DataFinder,
        *,
        train_languages: Sequence[str] = (),
        variants: Sequence[str] = (),
        recipe: str | None = None,
    ) -> None:
        self._catalog = catalog
        self._finder = finder
        self._train_languages = train_languages
        self._variants = ["original" if name == "zs" else name for name in variants or ("original",)]
        self._recipe = recipe
        self._found: dict[tuple[str, ...], LockedSplit] = {}
        self._uses = _Uses()
        self._reason: MissingDataError | None = None
        self._missing: dict[tuple[str, str], dict[str, None]] = {}

    @property
    def missing(self) -> list[str]:
        """Test splits and pools that were not found, as ``'xnli' (test) in sw th``."""
        return [
            f"{owner!r} ({split}) in {' '.join(codes)}" for (owner, split), codes in self._missing.items()
        ]

    def resolve(self, selected: Iterable[SelectedTask]) -> Resolution:
        """Return what the tasks resolve to.

        Raises `UnknownNameError` for a variant that none of them has, and `MissingDataError` where no test split
        was found at all.
        """
        selected = list(selected)
        known = {"original", *TRANSLATED}.union(*(item.entry.spec.variants for item in selected))
        for name in self._variants:
            if name not in known:
                raise UnknownNameError("variant", name, known)
        for item in selected:
            for code in item.languages:
                self._add_tests(item.entry, code)
            self._add_pool(item.entry, item.languages)
            self._add_training(item.entry)
        if not any(entry.split == "test" for entry in self._found.values()):
            raise MissingDataError(
                "No test split of the named tasks was found, so there is nothing to lock.",
                hint=None if self._reason is None else str(self._reason),
            )
        return _resolution(self._found.values(), self._uses, self._catalog)

    def _add_tests(self, entry: TaskEntry, code: str) -> None:
        spec = entry.spec
        for name in self._variants:
            if name in MACHINE_VARIANTS:
                self._add_beginning(entry, name, code)
                continue
            variant = spec.variants.get(name)
            if name != "original" and variant is None:
                continue
            source = spec.source(code, "test")
            source = source if variant is None else variant.splits.get("test", source)
            named = {} if name == "original" else {"variant": name}
            for values in itertools.product(*spec.axes.values()):
                conditions = dict(zip(spec.axes, values, strict=True))
                language, folder = entry.languages.get(code), entry.folders.get(code)
                self._add(source, spec.task, language, "test", folder, {**named, **conditions})

    def _add_beginning(self, entry: TaskEntry, variant: str, code: str) -> None:
        """Add the items that a translated variant begins with."""
        if entry.spec.translate is not None and code != source_language(entry.spec):
            source, begin = beginning(entry.spec, variant, code)
            folder = entry.folders.get(begin) or next(iter(entry.folders.values()), None)
            language = entry.languages.get(begin)
            self._add(source, entry.spec.task, language, "test", folder, {"variant": variant})

    def _add_pool(self, entry: TaskEntry, codes: Iterable[str]) -> None:
        spec = entry.spec
        if spec.pool_source is None:
            return
        for code in dict.fromkeys(part for asked in codes for part in entry.pool_languages(asked)):
            language, folder = entry.languages.get(code), entry.folders.get(code)
            self._add(spec.pool_source, spec.task, language, "candidates", folder)

    def _add_training(self, entry: TaskEntry) -> None:
        """Add training and dev sets in the languages that a model learns from, recipe, and all prompts."""
        spec = entry.spec
        self._add_prompts(spec.task)
        source = "en" if spec.transfer is None else spec.transfer.source
        stages = () if spec.transfer is None else spec.transfer.stages
        if spec.transfer is not None:
            self._uses.recipes.add(self._recipe or spec.transfer.recipe)
        for name in dict.fromkeys((spec.task, *stages)):
            self._add_prompts(name)
            for code in dict.fromkeys((*self._train_languages, source)):
                self._add_learning(name, entry, code)

    def _add_learning(self, name: str, entry: TaskEntry, code: str) -> None:
        if name in self._catalog.names("training"):
            training, found = self._catalog.training(name)
            if code in training.languages:
                language = described_languages(training.languages).get(code)
                for split in _LEARNED:
                    self._add(training.source(code, split), name, language, split, found.folder)
            return
        owner = entry if name == entry.spec.task else self._catalog.task(name)
        if code in owner.spec.languages:
            language, folder = owner.languages.get(code), owner.folders.get(code)
            for split in _LEARNED:
                self._add(owner.spec.source(code, split), name, language, split, folder)

    def _add_prompts(self, name: str) -> None:
        for preset in self._catalog.presets(name):
            spec = self._catalog.prompt(name, preset)
            self._uses.prompts.add(spec.prompt)
            if spec.literals_from is not None:
                self._uses.prompts.add(spec.literals_from)

    def _add(
        self,
        source: Source | None,
        owner: str,
        language: Language,
        split: str,
        folder: Any,
        view: View = MappingProxyType({}),
    ) -> None:
        if source is None:
            return
        conditions = {name: value for name, value in view.items() if name != "variant"}
        try:
            data = find_split(self._finder, source, owner, language, split, folder, conditions)
        except MissingDataError as error:
            if split in {"test", "candidates"}:
                self._missing.setdefault((owner, split), {})[language.code] = None
                self._reason = self._reason or error
            return
        entry = _locked_split(data, view)
        self._found[entry.key] = entry
