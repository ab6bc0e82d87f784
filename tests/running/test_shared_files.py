"""Files of several splits or languages: parts of one file, copies of another language's file, blank lines, NaN."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.checks.shared_rows import audit_own_rows
from harness.running.auditor import open_auditor
from harness.running.session import open_session
from harness.storage.results import DamagedRunError
from harness.storage.run_folder import Run

from .conftest import RunTasks

DataFolder = Callable[..., Path]
Plans = Callable[..., Any]

XNLI = "He sleeps.\tHe is awake.\tcontradiction\nHe sleeps.\tHe is asleep.\tentailment\n"
TAGGED = "Anna\tB-PER\nvive\tO\nin\tO\nRoma\tB-LOC\n\nParis\tB-LOC\n"
OTHER = "Analala.\tYuko macho.\tcontradiction\nAnalala.\tAmelala.\tentailment\n"


def _massive(*partitions: str) -> str:
    rows = [
        {
            "id": str(number),
            "partition": name,
            "intent": intent,
            "scenario": "alarm",
            "utt": f"{name} {intent} {number}",
        }
        for number, (name, intent) in enumerate(
            (name, intent) for name in partitions for intent in ("alarm_set", "play_music")
        )
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_parts_of_one_file_are_no_shared_dev_set(make_plan: Plans, data_folder: DataFolder) -> None:
    files = {f"1.1/data/{name}.jsonl": _massive("train", "dev", "test") for name in ("en-US", "de-DE")}
    files["1.1/data/de-DE.jsonl"] = files["1.1/data/de-DE.jsonl"].replace("alarm_set 0", "Wecker")
    plan = make_plan("massive_intent:en+de", data=data_folder(files), model="baseline:char-ngram")
    stages = [stage for cell in plan.cells for stage in cell.fit.stages]
    assert stages
    assert all(stage.validation is not None for stage in stages)
    assert not [note for note in plan.notes if "checkpoint" in note]


def test_a_dev_set_that_is_trained_or_tested_on_chooses_nothing(
    make_plan: Plans, data_folder: DataFolder
) -> None:
    """Conditions on other columns, or on one side alone, do not part a file."""
    spec = (
        "task: mood\nkind: sequence_classification\nversion: 1\ninputs: [text]\n"
        "labels: [bad, good]\nmetrics: [accuracy]\n"
        "transfer: {source: en, stages: [mood], recipe: xtreme_r}\nsplits:\n"
        "  train: {local: mood.jsonl, where: {part: train}}\n"
        "  validation: {local: mood.jsonl, WHERE}\n"
        "  test: {local: mood.jsonl, where: {part: test}}\nlanguages:\n  en: {}\n"
    )
    rows = [
        {"text": f"t{n}", "label": ("bad", "good")[n % 2], "part": ("train", "dev", "test")[n % 3]}
        for n in range(12)
    ]
    folder = data_folder({"mood.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    chosen = {}
    for where in (
        "where: {part: dev}",
        "where: {part: train}",
        "where: {part: test}",
        "where: {label: bad}",
        "reader: jsonl",
    ):
        path = folder / "mood.yaml"
        path.write_text(spec.replace("WHERE", where), encoding="utf-8")
        plan = make_plan("mood", data=folder, model="baseline:char-ngram", tasks_from=(path,))
        chosen[where] = plan.cells[0].fit.stages[0].validation is not None
    assert chosen == {where: where == "where: {part: dev}" for where in chosen}


def test_two_languages_with_the_same_file_are_noted_and_an_error_of_the_audit(
    run: RunTasks, data_folder: DataFolder
) -> None:
    files = {
        "xnli/train-en.tsv": XNLI,
        "xnli/test-sw.tsv": OTHER,
        "xnli/test-ur.tsv": OTHER,
        "xnli/test-de.tsv": XNLI,
    }
    folder = data_folder(files)
    finished = run("xnli:de+sw+ur", "baseline:majority", data=folder, limit=None)
    assert [cell.status for cell in finished.results.cells] == ["ok"] * 3
    [note] = [note for note in finished.results.notes if "same contents" in note]
    assert "sw, ur" in note
    session = open_session()
    auditor = open_auditor(session, [str(folder)])
    audit = auditor.audit(session.catalog.task("xnli"))
    assert [item.languages for item in audit.findings if item.check == "shared_rows"] == [("sw", "ur")]
    assert audit_own_rows(session.catalog.task("xnli"), auditor._finder, only=["de"]).findings == []


def test_blank_lines_of_a_file_are_noted_once(run: RunTasks, data_folder: DataFolder) -> None:
    tagged = "Anna\tB-PER\nvive\tO\n\n\n\nRoma\tB-LOC\n"
    names = ("train-en", "dev-en", "test-vi")
    folder = data_folder({f"wikiann/{name}.tsv": tagged if "vi" in name else TAGGED for name in names})
    finished = run("wikiann:vi", "baseline:majority", data=folder, limit=None, seeds=(1, 2))
    assert {(cell.status, cell.n) for cell in finished.results.cells} == {("ok", 2)}
    [note] = [note for note in finished.results.notes if "blank" in note]
    assert "2 blank lines" in note


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("key", ["value", "unknown"])
def test_a_number_that_is_none_names_its_key(run: RunTasks, number: str, key: str) -> None:
    finished = run("xnli:sw", "baseline:majority")
    path = finished.path / "results.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cells"][0]["metrics"]["accuracy"][key] = "NUMBER"
    path.write_text(json.dumps(content).replace('"NUMBER"', number), encoding="utf-8")
    with pytest.raises(DamagedRunError) as caught:
        Run(finished.path)
    assert f"'cells.0.metrics.accuracy.{key}'" in str(caught.value)


def test_identical_targets_of_a_bitext_limit_the_score(run: RunTasks, data_folder: DataFolder) -> None:
    lines = {"eng": "a\nb\nc\nd\n", "deu": "Ja.\nNein.\nJa.\nJa.\n"}
    folder = data_folder({f"tatoeba/tatoeba.deu-eng.{name}": text for name, text in lines.items()})
    finished = run("tatoeba:de", "baseline:char-ngram", data=folder, limit=None)
    [note] = [note for note in finished.results.notes if "identical" in note]
    assert note.startswith("tatoeba:de: 2 of 4 targets")
    assert "50.0 %" in note
