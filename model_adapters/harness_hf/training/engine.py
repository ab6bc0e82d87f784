"""A network and its optimiser on accelerate: alone, replicated over processes (DDP), or sharded (FSDP2).

Checkpoints hold names and tensors, not `accelerator.save_state`, which pickles optimiser and random states.
"""

from __future__ import annotations

import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
    gather,
    parse_flag_from_env,
    send_to_device,
)
from accelerate.utils.memory import clear_device_cache
from torch import distributed
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from transformers.optimization import Adafactor, get_scheduler
from transformers.trainer_pt_utils import get_parameter_names

from harness import TrainingError, UsageError
from harness.models import TrainingSettings

UNDECAYED = (r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)")
"""Names of weights that do not decay, as in transformers' Trainer."""


def make_optimizer(network: torch.nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return the optimiser of all weights that require a gradient; raises `TrainingError` where none does.

    AdamW is torch's, fused, with betas 0.9 and 0.999. Adafactor runs at the learning rate of the settings, neither
    relative to the step nor to the weights' size. Biases and normalisations do not decay. All as in
    transformers' Trainer.
    """
    name_parameters: Any = get_parameter_names  # untyped
    names = set(name_parameters(network, [torch.nn.LayerNorm], list(UNDECAYED)))
    trained = [(name, weight) for name, weight in network.named_parameters() if weight.requires_grad]
    groups: list[dict[str, Any]] = [
        {
            "params": [weight for name, weight in trained if name in names],
            "weight_decay": settings.weight_decay,
        },
        {"params": [weight for name, weight in trained if name not in names], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise TrainingError("There is nothing to train: all weights are frozen.")
    if settings.optimizer == "adafactor":
        make: Any = Adafactor  # untyped
        adafactor: torch.optim.Optimizer = make(
            groups, lr=settings.learning_rate, scale_parameter=False, relative_step=False
        )
        return adafactor
    return torch.optim.AdamW(groups, lr=settings.learning_rate, eps=settings.adam_epsilon, fused=True)


def learning_rate(
    settings: TrainingSettings, total: int, optimizer: torch.optim.Optimizer
) -> Callable[[int], float]:
    """Return the learning rate by step, counted from 0: up during the warm-up, then down to 0 or constant.

    These are `get_linear_schedule_with_warmup` and `get_constant_schedule_with_warmup` of transformers.
    """
    warmup = max(settings.warmup_steps, math.ceil(settings.warmup_share * total))
    name = "constant_with_warmup" if settings.lr_schedule == "constant" else "linear"
    make: Any = get_scheduler  # untyped
    [share, *_] = make(name, optimizer, num_warmup_steps=warmup, num_training_steps=total).lr_lambdas
    return lambda step: settings.learning_rate * float(share(step))


ENDED = 1
"""Exit status of a process that failed where it cannot report it."""


def training_device(device: torch.device) -> torch.device:
    """Return the one device that this process trains on; `choose_device` has given each of several its own GPU."""
    return torch.device("cuda", 0) if device == torch.device("cuda") else device


class TrainingProcesses:
    """The processes that torchrun or accelerate started, or this one alone."""

    def __init__(self, device: torch.device) -> None:
        several = distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if several else 0
        self.count = distributed.get_world_size() if several else 1
        self.device = device

    @property
    def is_main(self) -> bool:
        """Whether this process writes files."""
        return self.rank == 0

    def exchange(self, values: Sequence[float]) -> list[list[float]]:
        """Return the values of every process, by rank; all give equally many."""
        if self.count == 1:
            return [list(values)]
        rows: list[list[float]] = gather(
            torch.tensor([values], dtype=torch.float64, device=self.device)
        ).tolist()
        return rows

    def anywhere(self, flag: bool) -> bool:
        """Return whether `flag` is true in any process."""
        return any(row[0] for row in self.exchange([float(flag)]))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hold a piece of work that waits for no other process: all leave it together, or fail together.

        Raises the error of this process, and `TrainingError` where only another one failed.
        """
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        failed = [rank for rank, row in enumerate(self.exchange([float(error is not None)])) if row[0]]
        if error is not None:
            raise error
        if failed:
            raise TrainingError(
                f"Training stopped because process {failed[0]} failed; its own message says why."
            )

    @contextmanager
    def inseparable(self, explain: Callable[[Exception], str | None] = lambda error: None) -> Iterator[None]:
        """Hold a piece of work in which processes wait for each other.

        Where one of several fails, the others wait for it in a collective call and cannot be reached: it prints what
        `explain` returns, or its traceback, and ends, and its launcher ends the others.
        """
        try:
            yield
        except Exception as error:
            if self.count == 1:
                raise
            sys.stderr.write((explain(error) or traceback.format_exc()) + "\n")
            sys.stderr.flush()
            os._exit(ENDED)


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
