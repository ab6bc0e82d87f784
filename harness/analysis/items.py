"""The items of a cell as columns, and their attributes: the values of features, in buckets by language or over all."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.analysis.buckets import Block, BucketMetric, Observations, Split, token_metric
from harness.data.features import Bucket, Feature, FeatureContext, Items, Spans, Values
from harness.errors import DataError, HarnessError, UsageError
from harness.languages.table import Language, known_languages, recorded_name
from harness.metrics.chunk import corpus_chunks
from harness.statistics import draw_codes, seed_of
from harness.statistics.interval import Booleans, Floats, Integers
from harness.storage.records import READ_TOGETHER, read_batches
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run
from harness.table import grouped

_COLUMNS: Final = ("id", "inputs_digest", "prediction", "reference", "scores", "cluster", "tags", "inputs")
_JSON: Final = {"prediction", "reference", "scores", "tags", "inputs"}
BINS: Final = 20
EdgeSource = Callable[[Feature, str], Sequence[Bucket] | None]
"""Feature and language -> its given edges; None for edges by equal counts."""
BUCKET_NAMES: Final = ("XS", "S", "L", "XL")
OTHER_BUCKET: Final = "other"
"""The bucket of the values that are not among the most frequent ones."""
_MOST_VALUES: Final = 15
_NOWHERE: Final = -1
"""The code of an item that lies in no bucket."""


def read_items(
    run: Run,
    cell: CellResult,
    task: TaskSummary,
    *,
    inputs: bool = True,
    most: int | None = None,
) -> Items:
    """Return the labelled items of a finished cell.

    Args:
        run: The run.
        cell: One of its cells.
        task: What its manifest says of the task.
        inputs: Whether `Items.fields` are needed; else they are empty, which saves half of the memory.
        most: Items to return at most. They are drawn by a hash of their ids, so runs and languages that have the same
            ids get the same items. None returns all.

    Raises:
        UsageError: Where the run folder holds no records of this cell, or those of a version that kept no inputs.
        DataError: Where they are broken.
    """
    columns = _columns(run, cell, inputs=inputs, most=most)
    full = run.manifest.specs.get(cell.task, {})
    return Items(
        task=cell.task,
        kind=task.kind,
        language=_language(cell.language, task),
        labels=tuple(task.labels),
        input_names=tuple(full.get("inputs") or ()),
        ids=columns["id"],
        digests=columns["inputs_digest"],
        fields=columns["inputs"],
        predictions=columns["prediction"],
        references=columns["reference"],
        clusters=columns["cluster"],
        tags=columns["tags"],
        scores=columns["scores"],
    )


def _language(code: str, task: TaskSummary) -> Language:
    """Return a language of the table or, for one that a plugin brought, what the run records of it."""
    table = known_languages()
    recorded = task.languages.get(code)
    if code in table.listed or (code in table and not recorded):
        return table.get(code)
    family, script = recorded or ("", "")
    return Language(code=code, name=recorded_name(code, [task.names]), script=script, family=family)


def _columns(run: Run, cell: CellResult, *, inputs: bool, most: int | None) -> dict[str, list[Any]]:
    path = run.records_of(cell)
    if not path.is_file():
        raise UsageError(
            f"The run {str(run.path)!r} has no records of {cell.task!r} in {cell.language!r}: "
            f"{str(path)!r} is not there.",
            hint="A diagnosis needs the folder 'records' that 'harness eval' wrote next to results.json.",
        )
    required = [name for name in _COLUMNS if inputs or name != "inputs"]
    mask = _row_mask(path, most)
    columns: dict[str, list[Any]] = {}
    # A file of one batch is opened once; of a large one, one column at a time is held.
    for names in [required] if len(mask) <= READ_TOGETHER else [[name] for name in required]:
        columns |= _read(path, names, mask)
    if inputs and len(columns["inputs"]) < len(columns["id"]):
        raise UsageError(
            f"The run {str(run.path)!r} is of an older version of the harness, whose records do not keep "
            "what was asked, so that nothing can be diagnosed.",
            hint="Evaluate the model again.",
        )
    return columns if inputs else {**columns, "inputs": [{} for _ in columns["id"]]}


def _row_mask(path: Path, most: int | None) -> Booleans:
    """Return which rows of a file are labelled and, of more than `most`, drawn."""
    labelled: list[bool] = []
    hashes: list[int] = []
    for batch in read_batches(path, ("id", "reference")):
        rows = batch.to_pydict()
        labelled += [text not in (None, "null") for text in rows["reference"]]
        hashes += [zlib.crc32(str(identifier).encode("utf-8", "surrogatepass")) for identifier in rows["id"]]
    mask = np.array(labelled, dtype=np.bool_)
    if most is not None and mask.sum() > most:
        indices = np.flatnonzero(mask)
        order = np.argsort(np.array(hashes, dtype=np.uint32)[indices], kind="stable")
        mask[indices[order[most:]]] = False
    return mask


def _read(path: Path, names: Sequence[str], mask: Booleans) -> dict[str, list[Any]]:
    """Return the kept rows of columns, none of a column that is missing; only they become Python objects."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in names}
    start = 0
    for batch in read_batches(path, names):
        # `pa.array` imports pandas.
        bits = pa.py_buffer(np.packbits(mask[start : start + batch.num_rows], bitorder="little"))
        rows = batch.filter(pa.Array.from_buffers(pa.bool_(), batch.num_rows, [None, bits]))
        for name in rows.schema.names:
            columns[name] += rows.column(name).to_pylist()
        start += batch.num_rows
    for name in _JSON.intersection(names):
        # One text is parsed several times faster than one for every item, and equal strings in it are one object.
        columns[name] = json.loads(f"[{','.join(text or 'null' for text in columns[name])}]")
    return columns


def spans_of(items: Items, tagged: Sequence[Any], side: Any) -> Spans | None:
    """Return the spans of the predictions or references of a tagging task; None for other kinds.

    Where tags are of the BIO scheme, these are the chunks of `harness.metrics.chunk`; bare tags (parts of speech)
    make every token a span of one; marked text has its spans in characters.
    """
    if items.kind == "text_marking":
        marked = [value["spans"] if isinstance(value, Mapping) else value for value in tagged]
        flat = [span for spans in marked for span in spans]
        bounds = np.array([span[:2] for span in flat], dtype=np.int64).reshape(-1, 2)
        owners = np.repeat(np.arange(len(marked)), [len(spans) for spans in marked])
        starts, ends, tags = bounds[:, 0], bounds[:, 1], [span[2] for span in flat]
    elif items.kind != "token_tagging":
        return None
    elif is_bio(items.labels):
        chunks = corpus_chunks(tagged)
        owners, starts, ends, tags = chunks.sentences, chunks.starts, chunks.ends + 1, chunks.types
    else:
        lengths = np.fromiter(map(len, tagged), np.int64, len(tagged))
        starts = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        owners, ends = np.repeat(np.arange(len(tagged)), lengths), starts + 1
        tags = [tag for tags in tagged for tag in tags]
    unit: Any = "character" if items.kind == "text_marking" else "token"
    return Spans(side=side, unit=unit, items=owners, starts=starts, ends=ends, tags=tags)


def is_bio(labels: Sequence[str]) -> bool:
    """Return whether tags mark the beginning and the inside of chunks, and are no bare parts of speech."""
    return any(label[:2] in {"B-", "I-"} for label in labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A feature of the items of one language; for spans, the gold ones and those of every system."""

    feature: Feature
    values: Values
    """One per item, or one per gold span."""
    predicted: tuple[Values, ...] = ()
    """For spans: those of each system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAttributes:
    """The items that one or two systems answered in one language, with their attributes."""

    items: Items
    """Without their fields, answers, tags and scores, so that many cells fit into memory."""
    metric: BucketMetric
    statistics: tuple[Floats, ...]
    """By system: the sufficient statistics of the items."""
    gold: Spans | None
    spans: tuple[Spans, ...]
    """By system: the predicted ones; empty for kinds without spans."""
    attributes: Mapping[str, Attribute]
    """Those that apply, by the name of their feature."""


def cell_attributes(
    systems: Sequence[Items], metric: BucketMetric, features: Iterable[Feature], context: FeatureContext
) -> CellAttributes:
    """Return the attributes of the items that the systems have in common, which are in the same order in each."""
    items = systems[0]
    # Kinds without spans have no reference spans either.
    gold = spans_of(items, items.references, "gold")
    spans = (
        [spans_of(items, system.predictions, "predicted") for system in systems] if gold is not None else []
    )
    attributes = {}
    for feature in features:
        if feature.kinds is not None and items.kind not in feature.kinds:
            continue
        if feature.level == "item":
            sides = [_computed(feature, items, context, len(items))]
        else:
            own_spans = [side for side in (gold, *spans) if side is not None]
            sides = [_computed(feature, items, replace(context, spans=side), len(side)) for side in own_spans]
        if sides and all(side is not None for side in sides):
            attributes[feature.name] = Attribute(feature=feature, values=sides[0], predicted=tuple(sides[1:]))
    return CellAttributes(
        items=replace(items, fields=(), predictions=(), references=(), tags=(), scores=(), kept={}),
        metric=metric,
        statistics=tuple(metric.statistics(system) for system in systems),
        gold=gold,
        spans=tuple(side for side in spans if side is not None),
        attributes=attributes,
    )


def _computed(feature: Feature, items: Items, context: FeatureContext, expected: int) -> Values | None:
    """Return the values of a feature; raises `HarnessError` where they are not one per item or span."""
    values = feature.compute(items, context)
    if values is not None and len(values) != expected:
        raise HarnessError(
            f"The attribute {feature.name!r} gave {len(values)} values for {expected} {feature.level}s; "
            "expected one each.",
            hint="Repair the plugin that brings it, or name other attributes with --attributes.",
        )
    return values


def _edges_of(feature: Feature, values: Values, most: int | None = None) -> tuple[Bucket, ...]:
    """Return the buckets that the values themselves make."""
    if feature.continuous:
        return equal_count(np.asarray(values, dtype=np.float64))
    return frequent_values(values, most or _MOST_VALUES)


def block_of(cell: CellAttributes, *names: str) -> Block:
    """Return the items of one language as a block; `names` make its seed."""
    code = cell.items.language.code
    clusters = draw_codes([_keyed(cell)], linked=False)
    return Block(language=code, ids=cell.items.ids, clusters=clusters, seed=seed_of(*names, code))


def _keyed(cell: CellAttributes) -> tuple[str, Sequence[str], Sequence[str | None]]:
    return cell.items.language.code, cell.items.ids, cell.items.clusters


def bucket_language(
    cell: CellAttributes, edges: EdgeSource, pooled: Mapping[str, tuple[Bucket, ...]]
) -> list[Split]:
    """Return the attributes of one language in buckets.

    Args:
        cell: The language.
        edges: Given edges, which come first.
        pooled: By feature: the buckets of all languages, for features that must have the same everywhere.
    """
    splits = []
    for name, attribute in cell.attributes.items():
        feature = attribute.feature
        buckets = pooled.get(name) or edges(feature, cell.items.language.code)
        buckets = buckets or _edges_of(feature, attribute.values, feature.words)
        if buckets:
            splits.append(_split(cell, attribute, tuple(buckets)))
    return splits


def _split(cell: CellAttributes, attribute: Attribute, buckets: tuple[Bucket, ...]) -> Split:
    codes = assign(attribute.values, buckets)
    metric = cell.metric
    if cell.gold is None or attribute.feature.level == "item":
        rows = np.arange(len(codes))
        systems = [
            Observations(items=rows, codes=codes, statistics=statistics) for statistics in cell.statistics
        ]
    else:
        sides = zip(cell.spans, attribute.predicted, strict=True)
        systems = [
            _span_observations(cell.gold, spans, codes, assign(values, buckets)) for spans, values in sides
        ]
        # The spans of bare tags are tokens, which no metric of chunks counts.
        counts_spans = cell.items.kind == "text_marking" or is_bio(cell.items.labels)
        metric = metric if metric.of_spans and counts_spans else token_metric()
    counts = np.bincount(codes[codes >= 0], minlength=len(buckets))
    return Split(
        feature=attribute.feature, buckets=buckets, metric=metric, counts=counts, systems=tuple(systems)
    )


def _span_observations(gold: Spans, predicted: Spans, gold_codes: Integers, codes: Integers) -> Observations:
    """Return the (correct, predicted, gold) of the spans of both sides, each in its own bucket.

    So precision is over the predicted spans of a bucket and recall over its gold ones. A span that is right is the
    same on both sides, with the same attributes: it counts as right where it is gold.
    """
    predicted_spans = set(_places(predicted))
    of_gold, of_predicted = np.zeros((len(gold), 3)), np.zeros((len(predicted), 3))
    of_gold[:, 0] = [span in predicted_spans for span in _places(gold)]
    of_gold[:, 2] = of_predicted[:, 1] = 1
    return Observations(
        items=np.concatenate([gold.items, predicted.items]),
        codes=np.concatenate([gold_codes, codes]),
        statistics=np.concatenate([of_gold, of_predicted]),
    )


def _places(spans: Spans) -> list[tuple[int, int, int, str]]:
    """Return the item, start, end and tag of every span."""
    columns = (spans.items.tolist(), spans.starts.tolist(), spans.ends.tolist(), spans.tags)
    return list(zip(*columns, strict=True))


def join_languages(
    cells: Sequence[CellAttributes],
    languages: Sequence[Sequence[Split]],
    task: TaskSummary,
    *,
    names: Sequence[str],
) -> tuple[Block, list[Split]]:
    """Return the items of all languages as one block, and their attributes.

    Buckets are joined by name: the XS of all languages, whose edges are kept where they are the same. Attributes whose
    values are names get new buckets, from the values of all languages. In a parallel task the translations of an item
    are one draw.
    """
    sizes = np.cumsum([0, *(len(cell.items) for cell in cells)])
    ids = [identifier for cell in cells for identifier in cell.items.ids]
    clusters = draw_codes(list(map(_keyed, cells)), linked=task.parallel, unpaired=task.unpaired)
    numbered = ((number, split) for number, splits in enumerate(languages) for split in splits)
    by_name = grouped((pair[1].feature.name, pair) for pair in numbered)
    joined = []
    for name, numbered_splits in by_name.items():
        feature = numbered_splits[0][1].feature
        if feature.continuous:
            splits = [split for _, split in numbered_splits]
        else:
            attributes = [(cells[number], cells[number].attributes[name]) for number, _ in numbered_splits]
            buckets = _edges_of(feature, [value for _, attribute in attributes for value in attribute.values])
            splits = [_split(cell, attribute, buckets) for cell, attribute in attributes]
        joined.append(_joined(splits, [int(sizes[number]) for number, _ in numbered_splits]))
    return Block(language=None, ids=ids, clusters=clusters, seed=seed_of(*names)), joined


def _joined(splits: Sequence[Split], starts: Sequence[int]) -> Split:
    """Return the splits of several languages as one, given the number of the first item of each."""
    names = grouped((bucket.name, bucket) for split in splits for bucket in split.buckets)
    order = {name: number for number, name in enumerate(names)}
    counts = np.zeros(len(order), dtype=np.int64)
    columns: list[list[tuple[Any, ...]]] = [[] for _ in splits[0].systems]
    for start, split in zip(starts, splits, strict=True):
        joined_codes = np.array([order[bucket.name] for bucket in split.buckets] + [_NOWHERE], dtype=np.int64)
        counts[joined_codes[:-1]] += split.counts
        for column, observations in zip(columns, split.systems, strict=True):
            column.append(
                (observations.items + start, joined_codes[observations.codes], observations.statistics)
            )
    systems = []
    for column in columns:
        items, codes, statistics = map(np.concatenate, zip(*column, strict=True))
        systems.append(Observations(items=items, codes=codes, statistics=statistics))
    buckets = [
        by_language[0] if len(set(by_language)) == 1 else Bucket(name=name)
        for name, by_language in names.items()
    ]
    return replace(splits[0], buckets=tuple(buckets), counts=counts, systems=tuple(systems))


def pooled_edges(cells: Sequence[CellAttributes]) -> dict[str, tuple[Bucket, ...]]:
    """Return the buckets of every continuous feature that the values of all languages together make."""
    pairs = (pair for cell in cells for pair in cell.attributes.items())
    by_name = grouped((name, attribute) for name, attribute in pairs if attribute.feature.continuous)
    return {
        name: _edges_of(attributes[0].feature, np.concatenate([attribute.values for attribute in attributes]))
        for name, attributes in by_name.items()
    }


def distribution(attribute: Attribute) -> dict[str, Any]:
    """Return n, mean, quartiles and histogram of an attribute; mean and quartiles are None for names.

    The histogram has rows [low, high, count] (20 bins of equal width; one [value, value, count] each where there are
    no more values than that), or [value, count] for names, frequent ones first. It depends on the data alone, whatever
    a system answers: dataset bias.
    """
    mean = quartiles = None
    if attribute.feature.continuous:
        values = np.asarray(attribute.values, dtype=np.float64)
        finite = values[np.isfinite(values)]
        lows, numbers = np.unique(finite, return_counts=True)
        highs = lows
        if len(lows) > BINS:
            numbers, edges = np.histogram(finite, bins=BINS)
            lows, highs = edges[:-1], edges[1:]
        if len(finite):
            mean, quartiles = float(finite.mean()), np.quantile(finite, [0.25, 0.5, 0.75]).tolist()
        columns = (lows.tolist(), highs.tolist(), numbers.tolist())
        n, histogram = len(finite), [list(row) for row in zip(*columns, strict=True)]
    else:
        counts = Counter(value for value in attribute.values if value is not None)
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        n, histogram = counts.total(), [list(pair) for pair in ordered]
    return {"n": n, "mean": mean, "quartiles": quartiles, "histogram": histogram}


# Buckets ------------------------------------------------------------------------------------------
#
# Source: Ruder et al. (2021), XTREME-R, appendix K and Tables 25 and 26: N = 4 buckets XS, S, L and XL, closed on the
# right, the first one closed on both sides; equal values are never separated, so that there may be fewer. The rule for
# the cuts is ExplainaBoard's ``continuous`` (0.12.7): a bucket is closed once it holds its share of the items that are
# left and the value changes.


def equal_count(values: Floats, names: Sequence[str] = BUCKET_NAMES) -> tuple[Bucket, ...]:
    """Return at most ``len(names)`` intervals that hold about as many of the values each.

    Equal values are never separated: there are fewer intervals where they force it, named in order. None at all
    where no value is finite.

    Args:
        values: Shape (n,); those that are not finite are ignored.
        names: The names, one per bucket.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ()
    distinct, counts = np.unique(finite, return_counts=True)
    upto = np.cumsum(counts)
    buckets: list[Bucket] = []
    low, done = float(distinct[0]), 0
    for number, name in enumerate(names):
        target = done + (len(finite) - done) / (len(names) - number)
        last = min(int(np.searchsorted(upto, target - 1e-9)), len(distinct) - 1)
        high = float(distinct[last])
        buckets.append(Bucket(name=name, low=low, high=high, low_closed=number == 0))
        low, done = high, int(upto[last])
        if done == len(finite):
            break
    return tuple(buckets)


def frequent_values(values: Sequence[str | None], most: int = _MOST_VALUES) -> tuple[Bucket, ...]:
    """Return a bucket per most frequent value, frequent ones first, and `OTHER_BUCKET` where there are more values.

    Equally frequent values are in the order of their names.
    """
    counts = Counter(value for value in values if value is not None)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    frequent = [value for value in ordered if value != OTHER_BUCKET][:most]
    has_more = len(ordered) > len(frequent)
    return tuple(Bucket(name=value) for value in [*frequent, *([OTHER_BUCKET] if has_more else [])])


def assign(values: Floats | Sequence[str | None], buckets: Sequence[Bucket]) -> Integers:
    """Return the number of every value's bucket, `_NOWHERE` for one that lies in none, shape (n,).

    Raises `DataError` where intervals overlap.
    """
    if not isinstance(values, np.ndarray):
        numbers: dict[str | None, int] = {bucket.name: number for number, bucket in enumerate(buckets)}
        fallback = numbers.get(OTHER_BUCKET, _NOWHERE)
        codes = (_NOWHERE if value is None else numbers.get(value, fallback) for value in values)
        return np.fromiter(codes, np.int64, len(values))
    bucket_numbers = np.full(len(values), _NOWHERE, dtype=np.int64)
    for number, bucket in enumerate(buckets):
        assert bucket.low is not None
        assert bucket.high is not None
        above = values >= bucket.low if bucket.low_closed else values > bucket.low
        inside = above & (values <= bucket.high)
        if (bucket_numbers[inside] != _NOWHERE).any():
            raise DataError(
                f"The bucket {bucket.name!r} {bucket.interval} overlaps another one; a value lies in both."
            )
        bucket_numbers[inside] = number
    return bucket_numbers
