"""The layout of a submission, one folder per task with a file ``test-LANG.EXT`` per language, and its file formats.

Files have one item per line, tags per line, or JSON objects of ids.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from harness import DataError, UsageError, near_names
from harness.data import whole_text
from harness.metrics import (
    CUT_OFF,
    MetricFunction,
    accuracy,
    chunk_f1,
    chunk_precision,
    chunk_recall,
    map_at_20,
    mlqa_exact_match,
    mlqa_f1,
    squad_exact_match,
    squad_f1,
)

CHOICES: Final = ("choice1", "choice2")
"""What the predictions of the harness call the choices, in the order in which they are numbered."""
_UPOS_TAGS: Final = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN"),
    *("PUNCT", "SCONJ", "SYM", "VERB", "X", "_"),
)
"""The 17 universal tags, and the ``_`` that XTREME's preparation leaves on words without one."""
_LANGUAGE: Final = r"[a-z]{2,3}(?:-[A-Za-z0-9]{1,8})*"
_ACCURACY: Final = {"accuracy": accuracy}
_CHUNKS: Final = {"f1": chunk_f1, "precision": chunk_precision, "recall": chunk_recall}
_SQUAD: Final = {"exact_match": squad_exact_match, "f1": squad_f1}
_MLQA: Final = {"exact_match": mlqa_exact_match, "f1": mlqa_f1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePair:
    """The predictions and the gold of one language, for messages."""

    predictions: Path
    gold: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedItems:
    """The items of one language in gold order, as metrics take them."""

    outputs: Sequence[Any]
    references: Sequence[Any]
    missing: tuple[str, ...] = ()
    """Ids of gold items without a prediction; they count 0."""
    extra: tuple[str, ...] = ()
    """Ids of predictions without a gold item; they do not count."""
    note: str = ""
    """A suspicious finding that the format allows."""


class FileFormat(Protocol):
    """How the files of a task are read, written and paired."""

    @property
    def extension(self) -> str:
        """Return the extension without a dot: ``tsv``."""

    def read_predictions(self, path: Path) -> Any:
        """Return the content of a file of predictions."""

    def read_gold(self, path: Path) -> Any:
        """Return the content of a gold file."""

    def write(self, path: Path, content: Any) -> None:
        """Write what `read_predictions` returns, creating the folder."""

    def pair(self, predictions: Any, gold: Any, files: FilePair) -> PairedItems:
        """Return predictions paired with gold; raises `DataError` where lines or sentences do not match."""


def _write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, creating its folder; raises `UsageError` where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"Cannot write {path}: {error.strerror}.", hint="Choose a folder you can write to."
        ) from error


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield place and text of every line but blank ones at the end, at least one."""
    lines = whole_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path}:1: expected at least one item, found an empty file.")
    return ((f"{path}:{number}", line) for number, line in enumerate(lines, start=1))


# One item per line --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """One item per line, in test order."""

    parse: Callable[[str, str], Any]
    """Returns the item of a line; raises `DataError` at the place, its second argument."""
    spell: Callable[[Any], str] = str
    """Returns the line of an item."""
    has_texts: bool = False
    """Whether a gold file may have other columns before the item."""
    extension: str = "tsv"

    def read_predictions(self, path: Path) -> list[Any]:
        """Return the item of every line."""
        return [self.parse(line, where) for where, line in _lines(path)]

    def read_gold(self, path: Path) -> list[Any]:
        """Return the item of every line, or of its last column."""
        lines = (
            (where, line.rpartition("\t")[2] if self.has_texts else line) for where, line in _lines(path)
        )
        return [self.parse(line, where) for where, line in lines]

    def write(self, path: Path, content: Sequence[Any]) -> None:
        """Write one item per line."""
        lines = enumerate(map(self.spell, content), start=1)
        items = [self.parse(line, f"{path}:{number}") for number, line in lines]
        _write_text(path, "".join(f"{self.spell(item)}\n" for item in items))

    def pair(self, predictions: Sequence[Any], gold: Sequence[Any], files: FilePair) -> PairedItems:
        """Return predicted and gold items line by line; raises `DataError` where the counts differ."""
        if len(predictions) != len(gold):
            raise DataError(
                f"{files.predictions}:{len(predictions)}: expected {len(gold)} lines, one for each line of "
                f"{files.gold}, found {len(predictions)}."
            )
        return PairedItems(outputs=predictions, references=gold, note=self.note(predictions, gold, files))

    def note(self, predictions: Sequence[Any], gold: Sequence[Any], files: FilePair) -> str:
        """Return a note on suspicious predictions; empty without any."""
        return ""


def _label_format(labels: Sequence[str], aliases: Mapping[str, str] | None = None) -> LineFormat:
    """Return the format of files with one label per line; `aliases` are other published spellings of labels."""

    def parse(text: str, where: str) -> str:
        label = (aliases or {}).get(text.strip(), text.strip())
        if label not in labels:
            near = near_names(label, labels)
            suggestion = f" Did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{where}: expected {_one_of(labels)}, found {text!r}.{suggestion}")
        return label

    return LineFormat(parse=parse, has_texts=True)


def _choice_format() -> LineFormat:
    """Return the format with a JSON object per line whose ``label`` is the number of a choice, from 0."""

    def parse(line: str, where: str) -> int:
        expected = f'an object like {{"label": 0}} with {_one_of(map(str, range(len(CHOICES))))}'
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: expected {expected}, found {line!r} ({error.msg}).") from error
        label = record.get("label") if isinstance(record, dict) else None
        if type(label) is not int or not 0 <= label < len(CHOICES):
            raise DataError(f"{where}: expected {expected}, found {line[:80]!r}.")
        return label

    return LineFormat(parse=parse, spell=lambda number: json.dumps({"label": number}), extension="jsonl")


def _index(text: str, where: str) -> int:
    if not re.fullmatch("[0-9]+", text.strip()):
        raise DataError(f"{where}: expected the 0-based number of a sentence, found {text!r}.")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFormat(LineFormat):
    """One 0-based integer per line."""

    parse: Callable[[str, str], int] = _index

    def note(self, predictions: Sequence[int], gold: Sequence[int], files: FilePair) -> str:
        """Return that numbers are beyond the last sentence, as where sentences are counted from 1."""
        beyond = [index for index in predictions if index >= len(gold)]
        if not beyond or max(gold) >= len(gold):
            return ""
        return (
            f"{len(beyond)} lines of {files.predictions} hold numbers above {len(gold) - 1}, such as "
            f"{max(beyond)}, which no sentence has; sentences are counted from 0."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagFormat:
    """One tag per line and a blank line between sentences; words are not repeated."""

    tags: re.Pattern[str]
    expected: str
    """What `tags` matches, for messages."""
    extension: str = "tsv"

    def read_predictions(self, path: Path) -> list[list[str]]:
        """Return the tags of every sentence."""
        return self._read(path, is_gold=False)

    def read_gold(self, path: Path) -> list[list[str]]:
        """Return the tags of every sentence: the last column, after a tab, where lines have several."""
        return self._read(path, is_gold=True)

    def write(self, path: Path, content: Sequence[Sequence[str]]) -> None:
        """Write one tag per line; raises `DataError` also for an empty last sentence."""
        if not content or not content[-1]:
            raise DataError(f"{path}: expected at least one sentence, the last one with a tag, to write.")
        lines = "\n\n".join("\n".join(sentence) for sentence in content).split("\n")
        for number, line in enumerate(lines, start=1):
            if line:
                self._tag(line, f"{path}:{number}")
        _write_text(path, "\n".join(lines) + "\n")

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

    def _read(self, path: Path, *, is_gold: bool) -> list[list[str]]:
        # As in the published reader, each blank line ends a sentence: two in a row hold an empty one.
        sentences: list[list[str]] = [[]]
        for where, line in _lines(path):
            cells = line.split("\t")
            if not line.strip():
                sentences.append([])
            elif len(cells) > 1 and not is_gold:
                raise DataError(
                    f"{where}: expected one tag and no word, found {len(cells)} columns: {line!r}."
                )
            else:
                sentences[-1].append(self._tag(cells[-1].strip(), where))
        return sentences

    def _tag(self, tag: str, where: str) -> str:
        if not self.tags.fullmatch(tag):
            raise DataError(f"{where}: expected {self.expected}, found {tag!r}.")
        return tag


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


# Objects of ids -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldItem:
    """One gold item of a file with ids."""

    id: str
    references: tuple[str, ...]
    """The gold answer texts of a question, or the gold entity of a mention."""


class _RepeatedKeyError(Exception):
    """An id that occurs twice in an object."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise _RepeatedKeyError(key)
    return dict(pairs)


def _read_object(path: Path, expected: str) -> dict[str, Any]:
    try:
        content = json.loads(whole_text(path), object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}:{error.lineno}: expected {expected}, found broken JSON: {error.msg}."
        ) from error
    except _RepeatedKeyError as error:
        raise DataError(f"{path}: expected every id once, found {error.args[0]!r} repeated.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}:1: expected {expected}, found a JSON {type(content).__name__}.")
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class _IdFormat:
    """An object of item ids and predictions."""

    extension: str = "json"

    def pair(self, predictions: Mapping[str, Any], gold: Sequence[GoldItem], files: FilePair) -> PairedItems:
        """Return predictions and gold in gold order; `unanswered` for an item without a prediction."""
        known = {item.id for item in gold}
        return PairedItems(
            outputs=[predictions.get(item.id, self.unanswered()) for item in gold],
            references=[item.references for item in gold],
            missing=tuple(item.id for item in gold if item.id not in predictions),
            extra=tuple(key for key in predictions if key not in known),
        )

    def unanswered(self) -> Any:
        """Return the prediction of an item without one."""

    def write(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write the object."""
        _write_text(path, json.dumps(dict(content), ensure_ascii=False, indent=1) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat(_IdFormat):
    """An object of question id and answer text; gold is a SQuAD file or an object of id and text or texts."""

    def read_predictions(self, path: Path) -> dict[str, str]:
        """Return the answer text of every question id."""
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
        hint = "Prepared test files have their answers removed; give the original file as gold."
        if not items:
            raise DataError(f"{path}:1: expected at least one question, found none.")
        for item in items:
            if not item.references:
                found = f"{path}: question id {item.id!r}: expected at least one gold answer, found none."
                raise DataError(found, hint=hint)
        if all(item.references == ("",) for item in items):
            raise DataError(f"{path}: expected gold answers, found only empty ones.", hint=hint)
        return items


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFormat(_IdFormat):
    """An object of mention id and a list of entity ids, best first; gold lists hold exactly one entity.

    A list has at most 20 ids and none twice: the published scorer drops further ids and counts a
    repeated id at its first rank, so both are reported as faults.
    """

    def read_predictions(self, path: Path) -> dict[str, list[str]]:
        """Return the ranking of every mention id."""
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

    def unanswered(self) -> list[str]:
        """Return an empty ranking."""
        return []

    def write(self, path: Path, content: Mapping[str, Sequence[str]]) -> None:
        """Write the object of mention id and list of entity ids."""
        rankings = {key: _ranking(list(ids), f"{path}: id {key!r}") for key, ids in content.items()}
        super(RankingFormat, self).write(path, rankings)


def _squad_items(content: Mapping[str, Any], path: Path) -> list[GoldItem]:
    items: list[GoldItem] = []
    try:
        paragraphs = [paragraph for article in content["data"] for paragraph in article["paragraphs"]]
        for question in (question for paragraph in paragraphs for question in paragraph["qas"]):
            texts = [answer["text"] for answer in question["answers"]]
            _check_texts([question["id"], *texts], f"{path}: question {question['id']!r}", "texts")
            items.append(GoldItem(id=question["id"], references=tuple(texts)))
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: expected the SQuAD layout data / paragraphs / qas / id, answers / text, found another "
            f"({type(error).__name__}: {error}) after {len(items)} questions."
        ) from error
    return items


def _map_items(content: Mapping[str, Any], path: Path) -> list[GoldItem]:
    items = []
    for key, value in content.items():
        texts = [value] if isinstance(value, str) else value
        _check_texts(texts, f"{path}: id {key!r}", "answer texts")
        items.append(GoldItem(id=key, references=tuple(texts)))
    return items


def _ranking(value: Any, where: str) -> list[str]:
    ids: list[str] = value
    _check_texts(ids, where, "a list of entity ids")
    if len(ids) > CUT_OFF:
        raise DataError(f"{where}: expected at most {CUT_OFF} entity ids, found {len(ids)}.")
    for key, count in Counter(ids).items():
        if count > 1:
            raise DataError(f"{where}: expected every entity id once, found {key!r} {count} times.")
    return ids


def _check_texts(values: Any, where: str, expected: str) -> None:
    if not isinstance(values, list):
        raise DataError(f"{where}: expected {expected}, found {_shown(values)}.")
    for value in values:
        if not isinstance(value, str):
            raise DataError(f"{where}: expected {expected}, found {_shown(value)} among them.")


def _shown(value: Any) -> str:
    return repr(value)[:80]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionTask:
    """One task of the public layout."""

    name: str
    """The name of its folder."""
    kind: str
    """The task kind whose predictions the files hold."""
    format: FileFormat
    metrics: Mapping[str, MetricFunction]
    """The metrics that the benchmark's scorer prints, by the names it prints."""

    def path(self, root: Path, language: str) -> Path:
        """Return the file of a language below `root`; raises `UsageError` for an invalid code."""
        if not re.fullmatch(_LANGUAGE, language):
            raise UsageError(f"Expected a language code such as 'sw' in a file name, found {language!r}.")
        return root / self.name / f"test-{language}.{self.format.extension}"


_XNLI: Final = _label_format(
    ("contradiction", "entailment", "neutral"), aliases={"contradictory": "contradiction"}
)
_UPOS: Final = TagFormat(
    tags=re.compile("|".join(_UPOS_TAGS)), expected="a universal part-of-speech tag such as NOUN"
)
_BIO: Final = TagFormat(tags=re.compile(r"O|[BIES]-\S+"), expected="O or an entity tag such as B-PER")


def _task(name: str, kind: str, form: FileFormat, metrics: Mapping[str, MetricFunction]) -> SubmissionTask:
    return SubmissionTask(name=name, kind=kind, format=form, metrics=MappingProxyType(metrics))


_ALL: Final = (
    _task("xnli", "sequence_classification", _XNLI, _ACCURACY),
    _task("pawsx", "sequence_classification", _label_format(("0", "1")), _ACCURACY),
    _task("xcopa", "multiple_choice", _choice_format(), _ACCURACY),
    _task("udpos", "token_tagging", _UPOS, _CHUNKS),
    _task("panx", "token_tagging", _BIO, _CHUNKS),
    _task("xquad", "span_extraction", AnswerFormat(), _SQUAD),
    _task("mlqa", "span_extraction", AnswerFormat(), _MLQA),
    _task("tydiqa", "span_extraction", AnswerFormat(), _SQUAD),
    _task("tatoeba", "bitext_retrieval", IndexFormat(), _ACCURACY),
    _task("mewslix", "ranked_retrieval", RankingFormat(), {"map@20": map_at_20}),
)
TASKS: Final[Mapping[str, SubmissionTask]] = MappingProxyType({task.name: task for task in _ALL})
"""The ten tasks with a public file format, by the name of their folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFiles:
    """The files that lie in the folder of one task."""

    paths: Mapping[str, Path]
    """The file of every language, by language code in alphabetical order."""
    ignored: tuple[Path, ...]
    """Files that are not named ``test-LANG.EXT``."""


def find_languages(root: Path, task: SubmissionTask) -> LanguageFiles:
    """Return the language files of a task below `root`; none where the task has no folder there."""
    pattern = re.compile(rf"test-({_LANGUAGE})\.{re.escape(task.format.extension)}")
    paths: dict[str, Path] = {}
    ignored = []
    folder = root / task.name
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = pattern.fullmatch(path.name)
        if match and path.is_file():
            paths[match[1]] = path
        elif not path.name.startswith("."):
            ignored.append(path)
    return LanguageFiles(paths=paths, ignored=tuple(ignored))
