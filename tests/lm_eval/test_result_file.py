"""``harness report --format lm_eval`` on runs of ours: lm-eval's layout, and nothing that no record holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.storage.run_folder import Run
from harness_lm_eval.result_file import render, write

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run: two tasks, two languages, no prompts."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    tasks = ["xnli:en+sw", "xquad:de", "tatoeba:de"]
    return evaluate(tasks, "baseline:char-ngram", data="sample", output=folder)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_files_are_named_as_lm_eval_names_them(run: Run, tmp_path: Path) -> None:
    files = write([run], tmp_path)
    date = files[-1].name.removeprefix("results_").removesuffix(".json")
    assert {path.parent.name for path in files} == {"char-ngram"}
    names = [path.name.removesuffix(f"_{date}.jsonl") for path in files[:-1]]
    assert names[:3] == ["samples_xnli_en", "samples_xnli_sw", "samples_xquad_de"]
    # Two protocols serve Tatoeba, so its cells have what they differ in, in their names.
    assert names[3:] == ["samples_tatoeba_de_zero_shot_transfer", "samples_tatoeba_de_frozen"]
    assert "_" not in date
    before = [path.read_bytes() for path in files]
    assert [path.read_bytes() for path in write([run], tmp_path)] == before


def test_results_have_lm_evals_keys_and_our_numbers(run: Run) -> None:
    found = json.loads(render([run]))
    cell = run.cells[1]
    own = cell.metrics["accuracy"]
    assert found["results"]["xnli_sw"] == {
        "name": "xnli_sw",
        "alias": "xnli_sw",
        "sample_len": cell.n,
        "acc,none": own.value,
        "acc_stderr,none": own.se,
    }
    assert found["group_subtasks"] == {"xnli": ["xnli_en", "xnli_sw"]}
    [row] = [row for row in run.results.tasks if row.task == "xnli"]
    assert found["groups"]["xnli"]["acc,none"] == row.value
    assert found["results"]["xnli"] == found["groups"]["xnli"]
    assert found["n-samples"]["xnli_sw"] == {"original": 24, "effective": 24}
    assert found["higher_is_better"]["xquad_de"] == {"f1": True, "exact_match": True}
    assert found["n-shot"] == {}  # nothing was prompted
    assert "output_type" not in found["configs"]["xnli_sw"]
    assert found["configs"]["xnli_sw"]["metadata"]["harness"]["language"] == "sw"
    assert found["git_hash"] is None
    assert found["harness_data"] == "sample"
    assert "lm_eval_version" not in found


def test_samples_have_what_the_records_hold_and_null_for_the_rest(run: Run, tmp_path: Path) -> None:
    [path] = [path for path in write([run], tmp_path) if "xnli_sw" in path.name]
    records = list(run.records(run.cells[1]))
    lines = _lines(path)
    assert [line["doc_id"] for line in lines] == [record.id for record in records]
    for line, record in zip(lines, records, strict=True):
        assert line["target"] == record.reference
        assert line["resps"] == [[record.prediction["label"]]]
        assert line["filtered_resps"] == [record.prediction["label"]]
        assert line["acc"] == record.scores["accuracy"]
        assert line["metrics"] == ["acc"]
        assert (line["arguments"], line["prompt_hash"]) == (None, None)
        assert record.reference not in json.dumps(line["doc"])
        assert line["target_hash"] == hashlib.sha256(record.reference.encode()).hexdigest()


def test_the_command_writes_a_folder_or_prints_the_results(run: Run, cli: Cli, tmp_path: Path) -> None:
    status, shown, _ = cli("report", run.path, "--format", "lm_eval")
    assert status == 0
    assert json.loads(shown) == json.loads(render([run]))
    status, shown, _ = cli("report", run.path, "--format", "lm_eval", "--output", tmp_path / "theirs")
    assert status == 0
    assert shown.count("wrote ") == 6
    status, shown, error = cli("report", run.path, run.path, "--format", "lm_eval")
    assert (status, shown) == (2, "")
    assert "--output FOLDER" in error
    (tmp_path / "taken").write_text("", encoding="utf-8")
    status, _, error = cli("report", run.path, "--format", "lm_eval", "--output", tmp_path / "taken")
    assert status == 2
    assert "cannot be written" in error
