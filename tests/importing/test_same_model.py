"""The same model and items through our own run and through lm-eval with import: same items, same scores.

Needs an environment with lm-eval: ``make .venv-peers/bin/lm-eval``, or the one that `HARNESS_TEST_PEERS` names.
"""

from __future__ import annotations

import json
import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from benchmarks.tiny_decoder import write_decoder
from harness.analysis.comparison import compare
from harness.registry.registry import Registry
from harness.storage.run_folder import Run
from tests.importing.conftest import Cli, ImportLogs

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or ROOT / ".venv-peers")
LABELS = ["entailment", "neutral", "contradiction"]
WORDS = {
    "en": (", right? ", "Yes, ", "Also, ", "No, "),
    "sw": (", sahihi? ", "Ndiyo, ", "Hivyo, ", "Hapana, "),
}
"""Those of lm-eval's own xnli_en and xnli_sw."""
TASK = """\
task: xnli_{code}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {code}.jsonl}}}}
output_type: multiple_choice
test_split: test
doc_to_text: ''
doc_to_target: label
doc_to_choice: '{{{{[{choices}]}}}}'
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
metadata: {{version: 1.0}}
"""


def _write_task(folder: Path, code: str) -> list[str]:
    """Write lm-eval's task on the shipped sample of a language; return its texts."""
    sample = resources.files("harness_task_specs") / "sample" / "xnli" / f"{code}.jsonl"
    items = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    documents = [
        {key: item[key] for key in ("premise", "hypothesis")} | {"label": LABELS.index(item["label"])}
        for item in items
    ]
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    (folder / f"{code}.jsonl").write_text(lines, encoding="utf-8")
    question, *answers = WORDS[code]
    choices = ", ".join(f'premise+"{question}{answer}"+hypothesis' for answer in answers)
    (folder / f"xnli_{code}.yaml").write_text(TASK.format(code=code, choices=choices), encoding="utf-8")
    return [str(item["premise"]) for item in items]


def test_a_run_and_an_imported_log_agree_item_by_item(
    import_logs: ImportLogs, cli: Cli, registry: Registry, tmp_path: Path
) -> None:
    if not list(PEERS.glob("lib/python3*/site-packages/lm_eval")):
        pytest.skip("no lm-eval: make .venv-peers/bin/lm-eval, or set HARNESS_TEST_PEERS")
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_decoder(tmp_path / "model", [text for code in WORDS for text in _write_task(folder, code)] * 5)
    program = [str(PEERS / "bin" / "python"), "-m", "lm_eval", "run", "--model", "hf"]
    settings = ["--model_args", f"pretrained={tmp_path / 'model'},dtype=float32", "--device", "cpu"]
    chosen = ["--tasks", "xnli_en,xnli_sw", "--include_path", str(folder), "--batch_size", "4"]
    environment = {
        "PATH": os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "hf"),
    }
    done = subprocess.run(
        [*program, *settings, *chosen, "--log_samples", "--output_path", str(tmp_path / "log")],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    asked = ("--tasks", "xnli:en+sw", "--prompt", "lm_eval", "--data", "sample", "-o", "dtype=float32")
    model = f"hf-causal:{tmp_path / 'model'}"
    assert cli("eval", *asked, "--model", model, "--output", tmp_path / "ours")[0] == 0
    ours, imported = Run(tmp_path / "ours"), import_logs(tmp_path / "log", "--data", "sample")
    [compared] = compare([ours, imported], registry.metrics).tasks
    assert compared.items == 48
    assert all(language.missing == (0, 0) for language in compared.languages)
    own_cells = {cell.language: cell for cell in ours.cells}
    for cell in imported.cells:
        theirs = {record.id: record for record in imported.records(cell)}
        for record in ours.records(own_cells[cell.language]):
            assert theirs[record.id].inputs_digest == record.inputs_digest
            assert theirs[record.id].answer == record.answer
            assert theirs[record.id].scores["logged:acc"] == record.scores["accuracy"]
            assert theirs[record.id].scores["accuracy"] == record.scores["accuracy"]
