"""Resuming a run: the configuration that it started with, and whether all that it is made of is unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.data.resolve import DataOptions
from harness.errors import DataError, UsageError
from harness.planning.lock_file import READ_OTHERWISE, WORDS, data_difference
from harness.planning.plan import Plan, RunConfig
from harness.planning.resolution import Resolution, read_resolution, resolve_plan
from harness.specs.catalog import Catalog
from harness.storage.run_folder import repairable_cells, reuse_hint

__all__ = ["check_unchanged", "read_configuration_of"]

PATHS = frozenset({"output", "locked", "gold"})
LISTS_OF_PATHS = frozenset({"tasks_from", "reuse"})


def read_configuration_of(manifest: Mapping[str, Any], folder: Path) -> RunConfig:
    """Return the configuration that a run started with; its output is `folder`, its place now."""
    given = dict(manifest["config"])
    data = given.pop("data")
    unknown = sorted(set(given) - set(RunConfig.__slots__))
    if unknown:
        raise UsageError(
            f"The run {str(folder)!r} was started with {unknown[0]!r}, which this version does not know.",
            hint=f"Resume it with version {manifest['versions']['multilingual-harness']}.",
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


def check_unchanged(
    manifest: Mapping[str, Any], plan: Plan, catalog: Catalog, version: str | None, path: Path
) -> Resolution:
    """Raise where a resumed run would use other data, specs or code than it started with.

    Cells that failed before a model was asked are free to change: what made them fail can be fixed.

    Args:
        manifest: What the run in `path` wrote down when it began.
        plan: What it would continue with.
        catalog: The documents of the plan.
        version: Of the harness.
        path: The run folder.

    Returns:
        What all cells of the plan read now.

    Raises:
        DataError: For other data, with both digests.
        UsageError: For anything else.
    """
    hint, started = reuse_hint(path), manifest["versions"]["multilingual-harness"]
    if started != version:
        raise UsageError(
            f"The run was started with version {started} of the harness, this is version {version}.",
            hint=hint,
        )
    repairable = repairable_cells(path)
    free = {_place(cell) for cell in manifest["cells"] if cell["digest"] in repairable}
    fixed = {_place(cell) for cell in manifest["cells"] if cell["digest"] not in repairable}
    guarded = replace(plan, cells=tuple(cell for cell in plan.cells if _place(cell.identity()) in fixed))
    before, now = read_resolution(manifest["resolved"]), resolve_plan(guarded, catalog)
    _check_data(before, now, hint)
    _check_documents(before, now, hint)
    replaceable = free - fixed
    planned, known = (
        {cell.digest: cell for cell in plan.cells},
        {cell["digest"] for cell in manifest["cells"]},
    )
    lost = [
        f"{cell['task']}:{cell['language']}"
        for cell in manifest["cells"]
        if _place(cell) not in replaceable and cell["digest"] not in planned
    ]
    added = [
        cell.title
        for cell in plan.cells
        if cell.digest not in known and _place(cell.identity()) not in replaceable
    ]
    if lost or added:
        raise UsageError(
            f"The plan is not the one that the run began with, first at {[*lost, *added][0]}: a spec, a prompt, a "
            "recipe or the data that are found changed.",
            hint=hint,
        )
    return resolve_plan(plan, catalog)


def _place(identity: Mapping[str, Any]) -> tuple[str, str]:
    """Return what cells share that are guarded together: one document describes them."""
    return (identity["task"], identity["language"])


def _check_data(before: Resolution, now: Resolution, hint: str) -> None:
    """Raise `DataError` for changed data, `UsageError` for data that a spec reads in another way."""
    splits = {split.key: split for split in before.data}
    for split in now.data:
        kept = splits.get(split.key, split)
        if kept.digest == split.digest:
            continue
        digests = f"(digest {kept.digest} then, {split.digest} now)"
        difference = data_difference(split, kept, holder="the run")
        if difference == READ_OTHERWISE:
            raise UsageError(
                f"The data of {split.title} are read in another way than when the run began: their spec names another "
                f"reader, or other columns, options or labels {digests}. The files are the same.",
                hint=f"Put the former spec back. {hint}",
            )
        raise DataError(
            f"The data of {split.title} changed since the run began: {difference} {digests}.",
            hint=f"Put the former files back. {hint}",
        )


def _check_documents(before: Resolution, now: Resolution, hint: str) -> None:
    """Raise `UsageError` for a changed document, whether or not it changes which cells there are."""
    documents = {document.key: document for document in before.specs}
    for document in now.specs:
        kept = documents.get(document.key, document)
        if kept.digest != document.digest:
            raise UsageError(
                f"The document of the {WORDS.get(document.sort, document.sort)} {document.name!r} changed since the "
                f"run began (digest {kept.digest} then, {document.digest} now).",
                hint=f"Put the former one back. {hint}",
            )
