"""Values that a report asks for many times, computed once per run."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from harness.storage.results import Manifest, RunResults
    from harness.storage.run_folder import Run

P = ParamSpec("P")
T = TypeVar("T")


def once_per_run(function: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Return a function of a run and hashable positional arguments that keeps its values while the run is the same.

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
        if arguments not in values:
            values[arguments] = function(run, *arguments, **options)
        return values[arguments]

    return memoized
