"""A network that is being trained as a model of the harness: asked where it is, with the state of its training kept."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import transformers

from harness import AdapterError, CapabilityError, UsageError
from harness.models import (
    Adapter,
    AdapterEntry,
    AdapterOptions,
    Capability,
    ModelDescription,
    ModelReference,
    parse_options,
)
from harness.planning import Model
from harness_hf import harness_register_adapters
from harness_hf.causal.adapter import Causal
from harness_hf.causal.session import CausalSession
from harness_hf.description import read_architecture
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.encoder.heads import ADAPTERS, HEADS
from harness_hf.family import describe_any
from harness_hf.heads import name_labels
from harness_hf.inference.session import ModelSession
from harness_hf.loading import quiet_transformers
from harness_hf.model_folder import read_json
from harness_hf.options import CausalOptions, EncoderOptions

CONFIGURATIONS = ("config", "generation_config")
"""Attributes of networks, of which answers may set entries: the names of labels, ``use_cache``."""


@contextmanager
def kept_state(network: torch.nn.Module) -> Iterator[None]:
    """Put back after an evaluation what the next step of the training reads.

    These are all attributes of all modules, so training and evaluation mode, hooks, buffers that a forward pass made
    anew and what their configurations say; `requires_grad` and gradients; the random generators of Python, numpy and
    torch on every device. Weights are not copied: nothing that is asked of a model writes them.
    """
    with ExitStack() as stack:
        for module in network.modules():
            stack.callback(_attributes_of(module))
        for parameter in network.parameters():
            stack.callback(_gradient_of(parameter))
        for setter, state in _random_states():
            stack.callback(setter, state)
        # A weight that was cast within `torch.inference_mode` cannot be trained with.
        stack.callback(torch.clear_autocast_cache)
        yield


def _attributes_of(module: torch.nn.Module) -> Callable[[], None]:
    """Return the function that restores the attributes of a module, its buffers, hooks and configurations."""
    spaces = [vars(module)]
    spaces += [value for value in vars(module).values() if isinstance(value, dict)]
    spaces += [vars(value) for name in CONFIGURATIONS if hasattr(value := vars(module).get(name), "__dict__")]
    return partial(_put_back, [(space, dict(space)) for space in spaces])


def _put_back(spaces: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    for space, before in spaces:
        if space.keys() != before.keys() or any(space[name] is not before[name] for name in before):
            space.clear()
            space.update(before)


def _gradient_of(parameter: torch.nn.Parameter) -> Callable[[], None]:
    gradient, is_trained = parameter.grad, parameter.requires_grad

    def put_back() -> None:
        parameter.requires_grad_(is_trained)
        parameter.grad = gradient

    return put_back


def _random_states() -> list[tuple[Callable[[Any], None], Any]]:
    """Return by generator what sets its state, and the state."""
    states: list[tuple[Callable[[Any], None], Any]] = [
        (random.setstate, random.getstate()),
        (np.random.set_state, np.random.get_state()),
        (torch.set_rng_state, torch.get_rng_state()),
    ]
    if torch.cuda.is_available():
        states.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    if torch.backends.mps.is_available():
        states.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))
    return states


FOR_FOLDERS = (
    *("attn_implementation", "convert_weights", "device", "device_map", "dtype"),
    *("local_files_only", "revision", "trust_remote_code"),
)
"""Options that say how a folder is opened, which has happened already."""
NEEDS_A_FOLDER = frozenset({Capability.FITS, Capability.FILLS_MASKS})
"""What is done with copies that are read from files."""
WATCH = "Let the training save checkpoints, and evaluate them with: harness watch FOLDER --tasks ..."


class LoadedSession(ModelSession):
    """A session whose network stays where it is, and is that of a moment of a training."""

    moment: str

    def place(self, network: Any) -> tuple[Any, torch.device]:
        """Return the network ready to answer, and the device of its embeddings."""
        return network.eval(), network.get_input_embeddings().weight.device

    def file_identity(self) -> Mapping[str, str]:
        """Return the training and its step: the weights of no other moment are the same."""
        return {"weights": f"in memory, {self.moment}", "files": ""}

    def require_finite(self, values: Any, values_name: str) -> None:
        """Raise `AdapterError` where the model returned NaN or infinity."""
        try:
            super().require_finite(values, values_name)
        except AdapterError as error:
            error.hint = "Has the training diverged? Otherwise let it use float32 or bfloat16."
            raise


class LoadedEncoder(LoadedSession, EncoderSession):
    """The session of an encoder in memory."""


class LoadedDecoder(LoadedSession, CausalSession):
    """The session of a decoder in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedEntry(AdapterEntry):
    """The entry of one network in memory."""

    network: Any
    folder: Path
    """Has its configuration and its tokenizer."""
    moment: str
    """The training and its step."""

    def make_ready(self) -> None:
        """Do nothing: what opens the model is imported already."""

    def open(self, description: ModelDescription, options: AdapterOptions) -> Adapter:
        """Return the adapter of the network as it is now; raises `AdapterError`."""
        if isinstance(options, CausalOptions):
            decoder = LoadedDecoder(
                ref=description.ref, folder=self.folder, options=options, network=self.network
            )
            decoder.moment = self.moment
            return Causal(decoder)
        assert isinstance(options, EncoderOptions)
        architecture = read_architecture(read_json(self.folder / "config.json"))
        head = None if architecture.regression else architecture.head
        encoder = LoadedEncoder(
            ref=description.ref, folder=self.folder, options=options, head=head, network=self.network
        )
        encoder.moment = self.moment
        name_labels(encoder.network.config, options.label_names)
        return (Encoder if head is None else ADAPTERS[head])(encoder, None, HEADS)

    def open_tokenizer(self, description: ModelDescription, options: AdapterOptions) -> Any:
        """Return the function that counts the tokens of texts."""
        return AdapterEntry.open_tokenizer(self, replace(description, ref=str(self.folder)), options)

    def at(self, moment: str) -> Self:
        """Return the entry of a later moment of the training."""
        return replace(self, moment=moment)


def bare_network(network: Any) -> Any:
    """Return the model of transformers within what is trained: that of peft has it with its low-rank matrices.

    Raises `CapabilityError` for another class, an encoder-decoder, and virtual tokens in front of the texts.
    """
    peft_config = getattr(network, "active_peft_config", None)
    if getattr(peft_config, "is_prompt_learning", False):
        raise CapabilityError(
            "A model with trained virtual tokens cannot be evaluated in memory.", hint=WATCH
        )
    inner = network if peft_config is None else network.get_base_model()
    if not isinstance(inner, transformers.PreTrainedModel) or inner.config.is_encoder_decoder:
        raise CapabilityError(
            f"A model of the class {type(inner).__name__!r} cannot be evaluated in memory; encoders and decoders of "
            "transformers can.",
            hint=WATCH,
        )
    return inner


def describe_loaded(network: Any, tokenizer: Any, folder: Path, options: Mapping[str, str]) -> Model:
    """Return a network of `bare_network` as a model that can be planned; `folder` gets configuration and tokenizer.

    Raises `UsageError` for options that say how a folder is opened, and what describing that folder raises.
    """
    rejected = sorted({*options} & {*FOR_FOLDERS})
    if rejected:
        raise UsageError(
            f"The option {rejected[0]!r} says how a model is opened, and the one that is trained is open already."
        )
    config = copy.deepcopy(network.config)
    config.architectures = [type(network).__name__]
    with quiet_transformers():
        config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    entries = {entry.name: entry for entry in harness_register_adapters()}
    description = describe_any(str(folder), parse_options(entries["hf"], options))
    entry = entries[description.adapter]
    if entry.name == "hf-causal" and network.get_output_embeddings() is None:
        raise CapabilityError(
            f"A decoder of the class {type(network).__name__!r} writes no text, so it cannot be evaluated in memory.",
            hint=WATCH,
        )
    name = Path(network.name_or_path).name or type(network).__name__
    declared = {item.name: getattr(entry, item.name) for item in fields(AdapterEntry)}
    return Model(
        reference=ModelReference(scheme="hf", ref=name),
        entry=LoadedEntry(**declared, network=network, folder=folder, moment="before its training"),
        options=parse_options(entry, options),
        description=replace(
            description,
            ref=name,
            offers=description.offers - NEEDS_A_FOLDER,
            after_fit={},
            fits_on_request=False,
            parameters=int(network.num_parameters()),
            fault="",
        ),
    )
