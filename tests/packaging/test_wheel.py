"""The wheel holds all of the harness and nothing else, and works where it is installed."""

from __future__ import annotations

import configparser
import importlib.metadata
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import packaging.metadata
import packaging.requirements
import pytest
import yaml

pytestmark = pytest.mark.packaging

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE_ROOTS = ("plugins", "model_adapters", "task_specs")


@pytest.fixture(scope="module")
def wheel(python: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    result = python("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    assert result.returncode == 0, result.stdout + result.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_everything_in_it_is_ours(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    information = {top for top in tops if top.endswith(".dist-info")}
    assert len(information) == 1
    strangers = {top for top in tops - information if top != "harness" and not top.startswith("harness_")}
    assert strangers == set()
    assert tops >= {"harness", "harness_baseline", "harness_hf", "harness_hub", "harness_task_specs"}


@pytest.mark.parametrize(
    "pattern",
    ["*.py", "*.yaml", "*.jsonl", "*.conllu", "*.tsv", "*.json", "py.typed", "README.md", "*.template"],
)
def test_every_file_of_the_packages_is_in_it(names: set[str], pattern: str) -> None:
    wanted = {
        path.relative_to(ROOT / root).as_posix()
        if root in SOURCE_ROOTS
        else path.relative_to(ROOT).as_posix()
        for root in ("harness", *SOURCE_ROOTS)
        for path in (ROOT / root).rglob(pattern)
        if "__pycache__" not in path.parts
    }
    assert wanted
    assert wanted <= names


def test_it_holds_no_tests_caches_or_data_of_others(names: set[str]) -> None:
    assert [
        name for name in names if "__pycache__" in name or name.endswith((".pyc", ".npz", ".safetensors"))
    ] == []
    assert "harness/py.typed" in names
    assert "harness/languages/languages.tsv" in names
    assert "harness_task_specs/task.schema.json" in names


def test_every_package_in_it_is_typed(names: set[str]) -> None:
    packages = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert {package for package in packages if f"{package}/py.typed" not in names} == set()


def _information(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        [member] = [item for item in archive.namelist() if item.endswith(f".dist-info/{name}")]
        return archive.read(member).decode()


def test_its_metadata_are_valid_and_those_of_the_project(wheel: Path) -> None:
    metadata = packaging.metadata.Metadata.from_email(_information(wheel, "METADATA"), validate=True)
    assert (metadata.name, str(metadata.version)) == (PROJECT["name"], PROJECT["version"])
    assert str(metadata.requires_python) == PROJECT["requires-python"]
    assert (metadata.license_expression, metadata.license_files) == ("Apache-2.0", ["LICENSE", "NOTICE"])
    for name in ("LICENSE", "NOTICE"):
        assert (ROOT / name).read_text(encoding="utf-8") == _information(wheel, f"licenses/{name}")
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(metadata.provides_extra or ()) == set(PROJECT["optional-dependencies"])
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]


def test_its_entry_points_are_those_of_the_project(wheel: Path) -> None:
    found = configparser.ConfigParser(delimiters="=")
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(_information(wheel, "entry_points.txt"))
    wanted = {"console_scripts": PROJECT["scripts"], **PROJECT["entry-points"]}
    assert {section: dict(found[section]) for section in found.sections()} == wanted


APART = {"inspect", "mlflow", "trackio", "translate-apis", "wandb"}
"""Extras for services and harnesses of others, of which a user has one: "all" does not bring them."""


def test_no_extra_brings_vllm_or_a_package_whose_licence_binds_users() -> None:
    extras = PROJECT["optional-dependencies"]
    packages = {
        packaging.requirements.Requirement(text).name
        for extra in extras.keys() - {"all", "dev", *APART}
        for text in extras[extra]
    }
    assert not {name for name in packages if name.startswith("vllm")}
    for name in packages:
        metadata = importlib.metadata.metadata(name)
        fields = ("Classifier", "License-Expression", "License")
        licence = [text for field in fields for text in metadata.get_all(field) or ()]
        assert not any("agpl" in text.lower() or "affero" in text.lower() for text in licence), name
    [everything] = extras["all"]
    assert packaging.requirements.Requirement(everything).extras == extras.keys() - {"all", "dev", *APART}


def test_it_is_small(wheel: Path, names: set[str]) -> None:
    assert wheel.stat().st_size < 2_900_000  # 116 kB are the table of 6,753 living languages
    with zipfile.ZipFile(wheel) as archive:
        sample = sum(item.file_size for item in archive.infolist() if "/sample/" in item.filename)
    assert 0 < sample < 1_600_000


def test_it_works_where_it_is_installed(
    wheel: Path, python: Run, install: Callable[[Path, Path], Path], tmp_path: Path
) -> None:
    target = install(wheel, tmp_path / "target")
    where = python(
        "-c", "import harness, harness_task_specs as t; print(harness.__file__, t.__file__)", path=(target,)
    )
    assert where.stdout.count(str(target)) == 2
    result = python(
        *("-m", "harness", "eval", "--tasks", "xnli:de,tatoeba:de", "--model", "baseline:majority"),
        *("--data", "sample", "--limit", "3", "--output", str(tmp_path / "run")),
        path=(target,),
    )
    assert result.returncode == 0, result.stderr
    assert "SAMPLE DATA" in result.stdout
