"""How far a judge agrees with people, by language: kappa, biases, and the moments that correct its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from harness import DataError, Run, UsageError
from harness.data import read_gold
from harness.statistics import ClusterCodes, count_interval, seed_of
from harness.storage import CellResult, ItemRecord
from harness_judge.metrics import FIRST, ORDERS, SECOND, kappa_counts, kappa_of
from harness_judge.passport import (
    LEAST,
    Bias,
    CertifiedLanguage,
    Passport,
    judge_digest,
    judge_identity,
    moments_json,
    rubric_of,
)
from harness_judge.prediction_powered import Codes, Floats, PoweredEstimate, clustered_estimate, moments

Human = Mapping[tuple[str, str, str], str]
"""Task, language and id -> the verdict of people."""


def value_of(verdict: str | None, labels: Sequence[str], order: str | None) -> float:
    """Return a verdict as a value in [0, 1]: from the worst to the best, or of pairs whether the first run wins.

    What is unreadable is the worst, or a tie: any fixed value will do, as the comparison with people corrects it.
    """
    if order is None:
        return 0.0 if verdict is None else labels.index(verdict) / (len(labels) - 1)
    wins = {FIRST: 1.0, SECOND: 0.0} if order == ORDERS[0] else {FIRST: 0.0, SECOND: 1.0}
    return wins.get(verdict or "", 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItems:
    """The items of a cell of a judge: its verdicts, as values too."""

    records: Sequence[ItemRecord]
    labels: Sequence[str]

    @classmethod
    def of(cls, run: Run, cell: CellResult) -> JudgedItems:
        """Read the records of a cell."""
        return cls(records=list(run.records(cell)), labels=run.manifest.tasks[cell.task].labels)

    @property
    def verdicts(self) -> list[str | None]:
        """The verdicts of the judge."""
        return [record.prediction["label"] for record in self.records]

    @property
    def orders(self) -> list[str | None]:
        """Of pairs: which answer came first."""
        return [record.reference.get("order") for record in self.records]

    @property
    def values(self) -> Floats:
        """The verdicts as values, shape (n,)."""
        return self.values_of(self.verdicts)

    def values_of(self, verdicts: Sequence[str | None]) -> Floats:
        """Return verdicts of these items as values, shape (n,)."""
        pairs = zip(verdicts, self.orders, strict=True)
        return np.array([value_of(verdict, self.labels, order) for verdict, order in pairs])

    @property
    def codes(self) -> Codes:
        """The number of every item's cluster, shape (n,)."""
        numbered = ClusterCodes()
        numbered.add([record.cluster for record in self.records])
        return numbered.codes()

    def kept(self, ids: set[str]) -> JudgedItems:
        """Return the items with these ids."""
        return JudgedItems(records=[item for item in self.records if item.id in ids], labels=self.labels)


def read_human(path: Path, run: Run) -> Human:
    """Return verdicts of people, from a file with ``task``, ``language``, ``id`` and ``label`` as ``--gold`` reads it.

    Raises `UsageError` for one without items of the run's tasks, `SpecError` for verdicts that the rubric has not.
    """
    read = read_gold(path)
    if not read.tasks & set(run.manifest.tasks):
        raise UsageError(
            f"The verdicts {str(path)!r} are of {', '.join(sorted(read.tasks))}; the run {str(run.path)!r} has "
            f"{', '.join(sorted(run.manifest.tasks))}."
        )
    _, labels = rubric_of(run)
    for task in read.tasks & set(run.manifest.tasks):
        read.check_labels(task, "sequence_classification", labels)  # verdicts are labels
    return {(task, language, name): str(label) for (task, language, _, _, name), label in read.labels.items()}


def certify(run: Run, human: Path | None, others: Sequence[Run]) -> Passport:
    """Return the passport of the judge of a run.

    Args:
        run: The judge's verdicts.
        human: Verdicts of people on items of this run; None takes the run's own gold.
        others: Runs of the same judge on the same items with the rubric in other words.

    Raises:
        UsageError: Where there is nothing to compare with, a run is of another judge or rubric, or a language has
            several cells.
        DataError: Where people labelled items that the run does not have.
    """
    rubric, labels = rubric_of(run)
    identity = judge_identity(run)
    for other in others:
        if rubric_of(other)[0] != rubric or judge_digest(judge_identity(other)) != judge_digest(identity):
            raise UsageError(
                f"The run {str(other.path)!r} is of another judge or rubric than {str(run.path)!r}."
            )
    verdicts = None if human is None else read_human(human, run)
    languages: dict[str, CertifiedLanguage] = {}
    for cell in (cell for cell in run.cells if cell.status == "ok"):
        if cell.language in languages:
            raise UsageError(
                f"The run {str(run.path)!r} has several cells in {cell.language!r}: certify one task."
            )
        items, golds = _labelled(run, cell, verdicts)
        if golds:
            worded = [_same_items(other, cell) for other in others]
            languages[cell.language] = _certified(
                cell, items, golds, worded, _position(JudgedItems.of(run, cell))
            )
    if not languages:
        raise UsageError(
            f"The run {str(run.path)!r} has no items with a verdict of people.",
            hint="Give --human FILE with task, language, id and label.",
        )
    source = "gold" if human is None else f"{human.name}, sha256 {sha256(human.read_bytes()).hexdigest()}"
    return Passport(
        made=datetime.now(UTC).date().isoformat(),
        harness=version("multilingual-harness"),
        judge=run.manifest.model_name,
        judge_digest=judge_digest(identity),
        judge_identity=identity,
        rubric=rubric,
        labels=labels,
        tasks=sorted(run.manifest.tasks),
        human=source,
        languages=languages,
    )


def _labelled(run: Run, cell: CellResult, verdicts: Human | None) -> tuple[JudgedItems, list[str]]:
    items = JudgedItems.of(run, cell)
    if verdicts is None:
        golds = {
            item.id: item.reference["label"] for item in items.records if item.reference["label"] is not None
        }
    else:
        golds = {
            name: label
            for (task, language, name), label in verdicts.items()
            if (task, language) == (cell.task, cell.language)
        }
        unknown = sorted(set(golds) - {item.id for item in items.records})
        if unknown:
            raise DataError(
                f"People labelled {len(unknown)} items that {cell.task} in {cell.language} does not have, first "
                f"{unknown[0]!r}.",
                hint="The ids are those of the judgement task, in the files that 'harness judge export' wrote.",
            )
    kept = items.kept(set(golds))
    return kept, [golds[item.id] for item in kept.records]


def _same_items(run: Run, cell: CellResult) -> tuple[str, JudgedItems] | None:
    for other in run.cells:
        if other.status == "ok" and (other.task, other.language) == (cell.task, cell.language):
            return words_of(other), JudgedItems.of(run, other)
    return None


def words_of(cell: CellResult) -> str:
    """Return the language of the words in which a judge was asked."""
    return str((cell.prompt or {}).get("words") or "")


def _certified(
    cell: CellResult,
    items: JudgedItems,
    golds: list[str],
    others: Sequence[tuple[str, JudgedItems] | None],
    position: Bias | None,
) -> CertifiedLanguage:
    codes, judge, people = items.codes, items.values, items.values_of(golds)
    counts = kappa_counts(items.verdicts, golds, items.labels)
    interval = count_interval(counts, codes, kappa_of, seed=seed_of("judge", cell.task, cell.language))
    ends = None if interval.low is None or interval.high is None else (interval.low, interval.high)
    labelled = moments(people, judge, codes)
    reason = ""
    if labelled.clusters < LEAST:
        reason = f"{labelled.clusters} labelled clusters of items, needs {LEAST}"
    elif ends is None or ends[0] <= 0:
        reason = "the interval of kappa is not above 0"
    return CertifiedLanguage(
        method=cell.method,
        view=dict(cell.view),
        words=words_of(cell),
        unreadable=sum(verdict is None for verdict in items.verdicts),
        agreement=float(
            np.mean([verdict == gold for verdict, gold in zip(items.verdicts, golds, strict=True)])
        ),
        kappa=kappa_of(counts.sum(axis=0)),
        kappa_ci=ends,
        length=_length(items, judge - people, codes),
        position=position,
        other_words={
            words: bias
            for words, other in filter(None, others)
            if (bias := _words(items, judge, other)) is not None
        },
        moments=moments_json(labelled),
        items=sorted(item.inputs_digest for item in items.records),
        certified=not reason,
        reason=reason,
    )


def _bias(values: Floats, codes: Codes, value: float | None = None) -> Bias:
    estimate: PoweredEstimate = clustered_estimate(values, codes)
    shift = 0.0 if value is None else value - estimate.value
    ci = None if estimate.ci is None else (estimate.ci[0] + shift, estimate.ci[1] + shift)
    return Bias(value=estimate.value + shift, ci=ci, n=len(values))


def _length(items: JudgedItems, error: Floats, codes: Codes) -> Bias | None:
    """Return the judge's error of the longer half of the answers minus that of the shorter half.

    Of pairs: how much more often the judge prefers the longer answer than people do. None where lengths do not differ.
    """
    texts: list[Mapping[str, Any]] = [item.fields["inputs"] for item in items.records]
    orders = items.orders
    if orders[0] is not None:
        shown = np.array(
            [np.sign(len(text["first"]) - len(text["second"])) for text in texts], dtype=np.float64
        )
        toward = np.array([1.0 if order == ORDERS[0] else -1.0 for order in orders])
        return _bias(error * shown * toward, codes) if shown.any() else None
    lengths = np.array([len(text["answer"]) for text in texts])
    longer = lengths > np.median(lengths)
    if not longer.any() or longer.all():
        return None
    difference = float(error[longer].mean() - error[~longer].mean())
    # Each half around its mean, over its share: the influence of an item on the difference.
    influence = np.where(longer, error - error[longer].mean(), error[~longer].mean() - error)
    return _bias(influence / np.where(longer, longer.mean(), 1 - longer.mean()), codes, difference)


def _position(items: JudgedItems) -> Bias | None:
    """Return how much more often the first answer wins than the second; each pair is shown in both orders."""
    if items.orders[0] is None:
        return None
    signs = {FIRST: 1.0, SECOND: -1.0}
    return _bias(np.array([signs.get(verdict or "", 0.0) for verdict in items.verdicts]), items.codes)


def _words(items: JudgedItems, judge: Floats, other: JudgedItems) -> Bias | None:
    values = dict(zip((item.id for item in other.records), other.values.tolist(), strict=True))
    both = np.array([item.id in values for item in items.records])
    if not both.any():
        return None
    differences = judge[both] - np.array([values[item.id] for item in items.records if item.id in values])
    return _bias(differences, items.kept(set(values)).codes)
