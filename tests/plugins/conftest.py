"""Commands in processes of their own, with packages that lie on the path as pip leaves them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the path of the commands."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def package(site: Path) -> Callable[..., Path]:
    """Put a package on the path: a module of its name, or files by path; an entry point, a record."""

    def put(
        name: str,
        source: str | Mapping[str, str | bytes] | None,
        *,
        entry_points: str | None = None,
        is_recorded: bool = True,
    ) -> Path:
        files: dict[str, str | bytes] = (
            {f"{name}.py": source} if isinstance(source, str) else dict(source or {})
        )
        information = f"{name}-1.0.dist-info"
        files[f"{information}/METADATA"] = (
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
        )
        files[f"{information}/entry_points.txt"] = entry_points or f"[harness]\n{name} = {name}\n"
        if is_recorded:
            files[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in files)
        for path, content in files.items():
            target = site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        return site

    return put


@pytest.fixture
def harness(site: Path, tmp_path: Path) -> Callable[..., Result]:
    """Run the command line in a process of its own and return how it ended."""

    def run(*arguments: object, **settings: str) -> Result:
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(site)]))
        done = subprocess.run(
            [sys.executable, "-m", "harness", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "HARNESS_CACHE": str(tmp_path / "cache"), **settings},
            timeout=120,
        )
        return Result(status=done.returncode, out=done.stdout, err=done.stderr)

    return run
