"""The words of a page around its numbers: how the run was made, its restrictions, first paragraph and glossary."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from harness.languages.table import recorded_name
from harness.reporting.blocks.model import (
    Banner,
    Block,
    Charts,
    Fold,
    Note,
    Notes,
    Table,
    as_field,
    rows_of,
)
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.remark import counted
from harness.reporting.overview.collapse import doubt_remarks
from harness.reporting.overview.column import PROTOCOL_WORDS, short_protocol
from harness.reporting.overview.glance import Completeness, Glance, TaskGlance, completeness
from harness.reporting.overview.material import Material
from harness.reporting.overview.unreadable import unreadable_line
from harness.storage.run_folder import Run

MISSING = "missing"
"""The anchor of the section that lists what has no score."""
SAMPLE = "They show that the machinery works and say nothing about a model."
UNREAD = "They count as wrong; harness report RUN --unreadable lists them."
_MADE = {**PROTOCOL_WORDS, "prompted": "prompted"}
MOST_LANGUAGES = 3
DEEDS: Mapping[str, str] = {
    "bitext_retrieval": "find the translation of a sentence among many",
    "form_preference": "prefer the correct form of a sentence",
    "multiple_choice": "choose among answers",
    "numeric_answer": "answer with a number",
    "ranked_retrieval": "rank the right text before the others",
    "sequence_classification": "choose the label of a text",
    "span_extraction": "find the answer to a question in a text",
    "summary": "summarise a text",
    "text_marking": "mark words in a text",
    "token_tagging": "label every word of a sentence",
    "translation": "translate",
    "word_labelling": "label a word in its sentence",
}
"""Activity of a model in a kind of task."""
MOST_NAMES = 8
"""Languages that are named; of more, the number and the families are given."""
TERMS = (
    ("accuracy (acc)", r"accuracy|\bacc\b", "the share of items that are answered right"),
    (
        "F1",
        r"\bF1\b|_f1\b",
        "the harmonic mean of precision (how much of what was marked is right) and recall",
    ),
    (
        "EM",
        r"\bEM\b|exact_match",
        "exact match: the share of answers that equal a gold answer, word for word",
    ),
    (
        "mAP",
        r"\bmAP\b|\bmap_at",
        "mean average precision: how high the right candidates stand, over all queries",
    ),
    (
        "MRR",
        r"\bMRR\b|\bmrr_at",
        "one divided by the rank of the first right candidate, averaged over queries",
    ),
    ("95 % interval", r"95 %|±", "from where to where the score could be if other items had been drawn"),
    ("baseline", r"\bbaselines?\b", "a system that needs no model, such as the most frequent label"),
    (
        "bucket",
        r"\bbuckets?\b",
        "items that are alike in one attribute; XS, S, L and XL hold about as many items each",
    ),
    ("calibration", r"calibration", "whether a model that is 80 % sure is right in 80 % of the cases"),
    ("cell", r"\bcells?\b", "one task in one language under one protocol, method, seed and view"),
    ("chance", r"\bchance\b", "the score of guessing"),
    ("cluster", r"\bclusters?\b", "items that belong together; intervals and tests draw whole clusters"),
    ("confusion", r"confusion", "which wrong labels stand where another one is right"),
    ("fertility", r"\bfertility\b", "the number of sub-words per word"),
    ("fit", r"\bfits?\b", "how a model was trained for a task"),
    ("floor", r"\bfloor\b", "the error rate that the templates of a checklist force on every system"),
    ("gold", r"\bgold\b", "the correct answer of an item, as the data file gives it"),
    (
        "Holm",
        r"\bHolm\b",
        "p, made larger for the number of tests, so that a chance find among them stays unlikely",
    ),
    ("p", r"\bp\b", "how often chance alone makes a difference at least this large"),
    ("pool", r"\bpool\b", "the set of candidates that a retrieval task ranks"),
    (
        "premium",
        r"\bpremium\b",
        "the number of sub-words in a language, divided by the number for the same items in English",
    ),
    ("prompted", r"\bprompted\b", "not trained: the model ranks answers or writes one"),
    ("protocol", r"\bprotocols?\b", "a named combination of training and method that a benchmark prescribes"),
    (
        "q",
        r"\bq\b",
        "p after Benjamini and Hochberg: among findings with q up to 0.05, about 5 % are due to chance",
    ),
    ("shot", r"\bshots?\b", "an example with its answer, put into the prompt before the item"),
    ("significant", r"\bsignificant", "hardly due to chance: q, or p after Holm, is at most 0.05"),
    ("transfer gap", r"\btransfer gap", "the score of the source language minus the mean of the others"),
    (
        "variant",
        r"\bvariants?\b",
        "another version of the same test items, such as repaired questions or a translation",
    ),
    (
        "view",
        r"\bviews?\b",
        "the other settings that change a score, such as the prompt or the number of shots",
    ),
    ("zero_shot_transfer", r"zero_shot_transfer", "trained on the source language (English), tested on all"),
)
"""Term, the pattern that says whether a page uses it, and what it means."""


def chips(run: Run) -> list[str]:
    """Return how a run was made, in a few words each: training, recipe, limits, data, date."""
    return list(dict.fromkeys(_chips(run)))


def _training_words(run: Run) -> str:
    """Return the training of a model before its test: ``fine-tuned on English; frozen``."""
    return "; ".join(dict.fromkeys(_protocols(run)))


def _protocols(run: Run) -> Iterator[str]:
    scored = ((str(cell.protocol), str(cell.method)) for cell in run.cells if cell.status == "ok")
    for protocol, method in dict.fromkeys(scored):
        training = short_protocol(protocol, method) if protocol == "frozen" else _MADE.get(protocol, protocol)
        yield _trained(run) if protocol == "zero_shot_transfer" else training


def _chips(run: Run) -> Iterator[str]:
    config = run.manifest.config
    yield from _protocols(run)
    recipes = dict.fromkeys(str(stage["recipe"]) for stage in _stages(run) if stage.get("recipe"))
    yield from (f"recipe {name}" for name in recipes)
    if shots := config.get("shots"):
        yield counted(shots, "shot")
    if limit := config.get("limit"):
        yield f"{counted(limit, 'item')} per language"
    if precision := config.get("precision"):
        yield f"±{precision:g} points"
    if budget := config.get("budget"):
        yield f"{counted(budget, 'item')} in all"
    if train_limit := config.get("train_limit"):
        yield f"{train_limit:,} training examples"
    if run.results.run.data == "sample":
        yield "sample data"
    if run.results.model.parameters:
        yield f"{run.results.model.parameters / 1e6:,.0f} M parameters"
    if run.results.run.created:
        yield _date(run.results.run.created)


def _stages(run: Run) -> Iterator[dict[str, Any]]:
    return (stage for fit in run.results.fits.values() for stage in fit.stages)


def _trained(run: Run) -> str:
    codes = dict.fromkeys(
        code for stage in _stages(run) for code in stage.get("train", {}).get("languages", ())
    )
    names = [recorded_name(code, ()) for code in codes]
    if not names:
        return "zero-shot transfer"
    return (
        f"fine-tuned on {' and '.join(names) if len(names) <= MOST_LANGUAGES else f'{len(names)} languages'}"
    )


def _date(created: str) -> str:
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{moment.day} {moment:%b %Y}"


def banners(material: Material) -> list[Banner]:
    """Return the restrictions of the runs: stopped, partial, or of the sample; none for whole runs on real data."""
    candidates = [
        banner
        for run in material.runs
        for banner in (make(run, material) for make in (_doubts, _unreadable, _banner))
    ]
    sampled = [run for run in material.runs if run.results.run.data == "sample"]
    if sampled:
        names = "" if len(sampled) == len(material.runs) else ", ".join(map(material.name, sampled))
        candidates.insert(
            0, Banner(title=f"{names}{': ' if names else ''}Scores of the shipped sample.", text=SAMPLE)
        )
    return [banner for banner in candidates if banner is not None]


def _doubts(run: Run, material: Material) -> Banner | None:
    doubts = list(doubt_remarks(run))
    name = f"{material.name(run)}: " if len(material.runs) > 1 else ""
    reasons = " ".join(dict.fromkeys(doubt.text.removeprefix(f"{doubt.brief}. ") for doubt in doubts))
    return (
        Banner(title=f"{name}{'; '.join(doubt.brief for doubt in doubts)}.", text=reasons) if doubts else None
    )


def _unreadable(run: Run, material: Material) -> Banner | None:
    name = f"{material.name(run)}: " if len(material.runs) > 1 else ""
    line = unreadable_line(run)
    return Banner(title=f"{name}{line}.", text=UNREAD) if line else None


def _banner(run: Run, material: Material) -> Banner | None:
    name = f"{material.name(run)}: " if len(material.runs) > 1 else ""
    state, suites = completeness(run), " ".join(_suites(run))
    if state.is_whole:
        return Banner(title=f"{name}Part of a suite.", text=suites) if suites else None
    return Banner(
        title=f"{name}{'Stopped' if state.stopped else 'Partial'} run.",
        text=f"{_counts(state)} {suites}".rstrip(),
        href=f"#{MISSING}",
        command=f"harness eval --resume {shlex.quote(str(run.path))}" if state.stopped else "",
    )


def _counts(state: Completeness) -> str:
    phrases = [
        f"{scored} of {counted(planned, noun)}"
        for (scored, planned), noun in ((state.tasks, "task"), (state.languages, "language"))
    ]
    for count, status in (
        (state.failed, "failed"),
        (state.skipped, "skipped"),
        (state.unlabelled, "without labels"),
        (state.stopped, "not reached"),
    ):
        if count:
            phrases.append(f"{counted(count, 'cell')} {status}")
    return f"{', '.join(phrases)}."


def _suites(run: Run) -> list[str]:
    """Return which suites have no score, or none that can be compared with the published ones."""
    rows: Sequence[Any] = run.results.suites
    none = dict.fromkeys(row.suite for row in rows if row.paper.value is None)
    fewer = dict.fromkeys(row.suite for row in rows if row.paper.value is not None and not row.complete)
    sentences = [f"No score of the suite {name}; not comparable with published ones." for name in none]
    return [
        *sentences,
        *(
            f"The score on {name} is over fewer languages; not comparable with published ones."
            for name in fewer
        ),
    ]


# The first paragraph -----------------------------------------------------------------------------------------


def lead(material: Material, first: Glance) -> str:
    """Return the paragraph in plain words, without codes; empty where no task has a score."""
    tasks = [task for task in first.tasks if task.mean.value is not None]
    return " ".join(filter(None, _sentences(material, first, tasks))) if tasks else ""


def _sentences(material: Material, first: Glance, tasks: Sequence[TaskGlance]) -> Iterator[str]:
    run = material.runs[0]
    training = _training_words(run).replace("frozen", "as it is")
    items = counted(sum(task.items for task in first.averaged or tasks), "item")
    compared = [material.name(compared_run) for compared_run in material.every[1:]]
    against = f", next to {_listed(compared)}" if compared else ""
    yield f"{first.name}{f' ({training})' if training else ''} was tested on {items} in {_languages(tasks)}{against}."
    deeds: dict[str, dict[str, None]] = {}
    for task in tasks:
        kind = str(run.manifest.specs.get(task.column.task, {}).get("kind", ""))
        deeds.setdefault(DEEDS.get(kind, kind.replace("_", " ")), {})[task.column.task] = None
    duties = [f"{deed} ({', '.join(names)})" for deed, names in deeds.items()]
    yield f"It had to {_listed(duties)}."
    if len({task.column.task for task in tasks}) == 1:
        yield _described(run.manifest.specs.get(tasks[0].column.task, {}))
    metrics = dict.fromkeys(task.column.metric for task in tasks)
    meanings = "; ".join(dict.fromkeys(filter(None, map(_meaning, metrics))))
    yield f"Scores go from 0 to 100{f': {meanings}' if meanings else ''}."
    chances: dict[str, dict[str, None]] = {}
    for task in tasks:
        if task.chance:
            chances.setdefault(percent(task.chance), {})[task.column.task] = None
    if chances:
        guessing = [f"{value} on {_listed(list(names))}" for value, names in chances.items()]
        yield f"Guessing scores {_listed(guessing)}."
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
    table = Table(
        title="Words of this page",
        untitled=True,
        corner="word",
        heads=("meaning",),
        rows=rows_of(rows),
        words=frozenset({0}),
    )
    return [table] if rows else []


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the words of blocks but for the texts of items."""
    for block in blocks:
        if isinstance(block, Note):
            yield block.text
        elif isinstance(block, Notes):
            yield from block.texts
        elif isinstance(block, Fold):
            yield from (block.title, block.soft)
            yield from _texts(block.blocks)
        elif isinstance(block, Charts):
            yield from (chart.title for chart in block.charts)
        elif isinstance(block, Table):
            yield from (block.title, block.corner, *block.plain_heads, *block.notes)
            yield from (str(as_field(row.label)) for row in block.rows if row.depth == 0)
