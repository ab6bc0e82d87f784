"""Where a model's files are: a local folder, or a snapshot of a hub repository."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

from harness import AdapterError, HarnessError, UsageError, near_names
from harness_hf.options import ModelOptions

__all__ = [
    "SENTENCE_FILES",
    "ModelConfig",
    "Pooling",
    "SentenceFiles",
    "count_parameters",
    "read_config",
    "read_json",
    "read_sentence_files",
    "resolve_folder",
    "tensor_names",
    "weight_files",
]

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
SNAPSHOT_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.py"]
"""What is downloaded: configuration, tokenizer, safetensors; never pickled weights."""
WEIGHTS = "model.safetensors"
SAFE_SUFFIX = ".safetensors"
INDEX_SUFFIX = ".safetensors.index.json"
ADAPTER_CONFIG = "adapter_config.json"
"""Where it is, transformers with peft opens the model that it names, wherever that is, with any type of weights."""
SNAPSHOT_IGNORED = ["onnx/*", "openvino/*", "coreml/*", "*/*.safetensors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A model's ``config.json`` and where it came from."""

    ref: str
    config: Mapping[str, Any]
    folder: Path | None
    """The local folder; None for a hub repository, of which nothing else has been read."""
    revision: str | None
    """Commit of the hub repository."""


def read_config(ref: str, options: ModelOptions) -> ModelConfig:
    """Return the configuration of a local folder or hub id; raises `UsageError` or `AdapterError`."""
    path = Path(ref).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(
                f"The folder {ref!r} has no config.json, so it is not a model that transformers can open.",
                hint=_near_models(path) or "Give the folder that save_pretrained wrote.",
            )
        return ModelConfig(ref=ref, config=read_json(path / "config.json"), folder=path, revision=None)
    if path.exists():
        raise UsageError(f"The model {ref!r} is a file; expected the folder that holds its config.json.")
    if not HUB_ID.fullmatch(ref):
        raise UsageError(f"There is no folder {ref!r}.", hint=_near_models(path.parent, path.name))
    downloaded = Path(_from_hub(ref, options, "config.json"))
    return ModelConfig(ref=ref, config=read_json(downloaded), folder=None, revision=downloaded.parent.name)


def resolve_folder(ref: str, options: ModelOptions, revision: str | None) -> Path:
    """Return the local folder of a model, after downloading it where it is a hub id."""
    path = Path(ref).expanduser()
    return path if path.is_dir() else Path(_from_hub(ref, options, None, revision))


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raises `AdapterError` naming the file and line."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise AdapterError(f"The file {str(path)!r} cannot be read: {error}.") from error
    except json.JSONDecodeError as error:
        raise AdapterError(f"The file {path}:{error.lineno} is not JSON: {error.msg}.") from error
    if not isinstance(value, dict):
        raise AdapterError(f"The file {str(path)!r} holds a {type(value).__name__}; expected a JSON object.")
    return value


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that transformers reads the weights of a model from, sorted by name.

    Raises `AdapterError` where there are none, and for a name that is not that of a safetensors file of the folder:
    config.json and index are files of unknown origin, and transformers unpickles files of other types.
    """
    if (folder / ADAPTER_CONFIG).is_file():
        raise AdapterError(
            f"The model folder {str(folder)!r} has an {ADAPTER_CONFIG}: it is an adapter to another model.",
            hint="Load it with peft, call merge_and_unload, and save the merged model with save_pretrained.",
        )
    names = [_weights_name(folder)]
    if names[0].endswith(INDEX_SUFFIX):
        if not _is_in_folder(names[0]):
            raise _unsafe_weights_error(folder, names[0])
        names = _indexed_names(folder / names[0])
    for name in names:
        if not _is_in_folder(name) or not name.endswith(SAFE_SUFFIX):
            raise _unsafe_weights_error(folder, name)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing or not names:
        raise AdapterError(
            f"The model folder {str(folder)!r} has no {missing[0] if missing else 'weights'!r}; "
            "weights are read from safetensors files only.",
            hint="Load it with transformers and call save_pretrained to convert older weights.",
        )
    return [folder / name for name in names]


def _weights_name(folder: Path) -> str:
    """Return the file, or the index of several files, that transformers reads: one that config.json names is first."""
    config = folder / "config.json"
    named = read_json(config).get("transformers_weights") if config.is_file() else None
    if named is not None:
        return str(named)
    index = f"model{INDEX_SUFFIX}"
    return index if not (folder / WEIGHTS).is_file() and (folder / index).is_file() else WEIGHTS


def _indexed_names(index: Path) -> list[str]:
    """Return the names of the files in an index of weights, each once."""
    table = read_json(index).get("weight_map", {}) if index.is_file() else {}
    if not isinstance(table, dict):
        raise AdapterError(f"The 'weight_map' of {str(index)!r} is a {type(table).__name__}; expected a map.")
    return sorted({str(name) for name in table.values()})


def _is_in_folder(name: str) -> bool:
    return name == Path(name).name and "\\" not in name


def _unsafe_weights_error(folder: Path, name: str) -> AdapterError:
    return AdapterError(
        f"The model folder {str(folder)!r} names the weights {name!r}; expected a {SAFE_SUFFIX} file in that folder.",
        hint="Load it with transformers and call save_pretrained to convert older weights.",
    )


def count_parameters(folder: Path) -> int | None:
    """Return how many numbers the weights hold, from their headers; None without safetensors."""
    try:
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


def _near_models(folder: Path, name: str | None = None) -> str | None:
    """Return a hint naming the model folders below `folder` that resemble `name`, or all of them."""
    if not folder.is_dir():
        parent = folder.parent
        readable = parent.is_dir() and os.access(parent, os.R_OK | os.X_OK)
        siblings = [child.name for child in parent.iterdir() if child.is_dir()] if readable else []
        return next(
            (hint for own in near_names(folder.name, siblings) if (hint := _near_models(parent / own, name))),
            None,
        )
    models = sorted(child.name for child in folder.iterdir() if (child / "config.json").is_file())
    shown = near_names(name, models) if name else models[:5]
    return f"Did you mean {' or '.join(repr(str(folder / model)) for model in shown)}?" if shown else None


def _from_hub(ref: str, options: ModelOptions, file: str | None, revision: str | None = None) -> str:
    """Return the path of one file of a repository, or of a snapshot of it where `file` is None."""
    from huggingface_hub import hf_hub_download, snapshot_download

    revision = revision or options.revision
    try:
        if file is not None:
            return str(
                hf_hub_download(ref, file, revision=revision, local_files_only=options.local_files_only)
            )
        return str(
            snapshot_download(
                ref,
                revision=revision,
                local_files_only=options.local_files_only,
                allow_patterns=SNAPSHOT_PATTERNS,
                ignore_patterns=SNAPSHOT_IGNORED,
            )
        )
    except Exception as error:
        raise _explain(ref, revision, error) from error


def _explain(ref: str, revision: str | None, error: Exception) -> HarnessError:
    """Return the error for an answer of the hub, or for no answer."""
    from huggingface_hub import errors

    at = f" at revision {revision!r}" if revision else ""
    path = Path(ref)
    near = _near_models(path.parent, path.name)
    if isinstance(error, errors.GatedRepoError):
        return AdapterError(
            f"The hub model {ref!r} is gated.", hint="Accept its terms on its page and run: hf auth login"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return UsageError(f"The hub model {ref!r} has no revision {revision!r}.")
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        return UsageError(f"There is no folder {ref!r} here and no such model on the hub.", hint=near)
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        return AdapterError(
            f"There is no folder {ref!r} here, and the hub model of that name{at} is neither downloaded nor "
            "reachable.",
            hint=near or "Give a folder, or connect to the network (unset HF_HUB_OFFLINE).",
        )
    if isinstance(error, errors.EntryNotFoundError):
        return UsageError(f"The hub model {ref!r}{at} has no config.json, so transformers cannot open it.")
    return AdapterError(f"The hub could not give {ref!r}{at}: {type(error).__name__}: {error}.", hint=near)


Pooling = Literal["mean", "cls", "last", "pooler"]

SENTENCE_FILES = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json")
POOLING_KEYS: Mapping[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    """The defaults of the folder; None where it has no such entry."""

    pooling: Pooling | None = None
    unsupported_pooling: str | None = None
    """A way of pooling that the folder names and the adapter does not have."""
    max_length: int | None = None
    query_prefix: str = ""
    passage_prefix: str = ""


def read_sentence_files(folder: Path) -> SentenceFiles:
    """Return what the folder's sentence-transformers files say; all defaults where there are none."""
    prompts: dict[str, Any] = {}
    if (folder / "config_sentence_transformers.json").is_file():
        prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    length = None
    if (folder / "sentence_bert_config.json").is_file():
        length = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    pooling, unsupported = _pooling(folder / "1_Pooling" / "config.json")
    return SentenceFiles(
        pooling=pooling,
        unsupported_pooling=unsupported,
        max_length=int(length) if length else None,
        query_prefix=str(prompts.get("query") or ""),
        passage_prefix=str(prompts.get("passage") or prompts.get("document") or ""),
    )


def _pooling(path: Path) -> tuple[Pooling | None, str | None]:
    """Return the way of pooling in a ``1_Pooling/config.json``, or the name of one that is not supported."""
    if not path.is_file():
        return None, None
    config = read_json(path)
    modes = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    if isinstance(config.get("pooling_mode"), str):
        names: Mapping[str, Pooling] = {"mean": "mean", "cls": "cls", "lasttoken": "last"}
        mode = names.get(config["pooling_mode"])
        return mode, None if mode else str(config["pooling_mode"])
    if not modes:
        raise AdapterError(f"The file {str(path)!r} names no way of pooling.", hint="Pass -o pooling=mean.")
    if len(modes) == 1 and modes[0] in POOLING_KEYS:
        return POOLING_KEYS[modes[0]], None
    return None, " and ".join(key.removeprefix("pooling_mode_") for key in modes)
