"""From entry points to a plugin manager; a broken plugin is collected and reported, never fatal."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pluggy

from harness.errors import BrokenPluginError
from harness.hookspecs import PROJECT, HookSpecs

__all__ = ["DISABLE_VARIABLE", "TRACE_VARIABLE", "Plugin", "Plugins", "discover"]

DISABLE_VARIABLE = "HARNESS_DISABLE_PLUGINS"
TRACE_VARIABLE = "HARNESS_TRACE_HOOKS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry point of the group ``harness``."""

    name: str
    module: str
    distribution: str
    version: str
    error: str | None = None
    """Why it could not be loaded; None for a working plugin."""


@dataclass(slots=True, kw_only=True)
class Plugins:
    """The loaded plugins of one command. A fresh one is made for every command; there is no global."""

    manager: pluggy.PluginManager
    loaded: list[Plugin] = field(default_factory=list)
    broken: list[Plugin] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)

    def declarations(self, hook: str) -> list[tuple[str, Any]]:
        """Return (plugin name, declared thing) pairs of a ``register`` hook, ordered by plugin name.

        A plugin whose hook raises is moved to `broken`; the others answer.
        """
        pairs: list[tuple[str, Any]] = []
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        for implementation in sorted(implementations, key=lambda item: item.plugin_name):
            try:
                pairs += [(implementation.plugin_name, item) for item in implementation.function()]
            except Exception as error:  # noqa: BLE001, RUF100  a stranger's hook may raise anything
                self._report(implementation.plugin_name, f"{hook} raised {type(error).__name__}: {error}")
        return pairs

    def notify(self, hook: str, **arguments: Any) -> list[str]:
        """Call an observer hook of every plugin; return one sentence for each that raised."""
        told: list[str] = []
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            name = implementation.plugin_name
            try:
                implementation.function(*(arguments[argument] for argument in implementation.argnames))
            except Exception as error:  # noqa: BLE001, RUF100  a stranger's observer may raise anything
                message = f"{hook} raised {type(error).__name__}: {error}"
                self._report(name, message)
                told.append(f"The plugin {name!r} could not observe this: {message}.")
        return told

    def _report(self, name: str, message: str) -> None:
        known = next((plugin for plugin in self.loaded if plugin.name == name), None)
        if known is None or any(plugin.name == name for plugin in self.broken):
            return
        self.broken.append(
            Plugin(
                name=name,
                module=known.module,
                distribution=known.distribution,
                version=known.version,
                error=message,
            )
        )

    def require_working(self, name: str) -> None:
        """Raise `BrokenPluginError` if the plugin of this name is broken."""
        for plugin in self.broken:
            if plugin.name == name:
                raise BrokenPluginError(
                    f"The plugin {name!r} ({plugin.distribution}) cannot be used: {plugin.error}.",
                    hint=f"Repair it, or run with {DISABLE_VARIABLE}={name}.",
                )


def discover(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Plugins:
    """Return the plugins of this environment, loaded one by one in the order of their names.

    ``HARNESS_DISABLE_PLUGINS=a,b`` leaves plugins out; ``HARNESS_TRACE_HOOKS=1`` prints every hook call to stderr.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    plugins = Plugins(manager=manager)
    disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",") if name.strip()}
    found = importlib.metadata.entry_points(group=PROJECT) if entry_points is None else entry_points
    for entry_point in sorted(set(found), key=lambda item: (item.name, item.value)):
        if entry_point.name in disabled:
            plugins.disabled.append(entry_point.name)
        else:
            _load(entry_point, plugins)
    if os.environ.get(TRACE_VARIABLE):
        _trace(manager)
    return plugins


def _load(entry_point: importlib.metadata.EntryPoint, plugins: Plugins) -> None:
    distribution = entry_point.dist
    described = {
        "name": entry_point.name,
        "module": entry_point.value,
        "distribution": distribution.name if distribution is not None else "?",
        "version": distribution.version if distribution is not None else "?",
    }
    taken = next((plugin for plugin in plugins.loaded if plugin.name == entry_point.name), None)
    try:
        if taken is not None:
            raise BrokenPluginError(f"its name is also used by {taken.module!r} of {taken.distribution!r}")
        module = entry_point.load()
        plugins.manager.register(module, name=entry_point.name)
        _check_hooks(plugins.manager, module)
    except Exception as error:  # noqa: BLE001, RUF100  a stranger's import may raise anything
        if plugins.manager.get_plugin(entry_point.name) is not None and taken is None:
            plugins.manager.unregister(name=entry_point.name)
        shown = error.message if isinstance(error, BrokenPluginError) else f"{type(error).__name__}: {error}"
        plugins.broken.append(Plugin(**described, error=shown))
        return
    plugins.loaded.append(Plugin(**described))


def _check_hooks(manager: pluggy.PluginManager, module: Any) -> None:
    for caller in manager.get_hookcallers(module) or []:
        if caller.spec is None:
            from harness.errors import near_names

            known = [name for name in vars(HookSpecs) if name.startswith("harness_")]
            near = near_names(caller.name, known)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise BrokenPluginError(f"it implements the unknown hook {caller.name!r}{meant}")


def _trace(manager: pluggy.PluginManager) -> None:
    def before(hook_name: str, implementations: Iterable[Any], arguments: Any) -> None:
        names = ", ".join(implementation.plugin_name for implementation in implementations)
        sys.stderr.write(f"hook {hook_name}({', '.join(arguments)}) -> {names or 'nobody'}\n")

    def after(outcome: Any, hook_name: str, implementations: Any, arguments: Any) -> None:
        sys.stderr.write(f"hook {hook_name} answered\n")

    monitor: Callable[..., Any] = manager.add_hookcall_monitoring
    monitor(before, after)
