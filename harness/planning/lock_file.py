"""The lock file: the data, documents and model that a run resolved, and the errors for anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.data.sources import Pins, web_pin
from harness.errors import AdapterError, UsageError
from harness.models.capabilities import ModelDescription
from harness.models.options import SamplingOptions
from harness.planning.plan import Plan
from harness.planning.resolution import (
    LockEntry,
    Resolution,
    read_resolution,
    resolve_plan,
)
from harness.registry.plugin import installed_version
from harness.specs.catalog import Catalog

if TYPE_CHECKING:
    from harness.storage.run_folder import Run

FORMAT = 1
RENEW = "To accept what is found now, rewrite the lock file: harness lock RUN|TASKS --output {path}"


class LockedModel(LockEntry):
    """The model of the run that was locked."""

    adapter: str
    ref: str
    revision: str | None
    weights: str | None
    """SHA-256 of its weights; null for models that have no files here."""
    files: str | None = None
    """SHA-256 of its configuration and tokenizer."""
    options: dict[str, str] | None = None
    """Options of its adapter that change answers; null in files of older versions, which are not compared."""


class Lock(Resolution):
    """Content of a lock file."""

    harness_lock: int = FORMAT
    """The format."""
    harness: str | None = None
    """The version that wrote it; not compared."""
    model: LockedModel | None = None

    @classmethod
    def of(cls, resolution: Resolution, model: LockedModel | None = None) -> Lock:
        """Return the lock of what was resolved."""
        return cls(
            data=resolution.data,
            specs=resolution.specs,
            harness=installed_version("multilingual-harness"),
            model=model,
        )

    def to_text(self) -> str:
        """Return the text of the file: sorted JSON, the same for the same content."""
        content = self.model_dump(mode="json")
        return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockFile:
    """A lock file that was read."""

    path: Path
    lock: Lock

    @property
    def pins(self) -> Pins:
        """The commits of Hub datasets and the checksums of downloads, for `harness.data.sources.DataFinder`."""
        sums = {
            web_pin(entry.web.url): f"sha256:{entry.web.sha256}"
            for entry in self.lock.data
            if entry.web is not None
        }
        return sums | {
            (entry.hub.path, entry.hub.config, entry.hub.split): entry.hub.revision
            for entry in self.lock.data
            if entry.hub is not None and entry.hub.revision is not None
        }

    @property
    def renewal(self) -> str:
        """The sentence that says how to accept what is found now."""
        return RENEW.format(path=self.path)


def lock_run(run: Run) -> Lock:
    """Return the lock of a run: its data, documents and model, without its baselines.

    Raises `UsageError` for a run whose manifest does not say what was resolved.
    """
    recorded = run.manifest.resolved
    if not recorded:
        raise UsageError(
            f"The run {str(run.path)!r} does not say what it resolved; an older harness made it.",
            hint="Lock its tasks instead: harness lock TASKS --data DIR",
        )
    try:
        resolution = read_resolution(recorded)
    except ValidationError as error:
        raise UsageError(f"{run.path / 'manifest.json'}: 'resolved' is broken: {_first(error)}.") from error
    described = run.results.model
    metadata = described.metadata
    model = LockedModel(
        adapter=described.adapter,
        ref=described.ref,
        revision=described.revision,
        weights=metadata.get("weights"),
        files=metadata.get("files"),
        options=_answer_options(run.manifest.identity, run.manifest.options),
    )
    return Lock.of(resolution, model)


def read_lock(path: Path) -> LockFile:
    """Return a lock file; raises `UsageError` for one that is missing, broken, of a newer format, or empty."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"The lock file {str(path)!r} cannot be read: {error.strerror}.",
            hint="Write one with: harness lock RUN|TASKS --output FILE",
        ) from error
    except ValueError as error:
        raise _broken(path, f"it is no JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("harness_lock"), int):
        raise _broken(path, "the key 'harness_lock' with the number of its format is missing")
    if content["harness_lock"] > FORMAT:
        raise UsageError(
            f"The lock file {str(path)!r} has the format {content['harness_lock']}; this harness reads {FORMAT}.",
            hint="Update it: pip install -U multilingual-harness",
        )
    try:
        lock = Lock.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise _broken(path, _first(error)) from error
    if not lock.data:
        raise _broken(path, "it locks no data")
    return LockFile(path=path, lock=lock)


def _broken(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"The lock file {str(path)!r} cannot be used: {reason.rstrip('.')}.",
        hint="Rewrite it with: harness lock RUN|TASKS --output FILE",
    )


def check_locked(plan: Plan, locked: LockFile, catalog: Catalog) -> None:
    """Raise `UsageError` unless all that the cells of a plan read is what the lock file has.

    Entries of the lock that the plan does not need are fine: the lock of a suite serves each of its tasks.
    """
    holder = f"the lock file {str(locked.path)!r}"
    for here, there in resolve_plan(plan, catalog).diff(locked.lock):
        if there is None:
            raise UsageError(
                f"The {here.subject} is not in {holder}.", hint=f"Run only what it locks. {locked.renewal}"
            )
        raise UsageError(
            f"The {here.subject} is not the locked one: {here.difference(there, 'the lock')} (digest {here.digest} "
            f"here, {there.digest} in {holder}).",
            hint=locked.renewal,
        )


def _answer_options(identity: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that change answers: those in the model's identity, and those of drawing an answer.

    The device is none of them: a lock serves other machines.
    """
    values = {name.removeprefix("option."): str(value) for name, value in identity.items()}
    names = {
        name.removeprefix("option.") for name in identity if name.startswith("option.") or name in options
    }
    drawn = {name: options[name] for name in SamplingOptions.model_fields if options.get(name) is not None}
    return {name: values[name] for name in names - {"device"}} | {name: str(drawn[name]) for name in drawn}


def locked_model(
    locked: LockFile,
    description: ModelDescription,
    identity: Mapping[str, Any],
    options: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Raise `AdapterError` where a lock file names a model and the opened one is another.

    Args:
        locked: The lock file; one that was written of tasks names no model.
        description: The model as it was described.
        identity: What the opened adapter's ``identity()`` returned.
        options: The adapter's options by name.
    """
    model = locked.lock.model
    if model is None:
        return
    if description.adapter != model.adapter:
        raise _other_model(locked, description, "adapter", description.adapter, model.adapter)
    for name, digest in (("weights", model.weights), ("files", model.files)):
        if digest is not None and identity.get(name) != digest:
            label = "weights" if name == "weights" else "configuration and tokenizer"
            raise _other_model(locked, description, f"digest of the {label}", str(identity.get(name)), digest)
    here, there = _answer_options(identity, options), model.options
    for name in sorted({*here, *there} if there is not None else ()):
        values = [str(table.get(name)) for table in (here, there or {})]
        if values[0] != values[1]:
            raise _other_model(locked, description, f"option {name!r}", *values)
    if model.weights is None and description.ref != model.ref:
        raise _other_model(locked, description, "name", description.ref, model.ref)


def _other_model(
    locked: LockFile, description: ModelDescription, what: str, here: str, kept: str
) -> AdapterError:
    return AdapterError(
        f"The model {description.ref!r} is not the locked one: its {what} is {here}, and the lock file "
        f"{str(locked.path)!r} has {kept}.",
        hint="Lock the tasks alone to try other models on the same data: harness lock TASKS",
    )


def _first(error: ValidationError) -> str:
    fault = error.errors()[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
