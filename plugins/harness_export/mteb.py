"""Retrieval tasks of a run as result files of MTEB (``mteb.TaskResult``, mteb 2).

Scores keep the names of the harness, and the file names the task ``harness/NAME``: MTEB's own Tatoeba searches from
the other language to English and has another main score, so that its numbers are not these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness import Run
from harness.languages import known_languages
from harness_export.score import Score, created, safe_name, scores

KINDS = {"bitext_retrieval", "ranked_retrieval"}
Key = tuple[str, str | None, int | None, str]


def files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return one result file for every retrieval task under one protocol, seed and view."""
    run = runs[0]
    groups: dict[Key, dict[str, list[Score]]] = {}
    for score in scores(run):
        cell = score.cell
        if run.manifest.tasks[cell.task].kind in KINDS:
            key = (cell.task, cell.protocol, cell.seed, json.dumps(cell.view, sort_keys=True))
            groups.setdefault(key, {}).setdefault(cell.language, []).append(score)
    return {_name(key, list(groups)): _text(run, key, own) for key, own in groups.items()}


def _name(key: Key, keys: Sequence[Key]) -> str:
    task, protocol, seed, view = key
    twins = [sibling for sibling in keys if sibling[0] == task]
    labels = [
        str(field)
        for index, field in enumerate((task, protocol, f"seed-{seed}", view))
        if index == 0 or len({sibling[index] for sibling in twins}) > 1
    ]
    return f"{safe_name('_'.join(labels)).strip('-')}.json"


def _text(run: Run, key: Key, cells: Mapping[str, Sequence[Score]]) -> str:
    splits: dict[str, list[dict[str, Any]]] = {}
    for code, own in cells.items():
        splits.setdefault(own[0].cell.split or "test", []).append(_subset(run, code, own))
    data = next(iter(cells.values()))[0].cell.data
    document = {
        "dataset_revision": data.get("revision") or f"sha256:{data.get('digest')}",
        "task_name": f"harness/{key[0]}",
        "mteb_version": None,
        "scores": splits,
        "evaluation_time": round(sum(own[0].cell.seconds for own in cells.values()), 3),
        "kg_co2_emissions": None,
        "date": created(run),
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _subset(run: Run, code: str, own: Sequence[Score]) -> dict[str, Any]:
    headline = next((score for score in own if score.headline), own[0])
    metrics: dict[str, Any] = {"main_score": headline.value.value, "main_score_metric": headline.metric}
    for score in own:
        value = score.value
        metrics[score.metric] = value.value
        metrics |= {f"{score.metric}_se": value.se} if value.se is not None else {}
        if value.ci is not None:
            metrics |= {f"{score.metric}_ci_low": value.ci[0], f"{score.metric}_ci_high": value.ci[1]}
    searched = run.manifest.tasks[headline.cell.task]
    languages = ["en", code] if searched.kind == "bitext_retrieval" and code != "en" else [code]
    return {
        **metrics,
        "hf_subset": code,
        "languages": [_language_script(each) for each in languages],
        "num_samples": headline.cell.n,
        "details": headline.details(),
    }


def _language_script(code: str) -> str:
    """Return ``deu-Latn``, as MTEB writes languages."""
    table = known_languages()
    language = table.get(code) if code in table else None
    return f"{language.iso639_3}-{language.script}" if language and language.iso639_3 else code
