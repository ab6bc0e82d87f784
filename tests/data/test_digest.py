"""Digests of files: what has changed is read again, whatever the times say."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.storage.files import file_digest


@pytest.mark.parametrize("replaced", [False, True], ids=["edited", "replaced"])
def test_a_file_with_its_old_time_is_read_again(replaced: bool, tmp_path: Path) -> None:
    file, other = tmp_path / "train.tsv", tmp_path / "other.tsv"
    file.write_text("one")
    before, status = file_digest(file), file.stat()
    if replaced:
        other.write_text("two")
        shutil.copystat(file, other)
        other.replace(file)
    else:
        file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    assert file_digest(file) != before
