"""How the runs were made: commands, configuration, versions, data, fits, model, requests and hardware."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.reporting.blocks.model import Block, Field, Fold, Note, Table, rows_of
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

FIT_HEADS = ("fit", "digest", "recipe", "seed", "examples", "seconds", "own settings")
DATA_HEADS = ("task", "source", "languages", "seeds", "items of a language")
PROMPT_HEADS = ("prompt", "words", "shots", "digest", "tasks")
LONGEST = 400
"""Characters of a setting that are shown."""


def provenance_blocks(names: Sequence[str], runs: Sequence[Run]) -> list[Block]:
    """Return the provenance of each run; blocks that a further run shares with the first are named only."""
    first: list[Block] = []
    folds: list[Block] = []
    for name, run in zip(names, runs, strict=True):
        blocks = _run(run)
        shared = ", ".join(block.title for block in blocks if isinstance(block, Fold) and block in first)
        same = _note(f"The same as for {names[0]}: {shared}." if shared else "")
        differing = [block for block in blocks if block not in first]
        folds.append(Fold(title=name, blocks=[*differing, *same], is_open=not folds))
        first = first or blocks
    return folds


def _run(run: Run) -> list[Block]:
    manifest = run.manifest
    model = run.results.model.to_json()
    identity = {**model, **manifest.identity, **manifest.options}
    texts = {name: str(value) for name, value in identity.items() if name != "metadata"}
    metadata = {
        name: value for name, value in (model.get("metadata") or {}).items() if texts.get(name) != str(value)
    }
    identity |= {"metadata": metadata}
    pairs = (
        ("Configuration", _asked(manifest.config)),
        ("Model", {name: value for name, value in identity.items() if value not in ({}, None)}),
        ("Versions", {**manifest.versions, **_plugins(manifest.plugins)}),
        ("Hardware", manifest.hardware),
    )
    tables = (
        ("Fits", FIT_HEADS, _fits(run), {0, 1, 5}),
        ("Data", DATA_HEADS, _data(run), {0, 1, 2}),
        ("Prompts", PROMPT_HEADS, _prompts(run), {0, 2, 3}),
    )
    notes = {
        "Fits": f"Settings of all: {settings}."
        if (settings := _settings_text(_shared_settings(run)))
        else "",
        "Data": "Files and digests of each cell: results.json in the folder of the run.",
    }
    blocks = [_pairs(title, _without_address(run, content)) for title, content in pairs if content]
    for title, (corner, *heads), rows, words in tables:
        blocks.append(
            Table(title=title, corner=corner, heads=tuple(heads), rows=rows_of(rows), words=frozenset(words))
        )
    return [
        _pairs("Run", _without_address(run, dict(_facts(run)))),
        *(
            Fold(title=block.title, blocks=[block, *_note(notes.get(block.title, ""))])
            for block in blocks
            if block.rows
        ),
    ]


def _plugins(plugins: Mapping[str, Any]) -> dict[str, str]:
    """Return the plugins by the distribution and version that they are from."""
    by_source: dict[str, list[str]] = {}
    for name, version in plugins.items():
        by_source.setdefault(f"plugins of {_text(version)}", []).append(name)
    return {source: " ".join(names) for source, names in by_source.items()}


def _facts(run: Run) -> Iterator[tuple[str, Any]]:
    results, manifest = run.results.run, run.manifest
    yield "folder", str(run.path)
    if manifest.command:
        yield "command", shlex.join(map(str, manifest.command))
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


def _without_address(run: Run, content: Mapping[str, Any]) -> dict[str, str]:
    """Return texts with the name of the model for its path or address, which only the manifest holds."""
    _, _, ref = run.manifest.model.partition(":")
    texts = {name: _text(value) for name, value in content.items()}
    if not ref or not ("://" in ref or "/" in ref or "\\" in ref):
        return texts
    return {name: text.replace(ref, run.manifest.model_name) for name, text in texts.items()}


def _pairs(title: str, content: Mapping[str, Any]) -> Table:
    rows = rows_of((name, _code(_text(value))) for name, value in content.items())
    return Table(title=title, untitled=True, corner="what", heads=("value",), rows=rows, words=frozenset({0}))


def _code(text: str) -> Field:
    return Field(text=text, style="code")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _note(text: str) -> list[Note]:
    return [Note(text, "note")] if text else []


def _shared_settings(run: Run) -> dict[str, Any]:
    """Return the settings that all stages of all fits share."""
    every = [_settings_of(stage) for fit in run.results.fits.values() for stage in fit.stages]
    first = every[0] if every else {}
    return {
        name: value
        for name, value in first.items()
        if all(name in settings and settings[name] == value for settings in every)
    }


def _settings_of(stage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stage.get("settings", {}).items() if value is not None}


def _settings_text(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _fits(run: Run) -> Iterator[tuple[str | Field, ...]]:
    shared = _shared_settings(run)
    for fit in run.results.fits.values():
        for stage in fit.stages:
            seconds = "reused" if stage.get("reused") else f"{stage.get('seconds', 0):,.0f}"
            settings = {name: value for name, value in _settings_of(stage).items() if name not in shared}
            yield (
                f"{fit.title}: {stage['stage']}" if len(fit.stages) > 1 else fit.title,
                _code(str(stage.get("digest", ""))),
                str(stage.get("recipe") or "-"),
                str(stage.get("seed", "-")),
                f"{stage.get('train', {}).get('examples', 0):,}",
                seconds,
                _settings_text(settings) or "-",
            )


def _data(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield the data that the cells of a task share: their source, languages, seeds and counts."""
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for cell in run.cells:
        if cell.status == "ok" and isinstance(cell.data, Mapping):
            task = " ".join([cell.task, *(f"{name}={value}" for name, value in cell.view.items())])
            groups.setdefault((task, _source_of(cell)), []).append(cell)
    joined: dict[tuple[str, ...], list[str]] = {}
    for (task, source), cells in groups.items():
        seeds = dict.fromkeys(str(cell.seed) for cell in cells)
        codes = dict.fromkeys(cell.language for cell in cells)
        joined.setdefault((source, " ".join(codes), " ".join(seeds), _counts(cells)), []).append(task)
    for shared, tasks in joined.items():
        yield (", ".join(tasks), *shared)


def _counts(cells: Sequence[CellResult]) -> str:
    """Return how many items the languages have, the fewest and the most."""
    items = _range([cell.n for cell in cells])
    sizes = [cell.size for cell in cells if cell.size is not None]
    return f"{items} of {_range(sizes)}" if sizes else items


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _source_of(cell: CellResult) -> str:
    """Return where the items of a cell are from."""
    facts = [f"split {cell.split}{' (instead of test)' if cell.stands_in else ''}"]
    facts += [f"texts {cell.provenance}"] if cell.provenance else []
    facts += [f"from {cell.data['origin']}"] if cell.data.get("origin") else []
    if cell.data.get("revision"):
        facts.append(
            f"revision {cell.data['revision']}{'' if cell.data.get('pinned', True) else ' (not pinned)'}"
        )
    elif not cell.data.get("pinned", True):
        facts.append("not pinned")
    return ", ".join(facts)


def _prompts(run: Run) -> Iterator[tuple[str | Field, ...]]:
    prompts: dict[str, tuple[dict[str, Any], set[tuple[str, str]]]] = {}
    for cell in run.cells:
        prompt = cell.prompt
        if isinstance(prompt, dict):
            key = json.dumps(prompt, sort_keys=True)
            prompts.setdefault(key, (prompt, set()))[1].add((cell.task, cell.language))
    for prompt, cells in prompts.values():
        shots = prompt.get("shots")
        yield (
            str(prompt.get("name", "-")),
            str(prompt.get("words", "-")),
            _text(len(shots) if isinstance(shots, list) else shots),
            _code(str(prompt.get("digest", ""))[:16]),
            _text(_cells_text(cells)),
        )


def _cells_text(cells: Iterable[tuple[str, str]]) -> str:
    """Return tasks with their languages: ``xnli: de en; xquad: de``."""
    tasks: dict[str, list[str]] = {}
    for task, language in sorted(cells):
        tasks.setdefault(task, []).append(language)
    return "; ".join(f"{task}: {' '.join(codes)}" for task, codes in tasks.items())
