"""A network and its optimiser on accelerate: alone, replicated over processes (DDP), or sharded (FSDP2).

Checkpoints hold names and tensors, not `accelerator.save_state`, which pickles optimiser and random states.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import (
    DistributedDataParallelKwargs,
    DistributedType,
    FullyShardedDataParallelPlugin,
    GradientAccumulationPlugin,
    parse_flag_from_env,
    send_to_device,
)
from accelerate.utils.memory import clear_device_cache
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from transformers.optimization import Adafactor

from harness import TrainingError, UsageError
from harness.models import TrainingSettings
from harness_hf.training.optimization import learning_rate, make_optimizer
from harness_hf.training.processes import TrainingProcesses

UNSUPPORTED = {
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "a parallelism_config",
}
WRAPPER = "_checkpoint_wrapped_module."
"""What activation checkpointing puts into names."""

COLUMNS, STEP = "exp_avg_sq_col", "step"
"""What Adafactor keeps for the columns of a weight, whose rows are divided; AdamW's count of steps, a plain tensor."""


class NotFiniteError(TrainingError):
    """A loss or a gradient is not finite; no weight has been changed by it."""


class Engine:
    """Trains one network as accelerate's own settings and the environment of its launcher say."""

    def __init__(
        self,
        network: Any,
        settings: TrainingSettings,
        total: int,
        processes: TrainingProcesses,
        precision: str,
    ) -> None:
        self.network = network.train()
        self.processes = processes
        self.accelerator = _open_accelerator(processes, precision)
        self.is_sharded = bool(self.accelerator.is_fsdp2)
        modules = network.modules() if self.is_sharded else ()
        configs: list[Any] = [getattr(module, "config", None) for module in modules]
        # A layer that is run again for its gradient would find its own keys in the cache.
        self._caching = list(
            {id(config): config for config in configs if getattr(config, "use_cache", False)}.values()
        )
        self._set_caching(False)
        if self.is_sharded:
            _merge_embeddings(network)
            _choose_layers(network, self.accelerator.state.fsdp_plugin)
        optimizer = make_optimizer(network, settings)
        self._max_norm = settings.max_grad_norm
        self._learning_rate = learning_rate(settings, total, optimizer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # accelerate's hints on settings that the user did not make
            self.model, self._prepared = self.accelerator.prepare(network, optimizer)
        self.optimizer = self._prepared.optimizer
        for module in network.modules():
            if isinstance(module, CheckpointWrapper):
                # accelerate would draw another dropout for the backward pass than for the forward pass.
                module.checkpoint_fn = partial(module.checkpoint_fn, preserve_rng_state=True)
        if self.is_sharded and isinstance(self.optimizer, Adafactor):
            self._spread_factors()

    @property
    def is_replicated(self) -> bool:
        """Whether every process has the whole network, and gradients are averaged in the backward pass."""
        return isinstance(self.model, torch.nn.parallel.DistributedDataParallel)

    def place(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return a batch, which may hold batches, with its tensors on the device."""
        placed: dict[str, Any] = send_to_device(dict(batch), self.processes.device)
        return placed

    def expect_unused(self) -> None:
        """Let replicas agree on weights without a gradient, where a pass left some; all processes call it."""
        is_unused = any(weight.grad is None for weight in self._trained())
        if self.is_replicated and self.processes.anywhere(is_unused):
            self.accelerator.ddp_handler.find_unused_parameters = True
            bare = self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)
            self.model = self.accelerator.prepare_model(bare)

    def summing(self, *, last: bool) -> AbstractContextManager[None]:
        """Return the context of a forward and backward pass; gradients are exchanged in the last one of a step.

        A sharded network exchanges them every time: otherwise each process would hold those of all weights.
        """
        if last or self.is_sharded:
            return nullcontext()
        context: AbstractContextManager[None] = self.accelerator.no_sync(self.model)
        return context

    def clear(self) -> None:
        """Forget all gradients."""
        self.optimizer.zero_grad(set_to_none=True)

    def free(self) -> None:
        """Forget all gradients and give memory back."""
        self.clear()
        clear_device_cache(garbage_collection=True)

    def clip(self) -> float | None:
        """Clip the gradients and return their norm; None where nothing is clipped, or a scaler looks after it."""
        if self._max_norm <= 0:
            return None
        # accelerate compares them with those of a sharded network.
        clipped = list(self.model.parameters()) if self.is_sharded else self._trained()
        norm = self.accelerator.clip_grad_norm_(clipped, self._max_norm)
        return None if self.accelerator.scaler is not None else float(local(norm, full=True))

    def update(self, step: int) -> None:
        """Take the step with this number, counted from 0."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(step)
        self._prepared.step()
        self.clear()

    def _trained(self) -> list[torch.nn.Parameter]:
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def weights(self, *, trained: bool = True) -> dict[str, torch.Tensor]:
        """Return the weights that are trained, or all with the buffers, by name; all processes call it.

        Those of a sharded network are whole in the main process, and the others return nothing.
        """
        tensors = [(name, tensor) for name, tensor in self._named() if tensor.requires_grad or not trained]
        if not trained:
            saved = self.network.state_dict()
            tensors += [(name, tensor) for name, tensor in self.network.named_buffers() if name in saved]
        return self._whole(tensors)

    def optimizer_state(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Return the tensors and the numbers of the optimiser's state, by name of the weight and of the value."""
        values = {
            f"{name}:{key}": value
            for name, weight in self._named()
            for key, value in self.optimizer.state.get(weight, {}).items()
        }
        tensors = [(name, value) for name, value in values.items() if isinstance(value, torch.Tensor)]
        numbers = {name: value for name, value in values.items() if not isinstance(value, torch.Tensor)}
        scaler = self.accelerator.scaler
        return self._whole(tensors), {"values": numbers, "scaler": scaler.state_dict() if scaler else {}}

    def put_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Put whole weights into the network; raises `TrainingError` for one that it does not have."""
        parameters = dict(self._named())
        unknown = sorted(weights.keys() - parameters.keys())
        if unknown:
            raise TrainingError(
                f"A checkpoint has the weight {unknown[0]!r}, which the network does not have."
            )
        with torch.no_grad():
            for name, value in weights.items():
                parameters[name].copy_(_spread(value, parameters[name]))

    def put_optimizer_state(self, tensors: Mapping[str, torch.Tensor], numbers: Mapping[str, Any]) -> None:
        """Restore what `optimizer_state` returned, in any number of processes, sharded or not."""
        parameters = dict(self._named())
        for key, value in [*tensors.items(), *numbers["values"].items()]:
            name, _, kind = key.rpartition(":")
            parameter = parameters[name]
            is_tensor = isinstance(value, torch.Tensor)
            self.optimizer.state[parameter][kind] = _spread(value, parameter, kind) if is_tensor else value
        if numbers["scaler"] and self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(numbers["scaler"])

    def close(self) -> Any:
        """Return the network without what accelerate put around it."""
        network = self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)
        self.clear()
        self.accelerator.free_memory()
        self._set_caching(True)
        return network

    def _set_caching(self, value: bool) -> None:
        for config in self._caching:
            config.use_cache = value

    def _spread_factors(self) -> None:
        """Divide the rows and columns of Adafactor's second moments as its weights are; it makes them plain tensors."""
        for weight in self._trained():
            if weight.ndim > 1:
                shapes = {"exp_avg_sq_row": weight.shape[:-1], COLUMNS: weight.shape[:-2] + weight.shape[-1:]}
                factors = {name: _spread(torch.zeros(shape), weight, name) for name, shape in shapes.items()}
                self.optimizer.state[weight] = {"step": 0, **factors, "RMS": 0}

    def _named(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        for module in self.network.modules():
            if isinstance(module, FSDPModule):
                module.reshard()  # the last ones of a forward pass without a backward pass are whole
        for name, weight in self.network.named_parameters():
            yield name.replace(WRAPPER, ""), weight

    def _whole(self, tensors: Iterable[tuple[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        weights = {}
        for name, tensor in tensors:
            full = local(tensor, full=True)
            if self.processes.is_main:
                weights[name] = full.detach().cpu()
        return weights


def _merge_embeddings(network: torch.nn.Module) -> None:
    """Make one module of several with the same weight, as T5 has them: torch shards a weight in one place only."""
    embeddings: dict[tuple[type, int], torch.nn.Module] = {}
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Embedding):
                setattr(parent, name, embeddings.setdefault((type(child), id(child.weight)), child))


def _choose_layers(network: Any, plugin: FullyShardedDataParallelPlugin) -> None:
    """Name the layers to shard where the user did not; accelerate shards embeddings on their own."""
    classes = {type(module).__name__: module for module in network.modules()}
    layers = [name for name in getattr(network, "_no_split_modules", None) or () if name in classes]
    if plugin.transformer_cls_names_to_wrap is None and layers:
        embedding = {id(weight) for weight in network.base_model.get_input_embeddings().parameters()}
        plugin.transformer_cls_names_to_wrap = [
            name for name in layers if not embedding & {id(weight) for weight in classes[name].parameters()}
        ]


def local(tensor: torch.Tensor, *, full: bool = False) -> torch.Tensor:
    """Return this process's part of a tensor that may be sharded, or the whole, for which all processes call it."""
    if not isinstance(tensor, DTensor):
        return tensor
    return tensor.full_tensor() if full else tensor.to_local()


def _spread(value: torch.Tensor, weight: torch.Tensor, kind: str = "") -> torch.Tensor:
    """Return a whole weight, or value of the optimiser's state, as the weight in use is placed and divided."""
    device = local(weight).device
    if not isinstance(weight, DTensor) or kind == STEP:
        return value.to(device)
    mesh, divided = weight.device_mesh, value.ndim > 0 and kind != COLUMNS
    placements = weight.placements if divided else [Replicate()] * mesh.ndim
    shard = distribute_tensor(value.to(mesh.device_type), mesh, placements, src_data_rank=None).to_local()
    return DTensor.from_local(
        shard.to(device), mesh, placements, run_check=False, shape=value.shape, stride=value.stride()
    )


def _open_accelerator(processes: TrainingProcesses, precision: str) -> Accelerator:
    """Return the accelerator of a training, which another one's settings do not reach.

    Raises `UsageError` for ways of accelerate that are not supported.
    """
    sharded = parse_flag_from_env("ACCELERATE_USE_FSDP")
    unsupported = [name for variable, name in UNSUPPORTED.items() if parse_flag_from_env(variable)]
    if sharded and os.environ.get("FSDP_VERSION", "1") != "2":
        unsupported.append("the first version of FSDP")
    if unsupported:
        raise UsageError(
            f"accelerate's configuration asks for {unsupported[0]}, which training does not support.",
            hint="Use distributed_type: FSDP with fsdp_version: 2, which shards weights, gradients and optimiser.",
        )
    cpu = processes.device.type == "cpu"
    AcceleratorState._reset_state(reset_partial_state=processes.count == 1)
    plugin = None
    if sharded and processes.count > 1:
        PartialState().distributed_type = DistributedType.MULTI_CPU if cpu else DistributedType.MULTI_GPU
        plugin = FullyShardedDataParallelPlugin(cpu_ram_efficient_loading=False)
    accelerator = Accelerator(
        cpu=cpu,
        mixed_precision=precision,
        fsdp_plugin=plugin,
        gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
        kwargs_handlers=[
            DistributedDataParallelKwargs(broadcast_buffers=False, gradient_as_bucket_view=True)
        ],
    )
    if plugin is not None and cpu:
        # accelerate shards on GPUs only; torch does on CPUs as well.
        accelerator.state.distributed_type = DistributedType.FSDP
        accelerator.state.fsdp_plugin = plugin
        if precision != "no":
            plugin.set_mixed_precision(precision)
    return accelerator
