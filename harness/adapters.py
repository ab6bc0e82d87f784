"""How model adapters are declared, described and opened.

A plugin declares an `AdapterEntry` with dotted targets; nothing heavy is imported until a model is opened.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.capabilities import Adapter, ModelDescription
from harness.errors import AdapterError, MissingExtraError, UnknownNameError, UsageError

__all__ = ["AdapterEntry", "AdapterOptions", "ModelReference", "parse_options"]


class AdapterOptions(BaseModel):
    """The options of one adapter; a plugin subclasses it. Strings from ``-o key=value`` are converted."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReference:
    """What follows ``--model``: ``hf:models/e5-small`` is scheme ``hf`` and ref ``models/e5-small``."""

    scheme: str
    ref: str

    @classmethod
    def parse(cls, text: str) -> ModelReference:
        """Return the two parts of ``SCHEME:REF``; raises `UsageError` where one is missing."""
        scheme, colon, ref = text.partition(":")
        if not colon or not scheme or not ref:
            raise UsageError(
                f"The model {text!r} does not say which adapter opens it; expected ADAPTER:NAME_OR_PATH.",
                hint=f"Did you mean 'hf:{text.strip(':')}'? Run 'harness models' to see the adapters.",
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
    """What stands before the colon of ``--model``: ``hf``, ``hf-encoder``, ``baseline``."""
    target: str
    describe: str
    options: str
    summary: str
    """One line for ``harness models``."""
    examples: tuple[str, ...] = ()
    """Values of ``--model`` that a user can try."""
    extra: str | None = None
    """The extra that installs what the adapter needs."""

    def options_model(self) -> type[AdapterOptions]:
        """Return the pydantic model of the options."""
        model = _load(self.options, self)
        assert isinstance(model, type) and issubclass(model, AdapterOptions)
        return model

    def describe_model(self, ref: str, options: AdapterOptions) -> ModelDescription:
        """Return what the model offers, without loading it."""
        function: Callable[[str, AdapterOptions], ModelDescription] = _load(self.describe, self)
        return function(ref, options)

    def open(self, description: ModelDescription, options: AdapterOptions) -> Adapter:
        """Load the model; raises `MissingExtraError` or `AdapterError`."""
        factory: Callable[[ModelDescription, AdapterOptions], Adapter] = _load(self.target, self)
        adapter = factory(description, options)
        if not isinstance(adapter, Adapter):
            raise AdapterError(f"The adapter {self.name!r} opened something that lacks identity() or close().")
        return adapter


def _load(target: str, entry: AdapterEntry) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or entry.extra is None or module_name.split(".")[0] == error.name.split(".")[0]:
            raise
        raise MissingExtraError(f"The adapter {entry.name!r}", entry.extra, error.name) from error


def parse_options(entry: AdapterEntry, given: Mapping[str, str]) -> AdapterOptions:
    """Return the adapter's validated options from ``key=value`` pairs; raises `UsageError` naming near keys."""
    model = entry.options_model()
    known = sorted(model.model_fields)
    for key in given:
        if key not in known:
            raise UnknownNameError(
                f"option of the adapter {entry.name!r}",
                key,
                known,
                hint=f"Run 'harness models {entry.name}' to see its options.",
            )
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"The option {name!r} of the adapter {entry.name!r} got {first.get('input')!r}: {first['msg']}.",
            hint=f"Run 'harness models {entry.name}' to see its options.",
        ) from error
