"""Help and listings are quick because they import little; in processes of their own, as a user starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "numpy",
    "scipy",
    "pyarrow",
    "torch",
    "transformers",
    "datasets",
    "pandas",
    "sklearn",
    "huggingface_hub",
    "faiss",
    "lang2vec",
)
PLUGIN_MODULES = ("harness_hf.loading", "harness_baseline.model", "harness_hub.snapshot")


def _imported(*arguments: str, cwd: Path) -> set[str]:
    script = (
        "import sys\n"
        "from harness.cli.main import main\n"
        f"status = main({list(arguments)!r})\n"
        "sys.stderr.write('\\n'.join(sys.modules))\n"
        "sys.exit(status)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=cwd, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
    return set(result.stderr.split("\n"))


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["--version"],
        ["eval", "--help"],
        ["submission", "--help"],
        ["submit", "--help"],
        ["tasks", "list"],
        ["languages"],
        ["plugins"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_help_and_listings_import_nothing_heavy(command: list[str], tmp_path: Path) -> None:
    imported = _imported(*command, cwd=tmp_path)
    assert sorted(imported & {*HEAVY, *PLUGIN_MODULES}) == []


def test_the_list_of_tasks_validates_nothing(tmp_path: Path) -> None:
    imported = _imported("tasks", "list", cwd=tmp_path)
    # typer brings pydantic itself; what takes time is to build the models and to validate with them.
    assert {"harness.specs.schema", "harness.kinds.kind", "harness.metrics.metric"} & imported == set()


def test_help_imports_no_plugin(tmp_path: Path) -> None:
    imported = _imported("--help", cwd=tmp_path)
    found = {name for name in imported if name.startswith(("harness_", "pydantic", "rich", "typer"))}
    assert found == set()


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    for arguments, status in ((["--help"], 0), ([], 2), (["tasks", "list"], 0), (["evl"], 2)):
        result = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert result.returncode == status
        assert ("Error: No command named 'evl'" in result.stderr) == (arguments == ["evl"])


def test_the_public_names_are_imported_when_they_are_asked_for() -> None:
    script = (
        "import sys, harness\n"
        "assert not {'numpy', 'pydantic'} & set(sys.modules)\n"
        "for name in harness.__all__: assert getattr(harness, name) is not None\n"
        "assert set(harness.__all__) <= set(dir(harness))\n"
        f"print(sorted(set(sys.modules) & {set(HEAVY[1:])!r}))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    import harness

    with pytest.raises(AttributeError, match="evaluat"):
        harness.evaluat  # type: ignore[attr-defined]  # noqa: B018
