"""Print the lowest declared version of every package that an extra or the core asks for, as constraints for pip.

``python tests/packaging/lowest.py metrics hf > lowest.txt`` names the core's and those of two extras; the tests' own
tools come from the extra ``dev``, where they are in `TOOLS`. pip takes the lines as requirements, too.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {"hypothesis", "jsonschema", "pytest", "scikit-learn", "seqeval"}
"""What tests of the core import; with their lowest versions, since newer ones ask for newer packages of ours."""


def lowest(extras: Sequence[str]) -> list[str]:
    """Return ``name==version`` lines, sorted; raises `ValueError` for a requirement without a lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    requirements = [Requirement(text) for text in project["dependencies"]]
    requirements += [Requirement(text) for extra in extras for text in optional[extra]]
    requirements += [item for item in map(Requirement, optional["dev"]) if item.name in TOOLS]
    pins = set()
    for requirement in requirements:
        versions = [bound.version for bound in requirement.specifier if bound.operator == ">="]
        if len(versions) != 1:
            raise ValueError(f"{str(requirement)!r} names no lowest version: write >=.")
        pins.add(f"{requirement.name}=={versions[0]}")
    return sorted(pins)


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(sys.argv[1:])) + "\n")
