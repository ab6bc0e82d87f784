"""The items of a cell as lines of lm-eval's ``samples_TASK_DATE.jsonl``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness import ItemRecord, Run

__all__ = ["NAMES", "sample_lines", "task_hash"]

NAMES: Final = {"accuracy": "acc"}
"""Metrics that have another name in lm-eval."""


def sample_lines(run: Run, cell: Mapping[str, Any], spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a finished cell: one per item, or for lm-eval's own tasks one per item and filter."""
    records = run.records(cell)
    if str(spec.get("kind", "")).startswith("lm_eval_"):
        lines = [line for record in records for line in _their_lines(record)]
        # lm-eval writes all documents of a filter, then those of the next.
        filters = list(dict.fromkeys(line["filter"] for line in lines))
        return sorted(lines, key=lambda line: filters.index(line["filter"]))
    return [_our_line(record, cell["method"]) for record in records]


def task_hash(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the hash of a task's documents, prompts and targets; None where the prompts are not recorded."""
    hashes = [line[key] for line in lines for key in ("doc_hash", "prompt_hash", "target_hash")]
    return None if None in hashes else _hash("".join(hashes))


def _their_lines(record: ItemRecord) -> Iterator[dict[str, Any]]:
    """Yield what lm-eval itself would write, in the order of its keys."""
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
    target = _text(record.reference)
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
        "metrics": [NAMES.get(name, name) for name in scores],
        "doc_hash": _content_hash(dict(record.fields)),
        "prompt_hash": None,
        "target_hash": _hash(target),
        **{NAMES.get(name, name): value for name, value in scores.items()},
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
    read = _text(_answer(prediction))
    return [[read if raw is None else str(raw)]], [read]


def _answer(prediction: Any) -> Any:
    for key in ("label", "text", "candidate", "candidates"):
        if isinstance(prediction, Mapping) and key in prediction:
            return prediction[key]
    return prediction


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(value: Any) -> Any:
    """Return nested lists with their leaves as texts, as ``sanitize_list`` of ``lm_eval/utils.py``."""
    return [_texts(item) for item in value] if isinstance(value, list) else str(value)


def _content_hash(document: Any) -> str:
    return _hash(json.dumps(document, indent=2, ensure_ascii=False))


def _hash(text: str) -> str:
    """Return ``hash_string`` of ``lm_eval/utils.py``."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
