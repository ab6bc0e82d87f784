"""``harness journal verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.files import JsonRows
from harness.cli.output import echo

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Check the answers that a run has written down."
)


@app.callback()
def group() -> None:
    """Check the answers that a run has written down."""


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]


@app.command()
def verify(folder: RunArgument, json_file: JsonRows = None) -> int:
    """Read all logs, and name the bytes that are no good records; exit status 1 where there are any."""
    from harness.cli.output import write_rows
    from harness.storage.journal_log import DESCRIPTION, KEY_BYTES, Log

    rows: list[dict[str, Any]] = []
    answers = 0
    logs = [Log(path) for path in _logs(folder)]
    for log in logs:
        answers += sum(content[KEY_BYTES] != DESCRIPTION for _, _, content in log.records())
        for bad in log.bad:
            echo(f"{log.path}: bytes {bad.start:,} to {bad.stop - 1:,} are no good records.")
            rows.append({"log": log.path.name, "from": bad.start, "to": bad.stop})
    counted = [
        _count(len(logs), "log"),
        _count(answers, "good answer"),
        _count(len(rows), "bad stretch", "es"),
    ]
    lost = sum(row["to"] - row["from"] for row in rows)
    end = f" ({lost:,} bytes); a resumed run asks again what is missing" if rows else ""
    echo(f"{', '.join(counted)}{end}.")
    write_rows(json_file, rows)
    return int(bool(rows))


def _logs(folder: Path) -> list[Path]:
    """Return the logs of a run, finished or not; raises `UsageError` where there is no run or no journal."""
    from harness.errors import UsageError
    from harness.storage.journal_log import log_paths

    if not folder.is_dir():
        raise UsageError(f"The run folder {str(folder)!r} does not exist.", hint="Look below 'runs'.")
    if (folder / "journal").is_dir():
        return log_paths(folder / "journal")
    if (folder / "manifest.json").is_file():
        raise UsageError(f"The run {str(folder)!r} has no journal: it has no folder 'journal'.")
    raise UsageError(
        f"The folder {str(folder)!r} is no run: it has no manifest.json.",
        hint="A run folder is what 'harness eval --output DIR' wrote.",
    )


def _count(number: int, unit: str, plural: str = "s") -> str:
    return f"{number:,} {unit}{'' if number == 1 else plural}"
