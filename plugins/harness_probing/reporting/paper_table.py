"""Scores of probes as Tables 4 and 5 of Patil et al. (2021) print them: treebanks and tasks against models."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting import BLANK, Field, Table, TableRow
from harness_probing.reporting.probe import TREEBANK_NAMES, Probe, ordered_treebanks
from harness_probing.reporting.progression import AVERAGE, WHICH, Progression, progressions

HEADS = ("Last Layer", "Best Layer")
DIGITS = len("0.1234")


def paper_table(probes: Sequence[Probe], title: str) -> Table:
    """Return the last and the best layer of every model with the number of the best one, as fractions of four digits.

    Rows are treebanks with their tasks in the order of the runs and the average; of several models the best is bold.

    Args:
        probes: Those of one language and method.
        title: The caption without what the numbers are.
    """
    found = progressions(probes)
    models = list(dict.fromkeys(one.model for one in found))
    names = short_titles(probes)
    by_model = {model: {own.title: own for own in found if own.model == model} for model in models}
    titles = dict.fromkeys(own.title for own in found if own.title != AVERAGE)
    rows: list[TableRow] = []
    for treebank in ordered_treebanks(probes):
        if rows:
            rows[-1] = TableRow(label=rows[-1].label, fields=rows[-1].fields, depth=1, ends=True)
        rows.append(TableRow(label=TREEBANK_NAMES.get(treebank, treebank) or "test", style="head"))
        for name in (*titles, AVERAGE):
            own = [by_model[model].get(name) for model in models]
            if any(one is not None and (treebank, "last") in one.scores for one in own):
                rows.append(TableRow(label=names.get(name, name), fields=_fields(own, treebank), depth=1))
    chosen = " or ".join(sorted({str(probe.best["chosen_on"]) for probe in probes}))
    return Table(
        title=f"{title}. Weighted F1; in brackets the best layer, chosen on {chosen}.",
        corner="Task",
        heads=HEADS * len(models),
        groups=tuple((model, len(HEADS)) for model in models),
        rows=tuple(rows),
        notes=("~ over fewer tasks than that of another model. * on another split than test.",),
    )


def _fields(own: Sequence[Progression | None], treebank: str) -> tuple[Field, ...]:
    """Return the fields of a row; averages over unequally many tasks are marked with ~ and not compared."""
    counts = [0 if progression is None else progression.tasks.get(treebank, 0) for progression in own]
    texts = [
        _texts(progression, treebank, "~" if count < max(counts) else "")
        for progression, count in zip(own, counts, strict=True)
    ]
    compared = len({*counts} - {0}) < 2 and sum(text[0] != BLANK for text in texts) > 1
    tops = [max(text[column][:DIGITS] for text in texts) for column in range(len(HEADS))]
    return tuple(
        Field(text=text, style="best" if compared and text[:DIGITS] == top != BLANK else "")
        for pair in texts
        for text, top in zip(pair, tops, strict=True)
    )


def _texts(one: Progression | None, treebank: str, mark: str) -> list[str]:
    """Return the last and the best score; of equal width, so that they sort as text."""
    texts = []
    for which in WHICH:
        score = None if one is None else one.scores.get((treebank, which))
        if one is None or score is None:
            texts.append(BLANK)
            continue
        probe = one.probes.get(treebank)
        layer = f" ({probe.best['layer']})" if which == "best" and probe is not None else ""
        stands_in = "*" if probe is not None and probe.stands_in else ""
        texts.append(f"{score.value:.4f}{mark}{stands_in}{layer}")
    return texts


def short_titles(probes: Sequence[Probe]) -> dict[str, str]:
    """Return the tasks as the paper calls them, by title: without the word that all begin with, in capitals.

    ``vyakarana_pos`` next to ``vyakarana_stdp`` is ``POS``. Inputs that are not those of the suite are in brackets.
    """
    tasks = {probe.task for probe in probes}
    common = len({task.partition("_")[0] for task in tasks}) == 1 and all("_" in task for task in tasks)
    views: dict[str, set[str]] = {}
    for probe in probes:
        views.setdefault(probe.task, set()).add(probe.view)
    names = {}
    for probe in probes:
        name = probe.task.partition("_")[2].upper() if common else probe.task
        bare = len(views[probe.task]) == 1 or not probe.view
        names[probe.title] = name if bare else f"{name} ({probe.view.rpartition('=')[2]})"
    return names
