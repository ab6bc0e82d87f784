"""A model's identity: whatever file the library may read, of a model or of an adapter's base, changes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.storage.files import configuration_files
from harness_hf.fit_record import folder_identity
from harness_hf.model_folder import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from harness_vllm.description import folder_fingerprint

READ = (
    "modeling_own.py",
    "layers/attention.py",
    "chat_template.jinja",
    "additional_chat_templates/tools.jinja",
    "generation_config.json",
    "preprocessor_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "bpe.codes",
    "qwen.tiktoken",
    "modules.json",
    "1_Pooling/config.json",
)
UNREAD = (
    "README.md",
    "LICENSE.txt",
    "USE_POLICY",
    "curve.png",
    "pytorch_model.bin",
    "onnx/config.json",
    "checkpoint-500/config.json",
    ".cache/huggingface/download.json",
    "__pycache__/modeling_own.cpython-311.pyc",
)


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = '[{"path": "1_Pooling", "type": "Pooling"}]' if name == "modules.json" else "{}"
        (folder / name).write_text(content)


def require_every_file_counts(model: Path, folder: Path) -> None:
    """Change every file of `folder`, which `model` reads, and remove it."""
    before = folder_identity(model)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    for file in files:
        content, name = file.read_bytes(), file.relative_to(folder).as_posix()
        # White space changes no JSON, but the entries of an adapter's configuration are compared, not its bytes.
        changed = json.dumps({**json.loads(content), "r": 99}).encode() if name == ADAPTER_CONFIG else b" "
        file.write_bytes(changed if name == ADAPTER_CONFIG else content + changed)
        counts = name not in UNREAD
        assert (folder_identity(model) != before) == counts, name
        file.write_bytes(content)
    assert folder_identity(model) == before


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "roberta", "llama", "gpt2"])
def test_every_file_of_every_fixture_counts(
    family: str, folders: dict[str, Path], decoder_folders: dict[str, Path], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree({**folders, **decoder_folders}[family], model)
    write(model, *READ, *UNREAD)
    require_every_file_counts(model, model)


def test_every_file_of_an_adapter_and_of_its_base_counts(folders: dict[str, Path], tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    shutil.copytree(folders["bert"], base)
    write(base, *READ, *UNREAD)
    write(adapter, *READ, *UNREAD)
    (adapter / ADAPTER_CONFIG).write_text(json.dumps({"base_model_name_or_path": str(base), "r": 2}))
    (adapter / ADAPTER_WEIGHTS).write_bytes(b"matrices")
    require_every_file_counts(adapter, base)
    require_every_file_counts(adapter, adapter)
    before = folder_identity(adapter)
    moved = base.rename(tmp_path / "moved")
    (adapter / ADAPTER_CONFIG).write_text(json.dumps({"base_model_name_or_path": str(moved), "r": 2}))
    assert folder_identity(adapter) == before
    (moved / "bpe.codes").rename(adapter / "bpe.extra")
    assert folder_identity(adapter) != before


@pytest.mark.parametrize("name", READ)
def test_a_server_reads_the_same_files(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["bert"], tmp_path / "model")
    before = folder_fingerprint(tmp_path / "model")
    write(tmp_path / "model", *UNREAD[:4], name)
    assert folder_fingerprint(tmp_path / "model") != before
    (tmp_path / "model" / name).unlink()
    assert folder_fingerprint(tmp_path / "model") == before


@given(
    stem=st.from_regex(r"[a-z_]{1,12}", fullmatch=True),
    suffix=st.sampled_from(["json", "py", "txt", "v", "d"]),
)
def test_an_unknown_name_counts(stem: str, suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("model")
    write(folder, f"{stem}.{suffix}")
    assert configuration_files(folder) == [f"{stem}.{suffix}"]
