"""Help and listings are quick because they import little; in processes of their own, as a user starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.diagnosis import write_tagging_run
from benchmarks.gap import write_run

HEAVY = tuple(
    "numpy scipy pyarrow torch transformers datasets pandas sklearn huggingface_hub faiss lang2vec".split()
)
PLUGIN_MODULES = ("harness_hf.loading", "harness_baseline.model", "harness_hub.dataset")
TRAINING = ("harness_hf.training.loop", "transformers.optimization", "transformers.trainer_utils", "peft")
NEVER = (*TRAINING, "bitsandbytes", "sklearn", "pandas")
HEADS = ("harness_hf.heads", "harness_hf.encoder")
GENERATION = ("harness_hf.causal", "harness_hf.seq2seq")
PLANNING = ("torch", "transformers", "datasets", "pandas", "sklearn", "harness_hf.loading", "packaging")
RUNNING = {
    "harness.storage.results",
    "harness.storage.run_folder",
    "rich.live",
    "harness_checklist.suite",
}
"""What only a run or its report needs."""


def _imported(*arguments: str, cwd: Path) -> set[str]:
    script = (
        "import sys\n"
        "from harness.cli.main import run_command\n"
        f"status = run_command({list(arguments)!r})\n"
        "sys.stderr.write('\\n'.join(['', *sys.modules]))\n"
        "sys.exit(status)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=cwd, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
    return set(result.stderr.split("\n"))


@pytest.mark.parametrize(
    "command",
    [
        *(["--help"], ["--version"], ["eval", "--help"], ["submission", "--help"], ["submit", "--help"]),
        *(["tasks", "list"], ["languages"], ["plugins"], ["doctor"]),
    ],
    ids=" ".join,
)
def test_help_and_listings_import_nothing_heavy(command: list[str], tmp_path: Path) -> None:
    imported = _imported(*command, cwd=tmp_path)
    assert sorted(imported & {*HEAVY, *PLUGIN_MODULES}) == []
    if command == ["--help"]:
        assert [name for name in imported if name.startswith(("harness_", "pydantic", "rich", "typer"))] == []
    if command == ["tasks", "list"]:  # it validates nothing
        validating = {"harness.specs.schema", "harness.kinds.kind", "harness.metrics.metric", "pydantic"}
        assert validating & imported == set()


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    for arguments, status in ((["--help"], 0), ([], 2), (["tasks", "list"], 0), (["evl"], 2)):
        result = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert result.returncode == status
        assert ("Error: No command named 'evl'" in result.stderr) == (arguments == ["evl"])


def test_the_public_names_are_imported_when_they_are_asked_for() -> None:
    script = (
        "import sys, harness\n"
        "assert not {'numpy', 'pydantic'} & set(sys.modules)\n"
        "for name in harness.__all__: assert getattr(harness, name) is not None\n"
        "assert set(harness.__all__) <= set(dir(harness))\n"
        f"print(sorted(set(sys.modules) & {set(HEAVY[1:])!r}))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_plan_imports_nothing_of_a_run(tmp_path: Path) -> None:
    imported = _imported(
        "plan", "--tasks", "xnli:en", "--model", "baseline:majority", "--data", "sample", cwd=tmp_path
    )
    assert sorted(imported & RUNNING) == []


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="torch is not installed: pip install '.[hf]'")
    from benchmarks.tiny_decoder import write_decoder

    folder = tmp_path_factory.mktemp("decoder")
    write_decoder(folder, ["a small text about a house and a river"] * 4)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: pip install '.[hf]'"
    )

    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123))]
    words += [f"##{letter}" for letter in words[5:]]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    package: Any = transformers
    package.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    package.BertModel(package.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    return folder


@pytest.mark.thorough
def test_a_prompted_run_imports_no_training_and_no_heads(decoder: Path, tmp_path: Path) -> None:
    modules = _imported(
        *("eval", "--tasks", "xnli:en", "--model", f"hf-causal:{decoder}", "--data", "sample"),
        *("--option", "device=cpu", "--output", str(tmp_path / "run")),
        cwd=tmp_path,
    )
    assert {name for name in modules if name.startswith((*NEVER, *HEADS))} == set()


@pytest.mark.thorough
def test_a_frozen_encoder_imports_no_generation_and_no_training(encoder: Path, tmp_path: Path) -> None:
    modules = _imported(
        *("eval", "--tasks", "tatoeba:de", "--model", f"hf-encoder:{encoder}", "--data", "sample"),
        *("--protocol", "frozen"),
        *("--option", "device=cpu", "--output", str(tmp_path / "run")),
        cwd=tmp_path,
    )
    assert {name for name in modules if name.startswith((*NEVER, *GENERATION))} == set()


@pytest.mark.thorough
def test_a_plan_imports_no_packages_of_a_model(decoder: Path, tmp_path: Path) -> None:
    modules = _imported(
        "plan", "--tasks", "xnli:en", "--model", f"hf-causal:{decoder}", "--data", "sample", cwd=tmp_path
    )
    assert {name for name in modules if name.split(".")[0] in PLANNING or name in PLANNING} == set()


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["gap", "diagnose", "compare"])
def test_an_analysis_imports_no_data_frames_and_no_distributions(command: str, tmp_path: Path) -> None:
    """Each costs half a second and some 40 MB: `pyarrow.array` and `pyarrow.parquet.read_table` import pandas."""
    runs = [tmp_path / name for name in (("a",) if command == "gap" else ("a", "b"))]
    for seed, run in enumerate(runs):
        if command == "gap":
            write_run(run, 60)
        else:
            write_tagging_run(run, items=60, right=0.8, seed=seed)
    modules = _imported(command, *map(str, runs), cwd=tmp_path)
    assert {"numpy", "pyarrow.parquet"} <= modules
    assert modules & {"pandas", "scipy.stats", "pyarrow.dataset"} == set()
