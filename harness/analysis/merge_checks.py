"""Whether runs may be merged: the same model, the same data and specs, the same settings of what is compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.data.translation.opening import translator_names
from harness.errors import UsageError
from harness.storage.run_folder import BY_LANGUAGE, Run

__all__ = ["check_compatible", "same_scores"]

TOLERANCE = 1e-5
"""Two machines may sum in another order; the same model's scores differ by less than this."""
SETTINGS = (
    "limit",
    "train_limit",
    "seeds",
    "recipe",
    "train_languages",
    "train_variant",
    "train_pivot",
    "romanised",
    "select_on",
    "prompt",
    "shots",
    "shots_from",
    "shots_language",
    "instruction_language",
    "literals",
    "chat",
    "constrained",
)
"""Settings of `RunConfig` that are one for all numbers of a run."""


def check_compatible(runs: Sequence[Run]) -> None:
    """Raise `UsageError` for the first thing in which a run differs from an earlier one and must not."""
    known: dict[tuple[str, ...], tuple[str, Run]] = {}
    for run in runs:
        for title, key, value in _facts(run):
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            before, first = known.setdefault((title, *key), (text, run))
            if before != text:
                shown = "" if len(before) + len(text) > 200 else f": {before} and {text}"
                raise UsageError(
                    f"The runs {str(first.path)!r} and {str(run.path)!r} cannot be merged: they differ in "
                    f"{title}{shown}.",
                    hint="Compare them instead: harness compare RUN RUN",
                )


def _facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Yield what is in a sentence, a further key, and the value that all runs which have it must share."""
    yield from _model_facts(run)
    config = run.manifest.get("config", {})
    yield "the place of the data (--data)", (), run.results["run"].get("data")
    for name in SETTINGS:
        yield f"the setting {name!r}", (), config.get(name)
    for task, summary in run.manifest["tasks"].items():
        rest = {name: value for name, value in summary.items() if name not in BY_LANGUAGE}
        for name, value in rest.items():
            yield f"{name!r} of the task {task!r}", (), value
    for task, spec in run.manifest.get("specs", {}).items():
        rest = {name: value for name, value in spec.items() if name != "languages"}
        yield f"the version of the task {task!r}", (), spec.get("version")
        yield f"the spec of the task {task!r}", (), rest
    for name, reference in translator_names(config.get("translators") or ()).items():
        yield f"what the translator {name!r} is", (), reference
    for name, engine in run.manifest.get("translators", {}).items():
        yield f"the model of the translator {name!r}", (), engine["fingerprint"]
    for fit in run.results.get("fits", {}).values():
        yield from _fit_facts(fit)
    resolved = run.manifest.get("resolved") or {}
    for entry in resolved.get("data", []):
        title = f"the data of {entry['owner']!r} in {entry['language']!r} ({entry['split']})"
        yield title, ("resolved", json.dumps(entry["view"], sort_keys=True)), entry["digest"]
    for entry in resolved.get("specs", []):
        yield f"the document of the {entry['sort']} {entry['name']!r}", (), entry["digest"]
    for cell in run.cells:
        yield from _cell_facts(run, cell)


def _model_facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    model = run.results["model"]
    yield "the adapter", (), model["adapter"]
    metadata = model.get("metadata", {})
    if not any(cell["status"] == "ok" for cell in run.cells):
        # Nothing is known of a model that was never opened; what it would have answered is not there either.
        return
    yield "what is known of the model", (), sorted(metadata)
    for name, value in metadata.items():
        yield f"the model ({name})", (), value


def _cell_facts(run: Run, cell: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    task, language = cell["task"], cell["language"]
    if "version" in cell:
        yield f"the version of the task {task!r}", (), cell["version"]
    axes = run.manifest["tasks"].get(task, {}).get("axes", ())
    items = {
        name: value
        for name, value in cell["view"].items()
        if name in {"variant", "translator"} or name in axes
    }
    if "data" in cell:
        title = f"the test data of {task!r} in {language!r}"
        yield title, (json.dumps(items, sort_keys=True),), cell["data"]["digest"]
    if cell.get("pool") is not None:
        added = run.manifest["tasks"].get(task, {}).get("added", {})
        own = f" for {language!r}" if language in added else ""
        yield f"the candidate pool of {task!r}{own}", (), cell["pool"]["digest"]
    if cell["status"] == "ok":
        names = ("protocol", "method", "seed")
        key = (json.dumps(cell["view"], sort_keys=True), *(str(cell[name]) for name in names))
        yield f"the training or prompt of {task!r} in {language!r}", key, cell["digest"]


def _fit_facts(fit: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    for stage in fit["stages"]:
        train = stage.get("train", {})
        if "data" in train:
            digests = [found["digest"] for found in train["data"]]
            title = f"the training data of {stage['stage']!r} in {'+'.join(train['languages'])}"
            yield title, (), digests


def same_scores(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two finished cells have the same number of items and the same metrics, within 1e-5."""
    left, right = one["metrics"], other["metrics"]
    return (
        one["n"] == other["n"]
        and left.keys() == right.keys()
        and all(
            math.isclose(left[name]["value"], right[name]["value"], rel_tol=0, abs_tol=TOLERANCE)
            for name in left
        )
    )
