"""Reads lm-eval's ``samples_TASK_DATE.jsonl`` with the ``results_DATE.json`` next to it.

The layout is that of lm-eval 0.4.13 (``lm_eval/loggers/evaluation_tracker.py``, ``lm_eval/evaluator.py``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from harness import DataError, UsageError
from harness.data import Row, read_jsonl, whole_text
from harness_import.logged import (
    LoggedCell,
    LoggedItem,
    choice_position,
    plain_scores,
    split_language,
    without_gold,
)

NAME: Final = "lm_eval"
_INVALID: Final = "[invalid]"
"""The answer of lm-eval's filters that find none, ``lm_eval/filters/extraction.py``."""
_CLOSE: Final = 1e-6


def is_samples(first: Mapping[str, Any]) -> bool:
    """Return whether the first record of a file is one of lm-eval's samples."""
    return {"doc_id", "doc", "filtered_resps", "filter"} <= first.keys()


def read_samples(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a file of samples, one per filter.

    Raises `UsageError` where the results file is missing, and `DataError` where a line or the results are broken.
    """
    task, _, date = path.stem.removeprefix("samples_").rpartition("_")
    results_path = path.with_name(f"results_{date}.json")
    if not results_path.is_file():
        raise UsageError(
            f"The samples {str(path)!r} are without their results file {results_path.name!r}, which names the model.",
            hint="Give both files in one folder, as lm-eval writes them with --output_path and --log_samples.",
        )
    results = _results(results_path)
    configs = results.get("configs") or {}
    # Characters that a file name cannot have are replaced in it, so that the task is looked up the other way around.
    name = next((each for each in configs if each == task or _sanitized(each) == task), task)
    config: Mapping[str, Any] = configs.get(name) or {}
    base, language = split_language(name, str(config.get("dataset_name") or ""))
    rows: dict[str, list[Row]] = {}
    for row in read_jsonl([path], {}):
        rows.setdefault(str(row.fields.get("filter")), []).append(row)
    settings: Mapping[str, Any] = results.get("config") or {}
    shots = (results.get("n-shot") or {}).get(name)
    version = (results.get("versions") or {}).get(name)
    for chosen, filtered in rows.items():
        view = {"shots": str(shots)} if shots else {}
        items = [_item(row, str(config.get("output_type"))) for row in filtered]
        items, notes = _kept_metrics(name, chosen, items, results)
        yield LoggedCell(
            harness=NAME,
            version=str(results.get("lm_eval_version") or "unknown"),
            model=str(results.get("model_name") or results_path.parent.name),
            task=base,
            logged_name=name,
            language=language,
            items=items,
            files=(results_path, path),
            view=view if len(rows) == 1 else {**view, "filter": chosen},
            task_version=int(version) if isinstance(version, int | float) else None,
            parameters=settings.get("model_num_parameters"),
            seed=settings.get("random_seed"),
            notes=notes,
        )


def _results(path: Path) -> Mapping[str, Any]:
    # lm-eval writes NaN for scores that are none.
    try:
        content = json.loads(whole_text(path))
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}.") from error
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        raise DataError(f"{path}: expected the results of lm-eval, an object with the key 'results'.")
    return content


def _sanitized(name: str) -> str:
    return "".join("_" if mark in '"<>:/|\\?*[]' else mark for mark in name)


def _item(row: Row, output_type: str) -> LoggedItem:
    sample = row.fields
    try:
        document, responses = sample["doc"], sample["filtered_resps"]
        names, target = list(sample["metrics"]), str(sample["target"])
    except (KeyError, TypeError) as error:
        raise DataError(f"{row.where}: expected a sample of lm-eval, without {error}.") from error
    fields = without_gold(document) if isinstance(document, Mapping) else {"doc": document}
    choices: tuple[str, ...] = ()
    answer: str | None
    if output_type == "multiple_choice":
        # The second half of the requests is without context, for one of the metrics.
        halves = 2 if "acc_mutual_info" in names else 1
        choices = _continuations(sample.get("arguments"))
        choices = choices[: len(choices) // halves]
        answer = _best(responses[: len(responses) // halves], row)
        gold = target if target.isdecimal() else choice_position(target.strip(), choices)
    else:
        answer, gold = _written(responses) if output_type == "generate_until" else None, target
    unparsed = answer == _INVALID
    return LoggedItem(
        id=str(sample["doc_id"]),
        answer=None if unparsed else answer,
        gold=gold,
        scores=plain_scores({name: sample.get(name) for name in names}),
        fields=fields,
        choices=choices,
        unparsed=unparsed,
    )


def _continuations(arguments: Any) -> tuple[str, ...]:
    """Return the texts that were ranked, from what a request was made of."""
    requests = arguments.values() if isinstance(arguments, Mapping) else arguments or ()
    pairs = [
        list(request.values()) if isinstance(request, Mapping) else list(request) for request in requests
    ]
    return tuple(str(pair[1]).strip() for pair in pairs if len(pair) > 1)


def _best(responses: Any, row: Row) -> str:
    """Return the position of the first of the most likely choices, as lm-eval's `process_results` takes it."""
    try:
        sums = [float(response[0]) for response in responses]
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(f"{row.where}: expected a log-likelihood for every choice.") from error
    return str(sums.index(max(sums)))


def _written(responses: Any) -> str | None:
    first = responses[0] if isinstance(responses, list) and responses else responses
    return str(first[0] if isinstance(first, list) and first else first).strip()


def _kept_metrics(
    name: str, chosen: str, items: Sequence[LoggedItem], results: Mapping[str, Any]
) -> tuple[list[LoggedItem], tuple[str, ...]]:
    """Return the items with the metrics that are a mean of them, and higher for better answers; and what was dropped.

    A metric that lm-eval aggregates in another way (F1 over all items, BLEU, perplexity) has no score of an item.
    """
    aggregates = results["results"].get(name) or {}
    better = (results.get("higher_is_better") or {}).get(name) or {}
    dropped = {}
    for metric in dict.fromkeys(metric for item in items for metric in item.scores):
        values = [item.scores[metric] for item in items if metric in item.scores]
        total = aggregates.get(f"{metric},{chosen}")
        if better.get(metric) is False:
            dropped[metric] = "is lower for better answers"
        elif isinstance(total, int | float) and not math.isclose(fmean(values), total, abs_tol=_CLOSE):
            dropped[metric] = f"is {total:g} in the results and {fmean(values):g} as the mean of the samples"
    kept = [
        replace(item, scores={key: value for key, value in item.scores.items() if key not in dropped})
        for item in items
    ]
    return kept, tuple(f"{name}: {metric} {reason}: left out." for metric, reason in dropped.items())
