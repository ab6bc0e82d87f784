"""The records of ``results.json`` and ``manifest.json``: schema 1, as it is on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from harness.errors import DataError
from harness.storage.model_name import model_name

SCHEMA = 1
STOPPED = "the run was stopped before this cell"
"""The reason of a cell that a stopped run did not come to."""


class DamagedRunError(DataError, KeyError):
    """A file of a run has no key that a command needs, or another type of value."""

    __str__ = DataError.__str__


class Entry(BaseModel):
    """An object of a run's JSON files. What an older run does not have is at its default, and is not written."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        populate_by_name=True,
        ser_json_inf_nan="constants",
        allow_inf_nan=False,
        defer_build=True,
    )

    @classmethod
    def read(cls, content: Mapping[str, Any], path: Path, hint: str) -> Self:
        """Return the content of a file typed; raises `DamagedRunError` that names the first faulty key.

        Every number is a finite JSON number, a score is a fraction, and a name has nothing that leads to another
        folder: scores are compared, published and written into paths without a further look.
        """
        try:
            if (key := _not_finite(content)) is not None:
                raise DamagedRunError(f"{path} is damaged at {key!r}: expected a finite number.", hint=hint)
            return cls.model_validate_json(json.dumps(content), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            location, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
            raise DamagedRunError(f"{path} is damaged at {location!r}: {reason}.", hint=hint) from error

    def has(self, name: str) -> bool:
        """Return whether the file has the key; what it does not have is at its default."""
        return name in self.model_fields_set

    def changed(self, **values: Any) -> Self:
        """Return a copy with other values."""
        return self.model_copy(update=values)

    def to_json(self) -> dict[str, Any]:
        """Return the object as it is on disk."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _not_finite(content: Any, place: str = "") -> str | None:
    """Return the key of the first NaN or infinity of a JSON value; None where there is none."""
    if isinstance(content, float):
        return None if math.isfinite(content) else place
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    return next(
        (
            key
            for name, value in pairs
            if isinstance(value, dict | list | float)
            and (key := _not_finite(value, f"{place}.{name}".lstrip("."))) is not None
        ),
        None,
    )


def _check_fraction(metric: str, values: Iterable[float | None]) -> None:
    """Raise `ValueError` for a score that is no fraction; ratios and users' programs have scales of their own."""
    if metric.startswith("command:") or metric.endswith("_ratio"):
        return
    for value in values:
        if value is not None and abs(value) > 1:
            raise ValueError(f"{metric!r} is {value:g}; expected a fraction of at most 1")


def _check_name(name: str) -> str:
    """Return a name that is safe as a part of a path; raises `ValueError`."""
    if name.startswith(".") or any(mark in name for mark in "/\\\0"):
        raise ValueError(f"{name!r} cannot be a part of a path")
    return name


Name = Annotated[str, AfterValidator(_check_name)]
"""A name that becomes a part of paths."""


class Value(Entry):
    """A number with its interval, as fractions in [0, 1]; what is not known is None."""

    value: float | None
    se: float | None = None
    ci: tuple[float, float] | None = None
    """The bounds of the 95 % interval."""
    ci_method: str | None = None
    """How the interval was made, or why there is none."""
    clusters: int | None = None
    draws: int | None = None
    seed: int | None = None


class GroupValue(Value):
    """A metric of one group of a cell's items."""

    value: float
    n: int = 0


class Difference(Value):
    """A language against others, as a difference of scores; `ci_method` says whether their items were paired."""

    value: float
    p: float | None = None
    """Two-sided, against 0."""


class MetricValue(Value):
    """A metric of a cell."""

    value: float
    groups: dict[str, GroupValue] = {}
    """By group: a test of a checklist, a language of candidates."""
    signature: str = ""
    """Version and settings of the scorer, of metrics that are quoted with them."""


class Look(Entry):
    """A sample of a cell's items that grew until it was enough."""

    limit: int
    """What ``--limit`` takes the same items."""
    n: int
    size: int
    """Items of the test set."""
    half_width: float | None = None
    """From the headline metric to the farther end of its 95 % interval; None where there is none to rely on."""


class CellResult(Entry):
    """A cell: a task in a language, by one model, fit, method and seed, in one view."""

    task: Name
    version: int | None = None
    language: Name
    split: str | None = None
    stands_in: bool = False
    """Whether a dev file was used as the test set."""
    provenance: str | None = None
    protocol: str | None = None
    fit: str | None = None
    method: str | None = None
    view: dict[str, str] = {}
    seed: int | None = None
    prompt: dict[str, Any] | None = None
    digest: Name = ""
    data: dict[str, Any] = {}
    learning: dict[str, Any] | None = None
    status: str
    """``ok``, ``failed`` or ``skipped``."""
    reason: str = ""
    n: int = 0
    truncated: int = 0
    unparsed: int = 0
    unfinished: int = 0
    """Items with an answer that was cut at the token limit, in its reasoning or itself; they are not `unparsed`."""
    unanswered: int = 0
    """How many of the unfinished have no answer that could be read."""
    tied: int = 0
    """Items that equal scores decide: those of the best choices, or of candidates at the cut-off of a ranking."""
    dropped_shots: int = 0
    equal_repeats: int = 0
    """Items whose answers are all the same, of a run with ``--repeats``."""
    excluded_shots: int = 0
    """Shots that were drawn and replaced, since they have the text of the item that was asked, or its translation's."""
    tokens: int = 0
    """Tokens that the model wrote."""
    reasoning_tokens: int | None = 0
    """How many of them are of the reasoning before answers; None where a server does not say."""
    replaced: int = 0
    """Answers with U+FFFD in place of what was no character."""
    positions: dict[str, Any] | None = None
    """Of multiple choice: answers, gold answers and right answers by position, and the p of equal recall."""
    collapse: dict[str, Any] | None = None
    """``answer``, ``count``, ``of`` and ``unit`` of the one answer to nearly all items; None where answers differ."""
    majority: dict[str, Any] | None = None
    """Of labels: the commonest gold one as ``answer``, and the items ``of`` which it is right (``constant``), the model
    is (``right``) and ``both`` are."""
    metrics: dict[str, MetricValue]
    size: int | None = None
    """Items of the test set, before a limit."""
    looks: list[Look] = []
    """At samples that grew, of a run with ``--precision`` or ``--budget``; the last one is what is scored."""
    stopped: str = ""
    """Why they did not grow any more: ``precision``, ``budget``, ``limit`` or ``all items``."""
    release: dict[str, Any] | None = None
    file_state: str | None = None
    """``released file``, ``changed file`` or ``file of no known release``; None for samples and data of the Hub."""
    pool: dict[str, Any] | None = None
    gold: dict[str, Any] | None = None
    """The corrected labels that it is scored with."""
    ledger: dict[str, Any] = {}
    """What its texts cost the model, in words, characters, bytes and sub-words."""
    details: dict[str, Any] = {}
    traceback: str | None = None
    """The file of the run folder with the traceback of a failed cell."""
    seconds: float = 0.0

    @field_validator("metrics")
    @classmethod
    def _are_fractions(cls, metrics: dict[str, MetricValue]) -> dict[str, MetricValue]:
        for name, score in metrics.items():
            _check_fraction(name, [score.value, *(group.value for group in score.groups.values())])
        return metrics

    @property
    def is_stopped(self) -> bool:
        """Whether the run was stopped before it came to this cell."""
        return self.status == "skipped" and self.reason == STOPPED

    @property
    def is_scored(self) -> bool:
        """Whether it has scores: items of a finished cell may have no labels."""
        return self.status == "ok" and bool(self.metrics)


class TaskScore(Value):
    """The mean over the languages of a task, for one protocol, method, view and metric."""

    value: float
    task: Name
    protocol: str = ""
    method: str = ""
    view: dict[str, str] = {}
    fit: list[str] = []
    metric: str
    headline: bool = False
    micro: float | None = None
    """The mean over all items."""
    languages: int = 0
    by_language: dict[str, float] = {}
    by_family: dict[str, float] = {}
    by_script: dict[str, float] = {}
    transfer_gap: float | None = None
    transfer_gap_interval: Difference | None = None
    from_others: dict[str, Difference] = {}
    """Each language minus the mean of the others."""
    from_source: dict[str, Difference] = {}
    """Each other language minus the source."""
    over_seeds: dict[str, Value] = {}
    """Each language with an interval, where there are several seeds."""
    human_gap: float | None = None
    matrix: dict[str, dict[str, GroupValue]] = {}
    same_language: dict[str, float | None] | None = None
    cross_language: dict[str, float | None] | None = None
    seeds: int = 1
    seed_sd: float | None = None
    missing: list[str] = []

    @model_validator(mode="after")
    def _are_fractions(self) -> Self:
        _check_fraction(self.metric, [self.value, self.micro, *self.by_language.values()])
        return self


class SuiteValue(Value):
    """A suite's overall score, with the means of its categories."""

    value: Annotated[float, Field(ge=-1, le=1)] | None
    categories: dict[str, float | None] = {}
    category_intervals: dict[str, tuple[float, float] | None] = {}
    """95 %; None where a task of the category has no error."""


class ExtendedScore(Entry):
    """The scores of a suite with the languages that fragments added to its tasks."""

    paper: SuiteValue = SuiteValue(value=None)
    flat: SuiteValue = SuiteValue(value=None)
    categories: dict[str, float | None] = {}
    languages: dict[str, list[str]] = {}
    """By task: the added languages."""


class SuiteScore(Entry):
    """The overall scores of a suite for one protocol and view."""

    suite: Name
    protocol: str | None
    view: dict[str, str] = {}
    paper: SuiteValue = SuiteValue(value=None)
    """The mean of the category means, as the paper computes it."""
    flat: SuiteValue = SuiteValue(value=None)
    """The mean of all tasks."""
    extended: ExtendedScore | None = None
    missing: list[str] = []
    tasks: dict[str, dict[str, int]] = {}
    methods: dict[str, str] = {}
    complete: bool = False


class RunHead(Entry):
    """When, with what and on which data a run was made."""

    id: str = ""
    created: str = ""
    harness: str | None = ""
    data: str = ""
    processes: int = 1
    resumed: int = 0
    seconds: float = 0.0
    requests: dict[str, int] = {}


class ModelHead(Entry):
    """The model of a run."""

    adapter: str = ""
    ref: str = ""
    revision: str | None = None
    parameters: int | None = None
    metadata: dict[str, Any] = {}


class FitResult(Entry):
    """A fine-tuned model of a run."""

    title: str = ""
    stages: list[dict[str, Any]] = []


class RunResults(Entry):
    """``results.json``."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    run: RunHead = RunHead()
    model: ModelHead = ModelHead()
    fits: dict[str, FitResult] = {}
    notes: list[str] = []
    cells: list[CellResult]
    tasks: list[TaskScore] = []
    suites: list[SuiteScore] = []


# The manifest ------------------------------------------------------------------------------------------


class TaskSummary(Entry):
    """Fields of a task's spec for aggregation, rescoring and reports."""

    kind: str = ""
    metrics: list[str] = []
    headline: list[str] = []
    shown: list[str] | None = None
    """The metrics of reports, where some were added to the headline ones."""
    metric_options: dict[str, Any] = {}
    labels: list[str] = []
    parallel: bool = False
    unpaired: list[str] = []
    """Languages of a parallel task whose items are no translations of the others."""
    added: dict[str, str] = {}
    """Languages that fragments added, with the plugin or file that did."""
    names: dict[str, str] = {}
    """Names of the languages that the task itself describes."""
    chance: float | None = None
    source: str | None = None
    answer_language: str | None = None
    """The language of all answers, where it is not that of the cells: of translations into one language."""
    axes: list[str] = []
    human: dict[str, float] = {}
    """By metric: published human performance, as a fraction."""
    published_languages: list[str] = []
    languages: dict[str, tuple[str, str]] = {}
    """By code: family and script."""


class SuiteSummary(Entry):
    """Fields of a suite for aggregation."""

    suite: str
    protocol: str | None = None
    tasks: list[str] = []
    categories: dict[str, list[str]] = {}
    languages: dict[str, list[str]] = {}
    """By task: its published languages."""
    views: dict[str, dict[str, str]] = {}
    """By task: the view that the suite fixes."""
    metrics: dict[str, list[str]] = {}
    """By task: the metrics whose mean counts, where it is not the task's score."""
    others: dict[str, list[str]] = {}
    """By task: its own languages that the suite does not average."""

    def headline(self, task: str, own: Sequence[str]) -> Sequence[str]:
        """Return the metrics whose mean counts for a task, whose own headline is given."""
        return self.metrics.get(task, own)


class _Tasks(dict[str, TaskSummary]):
    def __missing__(self, name: str) -> TaskSummary:
        raise DamagedRunError(f"The run is damaged: its manifest has no task {name!r}.")


class Manifest(Entry):
    """``manifest.json``."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    created: str = ""
    model: str = ""
    name: str = ""
    """What the model is called; empty in older runs."""
    title: str = ""
    """The title of a report, where one was chosen."""
    tasks: Annotated[dict[str, TaskSummary], AfterValidator(_Tasks)] = _Tasks()
    config: dict[str, Any] = {}
    suites: list[SuiteSummary] = []
    published: list[dict[str, Any]] = []
    """Documents of the systems that were published on the suites."""
    specs: dict[str, dict[str, Any]] = {}
    cells: list[dict[str, Any]] = []
    """The identities of the planned cells, each with its digest."""
    resolved: dict[str, Any] = {}
    resumed: list[str] = []
    """When it was resumed."""
    versions: dict[str, str | None] = {}
    identity: dict[str, str] = {}
    """What makes the model's answers what they are; empty before it was opened."""
    translators: dict[str, dict[str, Any]] = {}
    """By name: the engines that translated its texts."""
    trackers: dict[str, str] = {}
    """By name: the id under which an experiment tracker has the run."""
    command: list[str] = []
    fits: list[str] = []
    """Titles of the planned fits."""
    notes: list[str] = []
    """What the plan said."""
    plugins: dict[str, Any] = {}
    code: dict[str, str] = {}
    """Versions of the code of others that scores, renders, reads or parses."""
    options: dict[str, Any] = {}
    hardware: dict[str, Any] = {}
    host: str | None = None
    shard: str | None = None
    """``2/4``, of a run that did a part of a plan."""
    plan: str | None = None
    """The digest of the whole plan that it is a part of."""
    plan_cells: list[dict[str, Any]] = []
    """The identities of all cells of that plan, each with its shard."""
    merged_from: list[dict[str, Any]] = []

    @property
    def model_name(self) -> str:
        """Name of the model: `name`, or one made of `model` and its options."""
        served = self.options.get("model") or self.identity.get("model")
        return self.name or model_name(self.model, served, self.options.get("revision"))

    @field_validator("cells")
    @classmethod
    def _are_named(cls, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for cell in cells:
            for name in ("task", "language", "digest"):
                if not isinstance(cell.get(name), str):
                    raise ValueError(f"a cell has no {name!r}")
        return cells
