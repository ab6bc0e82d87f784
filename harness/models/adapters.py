"""How model adapters are declared, described and opened, and whether the Hub with their models can be reached.

A plugin declares an `AdapterEntry` with dotted targets; nothing heavy is imported until a model is opened.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import AdapterError, UsageError, near_names, require_extra

if TYPE_CHECKING:
    from harness.models.capabilities import Adapter, ModelDescription
    from harness.models.options import AdapterOptions

_HUB_TIMEOUT = 3.0
_reached: set[str] = set()
"""Endpoints that answered in this process: later failures are left to the retries of the Hub's client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReference:
    """Value of ``--model``: ``hf:models/e5-small`` is scheme ``hf`` and ref ``models/e5-small``."""

    scheme: str
    ref: str

    @classmethod
    def parse(cls, text: str, known: Collection[str] = ()) -> ModelReference:
        """Return the two parts of ``SCHEME:REF``; raises `UsageError` where one is missing.

        `known` are references that a bare name may be the end of, or the adapter.
        """
        scheme, colon, ref = text.partition(":")
        if not colon or not scheme or not ref:
            names = {reference.partition(":")[2]: reference for reference in known}
            of_adapter = [reference for reference in known if reference.startswith(f"{scheme}:")]
            near = of_adapter or [names[name] for name in near_names(text, names, limit=1)]
            meant = (
                ""
                if not scheme or (colon and not of_adapter)
                else f"Did you mean {near[0] if near else f'hf:{text}'!r}? "
            )
            raise UsageError(
                f"The model {text!r} is not of the form ADAPTER:NAME_OR_PATH.",
                hint=f"{meant}Run 'harness models' to see the adapters.",
            )
        return cls(scheme=scheme, ref=ref)

    def __str__(self) -> str:
        """Return the text that was parsed."""
        return f"{self.scheme}:{self.ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterEntry:
    """The declaration of one adapter.

    `target` names ``module:callable``; it is called as ``callable(description, options)`` and returns an
    `Adapter`. `describe` names ``module:callable``, called as ``callable(ref, options)``; it reads only small
    JSON, imports no model library, and may return the name of another adapter (``hf`` -> ``hf-encoder``).
    `options` names ``module:AdapterOptions subclass``.
    """

    name: str
    """The part before the colon of ``--model``: ``hf``, ``hf-encoder``, ``baseline``."""
    target: str
    describe: str
    options: str
    summary: str
    """One line for ``harness models``."""
    examples: tuple[str, ...] = ()
    """Values of ``--model`` that a user can try."""
    baselines: tuple[str, ...] = ()
    """Values of ``--model`` that ``--with-baselines`` runs next to any model."""
    extra: str | None = None
    """The extra that installs what the adapter needs."""
    serve: str | None = None
    """``module:callable`` of an adapter whose models can be shared by processes, as a server.

    It is called as ``callable(ref, options, host, key)`` on the machine that is to serve the model, and returns a
    context manager: it starts the server at the address `host` of that machine, yields what follows ``NAME:`` in
    ``--model`` for those who use it, and ends it. They need the key, in the variable that the option ``key_env`` names.
    """
    tokenizer: str | None = None
    """``module:callable``, called as ``callable(description, options)``: returns a function from texts to their
    numbers of tokens, by files on this machine and without opening the model; None where they are not here."""
    fetch: str | None = None
    """``module:callable``, called as ``callable(description, options)``: downloads the model's files and returns their
    folder, or None where this model has none. An adapter without it has nothing to download."""

    check: str | None = None
    """``module:callable``, called as ``callable(ref, options)``: tries a tiny random model of the same architecture.

    It returns texts by what was tried, ``works`` for what works; it is for ``harness models check``."""
    callbacks: tuple[str, ...] = ()
    """``module:class`` of what training loops call; `harness.callbacks` offers each by the name of its class."""

    def load(self, target: str) -> Any:
        """Return the object that a ``module:attribute`` of this entry names; raises `MissingExtraError`."""
        module_name, _, attribute = target.partition(":")
        with self._missing_extra_named(target):
            return getattr(importlib.import_module(module_name), attribute)

    def _missing_extra_named(self, target: str) -> AbstractContextManager[None]:
        return require_extra(f"The adapter {self.name!r}", self.extra, target)

    def describe_model(self, ref: str, options: AdapterOptions) -> ModelDescription:
        """Return the description of the model, not loaded; raises `MissingExtraError` where it must be downloaded."""
        function: Callable[[str, AdapterOptions], ModelDescription] = self.load(self.describe)
        with self._missing_extra_named(self.describe):
            return function(ref, options)

    def open_tokenizer(
        self, description: ModelDescription, options: AdapterOptions
    ) -> Callable[[Sequence[str]], list[int]] | None:
        """Return the function that counts the tokens of texts; None where the tokenizer is not on this machine."""
        return None if self.tokenizer is None else self.load(self.tokenizer)(description, options)

    def fetch_model(self, description: ModelDescription, options: AdapterOptions) -> Path | None:
        """Return the folder with the model's files, downloaded if needed; None where there is nothing to download."""
        if self.fetch is None:
            return None
        function: Callable[[ModelDescription, AdapterOptions], Path | None] = self.load(self.fetch)
        with self._missing_extra_named(self.fetch):
            return function(description, options)

    def check_model(self, ref: str, options: AdapterOptions) -> dict[str, str]:
        """Return the results of a tiny random model like this one; raises `UsageError` if the adapter makes none."""
        if self.check is None:
            raise UsageError(f"The adapter {self.name!r} makes no tiny models to check.")
        with self._missing_extra_named(self.check):
            results: dict[str, str] = self.load(self.check)(ref, options)
        return results

    def make_ready(self) -> None:
        """Import what opens a model; raises `MissingExtraError`."""
        is_new = self.target.partition(":")[0] not in sys.modules
        with gc_paused():
            self.load(self.target)
            if is_new:
                gc.freeze()  # code stays: no later search visits it

    def open(self, description: ModelDescription, options: AdapterOptions) -> Adapter:
        """Load the model; raises `MissingExtraError` or `AdapterError`."""
        with gc_paused():
            factory: Callable[[ModelDescription, AdapterOptions], Adapter] = self.load(self.target)
            with self._missing_extra_named(self.target):
                adapter = factory(description, options)
        missing = [name for name in ("identity", "close") if not hasattr(adapter, name)]
        if missing:
            raise AdapterError(
                f"The adapter {self.name!r} opened an object without {' and '.join(f'{name}()' for name in missing)}."
            )
        return adapter


@contextmanager
def gc_rare() -> Iterator[None]:
    """Search for cyclic garbage after 50,000 new objects, not 700: a chunk of items makes many, which all stay."""
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Put off the search for cyclic garbage.

    The import of a network's code makes a million objects that stay, and so do the cells of a plan; visiting them again
    and again takes a fifth of the time between the command and the first item.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def hub_is_unreachable() -> bool:
    """Return whether no connection to the Hub can be opened; downloads then use only what is on this machine.

    The client repeats a failed connection five times, with 23 s of waiting (``http_backoff`` of huggingface_hub).
    An answer of any status, and a slow one, counts as reachable.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return True
    if constants.ENDPOINT in _reached:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_TIMEOUT)
    except Exception as error:
        # Of httpx, or of requests below version 1 of the client.
        return any(
            cls.__name__ in {"ConnectError", "ConnectionError"} for cls in type(error).__mro__
        ) and not any("Timeout" in cls.__name__ for cls in type(error).__mro__)
    _reached.add(constants.ENDPOINT)
    return False
