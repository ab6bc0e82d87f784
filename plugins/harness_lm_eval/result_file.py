"""A run as lm-eval's result files: ``results_DATE.json`` and ``samples_TASK_DATE.jsonl`` in a folder of the model.

The layout is that of lm-eval 0.4.13 (``lm_eval/result_schema.py``, ``lm_eval/loggers/evaluation_tracker.py``). What a
run does not record is null or missing.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import Run, UsageError
from harness.metrics import METRICS
from harness.storage import CellResult, ItemRecord, MetricValue, TaskScore, write_atomically
from harness_lm_eval.task_kind import PERCENT, result_key

_NAMES: Final = {"accuracy": "acc"}
"""Metrics that have another name in lm-eval."""
_OUTPUT_TYPES: Final = {"rank": "multiple_choice", "generate": "generate_until"}
_UNKNOWN: Final = (
    *("model_dtype", "model_sha", "batch_size", "device", "use_cache", "bootstrap_iters", "gen_kwargs"),
    *("random_seed", "numpy_seed", "torch_seed", "fewshot_seed"),
)
_UNSAFE: Final = re.compile(r"[\"<>:/|\\?*\[\]]+")
"""Characters that ``sanitize_model_name`` of ``lm_eval/utils.py`` replaces."""


def render(runs: Sequence[Run]) -> str:
    """Return the results JSON of a run, without samples; raises `UsageError` for several: each is a file of its own."""
    if len(runs) > 1:
        raise UsageError(
            f"lm-eval's results JSON is of one run; {len(runs)} were given.",
            hint="Write them all with --output FOLDER.",
        )
    return _text(_results(runs[0], {}))


def write(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write results and samples of every run below `folder`, one folder per model; return the files.

    The date in the names is the run's, so that writing again replaces the files. Raises `UsageError` where a file
    cannot be written, and `DataError` where records are broken.
    """
    written = []
    for run in runs:
        place = folder / _UNSAFE.sub("__", _model_name(run))
        date = _date(run)
        hashes = {}
        for cell, name in _named_cells(run):
            lines = _sample_lines(run, cell, _spec(run, cell))
            hashes[name] = _task_hash(lines)
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            written.append(_write(place / f"samples_{name}_{date}.jsonl", text))
        written.append(_write(place / f"results_{date}.json", _text(_results(run, hashes))))
    return written


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except OSError as error:
        raise UsageError(f"The file {str(path)!r} cannot be written: {error.strerror}.") from error
    return path


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _created(run: Run) -> datetime.datetime:
    return datetime.datetime.fromisoformat(run.manifest.created).astimezone(datetime.UTC)


def _date(run: Run) -> str:
    return _created(run).strftime("%Y-%m-%dT%H-%M-%S.%f")


def _model_name(run: Run) -> str:
    return str(run.results.model.ref)


def _spec(run: Run, cell: CellResult) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = run.manifest.specs.get(cell.task, {})
    return spec


def _is_theirs(spec: Mapping[str, Any]) -> bool:
    return str(spec.get("kind", "")).startswith("lm_eval_")


# Names ------------------------------------------------------------------------------------------------


def _named_cells(run: Run) -> list[tuple[CellResult, str]]:
    """Return the finished cells with their names: ``xnli_sw``, or lm-eval's own name of a task of its.

    Cells of one task and language have what they differ in, in their names too.
    """
    cells = [cell for cell in run.cells if cell.status == "ok"]
    groups: dict[str, list[dict[str, str]]] = {}
    for cell in cells:
        groups.setdefault(_plain_name(run, cell), []).append(_conditions(cell))
    named: list[tuple[CellResult, str]] = []
    for cell in cells:
        name, own = _plain_name(run, cell), _conditions(cell)
        others = groups[name]
        parts = [value for key, value in own.items() if any(other.get(key) != value for other in others)]
        named.append((cell, _UNSAFE.sub("-", "_".join([name, *parts]))))
    return named


def _plain_name(run: Run, cell: CellResult) -> str:
    spec = _spec(run, cell)
    if not _is_theirs(spec):
        return f"{cell.task}_{cell.language}"
    path: str = spec["languages"][cell.language]["test"]["hub"]["path"]
    return path.partition(":")[2]


def _conditions(cell: CellResult) -> dict[str, str]:
    view = {name: f"{name}-{value}" for name, value in sorted(cell.view.items())}
    return {"protocol": str(cell.protocol), "method": str(cell.method), **view, "seed": f"seed-{cell.seed}"}


# Results ----------------------------------------------------------------------------------------------


def _results(run: Run, hashes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the content of ``results_DATE.json``."""
    named = _named_cells(run)
    groups = _groups(run, named)
    lengths = {name: cell.n for cell, name in named}
    configuration = run.manifest.config
    model = run.results.model
    shots = {name: count for cell, name in named if (count := _shots(run, cell)) is not None}
    return {
        "results": {
            **{name: _task_results(run, cell, name) for cell, name in named},
            **{name: own for name, (own, _) in groups.items()},
        },
        **({"groups": {name: own for name, (own, _) in groups.items()}} if groups else {}),
        "group_subtasks": {name: members for name, (_, members) in groups.items()},
        "configs": {name: _task_config(run, cell, name) for cell, name in named},
        "versions": {
            **{
                name: cell.version
                for cell, _ in named
                if (name := str(cell.task).rpartition(":")[2]) in groups
            },
            **{name: _version(run, cell) for cell, name in named},
        },
        "n-shot": shots,
        "higher_is_better": {name: _directions(run, cell) for cell, name in named},
        "n-samples": {name: {"original": cell.size, "effective": lengths[name]} for cell, name in named},
        "config": {
            "model": model.adapter,
            "model_args": {"pretrained": model.ref, **configuration["options"]},
            "model_num_parameters": model.parameters,
            "model_revision": model.revision,
            "batch_sizes": [],
            **dict.fromkeys(_UNKNOWN),
            "limit": configuration["limit"],
        },
        "git_hash": None,
        "date": _created(run).timestamp(),
        "transformers_version": run.manifest.versions.get("transformers"),
        "harness_version": run.results.run.harness,
        "harness_data": run.results.run.data,
        "task_hashes": {name: value for name, value in hashes.items() if value is not None},
        "model_source": model.adapter,
        "model_name": _model_name(run),
        "model_name_sanitized": _UNSAFE.sub("__", _model_name(run)),
        "total_evaluation_time_seconds": str(run.results.run.seconds),
    }


def _key(name: str) -> str:
    return result_key(name) if name.startswith("lm_eval:") else f"{_NAMES.get(name, name)},none"


def _scored(name: str, score: MetricValue | TaskScore) -> dict[str, Any]:
    """Return value and standard error under lm-eval's keys; what it gives up to 100 is given so."""
    metric, _, chosen = _key(name).partition(",")
    scale = 100 if metric in PERCENT else 1
    error = score.se
    return {
        f"{metric},{chosen}": score.value * scale,
        f"{metric}_stderr,{chosen}": "N/A" if error is None else error * scale,
    }


def _task_results(run: Run, cell: CellResult, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "alias": name, "sample_len": cell.n}
    for metric, score in cell.metrics.items():
        found |= _scored(metric, score)
    if _is_theirs(_spec(run, cell)):
        for key, value in cell.details.get("lm_eval", {}).items():
            metric, _, chosen = key.partition(",")
            found |= {key: value, f"{metric}_stderr,{chosen}": "N/A"}
    return found


def _groups(run: Run, named: Sequence[tuple[CellResult, str]]) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Return the tasks of several languages with their means over languages and their members.

    A task whose cells differ in more than the language has no single mean, and is no group.
    """
    groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for task in dict.fromkeys(str(cell.task) for cell, _ in named):
        members = [(cell, name) for cell, name in named if cell.task == task]
        rows = [row for row in run.results.tasks if row.task == task and row.value is not None]
        metrics = [row.metric for row in rows]
        alone = all(name == _plain_name(run, cell) for cell, name in members)
        if not alone or len(members) < 2 or not rows:
            continue
        if len(set(metrics)) < len(metrics):
            continue
        named_task = task.rpartition(":")[2]
        own: dict[str, Any] = {
            "name": named_task,
            "alias": named_task,
            "sample_len": sum(one.n for one, _ in members),
        }
        for row in rows:
            if row.metric in members[0][0].metrics:
                own |= _scored(row.metric, row)
        groups[named_task] = own, [name for _, name in members]
    return groups


def _shots(run: Run, cell: CellResult) -> int | None:
    """Return the number of examples before each item; None without prompts."""
    spec = _spec(run, cell)
    if _is_theirs(spec):
        return int(spec["shots"])
    return None if cell.prompt is None else int(cell.prompt["shots"])


def _version(run: Run, cell: CellResult) -> Any:
    spec = _spec(run, cell)
    return spec["task_version"] if _is_theirs(spec) else cell.version


def _directions(run: Run, cell: CellResult) -> dict[str, bool]:
    known = {metric.name: metric.higher_is_better for metric in METRICS}
    found = {}
    for name in cell.metrics:
        if name.startswith("lm_eval:"):
            found[_key(name).partition(",")[0]] = True
        elif name in known:
            found[_NAMES.get(name, name)] = known[name]
    return found


def _task_config(run: Run, cell: CellResult, name: str) -> dict[str, Any]:
    spec, data = _spec(run, cell), cell.data
    output_type = spec["output_type"] if _is_theirs(spec) else _OUTPUT_TYPES.get(str(cell.method))
    shots = _shots(run, cell)
    return {
        "task": name,
        "test_split": cell.split,
        **({} if output_type is None else {"output_type": output_type}),
        **({} if shots is None else {"num_fewshot": shots}),
        "metric_list": [{"metric": _key(metric).partition(",")[0]} for metric in cell.metrics],
        "description": spec.get("description"),
        "metadata": {
            "version": _version(run, cell),
            "harness": {
                "task": cell.task,
                "kind": spec.get("kind"),
                "language": cell.language,
                "protocol": cell.protocol,
                "method": cell.method,
                "fit": cell.fit,
                "view": cell.view,
                "seed": cell.seed,
                "data": {key: data.get(key) for key in ("origin", "files", "revision", "digest")},
            },
        },
    }


# Samples ----------------------------------------------------------------------------------------------


def _sample_lines(run: Run, cell: CellResult, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a finished cell: one per item, or for lm-eval's own tasks one per item and filter."""
    records = run.records(cell)
    if str(spec.get("kind", "")).startswith("lm_eval_"):
        lines = [line for record in records for line in _their_lines(record)]
        # lm-eval writes all documents of a filter, then those of the next.
        filters = list(dict.fromkeys(line["filter"] for line in lines))
        return sorted(lines, key=lambda line: filters.index(line["filter"]))
    return [_our_line(record, str(cell.method)) for record in records]


def _task_hash(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the hash of a task's documents, prompts and targets; None where the prompts are not recorded."""
    hashes = [line[key] for line in lines for key in ("doc_hash", "prompt_hash", "target_hash")]
    return None if None in hashes else _hash("".join(hashes))


def _their_lines(record: ItemRecord) -> Iterator[dict[str, Any]]:
    """Yield the lines of lm-eval's own log, in the order of its keys."""
    prediction, reference = record.prediction, record.reference
    requests = record.fields["requests"]
    for name, filtered in prediction["filtered"].items():
        scores = {
            key.rpartition(",")[0]: value
            for key, value in prediction["metrics"].items()
            if key.rpartition(",")[2] == name
        }
        yield {
            "doc_id": int(record.id),
            "doc": reference["doc"],
            "target": str(reference["target"]),
            "arguments": {
                f"gen_args_{number}": {f"arg_{place}": part for place, part in enumerate(request)}
                for number, request in enumerate(requests)
            },
            "resps": _texts(prediction["resps"]),
            "filtered_resps": _texts(filtered),
            "filter": name,
            "metrics": list(scores),
            "doc_hash": _content_hash(reference["doc"]),
            "prompt_hash": _hash(requests[0][0]),
            "target_hash": _hash(str(reference["target"])),
            **scores,
        }


def _our_line(record: ItemRecord, method: str) -> dict[str, Any]:
    """Return an item of another task: its inputs as document; prompts are not recorded, so they are null."""
    target = _as_text(record.reference)
    responses, filtered = _responses(record.prediction, method)
    scores = {name: value for name, value in record.scores.items() if isinstance(value, int | float)}
    return {
        "doc_id": record.id,
        "doc": dict(record.fields),
        "target": target,
        "arguments": None,
        "resps": responses,
        "filtered_resps": filtered,
        "filter": "none",
        "metrics": [_NAMES.get(name, name) for name in scores],
        "doc_hash": _content_hash(dict(record.fields)),
        "prompt_hash": None,
        "target_hash": _hash(target),
        **{_NAMES.get(name, name): value for name, value in scores.items()},
    }


def _responses(prediction: Any, method: str) -> tuple[list[Any], list[Any]]:
    """Return the answer of a model: log-probabilities where it ranked, else a text, as texts."""
    if method == "rank" and isinstance(prediction, Mapping) and "greedy" in prediction:
        pairs = [
            [str(score), str(greedy)]
            for score, greedy in zip(prediction["scores"], prediction["greedy"], strict=True)
        ]
        return [[pair] for pair in pairs], pairs
    raw = prediction.get("raw") if isinstance(prediction, Mapping) else None
    read = _as_text(_answer(prediction))
    return [[read if raw is None else str(raw)]], [read]


def _answer(prediction: Any) -> Any:
    for key in ("label", "text", "candidate", "candidates"):
        if isinstance(prediction, Mapping) and key in prediction:
            return prediction[key]
    return prediction


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(value: Any) -> Any:
    """Return nested lists with their leaves as texts, as ``sanitize_list`` of ``lm_eval/utils.py``."""
    return [_texts(item) for item in value] if isinstance(value, list) else str(value)


def _content_hash(document: Any) -> str:
    return _hash(json.dumps(document, indent=2, ensure_ascii=False))


def _hash(text: str) -> str:
    """Return ``hash_string`` of ``lm_eval/utils.py``."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
