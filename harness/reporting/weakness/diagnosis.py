"""The diagnosis of runs as rows, tables and charts: worst and best buckets, confusion, calibration, and the data.

The rows are those of each run alone, and of each further one against the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from harness.analysis.buckets import LEAST_ITEMS
from harness.analysis.diagnosis import Diagnosis, DiagnosisOptions, diagnose
from harness.errors import HarnessError
from harness.metrics.metric import metric_name
from harness.registry.registry import Registry
from harness.reporting.blocks.chart import CurveChart, ForestChart, ForestRow, Line
from harness.reporting.blocks.model import BLANK, Block, Charts, Field, Fold, Note, Notes, Table, rows_of
from harness.reporting.blocks.number import (
    SCALES,
    heat_class,
    interval_text,
    level_text,
    p_text,
    percent,
    signed,
)
from harness.reporting.legends import legend
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

    def title(self, attribute: str) -> str:
        """Return the description of an attribute; its name where no description exists."""
        return self.titles.get(attribute) or attribute

    def phrase(self, row: Row, buckets: Sequence[Row]) -> str:
        """Return the content of a bucket in words: ``longest premises (13, 40]``, ``tag of the span: PROPN``.

        Args:
            row: The bucket.
            buckets: All buckets of its attribute, in their order.
        """
        attribute, index = row["attribute"], next(at for at, bucket in enumerate(buckets) if bucket is row)
        edges = edges_text(row)
        ends = self.ends.get(attribute)
        if ends is not None and index in {0, len(buckets) - 1}:
            words = ends[0] if index == 0 else ends[1]
            return f"{_named_inputs(words, self.inputs.get(row['task'], ()))} {edges}".rstrip()
        if edges:
            return f"{self.title(attribute)} in {edges}"
        if ends is not None:
            return f"{self.title(attribute)}, part {index + 1} of {len(buckets)} from the lowest"
        return f"{self.title(attribute)}: {row['bucket']}"


def _named_inputs(words: str, names: Sequence[str]) -> str:
    """Return the words with a task's own names of its two texts."""
    for ordinal, name in zip(("first", "second"), names, strict=False):
        words = words.replace(f"{ordinal} text", name)
    return words


def find_weakness(runs: Sequence[Run], registry: Registry) -> Weakness:
    """Return the diagnosis of runs; what cannot be diagnosed has a sentence in its notes."""
    notes: list[str] = []

    def rows(*own: Run) -> list[dict[str, Any]]:
        return _rows(own, registry, notes)

    table = registry.features
    features = [table.get(name) for name in table.names if name not in table.conflicts]
    specs = {task: spec for run in reversed(runs) for task, spec in run.manifest.specs.items()}
    return Weakness(
        runs=tuple(tuple(rows(run)) for run in runs),
        pairs=tuple(row for run in runs[1:] for row in rows(runs[0], run)),
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


def by_attribute(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return rows of buckets by task with its view, system or systems, and attribute; in their order."""

    def key(row: Row) -> tuple[str, str, str]:
        view = ", ".join(f"{name}={value}" for name, value in row["view"].items())
        system = row["system"] if "system" in row else " / ".join(row["systems"])
        return f"{row['task']} ({view})" if view else row["task"], system, row["attribute"]

    return grouped((key(row), row) for row in rows)


def interval_of(row: Row) -> str:
    """Return the edges of a bucket with both ends, ``(2, 5]``, or its name."""
    if row["low"] is None or row["high"] is None:
        return str(row["bucket"])
    return edges_text(row)


def edges_text(row: Row) -> str:
    """Return the edges of a bucket: ``(2, 5]``, ``[1, 2]``, ``2``, ``> 13``; empty where there are none."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "" if low is high else f"<= {high:.3g}" if low is None else f"> {low:.3g}"
    if low == high:
        return f"{low:.3g}"
    return f"{'[' if row.get('low_closed') else '('}{low:.3g}, {high:.3g}]"


def shortfall_text(label: str, row: Row) -> str:
    """Return a bucket that is below the rest as a sentence."""
    low, high = row["difference_ci"]
    return (
        f"{label}: {abs(row['difference']) * 100:.1f} points below the rest ({interval_text((-high, -low))}, "
        f"{level_text('q', row['q'])}, {things_of(row)})."
    )


def things_of(row: Row) -> str:
    """Return the number of items or spans in a bucket: ``1 item``, ``214 spans``."""
    noun = "span" if row.get("level") == "span" else "item"
    return f"{row['n']:,} {noun}{'' if row['n'] == 1 else 's'}"


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
    names = row.get("systems") or [row["system"]]
    return (row["task"], str(row["view"]), row["protocol"], row["method"], *names)


def _task(rows: Sequence[Row], *, single: bool, each_language: bool) -> Iterator[Block]:
    first = rows[0]
    view = ", ".join(f"{name}={value}" for name, value in first["view"].items())
    task = f"{first['task']} ({view})" if view else first["task"]
    languages = list(dict.fromkeys(row["language"] for row in rows))
    scopes = [None] if None in languages and not each_language else languages
    yield Note(f"{task} ({first['protocol']}, {first['method']})", "heading")
    yield Notes([first["system"]] if single else first["systems"])
    for language in scopes:
        language_rows = [row for row in rows if row["language"] == language]
        codes = " ".join(code for code in languages if code is not None)
        title = f"all of {codes}" if language is None else language
        yield Note(f"  {title}")
        yield _single_table(language_rows, title) if single else _pair_table(language_rows, title)
    if scopes == [None]:
        yield Note("  --languages shows languages by themselves.", "note")
    yield Note("")


def _by_attribute(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    return ((name, list(group)) for name, group in groupby(rows, key=lambda row: str(row["attribute"])))


def bucket_ends(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the lowest and the highest bucket, those of few items only where fewer than two have more."""
    scored = [row for row in rows if row[name] is not None]
    large = [row for row in scored if row["n"] >= LEAST_ITEMS]
    ranked = sorted(large if len(large) > 1 else scored, key=lambda row: row[name])
    return [ranked[0], ranked[-1]] if ranked else []


def _single_table(rows: Sequence[Row], title: str) -> Table:
    lines: list[tuple[str | Field, ...]] = [
        (
            name if word == "worst" else "",
            Field(text=word, style="bad" if word == "worst" else "good"),
            _bucket(row),
            percent(row["value"]),
            _bracketed(row["ci"]),
            str(row["n"]),
        )
        for name, buckets in _by_attribute(rows)
        for word, row in zip(("worst", "best"), bucket_ends(buckets, "value"), strict=False)
    ]
    return Table(
        title=title, untitled=True, corner="attribute", folding=True, words=frozenset({0, 1}),
        heads=("", "bucket", metric_name(rows[0]["metric"]), "95 % interval", "n"), rows=rows_of(lines),
    )  # fmt: skip


def _pair_table(rows: Sequence[Row], title: str) -> Table:
    lines: list[tuple[str | Field, ...]] = []
    for name, buckets in _by_attribute(rows):
        for index, row in enumerate(bucket_ends(buckets, "difference")):
            star = "*" if row["significant"] else ""
            difference = Field(
                text=f"{100 * row['difference']:+.1f}{star}",
                style="" if not star else "bad" if row["difference"] < 0 else "good",
            )
            values = map(percent, row["values"])
            lines.append(
                (name if not index else "", _bucket(row), *values, difference, _bracketed(row["ci"]),
                 BLANK if row["q"] is None else f"{row['q']:.3f}", str(row["n"]))
            )  # fmt: skip
    return Table(
        title=title, untitled=True, corner="attribute", folding=True, words=frozenset({0}),
        heads=("bucket", "first", "second", "diff.", "95 % interval", "q", "n"), rows=rows_of(lines),
    )  # fmt: skip


def _bucket(row: Row) -> str:
    edges = edges_text(row)
    return f"{row['bucket']} {edges}" if edges else str(row["bucket"])


def _bracketed(bounds: Sequence[float] | None) -> str:
    return BLANK if bounds is None else f"[{percent(bounds[0])}, {percent(bounds[1])}]"


def _data_tables(rows: Sequence[Row]) -> Iterator[Block]:
    for task, group in groupby(rows, key=lambda row: str(row["task"])):
        lines = []
        for name, attribute_rows in _by_attribute(sorted(group, key=lambda row: str(row["attribute"]))):
            for index, row in enumerate(attribute_rows):
                numbers, frequent = [BLANK] * 4, ""
                if row["quartiles"] is not None:
                    numbers = [f"{value:.3g}" for value in (row["mean"], *row["quartiles"])]
                else:
                    frequent = ", ".join(
                        f"{str(value)[:12]} {count}" for value, count in row["histogram"][:2]
                    )
                lines.append(("" if index else name, row["language"], str(row["n"]), *numbers, frequent))
        heads = ("", "n", "mean", "25 %", "50 %", "75 %", "most frequent")
        yield Table(
            title=task, corner="attribute", heads=heads, words=frozenset({0}), folding=True,
            rows=rows_of(lines),
        )  # fmt: skip


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
        system = row["system"] if "system" in row else tuple(row["systems"])
        if first.setdefault(key, system) == system:
            selected.append(row)
    return selected


def _whole(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows over all languages, and those of one language for tasks that have only one."""
    kind_rows = [row for row in rows if row["kind"] == kind]
    joined = {(row["task"], str(row["view"])) for row in kind_rows if row["language"] is None}
    return [
        row for row in kind_rows if row["language"] is None or (row["task"], str(row["view"])) not in joined
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """A difference that was tested: a bucket against the rest, or two runs in a bucket."""

    label: str
    row: Row
    interval: Sequence[float]

    @property
    def points(self) -> tuple[float, float, float]:
        """The difference and the ends of its interval, in points."""
        low, high = self.interval
        return 100 * self.row["difference"], 100 * low, 100 * high


def _tested(rows: Sequence[Row], weakness: Weakness, interval: str) -> list[_Tested]:
    """Return the tested differences, the lowest first.

    Of an attribute with two values only the worse one is compared with its rest: the other is the same difference.
    """
    differences = []
    systems: dict[str, set[str]] = {}
    for task, system, _ in by_attribute(rows):
        systems.setdefault(task, set()).add(system)
    for (task, system, attribute), buckets in by_attribute(rows).items():
        if attribute in OF_LANGUAGES:
            continue
        testable = [row for row in buckets if row["q"] is not None and row[interval] is not None]
        if interval == "difference_ci" and len(buckets) == 2:
            testable = sorted(testable, key=_difference)[:1]
        name = f"{task} {_condition(system)}" if len(systems[task]) > 1 else task
        differences += [
            _Tested(label=f"{name}: {weakness.phrase(row, buckets)}", row=row, interval=row[interval])
            for row in testable
        ]
    return sorted(differences, key=lambda one: _difference(one.row))


def _condition(system: str) -> str:
    """Return the conditions that distinguish a system from others of its model: ``(frozen)``; else its short name."""
    _, opened, conditions = system.partition(" (")
    return f"({conditions}" if opened else system


def _difference(row: Row) -> float:
    return float(row["difference"])


def _run_fold(name: str, rows: Sequence[Row], weakness: Weakness, *, is_first: bool) -> list[Block]:
    """Return the blocks on the buckets of one run; labels and confidence of the first run only."""
    bucket_rows = _whole(rows, "single")
    tested = _tested(bucket_rows, weakness, "difference_ci")
    significant = [contrast for contrast in tested if contrast.row["significant"]]
    inside: list[Block] = []
    if bucket_rows:
        drawn = _furthest(significant)
        inside = [
            Notes(_sentences(significant), "findings")
            if any(contrast.row["difference"] < 0 for contrast in significant)
            else Note("No bucket is significantly below the rest."),
            *_forest(
                drawn, len(significant), f"{name}: buckets against the rest, points", ("weaker", "stronger")
            ),
            *_rest_of(tested, drawn),
        ]
        if untested := sum(row["q"] is None for row in bucket_rows if row["attribute"] not in OF_LANGUAGES):
            inside.append(Note(f"{untested:,} buckets have too few items to be tested.", "soft"))
    if labels := list(_labels(rows) if is_first else ()):
        inside.append(Fold(title="Which labels are confused, and how sure answers are", blocks=labels))
    counts = f"{len(significant):,} of {len(tested):,} tested differences are significant"
    soft = counts if bucket_rows else ""
    return [Fold(title=name, soft=soft, blocks=inside, is_open=is_first, heading=True)] if inside else []


def _sentences(significant: Sequence[_Tested]) -> list[str]:
    """Return the largest shortfalls in words, a few of each task at most."""
    by_task: dict[str, list[str]] = {}
    for contrast in significant:
        sentences = by_task.setdefault(contrast.row["task"], [])
        if contrast.row["difference"] < 0 and len(sentences) < OF_A_TASK:
            sentences.append(shortfall_text(contrast.label, contrast.row))
    return [text for texts in by_task.values() for text in texts]


def _furthest(kept: Sequence[_Tested]) -> list[_Tested]:
    """Return the differences that a chart shows, the lowest first: those that are furthest from 0."""
    furthest = sorted(kept, key=lambda one: -abs(_difference(one.row)))[:DRAWN]
    return sorted(furthest, key=lambda one: _difference(one.row))


def _forest(drawn: Sequence[_Tested], count: int, title: str, sides: tuple[str, str]) -> list[Block]:
    """Return significant differences as a chart that says how many of them it shows."""
    rows = []
    for contrast in drawn:
        value, low, high = contrast.points
        rows.append(ForestRow(label=contrast.label, value=value, low=low, high=high, n=contrast.row["n"]))
    more = f" (the {len(drawn)} largest of {count:,})" if count > len(drawn) else ""
    chart = ForestChart(title=f"{title}{more}", rows=tuple(rows), left=sides[0], right=sides[1])
    return [Charts(charts=(chart,))] if rows else []


def _rest_of(tested: Sequence[_Tested], drawn: Sequence[_Tested], command: str = OF_RUN) -> list[Block]:
    """Return the largest of the differences that the chart does not show, the significant ones first."""
    undrawn = [contrast for contrast in tested if contrast not in drawn]
    if not undrawn:
        return []
    significant = sum(contrast.row["significant"] for contrast in undrawn)
    title = f"{len(undrawn) - significant:,} tested differences are not significant"
    if significant:
        title = f"{significant:,} smaller significant differences, and {len(undrawn) - significant:,} that are not"
    undrawn.sort(key=lambda one: (not one.row["significant"], -abs(_difference(one.row))))
    rows = [
        (contrast.label, signed(contrast.row["difference"]), interval_text(contrast.interval),
         p_text(contrast.row["q"]), f"{contrast.row['n']:,}")
        for contrast in undrawn[:FURTHER]
    ]  # fmt: skip
    heads = ("difference", "95 % interval", "q", "n")
    table = Table(
        title=title, untitled=True, corner="bucket", heads=heads, rows=rows_of(rows),
        notes=_more(undrawn, FURTHER, command),
    )  # fmt: skip
    return [Fold(title=title, blocks=[table])]


def _more(found: Sequence[object], shown: int, command: str = OF_RUN) -> tuple[str, ...]:
    """Return a sentence that counts what is not shown and says what prints it."""
    count = len(found) - shown
    return (f"{count:,} more: {command}.",) if count > 0 else ()


def _pairs_fold(rows: Sequence[Row], weakness: Weakness) -> list[Block]:
    """Return in which buckets two runs differ, the largest differences first."""
    tested = _tested(rows, weakness, "ci")
    significant = [contrast for contrast in tested if contrast.row["significant"]]
    if not tested:
        return []
    charted: list[_Tested] = []
    inside: list[Block] = [] if significant else [Note("The runs do not differ significantly in any bucket.")]
    for first, second in dict.fromkeys(tuple(contrast.row["systems"]) for contrast in significant):
        pair_contrasts = [
            contrast for contrast in significant if tuple(contrast.row["systems"]) == (first, second)
        ]
        sides = (f"{second} better", f"{first} better")
        drawn = _furthest(pair_contrasts)
        charted += drawn
        inside += _forest(drawn, len(pair_contrasts), f"{first} minus {second} by bucket, points", sides)
    counts = f"{len(significant):,} of {len(tested):,} tested differences are significant"
    blocks = [*inside, *_rest_of(tested, charted, OF_PAIR)]
    return [Fold(title="Pairs of runs in buckets", soft=counts, blocks=blocks, heading=True)]


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
    wrong = [
        (count, gold, predicted) for (gold, predicted), count in counts.items() if count and predicted != gold
    ]
    wrong.sort(key=lambda one: (-one[0], one[1], _label(one[2])))
    rows = [
        (gold, _label(predicted), f"{count:,} of {totals[gold]:,}", percent(count / totals[gold]))
        for count, gold, predicted in wrong[:CONFUSED]
    ]
    return Table(
        title=f"{task}: the labels that are confused most often", corner="gold", rows=rows_of(rows),
        heads=("given", "items (or tokens)", "percent of the label"), words=frozenset({0}),
        notes=_more(wrong, CONFUSED),
    )  # fmt: skip


def _label(label: str | None) -> str:
    return "unreadable" if label is None else label


def _share(share: float | None) -> Field:
    return Field(text=percent(share), shade=heat_class(share, *SCALES["share"], ramp="share"))


def _calibration(rows: Sequence[Row], task: str) -> list[Block]:
    bins: dict[int, list[float]] = {}
    for row in rows:
        if row["n"]:
            sums = bins.setdefault(row["bin"], [0.0, 0.0, 0.0])
            for index, amount in enumerate((row["confidence"], row["accuracy"], 1.0)):
                sums[index] += row["n"] * amount
    points = tuple((100 * sure / n, 100 * right / n) for _, (sure, right, n) in sorted(bins.items()))
    total = sum(n for *_, n in bins.values())
    error = sum(abs(sure - right) for sure, right, _ in bins.values()) / total if total else None
    chart = CurveChart(
        title=f"{task}: confidence against accuracy, all languages",
        lines=(
            Line(label="equal", points=((0.0, 0.0), (100.0, 100.0)), stroke="dashed", is_guide=True),
            Line(label="accuracy", points=points),
        ),
        x_label="confidence, percent",
        y_label="accuracy, percent",
        x_digits=1,
        summary=f"Expected calibration error {percent(error)} points over {total:,.0f} items",
    )
    errors = {str(row["language"]): row["ece"] for row in rows if row["ece"] is not None}
    worst = sorted(errors, key=lambda code: (-errors[code], code))
    largest = ", ".join(f"{code} {percent(errors[code])}" for code in worst[:UNSURE])
    note = Note(f"Expected calibration error {percent(error)} points; largest in {largest}.", "note")
    return [Charts(charts=(chart,)), *([note] if worst else [])]
