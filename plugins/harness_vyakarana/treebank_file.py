"""Treebank files: language and split by file name, and the generation of whole files and folders."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from harness import DataError, Problem, UsageError
from harness.storage.files import FileNotWrittenError, publish
from harness_vyakarana.colorless import DROPPED_LENGTH, Generator, Report
from harness_vyakarana.conllu import Sentence, TreebankError, read_sentences, sentence_text
from harness_vyakarana.donors import DonorPool
from harness_vyakarana.grammar import Grammar, grammar_of

__all__ = [
    "Job",
    "generate_file",
    "jobs_of",
    "language_of",
    "require_language",
    "treebank_files",
    "usable_sentences",
    "written_file",
]

DISTRIBUTION = "multilingual-harness"
SUFFIX = ".conllu"
_NAME = re.compile(r"([a-z]{2,3})_[^-]+-(?:ud|um)-.+")
_SPLIT = re.compile(r"(?<![a-z])(train|test)(?![a-z])")
SWAPPED = {"train": "test", "test": "train"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A file to generate."""

    source: Path
    target: Path
    language: str


def language_of(path: Path) -> str | None:
    """Return the language code at the start of the name of a UD file (``hi_hdtb-ud-train``: hi), or None."""
    found = _NAME.fullmatch(path.name.removesuffix(SUFFIX))
    return found[1] if found else None


def require_language(path: Path, language: str | None) -> str:
    """Return the given language, or the one in the file's name; raises `UsageError` if there is none."""
    code = language or language_of(path)
    if code is None:
        raise UsageError(
            f"The language of {path.name!r} is unknown: its name does not start like 'hi_hdtb-ud-'.",
            hint="Give it with --language, for example --language hi.",
        )
    return code


def treebank_files(path: Path) -> list[Path]:
    """Return the CoNLL-U files of a folder by name, or the file itself; raises `DataError` if there are none."""
    if not path.exists():
        raise DataError(f"{path}: expected a .conllu file or a folder of them, found nothing.")
    if not path.is_dir():
        return [path]
    files = sorted(path.glob(f"*{SUFFIX}"))
    if not files:
        raise DataError(f"{path}: expected files *{SUFFIX}, found none.")
    return files


def jobs_of(source: Path, target: Path, *, language: str | None = None, swap: bool = True) -> list[Job]:
    """Return the files to generate: one for a file, one per file for a folder.

    In a folder, train and test are swapped as published: the generated train comes from the source's test. Raises
    `UsageError` if the language is unknown or a source would be overwritten.
    """
    jobs = []
    for path in treebank_files(source):
        code = require_language(path, language)
        name = _swapped(path.name) if swap else path.name
        jobs.append(Job(source=path, target=target / name if source.is_dir() else target, language=code))
    for job in jobs:
        if job.target.resolve() in {other.source.resolve() for other in jobs}:
            raise UsageError(
                f"The file {str(job.target)!r} is a source file and would be overwritten.",
                hint="Give another --output.",
            )
    return jobs


def _swapped(name: str) -> str:
    return _SPLIT.sub(lambda found: SWAPPED[found[1]], name)


def generate_file(
    job: Job,
    grammars: Mapping[str, Grammar],
    mode: str,
    *,
    seed: int = 0,
    shortest: int = DROPPED_LENGTH,
    pool_file: Path | None = None,
    advance: Callable[[int], None] | None = None,
) -> Report:
    """Write the variants of a file, in the order of the source, and return the counts.

    Donors come from the file itself, or from `pool_file`: a shard of a split needs it to get the same variants as
    the whole split. The file appears when it is complete. Raises `TreebankError` with all faults of the source.
    """
    grammar = grammar_of(job.language, grammars)
    donors = pool_file or job.source
    sentences = list(usable_sentences(job.source))
    pool = DonorPool(grammar, mode).add(usable_sentences(pool_file) if pool_file else sentences)
    generator = Generator(grammar, pool, seed=seed)
    header = (
        f"# generator = {DISTRIBUTION} {version(DISTRIBUTION)} colorless-green",
        f"# generated_from = {job.source.name}",
        f"# mode = {mode}, seed = {seed}, language = {job.language}, donors = {donors.name}",
    )
    with written_file(job.target) as file:
        for sentence in sentences:
            generator.report.read += 1
            if len(sentence.words) < shortest:
                generator.report.dropped += 1
                continue
            lines = () if generator.report.written else header
            for variant in generator.variants(sentence, header=lines):
                file.write(sentence_text(variant).encode())
            if advance is not None:
                advance(1)
    return generator.report


def usable_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file; raises `TreebankError` if one has no sent_id or no tree."""
    problems: list[Problem] = []
    try:
        for sentence in read_sentences(path, named=True):
            if sentence.heads:
                yield sentence
            else:
                key = f"sentence {sentence.sent_id!r}"
                problems.append(Problem(message="expected heads, found none", line=sentence.line, key=key))
    except TreebankError as error:
        problems += error.problems
    if problems:
        raise TreebankError(path, sorted(problems, key=lambda problem: problem.line or 0))


@contextmanager
def written_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when it is complete; raises `StorageError`."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise FileNotWrittenError(path, error) from error
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            yield file
        publish(Path(temporary), path)
    except OSError as error:
        raise FileNotWrittenError(path, error) from error
    finally:
        Path(temporary).unlink(missing_ok=True)
