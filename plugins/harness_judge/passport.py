"""A judge's passport: how far a judge agrees with people, by language, as a file that others reuse.

It holds kappa, biases, and the moments that correct the scores of the judge.

It corrects by prediction-powered inference: the mean of what people would say, from many verdicts of a judge and
few of people.

The estimator is that of PPI++ for a mean (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453, section 6; with the
weight 1 it is that of Angelopoulos et al. 2023, Science 382, and arXiv 2301.09633, algorithm 1):

    estimate = weight * mean(judge, all others) + mean(human - weight * judge, labelled)

Its variance is that of both means, which are of different items. The weight that makes it smallest is
cov(human, judge) / (var(judge, others) + var(judge, labelled)), all of means; it is cut to [0, 1]. With weight 0, of a
judge that says nothing, it is the mean of what people said. Clusters are one draw, as in `harness.statistics`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import DataError, Run, UsageError
from harness.data import read_gold
from harness.statistics import ClusterCodes, count_interval, seed_of
from harness.storage import CellResult, ItemRecord
from harness_judge.kind import FIRST, ORDERS, SECOND, kappa_counts, kappa_of

_Floats = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
LEAST: Final = 30
"""Fewest labelled clusters of a certified language: below, normal theory does not hold."""
PLACE: Final = frozenset({"device", "torch", "transformers", "tokenizers", "vllm"})
"""What an identity says of the machine and the versions that a judge ran with, which passports do not bind."""
Human = Mapping[tuple[str, str, str], str]
"""Task, language and id -> the verdict of people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Means of human and judged values of the same items, and the covariance of these two means."""

    n: int
    clusters: int
    human: float
    judge: float
    human_variance: float
    judge_variance: float
    covariance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredEstimate:
    """A mean in [-1, 1] with its 95 % interval, None where there is none."""

    value: float
    se: float | None
    ci: tuple[float, float] | None


def moments(human: _Floats, judge: _Floats, codes: _Codes) -> Moments:
    """Return the moments of labelled items; all arguments have shape (n,), and `codes` numbers the clusters."""
    groups = int(codes.max()) + 1
    pairs = np.stack([human, judge])
    centred = pairs - pairs.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(codes, weights=row, minlength=groups) for row in centred])
    covariance = sums @ sums.T * groups / max(1, groups - 1) / len(codes) ** 2
    return Moments(
        n=len(codes),
        clusters=groups,
        human=float(human.mean()),
        judge=float(judge.mean()),
        human_variance=float(covariance[0, 0]),
        judge_variance=float(covariance[1, 1]),
        covariance=float(covariance[0, 1]),
    )


def clustered_estimate(values: _Floats, codes: _Codes) -> PoweredEstimate:
    """Return the mean of values with a t interval, as `harness.statistics.clustered_mean` does; not cut."""
    own = moments(values, values, codes)
    return _estimate(own.human, own.human_variance, own.clusters)


def corrected_mean(labelled: Moments, judged: _Floats, codes: _Codes) -> tuple[PoweredEstimate, float]:
    """Return the mean in [0, 1] of what people would say of all items, and the weight of the judge.

    The interval is t with one degree of freedom less than the labelled clusters, and cut to [0, 1].

    Args:
        labelled: Of the items that people labelled.
        judged: Shape (n,): the judge's values of the other items; with none the estimate is that of the labelled ones.
        codes: Shape (n,): the numbers of their clusters.
    """
    if not len(judged):
        return _cut(_estimate(labelled.human, labelled.human_variance, labelled.clusters)), 0.0
    others = moments(judged, judged, codes)
    spread = others.judge_variance + labelled.judge_variance
    weight = min(1.0, max(0.0, labelled.covariance / spread)) if spread > 0 else 0.0
    value = labelled.human + weight * (others.judge - labelled.judge)
    variance = labelled.human_variance + weight**2 * spread - 2 * weight * labelled.covariance
    return _cut(_estimate(value, variance, labelled.clusters)), weight


def _estimate(value: float, variance: float, groups: int) -> PoweredEstimate:
    from scipy.special import stdtrit

    if groups < 2 or variance <= 0:
        return PoweredEstimate(value=value, se=None, ci=None)
    se = math.sqrt(variance)
    reach = float(stdtrit(groups - 1, 0.975)) * se
    return PoweredEstimate(value=value, se=se, ci=(value - reach, value + reach))


def _cut(estimate: PoweredEstimate) -> PoweredEstimate:
    value = min(1.0, max(0.0, estimate.value))
    ci = None if estimate.ci is None else (max(0.0, estimate.ci[0]), min(1.0, estimate.ci[1]))
    return PoweredEstimate(value=value, se=estimate.se, ci=ci)


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Bias(_Entry):
    """How much higher the judge's values are under a condition, with its 95 % interval; 1 is the whole scale."""

    value: float
    ci: tuple[float, float] | None = Field(default=None, strict=False)
    n: int


class CertifiedLanguage(_Entry):
    """A language: how the judge was asked, and how far it agrees with people."""

    method: str | None
    view: dict[str, str]
    words: str
    """The language of the rubric's words."""
    unreadable: int
    agreement: float
    kappa: float
    kappa_ci: tuple[float, float] | None = Field(default=None, strict=False)
    length: Bias | None
    """Longer answers against shorter ones, judge minus people."""
    position: Bias | None
    """The answer that is shown first against the other; of pairs."""
    other_words: dict[str, Bias]
    """By the language of other words: these words minus those."""
    moments: dict[str, float]
    """Of `harness_judge.passport.Moments`."""
    items: list[str]
    """Digests of the labelled items."""
    certified: bool
    reason: str
    """Why it is not certified."""

    @property
    def labelled(self) -> Moments:
        """The moments of the labelled items."""
        counts = {name: int(self.moments[name]) for name in ("n", "clusters")}
        return Moments(**{**self.moments, **counts})  # type: ignore[arg-type]


class Passport(_Entry):
    """The file."""

    passport: Literal[1] = 1
    made: str
    """The day."""
    harness: str
    judge: str
    """The name of the model, for people."""
    judge_digest: str
    """Of the model, its revision and options."""
    judge_identity: dict[str, str]
    """What the digest is of, and the machine and versions that it ran with."""
    rubric: str
    labels: list[str]
    """The verdicts."""
    tasks: list[str]
    human: str
    """Where the verdicts of people come from: a file with its digest, or ``gold``."""
    languages: dict[str, CertifiedLanguage]

    def of(
        self, language: str, method: str | None, view: Mapping[str, str], words: str
    ) -> CertifiedLanguage | None:
        """Return a language as it is asked; None where it was certified otherwise, or not at all."""
        entry = self.languages.get(language)
        if entry is None or not entry.certified:
            return None
        asked = (entry.method, entry.view, entry.words)
        return entry if asked == (method, dict(view), words) else None


def judge_identity(run: Run) -> dict[str, str]:
    """Return the identity of a judge: that of the model, and the options that were given."""
    options = {
        f"given.{name}": str(value) for name, value in (run.manifest.config.get("options") or {}).items()
    }
    head = {"model": run.results.model.ref, "revision": str(run.results.model.revision)}
    identity = dict(run.manifest.identity)
    return {**(head if "weights" not in identity else {}), **identity, **options}


def judge_digest(identity: Mapping[str, str]) -> str:
    """Return the digest that a passport binds."""
    bound = {name: value for name, value in identity.items() if name not in PLACE}
    return sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def _rubric_of(run: Run) -> tuple[str, list[str]]:
    """Return the rubric and the verdicts of a judge's run; raises `UsageError` where there is no single one."""
    specs = [spec for spec in run.manifest.specs.values() if spec.get("kind") == "judgement"]
    rubrics = {spec.get("rubric", "") for spec in specs}
    if len(rubrics) != 1 or "" in rubrics:
        raise UsageError(
            f"The run {str(run.path)!r} has {'no' if not rubrics - {''} else 'several'} rubrics with a digest.",
            hint="Write its task again with 'harness judge export', one rubric at a time, and ask the judge.",
        )
    return str(rubrics.pop()), list(specs[0]["labels"])


def read_passport(path: Path, run: Run) -> Passport:
    """Return the passport of the judge of a run.

    Raises:
        DataError: Where the file cannot be read.
        UsageError: Where it is of another judge or rubric, with what differs.
    """
    try:
        passport = Passport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else _first_fault(error)
        raise DataError(f"The passport {str(path)!r} cannot be read: {reason}.") from error
    identity = judge_identity(run)
    if judge_digest(passport.judge_identity) != passport.judge_digest:
        raise DataError(f"The passport {str(path)!r} was changed: its judge does not have its digest.")
    if judge_digest(identity) != passport.judge_digest:
        own = passport.judge_identity
        names = sorted(name for name in {*own, *identity} - PLACE if own.get(name) != identity.get(name))
        differences = ", ".join(
            f"{name} {str(own.get(name))[:16]!r}, here {str(identity.get(name))[:16]!r}" for name in names[:3]
        )
        raise UsageError(
            f"The passport {str(path)!r} is of another judge ({passport.judge}) than that of the run "
            f"{str(run.path)!r}: {differences}.",
            hint="Certify this judge: harness judge certify RUN --human FILE --output FILE.json.",
        )
    rubric, _ = _rubric_of(run)
    if rubric != passport.rubric:
        raise UsageError(
            f"The passport {str(path)!r} is for the rubric {passport.rubric}, the run {str(run.path)!r} has {rubric}.",
            hint="Certify the judge with this rubric.",
        )
    return passport


def write_passport(path: Path, passport: Passport) -> None:
    """Write the file."""
    from harness.cli import write_file

    write_file(path, passport.model_dump_json(indent=1) + "\n")


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"


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
    def values(self) -> _Floats:
        """The verdicts as values, shape (n,)."""
        return self.values_of(self.verdicts)

    def values_of(self, verdicts: Sequence[str | None]) -> _Floats:
        """Return verdicts of these items as values, shape (n,)."""
        pairs = zip(verdicts, self.orders, strict=True)
        return np.array([value_of(verdict, self.labels, order) for verdict, order in pairs])

    @property
    def codes(self) -> _Codes:
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
    _, labels = _rubric_of(run)
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
    rubric, labels = _rubric_of(run)
    identity = judge_identity(run)
    for other in others:
        if _rubric_of(other)[0] != rubric or judge_digest(judge_identity(other)) != judge_digest(identity):
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
        moments=asdict(labelled),
        items=sorted(item.inputs_digest for item in items.records),
        certified=not reason,
        reason=reason,
    )


def _bias(values: _Floats, codes: _Codes, value: float | None = None) -> Bias:
    estimate: PoweredEstimate = clustered_estimate(values, codes)
    shift = 0.0 if value is None else value - estimate.value
    ci = None if estimate.ci is None else (estimate.ci[0] + shift, estimate.ci[1] + shift)
    return Bias(value=estimate.value + shift, ci=ci, n=len(values))


def _length(items: JudgedItems, error: _Floats, codes: _Codes) -> Bias | None:
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


def _words(items: JudgedItems, judge: _Floats, other: JudgedItems) -> Bias | None:
    values = dict(zip((item.id for item in other.records), other.values.tolist(), strict=True))
    both = np.array([item.id in values for item in items.records])
    if not both.any():
        return None
    differences = judge[both] - np.array([values[item.id] for item in items.records if item.id in values])
    return _bias(differences, items.kept(set(values)).codes)
