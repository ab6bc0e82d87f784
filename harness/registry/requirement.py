"""What an installed package declares to need: names, the versions that will do, and the extra that asks for them."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from itertools import zip_longest

__all__ = ["Requirement", "declared", "installed_version"]

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_BOUND = re.compile(r"(>=|<)\s*([0-9][^,;\s)]*)")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([^\"']+)[\"']")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A package that is needed, as the metadata of another declares it."""

    name: str
    lowest: str | None = None
    """The lowest version that will do."""
    below: str | None = None
    """The first version that will do no more."""
    extra: str = ""
    """The extra that asks for it; empty where it is always needed."""

    @classmethod
    def parse(cls, text: str) -> Requirement | None:
        """Return what a ``Requires-Dist`` line says (``torch>=2.6; extra == "hf"``); None where it names no package."""
        name = _NAME.match(text)
        if name is None:
            return None
        bounds, extra = dict(_BOUND.findall(text.partition(";")[0])), _EXTRA.search(text)
        return cls(
            name=name.group(),
            lowest=bounds.get(">="),
            below=bounds.get("<"),
            extra="" if extra is None else extra.group(1),
        )

    def fault(self, version: str) -> str | None:
        """Return what is wrong with an installed version, or None; pre-releases count as their release."""
        if self.lowest is not None and _earlier(version, self.lowest):
            return f"too old, {self.lowest} or newer is needed"
        if self.below is not None and not _earlier(version, self.below):
            return f"too new, a version below {self.below} is needed"
        return None

    def __str__(self) -> str:
        """Return it as pip takes it: ``transformers>=5,<6``."""
        bounds = ((">=", self.lowest), ("<", self.below))
        return self.name + ",".join(f"{sign}{version}" for sign, version in bounds if version is not None)


def declared(distribution: str) -> list[Requirement]:
    """Return what an installed distribution needs, without its own extras; nothing where it is not installed."""
    try:
        texts = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = [Requirement.parse(text) for text in texts]
    return [item for item in found if item is not None and item.name != distribution]


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None, without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _earlier(version: str, other: str) -> bool:
    for one, two in zip_longest(_release(version), _release(other), fillvalue=0):
        if one != two:
            return one < two
    return False


def _release(version: str) -> list[int]:
    """Return the numbers of a version's release (PEP 440): those before any letter or plus sign."""
    found = _RELEASE.match(version)
    return [] if found is None else [int(part) for part in found.group().split(".")]
