"""The pydantic models of every YAML document: tasks, training sets, suites, language fragments.

Strict and frozen; unknown keys are errors. `TaskSpec` is subclassed by every kind of task with the keys that
only this kind has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$")]
MadeName = r"[a-z][a-z0-9_]*:[A-Za-z0-9][A-Za-z0-9_.+\-]*"
"""Of a task that a source makes: ``PREFIX:NAME``."""
TaskName = Annotated[str, Field(pattern=rf"^(?:[a-z0-9][a-z0-9_\-]*|{MadeName})$")]
Code = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{1,8})*$")]
Split = Literal["train", "validation", "test"]
CodeSet = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Preset = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$")]
LiteralProvenance = Literal["native", "translated", "copied"]
Provenance = Literal["native", "human-translated", "machine-translated", "post-edited"]
ProtocolName = Literal[
    "zero_shot_transfer", "translate_train", "translate_train_all", "in_language", "frozen", "prompted"
]
Phrases = dict[str, dict[str, str]]
TRANSLATED = ("zs", "tt", "te", "bt")
"""Variants that every task with `translate` has: the human translation, and three that a translator makes."""
NAMED_READERS = ("csv", "jsonl", "json", "parquet")
"""Readers that are recognised by the ending of a file."""
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class SpecModel(BaseModel):
    """The base of all spec models: strict, frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class _ReadOtherwise(SpecModel):
    """How files are read; what is not given is as the split says."""

    reader: str | None = None
    columns: tuple[str, ...] | dict[str, str] | None = None
    where: dict[str, str] | None = None
    """As that of the split."""
    label_map: dict[str, str] | None = None
    options: dict[str, str] | None = None


class LocalSource(_ReadOtherwise):
    """One alternative among local files: paths that are read together, and what differs for them."""

    path: str | tuple[str, ...]
    """Below a folder that ``--data`` names; ``{language}`` is the code, and ``*`` takes many files."""
    split: Split | None = None
    """The split that this file really is, where it replaces another one."""
    only: dict[str, str | tuple[str, ...]] = {}
    """``language`` or an axis of the task -> the values that it serves; cells with others pass it over."""

    def serves(self, conditions: Mapping[str, str]) -> bool:
        """Return whether it is for a cell; a condition that is not known, or still ``{axis}``, rules nothing out."""
        for name, accepted in self.served.items():
            value = conditions.get(name)
            if value is not None and value != f"{{{name}}}" and value not in accepted:
                return False
        return True

    @property
    def served(self) -> dict[str, tuple[str, ...]]:
        """``language`` or axis -> the values that it serves."""
        return {name: (value,) if isinstance(value, str) else value for name, value in self.only.items()}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, relative to a data folder."""
        return (self.path,) if isinstance(self.path, str) else self.path


class WebSource(_ReadOtherwise):
    """A file on the web, or members of an archive there; ``{code}`` names are filled as in paths of files."""

    url: Annotated[str, Field(pattern=r"^https://[^/\s]+/\S+$")]
    """The address, https alone; it may hold ``{code}``."""
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64}|\{\w+\})$")] | None = None
    """Of the download, or a ``{code}``; where it has not been seen yet, the lock file keeps that of the first use."""
    md5: Annotated[str, Field(pattern=r"^([0-9a-f]{32}|\{\w+\})$")] | None = None
    """Where the publisher gives no SHA-256."""
    member: str | tuple[str, ...] = ()
    """Of a zip or tar archive: paths inside; in a name, ``*`` takes many, and ``[...]`` chooses a letter."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The members, or the address of the file."""
        return ((self.member,) if isinstance(self.member, str) else self.member) or (self.url,)


class HubSource(SpecModel):
    """A split of a dataset on the Hugging Face Hub."""

    path: str
    """The dataset, as ``owner/name``; ``{code}`` names are filled as in paths of files."""
    split: str
    files: str | tuple[str, ...] = ()
    """The files of the repository that are the split, read as they are by `reader`; patterns such as
    ``{language}/test/*.parquet``. Without them, the dataset's card says which they are."""
    config: str | None = None
    """The dataset's configuration; often ``{language}``. ``a+b`` reads several, and ``*`` all, with a column ``config``
    that has the name of each row's."""
    revision: str | None = None
    """A commit hash; null means that it is not pinned yet."""
    reader: str = "parquet"
    columns: dict[str, str] | None = None
    where: dict[str, str] | None = None
    """As that of the split."""
    label_map: dict[str, str] | None = None
    options: dict[str, str] = {}
    lacks: dict[str, str] = {}
    """Languages that must not be taken from here, with the reason."""
    note: str = ""
    """What makes scores on it differ from the benchmark's; shown in reports."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the split, where the spec names them."""
        return (self.files,) if isinstance(self.files, str) else self.files


class Source(SpecModel):
    """Where one split of one language comes from. ``{code}`` names in paths are filled from the language table."""

    local: str | tuple[str | LocalSource, ...] | None = None
    """Files below the folders that ``--data`` names; of a list, the first whose files exist."""
    hub: HubSource | None = None
    """What ``--data hub`` reads."""
    web: WebSource | None = None
    """What it reads instead, where the published file is on the web and not on the Hub."""
    sample: str | LocalSource | None = None
    """Below the folder ``sample`` next to the spec: JSON lines, or what the reader that it names reads."""
    reader: str | None = None
    """None goes by the files' ending: ``.csv``, ``.jsonl``, ``.json``, ``.parquet``; all others are ``tsv``."""
    columns: tuple[str, ...] | dict[str, str] | None = None
    where: dict[str, str] | None = None
    """Column -> value of the rows that are read; a value may hold ``{language}`` or another code, and ``*`` for any
    text."""
    label_map: dict[str, str] | None = None
    options: dict[str, str] = {}

    @model_validator(mode="after")
    def _has_one_download(self) -> Source:
        if self.hub is not None and self.web is not None:
            raise ValueError("'hub' and 'web' exclude each other: name the one that has the published data")
        return self

    def reader_of(self, item: LocalSource | WebSource) -> str:
        """Return the reader of files: their own, the source's, or the one that is named like their ending."""
        ending = item.paths[0].rpartition(".")[2].lower()
        return item.reader or self.reader or (ending if ending in NAMED_READERS else "tsv")

    def read_like(self, shared: Source) -> Source:
        """Return a source that is read as another one is: reader, columns, options and labels that it does not give.

        Columns and options belong to a reader, so that a source with another reader takes none of them. What lies
        where is never taken.
        """
        update = _reading(self, shared)
        if self.hub is not None and shared.hub is not None:
            update["hub"] = self.hub.model_copy(update=_reading(self.hub, shared.hub))
        return self.model_copy(update=update)

    @property
    def alternatives(self) -> tuple[LocalSource, ...]:
        """The local alternatives in order; the first whose files exist wins."""
        if self.local is None:
            return ()
        listed = (self.local,) if isinstance(self.local, str) else self.local
        return tuple(_local(item) if isinstance(item, str) else item for item in listed)


@lru_cache(maxsize=1024)
def _local(path: str) -> LocalSource:
    return LocalSource(path=path)


def _reading(own: Source | HubSource, shared: Source | HubSource) -> dict[str, Any]:
    """Return how a source is read as far as only the shared one says it."""
    keys = {"label_map"}
    if "reader" not in own.model_fields_set or own.reader == shared.reader:
        keys |= {"reader", "columns", "where", "options"}
    return {key: getattr(shared, key) for key in keys - own.model_fields_set}


class LanguageEntry(SpecModel):
    """What a task has for one language. A split that is not given is taken from the task's `splits`."""

    train: Source | None = None
    """The training items."""
    validation: Source | None = None
    """The items of the development set."""
    test: Source | None = None
    """The items that are scored."""
    provenance: Provenance | None = None
    """How the test items were made; must be given in a fragment."""
    name: str | None = None
    """For a language that is missing in the table (``harness languages``): its name."""
    script: Annotated[str, Field(pattern=r"^[A-Z][a-z]{3}$")] | None = None
    """For such a language: its script as ISO 15924 code, ``Latn``."""
    family: str | None = None
    """For such a language: its family."""
    flores: Annotated[str, Field(pattern=r"^[a-z]{3}_[A-Z][a-z]{3}$")] | None = None
    """FLORES-200 code of a language that is missing in the table, which NLLB and similar models use: ``pfl_Latn``."""
    segmentation: Literal["space", "character"] | None = None
    """How words are separated in a language that is missing in the table; None means ``space``."""
    codes: dict[CodeSet, str] = {}
    """The language's names for braces in the task's paths, where they are not those of `codes` of the task."""
    parallel: bool = True
    """False in a task with `parallel`: these items are others than those of the same ids in other languages."""


class Transfer(SpecModel):
    """How a model is fine-tuned for a task: which training sets, in which language, by which recipe."""

    source: Code = "en"
    """The language of the training data."""
    stages: tuple[str, ...] = Field(min_length=1)
    """Training sets one after the other: names of documents with `training`, or of tasks with a `train` split."""
    recipe: Name = "xtreme_r"
    """The training settings."""


class Release(SpecModel):
    """A published version of a test set, recognised by its number of items."""

    counts: Annotated[int, Field(ge=1)] | dict[Code, Annotated[int, Field(ge=1)]]
    """Its items: one number for all languages, or one per language."""
    split: Split = "test"
    """The split that it is: a development set in place of the test set is no release of the test set."""
    note: str = ""
    """What makes scores on it differ from the others'; shown in reports."""

    def count(self, language: str) -> int | None:
        """Return the number of items in a language, or None where this release does not have it."""
        return self.counts if isinstance(self.counts, int) else self.counts.get(language)


class Variant(SpecModel):
    """Other files for the same items, chosen with ``--variants``."""

    description: str
    """What is different in it."""
    splits: dict[Split, Source] = Field(min_length=1)
    """Its files by split."""


class Translate(SpecModel):
    """Which texts of an item are translated where a variant or a training set is made by translation."""

    fields: tuple[str, ...] = Field(min_length=1)
    """Never labels: those are the source item's."""
    answers: str | None = None
    """Field with gold spans of the field ``context``, which are looked for again in its translation."""
    source: Source | None = None
    """The source language's test items, where `languages` does not have them (COPA for XCOPA)."""
    tt: Source | None = None
    """The items that `tt` translates, where they are not the language's own (MLQA: English contexts)."""
    te: Source | None = None
    """The items that `te` translates, where they are not the source language's."""
    released: Source | None = None
    """Published translations of the training set, with their own answer spans: ``--translator released`` reads them;
    ``{language}`` is the language that they are in."""


class _WithLanguages(SpecModel):
    splits: dict[Split, Source] = {}
    """By split: the source of all languages that give none themselves."""
    languages: dict[Code, LanguageEntry | None] = Field(min_length=1)
    """By code: what is specific to a language; null or ``{}`` for nothing."""
    codes: dict[CodeSet, dict[Code | Literal["default"], str]] = {}
    """Further names for braces in paths and configs: name -> language (or ``default``) -> its code there. A code may
    name columns of the language table: ``{default: "{iso639_3}", zh: zho-CN}``."""
    provenance: Provenance | None = None
    """How the test items of all languages were made that do not say it themselves."""
    sizes: dict[Literal["train", "validation"], Annotated[int, Field(ge=1)]] = {}
    """Published numbers of items in the language that models are trained on; `releases` has those of test sets."""

    def source(self, language: str, split: Split) -> Source | None:
        """Return the source of a split in a language, or None where the spec has no such split.

        A language's own source is read as the task's is, where it does not say how.
        """
        entry, shared = self.languages.get(language), self.splits.get(split)
        if language not in self.languages:
            return None
        if entry is not None and split in entry.model_fields_set:
            source: Source | None = getattr(entry, split)
            return source.read_like(shared) if source is not None and shared is not None else source
        return shared

    def names_of(self, language: str) -> dict[str, str]:
        """Return the code of a language in every set of `codes`; a set that does not have the language is missing."""
        entry = self.languages.get(language)
        codes = {} if entry is None else entry.codes
        sets = {name: table.get(language, table.get("default")) for name, table in self.codes.items()}
        return {name: code for name, code in (sets | codes).items() if code is not None}

    @model_validator(mode="after")
    def _has_a_source(self) -> _WithLanguages:
        empty = [code for code in self.languages if not any(self.source(code, split) for split in SPLITS)]
        if empty:
            raise ValueError(f"no split is given for {', '.join(empty)}: add it there or under 'splits'")
        return self


class TaskSpec(_WithLanguages):
    """What all tasks have. Every kind adds its own keys in a subclass."""

    task: TaskName
    """The name."""
    kind: Name
    version: Annotated[int, Field(ge=1)]
    description: str = ""
    citation: str = ""
    license: str = ""
    """These three may be empty in a task that is not published."""
    domain: str = ""
    """What its texts are about or from: ``Wikipedia``, ``news``."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """The first one is the task's headline; `score_metrics` says what a task score averages."""
    score_metrics: tuple[str, ...] = ()
    """Metrics whose mean is the task's score; the first metric where nothing is given."""
    metric_options: dict[str, str] = {}
    """Options of the metrics, by name."""
    cluster: str | None = None
    """Field whose equal values mark items that are resampled together."""
    draw: Literal["items", "clusters"] = "items"
    """What ``--limit N`` draws: N items, or N clusters with all of their items (the cases of a checklist)."""
    groups: tuple[Name, ...] = ()
    """Groups of its items, such as the tests of a checklist, in the order of reports; a mean over fewer is marked."""
    parallel: bool = False
    """Whether an item id means the same item in every language."""
    protocols: tuple[ProtocolName, ...] = ("zero_shot_transfer",)
    """The protocols that are run when the user names none, as far as a model can."""
    transfer: Transfer | None = None
    """How models are fine-tuned for it; null where they are not."""
    chance: Annotated[float, Field(ge=0, le=1)] | None = None
    """The score of guessing in the first of `metrics`, where it is known; reports show it under no other metric."""
    variants: dict[Name, Variant] = {}
    """Further versions of the test items by name; `original` always names the task's own."""
    axes: dict[Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")], tuple[Name, ...]] = {}
    """Conditions that cross every language: axis -> its values, which fill ``{axis}`` in paths and enter the view."""
    translate: Translate | None = None
    """Which texts the variants `tt`, `te` and `bt` translate."""
    releases: dict[str, Release] = {}
    """Known releases of the test set by name."""

    @field_validator("score_metrics", mode="after")
    @classmethod
    def _are_metrics(cls, value: tuple[str, ...], info: Any) -> tuple[str, ...]:
        unknown = [name for name in value if name not in info.data.get("metrics", value)]
        if unknown:
            raise ValueError(f"{', '.join(unknown)} is not among 'metrics'")
        return value

    def pairs(self, language: str) -> bool:
        """Return whether the items of a language are those of the same ids in the task's other languages."""
        entry = self.languages.get(language)
        return self.parallel and (entry is None or entry.parallel)

    @property
    def unpaired(self) -> list[str]:
        """The languages of a parallel task whose items are others than those of the same ids elsewhere."""
        return [code for code in self.languages if self.parallel and not self.pairs(code)]

    @property
    def gap_source(self) -> str | None:
        """The language whose score minus the mean of the others is the gap: that of the training data."""
        return None if self.transfer is None else self.transfer.source

    def provenance_of(self, language: str) -> Provenance | None:
        """Return how the test items of a language were made, or None where the spec does not say."""
        entry = self.languages.get(language)
        return self.provenance if entry is None or entry.provenance is None else entry.provenance

    @property
    def headline(self) -> tuple[str, ...]:
        """The metrics whose mean is the score of the task."""
        return self.score_metrics or self.metrics[:1]

    @property
    def chance_level(self) -> float | None:
        """The score of guessing: `chance`, or that of one of the labels where `accuracy` is the first metric."""
        count = 0 if getattr(self, "fewer_choices", False) else len(self.label_names)
        is_derived = self.chance is None and count > 1 and self.metrics[0] == "accuracy"
        return 1 / count if is_derived else self.chance

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels in the order of the spec; empty for kinds without labels."""
        return tuple(getattr(self, "labels", ()))

    @property
    def input_names(self) -> tuple[str, ...]:
        """The input fields in the order they are given to a model; empty for kinds without `inputs`."""
        return tuple(getattr(self, "inputs", ()))

    @property
    def input_phrases(self) -> Phrases:
        """Field -> value in the file -> the words a model gets for it."""
        return getattr(self, "phrases", {})

    def row_words(self, language: str) -> dict[str, str]:
        """Return the words of the spec that a kind needs to read a language's rows; empty for most kinds."""
        return {}

    @property
    def answer_language(self) -> str | None:
        """The language of all answers, where it is not that of the cell: of translations into one language."""
        return None

    @property
    def pool_source(self) -> Source | None:
        """Where the candidates of a retrieval task are; None for kinds without a pool of their own."""
        return None

    @property
    def pools_languages(self) -> bool:
        """Whether every language of the task adds its candidates to one pool."""
        return False

    @field_validator("variants", mode="after")
    @classmethod
    def _original_is_taken(cls, value: dict[str, Variant]) -> dict[str, Variant]:
        reserved = sorted({"original", *TRANSLATED} & value.keys())
        if "original" in reserved:
            raise ValueError("'original' names the task's own files; give this variant another name")
        if reserved:
            raise ValueError(
                f"{reserved[0]!r} names items made by translation; give this variant another name"
            )
        return value

    def release_of(self, language: str, size: int, split: str = "test") -> str | None:
        """Return the name of the release of a split that has so many items in a language, or None where none has."""
        return next(
            (name for name, count in self.known_releases(language, split).items() if count == size), None
        )

    def known_releases(self, language: str, split: str = "test") -> dict[str, int]:
        """Return the releases of a split with their numbers of items in a language, where these are known."""
        counts = {
            name: release.count(language) for name, release in self.releases.items() if release.split == split
        }
        return {name: count for name, count in counts.items() if count is not None}


class TrainingSpec(_WithLanguages):
    """A training set that tasks share: ``stages: [mnli]`` names it."""

    training: Name
    """The name."""
    kind: Name
    version: Annotated[int, Field(ge=1)]
    description: str
    citation: str
    license: str
    inputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    phrases: Phrases = {}
    translate: Translate | None = None
    """Which texts a translated training set translates."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels in the order of the document."""
        return self.labels

    @property
    def input_names(self) -> tuple[str, ...]:
        """The input fields in the order they are given to a model."""
        return self.inputs

    @property
    def input_phrases(self) -> Phrases:
        """Field -> value in the file -> the words a model gets for it."""
        return self.phrases


class SuiteSpec(SpecModel):
    """A named list of tasks with the categories of its published average."""

    suite: Name
    """The name."""
    description: str
    citation: str
    protocol: ProtocolName
    tasks: tuple[Name, ...] = Field(min_length=1)
    """Their names, in the order of tables."""
    categories: dict[str, tuple[Name, ...]] = {}
    """By category: its tasks; the score averages over them."""
    views: dict[Name, dict[str, str]] = {}
    """Task -> the values of its axes with which it counts, where other tasks do not have the axis."""
    languages: dict[Name, Annotated[tuple[Code, ...], Field(min_length=1)]] = {}
    """Task -> the languages that are run and averaged, where the task has more of them."""
    metrics: dict[Name, Annotated[tuple[Name, ...], Field(min_length=1)]] = {}
    """Task -> the metrics whose mean counts, where it is not the task's score."""
    compared: dict[str, Annotated[tuple[Code, ...], Field(min_length=1)]] = {}
    """Benchmark -> its languages, where the suite's paper prints its diversity indices, too."""
    notes: dict[Literal["average", "script", "datasets", "family_index", "typology_index"], str] = {}
    """What the published average is, and why the suite's paper prints other values than
    ``harness languages --suite`` shows."""

    @model_validator(mode="after")
    def _categories_name_tasks(self) -> SuiteSpec:
        unknown = sorted({name for names in self.categories.values() for name in names} - set(self.tasks))
        if unknown:
            raise ValueError(f"categories name {', '.join(unknown)}, which 'tasks' does not have")
        for key in ("views", "languages", "metrics"):
            unknown = sorted(set(getattr(self, key)) - set(self.tasks))
            if unknown:
                raise ValueError(f"{key} name {', '.join(unknown)}, which 'tasks' does not have")
        return self

    def includes(self, task: str, language: str) -> bool:
        """Return whether a language of a task counts in the suite."""
        return language in self.languages.get(task, (language,))


def source_language(spec: TaskSpec) -> str:
    """Return the language that a task's items were written in and its labels come from."""
    return "en" if spec.transfer is None else spec.transfer.source
