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

from harness import UnknownNameError, UsageError
from harness.metrics import chunk, classification, mlqa, retrieval, squad
from harness.metrics.metric import MetricFunction
from harness_xtreme_r.submission.format import FileFormat
from harness_xtreme_r.submission.id_format import AnswerFormat, RankingFormat
from harness_xtreme_r.submission.line_format import (
    ChoiceFormat,
    IndexFormat,
    LabelFormat,
    TagFormat,
    is_bio_tag,
    is_upos_tag,
)

__all__ = ["TASKS", "LanguageFiles", "SubmissionTask", "find_languages", "get_task"]

_LANGUAGE: Final = r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*"


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


_ACCURACY: Final = MappingProxyType({"accuracy": classification.accuracy})
_TAGGING: Final = MappingProxyType(
    {"f1": chunk.chunk_f1, "precision": chunk.chunk_precision, "recall": chunk.chunk_recall}
)
_SQUAD: Final = MappingProxyType({"exact_match": squad.exact_match, "f1": squad.f1})
_MLQA: Final = MappingProxyType({"exact_match": mlqa.exact_match, "f1": mlqa.f1})
_RANKING: Final = MappingProxyType({"map@20": retrieval.map_at_20})
_XNLI: Final = LabelFormat(
    labels=("contradiction", "entailment", "neutral"), aliases={"contradictory": "contradiction"}
)
_UPOS: Final = TagFormat(is_tag=is_upos_tag, expected="a universal part-of-speech tag such as NOUN")
_BIO: Final = TagFormat(is_tag=is_bio_tag, expected="O or an entity tag such as B-PER")

_ALL: Final = (
    SubmissionTask(name="xnli", kind="sequence_classification", format=_XNLI, metrics=_ACCURACY),
    SubmissionTask(
        name="pawsx", kind="sequence_classification", format=LabelFormat(labels=("0", "1")), metrics=_ACCURACY
    ),
    SubmissionTask(name="xcopa", kind="multiple_choice", format=ChoiceFormat(), metrics=_ACCURACY),
    SubmissionTask(name="udpos", kind="token_tagging", format=_UPOS, metrics=_TAGGING),
    SubmissionTask(name="panx", kind="token_tagging", format=_BIO, metrics=_TAGGING),
    SubmissionTask(name="xquad", kind="span_extraction", format=AnswerFormat(), metrics=_SQUAD),
    SubmissionTask(name="mlqa", kind="span_extraction", format=AnswerFormat(), metrics=_MLQA),
    SubmissionTask(name="tydiqa", kind="span_extraction", format=AnswerFormat(), metrics=_SQUAD),
    SubmissionTask(name="tatoeba", kind="bitext_retrieval", format=IndexFormat(), metrics=_ACCURACY),
    SubmissionTask(name="mewslix", kind="ranked_retrieval", format=RankingFormat(), metrics=_RANKING),
)
TASKS: Final[Mapping[str, SubmissionTask]] = MappingProxyType({task.name: task for task in _ALL})
"""The ten tasks with a public file format, by the name of their folder."""


def get_task(name: str) -> SubmissionTask:
    """Return a task by name; raises `UnknownNameError` with near names."""
    if name not in TASKS:
        raise UnknownNameError("submission task", name, TASKS)
    return TASKS[name]


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
