"""A file that cannot be written is an error before the work, in every command and in those of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import run_command


@pytest.mark.parametrize(
    "command",
    [
        "report RUN --format html --output FILE.html",
        "report RUN --json FILE.json",
        "export RUN --to csv --output FILE.csv",
        "board RUN --output FILE.html",
        "languages --json FILE.json",
        "checklist lint --json FILE.json",
        "tasks schema --output FILE.json",
    ],
)
def test_a_folder_that_does_not_exist(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing"
    status = run_command(command.replace("FILE", f"{missing}/file").split())
    assert status == 2
    assert f"mkdir -p {missing}" in capsys.readouterr().err
    assert not missing.exists()
