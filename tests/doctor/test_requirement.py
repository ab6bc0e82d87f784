"""Requirements are read from installed metadata, and versions are judged as pip judges them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from harness.registry.doctor import DISTRIBUTION
from harness.registry.requirement import declared, describe_mismatch

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "version", "fault"),
    [
        ("torch>=2.6", "2.6.0rc1", None),
        ("torch>=2.6", "2.6.0+cpu", None),
        ("torch>=2.6", "2.5.9", "too old, 2.6 or newer is needed"),
        ("torch>=2.6", "2.10", None),
        ("transformers>=5,<6", "6.0.1", "too new, a version below 6 is needed"),
        ("transformers", "1", None),
    ],
)
def test_an_installed_version_is_judged(text: str, version: str, fault: str | None) -> None:
    assert describe_mismatch(Requirement(text), version) == fault


def test_the_metadata_of_this_installation_are_those_of_the_project() -> None:
    found = {item.name for item in declared(DISTRIBUTION)}
    wanted = [Requirement(text).name for text in PROJECT["project"]["dependencies"]]
    assert found == set(wanted)
    assert declared("no-such-distribution") == []


def test_every_requirement_of_users_has_a_lowest_version() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    texts = [text for name, own in extras.items() if name not in {"all", "dev"} for text in own]
    for text in (*PROJECT["project"]["dependencies"], *texts):
        assert ">=" in {bound.operator for bound in Requirement(text).specifier}, (
            f"{text}: say from which version on it will do"
        )
