"""Printed text on datasets of the Hub: the table of ``doctor --hub``, and the downloads of a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.output import echo

if TYPE_CHECKING:
    from harness.planning.run_config import RunConfig
    from harness.running.session import Session


def show_sources(names: Sequence[str], json_file: Path | None) -> int:
    """Print what the Hub says of the data of tasks, all where none is named; return 1 where something is not right."""
    from harness.cli.output import reporting_broken_plugins, write_rows
    from harness.planning.hub_sources import HubSources
    from harness.running.session import open_session
    from harness.specs.selection import select
    from harness.storage.files import cache_folder

    session = open_session()
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        selected = select(session.catalog, names or session.catalog.names("task"))
        sources = HubSources(selected, session.registry, session.catalog, cache_folder() / "data")
    rows: list[dict[str, Any]] = [
        {
            "state": source.state,
            "dataset": hub.path,
            "revision": hub.revision,
            "config": hub.config,
            "split": hub.split,
        }
        | {"owner": ref.owner, "language": ref.language, "detail": source.detail}
        for ref, source in sources.states()
        if (hub := ref.hub) is not None
    ]
    _print_rows(rows)
    if not_on_hub := [
        item.entry.spec.task
        for item in selected
        if item.entry.spec.task not in {row["owner"] for row in rows}
    ]:
        echo(f"Not from the Hub: {', '.join(not_on_hub)}")
    write_rows(json_file, rows)
    return int(any(row["state"] != "right" for row in rows))


def _print_rows(rows: Sequence[dict[str, Any]]) -> None:
    from harness.cli.table import print_table
    from harness.reporting.blocks.remark import counted

    groups: dict[tuple[str, ...], list[str]] = {}
    details: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["state"] == "right", row["state"], row["dataset"])):
        key = (row["state"], row["dataset"], (row["revision"] or "main")[:12])
        groups.setdefault(key, []).append(row["owner"])
        details.setdefault(row["detail"], []).append(f"{row['owner']}:{row['language']}")
    lines = [[*key, ", ".join(dict.fromkeys(owners)), str(len(owners))] for key, owners in groups.items()]
    print_table(("state", "dataset", "revision", "tasks and training sets", "splits"), lines)
    for detail, splits in details.items():
        if detail:
            echo(f"! {detail} ({splits[0]}{f' and {len(splits) - 1} more' if len(splits) > 1 else ''})")
    off = sum(row["state"] != "right" for row in rows)
    echo(f"{counted(len(rows), 'split')} on the Hub, {off} not right")


def print_downloads(config: RunConfig, session: Session) -> None:
    """Print how much a run will fetch from the Hub at most, and which datasets are gated, before it is fetched."""
    if config.data.mode != "hub":
        return
    from harness.errors import HarnessError
    from harness.planning.hub_sources import HubSources
    from harness.registry.doctor import shown_size
    from harness.reporting.blocks.remark import counted
    from harness.specs.selection import select
    from harness.storage.files import cache_folder

    with suppress(HarnessError):  # the plan that follows raises it
        selected = select(session.catalog, config.tasks, config.languages, shots=config.shots)
        sources = HubSources(selected, session.registry, session.catalog, cache_folder() / "data")
        files, gated = sources.downloads(config.train_languages)
        if files:
            size = f"{shown_size(sum(files.values()))} in {counted(len(files), 'file')}"
            echo(f"To download from the Hub, at most: {size}", err=True)
        for path in gated:
            page = f"https://huggingface.co/datasets/{path}"
            echo(f"Gated: {path}. Accept its conditions at {page}, then run: hf auth login", err=True)
