"""Vyakarana: colorless-green treebanks and the labels of its tasks (Patil et al., MRL 2021)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from harness.data import Reader

__all__ = ["harness_register_grammars", "harness_register_readers"]


@hookimpl
def harness_register_grammars() -> Iterable[Traversable]:
    """Return the folder of the language definitions of this plugin: Hindi, Tamil, Urdu, Marathi."""
    from importlib.resources import files

    return [files("harness_vyakarana") / "grammars"]


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of the four tasks and of agreement items."""
    from harness_vyakarana.readers import READERS

    return READERS
