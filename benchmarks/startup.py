"""Start-up: ``harness --help`` and ``harness tasks list`` against lm-eval's ``--help`` and ``ls tasks``.

Run: make bench, or python -m benchmarks.startup [--peer PATH/TO/lm-eval] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import alternate, record, show

IMPORT = "import typer, rich.console, rich.table"
LIMITS = {"lm-eval --help": 0.5, "lm-eval ls tasks": 0.25, "import of typer and rich": 3.0}


def _command(*words: str) -> Callable[[], None]:
    def run() -> None:
        subprocess.run(words, check=True, capture_output=True)

    return run


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--peer", default=".venv-peers/bin/lm-eval", help="lm-eval's command")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    ours = str(Path(sys.executable).with_name("harness"))
    helps = {"harness --help": _command(ours, "--help")}
    lists = {"harness tasks list": _command(ours, "tasks", "list")}
    if Path(given.peer).exists():
        helps["lm-eval --help"] = _command(given.peer, "--help")
        lists["lm-eval ls tasks"] = _command(given.peer, "ls", "tasks")
    else:
        print(f"No peer at {given.peer}; make bench installs it. Our own times only.")
    toolkits = {"import of typer and rich": _command(sys.executable, "-c", IMPORT)}
    for title, contenders in (("Help", helps), ("Listing", lists | toolkits)):
        seconds = alternate(contenders, rounds=given.rounds)
        show(title, seconds)
        ours, *others = seconds
        for other in others:
            ratio = statistics.median(seconds[ours]) / statistics.median(seconds[other])
            record(f"{ours} / {other}", ratio, LIMITS[other])


if __name__ == "__main__":
    main()
