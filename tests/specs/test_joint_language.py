"""Scores that hang on all languages of a task are the same whatever languages others add to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import open_session, prepare
from harness.storage.run_folder import Run

DESCRIBED = "name: Lindovan, script: Latn, family: Indo-European, provenance: native"
PARAGRAPHS = 4


@pytest.fixture
def added(tmp_path: Path) -> Path:
    """Return a folder that adds two languages to LAReQA and to XNLI."""
    folder = tmp_path / "added"
    (folder / "sample/lareqa").mkdir(parents=True)
    for task in ("lareqa", "xnli"):
        lines = "".join(f"  {code}: {{{DESCRIBED}}}\n" for code in ("xyz", "xyy"))
        (folder / f"{task}.yaml").write_text(f"extends: {task}\nlanguages:\n{lines}", encoding="utf-8")
    for code in ("xyz", "xyy"):
        _candidates(folder, code, code)
    return folder


def _candidates(folder: Path, code: str, prefix: str) -> None:
    """Write questions and sentences; the ids of the sentences begin with `prefix`."""
    questions = [
        {"id": f"p{n}-q1", "query": f"Lindova {n} wer?", "paragraph": f"p{n}"} for n in range(1, PARAGRAPHS)
    ]
    sentences = [
        {"id": f"{prefix}/p{n}/1", "text": f"Lindova {n} wer.", "language": code, "answers": [f"p{n}-q1"]}
        for n in range(1, PARAGRAPHS)
    ]
    for name, rows in (("questions", questions), ("sentences", sentences)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"sample/lareqa/{name}.{code}.jsonl").write_text(text, encoding="utf-8")


def _run(output: Path, tasks: str, *tasks_from: Path) -> Run:
    return evaluate(
        tasks,
        "baseline:char-ngram",
        data="sample",
        protocols=("frozen",),
        tasks_from=tasks_from,
        output=output,
    )


def test_added_candidates_are_in_the_pool_of_their_own_queries_alone(added: Path, tmp_path: Path) -> None:
    without = {cell.language: cell for cell in _run(tmp_path / "one", "lareqa:en+de").cells}
    both = {cell.language: cell for cell in _run(tmp_path / "two", "lareqa:en+de+xyz", added).cells}
    for code in ("en", "de"):
        assert both[code].metrics == without[code].metrics
        assert both[code].pool == without[code].pool
    pool = without["en"].pool or {}
    assert (both["xyz"].pool or {})["languages"] == [*pool["languages"], "xyz"]
    assert (both["xyz"].pool or {})["size"] == pool["size"] + PARAGRAPHS - 1


def test_candidates_with_taken_ids_spoil_no_other_language(added: Path, tmp_path: Path) -> None:
    _candidates(added, "xyz", "en")
    states = {cell.language: cell.status for cell in _run(tmp_path / "run", "lareqa:en+xyz", added).cells}
    assert states == {"en": "ok", "xyz": "failed"}


def _trained_together(*tasks_from: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the key of each language's fit, and the languages that it is trained on."""
    for folder in tasks_from:
        (folder / "sample/xnli").mkdir(exist_ok=True)
        for code in ("xyz", "xyy"):
            item = {"id": "1-e", "premise": "a", "hypothesis": "b", "label": "neutral"}
            (folder / f"sample/xnli/{code}.jsonl").write_text(json.dumps(item), encoding="utf-8")
    config = RunConfig(
        tasks=("xnli",),
        model="baseline:char-ngram",
        protocols=("translate_train_all",),
        translators=("reverse",),
        tasks_from=tasks_from,
        data=data_options(["sample"]),
    )
    plan: Plan = prepare(config).plan
    return {
        cell.language.code: (cell.fit.key, [code for code, _ in cell.fit.stages[0].train])
        for cell in plan.cells
        if cell.fit is not None
    }


def test_translate_train_all_is_trained_on_the_published_languages_and_its_own(added: Path) -> None:
    alone, joined = _trained_together(), _trained_together(added)
    assert joined["de"] == joined["sw"] == alone["de"]
    assert joined["xyz"][1] == [*alone["de"][1], "xyz"]
    assert joined["xyy"][1] == [*alone["de"][1], "xyy"]


def test_what_is_locked_has_the_candidates_of_what_was_named(added: Path) -> None:
    entry = open_session([added]).catalog.task("lareqa")
    published = entry.pool_languages("en")
    assert len(published) == 11
    assert entry.pool_languages("xyz") == (*published, "xyz")
    assert open_session([added]).catalog.task("xnli").pool_languages("xyz") == ("en",)
