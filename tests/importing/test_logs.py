"""Logs of other tools become runs."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from harness.analysis.comparison import compare
from harness.errors import DataError, MissingExtraError, UsageError
from harness.registry.registry import Registry
from harness.storage.files import file_digest
from harness.storage.run_folder import Run
from harness_import.item_match import _pairs
from harness_import.log_files import read_logs
from harness_import.logged import KIND, UNDETERMINED, LoggedItem, folder_names, safe_name, split_language
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


def test_a_missing_column_and_an_item_twice_are_errors(tmp_path: Path) -> None:
    rows = _rows()
    renamed = [{"Model" if key == "model" else key: value for key, value in row.items()} for row in rows]
    with pytest.raises(DataError, match="Model"):
        read_logs([_write_csv(tmp_path / "renamed.csv", renamed)])
    with pytest.raises(UsageError):
        read_logs([_write_csv(tmp_path / "twice.csv", [*rows, rows[0]])])


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


@pytest.mark.parametrize("name", ["..", "a/b", "a\\b", "", ".hidden", "x" * 300, "ö", "a b", "a:b"])
def test_a_changed_name_is_unlike_all_others(name: str) -> None:
    safe = safe_name(name)
    assert safe != name
    assert not set(safe) & set("/\\:\0 ")
    assert not safe.startswith(".")
    assert len(safe) < 120
    assert safe != safe_name(name + "-")
    folders = folder_names(["a/b", "a:b", "A-B", "c"])
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
    shared = {
        "schema_version": "instance_level_eval_0.2.1",
        "evaluation_id": "made-up",
        "evaluation_name": "xnli_sw",
        "interaction_type": "single_turn",
    }
    read = {"turn_idx": 0, "source": "output.raw", "extraction_method": "regex", "is_terminal": True}
    records = []
    for number, (row, item) in enumerate(zip(rows, _items(), strict=True)):
        text, letter = f"Soma: {item['premise']} {item['hypothesis']}", "ABC"[LABELS.index(row["answer"])]
        records.append(
            {
                **shared,
                "model_id": row["model"],
                "sample_id": f"row-{number}",
                "input": {"raw": text, "reference": [row["gold"]], "choices": LABELS},
                "output": {"raw": [f"Ni {row['answer']}."]},
                "answer_attribution": [{**read, "extracted_value": letter}],
                "evaluation": {"score": float(row["score"]), "is_correct": bool(row["score"])},
            }
        )
    return records


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


LM_EVAL = LOGS / "lm_eval"


def _samples(name: str) -> list[dict[str, Any]]:
    [path] = LM_EVAL.glob(f"samples_{name}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _copy(folder: Path, name: str = "samples_xnli_sw_*.jsonl") -> Path:
    """Copy the log into a folder, and return the path of one of its files there."""
    shutil.copytree(LM_EVAL, folder / "log")
    [path] = (folder / "log").glob(name)
    return path


def _results() -> dict[str, Any]:
    [path] = LM_EVAL.glob("results_*.json")
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def test_items_of_our_task_have_our_ids_and_the_logged_answers(import_logs: ImportLogs) -> None:
    run = import_logs(LM_EVAL, "--data", "sample")
    cells = {cell.language: cell for cell in run.cells if cell.task == "xnli"}
    assert set(cells) == {"en", "sw"}
    for code, cell in cells.items():
        samples = {sample["doc"]["hypothesis"]: sample for sample in _samples(f"xnli_{code}")}
        records = list(run.records(cell))
        assert len(records) == cell.n == 6
        assert cell.size == 24
        for record in records:
            sample = samples[record.fields["inputs"]["hypothesis"]]
            sums = [float(response[0]) for response in sample["filtered_resps"]]
            assert record.prediction["label"] == LABELS[sums.index(max(sums))]
            assert record.reference == LABELS[sample["doc"]["label"]]
            assert record.scores == {
                "accuracy": sample["acc"],
                "logged:acc": sample["acc"],
                "logged:acc_norm": sample["acc_norm"],
            }
        aggregates = _results()["results"][f"xnli_{code}"]
        assert cell.metrics["accuracy"].value == pytest.approx(aggregates["acc,none"])
        assert cell.metrics["logged:acc_norm"].value == pytest.approx(aggregates["acc_norm,none"])


def test_it_is_compared_item_by_item_with_a_run_of_ours(
    import_logs: ImportLogs, cli: Cli, registry: Registry, tmp_path: Path
) -> None:
    imported = import_logs(LM_EVAL, "--data", "sample")
    asked = ("eval", "--tasks", "xnli:en+sw", "--model", "baseline:majority", "--data", "sample")
    assert cli(*asked, "--output", tmp_path / "ours")[0] == 0
    ours = Run(tmp_path / "ours")
    [compared] = [task for task in compare([ours, imported], registry.metrics).tasks if task.task == "xnli"]
    assert compared.items == 12
    for language in compared.languages:
        assert (language.differing, language.regraded, language.unlabelled) == (0, 0, 0)


def test_without_data_it_is_a_task_of_its_own(import_logs: ImportLogs, cli: Cli) -> None:
    run = import_logs(LM_EVAL)
    assert {cell.task for cell in run.cells} == {"logged:xnli", "logged:sums"}
    assert run.results.run.data == "logged"
    task = run.manifest.tasks["logged:xnli"]
    assert (task.kind, task.headline) == (KIND, ["logged:acc"])
    assert task.languages["sw"] == ("Niger-Congo", "Latn")
    answers: dict[str, list[str | None]] = {}
    for cell in run.cells:
        for record in run.records(cell):
            assert "label" not in record.fields
            if cell.task == "logged:xnli":
                assert record.correct == (record.scores["logged:acc"] == 1.0)
            else:
                answers.setdefault(cell.view["filter"], []).append(record.answer)
    by_filter: dict[str, list[str | None]] = {"strict": [], "number": []}
    for sample in _samples("sums_en"):
        by_filter[sample["filter"]].append(sample["filtered_resps"][0].strip())
    assert answers == by_filter, "filters are views"
    origin = run.manifest.to_json()["imported"]
    assert (origin["harness"], origin["version"]) == ("lm_eval", "0.4.13")
    digests = {path.name: file_digest(path) for path in LM_EVAL.iterdir()}
    assert {file["name"]: file["sha256"] for file in origin["files"]} == digests
    assert set(run.manifest.identity.values()) == {*digests.values()}
    assert (run.manifest.model_name, run.results.model.parameters) == ("models/smollm2", 134515008)
    asked = ("--tasks", "logged:xnli", "--model", "baseline:majority", "--data", "sample")
    assert cli("eval", *asked)[0] == 2, "a logged task cannot be run"


def test_a_task_is_ours_by_another_name(import_logs: ImportLogs, cli: Cli, tmp_path: Path) -> None:
    run = import_logs(LM_EVAL, "--data", "sample", "--as", "sums_en=mgsm")
    # Its exact match of a whole text is not the right number: the answer 'number' would be right where it says 0.
    tasks = {cell.task for cell in run.cells}
    assert "xnli" in tasks
    for cell in run.cells:
        if cell.task == "mgsm":
            for record in run.records(cell):
                assert record.scores["exact_value"] == record.scores["logged:exact_match"]
    for name in ("sum=mgsm", "sums_en=mgsmm"):
        assert cli("import", LM_EVAL, "--data", "sample", "--as", name, "--output", tmp_path / "x")[0] == 2


def test_scoring_again_changes_nothing(import_logs: ImportLogs, cli: Cli) -> None:
    run = import_logs(LM_EVAL, "--data", "sample")
    before = [(cell.metrics, list(run.records(cell))) for cell in run.cells]
    assert cli("score", run.path)[0] == 0
    again = Run(run.path)
    assert [(cell.metrics, list(again.records(cell))) for cell in again.cells] == before
    # It needs log-likelihoods by length, which imported answers do not have.
    assert cli("score", run.path, "--metric", "accuracy_byte")[0] == 2


@pytest.mark.parametrize(
    "command",
    [
        ["report", "RUN"],
        ["report", "RUN", "--format", "html", "--output", "page.html"],
        ["diagnose", "RUN"],
        ["gate", "RUN", "--against", "RUN2"],
        ["compare", "RUN", "RUN2"],
        ["board", "RUN", "--output", "board"],
        ["export", "RUN", "--to", "csv"],
        ["export", "RUN", "--to", "eee", "--output", "record.json"],
    ],
    ids=" ".join,
)
def test_commands_work_on_it(import_logs: ImportLogs, cli: Cli, command: list[str]) -> None:
    folders = {"RUN": import_logs(LM_EVAL).path, "RUN2": import_logs(LM_EVAL).path}
    status, out, err = cli(*(folders.get(word, word) for word in command))
    assert status in ({0, 3} if command[0] == "gate" else {0}), err
    assert "Traceback" not in err + out


def test_a_metric_that_is_no_mean_of_items_is_left_out(tmp_path: Path) -> None:
    path = _copy(tmp_path, "results_*.json")
    results = _results()
    results["results"]["xnli_sw"]["acc_norm,none"] = 0.9
    results["higher_is_better"]["xnli_en"]["acc_norm"] = False
    path.write_text(json.dumps(results), encoding="utf-8")
    cells = [cell for cell in read_logs([tmp_path / "log"]) if cell.task == "xnli"]
    assert {tuple(item.scores) for cell in cells for item in cell.items} == {("acc",)}
    assert all(len(cell.notes) == 1 for cell in cells)


def test_an_answer_that_contradicts_its_score_is_not_ours(import_logs: ImportLogs, tmp_path: Path) -> None:
    path = _copy(tmp_path)
    samples = _samples("xnli_sw")
    samples[0]["acc"], samples[1]["acc"] = 1.0 - samples[0]["acc"], 1.0 - samples[1]["acc"]
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    run = import_logs(tmp_path / "log", "--data", "sample")
    assert {(cell.task, cell.language) for cell in run.cells} >= {("xnli", "en"), ("logged:xnli", "sw")}
    [cell] = [cell for cell in run.cells if cell.task == "logged:xnli"]
    assert [record.scores["logged:acc"] for record in run.records(cell)] == [
        sample["acc"] for sample in samples
    ]


def test_requests_without_context_are_no_choices(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    sample = _samples("xnli_sw")[0]
    [before] = [cell for cell in read_logs([path]) if cell.language == "sw"]
    sample["metrics"].append("acc_mutual_info")
    sample["acc_mutual_info"] = 1.0
    sample["filtered_resps"] += [["-1.0", "False"]] * 3
    sample["arguments"] |= {f"gen_args_{3 + number}": {"arg_0": "", "arg_1": "x"} for number in range(3)}
    path.write_text(json.dumps(sample) + "\n", encoding="utf-8")
    [cell] = read_logs([path])
    [item] = cell.items
    assert (item.answer, item.choices) == (before.items[0].answer, before.items[0].choices)


def test_a_broken_line_names_its_place(tmp_path: Path, cli: Cli) -> None:
    path = _copy(tmp_path)
    status, _, _ = cli("import", LM_EVAL, tmp_path / "log", "--output", tmp_path / "run")
    assert status == 2, "it is the same log twice"
    assert not (tmp_path / "run").exists()
    sample = _samples("xnli_sw")[0]
    del sample["metrics"]
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(sample) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=":7"):
        read_logs([tmp_path / "log"])
    (tmp_path / "alone").mkdir()
    shutil.copy(path, tmp_path / "alone")
    with pytest.raises(UsageError, match="results_"):
        read_logs([tmp_path / "alone"])


def test_two_logged_items_with_the_same_texts_are_two_items() -> None:
    kind = SimpleNamespace(texts=lambda example, _: (example.text,))
    examples = [SimpleNamespace(id=name, text="the same") for name in ("a", "b")]
    ours: Any = SimpleNamespace(kind=kind, entry=SimpleNamespace(spec=None), examples=examples)
    logged = [
        LoggedItem(id=name, answer=None, gold=None, scores={}, fields={"text": "the same"}) for name in "xyz"
    ]
    assert [(item.id, example.id) for item, example in _pairs(logged, ours)] == [("x", "a"), ("y", "b")]
