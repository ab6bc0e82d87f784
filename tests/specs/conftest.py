from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checks.spec_validation import validate_specs
from harness.running.session import Session, open_session

WriteSpec = Callable[..., Path]
Problems = Callable[[str], list[str]]
SessionWith = Callable[..., Session]


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    """Write a YAML document into a folder of its own kind and return its path."""

    def write(text: str, name: str = "mine.yaml") -> Path:
        path = tmp_path / "specs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def problems(write_spec: WriteSpec) -> Problems:
    """Return what ``harness tasks validate`` finds in a document."""

    def find(text: str) -> list[str]:
        session = open_session()  # which gets the document
        [row] = validate_specs(session.registry, session.catalog, [str(write_spec(text))])
        found: list[str] = row["problems"]
        return found

    return find


@pytest.fixture
def session_with(write_spec: WriteSpec) -> SessionWith:
    """Return a session that was given documents with ``--tasks-from``."""

    def opened(*texts: str) -> Session:
        paths = [write_spec(text, f"{number}.yaml") for number, text in enumerate(texts)]
        return open_session(paths)

    return opened
