"""Requirements that an installed package declares, and whether an installed version will do."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement


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
