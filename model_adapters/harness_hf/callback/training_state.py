"""The state of a training: what an evaluation in its middle may change, put back afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

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
