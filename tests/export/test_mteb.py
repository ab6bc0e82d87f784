"""MTEB's result files: our numbers, and read by mteb itself where ``make setup-peers`` installed it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.cli import write_files
from harness.errors import UsageError
from harness.storage.run_folder import Run
from harness_export.catalog import TARGETS
from harness_export.formats import mteb_files
from tests.builders import make_shown_cell, write_run

from .conftest import SUMMARY

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or ROOT / ".venv-peers")
READ = """
import json, sys
from pathlib import Path
from mteb.results import TaskResult

found = {path.name: TaskResult.from_disk(path) for path in Path(sys.argv[1]).glob("*.json")}
print(json.dumps({name: [own.task_name, own.get_score(), sorted(own.hf_subsets)] for name, own in found.items()}))
"""


def test_retrieval_tasks_have_a_file_for_each_protocol(sample_run: Run) -> None:
    found = mteb_files([sample_run])
    assert sorted(found) == ["tatoeba_frozen.json", "tatoeba_zero_shot_transfer.json"]
    cells = {
        (cell.protocol, cell.language): cell
        for cell in sample_run.cells
        if cell.task == "tatoeba" and cell.is_scored
    }
    for name, text in found.items():
        document = json.loads(text)
        protocol = name.removeprefix("tatoeba_").removesuffix(".json")
        subsets = document["scores"]["test"]
        assert {own["hf_subset"] for own in subsets} == {code for kind, code in cells if kind == protocol}
        assert document["task_name"] == "harness/tatoeba"
        assert document["dataset_revision"].startswith("sha256:")
        for own in subsets:
            cell = cells[protocol, own["hf_subset"]]
            value = cell.metrics["top1_accuracy"]
            assert own["main_score"] == own["top1_accuracy"] == value.value
            assert own["num_samples"] == cell.n
            assert value.ci == (own["top1_accuracy_ci_low"], own["top1_accuracy_ci_high"])
            assert own["details"]["protocol"] == protocol
            assert own["details"]["sample_data"] == "true"


def test_languages_are_written_as_mteb_does(sample_run: Run) -> None:
    text = mteb_files([sample_run])["tatoeba_frozen.json"]
    languages = {own["hf_subset"]: own["languages"] for own in json.loads(text)["scores"]["test"]}
    assert languages["de"] == ["eng-Latn", "deu-Latn"]
    assert languages["hi"] == ["eng-Latn", "hin-Deva"]


def test_a_run_without_retrieval_has_nothing_for_mteb(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_shown_cell("xnli", "de", {"accuracy": 0.5})], {"xnli": SUMMARY})
    [target] = [target for target in TARGETS if target.name == "mteb"]
    with pytest.raises(UsageError):
        target.text([run])


@pytest.mark.thorough
def test_mteb_reads_the_files(sample_run: Run, tmp_path: Path) -> None:
    if not list(PEERS.glob("lib/python3*/site-packages/mteb")):
        pytest.skip("no mteb: make setup-peers, or set HARNESS_TEST_PEERS")
    write_files(mteb_files([sample_run]).items(), tmp_path)
    command = [str(PEERS / "bin" / "python"), "-c", READ, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    [row] = [own for own in sample_run.results.tasks if (own.task, own.protocol) == ("tatoeba", "frozen")]
    name, score, subsets = found["tatoeba_frozen.json"]
    assert (name, subsets) == ("harness/tatoeba", sorted(row.by_language))
    assert score == pytest.approx(row.value, abs=1e-5)
