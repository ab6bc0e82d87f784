"""Open tokenizers and networks from a folder; raise an error for those that would run but answer nonsense."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.utils import logging

from harness import AdapterError, Head, HeadSpec, UsageError
from harness_hf.model_folder import weight_files
from harness_hf.options import ModelOptions

__all__ = [
    "choose_device",
    "choose_dtype",
    "first_line",
    "load_network",
    "load_tokenizer",
    "load_trainable",
    "open_network",
    "open_tokenizer",
    "piece_limit",
    "place",
    "placing",
    "quiet_transformers",
    "read_tokenizer",
    "require_fitting_vocabulary",
    "require_weights",
]

AUTO_CLASSES: Mapping[Head | None, Any] = {
    None: transformers.AutoModel,
    Head.CLASSIFICATION: transformers.AutoModelForSequenceClassification,
    Head.TAGGING: transformers.AutoModelForTokenClassification,
    Head.SPAN_EXTRACTION: transformers.AutoModelForQuestionAnswering,
    Head.MULTIPLE_CHOICE: transformers.AutoModelForMultipleChoice,
    Head.DUAL_ENCODER: transformers.AutoModel,
    Head.TEXT_TO_TEXT: transformers.AutoModelForSeq2SeqLM,
}
POSITIONS_AFTER_PADDING = frozenset(
    "camembert data2vec-text mpnet roberta roberta-prelayernorm xlm-roberta xlm-roberta-xl".split()
)
"""Types whose first position is the one after the padding index."""
VOCABULARY_NAMES = (
    "tokenizer.json",
    "vocab",
    "merges",
    "tekken",
    "spiece",
    "sentencepiece",
    "tokenizer.model",
)
VOCABULARY_SUFFIXES = (".model", ".spm", ".vocab", ".tiktoken", ".bpe", ".codes")
LEAST_VOCABULARY = 0.5
"""The least tokens of a tokenizer for every row of the embeddings."""


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the library's bars and load reports; what matters in them is checked and raised here."""
    transformers_logging: Any = logging  # some of its functions are untyped
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def read_tokenizer(folder: Path, ref: str, options: ModelOptions, **keywords: Any) -> Any:
    """Return the tokenizer of a folder, fast or not; raises `AdapterError` where the folder has no vocabulary.

    Without the files transformers makes a tokenizer of the few special tokens, to which every text is unknown.
    """
    try:
        with quiet_transformers():
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=options.trust_remote_code, **keywords
            )
    except Exception as error:
        raise AdapterError(f"The tokenizer of {ref!r} cannot be opened: {first_line(error)}") from error
    named = set((getattr(tokenizer, "vocab_files_names", None) or {}).values())
    if named and not any(_is_vocabulary(file.name, named) for file in folder.iterdir()):
        raise AdapterError(
            f"The model {ref!r} has no tokenizer files, such as {sorted(named)[0]!r}.",
            hint=f"Save the tokenizer that it was trained with into the folder: tokenizer.save_pretrained({ref!r}).",
        )
    return tokenizer


def _is_vocabulary(name: str, named: Collection[str]) -> bool:
    """Return whether a file can be that of a vocabulary; the class of a tokenizer does not name all that it reads."""
    return name in named or name.startswith(VOCABULARY_NAMES) or name.endswith(VOCABULARY_SUFFIXES)


def require_fitting_vocabulary(ref: str, tokenizer: Any, network: Any, *, added: bool = True) -> None:
    """Raise `AdapterError` for a tokenizer that cannot be the one that the network was trained with.

    Embeddings may have more rows than the tokenizer has tokens, since they are padded to a multiple, but not twice as
    many. Without `added`, tokens that were added to the vocabulary, such as one for padding, need no row.
    """
    rows = _embedding_rows(network)
    vocabulary = dict(tokenizer.get_vocab())
    if not added:
        vocabulary = {token: vocabulary[token] for token in vocabulary.keys() - tokenizer.get_added_vocab()}
    if rows is None or not vocabulary:
        return
    beyond, tokens = max(vocabulary.values()) >= rows, len(set(vocabulary.values()))
    if beyond or tokens < rows * LEAST_VOCABULARY:
        raise AdapterError(
            f"The tokenizer of {ref!r} has {tokens:,} tokens with numbers up to {max(vocabulary.values()):,}, and the "
            f"model has embeddings for {rows:,}: they do not belong together.",
            hint="Save the tokenizer that the model was trained with into its folder.",
        )


def _embedding_rows(network: Any) -> int | None:
    """Return how many tokens a network has embeddings for; None where it has no table of them."""
    try:
        weight = getattr(network.get_input_embeddings(), "weight", None)
    except NotImplementedError:
        return None
    return None if weight is None else int(weight.shape[0])


def open_tokenizer(folder: Path, ref: str, options: ModelOptions, *, reason: str) -> Any:
    """Return the fast tokenizer of a folder; raises `AdapterError` where there is none, with what it is needed for."""
    tokenizer = read_tokenizer(folder, ref, options, use_fast=True)
    if not tokenizer.is_fast:
        raise AdapterError(
            f"The model {ref!r} has no fast tokenizer, only a {type(tokenizer).__name__}; {reason}.",
            hint="Choose a model whose folder has a tokenizer.json.",
        )
    return tokenizer


def load_tokenizer(folder: Path, ref: str, options: ModelOptions) -> Any:
    """Return the fast tokenizer of an encoder; raises `AdapterError` where there is none or it cannot pad."""
    tokenizer = open_tokenizer(folder, ref, options, reason="offsets and words need one")
    if tokenizer.pad_token_id is None or tokenizer.unk_token_id is None:
        raise AdapterError(f"The tokenizer of {ref!r} has no padding token, or no unknown token.")
    return tokenizer


def load_network(
    folder: Path, ref: str, head: Head | None, options: ModelOptions, placement: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Return the network and whether it has a trained pooler; `placement` is what `placing` returns.

    Raises `AdapterError` where weights are missing or of another shape: transformers would fill them at random and
    continue.
    """
    network, information = open_network(AUTO_CLASSES[head], folder, ref, options, placement)
    missing = sorted(information["missing_keys"])
    poolers = [name for name in missing if "pooler" in name]
    if head in (None, Head.DUAL_ENCODER):
        missing = [name for name in missing if name not in poolers]
    require_weights(ref, missing)
    return network, getattr(network.base_model, "pooler", None) is not None and not poolers


def load_trainable(folder: Path, ref: str, spec: HeadSpec, options: ModelOptions, *, keep_head: bool) -> Any:
    """Return a float32 network with the head of `spec` to train; the head is new unless `keep_head`."""
    extra: dict[str, Any] = {"dtype": torch.float32, "ignore_mismatched_sizes": not keep_head}
    if spec.labels:
        extra["id2label"] = dict(enumerate(spec.labels))
        extra["label2id"] = {label: index for index, label in enumerate(spec.labels)}
    if spec.head is Head.CLASSIFICATION:
        extra["problem_type"] = "single_label_classification"
    network, _ = open_network(AUTO_CLASSES[spec.head], folder, ref, options, extra)
    if not keep_head:
        _renew_head(network, AUTO_CLASSES[spec.head])
    return network


def piece_limit(config: Any, tokenizer: Any) -> int:
    """Return how many pieces the model can take in one sequence, special pieces included."""
    limit = int(getattr(config, "max_position_embeddings", 0) or tokenizer.model_max_length)
    if config.model_type in POSITIONS_AFTER_PADDING:
        limit -= int(config.pad_token_id) + 1
    return min(limit, int(tokenizer.model_max_length))


def require_weights(ref: str, missing: Sequence[str]) -> None:
    """Raise `AdapterError` where weights are missing: transformers would fill them at random and continue."""
    if missing:
        raise AdapterError(
            f"The weights of {ref!r} have no {missing[0]!r}"
            + (f" (and {len(missing) - 1} more are missing)" if len(missing) > 1 else "")
            + ", which its config.json requires.",
            hint="The checkpoint is incomplete or was fine-tuned for something else.",
        )


def open_network(
    auto_class: Any, folder: Path, ref: str, options: ModelOptions, extra: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Return a network read from safetensors and the problems that transformers found; raises `AdapterError`."""
    weight_files(folder)
    keywords: dict[str, Any] = {
        "use_safetensors": True,
        "trust_remote_code": options.trust_remote_code,
        "output_loading_info": True,
        **extra,
    }
    if options.attn_implementation is not None:
        keywords["attn_implementation"] = options.attn_implementation
    try:
        with quiet_transformers():
            network, information = auto_class.from_pretrained(folder, **keywords)
    except Exception as error:
        raise AdapterError(f"The model {ref!r} cannot be opened: {first_line(error)}") from error
    _require_all_layers(ref, network, information["unexpected_keys"])
    return network, information


def _require_all_layers(ref: str, network: Any, ignored: Iterable[str]) -> None:
    """Raise `AdapterError` where the weights have layers beyond those of the network, which would be ignored.

    Ignored weights of a head for another task are usual.
    """
    prefix = f"{network.base_model_prefix}."
    own = {
        name.removeprefix(prefix): len(module)
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.ModuleList)
    }
    for key in sorted(ignored):
        parts = key.removeprefix(prefix).split(".")
        for place, part in enumerate(parts):
            name = ".".join(parts[:place])
            if part.isdecimal() and int(part) >= own.get(name, int(part) + 1):
                raise AdapterError(
                    f"The weights of {ref!r} have {key!r}, but its config.json has {own[name]} layers, numbered from "
                    "0: the others would be ignored.",
                    hint="Set the number of layers in config.json to that of the weights.",
                )


def _renew_head(network: Any, auto_class: Any) -> None:
    """Replace everything outside the backbone by freshly initialised values.

    Otherwise a head of the same shape in the checkpoint would be reused although its labels differ.
    """
    prefix = f"{network.base_model_prefix}."
    outside = [name for name, _ in network.named_parameters() if not name.startswith(prefix)]
    fresh = dict(auto_class.from_config(network.config).named_parameters())
    with torch.no_grad():
        for name in outside:
            network.get_parameter(name).copy_(fresh[name])


def first_line(error: Exception) -> str:
    """Return the type and the first line of a library's error, for an error message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def choose_device(name: str) -> torch.device:
    """Return the device of the option: of several processes on a machine each has the GPU of its own number.

    Raises `AdapterError` for a GPU that is not there.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise AdapterError("The option device is 'cuda', but torch sees no GPU.", hint="Pass -o device=cpu.")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    given = os.environ.get("LOCAL_RANK")
    if given is None:
        return torch.device("cuda")
    if not given.isdecimal():
        raise AdapterError(f"The environment variable LOCAL_RANK is {given!r}; expected a number from 0.")
    if int(given) >= torch.cuda.device_count():
        raise AdapterError(
            f"Process {given} of this machine has no GPU of its own: torch sees {torch.cuda.device_count()}.",
            hint="Start as many processes as there are GPUs, or pass -o device=cpu.",
        )
    return torch.device("cuda", int(given))


def choose_dtype(name: str, device: torch.device) -> torch.dtype | str:
    """Return the precision of inference; ``auto`` is the checkpoint's own."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def placing(options: ModelOptions) -> Mapping[str, Any]:
    """Return the keywords of `open_network`: precision, and the device map where the options name one.

    Raises `UsageError` for a device map in a run of several processes: each would put its copy on all devices.
    """
    dtype = choose_dtype(options.dtype, choose_device(options.device))
    if options.device_map is None:
        return {"dtype": dtype}
    processes = os.environ.get("WORLD_SIZE", "1")
    if processes != "1":
        raise UsageError(
            f"The option device_map is {options.device_map!r}, which divides one model over all devices, but "
            f"{processes} processes are running.",
            hint="Start one process, or omit -o device_map.",
        )
    return {"dtype": dtype, "device_map": options.device_map}


def place(network: Any, options: ModelOptions) -> tuple[Any, torch.device]:
    """Return the network ready to answer, and the device that its inputs have to be on.

    A network with a device map stays where it was loaded; it reads its inputs where its embeddings are run,
    which need not be where their weights wait.
    """
    if options.device_map is None:
        device = choose_device(options.device)
        return network.to(device).eval(), device
    embeddings = network.get_input_embeddings()
    runs_on = getattr(getattr(embeddings, "_hf_hook", None), "execution_device", None)
    device = torch.device(embeddings.weight.device if runs_on is None else runs_on)
    return network.eval(), device
