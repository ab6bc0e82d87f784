"""From entry points to a plugin manager; a broken plugin is collected and reported, never fatal."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import pluggy

from harness.errors import BrokenPluginError, DuplicateNameError, HarnessError, PluginError
from harness.hookspecs import PROJECT, HookSpecs
from harness.registry.guard import call_named, kept_streams
from harness.registry.plugin import (
    DISABLE_VARIABLE,
    Plugin,
    check_hooks,
    describe_fault,
    find_entry_points,
    install_again,
    load_entry_point,
    package_of,
    source_digest,
)

TRACE_VARIABLE = "HARNESS_TRACE_HOOKS"
Item = TypeVar("Item")
RAISED = (Exception, SystemExit)
"""Exceptions that third-party code may raise while it works for a run."""


@dataclass(slots=True, kw_only=True)
class Plugins:
    """The loaded plugins of one command. A fresh one is made for every command; there is no global."""

    manager: pluggy.PluginManager
    loaded: list[Plugin] = field(default_factory=list)
    broken: list[Plugin] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    trace: bool = False
    """Whether every call of a hook is printed on stderr."""
    undone: list[PluginError] = field(default_factory=list)
    """Undone acts of third parties: they took names of the harness's own, closed or replaced standard streams."""

    def declarations(self, hook: str) -> list[tuple[str, Any]]:
        """Return (plugin name, declared thing) pairs of a ``register`` hook, ordered by plugin name.

        A plugin whose hook raises is moved to `broken`; the others answer.
        """
        pairs: list[tuple[str, Any]] = []
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        if not implementations:
            return pairs
        for implementation in sorted(implementations, key=lambda item: item.plugin_name):
            name = implementation.plugin_name
            try:
                declared = self.call_watched(self._loaded(name), partial(_listed, implementation.function))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a third party's hook may raise anything
                self._raised(name, hook, error)
                continue
            self._trace(hook, name, f"{len(declared)} declared")
            pairs += [(name, item) for item in declared]
        return pairs

    def code_versions(self, hooks: Iterable[str]) -> dict[str, str]:
        """Return, of others' plugins that have one of the hooks, package, version and digest of the Python files."""
        return {
            plugin.name: f"{plugin.distribution} {plugin.version} ({source_digest(module)})"
            for plugin in self.loaded
            if not plugin.is_ours
            and (module := self.manager.get_plugin(plugin.name)) is not None
            and any(hasattr(module, hook) for hook in hooks)
        }

    def call_watched(self, plugin: Plugin, function: Callable[[], Item]) -> Item:
        """Call code that a plugin runs before a command works: it is named where it hangs or Ctrl-C stops it."""
        way_out = f"run with {DISABLE_VARIABLE}={plugin.name}"
        if plugin.is_ours:  # They import numpy, which takes its time from a cold disk.
            return function()
        try:
            with self._keeping_streams(plugin):
                return call_named(
                    function, f"The plugin {plugin.name!r} is slow to load. To skip it, {way_out}."
                )
        except KeyboardInterrupt:
            sys.stderr.write(f"The plugin {plugin.name!r} was being loaded. To skip it, {way_out}.\n")
            raise

    @contextmanager
    def _keeping_streams(self, plugin: Plugin) -> Iterator[None]:
        """Restore the standard streams after a plugin's code; one that closed or replaced them is added to `undone`."""
        faults: list[str] = []
        try:
            with kept_streams() as faults:
                yield
        finally:
            for fault in faults:
                self._add_undone(
                    BrokenPluginError(
                        f"The plugin {plugin.name!r} ({plugin.distribution}) {fault}, which was restored.",
                        hint=f"Repair it, or run with {DISABLE_VARIABLE}={plugin.name}.",
                    )
                )

    def _add_undone(self, error: PluginError) -> None:
        if all(str(error) != str(earlier) for earlier in self.undone):
            self.undone.append(error)

    def _loaded(self, name: str) -> Plugin:
        matches = (plugin for plugin in self.loaded if plugin.name == name)
        return next(matches, Plugin(name=name, module="?"))

    def _is_ours(self, name: str) -> bool:
        return any(plugin.name == name and plugin.is_ours for plugin in self.loaded)

    def drop_shadowed_names(
        self, sort: str, triples: Sequence[tuple[str, str, Item]]
    ) -> list[tuple[str, str, Item]]:
        """Return (plugin, name, thing) triples without those of third parties that have a name of the harness's own.

        Their names are added to `undone`: what the harness brings works whatever else is installed.
        """
        owners: dict[str, list[str]] = {}
        for plugin, name, _ in triples:
            owners.setdefault(name, []).append(plugin)
        remaining = []
        for plugin, name, item in triples:
            ours = [owner for owner in owners[name] if owner != plugin and self._is_ours(owner)]
            if ours and not self._is_ours(plugin):
                self._add_undone(DuplicateNameError(sort, name, ours[0], plugin, kept=True))
            else:
                remaining.append((plugin, name, item))
        return remaining

    def _raised(self, name: str, hook: str, error: BaseException) -> str:
        fault, hint = describe_fault(error)
        message = f"{hook} raised {fault}"
        self.report(name, message, hint=hint, cause=error)
        return message

    def first_answer(self, hook: str, **arguments: Any) -> Any:
        """Return the first answer to a hook that is not None; the plugin that was loaded last is asked first.

        Raises `BrokenPluginError` with the name of a plugin whose hook raises anything but a `HarnessError`.
        """
        for implementation in reversed(getattr(self.manager.hook, hook).get_hookimpls()):
            values = [arguments[argument] for argument in implementation.argnames]
            try:
                with self._keeping_streams(self._loaded(implementation.plugin_name)):
                    answer = implementation.function(*values)
            except HarnessError:
                raise
            except RAISED as error:
                self._raised(implementation.plugin_name, hook, error)
                broken = next(item for item in self.broken if item.name == implementation.plugin_name)
                raise broken.problem from error
            self._trace(hook, implementation.plugin_name, type(answer).__name__)
            if answer is not None:
                return answer
        return None

    def notify(self, hook: str, **arguments: Any) -> list[str]:
        """Call an observer hook of every plugin; return one sentence for each that raised."""
        messages: list[str] = []
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            name = implementation.plugin_name
            try:
                with self._keeping_streams(self._loaded(name)):
                    implementation.function(*(deepcopy(arguments[key]) for key in implementation.argnames))
                self._trace(hook, name, "observed")
            except RAISED as error:
                message = self._raised(name, hook, error)
                messages.append(f"The plugin {name!r} could not observe this: {message}.")
        return messages

    def _trace(self, hook: str, name: str, answer: str) -> None:
        if self.trace:
            sys.stderr.write(f"hook {hook}: {name} -> {answer}\n")

    def report(
        self, name: str, message: str, *, hint: str | None = None, cause: BaseException | None = None
    ) -> None:
        """Remember that a working plugin turned out to be broken; only the first fault of each is kept."""
        loaded_plugin = next((plugin for plugin in self.loaded if plugin.name == name), None)
        if loaded_plugin is not None and all(plugin.name != name for plugin in self.broken):
            self.broken.append(replace(loaded_plugin, error=message, hint=hint, cause=cause))

    @property
    def problems(self) -> list[PluginError]:
        """Problem of every broken plugin, with its remedy; then the undone acts."""
        return [*(plugin.problem for plugin in self.broken), *self.undone]


def discover(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Plugins:
    """Return the plugins of this environment, loaded one by one in the order of their names.

    ``HARNESS_DISABLE_PLUGINS=a,b`` skips plugins; ``HARNESS_TRACE_HOOKS=1`` prints every call of a hook
    on stderr, with what was answered. A plugin whose import needs more than 5 s is named on stderr, and waited for.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    plugins = Plugins(manager=manager, trace=bool(os.environ.get(TRACE_VARIABLE)))
    disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",") if name.strip()}
    candidates, unreadable = find_entry_points(PROJECT) if entry_points is None else (entry_points, [])
    plugins.broken += [_unreadable(package, error) for package, error in unreadable]
    for entry_point in _in_order(candidates):
        if entry_point.name in disabled:
            plugins.disabled.append(entry_point.name)
        else:
            _load(entry_point, plugins)
    return plugins


def _in_order(found: Iterable[importlib.metadata.EntryPoint]) -> list[importlib.metadata.EntryPoint]:
    """Return entry points by name; where several have a name, ours first, so that no package replaces it."""
    by_name: dict[str, list[importlib.metadata.EntryPoint]] = {}
    for entry_point in set(found):
        by_name.setdefault(entry_point.name, []).append(entry_point)
    for items in by_name.values():
        if len(items) > 1:
            items.sort(key=lambda item: (not _plugin(item).is_ours, item.value))
    return [item for name in sorted(by_name) for item in by_name[name]]


def _plugin(entry_point: importlib.metadata.EntryPoint) -> Plugin:
    return Plugin(name=entry_point.name, module=entry_point.value, package=entry_point.dist)


def _unreadable(package: importlib.metadata.Distribution, error: Exception) -> Plugin:
    message = f"its entry_points.txt cannot be read: {type(error).__name__}: {error}"
    name, hint = package_of(package)[0], install_again(package)
    return Plugin(name=name, module="?", package=package, error=message, hint=hint, cause=error)


def _listed(hook: Callable[[], Iterable[Any]]) -> list[Any]:
    return list(hook())


def _register(entry_point: importlib.metadata.EntryPoint, manager: pluggy.PluginManager) -> None:
    module = load_entry_point(entry_point)
    check_hooks(module)
    manager.register(module, name=entry_point.name)


def _load(entry_point: importlib.metadata.EntryPoint, plugins: Plugins) -> None:
    plugin = _plugin(entry_point)
    name = plugin.name
    namesake = next((item for item in plugins.loaded if item.name == name), None)
    try:
        if namesake is not None:
            raise BrokenPluginError(
                f"its name is also used by {namesake.module!r} of {namesake.distribution!r}",
                hint="Uninstall one of them",
            )
        plugins.call_watched(plugin, partial(_register, entry_point, plugins.manager))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a third party's import may raise anything
        if plugins.manager.get_plugin(name) is not None and namesake is None:
            plugins.manager.unregister(name=name)
        message, hint = describe_fault(error)
        plugins.broken.append(replace(plugin, error=message, hint=hint, cause=error))
        return
    plugins.loaded.append(plugin)
