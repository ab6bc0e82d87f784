from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run this Python in an empty folder, with the given folders first on its path."""
    folder = tmp_path_factory.mktemp("python")

    def run(*arguments: str, path: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")]).strip(
                os.pathsep
            ),
            "HARNESS_CACHE": str(folder / "cache"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=environment,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def install(python: Run) -> Callable[[Path, Path], Path]:
    """Install a project or a wheel with pip into a folder of its own, without a network."""

    def installed(source: Path, target: Path) -> Path:
        result = python(
            *("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"),
            *("--no-compile", "--target", str(target), str(source)),
        )
        assert result.returncode == 0, result.stderr
        return target

    return installed
