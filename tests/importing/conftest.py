from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]
ImportLogs = Callable[..., Run]
LOGS = Path(__file__).with_name("logs")
"""What lm-eval 0.4.13 (SmolLM2-135M) and inspect_ai 0.3.285 (mockllm) wrote on items of the shipped sample."""


@pytest.fixture
def import_logs(cli: Cli, tmp_path: Path) -> ImportLogs:
    """Import logs with ``harness import``; return the run."""
    count = iter(range(100))

    def run(*arguments: object) -> Run:
        output = tmp_path / f"imported-{next(count)}"
        status, _, err = cli("import", *arguments, "--output", output)
        assert status == 0, err
        return Run(output)

    return run
