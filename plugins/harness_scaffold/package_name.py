"""The name of a new package: its form, and a check that it is free."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass

from harness import UsageError

__all__ = ["LONGEST", "PackageName", "check_package_is_free", "package_name"]

LONGEST = 60
_FORM = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageName:
    """One name in its two spellings."""

    package: str
    """The import name; also the name of the plugin and of what it declares: ``my_mood``."""
    distribution: str
    """The name of the distribution and of its folder: ``my-mood``."""


def package_name(text: str) -> PackageName:
    """Return a name in its two spellings; raises `UsageError` where it is invalid or a name of Python itself."""
    package, distribution = text.replace("-", "_"), text.replace("_", "-")
    if not _FORM.fullmatch(text) or len(text) > LONGEST:
        raise UsageError(
            f"The name {text[: LONGEST + 1]!r} is not valid for a package: expected a lowercase letter, then at most "
            f"{LONGEST - 1} lowercase letters and digits, with single '-' or '_' between them.",
            hint="Choose the folder with --output.",
        )
    if keyword.iskeyword(package) or keyword.issoftkeyword(package) or package in sys.stdlib_module_names:
        raise UsageError(f"The name {text!r} is a name of Python itself, so a package cannot use it.")
    return PackageName(package=package, distribution=distribution)


def check_package_is_free(name: PackageName) -> None:
    """Raise `UsageError` where an installed package or module has the name."""
    try:
        owner = importlib.metadata.distribution(name.distribution)
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        raise UsageError(
            f"The name {name.distribution!r} is taken by an installed package, version {owner.version}.",
            hint="Choose another, or uninstall that one.",
        )
    found = importlib.util.find_spec(name.package)
    if found is not None and found.origin is not None:  # a folder without code has no origin
        raise UsageError(
            f"The name {name.package!r} is taken by the module at {found.origin!r}.", hint="Choose another."
        )
