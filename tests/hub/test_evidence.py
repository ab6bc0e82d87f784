"""Specs name nothing of the Hub that peers' packages, cards or loaders do not show: ``evidence.tsv``.

A row is one dataset at a branch, with configurations that have the same splits:

dataset, branch
    ``-`` is the branch main.
revision
    The commit of this very dataset that a peer pins, or ``-`` where none was seen.
configs
    Separated by ``|``; of datasets whose files a spec names without a configuration, the stem of the first file.
splits, columns
    Columns are those that specs name; ``-`` where the reader knows them.
labels
    In the order of the integers 0, 1, ... (or of 1, 2, ... where the data begin there); ``-`` without a map.
seen
    ``peer`` (the packages lm-eval 0.4.13, mteb 2.26.24, lighteval 0.13.0, inspect_evals 0.28.0), ``card``, ``hub``
    (a page of the Hub) or ``code`` (loaders of others).
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.data.origin import Origin
from harness.data.readers.reader import wanted_columns
from harness.data.resolve import DataRef, HubFiles
from harness.running.session import open_session
from harness.specs.schema import SPLITS

TABLE = Path(__file__).with_name("evidence.tsv")
OPTIONS = ("right", "wrong", "group", "tags")
"""Options of readers that name columns."""


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    branch: str | None
    revision: str | None
    configs: frozenset[str]
    splits: frozenset[str]
    columns: frozenset[str]
    labels: tuple[str, ...]
    seen: frozenset[str]


def read_table() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            cells = {name: "" if value == "-" else value for name, value in line.items()}
            rows.setdefault(cells["dataset"], []).append(
                Row(
                    branch=cells["branch"] or None,
                    revision=cells["revision"] or None,
                    configs=frozenset(cells["configs"].split("|")),
                    splits=frozenset(cells["splits"].split("|")),
                    columns=frozenset(cells["columns"].split("|")),
                    labels=tuple(cells["labels"].split("|")),
                    seen=frozenset(cells["seen"].split("|")),
                )
            )
    return rows


def config_of(hub: HubFiles) -> str:
    if hub.config is None and hub.files:
        return Path(hub.files[0]).stem
    return hub.config or ""


def columns_of(hub: HubFiles) -> set[str]:
    if hub.columns is None:
        named = ",".join(hub.options[name] for name in OPTIONS if name in hub.options)
        # The loader adds the column 'config' where it joins several.
        return {column for column in named.split(",") if column and column != "config"}
    columns = wanted_columns({"columns": hub.columns}) or ()
    return {part.partition(".")[0] for column in columns for part in column.source.split("+")}


def hub_refs() -> Iterator[DataRef]:
    """Yield every Hub source of every task and training set."""
    catalog = open_session().catalog
    origins = [Origin.of(catalog.task(name)) for name in catalog.names("task")]
    origins += [Origin.named(name, catalog) for name in catalog.names("training")]
    for origin in origins:
        for code, split in itertools.product(origin.spec.languages, SPLITS):
            source = origin.source(code, split)
            for ref in () if source is None else origin.refs(code, split, source):
                if ref.hub is not None:
                    yield ref


@pytest.fixture(scope="module")
def sources() -> list[tuple[DataRef, HubFiles]]:
    return [(ref, ref.hub) for ref in hub_refs() if ref.hub is not None]


def describe_unseen(hub: HubFiles, table: Mapping[str, list[Row]]) -> str | None:
    """Return what of a source the table does not have; None where it has all of it."""
    if hub.path not in table:
        return f"dataset {hub.path}"
    rows = [row for row in table[hub.path] if config_of(hub) in row.configs]
    if not rows:
        return f"configuration {config_of(hub)} of {hub.path}"
    [row] = rows
    labels = tuple(hub.label_map[key] for key in sorted(hub.label_map, key=lambda key: (len(key), key)))
    if hub.split not in row.splits:
        return f"split {hub.split} of {hub.path}, {config_of(hub)}"
    if unseen := columns_of(hub) - row.columns:
        return f"columns {sorted(unseen)} of {hub.path}"
    if labels and labels != row.labels:
        return f"label order {labels} of {hub.path}"
    if hub.revision != (row.branch or row.revision):
        return f"revision {hub.revision} of {hub.path}, where {row.branch or row.revision} was seen"
    return None


def test_every_source_of_a_spec_was_seen(sources: list[tuple[DataRef, HubFiles]]) -> None:
    table = read_table()
    unseen = {f"{ref}: {fault}" for ref, hub in sources if (fault := describe_unseen(hub, table)) is not None}
    assert unseen == set()
    assert {hub.path for _, hub in sources} == set(table), "rows of no spec"


def test_a_revision_is_a_commit_or_the_branch_of_the_exports() -> None:
    for dataset, rows in read_table().items():
        for row in rows:
            assert row.revision is None or re.fullmatch(r"[0-9a-f]{40}", row.revision), dataset
            assert row.seen <= {"peer", "card", "hub", "code"}, dataset
            assert row.branch in (None, "refs/convert/parquet"), dataset


@pytest.mark.parametrize(
    "change",
    [
        {"path": "facebook/xnli2"},
        {"config": "xx"},
        {"split": "tset"},
        {"columns": "premise=sentence1"},
        {"label_map": {"0": "entailment", "1": "contradiction", "2": "neutral"}},
        {"revision": "1" * 40},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_was_not_seen_is_reported(change: Mapping[str, object]) -> None:
    labels = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    seen = {"path": "facebook/xnli", "config": "sw", "split": "test", "label_map": labels}
    table = read_table()
    assert describe_unseen(HubFiles(**seen), table) is None  # type: ignore[arg-type]
    assert describe_unseen(HubFiles(**{**seen, **change}), table) is not None  # type: ignore[arg-type]
