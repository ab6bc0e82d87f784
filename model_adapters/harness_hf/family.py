"""The scheme ``hf``: follow a model's configuration to the adapter of its family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import create_model
from pydantic.fields import FieldInfo

from harness import CapabilityError
from harness.models import (
    Adapter,
    AdapterEntry,
    AdapterOptions,
    ModelDescription,
    option_meanings,
    options_model,
    parse_options,
)
from harness_hf import harness_register_adapters
from harness_hf.description import ADAPTERS, Family, architecture_of
from harness_hf.model_folder import read_config
from harness_hf.options import ModelOptions


def _entries() -> Mapping[str, AdapterEntry]:
    return {entry.name: entry for entry in harness_register_adapters()}


def _all_fields() -> dict[str, Any]:
    """Return every option of every family, unread: the adapter that a model leads to reads them."""
    fields: dict[str, Any] = {}
    for name, entry in _entries().items():
        if name != "hf":
            model = options_model(entry)
            for key, meaning in option_meanings(model).items():
                default = model.model_fields[key].default
                fields.setdefault(key, (Any, FieldInfo(default=default, description=meaning)))
    return fields


AnyFamilyOptions = create_model(
    "AnyFamilyOptions",
    __base__=AdapterOptions,
    __doc__="Options of ``hf``: those of every family. The adapter that a model leads to checks them.",
    **_all_fields(),
)


def describe_any(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the description by the adapter of the model's family; it names that adapter.

    Raises what that adapter's own description raises, `UsageError` for an option that it does not have, and
    `CapabilityError` for a family without an adapter here.
    """
    fields = options.model_dump(include=options.model_fields_set)
    entries = _entries()
    family = architecture_of(read_config(ref, model_options(options))).family
    name = ADAPTERS[family or Family.ENCODER][0]  # which says that it does not know the type
    if name not in entries:
        raise CapabilityError(
            f"The model {ref!r} is a {family}, and the adapter {name!r} is not installed.",
            hint="Run 'harness models' to see which adapters are.",
        )
    return entries[name].describe_model(ref, parse_options(entries[name], fields))


def model_options(options: AdapterOptions) -> ModelOptions:
    """Return the options that all families share, checked; raises `UsageError`."""
    fields = options.model_dump(include=options.model_fields_set & ModelOptions.model_fields.keys())
    parsed = parse_options(replace(_entries()["hf"], options="harness_hf.options:ModelOptions"), fields)
    assert isinstance(parsed, ModelOptions)
    return parsed


def open_any(description: ModelDescription, options: AdapterOptions) -> Adapter:
    """Load a model that `describe_any` described, with the adapter that it named."""
    entry = _entries()[description.adapter]
    fields = options.model_dump(include=options.model_fields_set)
    return entry.open(description, parse_options(entry, fields))
