"""The submission files that hold one item per line, in test order: labels, choices, indices and tags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness import DataError, near_names
from harness_xtreme_r.submission.format import FilePair, PairedItems, read_lines, write_text

__all__ = [
    "UPOS_TAGS",
    "ChoiceFormat",
    "IndexFormat",
    "LabelFormat",
    "TagFormat",
    "is_bio_tag",
    "is_upos_tag",
]

UPOS_TAGS: Final = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN"),
    *("PUNCT", "SCONJ", "SYM", "VERB", "X", "_"),
)
"""The 17 universal tags, and the ``_`` that XTREME's preparation leaves on words without one."""

_BIO_TAG: Final = re.compile(r"O|[BIES]-\S+")
_INTEGER: Final = re.compile(r"[0-9]+")


def is_upos_tag(tag: str) -> bool:
    """Return whether the tag is one of `UPOS_TAGS`."""
    return tag in UPOS_TAGS


def is_bio_tag(tag: str) -> bool:
    """Return whether the tag is ``O`` or a prefix, a hyphen and a type."""
    return _BIO_TAG.fullmatch(tag) is not None


def _pair_lines(
    predictions: Sequence[Any], gold: Sequence[Any], files: FilePair, note: str = ""
) -> PairedItems:
    if len(predictions) != len(gold):
        raise DataError(
            f"{files.predictions}:{len(predictions)}: expected {len(gold)} lines, one for each line of "
            f"{files.gold}, found {len(predictions)}."
        )
    return PairedItems(outputs=predictions, references=gold, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFormat:
    """One label per line; a gold file may have other columns before the label."""

    labels: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other published spellings of a label."""
    extension: str = "tsv"

    def read_predictions(self, path: Path) -> list[str]:
        """Return the label of every line; raises `DataError` for an unknown label."""
        return [
            self._label(line, f"{path}:{number}") for number, line in enumerate(read_lines(path), start=1)
        ]

    def read_gold(self, path: Path) -> list[str]:
        """Return the label in the last column of every line; raises `DataError` where it is no label."""
        lines = enumerate(read_lines(path), start=1)
        return [self._label(line.rpartition("\t")[2], f"{path}:{number}") for number, line in lines]

    def write(self, path: Path, content: Sequence[str]) -> None:
        """Write one label per line; raises `DataError` for an unknown label."""
        labels = [self._label(label, f"{path}:{number}") for number, label in enumerate(content, start=1)]
        write_text(path, "".join(f"{label}\n" for label in labels))

    def pair(self, predictions: Sequence[str], gold: Sequence[str], files: FilePair) -> PairedItems:
        """Return predicted and gold labels line by line; raises `DataError` where the counts differ."""
        return _pair_lines(predictions, gold, files)

    def _label(self, text: str, where: str) -> str:
        label = self.aliases.get(text.strip(), text.strip())
        if label not in self.labels:
            near = near_names(label, self.labels)
            suggestion = f" Did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{where}: expected {_one_of(self.labels)}, found {text!r}.{suggestion}")
        return label


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFormat:
    """One JSON object per line whose ``label`` is the 0-based number of a choice; other keys are ignored."""

    choices: tuple[str, ...] = ("choice1", "choice2")
    """What the predictions of the harness call the choices, in the order in which they are numbered."""
    extension: str = "jsonl"

    def read_predictions(self, path: Path) -> list[int]:
        """Return the choice of every line; raises `DataError` at a line without one."""
        return [
            self._choice(line, f"{path}:{number}") for number, line in enumerate(read_lines(path), start=1)
        ]

    def read_gold(self, path: Path) -> list[int]:
        """Return the choice of every line; gold has the layout of predictions."""
        return self.read_predictions(path)

    def write(self, path: Path, content: Sequence[int]) -> None:
        """Write one ``{"label": choice}`` per line; raises `DataError` for a number that is no choice."""
        lines = [json.dumps({"label": choice}) for choice in content]
        for number, line in enumerate(lines, start=1):
            self._choice(line, f"{path}:{number}")
        write_text(path, "".join(f"{line}\n" for line in lines))

    def pair(self, predictions: Sequence[int], gold: Sequence[int], files: FilePair) -> PairedItems:
        """Return predicted and gold choices line by line; raises `DataError` where the counts differ."""
        return _pair_lines(predictions, gold, files)

    def _choice(self, line: str, where: str) -> int:
        expected = f'an object like {{"label": 0}} with {_one_of(map(str, range(len(self.choices))))}'
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: expected {expected}, found {line!r} ({error.msg}).") from error
        label = record.get("label") if isinstance(record, dict) else None
        if type(label) is not int or not 0 <= label < len(self.choices):
            raise DataError(f"{where}: expected {expected}, found {line[:80]!r}.")
        return label


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFormat:
    """One 0-based integer per line."""

    extension: str = "tsv"

    def read_predictions(self, path: Path) -> list[int]:
        """Return the integer of every line; raises `DataError` for another line."""
        return [
            self._index(line, f"{path}:{number}") for number, line in enumerate(read_lines(path), start=1)
        ]

    def read_gold(self, path: Path) -> list[int]:
        """Return the integer of every line; gold has the layout of predictions."""
        return self.read_predictions(path)

    def write(self, path: Path, content: Sequence[int]) -> None:
        """Write one integer per line; raises `DataError` for a negative one."""
        for number, index in enumerate(content, start=1):
            self._index(str(index), f"{path}:{number}")
        write_text(path, "".join(f"{index}\n" for index in content))

    def pair(self, predictions: Sequence[int], gold: Sequence[int], files: FilePair) -> PairedItems:
        """Return predicted and gold integers line by line; raises `DataError` where the counts differ."""
        beyond = [index for index in predictions if index >= len(gold)]
        note = ""
        if beyond and len(predictions) == len(gold) and max(gold) < len(gold):
            note = (
                f"{len(beyond)} lines of {files.predictions} hold numbers above {len(gold) - 1}, such as "
                f"{max(beyond)}, which no sentence has; sentences are counted from 0."
            )
        return _pair_lines(predictions, gold, files, note)

    @staticmethod
    def _index(text: str, where: str) -> int:
        if not _INTEGER.fullmatch(text.strip()):
            raise DataError(f"{where}: expected the 0-based number of a sentence, found {text!r}.")
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagFormat:
    """One tag per line and a blank line between sentences; words are not repeated."""

    is_tag: Callable[[str], bool]
    expected: str
    """What `is_tag` accepts, for messages."""
    extension: str = "tsv"

    def read_predictions(self, path: Path) -> list[list[str]]:
        """Return the tags of every sentence; raises `DataError` for an unknown tag."""
        return self._read(path, columns=1)

    def read_gold(self, path: Path) -> list[list[str]]:
        """Return the tags of every sentence: the last column, after a tab, where lines have several."""
        return self._read(path, columns=None)

    def write(self, path: Path, content: Sequence[Sequence[str]]) -> None:
        """Write one tag per line; raises `DataError` for an unknown tag and for an empty last sentence."""
        if not content or not content[-1]:
            raise DataError(f"{path}: expected at least one sentence, the last one with a tag, to write.")
        lines = "\n\n".join("\n".join(sentence) for sentence in content).split("\n")
        for number, line in enumerate(lines, start=1):
            if line:
                self._tag(line, f"{path}:{number}")
        write_text(path, "\n".join(lines) + "\n")

    def pair(
        self, predictions: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], files: FilePair
    ) -> PairedItems:
        """Return predicted and gold tags; raises `DataError` at the first sentence of another length."""
        line = 1
        for number, (predicted, tags) in enumerate(zip(predictions, gold, strict=False), start=1):
            if len(predicted) != len(tags):
                raise DataError(
                    f"{files.predictions}:{line}: expected {len(tags)} tags in sentence {number}, as in "
                    f"{files.gold}, found {len(predicted)}."
                )
            line += len(tags) + 1
        if len(predictions) != len(gold):
            raise DataError(
                f"{files.predictions}: expected {len(gold)} sentences, as in {files.gold}, found "
                f"{len(predictions)}; the first {min(len(predictions), len(gold))} have equal lengths."
            )
        return PairedItems(outputs=predictions, references=gold)

    def _read(self, path: Path, *, columns: int | None) -> list[list[str]]:
        # As in the published reader, each blank line ends a sentence: two in a row hold an empty one.
        sentences: list[list[str]] = [[]]
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                sentences.append([])
                continue
            cells = line.split("\t")
            if columns is not None and len(cells) != columns:
                raise DataError(
                    f"{path}:{number}: expected one tag and no word, found {len(cells)} columns: {line!r}."
                )
            sentences[-1].append(self._tag(cells[-1].strip(), f"{path}:{number}"))
        return sentences

    def _tag(self, tag: str, where: str) -> str:
        if not self.is_tag(tag):
            raise DataError(f"{where}: expected {self.expected}, found {tag!r}.")
        return tag


def _one_of(names: Any) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else str(last)
