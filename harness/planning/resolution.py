"""The resolution of a plan or a selection of tasks: every split with its files and digests, every document used."""

from __future__ import annotations

import hashlib
import itertools
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.data.origin import Origin
from harness.data.resolve import DataOrigin
from harness.data.sources import DataFinder, FoundData
from harness.errors import MissingDataError, UnknownNameError
from harness.planning.plan import Cell, Plan
from harness.planning.translations import MACHINE_VARIANTS, beginning
from harness.specs.catalog import Catalog
from harness.specs.loading import Document
from harness.specs.schema import TRANSLATED, Source, Split, TaskSpec, source_language
from harness.specs.selection import SelectedTask
from harness.specs.task_entry import TaskEntry

View = Mapping[str, str]
LEARNED: tuple[Split, ...] = ("train", "validation")
"""The splits that a model may learn from."""
READ_OTHERWISE = "the same files are read in another way, with another reader, columns, options or labels"
ORDER = ("task", "training", "extends", "prompt", "recipe")
"""The order in which differences are reported where several documents differ."""
WORDS = {"training": "training set", "extends": "added language"}
"""What the sorts of `LockedDocument` are called, where that is another word."""


class LockEntry(BaseModel):
    """The base of what a lock file holds: strict, frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


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


class WebDownload(LockEntry):
    """The file on the web, or the archive there, that a split is from."""

    url: str
    sha256: str
    first_use: bool = False
    """Whether no spec names the checksum: it is that of the file which was met first."""


class LockedEntry(LockEntry):
    """A split or a document, which two resolutions can both have."""

    digest: str

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """Key that two entries for the same split or document share."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """``data of 'xnli' in 'sw' (test)``, or ``document of the task 'xnli'``."""

    @abstractmethod
    def difference(self, other: Any, holder: str) -> str:
        """Return the differences from `other`, which is of `holder`, as a clause."""


class LockedSplit(LockedEntry):
    """One split of one language of a task or training set, and what it was read from."""

    owner: str
    language: str
    split: str
    view: dict[str, str] = {}
    """Variant and axes of the items, where the task has them."""
    origin: DataOrigin
    split_used: str
    files: tuple[LockedFile, ...]
    hub: HubSplit | None = None
    web: WebDownload | None = None
    digest: str
    """`harness.data.sources.FoundData.digest`: the files and how they are read."""
    made_from: dict[str, str] | None = None
    """How generated files were made, as they record it themselves."""

    @property
    def key(self) -> tuple[str, ...]:
        """Return owner, language, split and view."""
        return _key(self.owner, self.language, self.split, self.view)

    @property
    def title(self) -> str:
        """``'xnli' in 'sw' (test)``."""
        view = "".join(f", {name} {value}" for name, value in sorted(self.view.items()))
        return f"{self.owner!r} in {self.language!r} ({self.split}{view})"

    @property
    def subject(self) -> str:
        """Return ``data of 'xnli' in 'sw' (test)``."""
        return f"data of {self.title}"

    @property
    def place(self) -> str:
        """Where the files were found."""
        if self.web is not None:
            return f"{self.web.url} with SHA-256 {self.web.sha256}"
        if self.hub is None:
            return {
                "local": "a data folder",
                "sample": "the embedded sample",
                "hub": "the Hub",
                "web": "the web",
            }[self.origin]
        return f"the Hub dataset {self.hub.path!r} at revision {self.hub.revision or 'unknown'}"

    def difference(self, other: Any, holder: str) -> str:
        """Return the place, or a file with both digests, or that files are read in another way."""
        if self.place != other.place:
            return f"they come from {self.place}, and {holder} has {other.place}"
        digests = {file.name: file.sha256 for file in other.files}
        for file in self.files:
            if file.name not in digests:
                return f"{holder} has no file {file.name!r}, but {', '.join(map(repr, digests))}"
            if digests[file.name] != file.sha256:
                return (
                    f"the file {file.name!r} has SHA-256 {file.sha256}, and {holder} has {digests[file.name]}"
                )
        if len(self.files) != len(other.files):
            return f"{len(self.files)} files were found, and {holder} has {len(other.files)}"
        return READ_OTHERWISE

    @property
    def pinned(self) -> bool:
        """Whether the same files can be fetched again by name: those of a Hub dataset only by their commit."""
        return self.origin != "hub" or (self.hub is not None and self.hub.revision is not None)


class LockedDocument(LockedEntry):
    """A document that was used."""

    sort: str
    """``task``, ``training``, ``recipe``, ``prompt``, or ``extends`` for a language of another package."""
    name: str
    version: int | None
    """Null for sorts of documents without versions."""
    digest: str
    """SHA-256 of its content, whatever its layout and comments."""

    @property
    def key(self) -> tuple[str, ...]:
        """Return sort and name."""
        return (self.sort, self.name)

    @property
    def subject(self) -> str:
        """Return ``document of the task 'xnli'``."""
        return f"document of the {WORDS.get(self.sort, self.sort)} {self.name!r}"

    def difference(self, other: Any, holder: str) -> str:
        """Return both versions, or that the content differs."""
        if self.version != other.version:
            return f"it has version {self.version}, and {holder} has version {other.version}"
        return "its content is another one"


class Resolution(LockEntry):
    """All data and documents that numbers depend on, each once, sorted."""

    data: tuple[LockedSplit, ...]
    specs: tuple[LockedDocument, ...]

    @property
    def entries(self) -> list[LockedEntry]:
        """All entries, documents first."""
        return [*sorted(self.specs, key=lambda entry: ORDER.index(entry.sort)), *self.data]

    def diff(self, other: Resolution) -> list[tuple[LockedEntry, LockedEntry | None]]:
        """Return the own entries that another resolution has otherwise or (then with None) does not have.

        What only the other has makes no difference: the lock of a suite serves each of its tasks.
        """
        by_key = {entry.key: entry for entry in other.entries}
        pairs = [(entry, by_key.get(entry.key)) for entry in self.entries]
        return [(here, there) for here, there in pairs if there is None or there.digest != here.digest]

    def joined(self, other: Resolution) -> Resolution:
        """Return both together; of entries for the same thing the own one stays."""
        splits = {entry.key: entry for entry in (*other.data, *self.data)}
        documents = {entry.key: entry for entry in (*other.specs, *self.specs)}
        return Resolution(
            data=tuple(splits[key] for key in sorted(splits)),
            specs=tuple(documents[key] for key in sorted(documents)),
        )


def read_resolution(content: Any) -> Resolution:
    """Return the record ``resolved`` of a manifest; raises `pydantic.ValidationError` for anything else."""
    return Resolution.model_validate_json(json.dumps(content))


def resolve_plan(plan: Plan, catalog: Catalog) -> Resolution:
    """Return the splits that the cells of a plan read, and the documents that describe them."""
    splits: dict[tuple[str, ...], LockedSplit] = {}
    used: set[tuple[str, str]] = set()
    for cell in plan.cells:
        stages = () if cell.fit is None else cell.fit.stages
        used |= set() if cell.fit is None else {("recipe", cell.fit.recipe)}
        for prompt in (cell.prompt, *(stage.prompt for stage in stages)):
            specs = () if prompt is None else (prompt.spec, prompt.inherited)
            used |= {("prompt", spec.prompt) for spec in specs if spec is not None}
        for data, view in cell_data(cell):
            # What a source resolves to depends on nothing else, so that each is digested once.
            key = _key(data.ref.owner, data.ref.language, data.ref.split, view)
            if key not in splits:
                splits[key] = _locked_split(data, view)
    return _resolution(splits.values(), used, catalog)


def _key(owner: str, language: str, split: str, view: View) -> tuple[str, ...]:
    return (owner, language, split, json.dumps(dict(view), sort_keys=True) if view else "{}")


def cell_data(cell: Cell) -> Iterator[tuple[FoundData, View]]:
    """Yield every split that a cell and its training read, as its files are, with the part of the view that it has."""
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
        is_own_task = learning.owner == cell.spec.task
        axes = {axis: cell.view[axis] for axis in cell.spec.axes} if is_own_task else {}
        learnt = (learning.train, learning.validation)
        yield from ((data, axes) for data in learnt if data is not None)
    if cell.prompt is not None and cell.prompt.pool is not None:
        yield cell.prompt.pool.found, {}


def _item_view(view: View, spec: TaskSpec) -> dict[str, str]:
    """Return the part of a view that chooses the items: variant and axes."""
    return {name: value for name, value in view.items() if name == "variant" or name in spec.axes}


def _resolution(entries: Iterable[LockedSplit], used: set[tuple[str, str]], catalog: Catalog) -> Resolution:
    """Return splits with their documents and those that are `used` besides, by sort and name."""
    splits = sorted(entries, key=lambda entry: entry.key)
    documents = [_document(sort, name, catalog.entry(sort, name).document) for sort, name in used]
    for owner in {entry.owner for entry in splits}:
        sort = "training" if owner in catalog.names("training") else "task"
        documents.append(_document(sort, owner, catalog.entry(sort, owner).document))
        if sort == "training":
            continue
        task, codes = catalog.task(owner), {entry.language for entry in splits if entry.owner == owner}
        fragments = {(code,): document for code, document in task.fragments.items()}
        words = {
            (code, preset): added.document
            for (preset, code), added in task.words.items()
            if task.fragments.get(code) is not added.document
        }
        documents += [
            _document("extends", ":".join((owner, *path)), document)
            for path, document in (*fragments.items(), *words.items())
            if path[0] in codes
        ]
    return Resolution(data=tuple(splits), specs=tuple(sorted(documents, key=lambda entry: entry.key)))


def _document(sort: str, name: str, document: Document) -> LockedDocument:
    version = None if sort == "extends" else document.data.get("version")
    text = json.dumps(document.data, ensure_ascii=False, sort_keys=True)
    return LockedDocument(
        sort=sort,
        name=name,
        version=version if isinstance(version, int) else None,
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _locked_split(data: FoundData, view: View) -> LockedSplit:
    files, ref = data.files, data.ref
    digests = zip(files.paths, files.file_digests(), strict=True)
    return LockedSplit(
        owner=ref.owner,
        language=ref.language,
        split=ref.split,
        view=dict(sorted(view.items())),
        origin=files.origin,
        split_used=files.split_used,
        files=tuple(LockedFile(name=_relative(path, data), sha256=digest) for path, digest in digests),
        hub=None
        if files.origin != "hub" or ref.hub is None
        else HubSplit(path=ref.hub.path, config=ref.hub.config, split=ref.hub.split, revision=files.revision),
        web=None
        if ref.web is None or files.origin != "web" or files.revision is None
        else WebDownload(
            url=ref.web.url, sha256=files.revision.removeprefix("sha256:"), first_use=not files.pinned
        ),
        digest=data.digest(),
        made_from=dict(data.made_from) or None,
    )


def _relative(path: Path, data: FoundData) -> str:
    """Return a file's path below the data folder that it was found in, or its name in a cache of downloads."""
    sample = () if data.ref.sample is None else data.ref.sample.paths
    for pattern in (*(name for files in data.ref.local for name in files.paths), *sample):
        literal = "*".join(escape(piece) for piece in pattern.split("*"))
        if path.match(literal):
            return "/".join(path.parts[-len(Path(pattern).parts) :])
    return path.name


Wanted = tuple[Origin, str, str, View, Source | None]
"""A split that tasks may need: origin, language, split, view, and another source than that of the split."""


def resolve_tasks(
    catalog: Catalog,
    finder: DataFinder,
    selected: Iterable[SelectedTask],
    *,
    train_languages: Sequence[str] = (),
    variants: Sequence[str] = (),
    recipe: str | None = None,
) -> tuple[Resolution, list[str]]:
    """Return the resolution of tasks without a model, and the missing tests and pools as ``'xnli' (test) in sw th``.

    It has the tests, the pools, and the training data and prompts that a model may need.

    Raises `UnknownNameError` for a variant that none of the tasks has, and `MissingDataError` where no test split
    was found at all.
    """
    tasks = [(item.entry, item.languages) for item in selected]
    names = ["original" if name == "zs" else name for name in variants or ("original",)]
    known_variants = {"original", *TRANSLATED}.union(*(entry.spec.variants for entry, _ in tasks))
    for name in names:
        if name not in known_variants:
            raise UnknownNameError("variant", name, known_variants)
    splits: dict[tuple[str, ...], LockedSplit] = {}
    missing: dict[tuple[str, str], dict[str, None]] = {}
    reason: MissingDataError | None = None
    used: set[tuple[str, str]] = set()
    for entry, codes in tasks:
        used |= _documents_of(entry.spec, catalog, recipe)
        for origin, code, split, view, source in (
            *_tests(entry, codes, names),
            *_pool(entry, codes),
            *_learned(entry, catalog, train_languages),
        ):
            if source is None and origin.source(code, split) is None:
                continue
            conditions = {axis: value for axis, value in view.items() if axis != "variant"}
            try:
                data = origin.find(finder, code, split, conditions, source=source)
            except MissingDataError as error:
                if split in {"test", "candidates"}:
                    missing.setdefault((origin.name, split), {})[code] = None
                    reason = reason or error
                continue
            locked = _locked_split(data, view)
            splits[locked.key] = locked
    if not any(locked.split == "test" for locked in splits.values()):
        raise MissingDataError(
            "No test split of the named tasks was found, so there is nothing to lock.",
            hint=None if reason is None else str(reason),
        )
    titles = [f"{owner!r} ({split}) in {' '.join(codes)}" for (owner, split), codes in missing.items()]
    return _resolution(splits.values(), used, catalog), titles


def _tests(entry: TaskEntry, codes: Iterable[str], variants: Sequence[str]) -> Iterator[Wanted]:
    """Yield the test splits of variants; of translated ones, the items that they begin with."""
    spec, origin = entry.spec, Origin.of(entry)
    for code, name in itertools.product(codes, variants):
        if name in MACHINE_VARIANTS:
            if spec.translate is not None and code != source_language(spec):
                source, begin = beginning(spec, name, code)
                if source is not None:
                    yield origin, begin, "test", {"variant": name}, source
        elif name == "original" or name in spec.variants:
            source = None if name == "original" else spec.variants[name].splits.get("test")
            named = {} if name == "original" else {"variant": name}
            for values in itertools.product(*spec.axes.values()):
                yield origin, code, "test", {**named, **dict(zip(spec.axes, values, strict=True))}, source


def _pool(entry: TaskEntry, codes: Iterable[str]) -> Iterator[Wanted]:
    source = entry.spec.pool_source
    pool_codes = (code for language in codes for code in entry.pool_languages(language))
    for code in dict.fromkeys(pool_codes) if source is not None else ():
        yield Origin.of(entry), code, "candidates", {}, source


def _learned(entry: TaskEntry, catalog: Catalog, train_languages: Sequence[str]) -> Iterator[Wanted]:
    """Yield training and dev sets in the languages that a model learns from."""
    codes = dict.fromkeys((*train_languages, source_language(entry.spec)))
    for name, code, split in itertools.product(_owners(entry.spec), codes, LEARNED):
        yield (
            Origin.of(entry) if name == entry.spec.task else Origin.named(name, catalog),
            code,
            split,
            {},
            None,
        )


def _owners(spec: TaskSpec) -> Iterable[str]:
    """Return the names of a task and of the training sets of its stages."""
    return dict.fromkeys((spec.task, *(spec.transfer.stages if spec.transfer else ())))


def _documents_of(spec: TaskSpec, catalog: Catalog, recipe: str | None) -> set[tuple[str, str]]:
    """Return the recipe and all prompts that a model may need, by sort and name."""
    prompts = [catalog.prompt(name, preset) for name in _owners(spec) for preset in catalog.presets(name)]
    names = {name for prompt in prompts for name in (prompt.prompt, prompt.literals_from) if name is not None}
    recipes = {("recipe", recipe or spec.transfer.recipe)} if spec.transfer else set()
    return {("prompt", name) for name in names} | recipes
