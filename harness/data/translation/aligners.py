"""The declaration of a word aligner, with its name and licence; it is opened when it is used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from harness.errors import ContractError, DataError, PluginError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPair:
    """The words of a sentence and of its translation."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two words that translate each other."""

    source: int
    """Number of the word in the source sentence, from 0."""
    target: int
    probability: float = 1.0
    """How sure the aligner is, in [0, 1]; 1 where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The links between the words of a pair, in the aligner's own order: the first link of a word may matter."""

    links: tuple[Link, ...]
    source_words: tuple[str, ...] | None = None
    """The words that the aligner saw, where it splits texts itself; None where it took those it was given."""
    target_words: tuple[str, ...] | None = None


@runtime_checkable
class AlignsWords(Protocol):
    """An opened aligner."""

    def align(self, pairs: Sequence[WordPair]) -> list[Alignment]:
        """Return one alignment per pair, in order; that of a pair does not depend on the others."""

    def identity(self) -> dict[str, str]:
        """Return the identity of its links: engine, weights digest, settings."""

    def close(self) -> None:
        """Free what it holds; a second call does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligner:
    """The declaration of one aligner; ``--aligner NAME:REF`` opens it.

    `target` names ``module:callable``, which is imported only then, is called with what follows the colon, and returns
    an `AlignsWords`. It raises `HarnessError` where the reference is of no use to it.
    """

    name: str
    target: str
    licence: str
    """SPDX identifier of the engine's licence."""
    summary: str
    reference: str
    """What follows the colon, for messages: ``ADAPTER:MODEL``, ``FILE``."""
    needs: tuple[str, ...] = ()
    """Import names of the packages that it needs besides ours."""
    install: str = ""
    """The command that installs them."""

    def open(self, reference: str) -> AlignsWords:
        """Return the opened aligner; raises `UsageError` without a reference and `PluginError` without its packages."""
        if not reference:
            raise UsageError(
                f"The aligner {self.name!r} needs a name: --aligner {self.name}:{self.reference}."
            )
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            raise PluginError(
                f"The aligner {self.name!r} needs the package {missing[0]!r}, which is not installed.",
                hint=f"Run: {self.install}, or use another one: --aligner own:hf:MODEL.",
            )
        module, _, attribute = self.target.partition(":")
        opened: Any = getattr(importlib.import_module(module), attribute)(reference)
        if not isinstance(opened, AlignsWords):
            missing = [name for name in ("align", "identity", "close") if not hasattr(opened, name)]
            raise ContractError(
                f"The aligner {self.name!r} opened an object without {' and '.join(f'{name}()' for name in missing)}."
            )
        return opened


def check_alignments(name: str, pairs: Sequence[WordPair], found: Sequence[Alignment]) -> None:
    """Raise where alignments do not fit the pairs that they answer.

    Raises:
        ContractError: For another number of alignments, or a probability outside of [0, 1].
        DataError: Where the aligner's words differ from those it was given, or a link names a word that is not there.
    """
    if len(found) != len(pairs):
        raise ContractError(f"The aligner {name!r} gave {len(found)} alignments for {len(pairs)} pairs.")
    for pair, alignment in zip(pairs, found, strict=True):
        sides = ((pair.source, alignment.source_words), (pair.target, alignment.target_words))
        for expected, actual in sides:
            if actual is not None and actual != expected:
                raise DataError(
                    f"The aligner {name!r} has other words than the model: {len(actual)} for "
                    f"{' '.join(expected)!r}, which has {len(expected)} here, {_first_difference(expected, actual)}.",
                    hint="Give it the words as they are here (--words space splits at spaces only).",
                )
        for link in alignment.links:
            if not (0 <= link.source < len(pair.source) and 0 <= link.target < len(pair.target)):
                raise DataError(
                    f"The aligner {name!r} links the words {link.source}-{link.target} of a pair that has "
                    f"{len(pair.source)} and {len(pair.target)} words: {' '.join(pair.source)!r} and "
                    f"{' '.join(pair.target)!r}.",
                    hint="Words are numbered from 0; align the words as they are here (see --words).",
                )
            if not 0 <= link.probability <= 1 + 1e-6:
                raise ContractError(
                    f"The aligner {name!r} gave the probability {link.probability}; expected 0 to 1."
                )


def _first_difference(own: Sequence[str], other: Sequence[str]) -> str:
    for expected, actual in zip(own, other, strict=False):
        if expected != actual:
            return f"the first that differs is {actual!r} for {expected!r}"
    return "one ends before the other"
