"""The task files of lm-eval, those installed with it and those in folders of the user, as data.

Names are searched in the text of the files; nothing of lm-eval is imported, and no file is run.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import yaml

from harness import Problem, SpecError, UnknownNameError, UsageError

PREFIX: Final = "lm_eval"
INCLUDE_VARIABLE: Final = "HARNESS_LM_EVAL_INCLUDE"
"""Names folders with further task files, as lm-eval's ``--include_path``; their tasks go before its own."""
CODE_VARIABLE: Final = "HARNESS_LM_EVAL_ALLOW_CODE"
"""Set to 1, lets the Python run that files of those folders name."""
INSTALL: Final = 'Run: pip install "lm-eval>=0.4.13,<0.5"'
_NAME_LINE: Final = r"""^["']?KEY["']?[ \t]*:[ \t]*["']?([^\s"'#\[{]+)"""
"""The line of a name, with the key for ``KEY``; a seventh of lm-eval's files quote the key."""
_GROUP = re.compile(_NAME_LINE.replace("KEY", "group"), re.MULTILINE)
_TASK = re.compile(_NAME_LINE.replace("KEY", "task"), re.MULTILINE)
_INCLUDE = re.compile(r"""^["']?include["']?[ \t]*:(.*(?:\n[ \t]*-.*)*)""", re.MULTILINE)
_INCLUDED = re.compile(r"""[^\s"',\[\]]{2,}""")
_SKIPPED = {"__pycache__", ".ipynb_checkpoints"}
_GLOB = frozenset("*?[")
_DEEPEST_GROUP = 10
_DEEPEST_INCLUDE = 20


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """The file of one task or group."""

    path: Path
    is_group: bool
    is_included: bool
    """Whether it is a file of the user rather than of lm-eval."""
    benchmark: str = ""
    """The folder that it lies in, at any depth, below that of all tasks; empty for a file next to those."""


def installed_version(wanted: str) -> str:
    """Return lm-eval's version; raises `UsageError` where it is not installed."""
    try:
        return importlib.metadata.version("lm-eval")
    except importlib.metadata.PackageNotFoundError as error:
        raise UsageError(
            f"'{PREFIX}:{wanted}' needs the package 'lm-eval', which is not installed here.", hint=INSTALL
        ) from error


def code_is_allowed() -> bool:
    """Return whether Python of files of the user may run."""
    return os.environ.get(CODE_VARIABLE) == "1"


def names_of(pattern: str) -> list[str]:
    """Return the tasks of a task, a group, a tag or a glob.

    Raises `UnknownNameError` with near names, and `SpecError` for a group that changes its tasks.
    """
    installed_version(pattern)
    places = find_places()
    if _GLOB & set(pattern):
        found = [name for name, place in places.items() if not place.is_group and fnmatchcase(name, pattern)]
        if found:
            return sorted(found)
    if pattern in places:
        return list(dict.fromkeys(_expanded(pattern, places, ())))
    tagged = _tagged(pattern, places)
    if tagged:
        return tagged
    raise UnknownNameError("lm-eval task", pattern, places)


def find_place(name: str) -> TaskPlace:
    """Return the file of one task; raises `UnknownNameError` with near names."""
    places = find_places()
    if name not in places or places[name].is_group:
        raise UnknownNameError(
            "lm-eval task", name, [own for own, place in places.items() if not place.is_group]
        )
    return places[name]


def find_places() -> Mapping[str, TaskPlace]:
    """Return the files of all tasks and groups by name; those of the user go before those of lm-eval."""
    own = find_spec("lm_eval")  # finds the package without running any of it
    locations = () if own is None else own.submodule_search_locations or ()
    places = dict(_installed(tuple(Path(location) / "tasks" for location in locations)))
    for folder in _include_folders():
        places |= _read_folder(folder, is_included=True)
    return places


def _include_folders() -> Sequence[Path]:
    folders = [Path(item) for item in os.environ.get(INCLUDE_VARIABLE, "").split(os.pathsep) if item]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{INCLUDE_VARIABLE} names {str(folder)!r}, which is not a folder.")
    return folders


@lru_cache(maxsize=1)
def _installed(folders: tuple[Path, ...]) -> Mapping[str, TaskPlace]:
    places: dict[str, TaskPlace] = {}
    for folder in folders:
        places |= _read_folder(folder, is_included=False)
    return places


def _read_folder(folder: Path, *, is_included: bool) -> dict[str, TaskPlace]:
    """Return the names of a folder's files; of two files with one name the first by path, as in lm-eval."""
    places: dict[str, TaskPlace] = {}
    for path in sorted(_yaml_files(folder), key=lambda item: item.as_posix()):
        text = path.read_text(encoding="utf-8", errors="replace")
        group = _GROUP.search(text)
        match = group or _TASK.search(text)
        if match is not None:
            above = path.relative_to(folder).parts[:-1]
            place = TaskPlace(path, group is not None, is_included, above[0] if above else "")
            places.setdefault(match.group(1), place)
    return places


def _yaml_files(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        yield from (Path(root, name) for name in files if name.endswith(".yaml"))


def _expanded(name: str, places: Mapping[str, TaskPlace], inside: tuple[str, ...]) -> Iterator[str]:
    """Yield the tasks of a task or group; raises `SpecError` for a group that does more than list them."""
    place = places[name]
    if not place.is_group:
        yield name
        return
    group = read_task(place.path)
    if name in inside or len(inside) > _DEEPEST_GROUP:
        raise SpecError(place.path, [group.problem("task", f"the group {name!r} contains itself")])
    for member in _members(group):
        if member in places:
            yield from _expanded(member, places, (*inside, name))
            continue
        tagged = _tagged(member, places)
        if not tagged:
            unknown = UnknownNameError("lm-eval task", member, places)
            raise SpecError(place.path, [group.problem("task", str(unknown))])
        yield from tagged


_OF_GROUPS = {"group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag", "include"}


def _members(group: TaskFile) -> list[str]:
    problems = [
        group.problem(key, "the group changes this key of its tasks; name the tasks one by one")
        for key in group.data
        if key not in _OF_GROUPS
    ]
    listed = group.data.get("task")
    for member in listed if isinstance(listed, list) else [listed]:
        if not isinstance(member, str):
            message = f"{_shown(member)} changes a task; name the tasks of the group one by one"
            problems.append(group.problem("task", message))
    if problems:
        raise SpecError(group.path, problems)
    return [str(member) for member in (listed if isinstance(listed, list) else [listed])]


def _shown(member: Any) -> str:
    keys = ", ".join(map(str, member)) if isinstance(member, Mapping) else repr(member)
    return f"the member with {keys}"


def _tagged(tag: str, places: Mapping[str, TaskPlace]) -> list[str]:
    """Return the names of the tasks with a tag, sorted."""
    return sorted(name for name, place in places.items() if not place.is_group and _has_tag(place.path, tag))


def _has_tag(path: Path, tag: str) -> bool:
    if not _mentions(path, tag):
        return False
    try:
        given = read_task(path).data.get("tag")
    except SpecError:
        return False
    return tag in (given if isinstance(given, list) else [given])


def _mentions(path: Path, tag: str, depth: int = 0) -> bool:
    """Return whether a file or one that it includes has a text in it: reading all of them as YAML takes a minute."""
    text = _text(path)
    if tag in text:
        return True
    names = [name for match in _INCLUDE.finditer(text) for name in _INCLUDED.findall(match.group(1))]
    return depth < _DEEPEST_GROUP and any(_mentions(path.parent / name, tag, depth + 1) for name in names)


@lru_cache(maxsize=1024)
def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# One file ----------------------------------------------------------------------------------------------


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


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
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
