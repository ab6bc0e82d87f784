from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.builtin import harness_register_readers
from harness.data.records import Row

Read = Callable[..., list[Row]]
Write = Callable[[str, str | bytes], Path]


@pytest.fixture(scope="session")
def read() -> Read:
    readers = {reader.name: reader for reader in harness_register_readers()}

    def read_all(name: str, paths: Path | Iterable[Path], **options: str) -> list[Row]:
        reader = readers[name]
        reader.check_options(options)
        return list(reader.read([paths] if isinstance(paths, Path) else list(paths), options))

    return read_all


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
