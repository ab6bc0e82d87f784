"""Linear heads on a backbone, networks with their heads opened to answer, and networks made for training."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from harness import AdapterError
from harness.models import Head, HeadSpec, TrainingSettings
from harness_hf.description import TEXT_ENCODERS
from harness_hf.fit_record import HEAD_NAME, DualPooling, require_record, weights_digest
from harness_hf.inference.word_vectors import pool
from harness_hf.loading import open_network, require_weights
from harness_hf.low_rank import add_low_rank, is_adapted, quantization, require_same_shape
from harness_hf.model_folder import ADAPTER_CONFIG, Pooling, adapter_base, read_config
from harness_hf.options import ModelOptions

if TYPE_CHECKING:
    from harness_hf.inference.session import ModelSession

OWN_HEADS = frozenset({Head.CLASSIFICATION, Head.TAGGING, Head.SPAN_EXTRACTION, Head.MULTIPLE_CHOICE})
DROPOUTS = ("classifier_dropout", "hidden_dropout_prob", "hidden_dropout", "embd_pdrop", "resid_pdrop")
"""Names in configurations, the first that has a number is used."""
USUAL_DROPOUT = 0.1
USUAL_SPREAD = 0.02
"""Standard deviation of new weights where the configuration has none."""


class HeadedNetwork(torch.nn.Module):
    """A backbone of `AutoModel`, dropout and one linear layer, which stays in float32.

    Classification and multiple choice read one vector of a sequence, pooled from the last hidden states; tagging and
    span extraction read all of them. The losses are those of transformers' classes.
    """

    def __init__(self, backbone: Any, head: Head, outputs: int, pooling: Pooling) -> None:
        super().__init__()
        self.backbone = backbone
        self.head_name, self.pooling = head, pooling
        config = backbone.config
        rates = (getattr(config, name, None) for name in DROPOUTS)
        self.dropout = torch.nn.Dropout(
            next((float(rate) for rate in rates if rate is not None), USUAL_DROPOUT)
        )
        self.head = torch.nn.Linear(int(config.get_text_config().hidden_size), outputs, dtype=torch.float32)
        spread = getattr(config, "initializer_range", None)
        torch.nn.init.normal_(self.head.weight, std=USUAL_SPREAD if spread is None else float(spread))
        torch.nn.init.zeros_(self.head.bias)
        self._no_split_modules = getattr(backbone, "_no_split_modules", None)
        known_inputs = inspect.signature(backbone.forward).parameters
        # A cache of keys and values is of no use to a head.
        self._further = {"use_cache": False} if "use_cache" in known_inputs else {}

    @classmethod
    def of(cls, backbone: Any, spec: HeadSpec, pooling: Pooling) -> HeadedNetwork:
        """Return the backbone with a new head for `spec`; its configuration names the labels."""
        name_labels(backbone.config, spec.labels)
        outputs = {Head.SPAN_EXTRACTION: 2, Head.MULTIPLE_CHOICE: 1}.get(spec.head, len(spec.labels))
        return cls(backbone, spec.head, outputs, pooling)

    @classmethod
    def read(cls, backbone: Any, head: Head, folder: Path) -> HeadedNetwork:
        """Return the backbone with the head in a folder; raises `AdapterError` for a damaged or another head."""
        labels = require_record(folder, head).labels
        weights, metadata = _read_head(folder / HEAD_NAME)
        width = int(backbone.config.get_text_config().hidden_size)
        shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        outputs = shapes.get("bias", (0,))[0]
        expected = {"weight": (outputs, width), "bias": (outputs,)}
        if metadata.get("head") != head.value or shapes != expected or metadata.get("pooling") not in POOLED:
            raise AdapterError(
                f"The file {str(folder / HEAD_NAME)!r} does not hold the {head.value} head of this model.",
                hint="Delete the folder; the model will be fitted again.",
            )
        name_labels(backbone.config, labels)
        network = cls(backbone, head, outputs, POOLED[metadata["pooling"]])
        network.head.load_state_dict(weights)
        return network

    @property
    def base_model(self) -> Any:
        """The network without the head."""
        return self.backbone

    @property
    def config(self) -> Any:
        """The configuration of the backbone."""
        return self.backbone.config

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the backbone."""
        precision: torch.dtype = self.backbone.dtype
        return precision

    @property
    def device(self) -> torch.device:
        """Where the head is."""
        return self.head.weight.device

    def get_input_embeddings(self) -> Any:
        """Return the embedding layer of the backbone."""
        return self.backbone.get_input_embeddings()

    def gradient_checkpointing_enable(self, **keywords: Any) -> None:
        """Recompute activations of the backbone in the backward pass."""
        self.backbone.gradient_checkpointing_enable(**keywords)

    def drawn_anew(self) -> HeadedNetwork:
        """Return a network of the same shape whose weights are drawn as its architecture initialises them."""
        backbone = type(self.backbone)(self.config)
        return HeadedNetwork(backbone, self.head_name, self.head.out_features, self.pooling)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
    ) -> Any:
        """Return loss and logits as transformers' class with this head does; the loss is None without targets.

        Inputs of multiple choice have the shape (batch, choices, length), all others (batch, length).
        """
        shape = input_ids.shape
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        flat = {name: tensor.reshape(-1, shape[-1]) for name, tensor in inputs.items()}
        states = self.backbone(**flat, **self._further).last_hidden_state
        if self.head_name in (Head.CLASSIFICATION, Head.MULTIPLE_CHOICE):
            states = pool(states, flat["attention_mask"].to(states.device), self.pooling)
        weight = self.head.weight
        logits = self.head(self.dropout(states.to(device=weight.device, dtype=weight.dtype)))
        if self.head_name is Head.SPAN_EXTRACTION:
            return _span_output(logits, start_positions, end_positions)
        if self.head_name is Head.MULTIPLE_CHOICE:
            logits = logits.reshape(shape[:-1])
        loss = None
        if labels is not None:
            targets = labels.to(logits.device).reshape(-1)
            loss = cross_entropy(logits.float().reshape(-1, logits.shape[-1]), targets)
        return OUTPUTS[self.head_name](loss=loss, logits=logits)

    def save_pretrained(self, directory: Path, state_dict: Mapping[str, torch.Tensor] | None = None) -> None:
        """Write the backbone, or only its low-rank matrices, and the head next to it.

        `state_dict` has the whole weights where those of the network are divided over processes.
        """
        weights = dict(self.state_dict() if state_dict is None else state_dict)
        head_weights = {
            name.removeprefix("head."): value for name, value in weights.items() if name.startswith("head.")
        }
        prefix = "backbone."
        save_backbone(
            self.backbone,
            directory,
            {
                name.removeprefix(prefix): value
                for name, value in weights.items()
                if name.startswith(prefix) and not name.startswith(f"{prefix}pooler.")
            },
        )
        save_file(
            {name: value.detach().float().cpu().contiguous() for name, value in head_weights.items()},
            Path(directory) / HEAD_NAME,
            metadata={"head": self.head_name.value, "pooling": self.pooling},
        )


POOLED: Mapping[str, Pooling] = {"cls": "cls", "mean": "mean", "last": "last"}
OUTPUTS: Mapping[Head, Any] = {
    Head.CLASSIFICATION: SequenceClassifierOutput,
    Head.TAGGING: TokenClassifierOutput,
    Head.MULTIPLE_CHOICE: MultipleChoiceModelOutput,
}


def name_labels(config: Any, labels: Sequence[str]) -> None:
    """Write the names of a head's outputs into a configuration, where it has names."""
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}


def save_backbone(backbone: Any, directory: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Write a network with its configuration; one with low-rank matrices writes those instead of its weights."""
    if is_adapted(backbone):
        backbone.config.save_pretrained(directory)
    backbone.save_pretrained(directory, state_dict=dict(weights))


def _span_output(logits: torch.Tensor, starts: torch.Tensor | None, ends: torch.Tensor | None) -> Any:
    start_logits, end_logits = (column.contiguous() for column in logits.unbind(dim=-1))
    loss = None
    if starts is not None and ends is not None:
        device = logits.device
        loss = (
            cross_entropy(start_logits.float(), starts.to(device))
            + cross_entropy(end_logits.float(), ends.to(device))
        ) / 2
    make: Any = QuestionAnsweringModelOutput
    return make(loss=loss, start_logits=start_logits, end_logits=end_logits)


def _read_head(path: Path) -> tuple[dict[str, torch.Tensor], Mapping[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}
            return weights, file.metadata() or {}
    except (OSError, SafetensorError, RuntimeError) as error:
        raise AdapterError(
            f"The file {str(path)!r} does not hold the head of a model.",
            hint="Delete the folder; the model will be fitted again.",
        ) from error


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


def load_trainable(
    session: ModelSession, spec: HeadSpec, settings: TrainingSettings, *, keep_head: bool
) -> Any:
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
    auto_class: Any, session: ModelSession, settings: TrainingSettings, extra: Mapping[str, Any] | None = None
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


def open_bare(session: ModelSession, settings: TrainingSettings) -> Any:
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


def head_pooling(session: ModelSession) -> Pooling:
    """Return how our own heads make one vector of a sequence.

    The last token of a decoder alone has seen the whole text. Encoders are read at the special piece before the text,
    or by their mean where there is none.
    """
    if session.reads_left_to_right:
        return "last"
    by_mean = session.network.config.model_type in MEAN_POOLED or not session.single.before
    return "mean" if by_mean else "cls"


def dual_pooling(session: ModelSession, settings: TrainingSettings) -> DualPooling:
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


def _needs_own_head(session: ModelSession, head: Head, settings: TrainingSettings, keep_head: bool) -> bool:
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


def _own_head(session: ModelSession, spec: HeadSpec, settings: TrainingSettings, keep_head: bool) -> Any:
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
