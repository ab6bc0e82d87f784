from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path

import pytest

from harness.checks.task_audit import Finding, TaskAudit
from harness.cli.main import run_command
from harness.running.auditor import open_auditor
from harness.running.session import open_session

SESSION = open_session()
TASKS = SESSION.catalog.names("task")
KNOWN = Path(__file__).with_name("known_findings.tsv")
QUICK = (
    "colorless_green_agreement", "mewslix", "pawsx", "tatoeba", "tydiqa", "vyakarana_gcm", "vyakarana_pos",
    "vyakarana_stdp", "vyakarana_sva", "xcopa",
)  # fmt: skip
"""Tasks whose released data are audited in a few seconds."""
Known = tuple[str, str, str]
"""Check, languages, what was found."""


@pytest.mark.parametrize("task", TASKS)
def test_the_sample_of_every_shipped_task_is_audited(task: str) -> None:
    report = open_auditor(SESSION, ["sample"]).audit(SESSION.catalog.task(task))
    assert [str(item) for item in report.findings] == []
    assert report.items > 0


def known_findings() -> dict[str, set[Known]]:
    """Return what is known to be found on the released data, by task.

    Columns of the table: task, check, languages, what was found. The comments of the table give the reasons.
    """
    found: dict[str, set[Known]] = {task: set() for task in TASKS}
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            task, check, languages, what = line.split("\t")
            found[task].add((check, languages, what))
    return found


def finding_of(item: Finding) -> Known:
    # The message of unreadable data names a path, and quotes the data.
    found = "unreadable" if item.check == "data" else item.found
    # Texts of released data stay where they are.
    found = re.sub(r"(= \w+ item '[^']*'), .*\)$", r"\1)", found)
    split = item.expected.partition(" in the ")[2] if item.check == "overlap" else ""
    return (item.check, " ".join(item.languages), f"{split}: {found}" if split else found)


@cache
def audited_on_released_data(task: str) -> TaskAudit:
    """Return the report of a task, once only known faults are found."""
    root = os.environ.get("HARNESS_TEST_DATA")
    if root is None:
        pytest.skip("HARNESS_TEST_DATA names no folder with the released data")
    report = open_auditor(SESSION, [root]).audit(SESSION.catalog.task(task))
    found = {finding_of(item) for item in report.findings}
    if os.environ.get("HARNESS_UPDATE_GOLDEN") == "1":
        write_known(task, found)
    assert found == known_findings()[task]
    return report


def write_known(task: str, found: set[Known]) -> None:
    kept = [line for line in KNOWN.read_text(encoding="utf-8").splitlines() if line.split("\t")[0] != task]
    lines = ["\t".join((task, *row)) for row in sorted(found)]
    KNOWN.write_text("\n".join([*kept, *lines]) + "\n", encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("task", QUICK)
def test_only_known_faults_are_found_in_released_data(task: str) -> None:
    audited_on_released_data(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in TASKS if task not in QUICK])
def test_only_known_faults_are_found_in_large_released_data(task: str) -> None:
    audited_on_released_data(task)


@pytest.mark.thorough
def test_placeholders_and_romanised_items_of_released_data_are_counted() -> None:
    """Untranslated rows of PAWS-X's files have NS: 32 in de, 1 in es, 54 in ja."""
    report = audited_on_released_data("pawsx")
    notes = {(note.check, *note.languages): note.text for note in report.notes}
    for code, count in (("de", 32), ("es", 1), ("ja", 54)):
        assert notes[("placeholder", code)].startswith(
            f"{count} of 2,000 items of the test split have a placehold"
        )
    assert ("placeholder", "en") not in notes
    assert ("script", "ja") not in notes, "Japanese sentences with many names in Latin letters are Japanese"


@pytest.mark.slow
def test_romanised_items_of_xnli_are_counted() -> None:
    """Chinese sentences with foreign names are Chinese, but for seven with hardly anything else."""
    notes = {
        note.languages: note.text for note in audited_on_released_data("xnli").notes if note.check == "script"
    }
    printed = {code: notes[(code,)].partition(" (")[0].rpartition(": ")[2] for code in ("hi", "ur", "zh")}
    assert printed == {"hi": "255 in Latn", "ur": "264 in Latn", "zh": "7 in Latn"}


def test_the_command_is_as_before_without_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["tasks", "validate", "xnli"]) == 0
    assert capsys.readouterr().out == "ok  task xnli\n"


def test_the_command_audits_with_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.json"
    assert run_command(["tasks", "validate", "pawsx", "--data", "sample", "--json", str(rows)]) == 0
    assert "pawsx: 4 languages, 80 items, no fault" in capsys.readouterr().out
    [row] = json.loads(rows.read_text(encoding="utf-8"))
    assert row["proof"]["findings"] == []
    assert len(row["proof"]["languages"]) == 4
    assert row["proof"]["items"] == 80


def test_data_that_a_lock_file_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "lock.json"
    assert run_command(["lock", "pawsx", "--data", "sample", "--output", str(lock)]) == 0
    command = ["tasks", "validate", "pawsx", "--data", "sample", "--locked", str(lock)]
    assert run_command(command) == 0
    content = json.loads(lock.read_text(encoding="utf-8"))
    [changed] = [entry for entry in content["data"] if entry["language"] == "de" and entry["split"] == "test"]
    changed["digest"] = "0" * 64
    changed["files"][0]["sha256"] = "0" * 64
    content["data"] = [
        entry for entry in content["data"] if (entry["language"], entry["split"]) != ("es", "test")
    ]
    lock.write_text(json.dumps(content), encoding="utf-8")
    capsys.readouterr()
    assert run_command(command) == 1
    printed = capsys.readouterr().err
    assert "pawsx [de]: expected the data of 'pawsx' in 'de' (test)" in printed
    assert "pawsx [es]: expected" in printed
    assert "found no entry for them" in printed


def test_every_split_is_compared_with_the_lock(tmp_path: Path) -> None:
    """Training and development data count too: a change of any of them is reported, by language and split."""
    lock = tmp_path / "lock.json"
    assert run_command(["lock", "pawsx", "--data", "sample", "--output", str(lock)]) == 0
    content = json.loads(lock.read_text(encoding="utf-8"))
    splits = [(entry["language"], entry["split"]) for entry in content["data"]]
    assert {split for _, split in splits} == {"train", "validation", "test"}
    session = open_session()
    for number, (language, split) in enumerate(splits):
        changed = json.loads(json.dumps(content))
        changed["data"][number]["digest"] = "0" * 64
        lock.write_text(json.dumps(changed), encoding="utf-8")
        report = open_auditor(session, ["sample"], lock).audit(session.catalog.task("pawsx"))
        assert [(item.check, item.languages) for item in report.findings] == [("lock", (language,))]
        assert f"'{language}' ({split})" in report.findings[0].expected


def test_one_item_of_every_language_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.json"
    assert run_command(["tasks", "validate", "pawsx", "--data", "sample", "--json", str(rows)]) == 0
    printed = capsys.readouterr().out
    assert "  prompt   pawsx/default; also pawsx/lm_eval, pawsx/mega, pawsx/mt5 (see --prompts)" in printed
    shown = [line.split()[0] for line in printed.splitlines() if line.startswith("    ")]
    assert shown == ["en", "de", "es", "zh"]
    prompts = json.loads(rows.read_text(encoding="utf-8"))[0]["proof"]["prompts"]
    assert len(prompts) == 16
    [german] = [item for item in prompts if (item["language"], item["prompt"]) == ("de", "pawsx/default")]
    assert german["context"] == "Der Zug von Marsola nach Dorno hält in Velmar, richtig?"
    assert german["choices"][german["gold"]].startswith(" Ja, ")
    assert run_command(["tasks", "validate", "pawsx", "--data", "sample", "--prompts"]) == 0
    whole = capsys.readouterr().out
    assert all(item["context"] in whole for item in prompts)


def test_a_lock_file_needs_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["tasks", "validate", "xnli", "--locked", "absent.json"]) == 2
    assert "name the data with --data" in capsys.readouterr().err
