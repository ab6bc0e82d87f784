"""Resuming a run: the configuration that it started with, and whether all that it is made of is unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import DataError, UsageError
from harness.planning.plan import Plan
from harness.planning.resolution import (
    READ_OTHERWISE,
    LockedDocument,
    LockedSplit,
    Resolution,
    read_resolution,
    resolve_plan,
)
from harness.planning.run_config import RunConfig, settings
from harness.specs.catalog import Catalog
from harness.storage.results import DamagedRunError, Manifest
from harness.storage.run_folder import repairable_cells, reuse_hint


def read_configuration_of(manifest: Manifest, folder: Path) -> RunConfig:
    """Return the configuration that a run started with; its output is `folder`, its place now."""
    _require(manifest, folder, "config", "versions")
    recorded, declared = manifest.config, settings()
    unknown = sorted(set(recorded) - set(declared))
    if unknown:
        raise UsageError(
            f"The run {str(folder)!r} was started with {unknown[0]!r}, which this version does not know.",
            hint=f"Resume it with version {manifest.versions.get('multilingual-harness')}.",
        )
    return RunConfig.read({**recorded, "output": folder}, f"the run {str(folder)!r}")


def check_unchanged(
    manifest: Manifest,
    plan: Plan,
    catalog: Catalog,
    version: str | None,
    code: Mapping[str, str],
    path: Path,
) -> Resolution:
    """Raise where a resumed run would use other data, specs or code than it started with.

    Cells that failed before a model was asked are free to change: what made them fail can be fixed.

    Args:
        manifest: What the run in `path` wrote down when it began.
        plan: What it would continue with.
        catalog: The documents of the plan.
        version: Of the harness.
        code: Versions of other code that scores, renders, reads or parses; see `code_versions`.
        path: The run folder.

    Returns:
        What all cells of the plan read now.

    Raises:
        DataError: For other data, with both digests, and a damaged manifest.
        UsageError: For anything else.
    """
    _require(manifest, path, "versions", "resolved")
    hint, started = reuse_hint(path), manifest.versions.get("multilingual-harness")
    if started != version:
        raise UsageError(
            f"The run was started with version {started} of the harness, this is version {version}.",
            hint=hint,
        )
    _check_code(manifest.code, code, hint)
    repairable = repairable_cells(path)
    free = {_place(cell) for cell in manifest.cells if cell["digest"] in repairable}
    fixed = {_place(cell) for cell in manifest.cells if cell["digest"] not in repairable}
    guarded = replace(plan, cells=tuple(cell for cell in plan.cells if _place(cell.identity()) in fixed))
    _check_same(read_resolution(manifest.resolved), resolve_plan(guarded, catalog), hint)
    replaceable = free - fixed
    planned, recorded = {cell.digest for cell in plan.cells}, {cell["digest"] for cell in manifest.cells}
    lost = [
        f"{cell['task']}:{cell['language']}"
        for cell in manifest.cells
        if _place(cell) not in replaceable and cell["digest"] not in planned
    ]
    added = [
        cell.title
        for cell in plan.cells
        if cell.digest not in recorded and _place(cell.identity()) not in replaceable
    ]
    if lost or added:
        raise UsageError(
            f"The plan is not the one that the run began with, first at {[*lost, *added][0]}: a spec, a prompt, a "
            "recipe or the data that are found changed.",
            hint=hint,
        )
    return resolve_plan(plan, catalog)


def _require(manifest: Manifest, folder: Path, *names: str) -> None:
    for name in names:
        if not manifest.has(name):
            raise DamagedRunError(
                f"The run {str(folder)!r} is damaged: its manifest has no {name!r}.", hint=reuse_hint(folder)
            )


def _place(identity: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of cells that are guarded together: one document describes them."""
    return (identity["task"], identity["language"])


def _check_code(before: Mapping[str, str], now: Mapping[str, str], hint: str) -> None:
    """Raise `UsageError` for other code that scores, renders, reads or parses; what is not used any more is free."""
    for name, version in before.items():
        if (current := now.get(name, version)) != version:
            raise UsageError(
                f"The {name} changed since the run began: {version} then, {current} now.",
                hint=f"Install the former version. {hint}",
            )


def _check_same(before: Resolution, now: Resolution, hint: str) -> None:
    """Raise `DataError` for other files, `UsageError` for a changed document and files that are read in another way."""
    # A changed spec may be why data differ, which says more.
    for here, there in sorted(now.diff(before), key=lambda pair: isinstance(pair[0], LockedDocument)):
        if there is None:
            continue
        reason = here.difference(there, "the run")
        files = isinstance(here, LockedSplit) and reason != READ_OTHERWISE
        raise (DataError if files else UsageError)(
            f"The {here.subject} changed since the run began: {reason} (digest {there.digest} then, "
            f"{here.digest} now).",
            hint=f"Put the former {'files' if files else 'document'} back. {hint}",
        )
