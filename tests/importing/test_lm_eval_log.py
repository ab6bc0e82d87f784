"""lm-eval's own log becomes a run whose items and scores are those of the log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.comparison import compare
from harness.errors import DataError, UnknownNameError, UsageError
from harness.registry.registry import Registry
from harness.storage.files import file_digest
from harness.storage.run_folder import Run
from harness_import.item_match import ItemMatcher
from harness_import.log_files import read_logs
from harness_import.logged_metric import KIND
from tests.importing.conftest import LOGS, Cli, ImportLogs

LM_EVAL = LOGS / "lm_eval"
LABELS = ("entailment", "neutral", "contradiction")
"""By the position that lm-eval's xnli gives them."""


def _samples(name: str) -> list[dict[str, Any]]:
    [path] = LM_EVAL.glob(f"samples_{name}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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


def test_without_data_it_is_a_task_of_its_own(import_logs: ImportLogs) -> None:
    run = import_logs(LM_EVAL)
    assert {cell.task for cell in run.cells} == {"logged:xnli", "logged:sums"}
    assert run.results.run.data == "logged"
    task = run.manifest.tasks["logged:xnli"]
    assert (task.kind, task.headline) == (KIND, ["logged:acc"])
    assert task.languages["sw"] == ("Niger-Congo", "Latn")
    for cell in run.cells:
        for record in run.records(cell):
            assert "label" not in record.fields
            if cell.task == "logged:xnli":
                assert record.correct == (record.scores["logged:acc"] == 1.0)


def test_filters_are_views(import_logs: ImportLogs) -> None:
    run = import_logs(LM_EVAL)
    answers = {
        cell.view["filter"]: [record.answer for record in run.records(cell)]
        for cell in run.cells
        if cell.task == "logged:sums"
    }
    by_filter: dict[str, list[str]] = {}
    for sample in _samples("sums_en"):
        by_filter.setdefault(sample["filter"], []).append(sample["filtered_resps"][0].strip())
    assert answers == by_filter
    assert set(answers) == {"strict", "number"}


def test_a_task_is_ours_by_another_name(import_logs: ImportLogs, cli: Cli, tmp_path: Path) -> None:
    run = import_logs(LM_EVAL, "--data", "sample", "--as", "sums_en=mgsm")
    # Its exact match of a whole text is not the right number: the answer 'number' would be right where it says 0.
    tasks = {cell.task for cell in run.cells}
    assert "xnli" in tasks
    for cell in run.cells:
        if cell.task == "mgsm":
            for record in run.records(cell):
                assert record.scores["exact_value"] == record.scores["logged:exact_match"]
    assert cli("import", LM_EVAL, "--as", "sum=mgsm", "--output", tmp_path / "x")[0] == 2


def test_the_run_says_where_its_scores_come_from(import_logs: ImportLogs) -> None:
    run = import_logs(LM_EVAL)
    origin = run.manifest.to_json()["imported"]
    assert (origin["harness"], origin["version"]) == ("lm_eval", "0.4.13")
    assert {file["name"]: file["sha256"] for file in origin["files"]} == {
        path.name: file_digest(path) for path in LM_EVAL.iterdir()
    }
    assert set(run.manifest.identity.values()) == {file["sha256"] for file in origin["files"]}
    assert run.manifest.model_name == "models/smollm2"
    assert run.results.model.parameters == 134515008


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


def test_samples_without_results_are_an_error(tmp_path: Path) -> None:
    [path] = LM_EVAL.glob("samples_xnli_sw_*.jsonl")
    shutil.copy(path, tmp_path)
    with pytest.raises(UsageError, match="results_"):
        read_logs([tmp_path])


def test_a_metric_that_is_no_mean_of_items_is_left_out(tmp_path: Path) -> None:
    shutil.copytree(LM_EVAL, tmp_path / "log")
    [path] = (tmp_path / "log").glob("results_*.json")
    results = _results()
    results["results"]["xnli_sw"]["acc_norm,none"] = 0.9
    results["higher_is_better"]["xnli_en"]["acc_norm"] = False
    path.write_text(json.dumps(results), encoding="utf-8")
    cells = [cell for cell in read_logs([tmp_path / "log"]) if cell.task == "xnli"]
    assert {tuple(item.scores) for cell in cells for item in cell.items} == {("acc",)}
    assert all(len(cell.notes) == 1 for cell in cells)


def test_an_answer_that_contradicts_its_score_is_not_ours(import_logs: ImportLogs, tmp_path: Path) -> None:
    shutil.copytree(LM_EVAL, tmp_path / "log")
    [path] = (tmp_path / "log").glob("samples_xnli_sw_*.jsonl")
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
    shutil.copytree(LM_EVAL, tmp_path / "log")
    [path] = (tmp_path / "log").glob("samples_xnli_sw_*.jsonl")
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


def test_a_broken_line_names_its_place(tmp_path: Path) -> None:
    shutil.copytree(LM_EVAL, tmp_path / "log")
    [path] = (tmp_path / "log").glob("samples_xnli_sw_*.jsonl")
    sample = _samples("xnli_sw")[0]
    del sample["metrics"]
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(sample) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=":7"):
        read_logs([tmp_path / "log"])


def test_the_same_log_twice_is_an_error(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(LM_EVAL, tmp_path / "copy")
    status, _, _ = cli("import", LM_EVAL, tmp_path / "copy", "--output", tmp_path / "run")
    assert status == 2
    assert not (tmp_path / "run").exists()


def test_a_name_of_no_task_of_ours_is_an_error(registry: Registry) -> None:
    from harness.running.session import open_session

    with pytest.raises(UnknownNameError):
        ItemMatcher(open_session().catalog, registry, None, {"xnli_sw": "xnlii"})


def test_a_logged_task_cannot_be_run(cli: Cli) -> None:
    status, _, _ = cli("eval", "--tasks", "logged:xnli", "--model", "baseline:majority", "--data", "sample")
    assert status == 2
