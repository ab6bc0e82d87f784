"""The files of sentence-transformers in a model folder: pooling, the modules after it, prompts and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness import AdapterError
from harness_hf.model_folder import WEIGHTS, is_in_folder, load_json, read_json

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
    names = (f"{path}/{name}" for _, path in _modules(folder) if path for name in ("config.json", WEIGHTS))
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
    listed = load_json(file)
    if not isinstance(listed, list) or not all(isinstance(module, dict) for module in listed):
        raise AdapterError(f"The file {str(file)!r} holds no list of modules.")
    modules = []
    for module in listed:
        kind, path = str(module.get("type")), str(module.get("path") or "")
        if path in (".", "..") or (path and not is_in_folder(path)):
            raise AdapterError(
                f"The file {str(file)!r} names the module folder {path!r}; expected one in the model's folder."
            )
        is_library_class = kind.startswith("sentence_transformers.")
        modules.append((kind.rpartition(".")[2] if is_library_class else kind, path))
    return modules


def _read_optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
