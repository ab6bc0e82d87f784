"""Where a model's files are, a local folder or a snapshot of a hub repository, and their identity.

The files of sentence-transformers in it hold pooling, the modules after it, prompts and limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal

from harness import AdapterError, UsageError
from harness.models import AdapterOptions, ModelDescription
from harness_hf.model_files import HUB_ID, PickledModel, from_hub, near_models
from harness_hf.options import ModelOptions
from harness_hf.quantization import read_quantization, unpacked_size

_WEIGHTS = "model.safetensors"
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
Pooling = Literal["mean", "cls", "last", "pooler", "max", "weightedmean", "mean_sqrt_len"]
SENTENCE_CONFIGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Names of the configuration of the transformer; the first that exists is read."""
SENTENCE_FILES = ("modules.json", "config_sentence_transformers.json", *SENTENCE_CONFIGS)
POOLING_NAMES: Mapping[str, Pooling] = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weightedmean",
    "lasttoken": "last",
}
"""The ways of pooling of sentence-transformers, in the order in which it joins them."""
POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Their names in older files."""
ACTIVATIONS = frozenset("ELU GELU Identity LeakyReLU ReLU SELU Sigmoid SiLU Softplus Tanh".split())
"""Classes of torch.nn that a Dense module may name."""
DEFAULT_ACTIVATION = "torch.nn.modules.activation.Tanh"
QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")
"""Names of prompts, the first that exists is used: those of ``SentenceTransformer.encode_document``."""


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
    value = _load_json(path)
    if not isinstance(value, dict):
        raise AdapterError(f"The file {str(path)!r} holds a {type(value).__name__}; expected a JSON object.")
    return value


def _load_json(path: Path) -> Any:
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
    return index if not (folder / _WEIGHTS).is_file() and (folder / index).is_file() else _WEIGHTS


def _indexed_names(index: Path) -> list[str]:
    """Return the names of the files in an index of weights, each once."""
    table = read_json(index).get("weight_map", {}) if index.is_file() else {}
    if not isinstance(table, dict):
        raise AdapterError(f"The 'weight_map' of {str(index)!r} is a {type(table).__name__}; expected a map.")
    return sorted({str(name) for name in table.values()})


def _is_in_folder(name: str) -> bool:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseModule:
    """A linear layer and an activation after pooling."""

    folder: str
    """Its folder in that of the model, with ``model.safetensors``."""
    width: int
    activation: str
    """A class of torch.nn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    """Content of the sentence-transformers files of a folder; empty or None where there is no such entry."""

    pooling: tuple[Pooling, ...] = ()
    """Ways of pooling, whose vectors are joined in this order."""
    pools_prompt: bool = True
    """Whether the pieces of a prompt are pooled."""
    modules: tuple[DenseModule | None, ...] = ()
    """What follows pooling, in order; None divides a vector by its length."""
    unsupported: str | None = None
    """Something that the folder names and the adapter does not have."""
    max_length: int | None = None
    lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    """The name of the prompt for a side that has none of its own."""
    dimensions: int | None = None
    """How many of the first numbers of a vector are kept."""

    def prefix(self, side: Literal["query", "passage"]) -> str:
        """Return the prompt of queries or passages, else the default one, else nothing."""
        names = QUERY_PROMPTS if side == "query" else PASSAGE_PROMPTS
        prompt_name = next((name for name in names if name in self.prompts), self.default_prompt)
        return self.prompts.get(prompt_name or "", "")


def read_sentence_files(folder: Path) -> SentenceFiles:
    """Return the content of the folder's sentence-transformers files; all defaults where there are none.

    Raises `AdapterError` for a file that cannot be read. The formats are those of sentence-transformers 6.2.
    """
    config = _read_optional(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts") or {}
    transformer = next(
        (read_json(folder / name) for name in SENTENCE_CONFIGS if (folder / name).is_file()), {}
    )
    length, dimensions = transformer.get("max_seq_length"), config.get("truncate_dim")
    read = _ModuleReader(folder)
    task = transformer.get("transformer_task", "feature-extraction")
    unsupported = [
        *([] if task == "feature-extraction" else [f"a transformer for {task!r}"]),
        *read.unsupported,
    ]
    return SentenceFiles(
        pooling=read.pooling,
        pools_prompt=read.pools_prompt,
        modules=tuple(read.modules),
        unsupported=next(iter(unsupported), None),
        max_length=int(length) if length else None,
        lower_case=bool(transformer.get("do_lower_case")),
        prompts={str(name): str(text or "") for name, text in prompts.items()},
        default_prompt=config.get("default_prompt_name"),
        dimensions=int(dimensions) if dimensions else None,
    )


def sentence_module_files(folder: Path) -> list[str]:
    """Return the names of the files of a folder's modules that exist: configurations and weights."""
    names = (f"{path}/{name}" for _, path in _modules(folder) if path for name in ("config.json", _WEIGHTS))
    return [name for name in names if (folder / name).is_file()]


class _ModuleReader:
    """Reads the modules of a folder in order; what is not supported ends it."""

    def __init__(self, folder: Path) -> None:
        self.pooling: tuple[Pooling, ...] = ()
        self.pools_prompt = True
        self.modules: list[DenseModule | None] = []
        self.unsupported: list[str] = []
        modules = _modules(folder)
        for number, (kind, path) in enumerate(modules):
            self._read(kind, folder / path, first=number == 0)
        if modules and not self.pooling:
            self.unsupported.append("modules without pooling")

    def _read(self, kind: str, path: Path, *, first: bool) -> None:
        if self.unsupported:
            return
        if kind == "Pooling" and not self.pooling:
            self._read_pooling(path / "config.json")
        elif kind == "Dense" and self.pooling:
            self._read_dense(path)
        elif kind == "Normalize" and self.pooling:
            self.modules.append(None)
        elif not (kind == "Dropout" or (kind == "Transformer" and first)):
            self.unsupported.append(f"the module {kind!r}")

    def _read_pooling(self, path: Path) -> None:
        config = _read_optional(path)
        modes = config.get("pooling_mode")
        if modes is None:
            modes = [name for key, name in POOLING_KEYS.items() if config.get(key) is True]
            # A mode that is on, and that the table does not know, must not be dropped.
            modes += [
                key
                for key in config
                if key.startswith("pooling_mode_") and config[key] and key not in POOLING_KEYS
            ]
        names = [modes] if isinstance(modes, str) else list(modes)
        if not names:
            raise AdapterError(
                f"The file {str(path)!r} names no way of pooling.", hint="Pass -o pooling=mean."
            )
        unknown = [str(name) for name in names if name not in POOLING_NAMES]
        if unknown:
            self.unsupported.append(f"{unknown[0].removeprefix('pooling_mode_')!r} pooling")
            return
        self.pooling = tuple(POOLING_NAMES[name] for name in names)
        self.pools_prompt = config.get("include_prompt") is not False

    def _read_dense(self, path: Path) -> None:
        config = read_json(path / "config.json")
        activation = str(config.get("activation_function") or DEFAULT_ACTIVATION)
        name = activation.rpartition(".")[2]
        spaces = [config.get(key) for key in ("module_input_name", "module_output_name")]
        if not activation.startswith("torch.nn.") or name not in ACTIVATIONS:
            self.unsupported.append(f"the activation {activation!r}")
        elif config.get("use_residual") or any(space not in (None, "sentence_embedding") for space in spaces):
            self.unsupported.append(f"a Dense module that does more than a linear layer ({path.name})")
        else:
            self.modules.append(
                DenseModule(folder=path.name, width=int(config["out_features"]), activation=name)
            )


def _modules(folder: Path) -> list[tuple[str, str]]:
    """Return (name of the class, folder) of every module; a class that is not the library's keeps its full name.

    Without a list of modules, a folder for pooling counts. Raises `AdapterError` for a folder outside the model's.
    """
    file = folder / "modules.json"
    if not file.is_file():
        has_pooling = (folder / "1_Pooling" / "config.json").is_file()
        return [("Transformer", ""), ("Pooling", "1_Pooling")] if has_pooling else []
    listed = _load_json(file)
    if not isinstance(listed, list) or not all(isinstance(module, dict) for module in listed):
        raise AdapterError(f"The file {str(file)!r} holds no list of modules.")
    modules = []
    for module in listed:
        kind, path = str(module.get("type")), str(module.get("path") or "")
        if path in (".", "..") or (path and not _is_in_folder(path)):
            raise AdapterError(
                f"The file {str(file)!r} names the module folder {path!r}; expected one in the model's folder."
            )
        is_library_class = kind.startswith("sentence_transformers.")
        modules.append((kind.rpartition(".")[2] if is_library_class else kind, path))
    return modules


def _read_optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
