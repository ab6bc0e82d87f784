"""Networks with their heads: opened to answer, and made for training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
import transformers

from harness.models import Head, HeadSpec, TrainingSettings
from harness_hf.architecture import TEXT_ENCODERS
from harness_hf.fit_record import HEAD_NAME, DualPooling
from harness_hf.heads.network import OWN_HEADS, HeadedNetwork
from harness_hf.identity import weights_digest
from harness_hf.inference.template import SpecialTokens
from harness_hf.loading import open_network, require_weights
from harness_hf.low_rank import add_low_rank, quantization, require_same_shape
from harness_hf.model_folder import ADAPTER_CONFIG, Pooling, adapter_base, read_config
from harness_hf.options import ModelOptions

AUTO_CLASSES: Mapping[Head, Any] = {
    Head.CLASSIFICATION: transformers.AutoModelForSequenceClassification,
    Head.TAGGING: transformers.AutoModelForTokenClassification,
    Head.SPAN_EXTRACTION: transformers.AutoModelForQuestionAnswering,
    Head.MULTIPLE_CHOICE: transformers.AutoModelForMultipleChoice,
    Head.TEXT_TO_TEXT: transformers.AutoModelForSeq2SeqLM,
}
BARE = (None, Head.DUAL_ENCODER)
"""What a checkpoint without a layer of its own head is opened as."""
MEAN_POOLED = frozenset({"eurobert"})
"""Encoders whose first token is not trained to represent the text; transformers' own class takes the mean, too."""


class Trainable(Protocol):
    """The session of the model that training starts from."""

    ref: str
    folder: Path
    reads_left_to_right: bool
    single: SpecialTokens

    @property
    def options(self) -> ModelOptions:
        """The options of its adapter."""

    @property
    def network(self) -> Any:
        """Its network."""


def load_network(
    folder: Path, ref: str, head: Head | None, options: ModelOptions, placement: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Return the network and whether it has a trained pooler; `placement` is what `placing` returns.

    Raises `AdapterError` where weights are missing or of another shape: transformers would fill them at random and
    continue.
    """
    own_head = head if head in OWN_HEADS and (folder / HEAD_NAME).is_file() else None
    auto_class = bare_class(folder, options) if own_head or head in BARE else AUTO_CLASSES[head]
    network, information = open_network(auto_class, folder, ref, options, placement)
    missing = sorted(information["missing_keys"])
    poolers = [name for name in missing if "pooler" in name]
    if own_head is not None or head in BARE:
        missing = [name for name in missing if name not in poolers]
    require_weights(ref, missing)
    has_pooler = getattr(network.base_model, "pooler", None) is not None and not poolers
    return (HeadedNetwork.read(network, own_head, folder) if own_head else network), has_pooler


def load_trainable(session: Trainable, spec: HeadSpec, settings: TrainingSettings, *, keep_head: bool) -> Any:
    """Return a float32 network with the head of `spec` to train; the head is new unless `keep_head`.

    transformers' class is used where there is one. Decoders, low-rank adapters and other architectures get our own.
    """
    if spec.head in OWN_HEADS and _needs_own_head(session, spec.head, settings, keep_head):
        return _own_head(session, spec, settings, keep_head)
    auto_class = AUTO_CLASSES[spec.head]
    extra: dict[str, Any] = {"ignore_mismatched_sizes": not keep_head}
    if spec.labels:
        extra["id2label"] = dict(enumerate(spec.labels))
        extra["label2id"] = {label: index for index, label in enumerate(spec.labels)}
    if spec.head is Head.CLASSIFICATION:
        extra["problem_type"] = "single_label_classification"
    network, _ = open_trainable(auto_class, session, settings, extra)
    if not keep_head:
        _renew_head(network, auto_class)
    return network


def open_trainable(
    auto_class: Any, session: Trainable, settings: TrainingSettings, extra: Mapping[str, Any] | None = None
) -> tuple[Any, Mapping[str, Any]]:
    """Return a float32 network of the session's folder to train, and the problems that transformers found.

    With `lora_rank` only low-rank matrices can be trained: new ones, or those of an adapter's folder. Raises
    `TrainingError` where such a folder and the settings do not agree.
    """
    folder, ref, options = session.folder, session.ref, session.options
    keywords = {"dtype": torch.float32, **(extra or {})}
    if (folder / ADAPTER_CONFIG).is_file():
        require_same_shape(folder, settings)
        return open_network(auto_class, folder, ref, options, keywords, trainable=True)
    keywords |= quantization(settings.quantize)
    network, information = open_network(auto_class, folder, ref, options, keywords)
    if settings.lora_rank is not None:
        local = Path(ref).expanduser()
        base = (str(local.resolve()), None) if local.is_dir() else (ref, folder.name)
        add_low_rank(network, settings, *base)
    return network, information


def open_bare(session: Trainable, settings: TrainingSettings) -> Any:
    """Return a float32 network without a head to train, as `open_trainable` does; its pooler may be new."""
    network, information = open_trainable(bare_class(session.folder, session.options), session, settings)
    require_weights(session.ref, sorted(name for name in information["missing_keys"] if "pooler" not in name))
    return network


def bare_class(folder: Path, options: ModelOptions) -> Any:
    """Return the class of transformers that opens the network of a folder without a head.

    `AutoModel` opens a T5 with its decoder, which no head reads.
    """
    model_type = read_config(str(folder), options).config.get("model_type")
    return transformers.AutoModelForTextEncoding if model_type in TEXT_ENCODERS else transformers.AutoModel


def base_weights(folder: Path, settings: TrainingSettings) -> str:
    """Return the digest of the weights that an adapter is trained on, empty where all weights are saved."""
    if settings.lora_rank is None:
        return ""
    is_adapter = (folder / ADAPTER_CONFIG).is_file()
    return weights_digest(adapter_base(folder) if is_adapter else folder)


def head_pooling(session: Trainable) -> Pooling:
    """Return how our own heads make one vector of a sequence.

    The last token of a decoder alone has seen the whole text. Encoders are read at the special piece before the text,
    or by their mean where there is none.
    """
    if session.reads_left_to_right:
        return "last"
    by_mean = session.network.config.model_type in MEAN_POOLED or not session.single.before
    return "mean" if by_mean else "cls"


def dual_pooling(session: Trainable, settings: TrainingSettings) -> DualPooling:
    """Return how a dual encoder makes vectors: as the settings say, or without a pooler as `head_pooling` does.

    Decoders without one take the mean.
    """
    if settings.pooling != "pooler":
        return settings.pooling
    if session.reads_left_to_right:
        return "mean"
    config = session.network.config
    with torch.device("meta"):
        network = bare_class(session.folder, session.options).from_config(
            config, trust_remote_code=session.options.trust_remote_code
        )
    if getattr(network, "pooler", None) is not None:
        return "pooler"
    return "mean" if head_pooling(session) == "mean" else "cls"


def _needs_own_head(session: Trainable, head: Head, settings: TrainingSettings, keep_head: bool) -> bool:
    if session.reads_left_to_right or settings.lora_rank is not None:
        return True
    if keep_head:
        return (session.folder / HEAD_NAME).is_file()
    config, auto_class = session.network.config, AUTO_CLASSES[head]
    if config.model_type in TEXT_ENCODERS:
        return True
    declared = getattr(config, "auto_map", None) or {}
    if session.options.trust_remote_code and auto_class.__name__ in declared:
        return False
    return type(config) not in auto_class._model_mapping


def _own_head(session: Trainable, spec: HeadSpec, settings: TrainingSettings, keep_head: bool) -> Any:
    backbone = open_bare(session, settings)
    _drop_pooler(backbone)
    if keep_head and (session.folder / HEAD_NAME).is_file():
        network = HeadedNetwork.read(backbone, spec.head, session.folder)
    else:
        network = HeadedNetwork.of(backbone, spec, head_pooling(session))
    return network


def _drop_pooler(backbone: Any) -> None:
    """Exclude a pooler from training and, where the architecture allows it, from the network: no head reads it."""
    pooler = getattr(backbone, "pooler", None)
    if pooler is not None:
        pooler.requires_grad_(False)


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
