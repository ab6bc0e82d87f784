"""Reads the logs of inspect_ai, ``.eval`` and ``.json``, by its own package."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness import DataError, require_extra
from harness_import.logged import (
    LoggedCell,
    LoggedItem,
    asked_choices,
    choice_position,
    language_code,
    plain_scores,
    split_language,
    without_gold,
)

NAME: Final = "inspect_ai"
_UNUSED: Final = {"messages", "events", "store", "attachments"}
_OPENING: Final = 4096


def is_log(path: Path) -> bool:
    """Return whether a file is a log of inspect_ai, by its suffix or, as JSON, by its first keys."""
    if path.suffix != ".json":
        return path.suffix == ".eval"
    with path.open("rb") as file:
        opening = file.read(_OPENING)
    return b'"status"' in opening and b'"eval_id"' in opening


def read_log(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a log, one per language of its samples.

    Raises `MissingExtraError` where inspect_ai is not installed, and `DataError` for a broken or unfinished log.
    """
    with require_extra("Reading logs of inspect_ai", "inspect", f"{__name__}:read_log"):
        tool: Any = importlib.import_module("inspect_ai.log")
        scorer: Any = importlib.import_module("inspect_ai.scorer")
    try:
        log = tool.read_eval_log(str(path), exclude_fields=_UNUSED)
    except Exception as error:  # its package raises what its parsers do
        raise DataError(f"{path} cannot be read by inspect_ai: {error}.") from error
    if log.status != "success" or not log.samples:
        raise DataError(
            f"{path}: expected a finished log with samples, found one with the status {log.status!r} and "
            f"{len(log.samples or ())} samples.",
            hint="Finish it with 'inspect eval-retry', or leave the file out.",
        )
    task, language = split_language(log.eval.task.rpartition("/")[2], *_languages(log.eval.task_args))
    to_float = scorer.value_to_float()
    shots = next((str(value) for key, value in log.eval.task_args.items() if "shot" in key.lower()), None)
    cell = LoggedCell(
        harness=NAME,
        version=str((log.eval.packages or {}).get("inspect_ai", "unknown")),
        model=log.eval.model,
        task=task,
        logged_name=log.eval.task,
        language=language,
        files=(path,),
        view={"shots": shots} if shots and shots != "0" else {},
        task_version=log.eval.task_version if isinstance(log.eval.task_version, int) else None,
    )
    for code, samples in _by_language(log.samples, language, path).items():
        yield replace(cell, language=code, items=[_item(sample, to_float) for sample in samples])


def _by_language(samples: Sequence[Any], language: str, path: Path) -> dict[str, list[Any]]:
    by_code: dict[str, list[Any]] = {}
    for sample in samples:
        named = _languages(sample.metadata) or [language]
        by_code.setdefault(language_code(named[0], str(path)), []).append(sample)
    return by_code


def _languages(settings: Mapping[str, Any] | None) -> list[str]:
    return [str(value) for key, value in (settings or {}).items() if key.lower() in {"language", "lang"}]


def _item(sample: Any, to_float: Any) -> LoggedItem:
    scores: dict[str, Any] = {}
    answers = []
    for name, score in (sample.scores or {}).items():
        is_several = isinstance(score.value, dict)
        parts = (
            {f"{name}_{key}": each for key, each in score.value.items()}
            if is_several
            else {name: score.value}
        )
        scores |= {key: to_float(value) for key, value in parts.items()}
        answers.append(score.answer)
    choices = tuple(map(str, sample.choices or ()))
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    answer = next((each for each in answers if each is not None), None)
    messages = [] if isinstance(sample.input, str) else sample.input
    asked = "\n".join(message.text for message in messages) or str(sample.input)
    identifier = str(sample.id)
    return LoggedItem(
        id=identifier if sample.epoch == 1 else f"{identifier}#{sample.epoch}",
        answer=choice_position(answer, choices),
        gold=choice_position(targets[0] if len(targets) == 1 else None, choices),
        scores=plain_scores(scores),
        fields={
            "input": asked,
            **asked_choices(choices),
            **without_gold(json.loads(json.dumps(sample.metadata or {}, default=str))),
        },
        choices=choices,
        cluster=identifier,
        unparsed=answer is None,
    )
