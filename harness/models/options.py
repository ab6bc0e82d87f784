"""The options of adapters: pydantic models filled from ``-o key=value``."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import UnknownNameError, UsageError
from harness.models.adapters import AdapterEntry

__all__ = ["AdapterOptions", "options_model", "parse_options"]


class AdapterOptions(BaseModel):
    """The options of one adapter; a plugin subclasses it. Strings from ``-o key=value`` are converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def options_model(entry: AdapterEntry) -> type[AdapterOptions]:
    """Return the pydantic model that the entry names."""
    model = entry.load(entry.options)
    assert isinstance(model, type) and issubclass(model, AdapterOptions)
    return model


def parse_options(entry: AdapterEntry, given: Mapping[str, str]) -> AdapterOptions:
    """Return the adapter's validated options from ``key=value`` pairs; raises `UsageError` naming near keys."""
    model = options_model(entry)
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
