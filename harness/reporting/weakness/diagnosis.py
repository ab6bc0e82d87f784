"""The diagnosis of runs as rows, tables and charts: worst and best buckets, confusion, calibration, and the data.

The rows are those of each run alone, and of each further one against the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from harness.analysis.buckets import LEAST_ITEMS
from harness.analysis.diagnosis import Diagnosis, DiagnosisOptions, diagnose
from harness.errors import HarnessError
from harness.metrics.metric import metric_name
from harness.registry.registry import Registry
from harness.reporting.blocks.chart import CurveChart, ForestChart, ForestRow, Line
from harness.reporting.blocks.model import (
    BLANK,
    Block,
    Charts,
    Field,
    Fold,
    Note,
    Notes,
    Table,
    make_table,
    rows_of,
    table_of,
)
from harness.reporting.blocks.number import (
    SCALES,
    heat_class,
    interval_text,
    level_text,
    p_text,
    percent,
    signed,
)
from harness.reporting.blocks.words import counted, legend
from harness.reporting.overview.column import conditions_of
from harness.reporting.render.console import SAMPLE_WARNING
from harness.storage.run_folder import Run
from harness.table import grouped

Row = Mapping[str, Any]
EXAMPLES = 3
MOST_ITEMS = 20_000
"""Items of a cell that the page diagnoses, so that its memory does not grow with the run."""
OF_RUN = "harness diagnose RUN --json FILE"
OF_PAIR = "harness diagnose RUN RUN --json FILE"
OF_A_TASK = 2
"""Shortfalls of a task that are written out."""
DRAWN = 20
"""Differences in a chart."""
FURTHER = 20
"""Differences in the table under it."""
MATRIX = 8
"""Labels up to which all pairs of labels are shown."""
CONFUSED = 10
"""Pairs of labels that are shown where there are more labels."""
UNSURE = 5
"""Languages with an error of calibration."""
OF_LANGUAGES = {"language"}
"""Attributes whose scores the page shows elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Results of the diagnosis."""

    runs: tuple[tuple[Row, ...], ...]
    """By given run: its rows of the kinds single, calibration and confusion."""
    pairs: tuple[Row, ...]
    """Rows of every further run against the first."""
    titles: Mapping[str, str]
    """Attribute -> what it is, in a few words."""
    notes: tuple[str, ...]
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Attribute -> what has its lowest and its highest values: ``("shortest answers", "longest answers")``."""
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Task -> the names of its texts, for tasks with pairs of texts."""

    def buckets(self, rows: Sequence[Row]) -> list[DiagnosedBucket]:
        """Return the rows of buckets in words."""
        return [bucket for group in self.bucket_groups(rows) for bucket in group]

    def bucket_groups(self, rows: Sequence[Row]) -> Iterator[list[DiagnosedBucket]]:
        """Yield the rows of buckets in words, by language, task, system or systems, and attribute."""
        groups = grouped(
            ((row["language"], task_title(row), " / ".join(systems_of(row)), row["attribute"]), row)
            for row in rows
        )
        systems = grouped(dict.fromkeys((task, system) for _, task, system, _ in groups))
        for (_, task, system, _), buckets in groups.items():
            name = f"{task} {_condition(system)}" if len(systems[task]) > 1 else task
            phrases = [self._phrase(row, at, len(buckets)) for at, row in enumerate(buckets)]
            yield [
                DiagnosedBucket(task=task, phrase=phrase, label=f"{name}: {phrase}", row=row)
                for phrase, row in zip(phrases, buckets, strict=True)
            ]

    def _phrase(self, row: Row, index: int, count: int) -> str:
        """Return the content of a bucket in words: ``longest premises (13, 40]``, ``tag of the span: PROPN``.

        Args:
            row: The bucket.
            index: Its place among the buckets of its attribute.
            count: How many these are.
        """
        edges, ends = edges_text(row), self.ends.get(row["attribute"])
        title = self.titles.get(row["attribute"]) or row["attribute"]
        if ends is not None and index in {0, count - 1}:
            words = ends[0] if index == 0 else ends[1]
            for ordinal, name in zip(("first", "second"), self.inputs.get(row["task"], ()), strict=False):
                words = words.replace(f"{ordinal} text", name)
            return f"{words} {edges}".rstrip()
        if edges:
            return f"{title} in {edges}"
        if ends is not None:
            return f"{title}, part {index + 1} of {count} from the lowest"
        return f"{title}: {row['bucket']}"


def systems_of(row: Row) -> Sequence[str]:
    """Return the names of the system, or of both systems, that a row is about."""
    names: Sequence[str] = row["systems"] if "systems" in row else [row["system"]]
    return names


def find_weakness(runs: Sequence[Run], registry: Registry) -> Weakness:
    """Return the diagnosis of runs; what cannot be diagnosed has a sentence in its notes."""
    notes: list[str] = []

    table = registry.features
    features = [table.get(name) for name in table.names if name not in table.conflicts]
    specs = {task: spec for run in reversed(runs) for task, spec in run.manifest.specs.items()}
    return Weakness(
        runs=tuple(tuple(_rows([run], registry, notes)) for run in runs),
        pairs=tuple(row for run in runs[1:] for row in _rows([runs[0], run], registry, notes)),
        titles={feature.name: feature.title for feature in features},
        notes=tuple(dict.fromkeys(notes)),
        ends={feature.name: feature.ends for feature in features if feature.ends is not None},
        inputs={task: tuple(spec.get("inputs") or ()) for task, spec in specs.items()},
    )


def _rows(runs: Sequence[Run], registry: Registry, notes: list[str], task: str = "") -> list[dict[str, Any]]:
    """Return the rows of all tasks; where one cannot be diagnosed, those of the others."""
    options = DiagnosisOptions(examples=EXAMPLES, tasks=(task,) if task else (), most_items=MOST_ITEMS)
    try:
        diagnosis = diagnose(runs, registry, options)
    except HarnessError as error:
        tasks = sorted({cell.task for cell in runs[0].cells if cell.status == "ok"})
        if not task and len(tasks) > 1:
            return [row for name in tasks for row in _rows(runs, registry, notes, name)]
        notes.append(f"{task}: {error}" if task else str(error))
        return []
    notes += diagnosis.notes
    return diagnosis.rows()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosedBucket:
    """A bucket of an attribute in words."""

    task: str
    """The task with its view."""
    phrase: str
    """Its content: ``longest premises (13, 40]``."""
    label: str
    """Task and content, with the conditions of the system where the task has several systems."""
    row: Row

    @property
    def difference(self) -> float:
        """The bucket minus the rest of its items, or the first system minus the second one, as a fraction."""
        return float(self.row["difference"])

    @property
    def interval(self) -> Sequence[float] | None:
        """The ends of the 95 % interval of the difference."""
        ends: Sequence[float] | None = self.row["ci" if "systems" in self.row else "difference_ci"]
        return ends

    @property
    def size(self) -> str:
        """The number of its items or spans: ``1 item``, ``214 spans``."""
        return counted(self.row["n"], "span" if self.row.get("level") == "span" else "item")

    def shortfall(self, label: str) -> str:
        """Return a bucket that is below the rest as a sentence."""
        low, high = self.row["difference_ci"]
        return (
            f"{label}: {abs(self.difference) * 100:.1f} points below the rest ({interval_text((-high, -low))}, "
            f"{level_text('q', self.row['q'])}, {self.size})."
        )


def task_title(row: Row) -> str:
    """Return the task of a row with its view: ``xnli (variant=translated)``."""
    view = ", ".join(f"{name}={value}" for name, value in row["view"].items())
    return f"{row['task']} ({view})" if view else row["task"]


def edges_text(row: Row) -> str:
    """Return the edges of a bucket: ``(2, 5]``, ``[1, 2]``, ``2``, ``> 13``; empty where there are none."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "" if low is high else f"<= {high:.3g}" if low is None else f"> {low:.3g}"
    if low == high:
        return f"{low:.3g}"
    return f"{'[' if row.get('low_closed') else '('}{low:.3g}, {high:.3g}]"


def diagnosis_blocks(diagnosis: Diagnosis, *, each_language: bool = False) -> list[Block]:
    """Return the tables: those of all languages together or, where there is one or `each_language`, of each."""
    rows = diagnosis.rows(diagnosis.kind)
    if diagnosis.kind == "data":
        return [*_data_tables(rows), Notes(diagnosis.notes), Note(legend("diagnosis of data"), "note")]
    single = diagnosis.kind == "single"
    return [
        *([Note(SAMPLE_WARNING, "warning")] if diagnosis.sample else []),
        *(
            block
            for _, group in groupby(rows, key=of_task)
            for block in _task(list(group), single=single, each_language=each_language)
        ),
        Notes(diagnosis.notes),
        Note(legend("diagnosis of one run") if single else legend("diagnosis of two runs"), "note"),
    ]


def of_task(row: Row) -> tuple[str, ...]:
    """Return the key that rows of one task share: its name, view, protocol, method and systems."""
    return (row["task"], str(row["view"]), row["protocol"], row["method"], *systems_of(row))


def _task(rows: Sequence[Row], *, single: bool, each_language: bool) -> Iterator[Block]:
    first = rows[0]
    languages = list(dict.fromkeys(row["language"] for row in rows))
    scopes = [None] if None in languages and not each_language else languages
    yield Note(f"{task_title(first)} ({first['protocol']}, {first['method']})", "heading")
    yield Notes(systems_of(first))
    for language in scopes:
        language_rows = [row for row in rows if row["language"] == language]
        codes = " ".join(code for code in languages if code is not None)
        title = f"all of {codes}" if language is None else language
        yield Note(f"  {title}")
        yield _single_table(language_rows, title) if single else _pair_table(language_rows, title)
    if scopes == [None]:
        yield Note("  --languages shows languages by themselves.", "note")
    yield Note("")


def _by_attribute(rows: Iterable[Row]) -> dict[str, list[Row]]:
    return grouped((row["attribute"], row) for row in rows)


def bucket_ends(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the lowest and the highest bucket, those of few items only where fewer than two have more."""
    scored = [row for row in rows if row[name] is not None]
    large = [row for row in scored if row["n"] >= LEAST_ITEMS]
    ranked = sorted(large if len(large) > 1 else scored, key=lambda row: row[name])
    return [ranked[0], ranked[-1]] if ranked else []


def _single_table(rows: Sequence[Row], title: str) -> Table:
    columns: Mapping[str, Callable[[tuple[Row, str, str]], str | Field]] = {
        "attribute": lambda end: end[1],
        "": lambda end: Field(text=end[2], style="bad" if end[1] else "good"),
        "bucket": lambda end: _bucket(end[0]),
        metric_name(rows[0]["metric"]): lambda end: percent(end[0]["value"]),
        "95 % interval": lambda end: _bracketed(end[0]["ci"]),
        "n": lambda end: str(end[0]["n"]),
    }
    ends = [
        (row, "" if at else name, word)
        for name, buckets in _by_attribute(rows).items()
        for at, (word, row) in enumerate(zip(("worst", "best"), bucket_ends(buckets, "value"), strict=False))
    ]
    return table_of(title, ends, columns, words=["", "bucket"], untitled=True, folding=True)


def _pair_table(rows: Sequence[Row], title: str) -> Table:
    columns: Mapping[str, Callable[[tuple[Row, str]], str | Field]] = {
        "attribute": lambda end: end[1],
        "bucket": lambda end: _bucket(end[0]),
        "first": lambda end: percent(end[0]["values"][0]),
        "second": lambda end: percent(end[0]["values"][1]),
        "diff.": lambda end: _starred(end[0]),
        "95 % interval": lambda end: _bracketed(end[0]["ci"]),
        "q": lambda end: BLANK if end[0]["q"] is None else f"{end[0]['q']:.3f}",
        "n": lambda end: str(end[0]["n"]),
    }
    ends = [
        (row, "" if at else name)
        for name, buckets in _by_attribute(rows).items()
        for at, row in enumerate(bucket_ends(buckets, "difference"))
    ]
    return table_of(title, ends, columns, words=["bucket"], untitled=True, folding=True)


def _starred(row: Row) -> Field:
    text = f"{100 * row['difference']:+.1f}"
    if not row["significant"]:
        return Field(text=text)
    return Field(text=f"{text}*", style="bad" if row["difference"] < 0 else "good")


def _bucket(row: Row) -> str:
    edges = edges_text(row)
    return f"{row['bucket']} {edges}" if edges else str(row["bucket"])


def _bracketed(bounds: Sequence[float] | None) -> str:
    return BLANK if bounds is None else f"[{percent(bounds[0])}, {percent(bounds[1])}]"


def _data_tables(rows: Sequence[Row]) -> Iterator[Block]:
    for task, task_rows in grouped((row["task"], row) for row in rows).items():
        lines = []
        for name, attribute_rows in _by_attribute(sorted(task_rows, key=itemgetter("attribute"))).items():
            for index, row in enumerate(attribute_rows):
                numbers, frequent = [BLANK] * 4, ""
                if row["quartiles"] is not None:
                    numbers = [f"{value:.3g}" for value in (row["mean"], *row["quartiles"])]
                else:
                    pairs = (f"{str(value)[:12]} {count}" for value, count in row["histogram"][:2])
                    frequent = ", ".join(pairs)
                lines.append(("" if index else name, row["language"], str(row["n"]), *numbers, frequent))
        heads = ("attribute", "", "n", "mean", "25 %", "50 %", "75 %", "most frequent")
        yield make_table(task, heads, lines, words={0}, folding=True)


def page_blocks(names: Sequence[str], weakness: Weakness) -> list[Block]:
    """Return a diagnosis for a page, the largest shortfalls first; where there is none, the sentence that says why.

    Args:
        names: What the report calls the runs of the diagnosis.
        weakness: Their diagnosis.
    """
    folds: list[Block] = []
    for index, (name, rows) in enumerate(zip(names, weakness.runs, strict=True)):
        folds += _run_fold(name, _first_seed(rows), weakness, is_first=index == 0)
    folds += _pairs_fold(_whole(_first_seed(weakness.pairs), "pairwise"), weakness)
    head = Note(legend("diagnosis on a page", least=LEAST_ITEMS), "note")
    blocks: list[Block] = [head, *folds] if folds else [Note("There is nothing to diagnose.")]
    if weakness.notes:
        count = f"{len(weakness.notes):,} {'note' if len(weakness.notes) == 1 else 'notes'}"
        blocks.append(Fold(title=f"What was skipped: {count}", blocks=[Notes(weakness.notes)]))
    return blocks


def _first_seed(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the first system of every task, view, protocol and method: of several seeds the first."""
    first: dict[tuple[str, ...], object] = {}
    selected = []
    for row in rows:
        key = (row["task"], str(row["view"]), row["protocol"], row["method"])
        systems = tuple(systems_of(row))
        if first.setdefault(key, systems) == systems:
            selected.append(row)
    return selected


def _whole(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows over all languages, and those of one language for tasks that have only one."""
    kind_rows = [row for row in rows if row["kind"] == kind]
    joined = {(row["task"], str(row["view"])) for row in kind_rows if row["language"] is None}
    return [
        row for row in kind_rows if row["language"] is None or (row["task"], str(row["view"])) not in joined
    ]


def _tested(rows: Sequence[Row], weakness: Weakness) -> list[DiagnosedBucket]:
    """Return the tested differences, the lowest first.

    Of an attribute with two values only the worse one is compared with its rest: the other is the same difference.
    """
    tested: list[DiagnosedBucket] = []
    for buckets in weakness.bucket_groups(rows):
        testable = [
            bucket for bucket in buckets if bucket.row["q"] is not None and bucket.interval is not None
        ]
        if len(buckets) == 2 and buckets[0].row["kind"] == "single":
            testable = sorted(testable, key=attrgetter("difference"))[:1]
        tested += testable if buckets[0].row["attribute"] not in OF_LANGUAGES else []
    return sorted(tested, key=attrgetter("difference"))


def _condition(system: str) -> str:
    """Return the conditions that distinguish a system from others of its model: ``(frozen)``; else its short name."""
    _, opened, conditions = system.partition(" (")
    return f"({conditions}" if opened else system


def _run_fold(name: str, rows: Sequence[Row], weakness: Weakness, *, is_first: bool) -> list[Block]:
    """Return the blocks on the buckets of one run; labels and confidence of the first run only."""
    bucket_rows = _whole(rows, "single")
    tested = _tested(bucket_rows, weakness)
    significant = [bucket for bucket in tested if bucket.row["significant"]]
    inside: list[Block] = []
    if bucket_rows:
        drawn, chart = _forest(
            significant, f"{name}: buckets against the rest, points", ("weaker", "stronger")
        )
        texts = _sentences([bucket for bucket in significant if bucket.difference < 0])
        none = Note("No bucket is significantly below the rest.")
        inside = [Notes(texts, "findings") if texts else none, *chart, *_rest_of(tested, drawn)]
        if untested := sum(row["q"] is None for row in bucket_rows if row["attribute"] not in OF_LANGUAGES):
            inside.append(Note(f"{untested:,} buckets have too few items to be tested.", "soft"))
    if labels := list(_labels(rows) if is_first else ()):
        inside.append(Fold(title="Which labels are confused, and how sure answers are", blocks=labels))
    soft = _counts(significant, tested) if bucket_rows else ""
    return [Fold(title=name, soft=soft, blocks=inside, is_open=is_first, heading=True)] if inside else []


def _counts(significant: Sequence[DiagnosedBucket], tested: Sequence[DiagnosedBucket]) -> str:
    return f"{len(significant):,} of {len(tested):,} tested differences are significant"


def _sentences(shortfalls: Sequence[DiagnosedBucket]) -> list[str]:
    """Return the largest shortfalls in words, a few of each task at most."""
    by_task = grouped((bucket.row["task"], bucket.shortfall(bucket.label)) for bucket in shortfalls)
    return [text for texts in by_task.values() for text in texts[:OF_A_TASK]]


def _forest(
    significant: Sequence[DiagnosedBucket], title: str, sides: tuple[str, str]
) -> tuple[list[DiagnosedBucket], list[Block]]:
    """Return the differences furthest from 0, the lowest first, and their chart."""
    furthest = sorted(significant, key=lambda bucket: -abs(bucket.difference))[:DRAWN]
    drawn, rows = sorted(furthest, key=attrgetter("difference")), []
    for bucket in drawn:
        low, high = (100 * end for end in bucket.interval or ())
        value, count = 100 * bucket.difference, bucket.row["n"]
        rows.append(ForestRow(label=bucket.label, value=value, low=low, high=high, n=count))
    more = f" (the {len(drawn)} largest of {len(significant):,})" if len(significant) > len(drawn) else ""
    chart = ForestChart(title=f"{title}{more}", rows=tuple(rows), left=sides[0], right=sides[1])
    return drawn, [Charts(charts=(chart,))] if rows else []


def _rest_of(
    tested: Sequence[DiagnosedBucket], drawn: Sequence[DiagnosedBucket], command: str = OF_RUN
) -> list[Block]:
    """Return the largest of the differences that the chart does not show, the significant ones first."""
    undrawn = [bucket for bucket in tested if bucket not in drawn]
    if not undrawn:
        return []
    significant = sum(bucket.row["significant"] for bucket in undrawn)
    title = f"{len(undrawn) - significant:,} tested differences are not significant"
    if significant:
        title = f"{significant:,} smaller significant differences, and {len(undrawn) - significant:,} that are not"
    undrawn.sort(key=lambda bucket: (not bucket.row["significant"], -abs(bucket.difference)))
    columns: dict[str, Callable[[DiagnosedBucket], str]] = {
        "bucket": lambda bucket: bucket.label,
        "difference": lambda bucket: signed(bucket.difference),
        "95 % interval": lambda bucket: interval_text(bucket.interval),
        "q": lambda bucket: p_text(bucket.row["q"]),
        "n": lambda bucket: f"{bucket.row['n']:,}",
    }
    notes = _more(undrawn, FURTHER, command)
    return [
        Fold(title=title, blocks=[table_of(title, undrawn[:FURTHER], columns, untitled=True, notes=notes)])
    ]


def _more(found: Sequence[object], shown: int, command: str = OF_RUN) -> tuple[str, ...]:
    """Return a sentence that counts what is not shown and says what prints it."""
    count = len(found) - shown
    return (f"{count:,} more: {command}.",) if count > 0 else ()


def _pairs_fold(rows: Sequence[Row], weakness: Weakness) -> list[Block]:
    """Return in which buckets two runs differ, the largest differences first."""
    tested = _tested(rows, weakness)
    significant = [bucket for bucket in tested if bucket.row["significant"]]
    if not tested:
        return []
    charted: list[DiagnosedBucket] = []
    inside: list[Block] = [] if significant else [Note("The runs do not differ significantly in any bucket.")]
    pairs = grouped((tuple(bucket.row["systems"]), bucket) for bucket in significant)
    for (first, second), buckets in pairs.items():
        sides = (f"{second} better", f"{first} better")
        drawn, chart = _forest(buckets, f"{first} minus {second} by bucket, points", sides)
        charted += drawn
        inside += chart
    blocks = [*inside, *_rest_of(tested, charted, OF_PAIR)]
    soft = _counts(significant, tested)
    return [Fold(title="Pairs of runs in buckets", soft=soft, blocks=blocks, heading=True)]


def _labels(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield confusion and calibration of every system and task, over all languages."""
    groups = grouped(
        ((row["kind"], f"{row['task']} {conditions_of(row['view'])}".strip(), row["system"]), row)
        for row in rows
        if row["kind"] in {"confusion", "calibration"}
    )
    for (kind, task, system), group in groups.items():
        blocks = [_confusion(group, task)] if kind == "confusion" else _calibration(group, task)
        yield Fold(title=f"{task}, {system}: {kind}", blocks=blocks)


def _confusion(rows: Sequence[Row], task: str) -> Table:
    """Return the shares of labels as a matrix or, of many labels, the pairs that are confused most."""
    counts: Counter[tuple[str, str | None]] = Counter()
    totals: Counter[str] = Counter()
    for row in rows:
        counts[row["gold"], row["predicted"]] += row["n"]
        totals[row["gold"]] += row["n"]
    if len(totals) > MATRIX:
        return _confused(counts, totals, task)
    predicted_labels = list(dict.fromkeys(label for _, label in counts))
    lines: list[tuple[str | Field, ...]] = []
    for label, total in totals.items():
        shares = [counts[label, predicted] / total if total else None for predicted in predicted_labels]
        lines.append((f"{label} ({total:,})", *map(_share, shares)))
    return Table(
        title=f"{task}: of the items (or tokens) of each gold label, the share that got each label, in percent",
        corner="gold", heads=tuple(map(_label, predicted_labels)), rows=rows_of(lines), style="heat", ramp="share",
    )  # fmt: skip


def _confused(counts: Mapping[tuple[str, str | None], int], totals: Mapping[str, int], task: str) -> Table:
    wrong = [(gold, predicted, count) for (gold, predicted), count in counts.items() if count]
    wrong = [pair for pair in wrong if pair[0] != pair[1]]
    wrong.sort(key=lambda pair: (-pair[2], pair[0], _label(pair[1])))
    rows = [
        (gold, _label(predicted), f"{count:,} of {totals[gold]:,}", percent(count / totals[gold]))
        for gold, predicted, count in wrong[:CONFUSED]
    ]
    heads = ("gold", "given", "items (or tokens)", "percent of the label")
    title = f"{task}: the labels that are confused most often"
    return make_table(title, heads, rows, words={0}, notes=_more(wrong, CONFUSED))


def _label(label: str | None) -> str:
    return "unreadable" if label is None else label


def _share(share: float | None) -> Field:
    return Field(text=percent(share), shade=heat_class(share, *SCALES["share"], ramp="share"))


def _calibration(rows: Sequence[Row], task: str) -> list[Block]:
    bins = grouped((row["bin"], row) for row in rows if row["n"])

    def total(rows: Sequence[Row], name: str) -> float:
        return sum((row["n"] * row[name] for row in rows), 0.0)

    sums = [
        (total(own, "confidence"), total(own, "accuracy"), sum(row["n"] for row in own))
        for _, own in sorted(bins.items())
    ]
    points = tuple((100 * sure / n, 100 * right / n) for sure, right, n in sums)
    count = sum(n for *_, n in sums)
    error = sum(abs(sure - right) for sure, right, _ in sums) / count if count else None
    text = f"Expected calibration error {percent(error)} points"
    chart = CurveChart(
        title=f"{task}: confidence against accuracy, all languages",
        lines=(
            Line(label="equal", points=((0.0, 0.0), (100.0, 100.0)), stroke="dashed", is_guide=True),
            Line(label="accuracy", points=points),
        ),
        x_label="confidence, percent",
        y_label="accuracy, percent",
        x_digits=1,
        summary=f"{text} over {count:,} items",
    )
    errors = {str(row["language"]): row["ece"] for row in rows if row["ece"] is not None}
    worst = sorted(errors, key=lambda code: (-errors[code], code))
    largest = ", ".join(f"{code} {percent(errors[code])}" for code in worst[:UNSURE])
    return [Charts(charts=(chart,)), *([Note(f"{text}; largest in {largest}.", "note")] if worst else [])]
