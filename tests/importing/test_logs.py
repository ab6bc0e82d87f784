"""Tables, Every Eval Ever's instances, EuroEval's records, inspect_ai's logs, and names in all of them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.errors import DataError, MissingExtraError, UsageError
from harness.storage.run_folder import Run
from harness_import.log_files import read_logs
from harness_import.logged import UNDETERMINED, folder_names, safe_name, split_language
from tests.importing.conftest import LOGS, Cli, ImportLogs

LABELS = ["entailment", "neutral", "contradiction"]


def _items() -> list[dict[str, str]]:
    sample = resources.files("harness_task_specs") / "sample" / "xnli" / "sw.jsonl"
    return [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]


def _rows(model: str = "mine/a", language: str = "Swahili", shift: int = 0) -> list[dict[str, Any]]:
    """Return answers to all items of the Swahili sample, a third of them right."""
    rows = []
    for number, item in enumerate(_items()):
        answer = LABELS[(number * 7 + shift) % 3]
        shared = {"model": model, "task": "xnli", "language": language, "id": item["id"]}
        rows.append(
            {**shared, "answer": answer, "gold": item["label"], "score": int(answer == item["label"])}
        )
    return rows


def _sample(task: str) -> list[dict[str, Any]]:
    file = resources.files("harness_task_specs") / "sample" / task / "en.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def _write_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _scores(run: Run) -> dict[str, Any]:
    return {record.id: dict(record.scores) for cell in run.cells for record in run.records(cell)}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_is_matched_by_id(import_logs: ImportLogs, tmp_path: Path, suffix: str) -> None:
    path, rows = tmp_path / f"answers{suffix}", _rows()
    if suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif suffix == ".jsonl":
        _write_lines(path, rows)
    else:
        _write_csv(path, rows, "\t" if suffix == ".tsv" else ",")
    run = import_logs(path, "--data", "sample")
    [cell] = run.cells
    assert (cell.task, cell.language, cell.n) == ("xnli", "sw", 24)
    assert _scores(run) == {
        row["id"]: {"accuracy": row["score"], "logged:score": row["score"]} for row in rows
    }
    assert all(record.cluster is not None for record in run.records(cell))


@pytest.mark.parametrize(
    ("column", "value"), [("score", "good"), ("score", "nan"), ("language", "klingonese"), ("id", "")]
)
def test_a_bad_cell_names_its_line(tmp_path: Path, column: str, value: str) -> None:
    rows = _rows()
    rows[2][column] = value
    with pytest.raises(DataError, match=":4:"):
        read_logs([_write_csv(tmp_path / "answers.csv", rows)])


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    rows = [{"Model" if key == "model" else key: value for key, value in row.items()} for row in _rows()]
    with pytest.raises(DataError, match="Model"):
        read_logs([_write_csv(tmp_path / "answers.csv", rows)])


def test_an_item_twice_is_an_error(tmp_path: Path) -> None:
    rows = _rows()
    with pytest.raises(UsageError):
        read_logs([_write_csv(tmp_path / "answers.csv", [*rows, rows[0]])])


def test_other_files_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    _write_csv(tmp_path / "answers.csv", _rows())
    _write_csv(tmp_path / "prices.csv", [{"a": 1}])
    (tmp_path / "broken.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "settings.json").write_text("{}", encoding="utf-8")
    assert [cell.task for cell in read_logs([tmp_path])] == ["xnli"]
    for name in ("prices.csv", "broken.jsonl", "settings.json", "absent.csv"):
        with pytest.raises((UsageError, DataError)):
            read_logs([tmp_path / name])


def test_several_models_are_a_run_each(cli: Cli, tmp_path: Path) -> None:
    names = ["mine/a", "../../outside", "mine:a"]
    rows = [row for shift, name in enumerate(names) for row in _rows(name, shift=shift)]
    path = _write_csv(tmp_path / "answers.csv", rows)
    status, _, err = cli("import", path, "--output", tmp_path / "runs")
    assert status == 0, err
    folders = sorted(folder.name for folder in (tmp_path / "runs").iterdir())
    assert len(folders) == 3
    assert all(Run(tmp_path / "runs" / folder).cells for folder in folders)
    assert "outside" in folders
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} <= {"cache", "cwd", "runs"}
    assert cli("import", path, "--model", "mine/a", "--output", tmp_path / "alone")[0] == 0
    assert Run(tmp_path / "alone").results.model.ref == "mine/a"
    assert cli("import", path, "--model", "mine/b", "--output", tmp_path / "none")[0] == 2
    assert cli("import", path, "--output", tmp_path / "alone")[0] == 2


def test_languages_whose_items_are_all_ours_have_one_note(import_logs: ImportLogs, tmp_path: Path) -> None:
    rows = [{**row, "language": language} for language in ("sw", "en") for row in _rows()]
    notes = import_logs(_write_csv(tmp_path / "a.csv", rows), "--data", "sample").results.notes
    assert [re.findall(r"\d+", note) for note in notes if "'xnli'" in note] == [["48", "2"]]
    notes = import_logs(
        _write_csv(tmp_path / "b.csv", [*rows[1:], {**rows[0], "id": "of-no-item"}]), "--data", "sample"
    ).results.notes
    assert [re.findall(r"\d+", note) for note in notes if "'xnli'" in note] == [["23", "24"], ["24", "1"]]


def test_names_of_logs_are_safe_in_paths(import_logs: ImportLogs, tmp_path: Path) -> None:
    rows = [{**row, "task": "../../../etc/passwd"} for row in _rows()]
    run = import_logs(_write_csv(tmp_path / "answers.csv", rows))
    [cell] = run.cells
    assert run.records_of(cell).is_relative_to(run.path)
    assert run.records_of(cell).resolve().is_relative_to(run.path.resolve())


@pytest.mark.parametrize("name", ["..", "a/b", "a\\b", "", ".hidden", "x" * 300, "ö", "a b", "a:b"])
def test_a_changed_name_is_unlike_all_others(name: str) -> None:
    assert safe_name(name) != name
    assert not set(safe_name(name)) & set("/\\:\0 ")
    assert not safe_name(name).startswith(".")
    assert len(safe_name(name)) < 120
    assert safe_name(name) != safe_name(name + "-")


def test_folders_of_models_differ() -> None:
    names = ["a/b", "a:b", "A-B", "c"]
    folders = folder_names(names)
    assert len({folder.casefold() for folder in folders.values()}) == 4
    assert folders["c"] == "c"


@pytest.mark.parametrize(
    ("name", "hint", "base", "code"),
    [
        ("xnli_sw", "", "xnli", "sw"),
        ("belebele_swh_Latn", "swh_Latn", "belebele", "sw"),
        ("belebele_zho_Hant", "", "belebele", "zh-Hant"),
        ("harness.xnli.sw", "", "harness.xnli", "sw"),
        ("mgsm_direct_te", "", "mgsm_direct", "te"),
        ("xnli", "th", "xnli", "th"),
        ("mmlu_law", "", "mmlu_law", UNDETERMINED),
        ("hellaswag", "default", "hellaswag", UNDETERMINED),
        ("wmt16_ro_en", "ro-en", "wmt16_ro_en", UNDETERMINED),
        ("sib200_swahili", "", "sib200", "sw"),
    ],
)
def test_languages_are_read_from_names(name: str, hint: str, base: str, code: str) -> None:
    assert split_language(name, hint) == (base, code)


def _instances(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "schema_version": "instance_level_eval_0.2.1",
            "evaluation_id": "made-up",
            "model_id": row["model"],
            "evaluation_name": "xnli_sw",
            "sample_id": f"row-{number}",
            "interaction_type": "single_turn",
            "input": {
                "raw": f"Soma: {item['premise']} {item['hypothesis']}",
                "reference": [row["gold"]],
                "choices": LABELS,
            },
            "output": {"raw": [f"Ni {row['answer']}."]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": "ABC"[LABELS.index(row["answer"])],
                    "extraction_method": "regex",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": float(row["score"]), "is_correct": bool(row["score"])},
        }
        for number, (row, item) in enumerate(zip(rows, _items(), strict=True))
    ]


def test_instances_of_every_eval_ever_are_matched_by_text(import_logs: ImportLogs, tmp_path: Path) -> None:
    rows = _rows()
    run = import_logs(_write_lines(tmp_path / "instances.jsonl", _instances(rows)), "--data", "sample")
    [cell] = run.cells
    assert (cell.task, cell.language) == ("xnli", "sw")
    answers = {record.id: (record.answer, record.scores["accuracy"]) for record in run.records(cell)}
    assert answers == {row["id"]: (row["answer"], row["score"]) for row in rows}


def test_items_that_are_not_ours_stay_apart(import_logs: ImportLogs, tmp_path: Path) -> None:
    records = _instances(_rows())
    for record in records[:3]:
        record["input"]["raw"] = "Kitu kingine kabisa."
    run = import_logs(_write_lines(tmp_path / "instances.jsonl", records), "--data", "sample")
    assert {cell.task: cell.n for cell in run.cells} == {"xnli": 21, "logged:xnli": 3}


def test_iterations_of_euroeval_are_items(import_logs: ImportLogs, cli: Cli, tmp_path: Path) -> None:
    record = {
        "dataset": "made-up-sentiment",
        "task": "sentiment-classification",
        "languages": ["da"],
        "results": {
            "raw": [{"test_mcc": value, "num_failed_instances": 0} for value in (0.41, 0.39, 0.44)],
            "total": {"test_mcc": 41.33, "test_mcc_se": 2.8, "num_failed_instances": 0.0},
        },
        "num_model_parameters": 1000,
        "generative": True,
        "few_shot": True,
        "validation_split": False,
        "euroeval_version": "16.0.0",
    }
    path = _write_lines(tmp_path / "results.jsonl", [{**record, "model": "mine/a"}])
    run = import_logs(path)
    [cell] = run.cells
    assert (cell.task, cell.language, cell.n) == ("logged:made-up-sentiment", "da", 3)
    assert cell.metrics["logged:mcc"].value == pytest.approx(0.4133, abs=1e-4)
    assert all(record.gold is None and record.answer is None for record in run.records(cell))
    assert cli("score", run.path)[0] == 0
    assert Run(run.path).cells == run.cells
    with pytest.raises(DataError, match=":1"):
        read_logs([_write_lines(tmp_path / "bad.jsonl", [{**record, "model": "a", "results": {}}])])


def test_numbers_of_choices_become_our_names(import_logs: ImportLogs, tmp_path: Path) -> None:
    items, rows = _sample("belebele"), []
    for number, item in enumerate(items):
        gold = str("ABCD".index(item["label"]) + 1)
        answer = gold if number % 2 else str(number % 4 + 1)
        asked = {name: value for name, value in item.items() if name not in {"id", "label"}}
        named = {"model": "mine/a", "task": "belebele", "language": "eng_Latn", "id": f"row-{number}"}
        rows.append({**named, "answer": answer, "gold": gold, "score": int(answer == gold), **asked})
    run = import_logs(_write_lines(tmp_path / "answers.jsonl", rows), "--data", "sample")
    [cell] = run.cells
    assert (cell.task, cell.language, cell.n) == ("belebele", "en", len(items))
    assert [record.reference for record in run.records(cell)] == [item["label"] for item in items]
    assert [record.correct for record in run.records(cell)] == [bool(row["score"]) for row in rows]


def test_spans_are_matched_by_text_and_scored_by_our_metrics(import_logs: ImportLogs, tmp_path: Path) -> None:
    shared = {"model": "mine/a", "task": "xquad", "language": "en", "score": 0.5}
    items = _sample("xquad")
    rows = [
        {
            **shared,
            "id": f"row-{number}",
            "answer": item["answers"][0]["text"],
            "gold": json.dumps([answer["text"] for answer in item["answers"]]),
            "question": item["question"],
            "passage": item["context"],
        }
        for number, item in enumerate(items)
    ]
    run = import_logs(_write_csv(tmp_path / "answers.csv", rows), "--data", "sample")
    [cell] = run.cells
    assert (cell.task, cell.n) == ("xquad", len(items))
    assert (cell.metrics["f1"].value, cell.metrics["logged:score"].value) == (1.0, 0.5)
    wrong = [{**row, "gold": "something else"} for row in rows]
    [apart] = import_logs(_write_csv(tmp_path / "wrong.csv", wrong), "--data", "sample").cells
    assert apart.task == "logged:xquad"


def test_numbers_are_matched_where_scores_agree(import_logs: ImportLogs, tmp_path: Path) -> None:
    shared = {"model": "mine/a", "task": "mgsm", "language": "en"}
    rows = [
        {**shared, "id": item["id"], "answer": f"{item['answer']}.", "gold": item["answer"], "score": 1}
        for item in _sample("mgsm")
    ]
    rows[0] |= {"answer": "no idea", "score": 0}
    run = import_logs(_write_csv(tmp_path / "answers.csv", rows), "--data", "sample")
    [cell] = run.cells
    assert cell.task == "mgsm"
    assert _scores(run) == {
        row["id"]: {"exact_value": float(row["score"]), "logged:score": float(row["score"])} for row in rows
    }
    rows[1]["score"] = 0
    [apart] = import_logs(_write_csv(tmp_path / "apart.csv", rows), "--data", "sample").cells
    assert apart.task == "logged:mgsm"


def test_inspect_ai_reads_its_own_logs(import_logs: ImportLogs, tmp_path: Path) -> None:
    tool: Any = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    [path] = (LOGS / "inspect").iterdir()
    log = tool.read_eval_log(str(path))
    tool.write_eval_log(log, str(tmp_path / "log.json"))
    for source in (path, tmp_path / "log.json"):
        run = import_logs(source, "--data", "sample")
        [cell] = run.cells
        assert (cell.task, cell.language, run.results.model.ref) == ("xnli", "sw", "mockllm/model")
        records = {record.id: record for record in run.records(cell)}
        assert len(records) == 6
        for sample in log.samples:
            score = sample.scores["choice"]
            assert records[sample.id].answer == sample.choices["ABC".index(score.answer)]
            assert records[sample.id].scores["accuracy"] == (score.value == "C")


def test_without_inspect_ai_the_message_says_so() -> None:
    try:
        import inspect_ai  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError):
            read_logs([LOGS / "inspect"])
    else:
        pytest.skip("inspect_ai is installed")
