"""Opens the backend that ``--backend`` names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from harness import UnknownNameError, UsageError, require_extra
from harness.registry import FleetBackend, JobRunner
from harness.running import Session


def open_backend(session: Session, name: str, options: Mapping[str, str]) -> JobRunner:
    """Return the backend of a name, opened with its options.

    Raises:
        UnknownNameError: For a backend or an option that there is not, with near names.
        UsageError: For an option with another value.
        MissingExtraError: Where its package is not installed.
    """
    backend = session.registry.fleet_backends.get(name)
    model = _load(backend, backend.options)
    for key in options:
        if key not in model.model_fields:
            raise UnknownNameError(f"option of the backend {name!r}", key, model.model_fields)
    try:
        read = model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"The option {option!r} of the backend {name!r} got {first.get('input')!r}: {first['msg']}."
        ) from error
    runner: JobRunner = _load(backend, backend.target)(read)
    return runner


def _load(backend: FleetBackend, target: str) -> Any:
    module, _, attribute = target.partition(":")
    with require_extra(f"The backend {backend.name!r}", backend.extra, target):
        return getattr(importlib.import_module(module), attribute)
