"""Installed packages as pip left them: their names, their entry points, and what to do with one that is half there."""

from __future__ import annotations

import importlib
import importlib.metadata
from functools import lru_cache, reduce
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

from harness.errors import BrokenPluginError

__all__ = ["find_entry_points", "install_again", "load_entry_point", "package_of"]


@lru_cache(maxsize=1024)
def package_of(package: Distribution | None) -> tuple[str, str]:
    """Return name and version of a package; of one whose metadata are gone, those in the name of their folder.

    The metadata of a package are parsed at every access, which takes as long as to import a plugin.
    """
    try:
        if package is not None and package.metadata["Name"]:
            return package.metadata["Name"], package.metadata["Version"] or "?"
    except Exception:  # noqa: BLE001, S110, RUF100  metadata may be damaged in any way
        pass
    folder = _information(package)
    name, _, version = (folder.stem if folder is not None else "?").partition("-")
    return name.replace("_", "-"), version or "?"


def _information(package: Distribution | None) -> Path | None:
    """Return the folder with the metadata of a package, where it is one."""
    path = getattr(package, "_path", None)
    return path if isinstance(path, Path) else None


def find_entry_points(group: str) -> tuple[list[EntryPoint], list[tuple[Distribution, Exception]]]:
    """Return the entry points of a group, and packages whose entry points cannot be read, with what was raised.

    `importlib.metadata` reads them all at once and raises for a damaged file of any package.
    """
    try:
        return list(importlib.metadata.entry_points(group=group)), []
    except Exception:  # noqa: BLE001, RUF100  files may be damaged in any way
        found: list[EntryPoint] = []
        broken = []
    for package in importlib.metadata.distributions():
        try:
            found += package.entry_points.select(group=group)
        except Exception as error:  # noqa: BLE001, RUF100
            broken.append((package, error))
    return found, broken


def load_entry_point(entry_point: EntryPoint) -> Any:
    """Return what an entry point names; raises `BrokenPluginError` for a package that is half there."""
    match = entry_point.pattern.match(entry_point.value or "")
    if match is None:
        raise BrokenPluginError(
            f"its entry point is {entry_point.value!r}, expected 'module' or 'module:attribute'"
        )
    wanted = match["module"]
    try:
        module = importlib.import_module(wanted)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{wanted}.".startswith(f"{error.name}."):
            raise BrokenPluginError(
                f"its module {error.name!r} is not there, only the metadata of its package are",
                hint=install_again(entry_point.dist),
            ) from error
        raise
    try:
        return reduce(getattr, filter(None, (match["attr"] or "").split(".")), module)
    except AttributeError as error:
        raise BrokenPluginError(
            f"its entry point is {entry_point.value!r}, but {wanted!r} has no {match['attr']!r}",
            hint=install_again(entry_point.dist),
        ) from error


def install_again(package: Distribution | None) -> str:
    """Return what to do about a package that is half there."""
    name, folder = package_of(package)[0], _information(package)
    try:
        is_recorded = package is not None and package.read_text("RECORD") is not None
    except Exception:  # noqa: BLE001, RUF100
        is_recorded = False
    if is_recorded or folder is None:
        return f"Run 'pip uninstall {name}' or 'pip install --force-reinstall {name}'"
    return (
        f"Run 'pip install --ignore-installed {name}' or remove the folder {str(folder)!r}, which pip has no "
        "record of"
    )
