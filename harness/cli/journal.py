"""``harness journal stats|verify``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.output import echo

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show or check the answers that a run has written down."
)

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
SHORT = 12
"""Characters of a digest that are shown."""


@app.command()
def stats(folder: RunArgument, json_file: JsonFile = None) -> None:
    """Count the answers of each log: by ability, by source, and those that were asked more than once."""
    from harness.cli.output import check_output_file, write_rows
    from harness.cli.table import print_table
    from harness.storage.journal import KeyIndex
    from harness.storage.journal_log import BODY_AT, DESCRIPTION, KEY_BYTES, Log

    check_output_file(json_file, ".json")
    rows: list[dict[str, Any]] = []
    all_identities: dict[str, Any] = {}
    all_keys, all_counts = KeyIndex(), Counter[bytes]()
    for log in map(Log, _logs(folder)):
        keys, counts, identities = KeyIndex(), Counter[bytes](), {}
        for position, size, content in log.records():
            ability_and_source = content[KEY_BYTES:BODY_AT]
            if ability_and_source[0] == DESCRIPTION:
                identities[ability_and_source[1:].hex()] = json.loads(content[BODY_AT:])
                continue
            counts[ability_and_source] += 1
            for index in (keys, all_keys):
                index.add(content[:KEY_BYTES], 0, position, size)
        rows.append(_row(log.path.name, counts, len(keys), identities, log.size, len(log.bad)))
        all_counts += counts
        all_identities |= identities
    size, bad = (sum(row[name] for row in rows) for name in ("bytes", "bad"))
    rows.append(_row("all", all_counts, len(all_keys), all_identities, size, bad))
    heads = ["log", "answers", "distinct", "repeated", "bytes", "bad", "abilities"]
    print_table(heads, [_shown(row) for row in rows])
    for source in rows[-1]["sources"]:
        echo(f"{source['source']}: {_count(source['answers'], 'answer')} of {_identity(source['identity'])}")
    if bad:
        echo(f"Some bytes are no records; harness journal verify {folder} shows which.", err=True)
    if json_file is not None:
        write_rows(json_file, rows)


@app.command()
def verify(folder: RunArgument, json_file: JsonFile = None) -> int:
    """Read all logs, and name the bytes that are no good records; exit status 1 where there are any."""
    from harness.cli.output import check_output_file, write_rows
    from harness.storage.journal_log import DESCRIPTION, KEY_BYTES, Log

    check_output_file(json_file, ".json")
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
    if json_file is not None:
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


def _row(
    name: str, counts: Counter[bytes], distinct: int, identities: Mapping[str, Any], size: int, bad: int
) -> dict[str, Any]:
    """Return the content of a log: counts are by the ability and source of an answer, as bytes."""
    from harness.storage.journal_log import ability_name

    abilities, sources = Counter[str](), Counter[str]()
    for ability_and_source, count in counts.items():
        abilities[ability_name(ability_and_source[0])] += count
        sources[ability_and_source[1:].hex()] += count
    return {
        "log": name,
        "answers": counts.total(),
        "distinct": distinct,
        "repeated": counts.total() - distinct,
        "bytes": size,
        "abilities": dict(sorted(abilities.items())),
        "sources": [
            {"source": source, "answers": count, "identity": identities.get(source)}
            for source, count in sorted(sources.items())
        ],
        "bad": bad,
    }


def _shown(row: Mapping[str, Any]) -> list[str]:
    numbers = [f"{row[name]:,}" for name in ("answers", "distinct", "repeated", "bytes", "bad")]
    abilities = ", ".join(f"{name} {count:,}" for name, count in row["abilities"].items())
    return [row["log"], *numbers, abilities]


def _identity(identity: Mapping[str, str] | None) -> str:
    """Return one line, the adapter first; long values, such as digests, are cut."""
    if identity is None:
        return "a source that is not described"
    names: Sequence[str] = sorted(identity, key=lambda name: (name != "adapter", name))
    return ", ".join(f"{name} {_short(identity[name])}" for name in names)


def _short(value: str) -> str:
    digest = len(value) > 2 * SHORT and set(value) <= set("0123456789abcdef")
    return value[:SHORT] if digest else value


def _count(number: int, unit: str, plural: str = "s") -> str:
    return f"{number:,} {unit}{'' if number == 1 else plural}"
