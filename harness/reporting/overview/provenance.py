"""Words of a page around its numbers: how runs were made, their restrictions, the first paragraph, the glossary."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from harness.languages.table import recorded_name
from harness.reporting.blocks.model import (
    Banner,
    Block,
    Charts,
    Field,
    Fold,
    Note,
    Notes,
    Table,
    as_field,
    make_table,
)
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.words import counted, words_of
from harness.reporting.overview.column import PROTOCOLS, group_pairs, list_names, short_protocol, stages_of
from harness.reporting.overview.glance import Glance, TaskGlance, completeness
from harness.reporting.overview.run_remarks import doubt_remarks, unreadable_line
from harness.reporting.overview.summary import Material
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

MISSING = "missing"
"""The anchor of the section that lists what has no score."""
SAMPLE = "They show that the machinery works and say nothing about a model."
UNREAD = "They count as wrong; harness report RUN --unreadable lists them."
MOST_LANGUAGES = 3
MOST_NAMES = 8
"""Languages that are named; of more, the number and the families are given."""
LONGEST = 400
"""Characters of a setting that are shown."""
DEEDS: Mapping[str, str] = words_of("words")["deeds"]
"""Activity of a model in a kind of task."""
TERMS: Sequence[tuple[str, str, str]] = [(term, *entry) for term, entry in words_of("words")["terms"].items()]
"""Term, the pattern that says whether a page uses it, and what it means."""
SETTINGS: Mapping[str, Callable[[Any], str]] = {
    "shots": lambda count: counted(count, "shot"),
    "limit": lambda count: f"{counted(count, 'item')} per language",
    "precision": "±{:g} points".format,
    "budget": lambda count: f"{counted(count, 'item')} in all",
    "train_limit": "{:,} training examples".format,
}
"""Settings of a run that its head shows, and their words."""


# How a run was made, in a few words, and its restrictions ----------------------------------------------------


def chips(run: Run) -> list[str]:
    """Return how a run was made, in a few words each: training, recipe, limits, data, date."""
    config, results = run.manifest.config, run.results
    words = [*_protocols(run)]
    words += [f"recipe {stage['recipe']}" for _, stage in stages_of(run) if stage.get("recipe")]
    words += [text(config[name]) for name, text in SETTINGS.items() if config.get(name)]
    words += ["sample data"] if results.run.data == "sample" else []
    words += [f"{results.model.parameters / 1e6:,.0f} M parameters"] if results.model.parameters else []
    words += [_date(results.run.created)] if results.run.created else []
    return list(dict.fromkeys(words))


def _protocols(run: Run) -> Iterator[str]:
    """Yield the training of a model before its test: ``fine-tuned on English``, ``frozen``."""
    scored = ((str(cell.protocol), str(cell.method)) for cell in run.cells if cell.status == "ok")
    for protocol, method in dict.fromkeys(scored):
        if protocol == "zero_shot_transfer":
            yield _trained(run)
        elif protocol == "frozen":
            yield short_protocol(protocol, method)
        else:
            yield protocol if protocol == "prompted" else PROTOCOLS.get(protocol, ("", protocol))[1]


def _trained(run: Run) -> str:
    stages = (stage.get("train", {}) for _, stage in stages_of(run))
    codes = dict.fromkeys(code for train in stages for code in train.get("languages", ()))
    names = [recorded_name(code, ()) for code in codes]
    languages = " and ".join(names) if len(names) <= MOST_LANGUAGES else f"{len(names)} languages"
    return f"fine-tuned on {languages}" if names else "zero-shot transfer"


def _date(created: str) -> str:
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{moment.day} {moment:%b %Y}"


def banners(material: Material) -> list[Banner]:
    """Return the restrictions of the runs: stopped, partial, or of the sample; none for whole runs on real data."""
    sampled = [run for run in material.runs if run.results.run.data == "sample"]
    names = "" if len(sampled) == len(material.runs) else f"{', '.join(map(material.name, sampled))}: "
    every = [Banner(title=f"{names}Scores of the shipped sample.", text=SAMPLE)] if sampled else []
    for run in material.runs:
        name = f"{material.name(run)}: " if len(material.runs) > 1 else ""
        every += [replace(banner, title=f"{name}{banner.title}") for banner in _banners(run)]
    return every


def _banners(run: Run) -> Iterator[Banner]:
    if doubts := list(doubt_remarks(run)):
        reasons = dict.fromkeys(doubt.text.removeprefix(f"{doubt.brief}. ") for doubt in doubts)
        yield Banner(title=f"{'; '.join(doubt.brief for doubt in doubts)}.", text=" ".join(reasons))
    if line := unreadable_line(run):
        yield Banner(title=f"{line}.", text=UNREAD)
    state, suites = completeness(run), " ".join(_suites(run))
    if state.is_whole:
        if suites:
            yield Banner(title="Part of a suite.", text=suites)
        return
    phrases = [f"{counted(count, 'cell')} {status}" for status, count in state.missing.items() if count]
    is_stopped = bool(state.missing["not reached"])
    yield Banner(
        title=f"{'Stopped' if is_stopped else 'Partial'} run.",
        text=f"{', '.join([state.phrases, *phrases])}. {suites}".rstrip(),
        href=f"#{MISSING}",
        command=f"harness eval --resume {shlex.quote(str(run.path))}" if is_stopped else "",
    )


def _suites(run: Run) -> list[str]:
    """Return which suites have no score, or none that can be compared with the published ones."""
    suites = run.results.suites
    none = dict.fromkeys(row.suite for row in suites if row.paper.value is None)
    fewer = dict.fromkeys(row.suite for row in suites if row.paper.value is not None and not row.complete)
    compared = "not comparable with published ones."
    return [
        *(f"No score of the suite {name}; {compared}" for name in none),
        *(f"The score on {name} is over fewer languages; {compared}" for name in fewer),
    ]


# The first paragraph -----------------------------------------------------------------------------------------


def lead(material: Material, first: Glance) -> str:
    """Return the paragraph in plain words, without codes; empty where no task has a score."""
    tasks = [task for task in first.tasks if task.mean.value is not None]
    return " ".join(filter(None, _sentences(material, first, tasks))) if tasks else ""


def _sentences(material: Material, first: Glance, tasks: Sequence[TaskGlance]) -> Iterator[str]:
    specs = material.runs[0].manifest.specs
    training = "; ".join(dict.fromkeys(_protocols(material.runs[0]))).replace("frozen", "as it is")
    items = counted(sum(task.items for task in first.averaged or tasks), "item")
    compared = [material.name(compared_run) for compared_run in material.every[1:]]
    against = f", next to {_listed(compared)}" if compared else ""
    yield f"{first.name}{f' ({training})' if training else ''} was tested on {items} in {_languages(tasks)}{against}."
    names = [task.column.task for task in tasks]
    kinds = [(name, str(specs.get(name, {}).get("kind", ""))) for name in names]
    deeds = group_pairs((DEEDS.get(kind, kind.replace("_", " ")), name) for name, kind in kinds)
    yield f"It had to {_listed([f'{deed} ({list_names(duties)})' for deed, duties in deeds.items()])}."
    if len(set(names)) == 1:
        yield _described(specs.get(names[0], {}))
    meanings = "; ".join(dict.fromkeys(filter(None, (_meaning(task.column.metric) for task in tasks))))
    yield f"Scores go from 0 to 100{f': {meanings}' if meanings else ''}."
    chances = group_pairs((percent(task.chance), task.column.task) for task in tasks if task.chance)
    guessing = [f"{value} on {_listed(list(dict.fromkeys(by)))}" for value, by in chances.items()]
    yield f"Guessing scores {_listed(guessing)}." if guessing else ""
    if any(task.mean.interval for task in tasks):
        yield "± is how far a score could move if other items had been drawn (95 %)."


def _languages(tasks: Sequence[TaskGlance]) -> str:
    """Return the names of the languages with a score, or their number with the number of families."""
    family_of = {language.name: language.family for task in tasks for language in task.scored}
    if len(family_of) <= MOST_NAMES:
        return _listed(sorted(family_of))
    families = len(set(family_of.values()))
    return f"{counted(len(family_of), 'language')} of {families} {'families' if families > 1 else 'family'}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _meaning(metric: str) -> str:
    """Return the name of a metric and what it is, as the glossary has it; empty where it does not."""
    return next(
        (f"{term} is {meaning}" for term, pattern, meaning in TERMS if re.search(pattern, metric)), ""
    )


def _described(spec: Mapping[str, Any]) -> str:
    """Return the first sentence of a task's description, and its labels where they are few."""
    start = " ".join(str(spec.get("description") or "").split()).partition(". ")[0].rstrip(".")
    labels = list(map(str, spec.get("labels") or []))
    chosen = f"The labels are {_listed(labels)}." if 0 < len(labels) <= MOST_NAMES else ""
    return " ".join(filter(None, [f"{start}." if start else "", chosen]))


# The glossary ------------------------------------------------------------------------------------------------


def glossary_blocks(blocks: Iterable[Block]) -> list[Block]:
    """Return the meaning of every term that the blocks use; nothing where they use none."""
    text = "\n".join(_texts(blocks))
    rows = [(term, meaning) for term, pattern, meaning in TERMS if re.search(pattern, text)]
    return (
        [make_table("Words of this page", ("word", "meaning"), rows, words={0}, untitled=True)]
        if rows
        else []
    )


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the words of blocks but for the texts of items."""
    for block in blocks:
        if isinstance(block, Note):
            yield block.text
        elif isinstance(block, Notes):
            yield from block.texts
        elif isinstance(block, Fold):
            yield from (block.title, block.soft, *_texts(block.blocks))
        elif isinstance(block, Charts):
            yield from (chart.title for chart in block.charts)
        elif isinstance(block, Table):
            yield from (block.title, block.corner, *block.plain_heads, *block.notes)
            yield from (str(as_field(row.label)) for row in block.rows if row.depth == 0)


# Commands, configuration, versions, data, fits, model, requests and hardware ----------------------------------


def provenance_blocks(runs: Mapping[str, Run]) -> list[Block]:
    """Return the provenance of named runs; blocks that a further run shares with the first are named only."""
    first: list[Block] = []
    folds: list[Block] = []
    for name, run in runs.items():
        blocks = _run(run)
        shared = ", ".join(block.title for block in blocks if isinstance(block, Fold) and block in first)
        same = _note(f"The same as for {next(iter(runs))}: {shared}." if shared else "")
        differing = [block for block in blocks if block not in first]
        folds.append(Fold(title=name, blocks=[*differing, *same], is_open=not folds))
        first = first or blocks
    return folds


def _run(run: Run) -> list[Block]:
    manifest, settings = run.manifest, _settings_text(_shared_settings(run))
    # Most settings are at rest in most runs.
    config = {
        name: value for name, value in manifest.config.items() if value not in (None, [], {}, False, "")
    }
    sources = group_pairs(
        (f"plugins of {_text(version)}", name) for name, version in manifest.plugins.items()
    )
    plugins = {source: " ".join(names) for source, names in sources.items()}
    fit_note = f"Settings of all: {settings}." if settings else ""
    data_note = "Files and digests of each cell: results.json in the folder of the run."
    prompts = ("prompt", "words", "shots", "digest", "tasks")
    data = ("task", "source", "languages", "seeds", "items of a language")
    fits = ("fit", "digest", "recipe", "seed", "examples", "seconds", "own settings")
    tables = (
        (_pairs(run, "Configuration", config), ""),
        (_pairs(run, "Model", _identity(run)), ""),
        (_pairs(run, "Versions", {**manifest.versions, **plugins}), ""),
        (_pairs(run, "Hardware", manifest.hardware), ""),
        (make_table("Fits", fits, _fits(run), words={0, 1, 5}), fit_note),
        (make_table("Data", data, _data(run), words={0, 1, 2}), data_note),
        (make_table("Prompts", prompts, _prompts(run), words={0, 2, 3}), ""),
    )
    folds = [Fold(title=table.title, blocks=[table, *_note(note)]) for table, note in tables if table.rows]
    return [_pairs(run, "Run", dict(_facts(run))), *folds]


def _identity(run: Run) -> dict[str, Any]:
    model = run.results.model.to_json()
    identity = {**model, **run.manifest.identity, **run.manifest.options}
    texts = {name: str(value) for name, value in identity.items() if name != "metadata"}
    metadata = model.get("metadata") or {}
    identity["metadata"] = {name: value for name, value in metadata.items() if texts.get(name) != str(value)}
    return {name: value for name, value in identity.items() if value not in ({}, None)}


def _facts(run: Run) -> Iterator[tuple[str, Any]]:
    results, manifest = run.results.run, run.manifest
    yield "folder", str(run.path)
    if manifest.command:
        yield "command", shlex.join(map(str, manifest.command))
    for name in ("created", "harness", "data", "processes", "resumed", "seconds"):
        if results.has(name):
            yield name, getattr(results, name)
    yield from ((f"requests {name}", count) for name, count in (results.requests or {}).items())
    if seeds := sorted({cell.seed for cell in run.cells if cell.seed is not None}):
        yield "seeds", " ".join(map(str, seeds))


def _pairs(run: Run, title: str, content: Mapping[str, Any]) -> Table:
    """Return a table of names and values, with the model's name for its path or address: only the manifest has that."""
    _, _, ref = run.manifest.model.partition(":")
    texts = {name: _text(value) for name, value in content.items()}
    if any(mark in ref for mark in ("/", "\\")):
        texts = {name: text.replace(ref, run.manifest.model_name) for name, text in texts.items()}
    rows = ((name, _code(_text(text))) for name, text in texts.items())
    return make_table(title, ("what", "value"), rows, words={0}, untitled=True)


def _code(text: str) -> Field:
    return Field(text=text, style="code")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _note(text: str) -> list[Note]:
    return [Note(text, "note")] if text else []


def _shared_settings(run: Run) -> dict[str, Any]:
    """Return the settings that all stages of all fits share."""
    first, *others = [_settings_of(stage) for _, stage in stages_of(run)] or [{}]
    return {
        name: value
        for name, value in first.items()
        if all(name in settings and settings[name] == value for settings in others)
    }


def _settings_of(stage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stage.get("settings", {}).items() if value is not None}


def _settings_text(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _fits(run: Run) -> Iterator[tuple[str | Field, ...]]:
    shared = _shared_settings(run)
    for fit, stage in stages_of(run):
        settings = {name: value for name, value in _settings_of(stage).items() if name not in shared}
        yield (
            f"{fit.title}: {stage['stage']}" if len(fit.stages) > 1 else fit.title,
            _code(str(stage.get("digest", ""))),
            str(stage.get("recipe") or "-"),
            str(stage.get("seed", "-")),
            f"{stage.get('train', {}).get('examples', 0):,}",
            "reused" if stage.get("reused") else f"{stage.get('seconds', 0):,.0f}",
            _settings_text(settings) or "-",
        )


def _data(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield the data that the cells of a task share: their source, languages, seeds and counts."""
    cells = (cell for cell in run.cells if cell.status == "ok" and isinstance(cell.data, Mapping))
    groups = group_pairs(((_task_title(cell), _source_of(cell)), cell) for cell in cells)
    rows = (
        (
            (
                source,
                " ".join(dict.fromkeys(cell.language for cell in members)),
                " ".join(dict.fromkeys(str(cell.seed) for cell in members)),
                _counts(members),
            ),
            task,
        )
        for (task, source), members in groups.items()
    )
    for shared, tasks in group_pairs(rows).items():
        yield (", ".join(tasks), *shared)


def _task_title(cell: CellResult) -> str:
    return " ".join([cell.task, *(f"{name}={value}" for name, value in cell.view.items())])


def _counts(cells: Sequence[CellResult]) -> str:
    """Return how many items the languages have, the fewest and the most."""
    items = _range([cell.n for cell in cells])
    sizes = [cell.size for cell in cells if cell.size is not None]
    return f"{items} of {_range(sizes)}" if sizes else items


def _range(counts: Sequence[int]) -> str:
    return " to ".join(f"{end:,}" for end in sorted({min(counts), max(counts)}))


def _source_of(cell: CellResult) -> str:
    """Return where the items of a cell are from."""
    data = cell.data
    pinned = "" if data.get("pinned", True) else "not pinned"
    facts = (
        f"split {cell.split}{' (instead of test)' if cell.stands_in else ''}",
        f"texts {cell.provenance}" if cell.provenance else "",
        f"from {data['origin']}" if data.get("origin") else "",
        f"revision {data['revision']}{pinned and f' ({pinned})'}" if data.get("revision") else pinned,
    )
    return ", ".join(filter(None, facts))


def _prompts(run: Run) -> Iterator[tuple[str | Field, ...]]:
    cells = group_pairs(
        (json.dumps(cell.prompt, sort_keys=True), (cell.task, cell.language))
        for cell in run.cells
        if isinstance(cell.prompt, dict)
    )
    for content, pairs in cells.items():
        prompt = json.loads(content)
        shots = prompt.get("shots")
        tasks = group_pairs(sorted(set(pairs)))
        yield (
            str(prompt.get("name", "-")),
            str(prompt.get("words", "-")),
            _text(len(shots) if isinstance(shots, list) else shots),
            _code(str(prompt.get("digest", ""))[:16]),
            _text("; ".join(f"{task}: {' '.join(codes)}" for task, codes in tasks.items())),
        )
