"""Going on with a run: the configuration it was begun with, and whether all that it is made of is still the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.data.resolve import DataOptions
from harness.errors import DataError, UsageError
from harness.locking import WORDS, data_difference
from harness.plan import Plan, RunConfig
from harness.resolution import Resolution, read_resolution, resolve_plan
from harness.specs.catalog import Catalog

__all__ = ["read_configuration_of", "refuse_changes"]

PATHS = frozenset({"output", "locked", "gold"})
LISTS_OF_PATHS = frozenset({"tasks_from", "reuse"})
HINT = "Begin a new run with --reuse RUN: it takes over the answers that are still valid."


def read_configuration_of(manifest: Mapping[str, Any], folder: Path) -> RunConfig:
    """Return the configuration that a run was begun with; its output is `folder`, wherever that lies now."""
    given = dict(manifest["config"])
    data = given.pop("data")
    unknown = sorted(set(given) - set(RunConfig.__slots__))
    if unknown:
        raise UsageError(
            f"The run {str(folder)!r} was begun with {unknown[0]!r}, which this version does not know.",
            hint=f"Go on with version {manifest['versions']['multilingual-harness']}.",
        )
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in LISTS_OF_PATHS:
            values[name] = tuple(Path(item) for item in value)
        elif name in PATHS:
            values[name] = None if value is None else Path(value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    values["data"] = DataOptions(
        mode=data["mode"], folders=tuple(Path(directory) for directory in data["folders"])
    )
    values["output"] = folder
    return RunConfig(**values)


def refuse_changes(manifest: Mapping[str, Any], plan: Plan, catalog: Catalog, version: str | None) -> None:
    """Raise where a run would go on with other data, specs or code than it was begun with.

    Raises `DataError` with both digests for data, `UsageError` for anything else.
    """
    begun = manifest["versions"]["multilingual-harness"]
    if begun != version:
        raise UsageError(
            f"The run was begun with version {begun} of the harness, this is version {version}.", hint=HINT
        )
    before, now = read_resolution(manifest["resolved"]), resolve_plan(plan, catalog)
    splits = {split.key: split for split in before.data}
    for split in now.data:
        kept = splits.get(split.key, split)
        if kept.digest != split.digest:
            told = data_difference(split, kept, keeper="the run")
            raise DataError(
                f"The data of {split.title} changed since the run began: {told} (digest {kept.digest} then, "
                f"{split.digest} now).",
                hint=f"Put the former files back. {HINT}",
            )
    _refuse_changed_documents(before, now)
    planned = {cell.digest: cell for cell in plan.cells}
    lost = [cell for cell in manifest["cells"] if cell["digest"] not in planned]
    added = set(planned) - {cell["digest"] for cell in manifest["cells"]}
    if lost or added:
        title = f"{lost[0]['task']}:{lost[0]['language']}" if lost else planned[min(added)].title
        raise UsageError(
            f"The plan is not the one that the run began with, first at {title}: a spec, a prompt, a recipe or the "
            "data that are found changed.",
            hint=HINT,
        )


def _refuse_changed_documents(before: Resolution, now: Resolution) -> None:
    """Raise `UsageError` for a document that says something else, whether or not it changes which cells there are."""
    documents = {document.key: document for document in before.specs}
    for document in now.specs:
        kept = documents.get(document.key, document)
        if kept.digest != document.digest:
            raise UsageError(
                f"The document of the {WORDS.get(document.sort, document.sort)} {document.name!r} changed since the "
                f"run began (digest {kept.digest} then, {document.digest} now).",
                hint=f"Put the former one back. {HINT}",
            )
