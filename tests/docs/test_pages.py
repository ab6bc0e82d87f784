"""The documentation is true: its files and commands are run, page by page, and must print what the page shows.

A fenced block with ``file=NAME`` in its info string is written to that file; every line of a ``console`` block
that starts with ``$`` is run, in the order of the page, and the lines under it must be printed. ``status=N`` is
the expected exit status of the last command of a block. Blocks of other languages are not run.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.fitting import cache_folder

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LONGEST_PAGE = 150
PIP = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target")

SECONDS = re.compile(r"\b\d[\d,]*(?:\.\d+)? s\b")
SECONDS_ROW = re.compile(r"^\s*seconds\s[\s\d,]*$")
GAP = "..."
ANY_LINES = r"(?:[^\n]*\n)*?"


# What a page shows ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str
    attributes: dict[str, str]
    """``file=NAME`` and ``status=N`` of the info string."""
    lines: tuple[str, ...]
    line: int
    """1-based line of the fence in the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a console block, and the lines that the page shows under it."""

    text: str
    shown: tuple[str, ...]
    status: int
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in their order."""
    opened: tuple[str, int] | None = None
    content: list[str] = []
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if not text.startswith("```"):
            content.append(text)
        elif opened is None:
            opened, content = (text.removeprefix("```"), number), []
        else:
            language, *rest = opened[0].split() or [""]
            attributes = dict(item.split("=", 1) for item in rest)
            yield Block(language=language, attributes=attributes, lines=tuple(content), line=opened[1])
            opened = None
    assert opened is None, f"{page.name}: the last block is never closed"


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block, each with the lines under it."""
    starts = [index for index, text in enumerate(block.lines) if text.startswith("$ ")]
    assert starts[:1] == [0], f"line {block.line}: a console block starts with '$ ' and a command"
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        text, *shown = block.lines[start:end]
        while text.endswith("\\"):
            text = text.removesuffix("\\") + shown.pop(0).strip()
        status = int(block.attributes.get("status", 0)) if end == len(block.lines) else 0
        yield Command(
            text=text.removeprefix("$ "), shown=tuple(shown), status=status, line=block.line + start + 1
        )


def disagreement(shown: Sequence[str], printed: str) -> str | None:
    """Return the first shown line that was not printed in its place; None where all were.

    A line ``...`` stands for any number of lines, ``...`` within a line for any text. Blank lines, spaces at
    the ends of lines, and numbers of seconds do not count. Without shown lines everything agrees.
    """
    wanted, found = essential(shown), essential(printed.splitlines())
    if not wanted:
        return None
    patterns = [ANY_LINES if line.strip() == GAP else line_pattern(line) for line in wanted]
    text = "".join(f"{line}\n" for line in found)
    if re.fullmatch("".join(patterns), text):
        return None
    agreeing = (count for count in range(len(patterns), 0, -1) if re.match("".join(patterns[:count]), text))
    first = next(agreeing, 0)
    return wanted[first] if first < len(wanted) else f"{wanted[-1]} (as the last line)"


def line_pattern(line: str) -> str:
    return "[^\n]*".join(map(re.escape, line.split(GAP))) + "\n"


def essential(lines: Sequence[str]) -> list[str]:
    masked = (SECONDS.sub("# s", line.rstrip()) for line in lines if line.strip())
    return ["seconds" if SECONDS_ROW.match(line) else line for line in masked]


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [
        ("a\nb", "a  \n\nb\n", None),
        ("a\nc", "a\nb\nc", "c"),
        ("a\n...\nc", "a\nb\nc", None),
        ("b", "a\nb", "b"),
        ("a", "a\nb", "a (as the last line)"),
        ("...\nb\n...", "a\nb\nc", None),
        ("...\nb\na\n...", "a\nb\nc", "a"),
        ("x ... y", "x 1 2 y", None),
        ("x ... y", "x 1\n2 y", "x ... y"),
        ("fit: 504 examples, 1 s", "fit: 504 examples, 23.5 s", None),
        ("fit: 504 examples, 1 s", "fit: 505 examples, 1 s", "fit: 504 examples, # s"),
        (" seconds   0   1", " seconds  12  3", None),
        ("", "anything", None),
    ],
)
def test_shown_lines_are_compared(shown: str, printed: str, missing: str | None) -> None:
    assert disagreement(shown.splitlines(), printed) == missing


# Running it -------------------------------------------------------------------------------------------


class Terminal:
    """Runs the commands of one page in a folder of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = patch
        self._site = folder / ".site"

    def write(self, name: str, lines: Sequence[str]) -> None:
        file = self.folder / name
        assert file.resolve().is_relative_to(self.folder.resolve())
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(self, text: str) -> tuple[int, str]:
        """Return the exit status and what was printed to both streams."""
        program, *arguments = shlex.split(text)
        if program == "harness":
            return self._harness(arguments)
        if program == "pip" and arguments[:1] == ["install"]:
            finished = self._python(*PIP, str(self._site), *arguments[1:])
            self._patch.syspath_prepend(self._site)
            return finished
        if program == "python":
            return self._python(*arguments)
        if program == "pytest":
            return self._python("-m", "pytest", "-p", "no:cacheprovider", "--no-header", *arguments)
        raise AssertionError(f"a console block runs harness, pip install, python or pytest, not {program!r}")

    def _harness(self, arguments: list[str]) -> tuple[int, str]:
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            status = main(arguments)
        return status, printed.getvalue()

    def _python(self, *arguments: str) -> tuple[int, str]:
        paths = [str(self._site), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        finished = subprocess.run(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=environment,
        )
        return finished.returncode, finished.stdout


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / ".cache"))
    monkeypatch.delenv("HARNESS_DATA", raising=False)
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # as in a clone
    known = set(sys.modules)
    yield Terminal(tmp_path, monkeypatch)
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
    importlib.invalidate_caches()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_does_what_it_shows(page: Path, terminal: Terminal) -> None:
    for block in blocks(page):
        if "file" in block.attributes:
            terminal.write(block.attributes["file"], block.lines)
        if block.language != "console":
            continue
        for command in commands(block):
            status, printed = terminal.run(command.text)
            where = f"{page.name}:{command.line}: {command.text}"
            assert status == command.status, f"{where}\nended with status {status}:\n{printed}"
            missing = disagreement(command.shown, printed)
            assert missing is None, (
                f"{where}\ndid not print in its place:\n{missing}\n\nIt printed:\n{printed}"
            )
    assert cache_folder() == terminal.folder / ".cache"


def test_readme_shows_what_is_printed(terminal: Terminal) -> None:
    """Indented blocks of the README that begin with ``$``; what is printed before and after may be left out."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"^    \$ (harness .+)\n((?: {4}.*\n)+)", text, flags=re.MULTILINE)
    assert len(examples) >= 2
    for command, shown in examples:
        status, printed = terminal.run(command)
        assert status == 0, printed
        lines = [re.sub(r"fit [0-9a-f]{8}", "fit ...", line[4:]) for line in shown.splitlines()]
        assert disagreement([GAP, *lines, GAP], printed) is None, printed


# The pages as a whole ---------------------------------------------------------------------------------


def test_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z-]+\.md)\)", index))
    assert linked == {page.name for page in PAGES} - {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            linked = page.parent / file if file else page
            assert linked.is_file(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(linked), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LONGEST_PAGE
