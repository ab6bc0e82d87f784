"""The documentation is true: its files and commands are run, page by page, and must print what the page shows.

A fenced block with ``file=NAME`` in its info string is written to that file; every line of a ``console`` block
that starts with ``$`` is run, in the order of the page, and the lines under it must be printed. ``status=N`` is
the expected exit status of the last command of a block. `test_blocks` checks the blocks of other languages.
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
from pathlib import Path

import pytest

from docs_site.navigation import indexed_pages
from harness.cli.main import run_command
from harness.storage.files import cache_folder
from tests.docs.page import DOCS, PAGES, ROOT, blocks, commands, page_name

LONGEST_PAGE = 150
QUICK_PAGES = {"concepts", "diagnose", "first-run", "plugins"}
"""The pages whose commands `make test` runs; `make test-all` runs those of all others."""
PIP = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target")

SECONDS = re.compile(r"\b\d[\d,]*(?:\.\d+)? s\b")
SECONDS_ROW = re.compile(r"^\s*seconds\s[\s\d,]*$")
GAP = "..."
ANY_LINES = r"(?:[^\n]*\n)*?"


# Comparing what is shown with what is printed -------------------------------------------------------


def disagreement(shown: Sequence[str], printed: str) -> str | None:
    """Return the first shown line that was not printed in its place; None where all were.

    A line ``...`` means any number of lines, ``...`` within a line for any text. Blank lines, spaces at
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
            status = run_command(arguments)
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


def test_quick_pages_are_there() -> None:
    assert QUICK_PAGES <= set(map(page_name, PAGES))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[] if name in QUICK_PAGES else pytest.mark.thorough)
        for page in PAGES
        if (name := page_name(page))
    ],
)
def test_page_does_what_it_shows(page: Path, terminal: Terminal) -> None:
    for block in blocks(page):
        if "file" in block.attributes:
            terminal.write(block.attributes["file"], block.lines)
        if block.language != "console":
            continue
        for command in commands(block):
            status, printed = terminal.run(command.text)
            where = f"{page_name(page)}.md:{command.line}: {command.text}"
            assert status == command.status, f"{where}\nended with status {status}:\n{printed}"
            missing = disagreement(command.shown, printed)
            assert missing is None, (
                f"{where}\ndid not print in its place:\n{missing}\n\nIt printed:\n{printed}"
            )
    assert cache_folder() == terminal.folder / ".cache"


@pytest.mark.thorough
def test_readme_shows_what_is_printed(terminal: Terminal) -> None:
    """Check the indented blocks of the README that begin with ``$``; they may be a part of the output."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"^    \$ (harness .+)\n((?: {4}.*\n)+)", text, flags=re.MULTILINE)
    assert len(examples) >= 2
    for command, shown in examples:
        status, printed = terminal.run(command)
        assert status == 0, printed
        lines = [re.sub(r"fit [0-9a-f]{8}", "fit ...", line[4:]) for line in shown.splitlines()]
        assert disagreement([GAP, *lines, GAP], printed) is None, printed


def test_python_of_the_readme_prints_a_score(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = [block for block in blocks(ROOT / "README.md") if block.language == "python"]
    exec(compile("\n".join(shown.lines), "README.md", "exec"), {})
    assert re.search(r"^xnli accuracy 0\.\d+$", capsys.readouterr().out, flags=re.MULTILINE)


# The pages as a whole ---------------------------------------------------------------------------------


def test_index_names_every_page() -> None:
    """The index is the navigation of the site, too."""
    listed = indexed_pages((DOCS / "README.md").read_text(encoding="utf-8"))
    assert len(set(listed)) == len(listed), "docs/README.md lists a page twice"
    missing = {f"{page_name(page)}.md" for page in PAGES} - {"README.md", *listed}
    assert not missing, (
        f"add a line '- [Title](PAGE.md): ...' for {sorted(missing)} to a section of docs/README.md"
    )
    gone = [name for name in listed if not (DOCS / name).is_file()]
    assert not gone, f"docs/README.md lists {gone}, which is not there"


def test_every_title_is_a_question_of_its_own() -> None:
    titles = {page_name(page): page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES}
    assert {name: title for name, title in titles.items() if not re.fullmatch(r"# [A-Z].*\?", title)} == {}
    assert len(set(titles.values())) == len(titles)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            linked = page.parent / file if file else page
            assert linked.is_file(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(linked), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_page_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LONGEST_PAGE
