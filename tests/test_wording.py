"""Words and phrases that the project does not use: the list, the files that are searched, and the exceptions.

``python -m pytest -q tests/test_wording.py`` prints each offence as ``file:line: phrase: text``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
SEARCHED = (
    "harness/",
    "plugins/",
    "model_adapters/",
    "task_specs/",
    "examples/",
    "benchmarks/",
    "docs/",
    "docs_site/",
    "tests/",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)
SUFFIXES = {".py", ".md", ".yaml", ".template", ".toml"}
NO_UNIT = "as|for|from|if|in|of|than|that|to|until|when|with"
MEASURE = rf"(?:once|twice|times|(?:one|two|three|a|\d[\d.,]*) (?!(?:{NO_UNIT})\b)[a-z]+)"
BANNED_WORDS = (
    r"told",
    r"tells?",
    r"telling",
    r"beside",
    r"nobody",
    r"whoever",
    r"mend(?:s|ed|ing)?",
    r"lacks?",
    r"lacked",
    r"lacking",
    r"refuse[sd]?",
    r"refusing",
)
"""Not used in text, and not as a part of an identifier."""
BANNED_PHRASES = (
    r"stands? (?:in|for|alone|there|before|after|behind|on)",
    r"gone on with",
    r"goes on",
    r"go on with",
    r"(?:is|was) begun",
    r"is had",
    r"takes? over",
    r"taken over",
    r"of which there (?:is|are) none",
)
PER = re.compile(rf"\b{MEASURE} (?:an item|a language(?! model))\b", re.IGNORECASE)
"""``one label an item``: the article stands for "per" only after a quantity."""
WORDS = tuple(re.compile(rf"\b(?:{word})\b", re.IGNORECASE) for word in BANNED_WORDS)
PHRASES = tuple(re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE) for phrase in BANNED_PHRASES)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
FOREIGN = re.compile(r"ConnectionRefusedError|\.tell\(\)")
"""Names of Python's own library."""
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("tests/test_wording.py", ""): "this list",
    ("harness/data/sources.py", ".lacks"): "a key of spec files",
    ("harness/specs/schema.py", "lacks: dict["): "a key of spec files",
    ("tests/data/test_sources.py", "lacks={"): "a key of spec files",
    ("tests/specs/test_topic_tasks.py", ".lacks"): "a key of spec files",
    (
        "harness/reporting/comparison/comparison.py",
        '"lacking": ',
    ): "a key of the rows of harness compare --json",
    ("tests/comparison/test_comparison.py", 'row["lacking"]'): "a key of the rows of harness compare --json",
    ("harness/checks/task_audit.py", '"told": '): "a key of the rows of harness tasks validate --json",
    ("tests/diagnosis/test_features.py", '"nobody here"'): "the text of a sample",
}
"""(start of a path, text in the line) and the reason; an empty text excepts the whole file."""
PROSE_KEYS = {"description", "note", "notes", "provenance", "reason", "help", "title"}
"""Keys of YAML files whose text is ours; other values are words of prompts, samples and grammars."""


def _files() -> list[Path]:
    """Return the tracked files that are searched; all such files where there is no git."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, text=True)
    if found.returncode == 0 and found.stdout:
        names = found.stdout.split("\0")
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if "__pycache__" not in path.parts]
    paths = [ROOT / name for name in names if name.startswith(SEARCHED) and Path(name).suffix in SUFFIXES]
    return sorted(path for path in paths if path.is_file())


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file that hold our words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".yaml":
        yield from enumerate(text.splitlines(), start=1)
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if match := re.search(r"(?:^|\s)#(.*)", line):
            yield number, match[1]
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if root is not None:
        yield from _values(root)


def _values(node: yaml.Node) -> Iterator[tuple[int, str]]:
    """Yield what the prose keys of a YAML document hold, with the line."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _values(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value in PROSE_KEYS and isinstance(value, yaml.ScalarNode):
                yield value.start_mark.line + 1, value.value
            yield from _values(value)


def _offences(line: str) -> list[str]:
    """Return the banned phrases of a line; identifiers count by their parts."""
    words = CAMEL.sub(" ", FOREIGN.sub("", line)).replace("_", " ")
    found = [match[0] for pattern in WORDS for match in pattern.finditer(words)]
    return found + [match[0] for pattern in (*PHRASES, PER) for match in pattern.finditer(line)]


@pytest.mark.thorough
def test_banned_phrases_are_not_used_and_exceptions_are_needed() -> None:
    needed: set[tuple[str, str]] = set()
    found: list[str] = []
    for path in _files():
        name = str(path.relative_to(ROOT))
        for number, line in _prose(path):
            excepted = {own for own in EXCEPTIONS if name.startswith(own[0]) and own[1] in line}
            if excepted and excepted <= needed:
                continue
            phrases = _offences(line)
            if excepted and phrases:
                needed |= excepted
            elif not excepted:
                found += [f"{name}:{number}: {phrase}: {line.strip()[:100]}" for phrase in phrases]
    if found:
        pytest.fail(f"{len(found)} banned phrases:\n" + "\n".join(found), pytrace=False)
    assert set(EXCEPTIONS) - needed == set()


@pytest.mark.parametrize(
    ("line", "phrases"),
    [
        ("def refuse_lacking(told: str) -> None:", ["told", "refuse", "lacking"]),
        ("class NobodyTells(StandIn):", ["Tells", "Nobody"]),
        ("It stands for a name, beside the others.", ["beside", "stands for"]),
        ("one label an item, 3 s a language", ["one label an item", "3 s a language"]),
        ("An item has a language; recommended fields of black lists.", []),
        ("The run is resumed and prints a message.", []),
        ("except ConnectionRefusedError: file.tell()", []),
    ],
)
def test_phrases_are_found_in_text_and_in_identifiers(line: str, phrases: list[str]) -> None:
    assert sorted(_offences(line)) == sorted(phrases)
