"""From entry points to a plugin manager; a broken plugin is collected and reported, never fatal."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pluggy

from harness.errors import BrokenPluginError, DuplicateNameError, HarnessError, PluginError
from harness.hookspecs import PROJECT, HookSpecs
from harness.registry.deadline import HangingError, Watch, patience
from harness.registry.package import find_entry_points, install_again, load_entry_point, package_of
from harness.registry.plugin import DISABLE_VARIABLE, Plugin, check_hooks, describe_fault

__all__ = ["TRACE_VARIABLE", "Plugins", "discover"]

TRACE_VARIABLE = "HARNESS_TRACE_HOOKS"
Item = TypeVar("Item")
RAISED = (Exception, HangingError, SystemExit)
"""What third-party code may raise while it works for a run."""


@dataclass(slots=True, kw_only=True)
class Plugins:
    """The loaded plugins of one command. A fresh one is made for every command; there is no global."""

    manager: pluggy.PluginManager
    loaded: list[Plugin] = field(default_factory=list)
    broken: list[Plugin] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    trace: bool = False
    """Whether every call of a hook is printed on stderr."""
    taken: list[DuplicateNameError] = field(default_factory=list)
    """Names of the harness's own that third parties also registered."""

    def declarations(self, hook: str) -> list[tuple[str, Any]]:
        """Return (plugin name, declared thing) pairs of a ``register`` hook, ordered by plugin name.

        A plugin whose hook raises is moved to `broken`; the others answer.
        """
        pairs: list[tuple[str, Any]] = []
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        if not implementations:
            return pairs
        with Watch(patience(), _hangs) as watch:
            for implementation in sorted(implementations, key=lambda item: item.plugin_name):
                name = implementation.plugin_name
                try:
                    with watch.over(name, self._may_interrupt(name)):
                        declared = list(implementation.function())
                except BaseException as error:  # a third party's hook may raise anything
                    if watch.is_stop(error):
                        raise
                    self._raised(name, hook, error)
                    continue
                self._trace(hook, name, f"{len(declared)} declared")
                pairs += [(name, item) for item in declared]
        return pairs

    def _may_interrupt(self, name: str) -> Callable[[], bool]:
        # Our own hooks import numpy, which takes its time from a cold disk, and would be broken half-way.
        return lambda: not self._is_ours(name)

    def _is_ours(self, name: str) -> bool:
        return any(plugin.name == name and plugin.is_ours for plugin in self.loaded)

    def drop_shadowed_names(
        self, sort: str, triples: Sequence[tuple[str, str, Item]]
    ) -> list[tuple[str, str, Item]]:
        """Return (plugin, name, thing) triples without those of third parties that have a name of the harness's own.

        Their names are added to `taken`: what the harness brings works whatever else is installed.
        """
        owners: dict[str, list[str]] = {}
        for plugin, name, _ in triples:
            owners.setdefault(name, []).append(plugin)
        kept = []
        for plugin, name, item in triples:
            ours = [other for other in owners[name] if other != plugin and self._is_ours(other)]
            if ours and not self._is_ours(plugin):
                error = DuplicateNameError(sort, name, ours[0], plugin, kept=True)
                self.taken += [error] if all(str(error) != str(known) for known in self.taken) else []
            else:
                kept.append((plugin, name, item))
        return kept

    def _raised(self, name: str, hook: str, error: BaseException) -> str:
        fault, hint = describe_fault(error, f"its hook {hook}")
        message = fault if isinstance(error, HangingError) else f"{hook} raised {fault}"
        self.report(name, message, hint=hint, cause=error)
        return message

    def first_answer(self, hook: str, **arguments: Any) -> Any:
        """Return the first answer to a hook that is not None; the plugin that was loaded last is asked first.

        Raises `BrokenPluginError` with the name of a plugin whose hook raises anything but a `HarnessError`.
        """
        for implementation in reversed(getattr(self.manager.hook, hook).get_hookimpls()):
            given = [arguments[argument] for argument in implementation.argnames]
            try:
                answer = implementation.function(*given)
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
                implementation.function(*(arguments[argument] for argument in implementation.argnames))
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
        known = next((plugin for plugin in self.loaded if plugin.name == name), None)
        if known is not None and all(plugin.name != name for plugin in self.broken):
            self.broken.append(replace(known, error=message, hint=hint, cause=cause))

    @property
    def problems(self) -> list[PluginError]:
        """What is wrong with every broken plugin, and what to do about it; then the names that were taken."""
        return [*(plugin.problem for plugin in self.broken), *self.taken]


def discover(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Plugins:
    """Return the plugins of this environment, loaded one by one in the order of their names.

    ``HARNESS_DISABLE_PLUGINS=a,b`` skips plugins; ``HARNESS_TRACE_HOOKS=1`` prints every call of a hook
    on stderr, with what was answered. A plugin whose import hangs is interrupted after
    ``HARNESS_PLUGIN_TIMEOUT`` seconds.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    plugins = Plugins(manager=manager, trace=bool(os.environ.get(TRACE_VARIABLE)))
    disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",") if name.strip()}
    found, unreadable = find_entry_points(PROJECT) if entry_points is None else (entry_points, [])
    plugins.broken += [_unreadable(package, error) for package, error in unreadable]
    with Watch(patience(), _hangs) as watch:
        for entry_point in _in_order(found):
            if entry_point.name in disabled:
                plugins.disabled.append(entry_point.name)
            else:
                _load(entry_point, plugins, watch)
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


def _hangs(name: str) -> None:
    sys.stderr.write(
        f"Still waiting for the plugin {name!r} to be loaded. If it hangs, press Ctrl-C or end process {os.getpid()}, "
        f"and run with {DISABLE_VARIABLE}={name}.\n"
    )
    sys.stderr.flush()


def _load(entry_point: importlib.metadata.EntryPoint, plugins: Plugins, watch: Watch) -> None:
    plugin = _plugin(entry_point)
    name = plugin.name
    taken = next((item for item in plugins.loaded if item.name == name), None)
    try:
        if taken is not None:
            raise BrokenPluginError(
                f"its name is also used by {taken.module!r} of {taken.distribution!r}",
                hint="Uninstall one of them",
            )
        with watch.over(name, lambda: not plugin.is_ours):
            module = load_entry_point(entry_point)
            check_hooks(module)
            plugins.manager.register(module, name=name)
    except BaseException as error:  # a third party's import may raise anything
        if watch.is_stop(error):
            raise
        if plugins.manager.get_plugin(name) is not None and taken is None:
            plugins.manager.unregister(name=name)
        message, hint = describe_fault(error, "its import")
        plugins.broken.append(replace(plugin, error=message, hint=hint, cause=error))
        return
    plugins.loaded.append(plugin)
