"""Where a model's files are, a local folder or a snapshot of a hub repository, and their identity."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from harness import AdapterError, UsageError
from harness.models import AdapterOptions, ModelDescription
from harness_hf.hub_snapshot import HUB_ID, from_hub, near_models
from harness_hf.options import ModelOptions
from harness_hf.pickled_weights import PickledModel
from harness_hf.quantization import read_quantization, unpacked_size

WEIGHTS = "model.safetensors"
SAFE_SUFFIX = ".safetensors"
INDEX_SUFFIX = ".safetensors.index.json"
ADAPTER_CONFIG = "adapter_config.json"
"""Names the base that low-rank matrices belong to, which transformers would open with any type of weights."""
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTED_HEADS = {"SEQ_CLS": "ForSequenceClassification", "TOKEN_CLS": "ForTokenClassification"}
"""How the class of the base with its head ends, by the task type of peft."""
HEAD_WEIGHT = re.compile(r"base_model\.model\.(classifier|score)\.(\w+\.)?weight")

TOKENIZER_CONFIG = "tokenizer_config.json"
VOCABULARY_NAMES = (
    "tokenizer.json",
    "vocab",
    "merges",
    "tekken",
    "spiece",
    "sentencepiece",
    "tokenizer.model",
    "byte_maps",
)
VOCABULARY_SUFFIXES = (".model", ".spm", ".vocab", ".tiktoken", ".bpe", ".codes", ".tokenizer")
WITHOUT_VOCABULARY = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
"""Classes of tokenizers that read bytes or characters, and need no file."""
BYTE_TYPES = ("canine", "perceiver")
"""Types of models that have one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A model's ``config.json`` and where it came from."""

    ref: str
    config: Mapping[str, Any]
    folder: Path | None
    """The local folder; None for a hub repository and for pickled weights, of which nothing else has been read."""
    revision: str | None
    """Commit of the hub repository."""
    weights_fault: str = ""
    """Why the weights cannot be read; empty where they can be, or only opening them shows it."""


def read_config(ref: str, options: ModelOptions) -> ModelConfig:
    """Return the configuration of a local folder or hub id; raises `UsageError` or `AdapterError`."""
    path = Path(ref).expanduser()
    if path.is_dir():
        pickled = PickledModel.find(ref, options, None)
        folder = path if pickled is None else pickled.folder if pickled.is_converted() else None
        fault = "" if pickled is None else pickled.fault(options)
        if (path / "config.json").is_file():
            config = read_json(path / "config.json")
        elif (path / ADAPTER_CONFIG).is_file():
            config = {
                **read_json(adapter_base(path, options) / "config.json"),
                **adapted_head(folder or path),
            }
        else:
            raise UsageError(
                f"The folder {ref!r} has no config.json, so it is not a model that transformers can open.",
                hint=near_models(path) or "Give the folder that save_pretrained wrote.",
            )
        return ModelConfig(ref=ref, config=config, folder=folder, revision=None, weights_fault=fault)
    if path.exists():
        raise UsageError(f"The model {ref!r} is a file; expected the folder that holds its config.json.")
    if not HUB_ID.fullmatch(ref):
        raise UsageError(f"There is no folder {ref!r}.", hint=near_models(path.parent, path.name))
    downloaded = Path(from_hub(ref, options, "config.json"))
    revision = downloaded.parent.name
    pickled = PickledModel.find(ref, options, revision)
    fault = "" if pickled is None else pickled.fault(options)
    return ModelConfig(
        ref=ref, config=read_json(downloaded), folder=None, revision=revision, weights_fault=fault
    )


def is_vocabulary(name: str, vocabulary_files: Collection[str] = ()) -> bool:
    """Return whether a file can be that of a vocabulary; the class of a tokenizer does not name all that it reads."""
    return name in vocabulary_files or name.startswith(VOCABULARY_NAMES) or name.endswith(VOCABULARY_SUFFIXES)


def no_tokenizer(ref: str, file: str) -> str:
    """Return the sentences about a model folder without the files of its tokenizer, such as `file`."""
    return (
        f"The model {ref!r} has no tokenizer files, such as {file!r}. "
        f"Save the tokenizer that it was trained with into the folder: tokenizer.save_pretrained({ref!r})."
    )


def folder_fault(model: ModelConfig) -> str:
    """Return why weights or tokenizer of a model cannot be opened; empty where they can, or only opening shows it."""
    folder = model.folder
    if (
        model.weights_fault
        or folder is None
        or (folder / ADAPTER_CONFIG).is_file()
        or any(is_vocabulary(file.name) for file in folder.iterdir())
    ):
        return model.weights_fault
    config = folder / TOKENIZER_CONFIG
    settings = {**model.config, **(read_json(config) if config.is_file() else {})}
    reads_bytes = (
        str(settings.get("tokenizer_class")) in WITHOUT_VOCABULARY or settings.get("model_type") in BYTE_TYPES
    )
    return "" if reads_bytes or "auto_map" in settings else no_tokenizer(model.ref, VOCABULARY_NAMES[0])


def token_counter(
    description: ModelDescription, options: AdapterOptions
) -> Callable[[Sequence[str]], list[int]] | None:
    """Return the token counter of the folder's tokenizer.json; None where it is not here."""
    file = Path(description.ref).expanduser() / "tokenizer.json"
    if not file.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda texts: [len(encoded.ids) for encoded in tokenizer.encode_batch(list(texts))]


def resolve_folder(ref: str, options: ModelOptions, revision: str | None) -> Path:
    """Return the local folder of a model: downloaded where it is a hub id, a converted copy for pickled weights."""
    path = Path(ref).expanduser()
    pickled = PickledModel.find(ref, options, revision)
    if pickled is not None:
        return pickled.converted(options)
    return path if path.is_dir() else Path(from_hub(ref, options, None, revision))


def fetch_folder(description: ModelDescription, options: AdapterOptions) -> Path:
    """Return the local folder of a model, after downloading it where it is a hub id.

    Raises as `read_config` and `weight_files` do: where the Hub does not answer, its client returns a folder without
    the weights.
    """
    assert isinstance(options, ModelOptions)
    folder = resolve_folder(description.ref, options, description.revision)
    weight_files(folder)
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raises `AdapterError` naming the file and line."""
    value = load_json(path)
    if not isinstance(value, dict):
        raise AdapterError(f"The file {str(path)!r} holds a {type(value).__name__}; expected a JSON object.")
    return value


def load_json(path: Path) -> Any:
    """Return the JSON in a file; raises `AdapterError` naming the file and line."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise AdapterError(f"The file {str(path)!r} cannot be read: {error}.") from error
    except json.JSONDecodeError as error:
        raise AdapterError(f"The file {path}:{error.lineno} is not JSON: {error.msg}.") from error


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that transformers reads the weights of a model from, sorted by name.

    Those of an adapter follow those of its base. Raises `AdapterError` where there are none, and for a name that is not
    that of a safetensors file of the folder: config.json and index are files of unknown origin, and transformers
    unpickles files of other types.
    """
    if (folder / ADAPTER_CONFIG).is_file():
        if not (folder / ADAPTER_WEIGHTS).is_file():
            raise AdapterError(
                f"The adapter folder {str(folder)!r} has no {ADAPTER_WEIGHTS!r}; weights are read from safetensors "
                "files only.",
                hint="Load it with peft and call save_pretrained to convert older weights.",
            )
        return [*weight_files(adapter_base(folder)), folder / ADAPTER_WEIGHTS]
    names = [_weights_name(folder)]
    if names[0].endswith(INDEX_SUFFIX):
        if not is_in_folder(names[0]):
            raise _unsafe_weights_error(folder, names[0])
        names = _indexed_names(folder / names[0])
    for name in names:
        if not is_in_folder(name) or not name.endswith(SAFE_SUFFIX):
            raise _unsafe_weights_error(folder, name)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing or not names:
        raise AdapterError(
            f"The model folder {str(folder)!r} has no {missing[0] if missing else 'weights'!r}; "
            "weights are read from safetensors files only.",
            hint="Load it with transformers and call save_pretrained to convert older weights.",
        )
    return [folder / name for name in names]


def adapter_base(folder: Path, options: ModelOptions | None = None) -> Path:
    """Return the folder of the model that an adapter belongs to, after downloading it where it is a hub id.

    Raises `AdapterError` where the adapter names none, it is not found, or it is an adapter itself.
    """
    config = read_json(folder / ADAPTER_CONFIG)
    base_name = config.get("base_model_name_or_path")
    if not isinstance(base_name, str) or not base_name:
        raise AdapterError(f"The file {str(folder / ADAPTER_CONFIG)!r} names no base_model_name_or_path.")
    base = Path(base_name).expanduser()
    if not base.is_dir() and (base.is_absolute() or not HUB_ID.fullmatch(base_name)):
        raise AdapterError(
            f"The base model {base_name!r} of the adapter {str(folder)!r} is not there.",
            hint=f"Put it back, or change base_model_name_or_path in {ADAPTER_CONFIG}.",
        )
    if not (base / ADAPTER_CONFIG).is_file():
        revision = None if base.is_dir() else config.get("revision")
        ref = f"{base_name}@{revision}" if revision else base_name
        base = resolve_folder(ref, (options or ModelOptions()).model_copy(update={"revision": None}), None)
    if (base / ADAPTER_CONFIG).is_file():
        raise AdapterError(
            f"The base model {base_name!r} of the adapter {str(folder)!r} is an adapter itself.",
            hint="Merge that one into its base with peft (merge_and_unload) first.",
        )
    return base


def adapted_head(folder: Path) -> dict[str, Any]:
    """Return the fields of ``config.json`` that the head in an adapter's folder changes; empty where it has none.

    peft names the task, and saves a whole head next to the low-rank matrices, but not the names of its labels: the
    number of outputs is read from the headers of the weights.
    """
    ending = ADAPTED_HEADS.get(str(read_json(folder / ADAPTER_CONFIG).get("task_type")))
    if ending is None or not (folder / ADAPTER_WEIGHTS).is_file():
        return {}
    shapes = _shapes(folder / ADAPTER_WEIGHTS)
    outputs = [shape[0] for name, shape in shapes.items() if HEAD_WEIGHT.match(name)]
    if not outputs:
        return {}
    labels = {str(number): f"LABEL_{number}" for number in range(min(outputs))}
    return {"architectures": [ending], "id2label": labels, "problem_type": None}


def _weights_name(folder: Path) -> str:
    """Return the file, or the index of several files, that transformers reads: one that config.json names is first."""
    config = folder / "config.json"
    file = read_json(config).get("transformers_weights") if config.is_file() else None
    if file is not None:
        return str(file)
    index = f"model{INDEX_SUFFIX}"
    return index if not (folder / WEIGHTS).is_file() and (folder / index).is_file() else WEIGHTS


def _indexed_names(index: Path) -> list[str]:
    """Return the names of the files in an index of weights, each once."""
    table = read_json(index).get("weight_map", {}) if index.is_file() else {}
    if not isinstance(table, dict):
        raise AdapterError(f"The 'weight_map' of {str(index)!r} is a {type(table).__name__}; expected a map.")
    return sorted({str(name) for name in table.values()})


def is_in_folder(name: str) -> bool:
    """Return whether a name is that of a file in a folder, without any path."""
    return name == Path(name).name and "\\" not in name


def _unsafe_weights_error(folder: Path, name: str) -> AdapterError:
    return AdapterError(
        f"The model folder {str(folder)!r} names the weights {name!r}; expected a {SAFE_SUFFIX} file in that folder.",
        hint="Load it with transformers and call save_pretrained to convert older weights.",
    )


def count_parameters(folder: Path) -> int | None:
    """Return the number of weights, unpacked, from the headers; None without safetensors, or if unknown."""
    try:
        quantization = read_quantization(read_json(folder / "config.json"))
        if quantization is not None:
            return unpacked_size(weight_files(folder), quantization)
        return sum(prod(shape) for file in weight_files(folder) for shape in _shapes(file).values())
    except AdapterError:
        return None


def tensor_names(folder: Path) -> list[str]:
    """Return the names of the weights, from their headers; raises `AdapterError` without safetensors."""
    return [name for file in weight_files(folder) for name in _shapes(file)]


def _shapes(file: Path) -> dict[str, Sequence[int]]:
    """Return the shapes of the tensors by name."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as tensors:
            return {name: tensors.get_slice(name).get_shape() for name in tensors.keys()}  # noqa: SIM118, RUF100
    except (SafetensorError, OSError) as error:
        raise AdapterError(f"The file {str(file)!r} has no safetensors header.") from error
