"""``python -m harness`` is ``harness``."""

from __future__ import annotations

from harness.cli.main import run

if __name__ == "__main__":
    run()
