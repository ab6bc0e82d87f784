"""lm-eval's task files as data: includes are merged, keys have their file and line, Python is never run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import yaml

from harness import Problem, SpecError, UnknownNameError, UsageError

__all__ = ["FOLDER_VARIABLE", "NAME_LINE", "Python", "TaskFile", "find_task", "read_task"]

FOLDER_VARIABLE = "HARNESS_LM_EVAL_TASKS"
"""Names lm-eval's folder ``lm_eval/tasks`` where lm-eval is not installed in this environment."""
NAME_LINE: Final = r"""^["']?KEY["']?[ \t]*:[ \t]*["']?([^\s"'#\[{]+)"""
"""The line of a name, with the key for ``KEY``; a seventh of lm-eval's files quote the key."""
_TASK_LINE = re.compile(NAME_LINE.replace("KEY", "(?:task|group)"), re.MULTILINE)
_DEEPEST_INCLUDE = 20


@dataclass(frozen=True, slots=True)
class Python:
    """A value that is Python code: ``!function utils.process_docs``."""

    tag: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """One task with its includes merged."""

    path: Path
    data: Mapping[str, Any]
    places: Mapping[str, tuple[Path, int]]
    """Key -> its file and 1-based line."""

    def problem(self, key: str, message: str) -> Problem:
        """Return a problem of a key; for a key of an included file, it names that file."""
        path, line = self.places.get(key, (self.path, None))
        where = "" if path == self.path else f" (in the included file {str(path)!r})"
        return Problem(message=message + where, line=line, key=key)


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as lm-eval reads it; unknown tags become `Python`."""


def _construct_tagged(loader: _Loader, suffix: str, node: yaml.Node) -> Python:
    return Python(f"!{suffix}", str(node.value) if isinstance(node, yaml.ScalarNode) else "")


_Loader.add_multi_constructor("!", _construct_tagged)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/", _construct_tagged)


def read_task(path: Path) -> TaskFile:
    """Return a task file with what it includes; raises `SpecError` for YAML faults and missing includes.

    Keys of the file go before those of its includes, and of several includes the later before the earlier, as in
    lm-eval (``lm_eval/tasks/_yaml_loader.py``, 0.4.13).
    """
    return _read(path, ())


def _read(path: Path, including: tuple[Path, ...]) -> TaskFile:
    data, lines = _parse(path)
    places: dict[str, tuple[Path, int]] = {}
    merged: dict[str, Any] = {}
    given = data.pop("include", None) or []
    for name in [given] if isinstance(given, str) else given:
        included = _included(path, name, lines["include"], including)
        inner = _read(included, (*including, path))
        merged |= inner.data
        places |= inner.places
    merged |= data
    places |= {key: (path, lines[key]) for key in data}
    return TaskFile(path=path, data=merged, places=places)


def _included(path: Path, name: Any, line: int, including: tuple[Path, ...]) -> Path:
    def fault(message: str) -> SpecError:
        return SpecError(path, [Problem(message=message, line=line, key="include")])

    if not isinstance(name, str):
        raise fault(f"expected the name of a file, found {name!r}")
    included = path.parent / name
    if included.resolve() in [item.resolve() for item in (*including, path)]:
        raise fault(f"{name!r} includes itself")
    if len(including) > _DEEPEST_INCLUDE:
        raise fault(f"more than {_DEEPEST_INCLUDE} files include one another")
    if not included.is_file():
        raise fault(f"the included file {str(included)!r} does not exist")
    return included


def _parse(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(path, [Problem(message=f"is not UTF-8: {error}")]) from error
    except OSError as error:
        raise UsageError(f"The task file {str(path)!r} cannot be read: {error.strerror}.") from error
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise SpecError(path, [Problem(message="expected a mapping of keys to values", line=1)])
        lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
        data = {str(key): value for key, value in loader.construct_document(node).items()}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise SpecError(path, [Problem(message=str(error.problem or error), line=line)]) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(path, [Problem(message=str(error) or "YAML is nested too deeply")]) from error
    finally:
        loader.dispose()
    return data, lines


def find_task(source: str) -> Path:
    """Return the file of a task: a path as it is given, or the file of lm-eval's folder that defines the name.

    Raises `UsageError` where the path does not exist or lm-eval's folder is not found, and `UnknownNameError` with
    near names for an unknown task.
    """
    path = Path(source)
    if path.suffix in {".yaml", ".yml"} or "/" in source or path.is_file():
        if not path.is_file():
            raise UsageError(f"The task file {source!r} does not exist.")
        return path
    folder = _tasks_folder(source)
    names: dict[str, Path] = {}
    for file, name in _task_names(folder):
        if name == source:
            return file
        names.setdefault(name, file)
    raise UnknownNameError(f"lm-eval task in {str(folder)!r}", source, names)


def _tasks_folder(source: str) -> Path:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        if not Path(given).is_dir():
            raise UsageError(f"{FOLDER_VARIABLE} names {given!r}, which is not a folder.")
        return Path(given)
    found = find_spec("lm_eval")  # finds the package without running any of it
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        if (Path(place) / "tasks").is_dir():
            return Path(place) / "tasks"
    raise UsageError(
        f"{source!r} is not a file, and lm-eval is not installed here to look the name up.",
        hint=f"Give the path of the YAML file, or set {FOLDER_VARIABLE} to the folder lm_eval/tasks.",
    )


def _task_names(folder: Path) -> Iterator[tuple[Path, str]]:
    for root, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            if file.endswith((".yaml", ".yml")):
                path = Path(root, file)
                match = _TASK_LINE.search(path.read_text(encoding="utf-8", errors="replace"))
                if match is not None:
                    yield path, match.group(1)
