"""How the runs were made: commands, configuration, versions, data, fits, model, requests and hardware."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.reporting.model import Block, Field, Fold, Table, rows_of
from harness.storage.run_folder import Run

__all__ = ["provenance_blocks"]

FIT_HEADS = ("fit", "digest", "recipe", "seed", "examples", "seconds", "settings")
DATA_HEADS = (
    "task",
    "language",
    "seed",
    "split",
    "texts",
    "origin",
    "revision",
    "items",
    "data digest",
    "file",
)
PROMPT_HEADS = ("prompt", "words", "shots", "digest", "tasks")
LONGEST = 400
"""Characters of a setting that are shown."""


def provenance_blocks(names: Sequence[str], runs: Sequence[Run]) -> list[Block]:
    """Return what is known of how each run was made; what a run does not record is not shown."""
    return [
        Fold(title=name, blocks=_run(run), is_open=number == 0)
        for number, (name, run) in enumerate(zip(names, runs, strict=True))
    ]


def _run(run: Run) -> list[Block]:
    known = run.manifest
    identity = {**run.results.model.to_json(), **known.identity, **known.options}
    pairs = (
        ("Configuration", _asked(known.config)),
        ("Model", identity),
        ("Versions", {**known.versions, **known.plugins}),
        ("Hardware", known.hardware),
    )
    tables = (
        ("Fits", FIT_HEADS, _fits(run), {0, 1, 5}),
        ("Data", DATA_HEADS, _data(run), {0, 2, 3, 4, 5, 7, 8}),
        ("Prompts", PROMPT_HEADS, _prompts(run), {0, 2, 3}),
    )
    found = [_pairs(title, content) for title, content in pairs if content]
    for title, (corner, *heads), rows, words in tables:
        found.append(
            Table(title=title, corner=corner, heads=tuple(heads), rows=rows_of(rows), words=frozenset(words))
        )
    return [
        _pairs("Run", dict(_facts(run))),
        *(Fold(title=own.title, blocks=[own]) for own in found if own.rows),
    ]


def _facts(run: Run) -> Iterator[tuple[str, Any]]:
    results, known = run.results.run, run.manifest
    yield "folder", str(run.path)
    if known.command:
        yield "command", shlex.join(map(str, known.command))
    for name in ("created", "harness", "data", "processes", "resumed", "seconds"):
        if results.has(name):
            yield name, getattr(results, name)
    for name, count in (results.requests or {}).items():
        yield f"requests {name}", count
    seeds = sorted({cell.seed for cell in run.cells if cell.seed is not None})
    if seeds:
        yield "seeds", " ".join(map(str, seeds))


def _asked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that hold something: most are at rest in most runs."""
    return {name: value for name, value in config.items() if value not in (None, [], {}, False, "")}


def _pairs(title: str, content: Mapping[str, Any]) -> Table:
    rows = rows_of((name, _code(_text(value))) for name, value in content.items())
    return Table(title=title, untitled=True, corner="what", heads=("value",), rows=rows, words=frozenset({0}))


def _code(text: str) -> Field:
    return Field(text=text, style="code")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _fits(run: Run) -> Iterator[tuple[str | Field, ...]]:
    for fit in run.results.fits.values():
        for stage in fit.stages:
            seconds = "reused" if stage.get("reused") else f"{stage.get('seconds', 0):,.0f}"
            settings = stage.get("settings", {})
            yield (
                f"{fit.title}: {stage['stage']}" if len(fit.stages) > 1 else fit.title,
                _code(str(stage.get("digest", ""))),
                str(stage.get("recipe") or "-"),
                str(stage.get("seed", "-")),
                f"{stage.get('train', {}).get('examples', 0):,}",
                seconds,
                " ".join(f"{name}={value}" for name, value in settings.items() if value is not None),
            )


def _data(run: Run) -> Iterator[tuple[str | Field, ...]]:
    for cell in run.cells:
        data = cell.data
        if cell.status == "ok" and isinstance(data, Mapping):
            pinned = "" if data.get("pinned", True) else " (not pinned)"
            yield (
                " ".join([cell.task, *(f"{name}={value}" for name, value in cell.view.items())]),
                cell.language,
                str(cell.seed),
                f"{cell.split}{' (instead of test)' if cell.stands_in else ''}",
                str(cell.provenance or "-"),
                str(data.get("origin", "-")),
                f"{data.get('revision') or '-'}{pinned}",
                f"{cell.n:,} of {cell.size:,}" if cell.size is not None else f"{cell.n:,}",
                _code(str(data.get("digest", ""))[:16]),
                _text(data.get("files", "-")),
            )


def _prompts(run: Run) -> Iterator[tuple[str | Field, ...]]:
    found: dict[str, tuple[dict[str, Any], set[str]]] = {}
    for cell in run.cells:
        prompt = cell.prompt
        if isinstance(prompt, dict):
            key = json.dumps(prompt, sort_keys=True)
            found.setdefault(key, (prompt, set()))[1].add(f"{cell.task}:{cell.language}")
    for prompt, cells in found.values():
        shots = prompt.get("shots")
        yield (
            str(prompt.get("name", "-")),
            str(prompt.get("words", "-")),
            _text(len(shots) if isinstance(shots, list) else shots),
            _code(str(prompt.get("digest", ""))[:16]),
            _text(" ".join(sorted(cells))),
        )
