"""``harness languages --suite``: Table 7 of XTREME-R and its indices, counted from what the tasks list."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis.coverage import dataset_differences, family_index, suite_coverage
from harness.errors import SpecError, UnknownNameError
from harness.languages.table import TABLE_SOURCE, known_languages
from harness.running.session import open_session
from tests.conftest import Cli

DIFFERENCES = [
    ("en", 9, 8),
    ("fa", 3, 4),
    ("jv", 1, 2),
    ("kk", 2, 3),
    ("ms", 2, 1),
    ("sw", 4, 5),
    ("tl", 2, 3),
    ("tr", 7, 8),
]
"""Code, number of datasets in Table 7, number of test sets in Tables 15-24."""


def document(task: str, languages: str) -> str:
    head = f"task: {task}\nkind: k\nversion: 1\ndescription: d\ncitation: c\nlicense: l\nmetrics: [m]\n"
    return f"{head}languages: {languages}\n"


XTREME_R = [language for language in known_languages() if language.printed_datasets]


def suite_document(tasks: list[str], citation: str = "c", more: str = "") -> str:
    listed = f"tasks: [{', '.join(tasks)}]\n{more}"
    return f"suite: mine\ndescription: d\ncitation: {citation}\nprotocol: frozen\n{listed}"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write documents into a folder for ``--tasks-from``, and return the folder."""

    def written(**documents: str) -> Path:
        folder = tmp_path / "specs"
        folder.mkdir(exist_ok=True)
        for name, text in documents.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        return folder

    return written


def test_the_languages_of_xtreme_r() -> None:
    coverage = suite_coverage(open_session().catalog, "xtreme_r")
    codes = {item.language.code for item in coverage.languages}
    assert codes == {language.code for language in XTREME_R}
    totals = dict(
        xnli=15, xcopa=11, udpos=38, wikiann=48, xquad=11, mlqa=7, tydiqa=9, tatoeba=41, mewslix=11, lareqa=11
    )
    assert {task: coverage.total(task) for task in totals} == totals
    assert dataset_differences(coverage.languages) == DIFFERENCES
    families, count = family_index(item.language for item in coverage.languages)
    assert (families, count) == (16, 50)
    assert family_index([item.language for item in coverage.languages] * 2) == (16, 100)
    new = "az gu ht lt pa pl qu ro uk wo".split()
    assert {language.code for language in coverage.compared["XTREME"]} == codes - set(new)


@pytest.mark.parametrize(
    ("name", "families", "count", "again", "printed"),
    [("XTREME", 14, 40, 1, 0.38), ("XGLUE", 7, 19, 0, 0.37)],
)
def test_the_family_indices_of_table_8(
    name: str, families: int, count: int, again: int, printed: float
) -> None:
    """The printed one of XTREME counts Estonian as one more group, as that of XTREME-R does."""
    languages = suite_coverage(open_session().catalog, "xtreme_r").compared[name]
    assert family_index(languages) == (families, count)
    assert (families + again) / count == pytest.approx(printed, abs=0.0051)


def test_the_command(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    status, out, err = cli("languages", "--suite", "xtreme_r", "--json", file)
    assert (status, err) == (0, "")
    assert "Family index: 16 families / 50 languages = 0.32. Table 8 prints 0.34" in out
    assert (
        "another number is printed for en (9, here 8), fa (3, here 4), jv (1, here 2), kk (2, here 3)" in out
    )
    lines = [line.split() for line in out.splitlines()]
    assert ["Basque", "eu", "0.34", "Latn", "Basque", "x", "x", "x", "x", "3"] in lines
    assert ["English", "en", "5.98", "Latn", "IE:", "Germanic", "8", "(9)"] in lines
    assert ["Gujarati", "gu", "0.03", "Gujr", "IE:", "Indo-Aryan", "x?", "x?", "1"] in lines
    assert ["th", *["x"] * 7, "7"] in lines
    assert ["50", "15", "11", "38", "48", "11", "7", "9", "11", "11", "41", "202"] in lines
    rows = {row["code"]: row for row in json.loads(file.read_text(encoding="utf-8"))}
    assert len(rows) == 50
    assert rows["ms"] == {
        "code": "ms",
        "name": "Malay",
        "script": "Latn",
        "printed_script": "Latin",
        "family": "Austronesian",
        "branch": "",
        "wikipedia_articles": "0.33",
        "diacritics": "0",
        "compounding": "0",
        "clitics": "1",
        "inflection": "1",
        "derivation": "0",
        "datasets": 1,
        "printed_datasets": 2,
        "tasks": ["wikiann"],
    }


def test_printed_numbers_belong_to_the_suite_of_the_paper(cli: Cli, write: Callable[..., Path]) -> None:
    folder = write(one=document("one", "{en, ms, de}"), mine=suite_document(["one"]))
    coverage = suite_coverage(open_session([folder]).catalog, "mine")
    assert dataset_differences(coverage.languages) == []
    status, out, _ = cli("languages", "--suite", "mine", "--tasks-from", folder)
    assert status == 0
    assert "(9" not in out
    assert "Table 8" not in out
    assert "Family index: 2 families / 3 languages = 0.67" in out


def test_an_unknown_task_is_an_error_that_names_it(cli: Cli, write: Callable[..., Path]) -> None:
    folder = write(mine=suite_document(["xnli", "xquda", "udposs"]))
    status, out, err = cli("languages", "--suite", "mine", "--tasks-from", folder)
    assert (status, out) == (2, "")
    assert "mine.yaml has 2 faults" in err
    assert "line 5: tasks: No task named 'xquda'. Did you mean 'xquad' or 'xquad_in'?" in err
    assert "No task named 'udposs'. Did you mean 'udpos' or 'udpos_raw'?" in err
    with pytest.raises(UnknownNameError, match=r"No suite named 'mien'\. Did you mean 'mine'"):
        suite_coverage(open_session([folder]).catalog, "mien")
    status, _, err = cli("languages", "sw", "--suite", "xtreme_r")
    assert (status, "give it or codes, not both" in err) == (2, True)


def test_languages_that_packages_add_are_named_and_not_counted(cli: Cli, write: Callable[..., Path]) -> None:
    folder = write(
        one=document("one", "{en, de}"),
        more="extends: one\nlanguages: {yo: {test: {sample: a}, provenance: native}}\n",
        mine=suite_document(["one"]),
    )
    status, out, _ = cli("languages", "--suite", "mine", "--tasks-from", folder)
    assert status == 0
    assert "1 families / 2 languages" in out
    assert "Not counted, because they were added to the suite's tasks: one:yo (" in out


def test_a_language_that_only_the_task_describes(cli: Cli, write: Callable[..., Path]) -> None:
    qpf = "{en, qpf: {name: Palatine German, script: Latn, family: Indo-European, test: {sample: a}}}"
    folder = write(one=document("one", qpf), mine=suite_document(["one"], TABLE_SOURCE))
    coverage = suite_coverage(open_session([folder]).catalog, "mine")
    assert [item.language.name for item in coverage.languages] == ["English", "Palatine German"]
    assert coverage.languages[1].printed_datasets is None
    status, out, _ = cli("languages", "--suite", "mine", "--tasks-from", folder)
    assert status == 0
    assert "Typology index: not computed. " in out


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("{en, swh}", "languages.swh: 'swh' is the Tatoeba code and ISO 639-3 code of Swahili: use 'sw'"),
        ("{en, xx: {name: X}}", "languages.xx: 'xx' needs 'name', 'script' and 'family'"),
    ],
)
def test_a_language_without_a_description(write: Callable[..., Path], languages: str, expected: str) -> None:
    folder = write(one=document("one", languages), mine=suite_document(["one"]))
    with pytest.raises(SpecError) as caught:
        suite_coverage(open_session([folder]).catalog, "mine")
    assert f"line 8: {expected}" in str(caught.value)


def test_the_coverage_of_a_suite_imports_nothing_heavy(tmp_path: Path) -> None:
    """Without lang2vec, that is: its data are numpy arrays."""
    (tmp_path / "mine.yaml").write_text(suite_document(["xnli", "udpos"]), encoding="utf-8")
    script = (
        "import importlib.metadata, sys\n"
        "from harness.cli.main import run_command\n"
        "def lost(name, found=importlib.metadata.distribution):\n"
        "    if name == 'lang2vec': raise importlib.metadata.PackageNotFoundError(name)\n"
        "    return found(name)\n"
        "importlib.metadata.distribution = lost\n"
        "status = run_command(['languages', '--suite', 'mine', '--tasks-from', 'mine.yaml'])\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'torch', 'transformers', 'harness.kinds.kind'}\n"
        "sys.stderr.write(repr(sorted(heavy & set(sys.modules))))\n"
        "sys.exit(status)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (result.returncode, result.stderr) == (0, "[]")
    assert "Typology index: not computed. The typology index needs the package 'lang2vec'" in result.stdout
    assert "Run: pip install 'multilingual-harness[typology]'" in result.stdout
