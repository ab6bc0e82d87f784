"""The package ``simalign`` as an aligner; it is imported when it is first used.

Jalili Sabet, Dufter, Yvon and Schütze (2020), SimAlign: high quality word alignments without parallel training data
using static and contextualized embeddings.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from typing import Any, Final

from harness import Alignment, Link, PluginError, UnknownNameError, WordPair

__all__ = ["METHODS", "SimAligner", "open_simalign"]

METHODS: Final = {"inter": "a", "mwmf": "m", "itermax": "i"}
"""Its names of the methods argmax, match and itermax, and their letters."""


def open_simalign(reference: str) -> SimAligner:
    """Return the aligner of ``MODEL`` or ``MODEL@METHOD`` (default itermax); raises `PluginError` on failure."""
    model, _, method = reference.partition("@")
    method = method or "itermax"
    if method not in METHODS:
        raise UnknownNameError("method of simalign", method, METHODS)
    try:
        engine: Any = importlib.import_module("simalign").SentenceAligner(
            model=model,
            token_type="bpe",  # noqa: S106
            matching_methods=METHODS[method],
        )
    except Exception as error:
        raise PluginError(
            f"The aligner 'simalign' cannot open {model!r}: {type(error).__name__}: {error}."
        ) from error
    return SimAligner(engine, model, method)


class SimAligner:
    """Asks SimAlign for the links of words; every link has probability 1."""

    def __init__(self, engine: Any, model: str, method: str) -> None:
        self._engine = engine
        self._model = model
        self._method = method

    def identity(self) -> dict[str, str]:
        """Return what the links depend on."""
        return {
            "aligner": "simalign",
            "aligner.version": importlib.metadata.version("simalign"),
            "aligner.model": self._model,
            "aligner.method": self._method,
        }

    def close(self) -> None:
        """Free the model."""
        self._engine = None

    def align(self, pairs: Sequence[WordPair]) -> list[Alignment]:
        """Return one alignment per pair; a pair with an empty side has no links."""
        return [self._aligned(pair) for pair in pairs]

    def _aligned(self, pair: WordPair) -> Alignment:
        if not pair.source or not pair.target:
            return Alignment(links=())
        found = self._engine.get_word_aligns(list(pair.source), list(pair.target))[self._method]
        return Alignment(links=tuple(Link(source=one, target=other) for one, other in sorted(found)))
