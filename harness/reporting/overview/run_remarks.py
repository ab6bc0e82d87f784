"""Remarks on a run's results, whose sentences are in ``templates/remarks.toml``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.data.origin import CHANGED, RELEASED
from harness.errors import HarnessError
from harness.metrics.metric import metric_name
from harness.metrics.scoring import answers_of
from harness.reporting.blocks.model import Block, Note, make_table, visible
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.words import Remark, counted, remark_of
from harness.reporting.overview.column import conditions_of, group_pairs, list_names, stages_of
from harness.reporting.overview.means import (
    PROVENANCE_MARKS,
    UNREADABLE,
    is_added,
    is_unreadable,
    is_variant,
    unread_count,
)
from harness.running.cell_counts import unknown_shares
from harness.statistics import NORMAL, holm, wilson
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run

SIGNIFICANT = 0.05
NAMED_CODES = 4
"""Languages that are named rather than counted."""
NOTED_TIES = 0.05
"""Share of a cell's items with equal scores for the best choices, from which a run has a note."""
COUNTS = {
    "truncated": "longer than the model reads, and cut",
    "unfinished": "with an answer that was cut at the token limit, before or inside it",
}
MOST_TASKS = 2
"""Those with the largest shares are named in one line."""
LONGEST = 60
"""Characters of an unreadable answer that is quoted in a line."""
GUESSING = "baseline:"
"""How models begin that are run to be beaten."""
FEWEST = 100
"""Readable answers from which a cell can show more than luck."""
FEWEST_STEPS = 10
"""Steps from which the losses of single batches say whether a model learns."""
LEARNED = 0.95
"""Share of the starting loss at which training has taught a model next to nothing."""
LONGEST_LABEL = 40
"""Characters of an answer to nearly all items that are quoted."""


def run_remarks(run: Run) -> list[Remark]:
    """Return the notes that a run recorded, and the remarks on its cells."""
    scored = [cell for cell in run.cells if cell.status == "ok"]
    return [
        *map(Remark, run.results.notes),
        *(remark_of("sample", brief=brief) for brief in sampled_items(run)),
        *_pools(scored),
        *_unknown(scored),
        *map(_fit, stages_of(run)),
        *(_tuned(*fit) for fit in stages_of(run) if fit[1].get("tuned")),
        *_of_cells("other split", [cell for cell in scored if cell.stands_in]),
        *_of_cells("unpinned", [cell for cell in scored if not cell.data["pinned"]]),
        *_data_notes(scored),
        *_releases(scored),
        *_file_states(scored),
        *_ties(run, scored),
        *(remark for name in (*COUNTS, "replaced") for remark in _sum(name, scored)),
        *_unreadable(run, scored),
        *doubt_remarks(run),
        *_positions(scored),
        *origin_remarks(run),
        *_generated(scored),
        *(remark for name in ("dropped_shots", "excluded_shots") for remark in _sum(name, scored)),
        *_english_words(scored),
        # Chance hardly makes all answers to several items equal.
        *_of_cells("equal repeats", [cell for cell in scored if cell.equal_repeats == cell.n > 1]),
        *_seeds(scored),
        *_of_cells("no labels", [cell for cell in scored if not cell.metrics]),
    ]


def _of_cells(name: str, cells: Sequence[CellResult], **values: object) -> Iterator[Remark]:
    """Yield a remark on cells, with their number, their tasks and their names; nothing where there are none."""
    if cells:
        tasks = ", ".join(sorted({cell.task for cell in cells}))
        names = ", ".join(sorted(set(map(_title, cells))))
        yield remark_of(name, cells=counted(len(cells), "cell"), tasks=tasks, names=names, **values)


def _sum(name: str, scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the sum of a field of cells, and the same with a noun; nothing where it is 0."""
    if count := sum(getattr(cell, name) for cell in scored):
        nouns = {f"{noun}s": counted(count, noun) for noun in ("item", "answer", "shot")}
        yield remark_of(name, count=count, phrase=COUNTS.get(name), **nouns)


def sampled_items(run: Run) -> Iterator[str]:
    """Yield in what way cells have only a part of their items: ``--limit``, and samples that grew no further."""
    if (limit := run.manifest.config.get("limit")) is not None:
        yield f"at most {counted(limit, 'item')} per cell (--limit)"
    partial = [cell for cell in run.cells if cell.status == "ok" and cell.looks and cell.n < (cell.size or 0)]
    for reason, count in Counter(cell.stopped for cell in partial).items():
        phrase = {"precision": "stopped at --precision", "budget": "stopped by --budget"}.get(reason)
        if phrase:
            yield f"{counted(count, 'cell')} on a sample of the items, {phrase}"


def _generated(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield how generated test files were made, as they record it themselves, with the cells that read them."""
    recipes = group_pairs(
        (tuple(origin.items()), f"{_title(cell)} {conditions_of(cell.view)}".rstrip())
        for cell in scored
        if (origin := cell.data.get("made_from"))
    )
    for recipe, titles in recipes.items():
        settings = ", ".join(f"{name} {value}" for name, value in recipe)
        yield remark_of("generated", settings=settings, titles=list_names(titles))


def _pools(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield a line on each task with incomplete candidates; the sentence is among the recorded ones."""
    missing = group_pairs(
        (cell.task, code) for cell in scored for code in (cell.pool or {}).get("missing") or ()
    )
    for task, codes in missing.items():
        yield remark_of("incomplete pool", task=task, languages=counted(len(set(codes)), "language"))


def _unknown(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield a line on texts that the tokenizer knows in part; the sentence is among the recorded ones."""
    if codes := list(unknown_shares(scored)):
        languages = " ".join(codes) if len(codes) <= NAMED_CODES else counted(len(codes), "language")
        yield remark_of("unknown sub-words", languages=languages)


def _data_notes(scored: Sequence[CellResult]) -> Iterator[Remark]:
    counts = Counter((cell.task, cell.data["note"]) for cell in scored if cell.data["note"])
    for (task, note), count in sorted(counts.items()):
        yield remark_of("note of data", task=task, note=note, cells=counted(count, "cell"))


def _releases(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield which release each test set is, where the task has several releases, or does not know this one.

    A number of items that belongs to no release says nothing more where the digests of the files are known.
    """
    releases = group_pairs(
        ((cell.task, release["name"], release["note"] or ""), cell.language)
        for cell in scored
        if (release := cell.release) is not None
        and (release["note"] if release["name"] is not None else cell.file_state not in {RELEASED, CHANGED})
    )
    for (task, name, note), languages in releases.items():
        codes, words = dict.fromkeys(languages), ": ".join(filter(None, (name, note)))
        kind = "unknown release" if name is None else "release with a note"
        count = counted(len(codes), "test set")
        yield remark_of(kind, task=task, codes=" ".join(codes), release=words, count=count)


def _file_states(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield how many cells were scored on released, changed and unknown files; the changed ones by name."""
    counts = Counter(cell.file_state for cell in scored if cell.file_state is not None)
    states = "; ".join(f"{state}: {counted(count, 'cell')}" for state, count in sorted(counts.items()))
    if changed := [cell for cell in scored if cell.file_state == CHANGED]:
        yield from _of_cells("changed files", changed, states=states, changed=CHANGED)
    elif states:
        yield Remark(states)


# Training ----------------------------------------------------------------------------------------------------


def _fit(entry: tuple[Any, Mapping[str, Any]]) -> Remark:
    """Return how a stage of a fit was trained."""
    fit, stage = entry
    train = stage.get("train", {})
    lost, of = (sum(loss[name] for loss in train.get("lost", [])) for name in ("lost", "of"))
    return remark_of(
        "fit with losses" if lost else "fit",
        digest=stage["digest"][:8],
        title=f"stage {stage['stage']} of {fit.title}" if len(fit.stages) > 1 else fit.title,
        examples=train.get("examples"),
        lost=lost,
        of=of,
        duration="reused" if stage["reused"] else f"{stage.get('seconds', 0):,.0f} s",
    )


def _tuned(fit: Any, stage: Mapping[str, Any]) -> Remark:
    """Return the choice of a tuned fit's settings, and whether it was made for this very fit."""
    tuned = stage["tuned"]
    points = ", ".join(
        f"{_point(score['settings'])} {'failed' if score.get('dev') is None else format(100 * score['dev'], '.1f')}"
        for score in tuned["scores"]
    )
    return remark_of(
        "tuned" if tuned.get("same_fit") else "tuned for another fit",
        digest=stage["digest"][:8],
        title=fit.title,
        chosen=_point(tuned["chosen"]),
        metric=metric_name(tuned["metric"]),
        items=tuned["items"],
        points=points,
    )


def _point(settings: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings.items()
    )


# Answers -----------------------------------------------------------------------------------------------------


def _ties(run: Run, scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield where equal scores decide: at the cut-off of rankings, and in at least 5 % of a cell's other answers."""
    kinds = run.manifest.tasks
    retrieval = {cell.task for cell in scored if kinds[cell.task].kind.endswith("retrieval")}
    tied = group_pairs(
        (cell.task, cell)
        for cell in scored
        if cell.tied >= (1 if cell.task in retrieval else max(1, NOTED_TIES * cell.n))
    )
    for task, cells in tied.items():
        count, of = sum(cell.tied for cell in cells), sum(cell.n for cell in cells)
        name = "tied rankings" if task in retrieval else "tied choices"
        nouns = {f"{noun}s": counted(count, noun) for noun in ("ranking", "item")}
        yield remark_of(name, task=task, tied=count, of=of, **nouns)


def shorten(text: str, longest: int) -> str:
    """Return a text, with ``…`` after its first `longest` characters where it has more."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def unreadable_answers(run: Run) -> Iterator[dict[str, str]]:
    """Yield a row for every answer that could not be read, or was cut before it could be, in the order of the cells.

    The key ``written`` has the model's text; it is empty where the records do not hold it. Raises `DataError` for
    broken records.
    """
    for cell in run.cells:
        for record in run.records(cell) if cell.status == "ok" and unread_count(cell) else ():
            if record.flags.get("unparsed") or record.flags.get("unanswered"):
                yield {
                    "task": cell.task,
                    "conditions": conditions_of(cell.view),
                    "language": cell.language,
                    "id": record.id,
                    "written": _written(record.prediction),
                }


def _written(prediction: Any) -> str:
    texts = [answer.get("raw") for answer in answers_of(prediction) if isinstance(answer, Mapping)]
    return next((str(text) for text in texts if text is not None), "")


def unreadable_line(run: Run) -> str:
    """Return how many answers are unreadable, in which tasks, with one of them; empty where there are none."""
    cells = [cell for cell in run.cells if cell.status == "ok" and unread_count(cell)]
    if not cells:
        return ""
    counts = {
        task: _unread(group) for task, group in group_pairs((cell.task, cell) for cell in cells).items()
    }
    by_task = {task: unread / items for task, (unread, items) in counts.items()}
    most = sorted(by_task, key=by_task.__getitem__, reverse=True)[:MOST_TASKS]
    shares = [f"{task} {percent(by_task[task])} %" for task in most]
    shares += [f"{len(by_task) - len(most)} more tasks"] * (len(by_task) > len(most))
    try:
        example = next(unreadable_answers(run), {"written": ""})["written"]
    except HarnessError:
        example = ""
    text = " ".join(visible(example).split())
    quoted = f", such as '{shorten(text, LONGEST)}'" if text else ""
    unread, items = _unread(cells)
    return f"{unread:,} of {items:,} answers {UNREADABLE} ({', '.join(shares)}){quoted}"


def _unread(cells: Sequence[CellResult]) -> tuple[int, int]:
    return sum(map(unread_count, cells)), sum(cell.n for cell in cells)


def unreadable_blocks(run: Run) -> list[Block]:
    """Return the unreadable answers of a run as a table."""
    rows = [
        (
            "{task}:{language} {conditions}".format_map(answer).rstrip(),
            answer["id"],
            visible(answer["written"]) or "(empty)",
        )
        for answer in unreadable_answers(run)
    ]
    title, heads = f"{len(rows):,} {UNREADABLE} answers", ("cell", "item", "written")
    table = make_table(title, heads, rows, words={0, 1}, folding=True)
    return [table if rows else Note("No answer of this run is unreadable.")]


def _unreadable(run: Run, scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield how many answers are unreadable with one of them, and what to do where most of a cell's are."""
    if not (line := unreadable_line(run)):
        return
    cells = [cell for cell in scored if is_unreadable(cell)]
    yield remark_of("unreadable cells" if cells else "unreadable answers", line=line)
    if cells:
        names = ", ".join(f"{_title(cell)} ({unread_count(cell):,} of {cell.n:,})" for cell in cells)
        cut = any(cell.unanswered and cell.reasoning_tokens != 0 for cell in cells)
        yield remark_of("list of unreadable cells", names=names, budget=remark_of("budget").text * cut)


def _positions(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the cells whose answers depend on where the choices stand, at 5 % over all cells (Holm)."""
    tested = [(cell, test) for cell in scored if (test := cell.positions) and test["p"] is not None]
    adjusted = holm([test["p"] for _, test in tested]).tolist()
    names = [
        f"{_title(cell)} (right where the gold answer is choice 1, 2, ...: {_shares(test)}; p = {p:.2g})"
        for (cell, test), p in zip(tested, adjusted, strict=True)
        if p < SIGNIFICANT
    ]
    if names:
        yield remark_of("positions", names=", ".join(names), cells=counted(len(names), "cell"))


def _shares(positions: Mapping[str, Any]) -> str:
    """Return the recall at every position, in percent."""
    pairs = zip(positions["right"], positions["gold"], strict=True)
    return " ".join(f"{100 * right / gold:.0f}" for right, gold in pairs)


def _english_words(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the prompts that have no words of the languages they were used in."""
    english = group_pairs(
        (prompt["name"], cell)
        for cell in scored
        if (prompt := cell.prompt) and prompt["words"] != cell.view.get("instruction", cell.language)
    )
    for name, cells in sorted(english.items()):
        yield from _of_cells("English words", cells, prompt=name)


def _seeds(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the languages whose score is the mean over fewer seeds than that of others, since some cells failed."""
    seeds = group_pairs(
        (" ".join([cell.task, str(cell.protocol), str(cell.method), conditions_of(cell.view)]).rstrip(), cell)
        for cell in scored
    )
    for name, cells in seeds.items():
        by_language = group_pairs((cell.language, cell.seed or 0) for cell in cells)
        most = len({cell.seed or 0 for cell in cells})
        for code, seeds_of_language in by_language.items():
            if (count := len(set(seeds_of_language))) < most:
                yield remark_of(
                    "fewer seeds", name=name, task=cells[0].task, code=code, count=count, most=most
                )


# Items of another origin than the benchmark's own ---------------------------------------------------------------


def origin_remarks(run: Run) -> list[Remark]:
    """Return the legend of the marks that a run's scores have, with the cells that have them."""
    tasks = run.manifest.tasks
    scored = [cell for cell in run.cells if cell.status == "ok"]
    titles = {
        name: [_title(cell) for cell in scored if cell.provenance == name and not is_variant(cell)]
        for name in PROVENANCE_MARKS
    }
    # The items of a variant that a translator made do not say how the language's own were made.
    added = group_pairs(
        (_title(cell), _origin(cell, tasks[cell.task]))
        for cell in sorted(scored, key=is_variant)
        if is_added(cell.language, tasks[cell.task])
    )
    titles["added"] = [f"{name} ({origin})" if origin else name for name, (origin, *_) in added.items()]
    return [
        remark_of(name, names=list_names(names), sets=counted(len(set(names)), "test set"))
        for name, names in titles.items()
        if names
    ]


def _title(cell: CellResult) -> str:
    return f"{cell.task}:{cell.language}"


def _origin(cell: CellResult, spec: TaskSummary) -> str:
    plugin = spec.added.get(cell.language)
    phrases = ("" if is_variant(cell) else cell.provenance, f"from {plugin}" if plugin else "")
    return ", ".join(filter(None, phrases))


# One answer to nearly all items, labels no better than a constant one, failed training --------------------------


def doubt_remarks(run: Run) -> Iterator[Remark]:
    """Yield a remark where scores say nothing about a task: the only check of this kind.

    The rules: nearly all answers are the same (`AnswerSpread`); labels are right no more often than the commonest gold
    label, in a task that is scored by accuracy; training ended at its starting loss, and no such labels are better.
    """
    scored = [cell for cell in run.cells if cell.status == "ok"]
    compared = [] if run.manifest.model.startswith(GUESSING) else scored
    by_accuracy = [cell for cell in compared if run.manifest.tasks[cell.task].headline == ["accuracy"]]
    by_fit = group_pairs((cell.fit, cell) for cell in scored)
    able = {fit for fit, cells in by_fit.items() if _is_better(cells)}
    stages = [stage for name, fit in run.results.fits.items() if name not in able for stage in fit.stages]
    for name, lines in (
        ("collapse", collapse_lines(scored)),
        ("majority", majority_lines(by_accuracy)),
        ("untrained", filter(None, map(_loss_line, stages))),
    ):
        yield from (remark_of(name, line=line) for line in lines)


def majority_lines(cells: Sequence[CellResult]) -> list[str]:
    """Return ``xnli sw: 34.0 % right, not measurably more than always 'neutral' (33.3 %), 300 items``.

    The difference is that of the same items, so that only those count in which one of the two is right. A cell of at
    least 100 readable answers is no better where the 95 % interval of its difference has 0 or lies below it, and
    languages are named where they are no better together either: many small tests find no weak but real model.
    """
    groups = group_pairs(
        ((cell.task, _quoted(majority["answer"])), cell)
        for cell in cells
        if (majority := cell.majority)
        and not cell.collapse
        and majority["of"] >= FEWEST
        and not _is_better([cell])
    )
    lines = []
    for (task, answer), group in groups.items():
        right, constant, _, items = _totals(group)
        if not _is_better(group):
            lines.append(
                f"{_task_title(cells, group, task)}: {percent(right / items)} % right, not measurably more than always "
                f"{answer} ({percent(constant / items)} %), {items:,} items"
            )
    return lines


def _is_better(group: Sequence[CellResult]) -> bool:
    """Return whether the model is right more often than the constant answer, by a normal interval of paired items."""
    right, constant, both, items = _totals(group)
    if not items:
        return False
    difference = (right - constant) / items
    variance = (right + constant - 2 * both) / items - difference**2
    return difference > NORMAL * math.sqrt(max(variance, 0.0) / items)


def _totals(group: Sequence[CellResult]) -> list[int]:
    counts = [cell.majority for cell in group if cell.majority]
    return [sum(count[name] for count in counts) for name in ("right", "constant", "both", "of")]


def _loss_line(stage: Mapping[str, Any]) -> str:
    loss = stage.get("loss")
    if not loss or loss["steps"] < FEWEST_STEPS or loss["last"] < LEARNED * loss["first"]:
        return ""
    return (
        f"{stage['stage']}: training ended at its starting loss ({loss['first']:.4g} at the start, {loss['last']:.4g} "
        f"after {loss['steps']:,} steps)"
    )


def collapse_lines(cells: Sequence[CellResult]) -> list[str]:
    """Return ``xnli: 'neutral' for all 300 items`` for every task and answer; languages where others have none."""
    groups = group_pairs(
        ((cell.task, _quoted(collapse["answer"]), collapse["unit"]), cell)
        for cell in cells
        if cell.status == "ok" and (collapse := cell.collapse)
    )
    lines = []
    for (task, answer, unit), group in groups.items():
        count, of = (sum((cell.collapse or {})[name] for cell in group) for name in ("count", "of"))
        how_many = f"all {of:,}" if count == of else f"{count:,} of {of:,}"
        lines.append(f"{_task_title(cells, group, task)}: {answer} for {how_many} {unit}")
    return lines


def _task_title(every: Sequence[CellResult], group: Sequence[CellResult], task: str) -> str:
    """Return a task, with the languages of the group where others have scores too."""
    codes = dict.fromkeys(cell.language for cell in group)
    is_whole = all(cell.language in codes for cell in every if cell.task == task and cell.status == "ok")
    return task if is_whole else f"{task} {' '.join(codes)}"


def _quoted(answer: object) -> str:
    if answer is None:
        return "one candidate"
    return f"'{shorten(str(answer), LONGEST_LABEL)}'" if answer else "an empty answer"


# Published systems -------------------------------------------------------------------------------------------


def published_remarks(published: Sequence[Mapping[str, Any]]) -> Iterator[Remark]:
    """Yield the source of every published system, why some numbers cannot be compared, and how few items some had.

    Systems of which the same is said share a remark.
    """
    facts = [
        *(("published source", _source(item), item) for item in published),
        *(
            ("published, not comparable", f"{task}: {reason}", item)
            for item in published
            for task, reason in item["comparable"].items()
        ),
        *(
            ("published items", few_items(task, items), item)
            for item in published
            for task, items in item.get("items", {}).items()
        ),
    ]
    by_text = group_pairs(((name, text), item["label"]) for name, text, item in facts)
    for (name, text), labels in by_text.items():
        yield remark_of(name, systems=list_names(labels), text=text)
    for item in published:
        for task, tables in item.get("families", {}).items():
            for metric, table in tables.items():
                means = ", ".join(f"{family} {value:g}" for family, value in table.items())
                title = f"{item['label']}, {task} ({metric_name(metric)})"
                yield remark_of("published families", title=title, means=means)
        for task, layers in item.get("layers", {}).items():
            numbers = ", ".join(f"{code} {layer}" for code, layer in layers.items())
            yield remark_of("published layers", title=f"{item['label']}, {task}", layers=numbers)


def _source(item: Mapping[str, Any]) -> str:
    source, recipe, data = (item[name].rstrip(".") for name in ("source", "recipe", "release"))
    return f"{source}. Recipe: {recipe}. Data: {data}."


def few_items(task: str, counts: Mapping[str, int]) -> str:
    """Return how many items published scores of a task are over, and what the fewest of them cannot separate.

    The interval is Wilson's. Two systems' answers to the same items are not published, so that their difference is
    that of two independent shares: its 95 % half-width is z sqrt(2 p (1 - p) / n), which is largest at p = 1/2.
    """
    fewest = min(counts.values())
    low, high = (100 * end for end in wilson(fewest / 2, fewest))
    apart = 100 * NORMAL * math.sqrt(0.5 / fewest)
    texts = ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items(), key=lambda item: item[1]))
    return remark_of(
        "few items", task=task, counts=texts, fewest=fewest, low=low, high=high, apart=apart
    ).text
