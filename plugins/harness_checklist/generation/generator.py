"""Generates the cases of a suite: one file per language, and the task spec that runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import UnknownNameError, UsageError
from harness.cli.display import ConsoleProgress
from harness.cli.output import echo
from harness.storage.files import write_atomically
from harness_checklist.generation.case import Case
from harness_checklist.generation.case_file import case_lines, write_cases
from harness_checklist.generation.drawing import draw_cases
from harness_checklist.suites.dumping import scalar
from harness_checklist.suites.suite import Suite, TestDeclaration

__all__ = ["Tally", "generate_cases", "print_cases", "task_name"]

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

    def as_row(self) -> dict[str, Any]:
        """Return it as a plain object."""
        return {
            "language": self.language,
            "test": self.test,
            "cases": self.cases,
            "examples": self.examples,
            "empty": self.empty,
            "asked": self.asked,
            "possible": self.possible,
            "note": self.note,
        }


def task_name(suite: Suite, given: str | None) -> str:
    """Return the name of the task that runs the cases; raises `UsageError` for an invalid name."""
    if given is None:
        return "checklist_" + re.sub(r"[^a-z0-9_\-]", "_", suite.name.lower())
    if not _TASK.fullmatch(given):
        raise UsageError(f"--task takes small letters, digits, _ and -; found {given!r}.")
    return given


def generate_cases(
    suite: Suite, languages: Sequence[str], tests: Sequence[str], n: int, seed: int, folder: Path, task: str
) -> list[Tally]:
    """Write ``LANGUAGE.jsonl`` for every language that has cases, and ``task.yaml``; return the tallies.

    One language is held in memory at a time. Raises `UnknownNameError` for unknown languages and tests, `UsageError`
    for tests of another type than MFT and for a folder that cannot be created.
    """
    chosen = _chosen(suite, languages, tests)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be created: {error.strerror}.") from error
    tallies: list[Tally] = []
    written: list[str] = []
    with ConsoleProgress() as progress:
        progress.start(f"Generating {suite.name}", len(languages), "languages")
        for language in languages:
            made, counted = _drawn(suite, chosen, language, n, seed)
            tallies += counted
            if made:
                write_cases(made, folder / f"{language}.jsonl", suite.languages[language].profile)
                written.append(language)
            progress.advance(1)
        progress.finish()
    if written:
        write_atomically(folder / "task.yaml", _task_yaml(suite, task, written, n, seed))
    return tallies + _skipped(suite, tests, languages, n)


def print_cases(suite: Suite, language: str, tests: Sequence[str], n: int, seed: int) -> list[Tally]:
    """Write the cases of one language to stdout, one per line; return the tallies."""
    chosen = _chosen(suite, [language], tests)
    made, tallies = _drawn(suite, chosen, language, n, seed)
    echo(case_lines(made, suite.languages[language].profile), nl=False)
    return tallies + _skipped(suite, tests, [language], n)


def _chosen(suite: Suite, languages: Sequence[str], tests: Sequence[str]) -> list[TestDeclaration]:
    for language in languages:
        if language not in suite.languages:
            raise UnknownNameError(f"language of suite {suite.name!r}", language, suite.languages)
    declared = {test.id: test for test in suite.tests}
    for name in tests:
        if name not in declared:
            raise UnknownNameError(f"test of suite {suite.name!r}", name, declared)
        if declared[name].type != "MFT":
            raise UsageError(_not_generated(declared[name]))
    return [test for test in suite.tests if test.type == "MFT" and (not tests or test.id in tests)]


def _not_generated(test: TestDeclaration) -> str:
    return f"{test.id} is a test of type {test.type}; only tests of type MFT are generated so far."


def _drawn(
    suite: Suite, tests: Sequence[TestDeclaration], language: str, n: int, seed: int
) -> tuple[list[Case], list[Tally]]:
    made: list[Case] = []
    tallies = []
    for test in tests:
        if test.id not in suite.languages[language].tests:
            continue
        drawn = draw_cases(suite, test.id, language, n, seed)
        made += drawn.cases
        tallies.append(
            Tally(
                language=language,
                test=test.id,
                cases=len(drawn.cases),
                examples=sum([len(case.examples) for case in drawn.cases]),
                empty=sum([not case.examples for case in drawn.cases]),
                asked=n,
                possible=drawn.possible,
                note=drawn.note,
            )
        )
    return made, tallies


def _skipped(suite: Suite, tests: Sequence[str], languages: Sequence[str], n: int) -> list[Tally]:
    """Return empty tallies for tests that were requested or are declared but cannot be generated."""
    return [
        Tally(language=language, test=test, asked=n, possible=0, note=note)
        for test, language, note in _reasons(suite, tests, languages)
    ]


def _reasons(suite: Suite, tests: Sequence[str], languages: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for test in suite.tests:
        for language in languages:
            there = test.id in suite.languages[language].tests
            if there and test.type != "MFT" and not tests:
                yield test.id, language, f"{language} {_not_generated(test)}"
            elif not there and test.id in tests:
                yield test.id, language, f"{language} has no test {test.id}."


def _task_yaml(suite: Suite, task: str, languages: Sequence[str], n: int, seed: int) -> str:
    about = suite.description or f"Test cases of the suite {suite.name}."
    keys = {
        "task": task,
        "kind": "span_extraction",
        "version": str(suite.version),
        "description": scalar(about),
        "citation": scalar(suite.citation or "unknown"),
        "license": scalar(suite.license or "unknown"),
        "metrics": "[pass_rate, case_error, case_floor, corrected_error, example_error]",
        "cluster": "case",
        "draw": "clusters   # --limit N takes N test cases, whole",
        "transfer": f"{{source: {scalar(suite.source_language)}, stages: [squad], recipe: xtreme_r}}",
    }
    lines = [f"# Made by: harness checklist generate, suite {suite.name}, --cases {n} --seed {seed}"]
    lines += [f"{key}: {value}" for key, value in keys.items()]
    lines += ["splits:", '  test: {local: "{language}.jsonl", reader: checklist}', "languages:"]
    lines += [f"  {scalar(language)}: {{}}" for language in languages]
    return "\n".join(lines) + "\n"
