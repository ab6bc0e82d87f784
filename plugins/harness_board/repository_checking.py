"""What is wrong with a results repository, by file and line: for pull requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import SpecError, UsageError
from harness.cli import write_file
from harness.specs import read_yaml
from harness_board.published import read_metadata
from harness_board.repository_entry import (
    ROUNDED,
    LanguageMean,
    ModelRun,
    ModelScore,
    RepositoryEntry,
    ScoredTask,
    canonical,
    local_path,
)
from harness_board.repository_runs import COMPARED, entry_files, metadata_files, parse_entry

MOST_BYTES = 2_000_000
"""Of a file: 205 languages with five seeds are a third of it."""
RIGHT_OR_WRONG = frozenset(
    "accuracy accuracy_byte accuracy_char accuracy_pmi accuracy_token exact_match exact_value mkqa_exact_match "
    "mlqa_exact_match".split()
)
"""Metrics of the core that give every item 0 or 1."""

FoundFault = tuple[int | None, str]
"""Line and message."""
Place = tuple[str | int, ...]
"""Keys that lead to a value of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that keeps a file out of the repository."""

    file: str
    """Relative to the repository."""
    line: int | None
    message: str

    def __str__(self) -> str:
        """Return ``results/m/xnli-v1.json:12: message``."""
        return f"{self.file}:{self.line or 1}: {self.message}"


@dataclass(slots=True, kw_only=True)
class RepositoryReport:
    """What `check_repository` has seen."""

    fix: bool = False
    """Whether files that are only written otherwise are rewritten."""
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a maintainer may want to look at; it is no fault."""
    files: int = 0
    scores: int = 0
    models: set[str] = field(default_factory=set)
    tasks: dict[tuple[str, int], tuple[str, ScoredTask]] = field(default_factory=dict)
    """Name and version -> the first file that describes the task, and how it does."""
    items: dict[tuple[str, int], dict[str, set[str]]] = field(default_factory=dict)
    """Task -> language -> the digests of the items that scores are of."""

    def add(self, file: str, faults: Iterable[FoundFault]) -> None:
        """Note the faults of a file, by line."""
        found = [Fault(file=file, line=line, message=message) for line, message in faults]
        self.faults += sorted(found, key=lambda fault: fault.line or 0)


def check_repository(repository: Path, *, fix: bool = False) -> RepositoryReport:
    """Return the faults of all files; raises `UsageError` where the folder is no results repository.

    With `fix` it rewrites the files whose keys and lines alone are not as they should be.
    """
    report = RepositoryReport(fix=fix)
    names: dict[str, str] = {}
    for path in entry_files(repository):
        name = path.relative_to(repository).as_posix()
        report.files += 1
        report.add(name, _of_file(path, name, report))
        if (first := names.setdefault(name.casefold(), name)) != name:
            text = f"differs from {first!r} in the case of letters alone, which some systems ignore"
            report.add(name, [(None, text)])
    for path in metadata_files(repository):
        report.add(path.relative_to(repository).as_posix(), _of_metadata(path, report))
    for (task, version), languages in sorted(report.items.items()):
        if several := sorted(code for code, digests in languages.items() if len(digests) > 1):
            about = f"{task}, version {version}, is scored on items from different files"
            report.notes.append(f"{about}: {' '.join(several)}")
    return report


def _of_file(path: Path, name: str, report: RepositoryReport) -> Iterator[FoundFault]:
    if path.is_symlink() or path.suffix != ".json":
        yield None, "expected files MODEL/TASK-vVERSION.json alone, as harness results add writes them"
        return
    if path.stat().st_size > MOST_BYTES:
        yield None, f"has more than {MOST_BYTES:,} bytes"
        return
    try:
        text = path.read_bytes().decode()
        entry = parse_entry(text, name)
        expected_text = canonical(json.loads(text))
        if expected_text != text:
            read_yaml(text, name)  # which takes no key twice
    except SpecError as error:
        yield from _problems(error)
        return
    except (ValueError, RecursionError) as error:
        yield None, f"cannot be read: {error}"
        return
    if expected_text != text and report.fix:
        write_file(path, expected_text)
    elif expected_text != text:
        order = "its keys are not sorted, or its scores not one per line"
        yield 1, f"{order}; harness results check --fix rewrites it"
        return
    yield from _published_paths(text)
    if name != str(entry.path):
        about = f"model {entry.model!r}, task {entry.task.name!r}"
        yield 1, f"its content belongs into {str(entry.path)!r}: {about}"
    document = None
    for place, message in _of_entry(entry, report, name):
        document = document or read_yaml(text, name)
        yield document.line_of(place), message


def _problems(error: SpecError) -> Iterator[FoundFault]:
    for problem in error.problems:
        yield problem.line, f"{problem.key}: {problem.message}" if problem.key else problem.message


def _published_paths(text: str) -> Iterator[FoundFault]:
    if (path := local_path(text)) is not None:
        yield text[: text.index(path)].count("\n") + 1, f"publishes the local path {path!r}"


def _of_entry(entry: RepositoryEntry, report: RepositoryReport, name: str) -> Iterator[tuple[Place, str]]:
    """Yield where the content of one file is at fault, and note what other files are compared with."""
    task = entry.task
    key = (task.name, task.version)
    first, described = report.tasks.setdefault(key, (name, task))
    for what in COMPARED:
        if getattr(described, what) != getattr(task, what):
            yield ("task", what), f"is not that of {first}: one version of a task has one {what!r}"
    report.models.add(entry.model)
    seen: dict[Any, Place] = {}
    digests = report.items.setdefault(key, {})
    for at, run in enumerate(entry.runs):
        for index, score in enumerate(run.scores):
            place: Place = ("runs", at, "scores", index)
            report.scores += 1
            digests.setdefault(score.language, set()).add(score.items.digest)
            if (before := seen.setdefault((run.harness, score.key), place)) != place:
                again = f"is the score {before[-1]} of run {before[1]} again"
                yield place, f"{again}: same language, condition and seed"
            for message in _of_score(score, run, task):
                yield place, message
        for index, mean in enumerate(run.means):
            for message in _of_mean(mean, run):
                yield ("runs", at, "means", index), message


def _of_score(score: ModelScore, run: ModelRun, task: ScoredTask) -> Iterator[str]:
    if score.language not in task.languages:
        yield f"the task has no family and script of {score.language!r}"
    if score.fit not in {None, "none", *run.fits}:
        yield f"the run says nothing of its fit {score.fit!r}"
    if missing := set(task.headline) - score.metrics.keys():
        yield f"has no {' and no '.join(sorted(missing))}, which the task is scored by"
    if unknown := score.metrics.keys() - set(task.metrics):
        yield f"{' '.join(sorted(unknown))} is no metric of the task"
    repeats = score.view.get("repeats", "1")
    answers = score.n * int(repeats) if repeats.isdecimal() and len(repeats) < 6 else 0
    for name in score.metrics.keys() & RIGHT_OR_WRONG:
        value = score.metrics[name].value
        if abs(value * answers - round(value * answers)) > answers * ROUNDED + 1e-9:
            yield f"{name!r} is {value:g}, which no number of right answers among {answers:,} gives"


def _of_mean(mean: LanguageMean, run: ModelRun) -> Iterator[str]:
    scores: dict[str, list[float]] = {}
    for score in run.scores:
        if score.condition == mean.condition and mean.metric in score.metrics:
            scores.setdefault(score.language, []).append(score.metrics[mean.metric].value)
    if set(mean.languages) != set(scores):
        yield f"the mean of {mean.metric!r} is not over the languages of its run"
        return
    value = fmean(map(fmean, scores.values()))
    if abs(value - mean.value) > 4 * ROUNDED:
        yield f"the mean of {mean.metric!r} is {mean.value:g}, that of the run's scores {value:g}"


def _of_metadata(path: Path, report: RepositoryReport) -> Iterator[FoundFault]:
    if path.is_symlink():
        yield None, "expected a file, found a link"
        return
    try:
        stated = read_metadata(path)
        text = path.read_text(encoding="utf-8")
    except SpecError as error:
        yield from _problems(error)
        return
    except UsageError as error:
        yield None, error.message
        return
    yield from _published_paths(text)
    if not set(stated.names) & report.models:
        yield None, f"is about {stated.name!r}, and no file of results is"
