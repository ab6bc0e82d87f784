"""The section on how items were asked: answers that could not be read, several answers, and several prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Any

from harness.analysis.comparison import compare_group
from harness.analysis.systems import System, SystemGroup, group_systems
from harness.metrics.metric import Metric, metric_name
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness.reporting.blocks.model import BLANK, Block, Table, make_table, table_of
from harness.reporting.blocks.number import p_text, percent, signed, signed_interval, uncertainty
from harness.reporting.blocks.words import legend
from harness.reporting.overview.column import conditions_of
from harness.reporting.overview.means import unread_count
from harness.reporting.sections import SectionReport
from harness.statistics import adjusted
from harness.storage.results import CellResult
from harness.storage.run_folder import Run
from harness.table import NamedTable, grouped

DEFAULT = "default"


Row = dict[str, Any]


def read_asked(runs: Sequence[Run]) -> SectionReport | None:
    """Return the main run's unreadable answers, repeats and prompts; None where it has none of these."""
    run = runs[0]
    unread = list(_unread_cells(run))
    scored = [cell for cell in run.cells if cell.is_scored]
    repeated = [cell for cell in scored if any("pass@" in name for name in cell.metrics)]
    prompts = list(prompt_scores(run))
    if not unread and not repeated and not prompts:
        return None
    pairs = prompt_pairs(run) if prompts else []
    blocks: list[Block] = [
        *_unread_tables(unread),
        *_repeat_tables(run, repeated),
        *_prompt_tables(prompts),
        *_pair_tables(pairs),
    ]
    legends = ["repeats"] if repeated else []
    legends += ["prompts", "pairs of prompts"] if prompts else []
    rows = [_cell_row("unread", cell, {"items": cell.n, "unread": unread_count(cell)}) for cell in unread]
    for cell in repeated:
        rows.append(_cell_row("repeats", cell, {name: own.value for name, own in cell.metrics.items()}))
    rows += [*map(_flat, prompts), *pairs]
    return SectionReport(blocks=blocks, notes=[*map(legend, legends)], rows=lambda: rows)


def _flat(row: Row) -> Row:
    """Return a row with its scores in their place."""
    head = {name: row[name] for name in ("about", "task", "view", "language", "metric")}
    scores: Row = row["scores"]
    return head | scores | {name: row[name] for name in ("best", "mean", "spread")}


def _cell_row(about: str, cell: CellResult, numbers: Row) -> Row:
    head = {"about": about, "task": cell.task, "view": dict(cell.view), "language": cell.language}
    return head | numbers


# Answers that could not be read ------------------------------------------------------------------------


def _unread_cells(run: Run) -> Iterator[CellResult]:
    """Yield the cells of every task and view with an answer that could not be read, its other languages too."""
    prompted = [cell for cell in run.cells if cell.status == "ok" and cell.prompt is not None and cell.n]
    titles = {_title(cell) for cell in prompted if unread_count(cell)}
    return (cell for cell in prompted if _title(cell) in titles)


def _unread_tables(cells: Sequence[CellResult]) -> Iterator[Table]:
    """Yield a table with a row for each language and a column for each task and view."""
    if not cells:
        return
    groups = grouped(((cell.language, _title(cell)), cell) for cell in cells)
    titles = list(dict.fromkeys(title for _, title in groups))
    rows = [
        (code, *(_unread_text(groups.get((code, title), ())) for title in titles))
        for code in dict.fromkeys(code for code, _ in groups)
    ]
    heads = ("language", *(title.replace(" ", "\n") for title in titles))
    notes = (legend("unreadable answers"),)
    yield make_table("Unreadable answers, %", heads, rows, notes=notes, divided=True)


def _unread_text(cells: Sequence[CellResult]) -> str:
    unread, items = sum(map(unread_count, cells)), sum(cell.n for cell in cells)
    return f"{percent(unread / items)} ({unread:,} of {items:,})" if cells else BLANK


def _title(cell: CellResult) -> str:
    return f"{cell.task} {conditions_of(cell.view)}".rstrip()


# Repeats -----------------------------------------------------------------------------------------------


def _repeat_tables(run: Run, cells: Sequence[CellResult]) -> Iterator[Table]:
    for title, group in grouped((_title(cell), cell) for cell in cells).items():
        names = [name for name in group[0].metrics if name.startswith(("pass@", "majority@"))]
        metric = run.manifest.tasks[group[0].task].headline[0]
        rows = [(cell.language, *(_score(cell, name) for name in (metric, *names))) for cell in group]
        heads = ("language", f"mean {metric_name(metric)}", *names)
        yield make_table(f"{title}: several answers per item", heads, rows)


def _score(cell: CellResult, name: str) -> str:
    if name not in cell.metrics:
        return BLANK
    score = cell.metrics[name]
    return f"{percent(score.value)} {uncertainty(score.value, score.ci)}".rstrip()


# Prompts -----------------------------------------------------------------------------------------------


def prompt_scores(run: Run) -> Iterator[Row]:
    """Yield a row for every language that was asked with several prompts, by its first headline metric.

    Its ``scores`` are those of the presets, as fractions; the best preset is the first one at a tie.
    """
    groups: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for cell in run.cells:
        # A task without scored cells is not in the manifest.
        if cell.prompt is None or not cell.is_scored:
            continue
        metric = run.manifest.tasks[cell.task].headline[0]
        if metric in cell.metrics:
            by_preset = groups.setdefault((cell.task, _rest(cell), cell.language), {})
            by_preset.setdefault(_preset(cell), []).append(cell.metrics[metric].value)
    for (task, rest, language), by_preset in groups.items():
        if len(by_preset) > 1:
            scores = {preset: fmean(values) for preset, values in by_preset.items()}
            yield {
                "about": "prompts",
                "task": task,
                "view": conditions_of(json.loads(rest)[-1]),
                "language": language,
                "metric": run.manifest.tasks[task].headline[0],
                "scores": scores,
                "best": max(scores, key=scores.__getitem__),
                "mean": fmean(scores.values()),
                "spread": max(scores.values()) - min(scores.values()),
            }


def prompt_pairs(run: Run) -> list[Row]:
    """Return the differences of all pairs of prompts whose systems differ in nothing else.

    Each is the second prompt's score minus the first one's over all common languages, as a fraction, with p after Holm
    over all pairs of the task.
    """
    metrics = Registry(discover()).metrics
    rows: list[Row] = []
    for group in group_systems([run], least=1):
        candidates = (pair for systems in _alike(group) for pair in combinations(systems, 2))
        pairs = [pair for systems in candidates if (pair := _pair(group, systems, metrics)) is not None]
        for pair, p in zip(pairs, adjusted([pair["p"] for pair in pairs]), strict=True):
            pair["p"] = p
        rows += pairs
    return rows


def _pair(group: SystemGroup, systems: tuple[System, System], metrics: NamedTable[Metric]) -> Row | None:
    """Return the difference of two prompts, the second minus the first; None without common items."""
    first, second = systems
    compared = compare_group(replace(group, systems=(second, first)), metrics)
    difference = compared.scores[0].differences[1] if compared and compared.items else None
    if compared is None or difference is None:
        return None
    return {
        "about": "pairs",
        "task": group.title,
        "metric": compared.scores[0].metric,
        "first": _preset(next(iter(first.cells.values()))),
        "second": _preset(next(iter(second.cells.values()))),
        "difference": difference.value,
        **{name: getattr(difference, name) for name in ("low", "high", "p")},
    }


def _alike(group: SystemGroup) -> list[list[System]]:
    """Return the systems that differ in their prompt alone."""
    pairs = ((next(iter(system.cells.values())), system) for system in group.systems)
    prompted = (((_rest(cell), cell.seed), system) for cell, system in pairs if cell.prompt is not None)
    return list(grouped(prompted).values())


def _rest(cell: CellResult) -> str:
    """Return the conditions of a cell besides its prompt and seed, as JSON."""
    view = {name: value for name, value in cell.view.items() if name != "prompt"}
    return json.dumps([cell.protocol, cell.method, view], sort_keys=True)


def _preset(cell: CellResult) -> str:
    return cell.view.get("prompt", DEFAULT)


def _prompt_tables(rows: Sequence[Row]) -> Iterator[Table]:
    by_title = grouped((f"{row['task']} {row['view']}".rstrip(), row) for row in rows)
    for title, languages in by_title.items():
        presets = list(dict.fromkeys(name for row in languages for name in row["scores"]))
        table_rows = [
            (
                row["language"],
                *(percent(row["scores"].get(name)) for name in presets),
                row["best"],
                percent(row["mean"]),
                percent(row["spread"]),
            )
            for row in languages
        ]
        heads = ("language", *presets, "best", "mean", "spread")
        metric = metric_name(languages[0]["metric"])
        yield make_table(f"{title}: {metric} by prompt", heads, table_rows, words={len(presets)})


def _pair_tables(pairs: Sequence[Row]) -> Iterator[Table]:
    columns: dict[str, Callable[[Row], str]] = {
        "prompts": lambda pair: f"{pair['second']} - {pair['first']}",
        "difference": lambda pair: signed(pair["difference"]),
        "95 % interval": lambda pair: signed_interval(pair["low"], pair["high"]),
        "p": lambda pair: p_text(pair["p"]),
    }
    for task, group in grouped((pair["task"], pair) for pair in pairs).items():
        yield table_of(f"{task}: prompts compared", group, columns)
