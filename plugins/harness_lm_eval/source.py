"""The data sources of a task file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from harness import near_names
from harness_lm_eval.expression import UnsupportedError

__all__ = ["read_sources"]

_LOCAL_READERS = {"json": "jsonl", "parquet": "parquet"}
_LOADERS = {"json", "csv", "parquet", "text", "arrow"}
_ARGUMENTS = ("data_files", "revision", "trust_remote_code")


def read_sources(data: Mapping[str, Any], reading: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return our splits with their sources: lm-eval tests on ``test_split``, else on ``validation_split``.

    `reading` is how all of them are read: reader, columns, label map, options. Raises `UnsupportedError`.
    """
    test, validation = data.get("test_split"), data.get("validation_split")
    if not (test or validation):
        raise UnsupportedError("no test_split and no validation_split: there is nothing to score")
    # A validation split used as test must not be drawn from or selected on as well.
    named = {
        "train": data.get("training_split"),
        "validation": validation if test else None,
        "test": test or validation,
    }
    return {ours: _source(data, theirs, reading) for ours, theirs in named.items() if theirs}


def _source(data: Mapping[str, Any], split: Any, reading: Mapping[str, Any]) -> dict[str, Any]:
    arguments = data.get("dataset_kwargs") or {}
    for name in arguments:
        if name not in _ARGUMENTS:
            near = near_names(name, _ARGUMENTS)
            raise UnsupportedError(
                f"dataset_kwargs.{name}" + (f"; did you mean {near[0]!r}?" if near else "")
            )
    path, config = data.get("dataset_path"), data.get("dataset_name")
    if not isinstance(path, str):
        raise UnsupportedError(f"expected the name of a dataset, found {path!r}")
    if path not in _LOADERS:
        hub = {"path": path, "config": config, "split": split, "revision": arguments.get("revision")}
        return {"hub": {key: value for key, value in (hub | dict(reading)).items() if value is not None}}
    if path not in _LOCAL_READERS:
        raise UnsupportedError(
            f"dataset_path: {path}; of local files only json (lines) and parquet are supported"
        )
    files = arguments.get("data_files")
    paths = files.get(split) if isinstance(files, Mapping) else files
    listed = [paths] if isinstance(paths, str) else paths
    if not isinstance(listed, list) or not listed or not all(isinstance(item, str) for item in listed):
        raise UnsupportedError(f"dataset_kwargs.data_files: no file of the split {split!r}")
    for item in listed:
        if "://" in item or PurePosixPath(item).is_absolute() or ".." in PurePosixPath(item).parts:
            raise UnsupportedError(
                f"the data file {item!r}: expected a path relative to a data folder (--data DIR)"
            )
    local = listed[0] if len(listed) == 1 else [{"path": listed}]
    return {"local": local, **{"reader": _LOCAL_READERS[path], **reading}}
