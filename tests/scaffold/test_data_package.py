"""From a CSV to an installed package with its data, its own tests, a run and a page: minutes, not days."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest

from harness.cli.main import run_command

from .test_packages import PIP, _python

pytestmark = [pytest.mark.packaging, pytest.mark.thorough]

TEXTS = {
    "English": ["I love this kettle", "The handle broke", "It works well", "I will never buy it again"],
    "Swahili": ["Ninaipenda birika hii", "Mpini ulivunjika", "Inafanya kazi vizuri", "Sitainunua tena"],
}
COLUMNS = ("--text", "text", "--label", "sentiment", "--language-column", "lang", "--package")
TEN_MINUTES = 600


def _write(path: Path, texts: dict[str, list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "sentiment", "lang"])
        for language, own in texts.items():
            table.writerows(
                [text, ("positive", "negative")[number % 2], language] for number, text in enumerate(own)
            )


def _made(folder: Path, name: str, texts: dict[str, list[str]], *further: str) -> None:
    _write(folder / "reviews.csv", texts)
    given = ("new", "task", name, "--from", str(folder / "reviews.csv"), *COLUMNS, "--license", "cc-by-4.0")
    assert run_command([*given, *further, "--output", str(folder / name)]) == 0
    installed = _python(*PIP, str(folder / "site"), f"./{name}", folder=folder)
    assert installed.returncode == 0, installed.stderr


def test_from_a_csv_to_a_page(tmp_path: Path) -> None:
    started = time.monotonic()
    _made(tmp_path, "kettle-mood", TEXTS, "--test-share", "0.5")
    own = _python("-m", "pytest", "-q", "kettle-mood", folder=tmp_path)
    assert own.returncode == 0, (
        own.stdout
    )  # two test items per language, fewer than the limit of the contract
    run = _python(
        *(
            "-m",
            "harness",
            "eval",
            "--tasks",
            "kettle_mood",
            "--model",
            "baseline:majority",
            "--output",
            "run",
        ),
        folder=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert {cell["language"] for cell in results["cells"]} == {"en", "sw"}
    assert results["run"]["data"] != "sample"
    page = _python(
        "-m", "harness", "report", "run", "--format", "html", "--output", "page.html", folder=tmp_path
    )
    assert page.returncode == 0, page.stderr
    assert "SAMPLE" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert time.monotonic() - started < TEN_MINUTES


def test_only_an_untranslated_copy_fails_the_tests_of_the_package(tmp_path: Path) -> None:
    _made(tmp_path, "kettle-mood", TEXTS)
    own = _python("-m", "pytest", "-q", "kettle-mood", folder=tmp_path)
    assert own.returncode == 0, own.stdout
    _made(tmp_path, "copied-mood", {"English": TEXTS["English"], "Swahili": TEXTS["English"]})
    copied = _python("-m", "pytest", "-q", "copied-mood", folder=tmp_path)
    assert copied.returncode == 1
    assert "test_no_language_is_an_untranslated_copy" in copied.stdout


def test_a_language_without_test_items_fails_the_tests_of_the_package(tmp_path: Path) -> None:
    uneven = {**TEXTS, "Swahili": TEXTS["Swahili"][:1]}
    _made(tmp_path, "kettle-mood", uneven, "--test-share", "0.5")
    own = _python("-m", "pytest", "-q", "--tb=line", "kettle-mood", folder=tmp_path)
    assert own.returncode == 1
    assert "The test split of 'kettle_mood' in 'sw' holds no items." in own.stdout


@pytest.mark.parametrize(("language", "status"), [("English", 0), ("Swahili", 1)])
def test_one_language_with_the_text_of_another_fails(tmp_path: Path, language: str, status: int) -> None:
    texts = [
        f"{text}, and that is what we think of number {n}" for n in range(6) for text in TEXTS["English"]
    ]
    _made(tmp_path, "kettle-mood", {language: texts})
    own = _python("-m", "pytest", "-q", "kettle-mood", "-k", "untranslated", folder=tmp_path)
    assert own.returncode == status, own.stdout


def test_data_without_a_licence_are_not_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "reviews.csv", TEXTS)
    given = ("new", "task", "kettle-mood", "--from", str(tmp_path / "reviews.csv"), *COLUMNS)
    assert run_command([*given, "--output", str(tmp_path / "made")]) == 2
    assert "--license" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
