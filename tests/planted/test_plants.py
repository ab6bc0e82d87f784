"""The planted faults still fit the tree: every text occurs once, and every package has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.plants import ROOT, Plant, read_plants

PLANTS = read_plants()


def _packages() -> list[str]:
    names = (path for top in ("harness", "plugins", "model_adapters") for path in (ROOT / top).iterdir())
    return sorted(
        path.relative_to(ROOT).as_posix() for path in names if path.is_dir() and any(path.rglob("*.py"))
    )


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_fault_fits_its_file(plant: Plant) -> None:
    content = plant.planted(ROOT)

    assert content != (ROOT / plant.file).read_text(encoding="utf-8")
    compile(content, plant.file, "exec")
    assert all((ROOT / path).exists() for path in plant.tests)


@pytest.mark.parametrize("package", _packages())
def test_package_has_a_planted_fault(package: str) -> None:
    assert [plant for plant in PLANTS if Path(plant.file).is_relative_to(package)]
