"""Open tokenizers and networks from a folder; raise an error for those that would run but answer nonsense."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
import transformers.modeling_utils  # with the adapter's code, not when a network is opened: see `make_ready`
from transformers.utils import logging

from harness import AdapterError, TrainingError, UsageError
from harness_hf.fit_record import read_record, weights_digest
from harness_hf.low_rank import attach_low_rank, merge_adapter, quantization
from harness_hf.model_folder import (
    ADAPTER_CONFIG,
    TOKENIZER_CONFIG,
    adapted_head,
    adapter_base,
    is_vocabulary,
    no_tokenizer,
    read_json,
    weight_files,
)
from harness_hf.options import ModelOptions
from harness_hf.quantization import read_quantization

POSITIONS_AFTER_PADDING = frozenset(
    "camembert data2vec-text mpnet roberta roberta-prelayernorm xlm-roberta xlm-roberta-xl".split()
)
"""Types whose first position is the one after the padding index."""
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

    Without the files transformers makes a tokenizer of the few special tokens, to which every text is unknown. An
    adapter that was saved without its tokenizer has that of its base.
    """
    if (folder / ADAPTER_CONFIG).is_file() and not (folder / TOKENIZER_CONFIG).is_file():
        folder = adapter_base(folder, options)
    try:
        with quiet_transformers():
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=options.trust_remote_code, **keywords
            )
    except Exception as error:
        raise AdapterError(f"The tokenizer of {ref!r} cannot be opened: {first_line(error)}") from error
    vocabulary_files = set((getattr(tokenizer, "vocab_files_names", None) or {}).values())
    if vocabulary_files and not any(is_vocabulary(file.name, vocabulary_files) for file in folder.iterdir()):
        raise AdapterError(no_tokenizer(ref, sorted(vocabulary_files)[0]))
    return tokenizer


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
    auto_class: Any,
    folder: Path,
    ref: str,
    options: ModelOptions,
    extra: Mapping[str, Any],
    *,
    trainable: bool = False,
) -> tuple[Any, Mapping[str, Any]]:
    """Return a network read from safetensors and the problems that transformers found; raises `AdapterError`.

    An adapter's folder gives its base with the low-rank matrices next to the weights; `trainable` ones can be trained.
    One with a head of peft is merged into its base.
    """
    weight_files(folder)
    if (folder / ADAPTER_CONFIG).is_file():
        base = adapter_base(folder, options)
        record = read_record(folder)
        if record is not None:
            _require_same_base(folder, base, record.base_weights)
            extra = {**quantization(record.settings.quantize), **extra}
        head = {} if trainable else adapted_head(folder)
        if head:
            labels = {int(number): name for number, name in head["id2label"].items()}
            extra = {**extra, "id2label": labels, "ignore_mismatched_sizes": True}
            network, information = open_network(auto_class, base, str(base), options, extra)
            network, saved = merge_adapter(network, folder)
            missing = [name for name in information["missing_keys"] if name not in saved]
            return network, {**information, "missing_keys": missing}
        network, information = open_network(auto_class, base, str(base), options, extra)
        with quiet_transformers():
            attach_low_rank(network, folder, trainable=trainable)
        return network, information
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
        hint = (
            "Omit -o attn_implementation, or install what it needs." if options.attn_implementation else None
        )
        raise AdapterError(f"The model {ref!r} cannot be opened: {first_line(error)}", hint=hint) from error
    _require_all_layers(ref, network, information["unexpected_keys"])
    return network, information


def _require_same_base(folder: Path, base: Path, digest: str) -> None:
    """Raise `AdapterError` where the weights of an adapter's base are not those that it was trained on."""
    if weights_digest(base) != digest:
        raise AdapterError(
            f"The base model {str(base)!r} has other weights than those that the adapter {str(folder)!r} was "
            "trained on.",
            hint="Put the old weights back, or delete the adapter's folder; it will be fitted again.",
        )


def _require_all_layers(ref: str, network: Any, ignored: Iterable[str]) -> None:
    """Raise `AdapterError` where the weights have layers beyond those of the network, which would be ignored.

    Ignored weights of a head for another task are usual.
    """
    prefix = f"{network.base_model_prefix}."
    sizes = {
        name.removeprefix(prefix): len(module)
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.ModuleList)
    }
    for key in sorted(ignored):
        keys = key.removeprefix(prefix).split(".")
        for depth, number in enumerate(keys):
            name = ".".join(keys[:depth])
            if number.isdecimal() and int(number) >= sizes.get(name, int(number) + 1):
                raise AdapterError(
                    f"The weights of {ref!r} have {key!r}, but its config.json has {sizes[name]} layers, numbered from "
                    "0: the others would be ignored.",
                    hint="Set the number of layers in config.json to that of the weights.",
                )


def first_line(error: Exception) -> str:
    """Return the type and the first line of a library's error, for an error message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def choose_device(name: str) -> torch.device:
    """Return the device of the option: of several processes on a machine each has the GPU of its own number.

    A number after ``cuda:`` is for one process. Raises `AdapterError` for a device that is not there.
    """
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise AdapterError(
            f"The option device is {name!r}, but torch sees no GPU.", hint="Pass -o device=cpu."
        )
    if name == "mps" and not torch.backends.mps.is_available():
        raise AdapterError(
            "The option device is 'mps', but torch sees no Apple GPU.", hint="Pass -o device=cpu."
        )
    if name == "mps":
        return torch.device(name)
    if ":" in name:
        return _numbered_gpu(name)
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    local_rank = os.environ.get("LOCAL_RANK")
    if local_rank is None:
        return torch.device("cuda")
    if not local_rank.isdecimal():
        raise AdapterError(
            f"The environment variable LOCAL_RANK is {local_rank!r}; expected a number from 0."
        )
    if int(local_rank) >= torch.cuda.device_count():
        raise AdapterError(
            f"Process {local_rank} of this machine has no GPU of its own: torch sees {torch.cuda.device_count()}.",
            hint="Start as many processes as there are GPUs, or pass -o device=cpu.",
        )
    return torch.device("cuda", int(local_rank))


def _numbered_gpu(name: str) -> torch.device:
    """Return the GPU that an option names: ``cuda:1``; raises `AdapterError` where torch does not see so many."""
    if int(name.partition(":")[2]) >= torch.cuda.device_count():
        raise AdapterError(
            f"The option device is {name!r}, but torch sees {torch.cuda.device_count()}, numbered from 0.",
            hint="Pass -o device=cuda, or the number of one of them.",
        )
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise AdapterError(
            f"The option device is {name!r}, and several processes are running, each on a GPU of its own.",
            hint="Omit -o device.",
        )
    return torch.device(name)


def choose_dtype(name: str, device: torch.device) -> torch.dtype | str:
    """Return the precision of inference; ``auto`` is the checkpoint's own."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def choose_precision(name: str, device: torch.device) -> str:
    """Return the precision of training: that of accelerate's configuration or, without one, of the option.

    ``auto`` is bf16 on a GPU that has it, and no mixed precision elsewhere. ``accelerate launch`` says "no" where
    nothing was configured, so that does not contradict an option.

    Raises `UsageError` where the two contradict each other, and `TrainingError` for fp16 on a CPU.
    """
    configured = os.environ.get("ACCELERATE_MIXED_PRECISION")
    if configured not in {None, "no", "bf16", "fp16"}:
        raise UsageError(
            f"accelerate's configuration has mixed_precision {configured!r}; expected no, bf16 or fp16."
        )
    if name == "auto" and configured is None:
        name = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported(False) else "no"
    elif name == "auto":
        name = str(configured)
    elif configured not in {None, "no", name}:
        raise UsageError(
            f"accelerate's configuration has mixed_precision {configured!r}, and the option is {name!r}.",
            hint="Omit -o mixed_precision.",
        )
    if name == "fp16" and device.type == "cpu":
        raise TrainingError(
            "Training in fp16 needs a GPU, and this process trains on the CPU.",
            hint="Pass -o mixed_precision=bf16, or omit it.",
        )
    return name


def placing(options: ModelOptions, folder: Path) -> Mapping[str, Any]:
    """Return the keywords of `open_network`: precision, and the device map where the options name one.

    A quantised model is loaded where it will run, since it cannot be moved, with the precision of its checkpoint.
    Raises `UsageError` for a device map in a run of several processes: each would put its copy on all devices.
    """
    device = choose_device(options.device)
    weights = adapter_base(folder, options) if (folder / ADAPTER_CONFIG).is_file() else folder
    quantised = read_quantization(read_json(weights / "config.json")) is not None
    dtype = "auto" if quantised and options.dtype == "auto" else choose_dtype(options.dtype, device)
    if options.device_map is None:
        return {"dtype": dtype, "device_map": {"": str(device)}} if quantised else {"dtype": dtype}
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
        if getattr(network, "quantization_method", None) is not None:
            return network.eval(), device
        return network.to(device).eval(), device
    embeddings = network.get_input_embeddings()
    runs_on = getattr(getattr(embeddings, "_hf_hook", None), "execution_device", None)
    device = torch.device(embeddings.weight.device if runs_on is None else runs_on)
    return network.eval(), device
