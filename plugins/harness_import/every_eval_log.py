"""Reads the instance-level JSON lines of Every Eval Ever.

Source: ``instance_level_eval.schema.json`` 0.2.1 of github.com/evaleval/every_eval_ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import Row, read_jsonl
from harness_import.logged import (
    LoggedCell,
    LoggedItem,
    asked_choices,
    choice_position,
    joined,
    language_code,
    plain_scores,
    split_language,
)

NAME: Final = "every_eval_ever"


def is_instances(first: Mapping[str, Any]) -> bool:
    """Return whether the first record of a file is one of Every Eval Ever's instances."""
    return {"schema_version", "evaluation_name", "sample_id", "evaluation", "model_id"} <= first.keys()


def read_instances(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a file; raises `DataError` where a record is broken."""
    yield from joined(_cell_and_item(row, path) for row in read_jsonl([path], {}))


def _cell_and_item(row: Row, path: Path) -> tuple[LoggedCell, LoggedItem]:
    try:
        name = str(row.fields["evaluation_name"])
        task, language = split_language(name)
        cell = LoggedCell(
            harness=NAME,
            version=f"schema {row.fields['schema_version']}",
            model=str(row.fields["model_id"]),
            task=task,
            logged_name=name,
            language=language_code((row.fields.get("metadata") or {}).get("language") or language, row.where),
            files=(path,),
        )
        return cell, _item(row)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{row.where}: expected an instance of Every Eval Ever: {error!r}.") from error


def _item(row: Row) -> LoggedItem:
    record = row.fields
    asked, evaluation = record["input"], record["evaluation"]
    choices = tuple(map(str, asked.get("choices") or ()))
    attribution = [each for each in record.get("answer_attribution") or () if each.get("is_terminal")]
    raw = (record.get("output") or {}).get("raw") or []
    written = attribution[-1]["extracted_value"] if attribution else (raw[0] if raw else None)
    references: Sequence[str] = asked.get("reference") or []
    return LoggedItem(
        id=str(record["sample_id"]),
        answer=choice_position(written, choices),
        gold=choice_position(references[0] if len(references) == 1 else None, choices),
        scores=plain_scores({"score": evaluation["score"], "is_correct": evaluation["is_correct"]}),
        fields={"input": str(asked["raw"]), **asked_choices(choices)},
        choices=choices,
    )
