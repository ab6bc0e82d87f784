"""From entry points to a plugin manager; a broken plugin is collected and reported, never fatal."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pluggy

from harness.errors import BrokenPluginError, HarnessError
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
    trace: bool = False
    """Whether every call of a hook is told on stderr."""

    def declarations(self, hook: str) -> list[tuple[str, Any]]:
        """Return (plugin name, declared thing) pairs of a ``register`` hook, ordered by plugin name.

        A plugin whose hook raises is moved to `broken`; the others answer.
        """
        pairs: list[tuple[str, Any]] = []
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        for implementation in sorted(implementations, key=lambda item: item.plugin_name):
            name = implementation.plugin_name
            try:
                declared = list(implementation.function())
            except Exception as error:  # noqa: BLE001, RUF100  a stranger's hook may raise anything
                self.report(name, f"{hook} raised {type(error).__name__}: {error}")
                continue
            self._tell(hook, name, f"{len(declared)} declared")
            pairs += [(name, item) for item in declared]
        return pairs

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
            except Exception as error:
                self.report(implementation.plugin_name, f"{hook} raised {type(error).__name__}: {error}")
                broken = next(item for item in self.broken if item.name == implementation.plugin_name)
                raise _problem(broken) from error
            self._tell(hook, implementation.plugin_name, type(answer).__name__)
            if answer is not None:
                return answer
        return None

    def notify(self, hook: str, **arguments: Any) -> list[str]:
        """Call an observer hook of every plugin; return one sentence for each that raised."""
        told: list[str] = []
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            name = implementation.plugin_name
            try:
                implementation.function(*(arguments[argument] for argument in implementation.argnames))
                self._tell(hook, name, "observed")
            except Exception as error:  # noqa: BLE001, RUF100  a stranger's observer may raise anything
                message = f"{hook} raised {type(error).__name__}: {error}"
                self.report(name, message)
                told.append(f"The plugin {name!r} could not observe this: {message}.")
        return told

    def _tell(self, hook: str, name: str, answer: str) -> None:
        if self.trace:
            sys.stderr.write(f"hook {hook}: {name} -> {answer}\n")

    def report(self, name: str, message: str) -> None:
        """Remember that a working plugin turned out to be broken; only the first fault of each is kept."""
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

    @property
    def problems(self) -> list[BrokenPluginError]:
        """What is wrong with every broken plugin, and what to do about it."""
        return [_problem(plugin) for plugin in self.broken]


def _problem(plugin: Plugin) -> BrokenPluginError:
    return BrokenPluginError(
        f"The plugin {plugin.name!r} ({plugin.distribution}) cannot be used: {plugin.error}.",
        hint=f"Repair it, or run with {DISABLE_VARIABLE}={plugin.name}.",
    )


def discover(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Plugins:
    """Return the plugins of this environment, loaded one by one in the order of their names.

    ``HARNESS_DISABLE_PLUGINS=a,b`` leaves plugins out; ``HARNESS_TRACE_HOOKS=1`` tells every call of a hook
    on stderr, with what was answered.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    plugins = Plugins(manager=manager, trace=bool(os.environ.get(TRACE_VARIABLE)))
    disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",") if name.strip()}
    found = importlib.metadata.entry_points(group=PROJECT) if entry_points is None else entry_points
    for entry_point in sorted(set(found), key=lambda item: (item.name, item.value)):
        if entry_point.name in disabled:
            plugins.disabled.append(entry_point.name)
        else:
            _load(entry_point, plugins)
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
