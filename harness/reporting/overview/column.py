"""The heads of reports: columns of scores and names of runs, and what is grouped and computed once by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from harness.metrics.metric import metric_name
from harness.reporting.blocks.words import words_of
from harness.storage.model_name import folder_names

if TYPE_CHECKING:
    from harness.storage.results import CellResult, FitResult, Manifest, RunResults, TaskScore
    from harness.storage.run_folder import Run

K = TypeVar("K", bound=Hashable)
P = ParamSpec("P")
T = TypeVar("T")
PROTOCOLS: Mapping[str, Sequence[str]] = words_of("words")["protocols"]
"""By protocol: its name in heads of columns, and the training of a model before its test."""
OWN_HEAD = "fine-tuned by you"
"""A model that came with a head for the task."""


def short_protocol(protocol: str, method: str = "") -> str:
    """Return a protocol as heads of columns name it; empty for the usual one."""
    if (protocol, method) == ("frozen", "head"):
        return OWN_HEAD
    return PROTOCOLS.get(protocol, (protocol, ""))[0]


def group_pairs(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Return the second elements of pairs by their first one, both in the order of the pairs."""
    groups: dict[K, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def list_names(names: Iterable[str]) -> str:
    """Return names with commas between them, each once."""
    return ", ".join(dict.fromkeys(names))


def once_per_run(function: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Return a function of a run and hashable or list arguments that keeps its values while the run is the same.

    A page asks for the cells of every column in every language, and for every language against all others: without
    this its time grows with the square of the cells. Values are dropped with the run, and with its results.
    """
    cache: WeakKeyDictionary[Run, tuple[RunResults, Manifest, dict[Any, T]]] = WeakKeyDictionary()

    @wraps(function)
    def memoized(run: Run, /, *arguments: P.args, **options: P.kwargs) -> T:
        results, manifest, values = cache.get(run, (None, None, {}))
        if results is not run.results or manifest is not run.manifest:
            values = {}
            cache[run] = (run.results, run.manifest, values)
        key = tuple(tuple(value) if isinstance(value, list) else value for value in arguments)
        if key not in values:
            values[key] = function(run, *arguments, **options)
        return values[key]

    return memoized


# Columns -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One headline metric of a task under one protocol, method and view."""

    task: str
    protocol: str
    method: str
    view: str
    metric: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, method and view."""
        return self.task, self.method, self.view

    @property
    def title(self) -> str:
        """The lines of its head: task, protocol where it is not the usual one, metric."""
        lines = [self.task, short_protocol(self.protocol, self.method), self.view]
        return "\n".join([line for line in lines if line] + [metric_name(self.metric)])

    @property
    def plain_title(self) -> str:
        """Its head on one line."""
        return self.title.replace("\n", " ")


def column_of(row: CellResult | TaskScore, metric: str = "") -> Column:
    """Return the column of a cell or mean in one metric."""
    protocol, method, view = str(row.protocol), str(row.method), conditions_of(row.view)
    return Column(task=row.task, protocol=protocol, method=method, view=view, metric=metric)


def conditions_of(view: Mapping[str, str]) -> str:
    """Return the conditions of a cell as the summary writes them: ``prompt=lm_eval variant=translated``."""
    return " ".join(f"{name}={value}" for name, value in sorted(view.items()))


def cells_of(run: Run, column: Column, language: str | None = None) -> list[CellResult]:
    """Return the cells of a column, of all languages or of one: several where there are several seeds."""
    return _cells(run).get((column.task, column.protocol, column.method, column.view, language), [])


def stages_of(run: Run) -> Iterator[tuple[FitResult, Mapping[str, Any]]]:
    """Yield every stage of training of a run with its fit."""
    return ((fit, stage) for fit in run.results.fits.values() for stage in fit.stages)


@once_per_run
def _cells(run: Run) -> dict[tuple[str | None, ...], list[CellResult]]:
    """Return the cells by the task, protocol, method and view of their columns and by language, None for all."""
    return group_pairs(
        ((cell.task, cell.protocol, cell.method, conditions_of(cell.view), language), cell)
        for cell in run.cells
        if cell.has("method")
        for language in (None, cell.language)
    )


# Names of runs -----------------------------------------------------------------------------------------------


def system_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the models, each once.

    Where several runs are of one name, what they were trained on follows where it differs, else the run's folder.
    """
    pairs = zip((run.manifest.model_name for run in runs), train_names(runs), strict=True)
    models = [f"{model} ({trained})" if trained else model for model, trained in pairs]
    counts, folders = Counter(models), folder_names([run.path for run in runs])
    return [
        f"{model} ({folder})" if counts[model] > 1 else model
        for model, folder in zip(models, folders, strict=True)
    ]


def train_names(runs: Sequence[Run]) -> list[str]:
    """Return by run the variant of its training sets, ``orig`` without one; empty where it distinguishes no runs."""
    keys = [
        (
            str(run.manifest.model),
            list_names(row.view["train_variant"] for row in run.results.tasks if "train_variant" in row.view),
        )
        for run in runs
    ]
    counts, variants = Counter(keys), group_pairs(dict.fromkeys(keys))
    return [
        variant or "orig" if counts[model, variant] == 1 and len(variants[model]) > 1 else ""
        for model, variant in keys
    ]
