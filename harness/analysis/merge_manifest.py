"""The manifest of a merged run: the settings, the data and the versions of its parts."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from harness.planning.resolution import read_resolution
from harness.planning.run_config import settings
from harness.specs.selection import EXCLUSION_MARK
from harness.storage.files import file_digest
from harness.storage.results import CellResult, Manifest
from harness.storage.run_folder import RESULTS, Run


def differing_settings(manifests: Sequence[Manifest]) -> dict[str, dict[str, list[str]]]:
    """Return the settings that differ between tasks, such as ``limit``: tasks by value."""
    differing = {}
    for name in (name for name, setting in settings().items() if setting.merged == "task"):
        tasks: dict[str, list[str]] = {}
        for manifest in manifests:
            value = manifest.config.get(name)
            tasks.setdefault("not set" if value is None else str(value), []).extend(manifest.tasks)
        if len(tasks) > 1:
            differing[name] = {value: list(dict.fromkeys(names)) for value, names in tasks.items()}
    return differing


def merged_manifest(
    runs: Sequence[Run], cells: Sequence[CellResult], incomplete: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the ``manifest.json`` of a merged run.

    Args:
        runs: The parts; the versions and the machine are the first one's, `merged_from` names the others.
        cells: The cells of the merged run, in order.
        incomplete: The plan that the runs are shards of, where some shards are missing.
    """
    manifests = [run.manifest for run in runs]
    shard_keys = {"shard", "plan", "plan_cells", "resolved"}
    first = {name: value for name, value in manifests[0].to_json().items() if name not in shard_keys}
    identities = {cell["digest"]: cell for manifest in manifests for cell in manifest.cells}
    digests = [cell.digest for cell in cells if cell.digest in identities]
    published = [item for manifest in manifests for item in manifest.published]
    merged = {
        **first,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "config": _config(manifests),
        "tasks": _tasks(manifests, cells),
        "suites": _suites(manifests),
        "published": [item for number, item in enumerate(published) if item not in published[:number]],
        "code": {name: code for item in reversed(manifests) for name, code in item.code.items()},
        "specs": {task: spec for item in reversed(manifests) for task, spec in item.specs.items()},
        "cells": [identities[digest] for digest in digests],
        "fits": list(dict.fromkeys(title for manifest in manifests for title in manifest.fits)),
        "notes": list(dict.fromkeys(note for item in manifests for note in item.notes)),
        "merged_from": [_source(run) for run in runs],
    }
    translators = {name: item for manifest in manifests for name, item in manifest.translators.items()}
    if translators:
        merged["translators"] = translators
    if all(manifest.resolved for manifest in manifests):
        merged["resolved"] = _resolved(manifests)
    if incomplete is not None:
        indices = "+".join(map(str, sorted(incomplete["indices"])))
        merged |= {
            "shard": f"{indices}/{incomplete['count']}",
            "plan": incomplete["digest"],
            "plan_cells": incomplete["cells"],
        }
    return merged


def _source(run: Run) -> dict[str, Any]:
    """Return where a part came from: its name, time, machine and shard, and the digest of its results."""
    head = run.results.run
    host = run.manifest.host or run.manifest.hardware.get("host")
    return {
        "id": head.id,
        "path": str(run.path),
        "created": head.created,
        "seconds": head.seconds,
        "host": host,
        "shard": run.manifest.shard,
        "results": file_digest(run.path / RESULTS),
        **({"merged_from": run.manifest.merged_from} if run.manifest.merged_from else {}),
    }


def _config(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return the configuration of all: what was asked for is united.

    Languages are all where one run took all, or all but some.
    """
    configs = [manifest.config for manifest in manifests]
    config = {name: value for name, value in configs[0].items() if name not in {"shard", "output"}}
    for name in (name for name, setting in settings().items() if setting.merged == "united"):
        values = [item.get(name) for item in configs]
        united = list(dict.fromkeys(item for value in values for item in value or ()))
        took_all = None in values or any(str(item).startswith(EXCLUSION_MARK) for item in united)
        config[name] = None if name == "languages" and took_all else united
    return config | dict.fromkeys(differing_settings(manifests))


def _tasks(manifests: Sequence[Manifest], cells: Sequence[CellResult]) -> dict[str, Any]:
    specs = {name: spec for item in reversed(manifests) for name, spec in item.tasks.items()}
    languages: dict[str, Any] = {}
    for manifest in manifests:
        for spec in manifest.tasks.values():
            languages |= spec.languages
    order = dict.fromkeys([*(cell.task for cell in cells), *specs])
    return {
        task: {**specs[task].to_json(), **_by_language(manifests, task), "languages": languages}
        for task in order
        if task in specs
    }


def _by_language(manifests: Sequence[Manifest], task: str) -> dict[str, Any]:
    """Return the added, unpaired and described languages of a task in all manifests together."""
    specs = [manifest.tasks[task] for manifest in manifests if task in manifest.tasks]
    united: dict[str, Any] = {
        name: {code: value for spec in reversed(specs) for code, value in getattr(spec, name).items()}
        for name in ("added", "names")
    }
    united["unpaired"] = list(dict.fromkeys(code for spec in specs for code in spec.unpaired))
    return {name: value for name, value in united.items() if value}


def _suites(manifests: Sequence[Manifest]) -> list[dict[str, Any]]:
    """Return the suites of all, each with the languages that some run knew of its tasks."""
    suites: dict[str, dict[str, Any]] = {}
    for manifest in manifests:
        for suite in manifest.suites:
            merged = suites.setdefault(suite.suite, {**suite.to_json(), "languages": dict(suite.languages)})
            for task, codes in suite.languages.items():
                merged["languages"][task] = merged["languages"].get(task) or codes
    return list(suites.values())


def _resolved(manifests: Sequence[Manifest]) -> dict[str, Any]:
    merged, *resolutions = [read_resolution(manifest.resolved) for manifest in manifests]
    for resolution in resolutions:
        merged = merged.joined(resolution)
    return merged.model_dump(mode="json")
