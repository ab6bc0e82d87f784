"""What the command reports of data that are missing, not readable, or not the user's own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.checks.task_audit import TaskAudit
from harness.cli.main import run_command
from harness.running.auditor import open_auditor
from harness.running.session import open_session
from tests.audit.bench import found_by
from tests.audit.conftest import SPEC, Audit, remarks

Data = dict[str, Sequence[tuple[str, str]]]
FRAGMENT = """
extends: xnli
languages:
  yo: {provenance: human-translated}
"""
YORUBA = "Ọmọ náà ń sùn.\tỌmọ náà kò sáré rárá.\tentailment\nỌmọ náà ń sùn.\tỌmọ náà ń sáré.\tcontradiction\n"
ENGLISH = (
    "The child sleeps.\tThe child did not run.\tentailment\nThe child sleeps.\tIt runs.\tcontradiction\n"
)


@pytest.mark.thorough
def test_a_folder_without_the_test_items_audits_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "mood.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    own = ["--tasks-from", str(tmp_path / "specs"), "--data", str(tmp_path / "empty")]
    for target in ("mood", str(tmp_path / "specs" / "mood.yaml")):
        assert run_command(["tasks", "validate", target, *own]) == 1
        printed = capsys.readouterr().out
        assert "no fault" not in printed
        assert "mood: 0 languages, 0 items, nothing to check: no test item was found\n" in printed
        assert "no test items were found in en de ru (of 'mood/test-{language}.tsv')." in printed
    assert run_command(["tasks", "validate", *own]) == 0
    assert "mood: 0 languages, 0 items, nothing to check" in capsys.readouterr().out


def test_missing_items_and_provenance_are_reported(audit: Audit, data: Data) -> None:
    del data["train-en"]
    report = audit(spec=SPEC.replace("  de: {provenance: human-translated}", "  de: {}"))
    assert report.skipped == ["overlap: the train split of 'mood' was not found"]
    assert [note.languages for note in report.notes if note.check == "provenance"] == [("de",)]


def test_a_missing_source_language_is_reported(audit: Audit, data: Data) -> None:
    del data["test-en"]
    items, labels = audit().skipped
    assert items.endswith("found in en")
    assert labels.startswith("labels and texts were not compared with en")


def test_an_unreadable_file_is_a_finding(audit: Audit, data: Data) -> None:
    data["test-ru"] = [("Слова", "2")]
    report = audit()
    assert [(item.check, item.languages) for item in report.findings] == [("data", ("ru",))]
    assert not re.search(r"\?\.$", str(report.findings[0]))
    assert (report.skipped, report.languages) == ([], ("en", "de"))


def test_an_item_with_another_label_is_named(audit: Audit, data: Data) -> None:
    text, label = data["test-de"][2]
    data["test-de"] = [*data["test-de"][:2], (text, "10"[int(label)]), *data["test-de"][3:]]
    [note] = audit().notes
    assert note.languages == ("de",)
    assert "1 of 40 labels" in note.text
    assert "item '3' is 'pleased', and 'annoyed' in en" in note.text
    data["test-de"] = [(text, "0") for text, _ in remarks("de")]
    [fault] = [item.found for item in audit().findings if item.check == "parallel labels"]
    assert "20 of 40" in fault and "item '2' is 'annoyed', and 'pleased' in en" in fault


def test_an_item_in_two_splits_is_shown(audit: Audit, data: Data) -> None:
    data["train-en"] = [*data["train-en"], data["test-en"][4]]
    [fault] = audit().findings
    assert "1 exact and 0 near duplicates" in fault.found
    assert "test item '5' = train item '9', 'The remark about number 4'" in fault.found


def test_files_without_ids_are_aligned_where_they_are_as_long(audit: Audit, data: Data) -> None:
    data["test-de"] = data["test-de"][:39]
    count, ids = audit().findings
    assert [(item.check, item.languages) for item in (count, ids)] == [
        ("count", ("de",)),
        ("parallel ids", ("de",)),
    ]
    assert "40" in count.expected and "39" in count.found


def test_items_with_placeholders_and_in_other_scripts_are_named(audit: Audit, data: Data) -> None:
    data["test-ru"] = [("Zamechanie o chisle", "0"), *data["test-ru"][1:3], ("NS", "1"), *data["test-ru"][4:]]
    notes = {item.check: item.text for item in audit().notes}
    assert notes["script"].endswith("1 in Latn (item '1')")
    assert notes["placeholder"].endswith("('NS'; item '4')")


def test_a_fragment_is_proved_on_its_own_languages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("yo.yaml").write_text(FRAGMENT, encoding="utf-8")
    Path("data/xnli").mkdir(parents=True)
    Path("data/xnli/test-yo.tsv").write_text(YORUBA, encoding="utf-8")
    Path("data/xnli/test-ru.tsv").write_text("Слова\tСлова\tother\n", encoding="utf-8")
    Path("data/xnli/test-en.tsv").write_text(ENGLISH, encoding="utf-8")
    assert run_command(["tasks", "validate", "yo.yaml", "--data", "data"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("spec ok  extends xnli\nxnli: 1 language, 2 items, no fault\n")
    assert [line.split()[0] for line in printed.out.splitlines() if line.startswith("    ")] == ["yo"]
    assert not [
        line for line in printed.out.splitlines() if "[" in line and "yo" not in line and "note" in line
    ]
    assert "no test items" not in printed.out
    Path("data/xnli/test-yo.tsv").unlink()
    assert run_command(["tasks", "validate", "yo.yaml", "--data", "data"]) == 1
    assert "xnli: 0 languages, 0 items, nothing to check" in capsys.readouterr().out


def test_options_that_do_not_fit_a_file_are_reported_with_their_language(audit: Audit) -> None:
    """The reader rejects them when it reads; the other languages are still checked."""
    report = audit(spec=SPEC.replace("  ru: {", '  ru: {test: {local: "mood/test-ru.tsv", reader: bitext}, '))
    [finding] = [item for item in report.findings if item.check == "data"]
    assert finding.languages == ("ru",)
    assert "mood/test-ru.tsv" in finding.found and "'bitext'" in finding.found
    assert report.languages == ("en", "de")


def test_a_test_set_that_is_a_training_file_is_named(audit: Audit, data: Data) -> None:
    data["more-en"] = data["train-en"]
    spec = SPEC.replace("local: mood/train-en.tsv", "local: [{path: [mood/more-en.tsv, mood/test-ru.tsv]}]")
    [finding] = [item for item in audit(spec=spec).findings if item.languages == ("ru",)]
    assert (finding.check, finding.found) == ("overlap", "the same file 'test-ru.tsv'")


def test_placeholders_are_no_overlap_and_no_other_script(audit: Audit, data: Data) -> None:
    """Two files with a missing translation do not share an item."""
    data["test-ru"] = [("NS", "0"), *data["test-ru"][1:]]
    data["train-en"] = [("NS", "0"), *data["train-en"]]
    report = audit()
    assert [item.check for item in report.findings] == []
    assert [(note.check, note.languages) for note in report.notes] == [("placeholder", ("ru",))]


CHOICES = """
task: pick
kind: multiple_choice
version: 1
description: Which remark follows.
citation: example2026pick
license: cc0-1.0
inputs: [text]
labels: [one, two]
metrics: [accuracy]
protocols: [frozen]
splits: {test: {local: "mood/test-{language}.tsv", columns: [text, one, two, label]}}
languages: {en: {provenance: native}}
"""
FORMS = """
task: forms
kind: form_preference
version: 1
description: Which sentence is better.
citation: example2026forms
license: cc0-1.0
metrics: [accuracy]
parallel: true
protocols: [frozen]
splits: {test: {local: "forms/{language}.jsonl", reader: READER}}
languages: {en: {provenance: native}, de: {provenance: human-translated}}
"""


@pytest.mark.parametrize(("often", "noted"), [(15, False), (29, True)])
def test_an_answer_that_is_too_often_in_one_place(tmp_path: Path, often: int, noted: bool) -> None:
    (tmp_path / "mood").mkdir()
    rows = [
        f"The text {number}\tfirst\tsecond\t{'one' if number < often else 'two'}\n" for number in range(30)
    ]
    (tmp_path / "mood" / "test-en.tsv").write_text("".join(rows), encoding="utf-8")
    notes = [item.text for item in audited(tmp_path, CHOICES).notes if item.check == "answer position"]
    assert ["one 96.7 %, two 3.3 %; chi-square p < .001" in text for text in notes] == [True] * noted


def audited(folder: Path, spec: str) -> TaskAudit:
    path = folder / "spec.yaml"
    path.write_text(spec, encoding="utf-8")
    session = open_session([path])
    [name] = [line.partition(": ")[2] for line in spec.splitlines() if line.startswith("task: ")]
    return open_auditor(session, [str(folder)]).audit(session.catalog.task(name))


def write_forms(folder: Path, **rows: list[dict[str, Any]]) -> None:
    """Write the rows of the task ``forms`` by language."""
    (folder / "forms").mkdir()
    for code, own in rows.items():
        text = "".join(json.dumps({"before": "", **row}) + "\n" for row in own)
        (folder / "forms" / f"{code}.jsonl").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("reader", "noted"),
    [("jsonl", "1 of 5 items "), ("sentence_pairs, options: {format: jsonl}", "1 of 5 pairs ")],
)
def test_pairs_of_identical_sentences_are_counted(tmp_path: Path, reader: str, noted: str) -> None:
    rows = [{"right": f"A {number}.", "wrong": f"{'AB'[number != 2]} {number}."} for number in range(5)]
    write_forms(tmp_path, en=rows, de=rows)
    notes = [item.text for item in audited(tmp_path, FORMS.replace("READER", reader)).notes]
    assert len(notes) == 2
    assert all(text.startswith(noted) and "item '3'" in text for text in notes)


def test_candidates_of_parallel_items_are_as_many(tmp_path: Path) -> None:
    second = {"right": "d", "wrong": "e"}
    write_forms(
        tmp_path,
        en=[{"right": "a", "wrong": ["b", "c"]}, second],
        de=[{"right": "a", "wrong": ["b"]}, second],
    )
    findings = audited(tmp_path, FORMS.replace("READER", "jsonl")).findings
    [fault] = [item for item in findings if item.check == "parallel candidates"]
    assert fault.languages == ("de",)
    assert "item '1' has 2 and 3" in fault.found


def sentences(audit: Audit) -> list[str]:
    return list(map(str, found_by(audit(), "not translated")))


def test_english_items_of_another_language_are_a_fault_or_noted(audit: Audit, data: Data) -> None:
    data["test-de"] = remarks("en")
    [fault] = sentences(audit)
    assert "found 40 of 40" in fault and "items '1', '2', '3', ..." in fault
    data["test-de"] = [*remarks("en")[:2], *remarks("de")[2:]]
    [note] = sentences(audit)
    assert "not translated: " in note and "2 of 40" in note and "items '1', '2'" in note
    for code in ("en", "de"):
        data[f"test-{code}"] = [(f"Albert Einstein, Ulm {number}", str(number % 2)) for number in range(40)]
    assert sentences(audit) == [], "names, numbers and short texts may be equal"
