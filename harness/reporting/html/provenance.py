"""How the runs were made: commands, configuration, versions, data, fits, model, requests and hardware."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from harness.reporting.html.layout import fold, section, table
from harness.reporting.html.material import Material
from harness.reporting.markup.element import Child, Element, element
from harness.storage.run_folder import Run

__all__ = ["provenance_section"]

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


def provenance_section(material: Material) -> Element:
    """Return what is known of how each given run was made; what a run does not record is not shown."""
    parts = [
        fold(material.name(run), _run(run), is_open=number == 0) for number, run in enumerate(material.runs)
    ]
    return section("provenance", "Provenance", parts)


def _run(run: Run) -> list[Child]:
    known = run.manifest
    tables: list[Child] = [_pairs("Run", dict(_facts(run)))]
    for title, content in (
        ("Configuration", _asked(known.get("config", {}))),
        ("Model", {**run.results.get("model", {}), **known.get("identity", {}), **known.get("options", {})}),
        ("Versions", {**known.get("versions", {}), **known.get("plugins", {})}),
        ("Hardware", known.get("hardware", {})),
    ):
        if content:
            tables.append(fold(title, _pairs(title, content)))
    fits, data, prompts = list(_fits(run)), list(_data(run)), list(_prompts(run))
    if fits:
        tables.append(fold("Fits", table("Fits: what was trained", FIT_HEADS, fits, texts={1, 2, 6})))
    if data:
        tables.append(fold("Data", table("Data of the cells", DATA_HEADS, data, texts={1, 3, 4, 5, 6, 8, 9})))
    if prompts:
        tables.append(fold("Prompts", table("Prompts", PROMPT_HEADS, prompts, texts={1, 3, 4})))
    return tables


def _facts(run: Run) -> Iterator[tuple[str, Any]]:
    results, known = run.results.get("run", {}), run.manifest
    yield "folder", str(run.path)
    if known.get("command"):
        yield "command", shlex.join(map(str, known["command"]))
    for name in ("created", "harness", "data", "processes", "resumed", "seconds"):
        if name in results:
            yield name, results[name]
    for name, count in (results.get("requests") or {}).items():
        yield f"requests {name}", count
    seeds = sorted({cell["seed"] for cell in run.cells if cell.get("seed") is not None})
    if seeds:
        yield "seeds", " ".join(map(str, seeds))


def _asked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that hold something: most are at rest in most runs."""
    return {name: value for name, value in config.items() if value not in (None, [], {}, False, "")}


def _pairs(caption: str, content: Mapping[str, Any]) -> Element:
    rows = [(name, element("code", _text(value))) for name, value in content.items()]
    return table(caption, ("what", "value"), rows, texts={1}, hidden_caption=True)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _fits(run: Run) -> Iterator[tuple[Child, ...]]:
    for fit in run.results["fits"].values():
        for stage in fit["stages"]:
            seconds = "reused" if stage.get("reused") else f"{stage.get('seconds', 0):,.0f}"
            settings = stage.get("settings", {})
            yield (
                f"{fit['title']}: {stage['stage']}" if len(fit["stages"]) > 1 else fit["title"],
                element("code", str(stage.get("digest", ""))),
                str(stage.get("recipe") or "-"),
                str(stage.get("seed", "-")),
                f"{stage.get('train', {}).get('examples', 0):,}",
                seconds,
                " ".join(f"{name}={value}" for name, value in settings.items() if value is not None),
            )


def _data(run: Run) -> Iterator[tuple[Child, ...]]:
    for cell in run.cells:
        data = cell.get("data")
        if cell["status"] == "ok" and isinstance(data, Mapping):
            pinned = "" if data.get("pinned", True) else " (not pinned)"
            yield (
                " ".join([cell["task"], *(f"{name}={value}" for name, value in cell["view"].items())]),
                cell["language"],
                str(cell.get("seed", "-")),
                f"{cell['split']}{' (instead of test)' if cell['stands_in'] else ''}",
                str(cell.get("provenance") or "-"),
                str(data.get("origin", "-")),
                f"{data.get('revision') or '-'}{pinned}",
                f"{cell['n']:,} of {cell['size']:,}" if "size" in cell else f"{cell['n']:,}",
                element("code", str(data.get("digest", ""))[:16]),
                _text(data.get("files", "-")),
            )


def _prompts(run: Run) -> Iterator[tuple[Child, ...]]:
    found: dict[str, tuple[dict[str, Any], set[str]]] = {}
    for cell in run.cells:
        prompt = cell.get("prompt")
        if isinstance(prompt, dict):
            key = json.dumps(prompt, sort_keys=True)
            found.setdefault(key, (prompt, set()))[1].add(f"{cell['task']}:{cell['language']}")
    for prompt, cells in found.values():
        shots = prompt.get("shots")
        yield (
            str(prompt.get("name", "-")),
            str(prompt.get("words", "-")),
            _text(len(shots) if isinstance(shots, list) else shots),
            element("code", str(prompt.get("digest", ""))[:16]),
            _text(" ".join(sorted(cells))),
        )
