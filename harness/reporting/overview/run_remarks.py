"""Remarks on a run's results: other splits, unread answers, ties, releases, fits, published sources."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.data.checksums import CHANGED, RELEASED
from harness.metrics.metric import metric_name
from harness.reporting.blocks.remark import Remark, Weight, counted
from harness.reporting.overview.column import conditions_of, group_pairs, list_names, stages_of
from harness.reporting.overview.marks import doubt_remarks, origin_remarks, unreadable_line, unreadable_notes
from harness.running.token_ledger import unknown_shares
from harness.statistics import NORMAL, holm, wilson
from harness.storage.results import CellResult
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


def run_remarks(run: Run) -> list[Remark]:
    """Return the notes that a run recorded, and the remarks on its cells."""
    scored = [cell for cell in run.cells if cell.status == "ok"]
    replaced = "U+FFFD in place of what was no character"
    excluded = "shots had the text of the item that was asked, or of its translation, and were replaced"
    return [
        *map(Remark, run.results.notes),
        *(Remark("", brief, Weight.PARTIAL) for brief in sampled_items(run)),
        *_pools(scored),
        *_unknown(scored),
        *_fits(run),
        *_tuned(run),
        *_stand_ins(scored),
        *_data(scored),
        *_releases(scored),
        *_file_states(scored),
        *_ties(run, scored),
        *(
            remark
            for name in COUNTS
            for remark in _sum(scored, name, f"items were {name}", "item", COUNTS[name])
        ),
        *_sum(scored, "replaced", f"answers have {replaced}", "answer", f"with {replaced}", Weight.DETAIL),
        *_unreadable(run, scored),
        *doubt_remarks(run),
        *_positions(scored),
        *origin_remarks(run),
        *_generated(scored),
        *_sum(
            scored,
            "dropped_shots",
            "shots did not fit and were dropped",
            "shot",
            "did not fit and were dropped",
        ),
        *_sum(scored, "excluded_shots", excluded, "shot", "replaced: the tested item itself", Weight.DETAIL),
        *_english_words(scored),
        *_repeats(scored),
        *_seeds(scored),
        *_unlabelled(scored),
    ]


def _sum(
    scored: Sequence[CellResult], name: str, text: str, noun: str, brief: str, weight: Weight = Weight.PARTIAL
) -> Iterator[Remark]:
    """Yield the sum of a field of cells: before `text` in the sentence, and with its noun in the brief line."""
    if count := sum(getattr(cell, name) for cell in scored):
        yield Remark(f"{count:,} {text}", f"{counted(count, noun)} {brief}", weight)


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
        (tuple(origin.items()), f"{cell.task}:{cell.language} {conditions_of(cell.view)}".rstrip())
        for cell in scored
        if (origin := cell.data.get("made_from"))
    )
    for recipe, titles in recipes.items():
        settings = ", ".join(f"{name} {value}" for name, value in recipe)
        yield Remark(f"generated test items ({settings}): {list_names(titles)}")


def _pools(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield a line on each task with incomplete candidates; the sentence is among the recorded ones."""
    missing = group_pairs(
        (cell.task, code) for cell in scored for code in (cell.pool or {}).get("missing") or ()
    )
    for task, codes in missing.items():
        languages = counted(len(set(codes)), "language")
        yield Remark("", f"{task}: {languages} missing in the candidate pool", Weight.INCOMPARABLE)


def _unknown(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield a line on texts that the tokenizer knows in part; the sentence is among the recorded ones."""
    if codes := list(unknown_shares(scored)):
        languages = " ".join(codes) if len(codes) <= NAMED_CODES else counted(len(codes), "language")
        yield Remark("", f"many sub-words unknown to the tokenizer: {languages}", Weight.PARTIAL)


def _fits(run: Run) -> Iterator[Remark]:
    """Yield how every stage of a fit was trained."""
    for fit, stage in stages_of(run):
        train = stage.get("train", {})
        gone, of = (sum(loss[name] for loss in train.get("lost", [])) for name in ("lost", "of"))
        lost = f" ({gone:,} of {of:,} lost their answer in translation)" if gone else ""
        duration = "reused" if stage["reused"] else f"{stage.get('seconds', 0):,.0f} s"
        title = f"stage {stage['stage']} of {fit.title}" if len(fit.stages) > 1 else fit.title
        text = f"fit {stage['digest'][:8]}: {title}, {train.get('examples'):,} examples{lost}, {duration}"
        brief = f"{gone:,} of {of:,} training examples lost their answer in translation" if gone else ""
        yield Remark(text, brief, Weight.PARTIAL if gone else Weight.PROVENANCE)


def _tuned(run: Run) -> Iterator[Remark]:
    """Yield the choice of every tuned fit's settings, and whether it was made for this very fit."""
    for fit, stage in stages_of(run):
        if not (tuned := stage.get("tuned")):
            continue
        points = ", ".join(
            f"{_point(score['settings'])} {'failed' if score.get('dev') is None else format(100 * score['dev'], '.1f')}"
            for score in tuned["scores"]
        )
        chosen = f"{_point(tuned['chosen'])} was chosen on the English dev set"
        measured = f"{metric_name(tuned['metric'])} of {tuned['items']:,} items"
        text = f"fit {stage['digest'][:8]}: {chosen} ({measured}: {points})"
        if tuned.get("same_fit"):
            yield Remark(text)
        else:
            text += f", for another fit than {fit.title} here: another model, other data or another seed"
            yield Remark(text, f"{fit.title}: its settings were chosen for another fit", Weight.DETAIL)


def _point(settings: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings.items()
    )


def _stand_ins(scored: Sequence[CellResult]) -> Iterator[Remark]:
    if cells := [cell for cell in scored if cell.stands_in]:
        brief = f"{counted(len(cells), 'cell')} scored on another split than test (*)"
        text = f"* scored on another split than test, which was not found: {_named(cells)}"
        yield Remark(text, brief, Weight.INCOMPARABLE)


def _repeats(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the cells whose sampled answers do not differ for any item, which chance hardly does for several items."""
    if equal := [cell for cell in scored if cell.equal_repeats == cell.n > 1]:
        text = "all answers to every item are equal, as of a server that ignores 'temperature' or 'seed'"
        brief = f"{counted(len(equal), 'cell')} with equal answers to every item: is 'temperature' or 'seed' ignored?"
        yield Remark(f"{text}: {_named(equal)}", brief, Weight.PARTIAL)


def _unlabelled(scored: Sequence[CellResult]) -> Iterator[Remark]:
    if cells := [cell for cell in scored if not cell.metrics]:
        reason = "since the test file has no labels"
        brief = f"{counted(len(cells), 'cell')} without a score, {reason}: {_tasks(cells)}"
        yield Remark(f"predicted but not scored, {reason}: {_named(cells)}", brief, Weight.INVALID)


def _data(scored: Sequence[CellResult]) -> Iterator[Remark]:
    if unpinned := _tasks([cell for cell in scored if not cell.data["pinned"]]):
        yield Remark(f"Downloaded data of {unpinned} is not pinned by a revision or checksum")
    counts = Counter((cell.task, cell.data["note"]) for cell in scored if cell.data["note"])
    for (task, note), count in sorted(counts.items()):
        brief = f"{task}: the data of {counted(count, 'cell')} have a note"
        yield Remark(f"{task}: {note}", brief, Weight.INCOMPARABLE)


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
        codes = list(dict.fromkeys(languages))
        kind = "a release with a note" if name is not None else "no known release"
        text = f"{task} {' '.join(codes)}: {': '.join(filter(None, (name, note)))}"
        brief = f"{task}: {counted(len(codes), 'test set')} of {kind}"
        weight = Weight.DETAIL if name is not None else Weight.INCOMPARABLE
        yield Remark(text, brief, weight)


def _file_states(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield how many cells were scored on released, changed and unknown files; the changed ones by name."""
    counts = Counter(cell.file_state for cell in scored if cell.file_state is not None)
    text = "; ".join(f"{state}: {counted(count, 'cell')}" for state, count in sorted(counts.items()))
    if changed := [cell for cell in scored if cell.file_state == CHANGED]:
        brief = f"{counted(len(changed), 'cell')} scored on a {CHANGED}"
        yield Remark(f"{text} ({_named(changed)})", brief, Weight.INCOMPARABLE)
    elif text:
        yield Remark(text)


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
        count, items = sum(cell.tied for cell in cells), sum(cell.n for cell in cells)
        if task in retrieval:
            text = f"{task}: in {count:,} rankings a tie crosses the cut-off"
            brief = f"{task}: {counted(count, 'ranking')} with a tie at the cut-off"
            yield Remark(text, brief, Weight.DETAIL)
        else:
            text = f"{task}: in {count:,} of {items:,} items the best choices have equal scores"
            brief = f"{task}: {counted(count, 'item')} with equal scores for the best choices"
            yield Remark(text, brief, Weight.PARTIAL)


def _unreadable(run: Run, scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield how many answers are unreadable with one of them, and what to do where most of a cell's are."""
    if line := unreadable_line(run):
        notes = unreadable_notes(scored)
        text = f"{line}; harness report RUN --unreadable lists them"
        brief = f"{line}: try another --prompt, --chat or --constrained" if notes else line
        yield Remark(text, brief, Weight.INVALID if notes else Weight.INCOMPARABLE)
        yield from map(Remark, notes)


def _positions(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the cells whose answers depend on where the choices stand, at 5 % over all cells (Holm)."""
    tested = [(cell, test) for cell in scored if (test := cell.positions) and test["p"] is not None]
    adjusted = holm([test["p"] for _, test in tested]).tolist()
    dependent = [
        f"{cell.task}:{cell.language} (right where the gold answer is choice 1, 2, ...: {_shares(test)}; p = {p:.2g})"
        for (cell, test), p in zip(tested, adjusted, strict=True)
        if p < SIGNIFICANT
    ]
    if dependent:
        text = f"answers depend on the position of the choices, not on their content alone: {', '.join(dependent)}"
        brief = f"{counted(len(dependent), 'cell')} with answers that depend on the position of the choices"
        yield Remark(text, brief, Weight.PARTIAL)


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
        text = f"{name} has no words in these languages and used English ones: {_named(cells)}"
        brief = f"prompt {name}: {counted(len(cells), 'cell')} asked with English words"
        yield Remark(text, brief, Weight.DETAIL)


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
                coverage = f"{code}: the mean of {count} of {most} seeds"
                text, brief = f"{name} {coverage}; the others have no score", f"{cells[0].task} {coverage}"
                yield Remark(text, brief, Weight.PARTIAL)


def _named(cells: Iterable[CellResult]) -> str:
    return ", ".join(sorted({f"{cell.task}:{cell.language}" for cell in cells}))


def _tasks(cells: Iterable[CellResult]) -> str:
    return ", ".join(sorted({cell.task for cell in cells}))


def published_remarks(published: Sequence[Mapping[str, Any]]) -> Iterator[Remark]:
    """Yield the source of every published system, why some numbers cannot be compared, and how few items some had.

    Systems of which the same is said share a remark.
    """
    labelled = [(item["label"], item) for item in published]
    sources = ((_source(item), label) for label, item in labelled)
    reasons = (
        (f"{task}: {reason}", label)
        for label, item in labelled
        for task, reason in item["comparable"].items()
    )
    counts = (
        (few_items(task, items), label)
        for label, item in labelled
        for task, items in item.get("items", {}).items()
    )
    for sentence, pairs in (("published {}: {}", sources), ("° {}, {}", reasons), ("{}, {}", counts)):
        for text, labels in group_pairs(pairs).items():
            yield Remark(sentence.format(list_names(labels), text))
    for label, item in labelled:
        for task, tables in item.get("families", {}).items():
            for metric, table in tables.items():
                means = ", ".join(f"{family} {value:g}" for family, value in table.items())
                yield Remark(f"published {label}, {task} ({metric_name(metric)}) by family: {means}")
        for task, layers in item.get("layers", {}).items():
            numbers = ", ".join(f"{code} {layer}" for code, layer in layers.items())
            yield Remark(f"published {label}, {task}: layer {numbers}")


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
    return (
        f"{task}: scored on so many items: {texts}. With {fewest:,} items, a score of 50 has the 95 % interval "
        f"{low:.0f} to {high:.0f}, and systems less than {apart:.0f} points apart cannot be separated"
    )
