"""The section on how items were asked: answers that could not be read, several answers, and several prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, groupby
from statistics import fmean
from typing import Any

from harness.analysis.comparison import compare_group
from harness.analysis.systems import System, SystemGroup, group_systems
from harness.metrics.metric import metric_name
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness.reporting.blocks.model import BLANK, Block, Table, rows_of
from harness.reporting.blocks.number import p_text, percent, signed, signed_interval, uncertainty
from harness.reporting.formats import SectionReport
from harness.reporting.legends import legend
from harness.reporting.overview.column import conditions_of
from harness.reporting.overview.marks import unread_count
from harness.statistics import adjusted
from harness.storage.results import CellResult
from harness.storage.run_folder import Run
from harness.table import grouped

DEFAULT = "default"


Row = dict[str, Any]


def read_asked(runs: Sequence[Run]) -> SectionReport | None:
    """Return the main run's unreadable answers, repeats and prompts; None where it has none of these."""
    run = runs[0]
    unread = list(_unread_cells(run))
    repeated = [
        cell for cell in run.cells if cell.is_scored and any("pass@" in name for name in cell.metrics)
    ]
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
    notes = [
        *([legend("repeats")] if repeated else []),
        *([legend("prompts"), legend("pairs of prompts")] if prompts else []),
    ]
    rows = [
        *({**_cell_row("unread", cell), "items": cell.n, "unread": unread_count(cell)} for cell in unread),
        *(
            _cell_row("repeats", cell) | {name: score.value for name, score in cell.metrics.items()}
            for cell in repeated
        ),
        *map(_flat, prompts),
        *pairs,
    ]
    return SectionReport(blocks=blocks, notes=notes, rows=lambda: rows)


def _flat(row: Row) -> Row:
    """Return a row with the entries of its mappings in their place."""
    pairs = (value.items() if isinstance(value, dict) else [(name, value)] for name, value in row.items())
    return dict(chain.from_iterable(pairs))


def _cell_row(about: str, cell: CellResult) -> Row:
    return {"about": about, "task": cell.task, "view": dict(cell.view), "language": cell.language}


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
    titles = list(dict.fromkeys(map(_title, cells)))
    rows = []
    for code in dict.fromkeys(cell.language for cell in cells):
        fields = [code]
        for title in titles:
            group = [cell for cell in cells if cell.language == code and _title(cell) == title]
            unread, items = sum(map(unread_count, group)), sum(cell.n for cell in group)
            fields.append(f"{percent(unread / items)} ({unread:,} of {items:,})" if group else BLANK)
        rows.append(fields)
    yield Table(
        title="Unreadable answers, %",
        corner="language",
        heads=tuple(title.replace(" ", "\n") for title in titles),
        rows=rows_of(rows),
        notes=(legend("unreadable answers"),),
        divided=True,
    )


def _title(cell: CellResult) -> str:
    return f"{cell.task} {conditions_of(cell.view)}".rstrip()


# Repeats -----------------------------------------------------------------------------------------------


def _repeat_tables(run: Run, cells: Sequence[CellResult]) -> Iterator[Table]:
    for title, group in grouped((_title(cell), cell) for cell in cells).items():
        names = [
            name
            for name in group[0].metrics
            if name.partition("@")[0] in {"pass", "majority"} and "@" in name
        ]
        metric = run.manifest.tasks[group[0].task].headline[0]
        yield Table(
            title=f"{title}: several answers per item",
            corner="language",
            heads=(f"mean {metric_name(metric)}", *names),
            rows=rows_of(
                (cell.language, *(_score(cell, name) for name in (metric, *names))) for cell in group
            ),
        )


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
                **{"about": "prompts", "task": task, "view": conditions_of(json.loads(rest)[-1])},
                **{"language": language, "metric": run.manifest.tasks[task].headline[0], "scores": scores},
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
        pairs: list[Row] = []
        for systems in _alike(group):
            for first, second in combinations(systems, 2):
                compared = compare_group(replace(group, systems=(second, first)), metrics)
                difference = compared.scores[0].differences[1] if compared and compared.items else None
                if compared is not None and difference is not None:
                    names = [_preset(next(iter(system.cells.values()))) for system in (first, second)]
                    pairs.append(
                        {
                            **{"about": "pairs", "task": group.title, "metric": compared.scores[0].metric},
                            **dict(zip(("first", "second"), names, strict=True)),
                            "difference": difference.value,
                            **{name: getattr(difference, name) for name in ("low", "high", "p")},
                        }
                    )
        for pair, p in zip(pairs, adjusted([pair["p"] for pair in pairs]), strict=True):
            pair["p"] = p
        rows += pairs
    return rows


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
        yield Table(
            title=f"{title}: {metric_name(languages[0]['metric'])} by prompt",
            corner="language",
            heads=(*presets, "best", "mean", "spread"),
            rows=rows_of(
                (
                    row["language"],
                    *(percent(row["scores"].get(name)) for name in presets),
                    row["best"],
                    percent(row["mean"]),
                    percent(row["spread"]),
                )
                for row in languages
            ),
            words=frozenset({len(presets)}),
        )


def _pair_tables(pairs: Sequence[Row]) -> Iterator[Table]:
    for task, group in groupby(pairs, key=lambda pair: str(pair["task"])):
        rows = rows_of(
            (
                f"{pair['second']} - {pair['first']}",
                signed(pair["difference"]),
                signed_interval(pair["low"], pair["high"]),
                p_text(pair["p"]),
            )
            for pair in group
        )
        heads = ("difference", "95 % interval", "p")
        yield Table(title=f"{task}: prompts compared", corner="prompts", heads=heads, rows=rows)
