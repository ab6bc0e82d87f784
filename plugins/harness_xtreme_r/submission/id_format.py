"""The submission files that map item ids to predictions in one JSON object: answers and rankings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import DataError
from harness.metrics.retrieval import CUT_OFF
from harness_xtreme_r.submission.format import FilePair, PairedItems, read_text, write_text

__all__ = ["AnswerFormat", "GoldItem", "RankingFormat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldItem:
    """One gold item of a file with ids."""

    id: str
    references: tuple[str, ...]
    """The gold answer texts of a question, or the gold entity of a mention."""


class _RepeatedKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    for key, count in counts.items():
        if count > 1:
            raise _RepeatedKeyError(key)
    return dict(pairs)


def _read_object(path: Path, expected: str) -> dict[str, Any]:
    """Return the JSON object of a file; raises `DataError` with the line where it is no JSON."""
    try:
        content = json.loads(read_text(path), object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}:{error.lineno}: expected {expected}, found broken JSON: {error.msg}."
        ) from error
    except _RepeatedKeyError as error:
        raise DataError(f"{path}: expected every id once, found {error.key!r} repeated.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}:1: expected {expected}, found a JSON {type(content).__name__}.")
    return content


def _write_object(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(dict(content), ensure_ascii=False, indent=1) + "\n")


def _pair_by_id(predictions: Mapping[str, Any], gold: Sequence[GoldItem], unanswered: Any) -> PairedItems:
    known = {item.id for item in gold}
    return PairedItems(
        outputs=[predictions.get(item.id, unanswered) for item in gold],
        references=[item.references for item in gold],
        missing=tuple(item.id for item in gold if item.id not in predictions),
        extra=tuple(key for key in predictions if key not in known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat:
    """An object of question id and answer text; gold is a SQuAD file or an object of id and text or texts."""

    extension: str = "json"

    def read_predictions(self, path: Path) -> dict[str, str]:
        """Return the answer text of every question id; raises `DataError` where a value is no text."""
        content = _read_object(path, "an object of question id and answer text")
        for key, text in content.items():
            if not isinstance(text, str):
                raise DataError(f"{path}: id {key!r}: expected an answer text, found {_shown(text)}.")
        return content

    def read_gold(self, path: Path) -> list[GoldItem]:
        """Return id and gold texts of every question, in file order; raises `DataError` without questions.

        A SQuAD file may ask the same id twice; as in the published scorers both count.
        """
        content = _read_object(path, "a SQuAD file or an object of question id and answer texts")
        items = _squad_items(content, path) if "data" in content else _map_items(content, path)
        if not items:
            raise DataError(f"{path}:1: expected at least one question, found none.")
        return items

    def write(self, path: Path, content: Mapping[str, str]) -> None:
        """Write the object of question id and answer text."""
        _write_object(path, content)

    def pair(self, predictions: Mapping[str, str], gold: Sequence[GoldItem], files: FilePair) -> PairedItems:
        """Return answers and gold texts in gold order; a question without an answer gets None."""
        return _pair_by_id(predictions, gold, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFormat:
    """An object of mention id and a list of entity ids, best first; gold lists hold exactly one entity.

    A list has at most 20 ids and none twice: the published scorer drops further ids and counts a
    repeated id at its first rank, so both are reported as faults.
    """

    extension: str = "json"

    def read_predictions(self, path: Path) -> dict[str, list[str]]:
        """Return the ranking of every mention id; raises `DataError` where a value is no such list."""
        content = _read_object(path, "an object of mention id and list of entity ids")
        return {key: _ranking(ids, f"{path}: id {key!r}") for key, ids in content.items()}

    def read_gold(self, path: Path) -> list[GoldItem]:
        """Return id and entity of every mention; raises `DataError` unless each has exactly one."""
        rankings = self.read_predictions(path)
        if not rankings:
            raise DataError(f"{path}:1: expected at least one mention, found none.")
        for key, ids in rankings.items():
            if len(ids) != 1:
                raise DataError(f"{path}: id {key!r}: expected exactly one gold entity, found {len(ids)}.")
        return [GoldItem(id=key, references=(ids[0].strip(),)) for key, ids in rankings.items()]

    def write(self, path: Path, content: Mapping[str, Sequence[str]]) -> None:
        """Write the object of mention id and list of entity ids; raises `DataError` as reading does."""
        _write_object(path, {key: _ranking(list(ids), f"{path}: id {key!r}") for key, ids in content.items()})

    def pair(
        self, predictions: Mapping[str, Sequence[str]], gold: Sequence[GoldItem], files: FilePair
    ) -> PairedItems:
        """Return rankings and gold entities in gold order; a mention without one gets an empty ranking."""
        return _pair_by_id(predictions, gold, [])


def _squad_items(content: Mapping[str, Any], path: Path) -> list[GoldItem]:
    items = []
    try:
        for question in (
            question
            for article in content["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ):
            references = [answer["text"] for answer in question["answers"]]
            _check_texts([question["id"], *references], f"{path}: question {question['id']!r}", "texts")
            items.append(GoldItem(id=question["id"], references=tuple(references)))
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: expected the SQuAD layout data / paragraphs / qas / id, answers / text, found another "
            f"({type(error).__name__}: {error}) after {len(items)} questions."
        ) from error
    hint = "Prepared test files have their answers removed; give the original file as gold."
    for item in items:
        if not item.references:
            raise DataError(
                f"{path}: question {item.id!r}: expected at least one gold answer, found none.", hint=hint
            )
    if items and all(item.references == ("",) for item in items):
        raise DataError(f"{path}: expected gold answers, found only empty ones.", hint=hint)
    return items


def _map_items(content: Mapping[str, Any], path: Path) -> list[GoldItem]:
    items = []
    for key, value in content.items():
        texts = _texts([value] if isinstance(value, str) else value, f"{path}: id {key!r}", "answer texts")
        if not texts:
            raise DataError(f"{path}: id {key!r}: expected at least one gold answer, found none.")
        items.append(GoldItem(id=key, references=tuple(texts)))
    return items


def _texts(value: Any, where: str, expected: str) -> list[str]:
    if not isinstance(value, list):
        raise DataError(f"{where}: expected {expected}, found {_shown(value)}.")
    _check_texts(value, where, expected)
    return value


def _ranking(value: Any, where: str) -> list[str]:
    ids = _texts(value, where, "a list of entity ids")
    if len(ids) > CUT_OFF:
        raise DataError(f"{where}: expected at most {CUT_OFF} entity ids, found {len(ids)}.")
    for key, count in Counter(ids).items():
        if count > 1:
            raise DataError(f"{where}: expected every entity id once, found {key!r} {count} times.")
    return ids


def _check_texts(values: Iterable[Any], where: str, expected: str) -> None:
    for value in values:
        if not isinstance(value, str):
            raise DataError(f"{where}: expected {expected}, found {_shown(value)} among them.")


def _shown(value: Any) -> str:
    return repr(value)[:80]
