"""lm-eval's own task objects: they build the requests and score the answers. The one module that imports lm-eval."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harness import DataError, HarnessError, MissingDataError
from harness.data import HubFiles, ResolvedData
from harness.storage import write_atomically
from harness_lm_eval.task_index import TaskPlace, code_is_allowed, find_place, installed_version

FEWSHOT_SEED = 1234
RANDOM_SEED = 0
"""``DEFAULT_OTHER_SEED`` and ``DEFAULT_RANDOM_SEED`` of ``lm_eval/defaults.py``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The filtered answers and metrics of one document, as plain JSON values."""

    filtered: dict[str, Any]
    """Filter -> what it left of the answer to every request."""
    metrics: dict[str, Any]
    """``METRIC,FILTER`` -> what the aggregation gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTask:
    """A task of lm-eval whose requests are built."""

    name: str
    task: Any
    asked: Mapping[str, Sequence[Any]]
    """Number of a document in its split -> lm-eval's requests about it, in their order."""
    is_trusted: bool

    def score(self, answers: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, Scored]:
        """Return the filtered answers and metrics of some documents.

        Args:
            answers: Number of a document -> for each of its requests one answer per repetition, as lm-eval's models
                give them: (log-probability, whether it is greedy), or a text.
        """
        scored = {identifier: Scored(filtered={}, metrics={}) for identifier in answers}
        everything = [instance for identifier in answers for instance in self.asked[identifier]]
        given = [own for requests in answers.values() for own in requests]
        with _running(self.name, DataError, is_trusted=self.is_trusted):
            for instance, own in zip(everything, given, strict=True):
                instance.resps, instance.filtered_resps = list(own), {}
            for ensemble in self.task._filters:
                ensemble.apply(everything)
            for identifier, outcome in scored.items():
                instances = self.asked[identifier]
                for name in instances[0].filtered_resps:
                    chosen = [instance.filtered_resps[name] for instance in instances]
                    result = self.task.process_results(instances[0].doc, chosen)
                    outcome.filtered[name] = _plain(chosen)
                    outcome.metrics.update({f"{key},{name}": _plain(item) for key, item in result.items()})
        return scored


@lru_cache(maxsize=64)
def live_task(name: str, shots: int) -> LiveTask:
    """Return a task with its requests, built as ``lm_eval`` does in one process, with its usual seeds.

    Raises `MissingDataError` with lm-eval's reason where its data cannot be loaded or its requests cannot be built.
    """
    installed_version(name)
    place = find_place(name)
    trusted = not place.is_included or code_is_allowed()
    with _running(name, MissingDataError, is_trusted=trusted), _seeded():
        tasks: Any = importlib.import_module("lm_eval.tasks")
        importlib.import_module("datasets").disable_progress_bars()
        loaded = tasks.TaskManager(include_defaults=False).load(str(place.path))
        task = loaded["tasks"][name]
        task.set_config(key="num_fewshot", value=shots)
        task.set_fewshot_seed(seed=FEWSHOT_SEED)
        task.build_all_requests(rank=0, world_size=1)
    asked: dict[str, list[Any]] = {}
    for instance in task.instances:
        asked.setdefault(str(instance.doc_id), []).append(instance)
    for instances in asked.values():
        instances.sort(key=lambda instance: int(instance.idx))
    return LiveTask(name=name, task=task, asked=asked, is_trusted=trusted)


def resolve_requests(hub: HubFiles, cache: Path) -> ResolvedData:
    """Return the file of a task's requests, ``lm_eval:NAME`` with the number of shots as config.

    Raises `MissingDataError` where lm-eval cannot load the task's data.
    """
    name = hub.path.partition(":")[2]
    live = live_task(name, int(hub.config or 0))
    config = live.task.config
    is_local = config.dataset_path in ("json", "csv", "parquet", "text", "arrow")
    revision = (config.dataset_kwargs or {}).get("revision")
    return ResolvedData(
        paths=(_write_requests(live, cache),),
        reader="jsonl",
        origin="hub",
        split_used=hub.split,
        revision=revision,
        pinned=is_local or (isinstance(revision, str) and len(revision) == 40),
        describe=f"{hub.path} ({hub.split}) by lm-eval {installed_version(name)}",
    )


def _write_requests(live: LiveTask, folder: Path) -> Path:
    """Write the requests of every document as JSON lines to a file named by their digest; return the file."""
    with _running(live.name, DataError, is_trusted=live.is_trusted):
        lines = [
            json.dumps(_line(live, number, own), ensure_ascii=False, allow_nan=False) + "\n"
            for number, own in live.asked.items()
        ]
    text = "".join(lines)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder / "lm_eval" / f"{live.name}-{digest}.jsonl"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    return path


def _line(live: LiveTask, number: str, instances: Sequence[Any]) -> dict[str, Any]:
    first = instances[0]
    return {
        "id": number,
        "requests": [[_plain(part) for part in instance.args[:2]] for instance in instances],
        "repeats": int(first.repeats or 1),
        "target": _plain(live.task.doc_to_target(first.doc)),
        "doc": _plain(first.doc),
    }


def aggregated(aggregation: str, key: str, values: Sequence[Any]) -> float:
    """Return lm-eval's aggregate of the values of all documents.

    `aggregation` is the name of a function of lm-eval, or ``function:TASK`` for the one that the file of a task names
    for the metric of `key` (``METRIC,FILTER``).
    """
    where, _, name = aggregation.partition(":")
    with _quiet(), _wrapped_errors(f"aggregate {key!r} by {name or aggregation!r}", DataError):
        if where == "function":
            function = _own_aggregation(find_place(name), key.partition(",")[0])
        else:
            function = importlib.import_module("lm_eval.api.registry").get_aggregation(aggregation)
        return float(function([_tupled(value) for value in values]))


def _own_aggregation(place: TaskPlace, metric: str) -> Any:
    if place.is_included and not code_is_allowed():
        raise HarnessError(
            f"The aggregation of {metric!r} in {str(place.path)!r} is Python, which is not allowed to run."
        )
    loader: Any = importlib.import_module("lm_eval.tasks._yaml_loader")
    for item in loader.load_yaml(place.path)["metric_list"]:
        name = item["metric"]
        if metric in (name, getattr(name, "__name__", None)):
            return item["aggregation"]
    raise HarnessError(f"The file {str(place.path)!r} has no metric {metric!r}.")


def _tupled(value: Any) -> Any:
    """Return a pair as lm-eval has it: JSON keeps tuples as lists."""
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it: numpy values as numbers, other types as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


# Around lm-eval's code --------------------------------------------------------------------------------


@contextmanager
def _wrapped_errors(what: str, sort: type[DataError]) -> Iterator[None]:
    """Turn errors of lm-eval into a `DataError` that says what it was doing."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
        raise sort(f"lm-eval cannot {what}: {reason}.") from error


@contextmanager
def _running(name: str, sort: type[DataError], *, is_trusted: bool) -> Iterator[None]:
    """Run code of a task quietly, with its templates and its errors turned into ours."""
    with _quiet(), _templates(is_trusted=is_trusted), _wrapped_errors(f"run its task {name!r}", sort):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bars and warnings of lm-eval."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


@contextmanager
def _seeded() -> Iterator[None]:
    """Seed Python and numpy as lm-eval does before it loads tasks, and put their states back."""
    python, arrays = random.getstate(), np.random.get_state()
    random.seed(RANDOM_SEED)
    np.random.seed(FEWSHOT_SEED)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextmanager
def _templates(*, is_trusted: bool) -> Iterator[None]:
    """Let lm-eval use other Jinja templates than its own; see `_environment`."""
    shared: Any = importlib.import_module("lm_eval.utils")
    own = shared.env
    shared.env = _environment(own, is_trusted=is_trusted)
    try:
        yield
    finally:
        shared.env = own


@lru_cache(maxsize=4)
def _environment(own: Any, *, is_trusted: bool) -> Any:
    """Return lm-eval's templates, compiled once each; those of a file of the user in Jinja's sandbox.

    lm-eval compiles a template for every document, and lets templates reach into Python.
    """
    sandbox: Any = importlib.import_module("jinja2.sandbox")
    parent: Any = type(own) if is_trusted else sandbox.SandboxedEnvironment
    compiled: dict[str, Any] = {}

    class Environment(parent):  # type: ignore[misc]
        def from_string(self, source: str) -> Any:
            if source not in compiled:
                compiled[source] = super().from_string(source)
            return compiled[source]

    environment = Environment(
        loader=own.loader, undefined=own.undefined, keep_trailing_newline=own.keep_trailing_newline
    )
    environment.filters.update(own.filters)
    return environment
