"""``lm_eval:NAME`` compared with lm-eval's own `HFLM`, on the same weights: same prompts, answers, scores and files.

The tasks and the model are made here. Needs an environment that has lm-eval and our packages: ``make
.venv-peers/bin/lm-eval``, or the one that `HARNESS_TEST_PEERS` names.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

from benchmarks.tiny_decoder import write_decoder
from harness.storage.run_folder import Run
from harness_lm_eval.task_kind import result_key

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or ROOT / ".venv-peers")
CLOSE = 1e-3

SHARED = """\
dataset_path: json
dataset_kwargs: {data_files: {train: DATA/train.jsonl, test: DATA/test.jsonl}}
training_split: train
test_split: test
fewshot_split: train
metadata: {version: 2.0}
"""
TASKS = {
    "_shared": SHARED,
    "nli_sw.yaml": """\
include: _shared
task: nli_sw
output_type: multiple_choice
doc_to_text: ""
doc_to_target: label
doc_to_choice: "{{[premise+', sahihi? Ndiyo, '+hypothesis, premise+', sahihi? Hapana, '+hypothesis+'!']}}"
target_delimiter: ""
metric_list: [{metric: acc}, {metric: acc_norm}, {metric: acc_mutual_info}, {metric: brier_score}, {metric: f1}]
""",
    "last_word.yaml": """\
include: _shared
task: last_word
output_type: loglikelihood
doc_to_text: "{{premise.split(' ')[:-1]|join(' ')}}"
doc_to_target: " {{premise.split(' ')[-1]}}"
""",
    "written.yaml": """\
include: _shared
task: written
output_type: generate_until
description: "Go on.\\n\\n"
doc_to_text: "{{premise}}"
doc_to_target: "{{hypothesis}}"
generation_kwargs: {until: ["a", "\\n"], max_gen_toks: 6, do_sample: false}
filter_list:
  - {name: raw, filter: [{function: take_first}]}
  - {name: word, filter: [{function: regex, regex_pattern: "(\\\\w)"}, {function: take_first}]}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: true}
  - {metric: chrf, aggregation: chrf, higher_is_better: true}
""",
    "escape.yaml": """\
include: _shared
task: escape
output_type: loglikelihood
doc_to_text: "{{premise.__class__.__mro__}}"
doc_to_target: hypothesis
""",
    "all.yaml": "group: everything\ntask: [nli_sw, last_word, written]\n",
}
NAMES = ["nli_sw", "last_word", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Files made for both sides, and how its Python is run."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, *arguments: str | Path) -> str:
        """Run lm-eval's Python and return what it printed; fails with the end of what it said."""
        command = [str(PEERS / "bin" / "python"), *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", env=self.environment, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    """Twelve documents, four to draw shots from, three tasks and a model with random weights."""
    if not list(PEERS.glob("lib/python3*/site-packages/lm_eval")):
        pytest.skip("no lm-eval: make .venv-peers/bin/lm-eval, or set HARNESS_TEST_PEERS")
    folder = tmp_path_factory.mktemp("peer")
    words = "mvua inanyesha barabara kavu soko samaki nyumba mtoto mwalimu kitabu".split()
    documents = [
        {
            "premise": " ".join(words[(index * 3 + place) % 10] for place in range(4 + index % 3)),
            "hypothesis": " ".join(words[(index * 7 + place) % 10] for place in range(2)),
            "label": index % 2,
        }
        for index in range(16)
    ]
    for name, own in {"test": documents[:12], "train": documents[12:]}.items():
        lines = "".join(json.dumps(document) + "\n" for document in own)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "tasks").mkdir()
    for name, text in TASKS.items():
        (folder / "tasks" / name).write_text(text.replace("DATA", str(folder)), encoding="utf-8")
    write_decoder(folder / "model", [str(document["premise"]) for document in documents] * 5)
    source = [str(ROOT / name) for name in ("", "plugins", "model_adapters", "task_specs")]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(source),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "hf"),
        "HARNESS_CACHE": str(folder / "cache"),
        "HARNESS_LM_EVAL_INCLUDE": str(folder / "tasks"),
    }
    return Peer(folder=folder, environment=environment)


SHOTS = [pytest.param(2, id="2-shot"), pytest.param(0, id="0-shot", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=SHOTS)
def both(peer: Peer, request: pytest.FixtureRequest) -> tuple[Run, dict[str, Any], Peer, int]:
    """Our run and lm-eval's answer on all three tasks."""
    shots: int = request.param
    answer, output = peer.folder / f"theirs{shots}.json", peer.folder / f"run{shots}"
    model = peer.folder / "model"
    peer.run(HERE / "peer_run.py", "evaluate", model, peer.folder / "tasks", str(shots), answer, *NAMES)
    given = ("--shots", str(shots)) if shots else ()
    ours = ("eval", "--tasks", "lm_eval:everything", "--model", f"hf-causal:{model}", *given)
    peer.run("-m", "harness", *ours, "-o", "dtype=float32", "--output", output)
    return Run(output), json.loads(answer.read_text(encoding="utf-8")), peer, shots


def _by_number(samples: list[dict[str, Any]], key: str = "") -> dict[int, dict[str, Any]]:
    return {sample["doc_id"]: sample for sample in samples if key in ("", sample["filter"])}


def test_prompts_and_answers_are_those_of_lm_eval(both: tuple[Run, dict[str, Any], Peer, int]) -> None:
    run, theirs, _, shots = both
    assert [cell.task for cell in run.cells] == [f"lm_eval:{name}" for name in NAMES]
    assert all(cell.view == ({"shots": "2"} if shots else {}) for cell in run.cells)
    for cell, name in zip(run.cells, NAMES, strict=True):
        samples = _by_number(theirs["samples"][name])
        records = list(run.records(cell))
        assert len(records) == len(samples) == 12
        for record in records:
            sample = samples[int(record.id)]
            assert record.fields["requests"] == sample["arguments"]
            assert record.reference["doc"] == sample["doc"]
            for mine, answer in zip(record.prediction["resps"], sample["resps"], strict=True):
                if name == "written":
                    assert mine == answer
                else:
                    assert mine[0][0] == pytest.approx(answer[0][0], abs=CLOSE)
                    assert mine[0][1] == answer[0][1]


def test_scores_and_standard_errors_are_those_of_lm_eval(
    both: tuple[Run, dict[str, Any], Peer, int],
) -> None:
    run, theirs, _, _ = both
    compared = 0
    for cell, name in zip(run.cells, NAMES, strict=True):
        expected = theirs["results"][name]
        for metric, score in cell.metrics.items():
            key = result_key(metric)
            scale = 100 if key.startswith("chrf") else 1
            assert score.value * scale == pytest.approx(expected[key], abs=1e-9), key
            error = expected[key.replace(",", "_stderr,")]
            if score.se is not None:
                assert score.se == pytest.approx(error, abs=1e-9), key
            compared += 1
        for key, value in cell.details.get("lm_eval", {}).items():
            assert value == pytest.approx(expected[key], rel=CLOSE), key
            compared += 1
    assert (
        compared == 11
    )  # acc, acc_norm, acc_mutual_info, f1, brier_score; acc, perplexity; two by two filters
    assert 0 < run.cells[0].metrics["lm_eval:acc"].value < 1


def test_result_files_are_read_by_lm_evals_tools(both: tuple[Run, dict[str, Any], Peer, int]) -> None:
    run, theirs, peer, shots = both
    folder, answer = peer.folder / f"files{shots}", peer.folder / f"read{shots}.json"
    peer.run("-m", "harness", "report", run.path, "--format", "lm_eval", "--output", folder)
    peer.run(HERE / "peer_run.py", "read", folder, answer)
    found = json.loads(answer.read_text(encoding="utf-8"))
    assert set(found["samples"]) == set(NAMES)
    assert len(set(found["dates"])) == 1
    rows = [[field.strip() for field in line.split("|")] for line in found["table"].splitlines()]
    [row] = [row for row in rows if "nli_sw" in row and "acc" in row]
    assert f"{theirs['results']['nli_sw']['acc,none']:.4f}" in row
    assert str(shots) in row
    for name in NAMES:
        for kept in found["samples"][name]:
            sample = _by_number(theirs["samples"][name], kept["filter"])[kept["doc_id"]]
            for key in ("doc", "doc_hash", "prompt_hash", "target_hash", "metrics"):
                assert kept[key] == sample[key], key
            assert kept["target"] == str(sample["target"])


@pytest.mark.parametrize("both", [2], ids=["2-shot"], indirect=True)
def test_answered_requests_are_not_sent_again(both: tuple[Run, dict[str, Any], Peer, int]) -> None:
    """The journal is ours: a second run that reuses the first asks nothing."""
    run, _, peer, shots = both
    given = ("--shots", str(shots)) if shots else ()
    output = peer.folder / f"again{shots}"
    ours = ("eval", "--tasks", "lm_eval:everything", "--model", f"hf-causal:{peer.folder / 'model'}", *given)
    peer.run("-m", "harness", *ours, "-o", "dtype=float32", "--reuse", run.path, "--output", output)
    again = Run(output)
    requests = again.results.run.requests
    assert requests["asked"] == 0
    assert requests["reused"] == requests["planned"] > 0
    assert [cell.metrics for cell in again.cells] == [cell.metrics for cell in run.cells]


@pytest.mark.slow
def test_an_encoder_decoder_ranks_as_in_lm_eval(peer: Peer) -> None:
    folder, answer, output = peer.folder / "t5", peer.folder / "t5.json", peer.folder / "run_t5"
    tokenizer = AutoTokenizer.from_pretrained(peer.folder / "model")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    pad = tokenizer.pad_token_id
    sizes |= {"vocab_size": len(tokenizer), "decoder_start_token_id": pad, "pad_token_id": pad}
    config = T5Config(**sizes)
    T5ForConditionalGeneration(config).save_pretrained(folder)
    names = ["nli_sw", "last_word"]
    peer.run(HERE / "peer_run.py", "evaluate", folder, peer.folder / "tasks", "1", answer, *names)
    tasks = ",".join(f"lm_eval:{name}" for name in names)
    given = ("--tasks", tasks, "--model", f"hf:{folder}", "--shots", "1", "-o", "dtype=float32")
    peer.run("-m", "harness", "eval", *given, "--output", output)
    theirs = json.loads(answer.read_text(encoding="utf-8"))
    for cell, name in zip(Run(output).cells, names, strict=True):
        samples = _by_number(theirs["samples"][name])
        for record in Run(output).records(cell):
            for mine, own in zip(record.prediction["resps"], samples[int(record.id)]["resps"], strict=True):
                assert mine[0] == [pytest.approx(own[0][0], abs=CLOSE), own[0][1]]
        for metric, score in cell.metrics.items():
            assert score.value == pytest.approx(theirs["results"][name][result_key(metric)], abs=1e-9)


def test_templates_of_a_folder_cannot_reach_into_python(peer: Peer) -> None:
    """The task is skipped with the reason; lm-eval itself would render it."""
    shown = peer.run(
        *("-m", "harness", "plan", "--tasks", "lm_eval:escape,lm_eval:last_word"),
        *("--model", f"hf-causal:{peer.folder / 'model'}"),
    )
    reported = " ".join(shown.split())
    assert "1 cell," in reported
    assert "SecurityError: access to attribute '__class__'" in reported
