"""The check of a results repository: every fault with its file and line, and what it notes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness_board.repository_checking import check_repository
from harness_board.repository_entry import RepositoryEntry, canonical, schema
from harness_board.repository_runs import write_entry

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "results-repository"
Edit = Callable[[dict[str, Any]], None]


def _first(content: dict[str, Any]) -> dict[str, Any]:
    score: dict[str, Any] = content["runs"][0]["scores"][0]
    return score


def _set(**values: Any) -> Edit:
    return lambda content: _first(content).update(values)


def _value(**values: Any) -> Edit:
    return lambda content: _first(content)["metrics"]["accuracy"].update(values)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_set(unknown=1), "unknown key 'unknown'"),
        (_set(n="12"), "integer"),
        (_set(n=13), "13 items of a test set of 12"),
        (_set(n=10**400), "less than or equal to"),
        (lambda content: content["task"].update(name="a" + ":" * 99), "its file name would have"),
        (_set(n=4), "not marked as partial"),
        (_set(items={"origin": "sample", "digest": "0" * 16}), "sample data"),
        (_set(items={"origin": "hub", "digest": "0" * 16}), "without a revision"),
        (_set(split="validation"), "split 'validation'"),
        (_set(language="de"), "no family and script"),
        (_set(fit="f0"), "nothing of its fit"),
        (_set(provenance="/home/me/test.tsv"), "local path '/home/me/test.tsv'"),
        (_value(value=1.5, ci=[1.4, 1.6]), "at most 1"),
        (_value(value=-0.5), "greater than or equal to 0"),
        (_value(value=0.51), "no number of right answers among 12"),
        (_value(ci=[0.95, 0.99]), "outside of its interval"),
        (_value(ci=None, ci_method=None), "the reason why there is none"),
        (
            lambda content: _first(content)["metrics"].update(bleu={"value": 0.5, "ci_method": "none"}),
            "bleu is no metric",
        ),
        (lambda content: content["runs"][0]["scores"].append(_first(content)), "again"),
        (
            lambda content: content["runs"][0]["means"][0].update(value=0.99, ci=[0.9, 1.0]),
            "that of the run's scores",
        ),
        (lambda content: content["task"].update(version=2), "belongs into 'results/random/mood-v2.json'"),
        (lambda content: content.update(model="other"), "belongs into 'results/other/mood-v1.json'"),
        (lambda content: content.update(schema=2), "schema"),
        (lambda content: content["runs"][0].update(created="2026-13-01T00:00:00"), "month must be"),
    ],
)
def test_the_check_names_file_and_line(
    edit: Edit, message: str, entry: RepositoryEntry, tmp_path: Path
) -> None:
    path = write_entry(entry, tmp_path)
    assert check_repository(tmp_path).faults == []
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    text = canonical(content)
    path.write_text(text, encoding="utf-8")
    faults = check_repository(tmp_path).faults
    [fault] = [fault for fault in faults if message in fault.message]
    assert fault.file == "results/random/mood-v1.json"
    assert fault.line is not None
    if not {"belongs", "schema", "month", "name"} & set(message.split()):
        assert re.search(r'"language|"metric"', text.splitlines()[fault.line - 1])


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("notes.txt", b"x", 1),
        ("m/mood-v1.json", b"\xff", 1),
        ("m/mood-v1.json", b"[" * 100_000, 1),
        ("m/mood-v1.json", b"{}", 4),
        ("m/mood-v1.json", b'{"schema": NaN}', 4),
    ],
)
def test_files_that_are_no_entries_are_faults(
    name: str, content: bytes, count: int, entry: RepositoryEntry, tmp_path: Path
) -> None:
    write_entry(entry, tmp_path)
    path = tmp_path / "results" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert [fault.file for fault in check_repository(tmp_path).faults] == [f"results/{name}"] * count


def test_faults_of_text_and_place_are_found(entry: RepositoryEntry, tmp_path: Path) -> None:
    path = write_entry(entry, tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"schema": 1,', '"schema": 1,\n "schema": 1,'), encoding="utf-8")
    [fault] = check_repository(tmp_path, fix=True).faults
    assert "given twice" in fault.message and fault.line is not None
    path.write_text(json.dumps(json.loads(text), indent=4), encoding="utf-8")
    assert [fault.line for fault in check_repository(tmp_path).faults] == [1]
    assert check_repository(tmp_path, fix=True).faults == []
    assert path.read_text(encoding="utf-8") == text
    other_case = write_entry(entry.model_copy(update={"model": "Random"}), tmp_path)
    assert sum("case of letters" in fault.message for fault in check_repository(tmp_path).faults) == 1
    other_case.unlink()
    other_case.parent.rmdir()
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere.json")
    assert [fault.file for fault in check_repository(tmp_path).faults] == ["results/random/mood-v1.json"]


def test_files_of_one_task_agree_in_what_it_is(entry: RepositoryEntry, tmp_path: Path) -> None:
    write_entry(entry, tmp_path)
    task = entry.task.model_copy(update={"source": "sw"})
    write_entry(entry.model_copy(update={"model": "z", "task": task}), tmp_path)
    [fault] = check_repository(tmp_path).faults
    assert (fault.file, "'source'" in fault.message) == ("results/z/mood-v1.json", True)


def test_metadata_are_of_a_model_of_the_repository(entry: RepositoryEntry, tmp_path: Path) -> None:
    write_entry(entry, tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.yaml").write_text("name: random\nlicence: mit\n", encoding="utf-8")
    assert check_repository(tmp_path).faults == []
    (tmp_path / "models" / "b.yaml").write_text("name: rondom\nyear: 1492\n", encoding="utf-8")
    (tmp_path / "models" / "c.yaml").write_text("name: rondom\npaper: in /home/me/a.pdf\n", encoding="utf-8")
    (tmp_path / "models" / "d.yaml").symlink_to(tmp_path / "models" / "a.yaml")
    faults = [(fault.file, fault.line) for fault in check_repository(tmp_path).faults]
    assert faults == [
        ("models/b.yaml", 2),
        ("models/c.yaml", None),
        ("models/c.yaml", 2),
        ("models/d.yaml", None),
    ]


def test_items_of_different_files_are_noted(entry: RepositoryEntry, tmp_path: Path) -> None:
    write_entry(entry, tmp_path)
    content = json.loads(entry.text())
    content["model"] = "z"
    content["runs"][0]["scores"][0]["items"]["digest"] = "0" * 16
    write_entry(RepositoryEntry.model_validate_json(json.dumps(content)), tmp_path)
    report = check_repository(tmp_path)
    assert (report.faults, len(report.notes)) == ([], 1)
    assert "en" in report.notes[0].split()


def test_the_schema_is_the_one_that_editors_get(entry: RepositoryEntry) -> None:
    shipped = json.loads((EXAMPLE / "results.schema.json").read_text(encoding="utf-8"))
    assert shipped == schema(), (
        "harness results schema --output examples/results-repository/results.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(shipped)
    content = json.loads(entry.text())
    jsonschema.validate(content, shipped)
    content["runs"][0]["scores"][0]["unknown"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, shipped)
