"""What a run's results say of themselves: other splits, unread answers, ties, releases, fits, published sources."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.reporting.item_origin import origin_remarks
from harness.reporting.remark import Remark, Weight, counted
from harness.reporting.unreadable import UNREADABLE, is_unreadable, unreadable_notes
from harness.running.token_ledger import unknown_shares
from harness.statistics import holm, wilson
from harness.storage.results import CellResult, FitResult
from harness.storage.run_folder import Run

__all__ = ["few_items", "published_remarks", "run_remarks", "sampled_items"]

NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
SIGNIFICANT = 0.05
NAMED_CODES = 4
"""Languages that are named rather than counted."""
COUNTS = {
    "truncated": "longer than the model reads, and cut",
    "unparsed": "with an answer that could not be read",
    "unfinished": "with an answer that was cut at the token limit, before or inside it",
}


def run_remarks(run: Run) -> list[Remark]:
    """Return what a run recorded, and what its cells say besides."""
    scored = [cell for cell in run.cells if cell.status == "ok"]
    return [
        *(Remark(text=text) for text in run.results.notes),
        *(Remark(brief=brief, weight=Weight.PARTIAL) for brief in sampled_items(run)),
        *_pools(scored),
        *_unknown(scored),
        *map(_fit, _stages(run.results.fits.values())),
        *_tuned(run),
        *_stand_ins(scored),
        *_data(scored),
        *_releases(scored),
        *_answers(scored),
        *_unreadable(scored),
        *_positions(scored),
        *origin_remarks(run),
        *_prompts(scored),
        *_seeds(scored),
        *_unlabelled(scored),
    ]


def sampled_items(run: Run) -> Iterator[str]:
    """Yield in what way cells have only a part of their items: ``--limit``, and samples that grew no further."""
    if (limit := run.manifest.config.get("limit")) is not None:
        yield f"at most {counted(limit, 'item')} per cell (--limit)"
    partial = [cell for cell in run.cells if cell.status == "ok" and cell.looks and cell.n < (cell.size or 0)]
    for reason, count in Counter(cell.stopped for cell in partial).items():
        what = {"precision": "stopped at --precision", "budget": "stopped by --budget"}.get(reason)
        if what:
            yield f"{counted(count, 'cell')} on a sample of the items, {what}"


def _pools(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield a line on each task with incomplete candidates; the sentence is among the recorded ones."""
    missing: dict[str, set[str]] = {}
    for cell in scored:
        if cell.pool and cell.pool.get("missing"):
            missing.setdefault(cell.task, set()).update(cell.pool["missing"])
    for task, codes in missing.items():
        languages = counted(len(codes), "language")
        yield Remark(brief=f"{task}: {languages} missing in the candidate pool", weight=Weight.INCOMPARABLE)


def _unknown(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield a line on texts that the tokenizer knows in part; the sentence is among the recorded ones."""
    if codes := list(unknown_shares(scored)):
        named = " ".join(codes) if len(codes) <= NAMED_CODES else counted(len(codes), "language")
        yield Remark(brief=f"many sub-words unknown to the tokenizer: {named}", weight=Weight.PARTIAL)


def _stages(fits: Iterable[FitResult]) -> Iterator[tuple[FitResult, Mapping[str, Any]]]:
    for fit in fits:
        for stage in fit.stages:
            yield fit, stage


def _fit(trained: tuple[FitResult, Mapping[str, Any]]) -> Remark:
    fit, stage = trained
    count = stage.get("train", {}).get("examples")
    parts = stage.get("train", {}).get("lost", [])
    gone, all_ = (sum(part[name] for part in parts) for name in ("lost", "of"))
    lost = f" ({gone:,} of {all_:,} lost their answer in translation)" if gone else ""
    made = "reused" if stage["reused"] else f"{stage.get('seconds', 0):,.0f} s"
    of = f"stage {stage['stage']} of " if len(fit.stages) > 1 else ""
    return Remark(
        text=f"fit {stage['digest'][:8]}: {of}{fit.title}, {count:,} examples{lost}, {made}",
        brief=f"{gone:,} of {all_:,} training examples lost their answer in translation" if gone else "",
        weight=Weight.PARTIAL if gone else Weight.PROVENANCE,
    )


def _tuned(run: Run) -> Iterator[Remark]:
    """Yield what the settings of every fit were chosen from, and whether for this very fit."""
    for fit, stage in _stages(run.results.fits.values()):
        if not (tuned := stage.get("tuned")):
            continue
        points = ", ".join(
            f"{_point(score['settings'])} {'failed' if score.get('dev') is None else format(100 * score['dev'], '.1f')}"
            for score in tuned["scores"]
        )
        chosen = f"{_point(tuned['chosen'])} was chosen on the English dev set"
        text = (
            f"fit {stage['digest'][:8]}: {chosen} ({tuned['metric']} of {tuned['items']:,} items: {points})"
        )
        if tuned.get("same_fit"):
            yield Remark(text=text)
        else:
            yield Remark(
                text=f"{text}, for another fit than {fit.title} here: another model, other data or another seed",
                brief=f"{fit.title}: its settings were chosen for another fit",
                weight=Weight.DETAIL,
            )


def _point(settings: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings.items()
    )


def _stand_ins(scored: Sequence[CellResult]) -> Iterator[Remark]:
    found = [cell for cell in scored if cell.stands_in]
    if found:
        yield Remark(
            text=f"* scored on another split than test, which was not found: {_named(found)}",
            brief=f"{counted(len(found), 'cell')} scored on another split than test (*)",
            weight=Weight.INCOMPARABLE,
        )


def _data(scored: Sequence[CellResult]) -> Iterator[Remark]:
    unpinned = sorted({cell.task for cell in scored if not cell.data["pinned"]})
    if unpinned:
        yield Remark(text=f"Hub data of {', '.join(unpinned)} is not pinned to a revision")
    for task, note in sorted({(cell.task, cell.data["note"]) for cell in scored if cell.data["note"]}):
        count = sum(cell.task == task and cell.data["note"] == note for cell in scored)
        yield Remark(
            text=f"{task}: {note}",
            brief=f"{task}: the data of {counted(count, 'cell')} have a note",
            weight=Weight.INCOMPARABLE,
        )


def _releases(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield which release each test set is, where the task has several releases, or does not know this one."""
    found: dict[tuple[str, str | None, str], dict[str, None]] = {}
    for cell in scored:
        release = cell.release
        if release is not None and (release["note"] or release["name"] is None):
            key = (cell.task, release["name"], release["note"] or "")
            found.setdefault(key, {})[cell.language] = None
    for (task, name, note), codes in found.items():
        what = "a release with a note" if name is not None else "no known release"
        yield Remark(
            text=f"{task} {' '.join(codes)}: {': '.join(part for part in (name, note) if part)}",
            brief=f"{task}: {counted(len(codes), 'test set')} of {what}",
            weight=Weight.DETAIL if name is not None else Weight.INCOMPARABLE,
        )


def _answers(scored: Sequence[CellResult]) -> Iterator[Remark]:
    tied = Counter[str]()
    for cell in scored:
        tied[cell.task] += cell.tied
    for task, count in tied.items():
        if count:
            yield Remark(
                text=f"{task}: in {count:,} rankings a tie crosses the cut-off",
                brief=f"{task}: {counted(count, 'ranking')} with a tie at the cut-off",
                weight=Weight.DETAIL,
            )
    for name, what in COUNTS.items():
        if count := sum(getattr(cell, name) for cell in scored):
            # Cells of which most answers could not be read have a remark of their own.
            known = sum(getattr(cell, name) for cell in scored if name == "unparsed" and is_unreadable(cell))
            brief = f"{counted(count - known, 'item')} {what}" if count > known else ""
            yield Remark(text=f"{count:,} items were {name}", brief=brief, weight=Weight.PARTIAL)
    if count := sum(cell.replaced for cell in scored):
        yield Remark(
            text=f"{count:,} answers have U+FFFD in place of what was no character",
            brief=f"{counted(count, 'answer')} with U+FFFD in place of what was no character",
            weight=Weight.DETAIL,
        )


def _unreadable(scored: Sequence[CellResult]) -> Iterator[Remark]:
    count = sum(map(is_unreadable, scored))
    for text in unreadable_notes(scored):
        brief = f"{counted(count, 'cell')} {UNREADABLE}: try another --prompt, --chat or --constrained"
        yield Remark(text=text, brief=brief, weight=Weight.INVALID)


def _positions(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the cells whose answers depend on where the choices stand, at 5 % over all cells (Holm)."""
    tested = [(cell, own) for cell in scored if (own := cell.positions) and own["p"] is not None]
    adjusted = holm([own["p"] for _, own in tested]).tolist()
    found = [(*one, p) for one, p in zip(tested, adjusted, strict=True) if p < SIGNIFICANT]
    if not found:
        return
    parts = [
        f"{cell.task}:{cell.language} (right where the gold answer is choice 1, 2, ...: {_shares(own)}; p = {p:.2g})"
        for cell, own, p in found
    ]
    text = f"answers depend on the position of the choices, not on their content alone: {', '.join(parts)}"
    brief = f"{counted(len(found), 'cell')} with answers that depend on the position of the choices"
    yield Remark(text=text, brief=brief, weight=Weight.PARTIAL)


def _shares(positions: Mapping[str, Any]) -> str:
    """Return the recall at every position, in percent."""
    pairs = zip(positions["right"], positions["gold"], strict=True)
    return " ".join(f"{100 * right / gold:.0f}" for right, gold in pairs)


def _prompts(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield how prompts differ from what was asked for: shots that did not fit, and words of another language."""
    if dropped := sum(cell.dropped_shots for cell in scored):
        brief = f"{counted(dropped, 'shot')} did not fit and were dropped"
        yield Remark(
            text=f"{dropped:,} shots did not fit and were dropped", brief=brief, weight=Weight.PARTIAL
        )
    english: dict[str, list[CellResult]] = {}
    for cell in scored:
        prompt = cell.prompt
        if prompt and prompt["words"] != cell.view.get("instruction", cell.language):
            english.setdefault(prompt["name"], []).append(cell)
    for name, cells in sorted(english.items()):
        yield Remark(
            text=f"{name} has no words in these languages and used English ones: {_named(cells)}",
            brief=f"prompt {name}: {counted(len(cells), 'cell')} asked with English words",
            weight=Weight.DETAIL,
        )


def _seeds(scored: Sequence[CellResult]) -> Iterator[Remark]:
    """Yield the languages whose score is the mean over fewer seeds than that of others, since some cells failed."""
    seeds: dict[str, dict[str, set[int]]] = {}
    for cell in scored:
        view = (f"{key}={value}" for key, value in sorted(cell.view.items()))
        name = " ".join([cell.task, str(cell.protocol), str(cell.method), *view])
        seeds.setdefault(name, {}).setdefault(cell.language, set()).add(cell.seed or 0)
    for name, by in seeds.items():
        every = set().union(*by.values())
        for code, own in by.items():
            if own < every:
                of = f"{len(own)} of {len(every)} seeds"
                yield Remark(
                    text=f"{name} {code}: the mean of {of}; the others have no score",
                    brief=f"{name.partition(' ')[0]} {code}: the mean of {of}",
                    weight=Weight.PARTIAL,
                )


def _unlabelled(scored: Sequence[CellResult]) -> Iterator[Remark]:
    found = [cell for cell in scored if not cell.metrics]
    if found:
        tasks = ", ".join(sorted({cell.task for cell in found}))
        yield Remark(
            text=f"predicted but not scored, since the test file has no labels: {_named(found)}",
            brief=f"{counted(len(found), 'cell')} without a score, since the test file has no labels: {tasks}",
            weight=Weight.INVALID,
        )


def _named(cells: Iterable[CellResult]) -> str:
    return ", ".join(sorted({f"{cell.task}:{cell.language}" for cell in cells}))


def published_remarks(published: Sequence[Mapping[str, Any]]) -> Iterator[Remark]:
    """Yield the source of every published system, why some numbers cannot be compared, and how few items some had.

    Systems of which the same is said share a remark.
    """
    texts: dict[str, list[str]] = {}
    for item in published:
        data = item["release"].rstrip(".")
        text = f"{item['source'].rstrip('.')}. Recipe: {item['recipe'].rstrip('.')}. Data: {data}."
        texts.setdefault(text, []).append(item["label"])
    for text, labels in texts.items():
        yield Remark(text=f"published {', '.join(dict.fromkeys(labels))}: {text}")
    texts = {}
    for item in published:
        for task, reason in item["comparable"].items():
            texts.setdefault(f"{task}: {reason}", []).append(item["label"])
    for text, labels in texts.items():
        yield Remark(text=f"° {', '.join(dict.fromkeys(labels))}, {text}")
    texts = {}
    for item in published:
        for task, counts in item.get("items", {}).items():
            texts.setdefault(few_items(task, counts), []).append(item["label"])
    for text, labels in texts.items():
        yield Remark(text=f"{', '.join(dict.fromkeys(labels))}, {text}")
    for item in published:
        for task, tables in item.get("families", {}).items():
            for metric, table in tables.items():
                means = ", ".join(f"{family} {value:g}" for family, value in table.items())
                yield Remark(text=f"published {item['label']}, {task} ({metric}) by family: {means}")


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
