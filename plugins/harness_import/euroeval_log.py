"""Reads EuroEval's ``euroeval_benchmark_results.jsonl``: a record per model and data set, without items.

A record has the scores of 10 iterations, each on a bootstrapped test set that is the same for all models
(``src/euroeval/scores.py``, ``data_models.py``). An iteration becomes an item, so that models are paired by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import Row, read_jsonl
from harness_import.logged import LoggedCell, LoggedItem, language_code, plain_scores

NAME: Final = "euroeval"
_COUNTS: Final = frozenset({"num_failed_instances"})


def is_records(first: Mapping[str, Any]) -> bool:
    """Return whether the first record of a file is one of EuroEval's results."""
    return {"dataset", "task", "model", "results"} <= first.keys()


def read_results(path: Path) -> Iterator[LoggedCell]:
    """Yield a cell per record and language; raises `DataError` where a record is broken."""
    for row in read_jsonl([path], {}):
        record = row.fields
        raw = record["results"].get("raw") if isinstance(record.get("results"), Mapping) else None
        iterations = raw.get("test") if isinstance(raw, Mapping) else raw
        languages = record.get("languages") or record.get("dataset_languages") or []
        if not iterations or not isinstance(iterations, list) or not languages:
            raise DataError(f"{row.where}: expected 'languages' and the list 'raw' of 'results' of EuroEval.")
        few_shot, validation = record.get("few_shot"), record.get("validation_split")
        generative = bool(record.get("generative"))
        # Languages that share a data set, such as the two of Norwegian, share its score.
        language = language_code(str(languages[0]), row.where)
        yield LoggedCell(
            harness=NAME,
            version=str(record.get("euroeval_version") or record.get("scandeval_version") or "unknown"),
            model=str(record["model"]),
            task=str(record["dataset"]),
            language=language,
            items=[_iteration(number, scores, row) for number, scores in enumerate(iterations, start=1)],
            files=(path,),
            view={
                **({"shots": "few" if few_shot else "0"} if generative else {}),
                **({"split": "validation"} if validation else {}),
            },
            protocol="prompted" if generative else "in_language",
            parameters=record.get("num_model_parameters"),
            notes=(f"{record['dataset']}: its items are EuroEval's iterations; the log has no answers.",),
        )


def _iteration(number: int, scores: Any, row: Row) -> LoggedItem:
    if not isinstance(scores, Mapping):
        raise DataError(f"{row.where}: expected the scores of an iteration by name, found {scores!r}.")
    named = {name.removeprefix("test_"): value for name, value in scores.items() if name not in _COUNTS}
    return LoggedItem(id=f"iteration-{number}", answer=None, gold=None, scores=plain_scores(named))
