"""The exceptions of the harness, their exit codes, near-name suggestions, and warnings about renamed things.

::

    HarnessError            exit 1    one sentence a user can act on, and an optional hint (the next command)
    |- UsageError           exit 2    the command was called wrongly
    |  |- UnknownNameError            a name that is not registered, with near names
    |  |- SpecError                   all problems of one spec file, with lines
    |  `- CapabilityError             a model asked for what it cannot do
    |- PluginError          exit 2    a plugin that cannot be used
    |  |- BrokenPluginError           its import or one of its hooks raised
    |  |- DuplicateNameError          two plugins registered the same name
    |  `- MissingExtraError           an optional dependency is not installed
    |- DataError            exit 1    a data file that does not hold what its spec says
    |  `- MissingDataError            no data of this source can be found here
    |- StoppedError         exit 130  the user stopped a command
    |- StorageError         exit 1    a run folder or cache that cannot be written: the run stops, and can be resumed
    `- AdapterError         exit 1    a model backend failed
       |- TrainingError               fine-tuning failed (a NaN loss, no training split)
       `- ContractError               an adapter broke its contract (wrong count, NaN scores)
"""

from __future__ import annotations

import difflib
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


def near_names(name: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return up to `limit` of the known names that look like `name`, best first."""
    names = sorted(set(known))
    lowered = {candidate.lower(): candidate for candidate in reversed(names)}
    if name.lower() in lowered:
        return [lowered[name.lower()]]
    close = difflib.get_close_matches(name.lower(), list(lowered), n=limit, cutoff=0.6)
    return [lowered[candidate] for candidate in close]


SHOWN_NAMES = 12
"""Known names that a message lists, where none is near the one that was given."""


class DeprecatedNameWarning(DeprecationWarning):
    """A public name was used that has a new name; commands show it, Python hides it by default outside of tests."""


def warn_deprecated(old: str, new: str, *, removal: str, stacklevel: int = 2) -> None:
    """Warn that a name, argument, flag or key of the public surface has a new name.

    A module calls it in its ``__getattr__``, a function where the old argument was passed, a command in the callback
    of the hidden option, and then each does what the new name does.

    Args:
        old: The deprecated name as its user writes it: ``harness.models.Old``, ``--old``.
        new: The name to use instead.
        removal: The first version of the harness without the old name, two minor versions after the first that warns.
        stacklevel: 2 names the caller of the function that calls this one.
    """
    message = f"{old} is deprecated and will be removed in version {removal} of the harness; use {new}."
    warnings.warn(message, DeprecatedNameWarning, stacklevel=stacklevel + 1)


class HarnessError(Exception):
    """The root of all errors that are meant for a user; shown as one line, without a traceback."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return the sentence and, where there is one, the hint after it."""
        return f"{self.message} {self.hint}" if self.hint else self.message


class UsageError(HarnessError):
    """The command or the Python call was used wrongly."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not registered was asked for."""

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        hint: str | None = None,
        near: list[str] | None = None,
    ) -> None:
        names = sorted(set(known))
        near = near or near_names(name, names)
        if near:
            suggestion = "Did you mean " + " or ".join(repr(candidate) for candidate in near) + "?"
        elif names:
            hidden = len(names) - SHOWN_NAMES
            listed = ", ".join(names[:SHOWN_NAMES]) + (f" and {hidden} more" if hidden > 0 else "")
            suggestion = f"Known: {listed}."
        else:
            suggestion = f"No {kind} is known."
        super().__init__(f"No {kind} named {name!r}. {suggestion}", hint=hint)
        self.kind = kind
        self.name = name
        self.near = near


def raise_unknown(errors: Sequence[UnknownNameError]) -> None:
    """Raise the only error, or one `UsageError` that holds all unknown names of a list; nothing for no error."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        names = {
            error.name: f" (did you mean {' or '.join(map(repr, error.near))}?)" if error.near else ""
            for error in errors
        }
        listed = ", ".join(f"{name!r}{meant}" for name, meant in names.items())
        raise UsageError(f"No {errors[0].kind} is named {listed}.", hint=errors[0].hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault of a spec file."""

    message: str
    line: int | None = None
    """1-based line in the file, where it is known."""
    key: str = ""
    """Dotted path of the key, such as ``languages.sw.test``."""

    def __str__(self) -> str:
        """Return ``line 12: languages.sw.test: message``."""
        where = [f"line {self.line}"] if self.line is not None else []
        where += [self.key] if self.key else []
        return ": ".join([*where, self.message])


class SpecError(UsageError):
    """A spec file has faults; all of them are reported at once."""

    def __init__(self, source: Path | str, problems: Sequence[Problem]) -> None:
        self.source = str(source)
        self.problems = tuple(problems)
        count = "1 fault" if len(self.problems) == 1 else f"{len(self.problems)} faults"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{self.source} has {count}:{lines}")


class CapabilityError(UsageError):
    """A model was asked for something it cannot do."""


class PluginError(HarnessError):
    """A plugin cannot be used."""

    exit_code = 2


class BrokenPluginError(PluginError):
    """A plugin's import, or one of its hooks, raised."""


class DuplicateNameError(PluginError):
    """Two plugins registered the same name, or the user gave a file that has it, too.

    `given` are those of the two that are files or folders of the user, which cannot be uninstalled; `kept` says that
    the first is the harness's own, so that it is used.
    """

    def __init__(
        self, kind: str, name: str, first: str, second: str, *, given: Sequence[str] = (), kept: bool = False
    ) -> None:
        both = " and ".join(
            f"{'file' if owner in given else 'plugin'} {owner!r}" for owner in (first, second)
        )
        if first in given and second in given:
            hint = "Omit one of them (--tasks-from)."
        elif given:
            hint = f"Omit the file {second if second in given else first!r}, or rename what it has."
        else:
            advice = f"That of {first!r} is used. Uninstall the other" if kept else "Uninstall one of them"
            hint = f"{advice}, or run with HARNESS_DISABLE_PLUGINS={second}."
        super().__init__(f"The {kind} {name!r} is registered by both {both}.", hint=hint)
        self.kind = kind
        self.name = name
        self.both = (first, second)


class MissingExtraError(PluginError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str, missing: str) -> None:
        super().__init__(
            f"{feature} needs the package {missing!r}, which is not installed.",
            hint=f"Run: pip install 'multilingual-harness[{extra}]'",
        )


@contextmanager
def require_extra(feature: str, extra: str | None, target: str) -> Iterator[None]:
    """Turn the failed import of a foreign package into `MissingExtraError`.

    Args:
        feature: What needs the package: ``The adapter 'hf'``.
        extra: The extra that brings it; with None nothing is turned.
        target: ``module:attribute`` that is imported or called; a module of its own package that is missing is a fault.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        is_own_module = (
            error.name is None or target.partition(":")[0].split(".")[0] == error.name.split(".")[0]
        )
        if is_own_module or extra is None:
            raise
        raise MissingExtraError(feature, extra, str(error.name).split(".")[0]) from error


class DataError(HarnessError):
    """A data file does not hold what its spec says."""


class MissingDataError(DataError):
    """No data of a source can be found where the user asked to look."""


class StoppedError(HarnessError):
    """The user stopped a command; the message says how to resume it."""

    exit_code = 130


class StorageError(HarnessError):
    """A file of a run or of the cache cannot be written: nothing that follows could be kept."""


class AdapterError(HarnessError):
    """A model backend failed; chained from the backend's own exception."""


class TrainingError(AdapterError):
    """Fine-tuning failed."""


class ContractError(AdapterError):
    """An adapter broke its contract: wrong count, NaN scores, unknown labels."""
