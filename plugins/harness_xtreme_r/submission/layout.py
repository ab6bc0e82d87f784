"""The layout of a submission: one folder per task, with one file ``test-LANG.EXT`` per language.

Source: google-research/xtreme ``README.md`` and ``evaluate.py`` (READER_FUNCTION, METRIC_FUNCTION,
get_suffix).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from harness import UsageError
from harness.metrics import (
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
from harness_xtreme_r.submission.formats import (
    UPOS_TAGS,
    AnswerFormat,
    FileFormat,
    IndexFormat,
    RankingFormat,
    TagFormat,
    choice_format,
    label_format,
)

_LANGUAGE: Final = r"[a-z]{2,3}(?:-[A-Za-z0-9]{1,8})*"


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


_ACCURACY: Final = {"accuracy": accuracy}
_CHUNKS: Final = {"f1": chunk_f1, "precision": chunk_precision, "recall": chunk_recall}
_SQUAD: Final = {"exact_match": squad_exact_match, "f1": squad_f1}
_MLQA: Final = {"exact_match": mlqa_exact_match, "f1": mlqa_f1}
_XNLI: Final = label_format(
    ("contradiction", "entailment", "neutral"), aliases={"contradictory": "contradiction"}
)
_UPOS: Final = TagFormat(
    tags=re.compile("|".join(UPOS_TAGS)), expected="a universal part-of-speech tag such as NOUN"
)
_BIO: Final = TagFormat(tags=re.compile(r"O|[BIES]-\S+"), expected="O or an entity tag such as B-PER")


def _task(name: str, kind: str, form: FileFormat, metrics: Mapping[str, MetricFunction]) -> SubmissionTask:
    return SubmissionTask(name=name, kind=kind, format=form, metrics=MappingProxyType(metrics))


_ALL: Final = (
    _task("xnli", "sequence_classification", _XNLI, _ACCURACY),
    _task("pawsx", "sequence_classification", label_format(("0", "1")), _ACCURACY),
    _task("xcopa", "multiple_choice", choice_format(), _ACCURACY),
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
