"""Generates the cases of a suite: one file per language, and the task spec that runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import UnknownNameError, UsageError
from harness.cli import echo, show_progress
from harness.storage import write_atomically
from harness_checklist.generation.case import Case, case_lines
from harness_checklist.generation.drawing import draw_cases
from harness_checklist.suites.dumping import yaml_text
from harness_checklist.suites.suite import Suite, TestDeclaration

_TASK = re.compile(r"[a-z0-9][a-z0-9_\-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many cases of a test were made in one language."""

    language: str
    test: str
    cases: int = 0
    examples: int = 0
    empty: int = 0
    """Cases without examples, because no context or no question applies: they count as failed."""
    asked: int
    possible: int | None = None
    """How many cases exist, where all were made."""
    note: str | None = None


def task_name(suite: Suite, given: str | None) -> str:
    """Return the name of the task that runs the cases; raises `UsageError` for an invalid name."""
    if given is None:
        return "checklist_" + re.sub(r"[^a-z0-9_\-]", "_", suite.name.lower())
    if not _TASK.fullmatch(given):
        raise UsageError(f"--task takes small letters, digits, _ and -; found {given!r}.")
    return given


def make_folder(folder: Path) -> None:
    """Make a folder for cases; raises `UsageError` where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be created: {error.strerror}.") from error


def generate_cases(
    suite: Suite,
    languages: Sequence[str],
    tests: Sequence[str],
    *,
    n: int,
    seed: int,
    folder: Path | None,
    task: str,
) -> list[Tally]:
    """Write ``LANGUAGE.jsonl`` for every language that has cases, and ``task.yaml``; without a folder print the cases.

    Returns the tallies. One language is held in memory at a time. Raises `UnknownNameError` for unknown languages and
    tests, `UsageError` for tests of another type than MFT and for a folder that cannot be created.
    """
    for language in languages:
        if language not in suite.languages:
            raise UnknownNameError(f"language of suite {suite.name!r}", language, suite.languages)
    for name in tests:
        if name not in suite.tests:
            raise UnknownNameError(f"test of suite {suite.name!r}", name, suite.tests)
        if suite.tests[name].type != "MFT":
            raise UsageError(_not_generated(suite.tests[name]))
    tallies: list[Tally] = []
    written: list[str] = []
    if folder is None:
        for language in languages:
            batches = list(_drawn(suite, language, tests, n, seed))
            tallies += [tally for tally, _ in batches]
            echo(case_lines(case for _, cases in batches for case in cases), nl=False)
        return tallies
    make_folder(folder)
    with show_progress() as progress:
        progress.start(f"Generating {suite.name}", len(languages), "languages")
        for language in languages:
            batches = list(_drawn(suite, language, tests, n, seed))
            tallies += [tally for tally, _ in batches]
            if lines := case_lines(case for _, cases in batches for case in cases):
                write_atomically(folder / f"{language}.jsonl", lines)
                written.append(language)
            progress.advance(1)
        progress.finish()
    if written:
        write_atomically(folder / "task.yaml", _task_yaml(suite, task, written, n, seed))
    return tallies


def _not_generated(test: TestDeclaration) -> str:
    return f"{test.id} is a test of type {test.type}; only tests of type MFT are generated so far."


def _drawn(
    suite: Suite, language: str, tests: Sequence[str], n: int, seed: int
) -> Iterator[tuple[Tally, tuple[Case, ...]]]:
    """Yield the cases of every test of a language, none for those that were requested but cannot be drawn."""
    for test in suite.tests.values():
        if tests and test.id not in tests:
            continue
        if test.id in suite.languages[language].tests and test.type == "MFT":
            drawn = draw_cases(suite, test.id, language, n, seed)
            yield (
                Tally(
                    language=language,
                    test=test.id,
                    cases=len(drawn.cases),
                    examples=sum([len(case.examples) for case in drawn.cases]),
                    empty=sum([not case.examples for case in drawn.cases]),
                    asked=n,
                    possible=drawn.possible,
                    note=drawn.note,
                ),
                drawn.cases,
            )
        elif test.id in suite.languages[language].tests or tests:
            why = f"has no test {test.id}." if tests else _not_generated(test)
            yield Tally(language=language, test=test.id, asked=n, possible=0, note=f"{language} {why}"), ()


def _task_yaml(suite: Suite, task: str, languages: Sequence[str], n: int, seed: int) -> str:
    spec = {
        "task": task,
        "kind": "span_extraction",
        "version": suite.version,
        "description": suite.description or f"Test cases of the suite {suite.name}.",
        "citation": suite.citation or "unknown",
        "license": suite.license or "unknown",
        "metrics": ["pass_rate", "case_error", "case_floor", "corrected_error", "example_error"],
        "cluster": "case",
        "draw": "clusters",
        "transfer": {"source": suite.source_language, "stages": ["squad"], "recipe": "xtreme_r"},
        "splits": {"test": {"local": "{language}.jsonl", "reader": "checklist"}},
        "languages": {language: {} for language in languages},
    }
    comment = f"# Made by: harness checklist generate, suite {suite.name}, --cases {n} --seed {seed}\n"
    return f"{comment}# With 'draw: clusters', --limit N takes N test cases, whole.\n{yaml_text(spec)}"
