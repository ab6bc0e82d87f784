"""The command that writes long contexts, and a run on what it wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import harness

Cli = Callable[..., tuple[int, str, str]]
TEXTS = Path(__file__).parent / "texts"


@pytest.fixture(autouse=True)
def _asking_model(install_plugin: Callable[..., Path]) -> None:
    folder = Path(__file__).parents[1] / "running"
    install_plugin("asking_adapter", (folder / "asking_adapter.py").read_text(encoding="utf-8"))


def write(cli: Cli, folder: Path, *options: object) -> tuple[int, str, str]:
    return cli(
        "needles", "--texts", TEXTS, "--output", folder, "--languages", "en,de", "--items", 2, *options
    )


@pytest.mark.thorough
def test_it_writes_what_the_tasks_read(cli: Cli, tmp_path: Path) -> None:
    """The pieces are words here; the run skips what was not written, and scores the rest."""
    rows = tmp_path / "rows.json"
    status, out, err = write(
        cli, tmp_path / "data", "--model", "asks:writes", "--lengths", "8k", "--json", rows
    )
    assert status == 0, err
    assert "Equal pieces are no equal information" in out
    table = json.loads(rows.read_text(encoding="utf-8"))
    assert [(row["language"], row["task"]) for row in table] == [
        (code, task) for code in ("en", "de") for task in ("niah_single", "cwe_easy", "cwe_hard")
    ]
    needles = [row for row in table if row["task"] == "niah_single"]
    assert all(7_000 < row["pieces"] <= 8_000 for row in needles)
    assert needles[0]["sentences"] != needles[1]["sentences"]
    assert {row["model"] for row in table} == {"asks:writes"}
    files = sorted(path.relative_to(tmp_path / "data").as_posix() for path in tmp_path.glob("data/*/*/*"))
    assert len(files) == 14
    assert files[0] == "oneruler/cwe_easy/de-8k.jsonl"
    answer = json.loads((tmp_path / "data/oneruler/niah_single/en-8k.jsonl").read_text().splitlines()[0])
    run = harness.evaluate(
        "oneruler_niah:en+de",
        "asks:writes",
        options={"says": f"<answer> {answer['answers'][0]['text']} </answer>"},
        data=tmp_path / "data",
        output=tmp_path / "run",
    )
    cells = {(cell.language, cell.view["needles"]): cell for cell in run.cells if cell.status == "ok"}
    assert len(cells) == 10
    assert {cell.view["length"] for cell in cells.values()} == {"8k"}
    # The number of item 0 is its answer in both languages, and in no other task.
    values = {name: cell.metrics["needle_accuracy"].value for name, cell in cells.items()}
    assert values == {name: 0.5 if name[1] == "single" else 0 for name in cells}


def test_the_files_do_not_depend_on_the_order_of_languages(cli: Cli, tmp_path: Path) -> None:
    for name, languages in (("one", "en,de"), ("two", "de")):
        arguments = ("--languages", languages, "--lengths", "8k", "--items", 1, "--model", "asks:writes")
        assert cli("needles", "--texts", TEXTS, "--output", tmp_path / name, *arguments)[0] == 0
    for path in tmp_path.glob("two/*/*/*"):
        assert path.read_bytes() == (tmp_path / "one" / path.relative_to(tmp_path / "two")).read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Option --model is missing"),
        (("--model", "asks:writes", "--lengths", "9k"), "No length named '9k'"),
        (("--model", "baseline:majority", "--lengths", "8k"), "does not count the pieces"),
    ],
)
def test_faults_are_named(cli: Cli, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    status, _, err = write(cli, tmp_path / "data", *options)
    assert status == 2
    assert message in err
    assert not (tmp_path / "data").exists()


def test_languages_without_a_dictionary_are_named(cli: Cli, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    shutil.copytree(TEXTS, texts)
    shutil.rmtree(texts / "vocab" / "dictionaries" / "English")
    arguments = ("--languages", "en", "--items", 1, "--lengths", "8k", "--model", "asks:writes")
    status, _, err = cli("needles", "--texts", texts, "--output", tmp_path / "data", *arguments)
    assert status == 0
    assert "en: there is no dictionary" in err
    assert not list(tmp_path.glob("data/oneruler/cwe_easy/*"))
