"""Installed plugins and packages: where a plugin comes from, what is wrong with it and what to do, and requirements."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import BrokenPluginError, near_names
from harness.hookspecs import HOOK_VERSION, PROJECT, HookSpecs

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DISABLE_VARIABLE = "HARNESS_DISABLE_PLUGINS"
DISTRIBUTION = "multilingual-harness"
VERSION_ATTRIBUTE = "HARNESS_HOOKS"
PREFIX = f"{PROJECT}_"
UPGRADE = f"Run 'pip install --upgrade {DISTRIBUTION}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry point of the group ``harness``."""

    name: str
    module: str
    package: importlib.metadata.Distribution | None = None
    error: str | None = None
    """Why it could not be loaded; None for a working plugin."""
    hint: str | None = None
    """Remedy, where that is not to repair it."""
    cause: BaseException | None = None
    """Exception that it raised."""

    @property
    def distribution(self) -> str:
        """The name of the package that it came with."""
        return package_of(self.package)[0]

    @property
    def version(self) -> str:
        """The version of that package."""
        return package_of(self.package)[1]

    @property
    def is_ours(self) -> bool:
        """Whether it is a part of the harness."""
        return self.module == "harness.builtin" or self.distribution == DISTRIBUTION

    @property
    def stop(self) -> str:
        """The full stop after the error, unless it asks something."""
        return "" if (self.error or "").endswith("?") else "."

    @property
    def problem(self) -> BrokenPluginError:
        """Error of a broken plugin, with its remedy."""
        hint = f"{self.hint or 'Repair it'}, or run with {DISABLE_VARIABLE}={self.name}."
        error = BrokenPluginError(
            f"The plugin {self.name!r} ({self.distribution}) cannot be used: {self.error}{self.stop}",
            hint=hint,
        )
        error.__cause__ = self.cause
        return error


def describe_fault(error: BaseException) -> tuple[str, str | None]:
    """Return the fault of a plugin that raised, and the remedy where that is not to repair it."""
    if isinstance(error, BrokenPluginError):
        return error.message, error.hint
    return f"{type(error).__name__}: {safe_str(error)}", None


def safe_str(thing: object, write: Callable[[Any], str] = str) -> str:
    """Return the text that `write` makes of a third-party object; ``(unprintable)`` where `write` raises."""
    try:
        return write(thing)
    except Exception:  # noqa: BLE001, RUF100  a third party's method may raise anything
        return "(unprintable)"


def check_hooks(module: Any) -> None:
    """Raise `BrokenPluginError` for hooks that this version of the harness does not have, or gives less to."""
    version = getattr(module, VERSION_ATTRIBUTE, HOOK_VERSION)
    if type(version) is not int or version < 1:
        raise BrokenPluginError(
            f"its {VERSION_ATTRIBUTE} is {version!r}, expected the version of the hooks, such as {HOOK_VERSION}"
        )
    if version > HOOK_VERSION:
        raise BrokenPluginError(f"it needs hooks of version {version}, {_own_version()}", hint=UPGRADE)
    hooks = {name: item for name, item in vars(HookSpecs).items() if name.startswith(PREFIX)}
    for name, function in _implementations(module):
        if name not in hooks:
            # All begin alike, so only the rest shows whether one was meant.
            near = near_names(
                name.removeprefix(PREFIX), [item.removeprefix(PREFIX) for item in hooks], limit=1
            )
            meant = f"; did you mean '{PREFIX}{near[0]}'?" if near else f": {_own_version()}"
            message = f"it implements the unknown hook {name!r}{meant}"
            raise BrokenPluginError(message, hint=None if near else UPGRADE)
        parameters = [item for item in inspect.signature(hooks[name]).parameters if item != "self"]
        unknown = [item for item in inspect.signature(function).parameters if item not in parameters]
        if unknown:
            meant = " and ".join(map(repr, parameters)) or "nothing"
            message = f"its hook {name!r} takes {unknown[0]!r}, but is given {meant}: {_own_version()}"
            raise BrokenPluginError(message, hint=None if near_names(unknown[0], parameters) else UPGRADE)


def _implementations(module: Any) -> Iterable[tuple[str, Any]]:
    for name in dir(module):
        function = getattr(module, name, None)
        if inspect.isroutine(function) and isinstance(getattr(function, f"{PROJECT}_impl", None), dict):
            yield name, function


def _own_version() -> str:
    try:
        version = f" {importlib.metadata.version(DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return f"this harness{version} has hooks of version {HOOK_VERSION}"


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


def source_digest(module: Any) -> str:
    """Return a digest of the Python files of the package that a module belongs to; its version need not change."""
    package = sys.modules.get(str(getattr(module, "__name__", "")).partition(".")[0], module)
    files = [
        file for folder in getattr(package, "__path__", ()) for file in sorted(Path(folder).rglob("*.py"))
    ]
    if not files and getattr(package, "__file__", None):
        files = [Path(package.__file__)]
    read = b"".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)
    return hashlib.sha256(read).hexdigest()[:12]


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
        entry_points: list[EntryPoint] = []
        broken = []
    for package in importlib.metadata.distributions():
        try:
            entry_points += package.entry_points.select(group=group)
        except Exception as error:  # noqa: BLE001, RUF100
            broken.append((package, error))
    return entry_points, broken


def load_entry_point(entry_point: EntryPoint) -> Any:
    """Return the object that an entry point names; raises `BrokenPluginError` for a package that is half there."""
    match = entry_point.pattern.match(entry_point.value or "")
    if match is None:
        raise BrokenPluginError(
            f"its entry point is {entry_point.value!r}, expected 'module' or 'module:attribute'"
        )
    module_name = match["module"]
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise BrokenPluginError(
                f"its module {error.name!r} is not there, only the metadata of its package are",
                hint=install_again(entry_point.dist),
            ) from error
        raise
    try:
        return reduce(getattr, filter(None, (match["attr"] or "").split(".")), module)
    except AttributeError as error:
        raise BrokenPluginError(
            f"its entry point is {entry_point.value!r}, but {module_name!r} has no {match['attr']!r}",
            hint=install_again(entry_point.dist),
        ) from error


def opening_line(entry_point: EntryPoint) -> str:
    """Return the first line of the docstring of an entry point's module, which is not imported; empty without one."""
    top, *inner = entry_point.module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        origin = Path(spec.origin or "") if spec is not None else Path()
        if inner:
            module = origin.parent.joinpath(*inner)
            origin = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
        with origin.open(encoding="utf-8") as file:
            line = file.readline().strip()
    except (OSError, ValueError, AttributeError):
        return ""
    quotes = line[:3]
    return line.strip("\"' ") if quotes in {'"""', "'''"} else ""


def install_again(package: Distribution | None) -> str:
    """Return the remedy for a package that is half there."""
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


def declared(distribution: str, extra: str = "") -> list[Requirement]:
    """Return the requirements of an installed distribution, or those that an extra adds; none if not installed."""
    from packaging.requirements import Requirement

    try:
        texts = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    requirements = [item for item in map(Requirement, texts) if item.name != distribution]
    return [
        item
        for item in requirements
        if (
            item.marker is not None and item.marker.evaluate({"extra": extra})
            if extra
            else item.marker is None
        )
    ]


def describe_mismatch(requirement: Requirement, version: str) -> str | None:
    """Return the mismatch of an installed version, or None; pre-releases count as their release."""
    from packaging.version import Version

    release = Version(version).base_version
    for bound in requirement.specifier:
        if not bound.contains(release):
            is_upper = bound.operator.startswith("<")
            needed = f"a version below {bound.version}" if is_upper else f"{bound.version} or newer"
            return f"too {'new' if is_upper else 'old'}, {needed} is needed"
    return None


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None, without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
