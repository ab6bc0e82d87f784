"""Requirements mean what pip takes them to mean; `packaging` is the independent reader."""

from __future__ import annotations

import tomllib
from pathlib import Path

import packaging.requirements
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.registry.doctor import DISTRIBUTION
from harness.registry.requirement import Requirement, declared

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
RELEASES = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
BOUNDS = st.one_of(
    st.builds(">={}".format, RELEASES),
    st.builds("<{}".format, RELEASES),
    st.builds(">={},<{}".format, RELEASES, RELEASES),
    st.builds("<{},>={}".format, RELEASES, RELEASES),
    st.just(""),
)


@given(bounds=BOUNDS, version=RELEASES, local=st.sampled_from(["", "+cpu", ".post1"]))
def test_a_version_will_do_where_pip_says_so(bounds: str, version: str, local: str) -> None:
    text = f"some-package{bounds}"
    ours = Requirement.parse(text)
    assert ours is not None
    allowed = packaging.requirements.Requirement(text).specifier.contains(version + local)
    assert (ours.fault(version + local) is None) is allowed
    again = Requirement.parse(str(ours))
    assert again == ours


@pytest.mark.parametrize(
    ("text", "name", "lowest", "below", "extra"),
    [
        ("numpy>=1.26", "numpy", "1.26", None, ""),
        ("transformers<6,>=5; extra == 'hf'", "transformers", "5", "6", "hf"),
        ('torch (>=2.6) ; extra == "hf"', "torch", "2.6", None, "hf"),
        ("types-pyyaml; extra == 'dev'", "types-pyyaml", None, None, "dev"),
    ],
)
def test_lines_of_metadata(text: str, name: str, lowest: str | None, below: str | None, extra: str) -> None:
    expected = Requirement(name=name, lowest=lowest, below=below, extra=extra)
    assert Requirement.parse(text) == expected


def test_the_metadata_of_this_installation_are_those_of_the_project() -> None:
    found = {item.name for item in declared(DISTRIBUTION) if not item.extra}
    wanted = [packaging.requirements.Requirement(text).name for text in PROJECT["project"]["dependencies"]]
    assert found == set(wanted)
    assert declared("no-such-distribution") == []


def test_every_requirement_of_users_has_a_lowest_version() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    texts = [text for name, own in extras.items() if name not in {"all", "dev"} for text in own]
    for text in (*PROJECT["project"]["dependencies"], *texts):
        requirement = Requirement.parse(text)
        assert requirement is not None
        assert requirement.lowest is not None, f"{text}: say from which version on it will do"


def test_a_pre_release_counts_as_its_release() -> None:
    requirement = Requirement(name="torch", lowest="2.6")
    assert requirement.fault("2.6.0rc1") is None
    assert requirement.fault("2.5.9") == "too old, 2.6 or newer is needed"
