"""The list of planted faults, and where each of them is in the tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A mistake in one line: `text` of `file` becomes `fault`, `tests` must fail, or `harm` is done silently."""

    name: str
    file: str
    text: str
    fault: str
    tests: tuple[str, ...]
    harm: str

    def planted(self, root: Path) -> str:
        """Return the file below `root` with the fault; raises ValueError unless the text occurs once."""
        content = (root / self.file).read_text(encoding="utf-8")
        if content.count(self.text) != 1:
            raise ValueError(
                f"{self.name}: {self.text!r} occurs {content.count(self.text)} times in {self.file}."
            )
        return content.replace(self.text, self.fault)


def read_plants() -> list[Plant]:
    """Return the faults of ``faults.yaml`` in its order."""
    document = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text(encoding="utf-8"))
    return [
        Plant(name=name, **{**fields, "tests": tuple(fields["tests"])}) for name, fields in document.items()
    ]
