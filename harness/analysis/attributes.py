"""The attributes of the items of a task: the values of features, in buckets by language or over all languages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.analysis.bucket_metric import BucketMetric, token_metric
from harness.analysis.bucket_scoring import Block, Observations, Split
from harness.analysis.items import spans_of
from harness.data.buckets import NOWHERE, Bucket, assign, equal_count, frequent_values
from harness.data.features import Feature, FeatureContext, Items, Spans, Values
from harness.errors import HarnessError
from harness.statistics import ClusterCodes, linked_codes, own_names, seed_of

__all__ = [
    "Attribute",
    "Bucketed",
    "CellAttributes",
    "EdgeSource",
    "block_of",
    "bucket_language",
    "cell_attributes",
    "edges_of",
    "join_languages",
    "pooled_edges",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
EdgeSource = Callable[[Feature, str], Sequence[Bucket] | None]
"""Feature and language -> its given edges; None for edges by equal counts."""


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
    attributes: tuple[Attribute, ...]
    """Those that apply."""


def cell_attributes(
    systems: Sequence[Items], metric: BucketMetric, features: Iterable[Feature], context: FeatureContext
) -> CellAttributes:
    """Return the attributes of the items that the systems have in common, which are in the same order in each."""
    items = systems[0]
    # Kinds without spans have no reference spans either.
    gold = spans_of(items, items.references, "gold")
    spans = [spans_of(items, own.predictions, "predicted") for own in systems] if gold is not None else []
    found = []
    for feature in features:
        if feature.kinds is not None and items.kind not in feature.kinds:
            continue
        if feature.level == "item":
            values = _checked(feature, feature.compute(items, context), len(items))
            if values is not None:
                found.append(Attribute(feature=feature, values=values))
        elif gold is not None:
            sides = [
                _checked(feature, feature.compute(items, replace(context, spans=own)), len(own))
                for own in (gold, *(own for own in spans if own is not None))
            ]
            if all(side is not None for side in sides):
                found.append(Attribute(feature=feature, values=sides[0], predicted=tuple(sides[1:])))
    return CellAttributes(
        items=replace(items, fields=(), predictions=(), references=(), tags=(), scores=(), kept={}),
        metric=metric,
        statistics=tuple(metric.statistics(own) for own in systems),
        gold=gold,
        spans=tuple(own for own in spans if own is not None),
        attributes=tuple(found),
    )


def _checked(feature: Feature, values: Values | None, expected: int) -> Values | None:
    """Return the values; raises `HarnessError` where they are not one per item or span."""
    if values is not None and len(values) != expected:
        raise HarnessError(
            f"The attribute {feature.name!r} gave {len(values)} values for {expected} {feature.level}s; "
            "expected one each.",
            hint="Repair the plugin that brings it, or name other attributes with --attributes.",
        )
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucketed:
    """An attribute of one language or of all, with its buckets."""

    feature: Feature
    buckets: tuple[Bucket, ...]
    split: Split


def edges_of(feature: Feature, values: Values, most: int | None = None) -> tuple[Bucket, ...]:
    """Return the buckets that the values themselves make."""
    if feature.continuous:
        return equal_count(np.asarray(values, dtype=np.float64))
    return frequent_values(values, most) if most is not None else frequent_values(values)


def block_of(cell: CellAttributes, *names: str) -> Block:
    """Return the items of one language as a block; `names` make its seed."""
    numbered = ClusterCodes()
    numbered.add(cell.items.clusters)
    return Block(
        ids=cell.items.ids, clusters=numbered.codes(), seed=seed_of(*names, cell.items.language.code)
    )


def bucket_language(
    cell: CellAttributes, edges: EdgeSource, pooled: Mapping[str, tuple[Bucket, ...]]
) -> list[Bucketed]:
    """Return the attributes of one language in buckets.

    Args:
        cell: The language.
        edges: Given edges, which come first.
        pooled: By feature: the buckets of all languages, for features that must have the same everywhere.
    """
    found = []
    for attribute in cell.attributes:
        feature = attribute.feature
        given = edges(feature, cell.items.language.code)
        buckets = pooled.get(feature.name) or given or edges_of(feature, attribute.values, feature.words)
        if buckets:
            found.append(
                Bucketed(feature=feature, buckets=tuple(buckets), split=_split(cell, attribute, buckets))
            )
    return found


def _split(cell: CellAttributes, attribute: Attribute, buckets: Sequence[Bucket]) -> Split:
    codes = assign(attribute.values, buckets)
    counts = np.bincount(codes[codes >= 0], minlength=len(buckets))
    if attribute.feature.level == "item":
        rows = np.arange(len(codes))
        systems = [Observations(items=rows, codes=codes, statistics=own) for own in cell.statistics]
        return Split(metric=cell.metric, buckets=len(buckets), counts=counts, systems=tuple(systems))
    assert cell.gold is not None
    systems = [
        _span_observations(cell.gold, own, codes, assign(values, buckets))
        for own, values in zip(cell.spans, attribute.predicted, strict=True)
    ]
    metric = cell.metric if _has_span_counts(cell) else token_metric()
    return Split(metric=metric, buckets=len(buckets), counts=counts, systems=tuple(systems))


def _has_span_counts(cell: CellAttributes) -> bool:
    """Return whether the metric counts the very spans of the attributes, which for bare tags are tokens."""
    if not cell.metric.of_spans:
        return False
    return cell.items.kind == "text_marking" or any(label[:2] == "B-" for label in cell.items.labels)


def _span_observations(gold: Spans, predicted: Spans, gold_codes: Integers, codes: Integers) -> Observations:
    """Return the (correct, predicted, gold) of the spans of both sides, each in its own bucket.

    So precision is over the predicted spans of a bucket and recall over its gold ones. A span that is right is the
    same on both sides, with the same attributes: it counts as right where it is gold.
    """
    right = np.isin(*_keys(gold, predicted))
    ones = np.ones(len(gold))
    of_gold = np.stack([right.astype(np.float64), np.zeros(len(gold)), ones], axis=1)
    of_predicted = np.zeros((len(predicted), 3))
    of_predicted[:, 1] = 1
    return Observations(
        items=np.concatenate([gold.items, predicted.items]),
        codes=np.concatenate([gold_codes, codes]),
        statistics=np.concatenate([of_gold, of_predicted]),
    )


def _keys(gold: Spans, predicted: Spans) -> tuple[Integers, Integers]:
    """Return one number per span, the same for the same item, start, end and tag."""
    numbers: dict[str, int] = {}
    reach = 1 + max(int(side.ends.max(initial=0)) for side in (gold, predicted))
    tags = [
        np.fromiter((numbers.setdefault(tag, len(numbers)) for tag in side.tags), np.int64, len(side))
        for side in (gold, predicted)
    ]
    one, other = (
        ((side.items * reach + side.starts) * reach + side.ends) * len(numbers) + own
        for side, own in zip((gold, predicted), tags, strict=True)
    )
    return one, other


def join_languages(
    cells: Sequence[CellAttributes],
    bucketed: Sequence[Sequence[Bucketed]],
    *,
    parallel: bool,
    unpaired: Collection[str] = (),
    names: Sequence[str],
) -> tuple[Block, list[Bucketed]]:
    """Return the items of all languages as one block, and their attributes.

    Buckets are joined by name: the XS of all languages, whose edges are kept where they are the same. Attributes whose
    values are names get new buckets, from the values of all languages. In a parallel task the translations of an item
    are one draw.
    """
    sizes = np.cumsum([0, *(len(cell.items) for cell in cells)])
    ids = [identifier for cell in cells for identifier in cell.items.ids]
    clusters = _joined_clusters(cells, parallel=parallel, unpaired=unpaired)
    by_name: dict[str, list[tuple[int, Bucketed]]] = {}
    for number, own in enumerate(bucketed):
        for each in own:
            by_name.setdefault(each.feature.name, []).append((number, each))
    joined = []
    for name, parts in by_name.items():
        if parts[0][1].feature.continuous:
            joined.append(_joined(parts, sizes))
        else:
            again = _anew(name, [(number, cells[number]) for number, _ in parts])
            joined.append(_joined(again, sizes))
    return Block(ids=ids, clusters=clusters, seed=seed_of(*names)), joined


def _joined_clusters(
    cells: Sequence[CellAttributes], *, parallel: bool, unpaired: Collection[str]
) -> Integers:
    numbered = ClusterCodes()
    keys: list[str] = []
    for cell in cells:
        code = cell.items.language.code
        numbered.add([None if key is None else f"{code}\n{key}" for key in cell.items.clusters])
        keys += own_names(cell.items.ids, code) if code in unpaired else cell.items.ids
    own = numbered.codes()
    if not parallel:
        return own
    numbers: dict[str, int] = {}
    shared = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(keys))
    return linked_codes(own, shared)


def _anew(name: str, parts: Sequence[tuple[int, CellAttributes]]) -> list[tuple[int, Bucketed]]:
    found = [
        (number, cell, next(each for each in cell.attributes if each.feature.name == name))
        for number, cell in parts
    ]
    buckets = edges_of(found[0][2].feature, [value for _, _, own in found for value in own.values])
    return [
        (
            number,
            Bucketed(feature=own.feature, buckets=buckets, split=_split(cell, own, buckets)),
        )
        for number, cell, own in found
    ]


def _joined(parts: Sequence[tuple[int, Bucketed]], sizes: Integers) -> Bucketed:
    names: dict[str, list[Bucket]] = {}
    for _, part in parts:
        for bucket in part.buckets:
            names.setdefault(bucket.name, []).append(bucket)
    order = {name: number for number, name in enumerate(names)}
    counts = np.zeros(len(order), dtype=np.int64)
    columns: list[list[Observations]] = [[] for _ in parts[0][1].split.systems]
    for number, part in parts:
        places = np.array([order[bucket.name] for bucket in part.buckets] + [NOWHERE], dtype=np.int64)
        counts[places[:-1]] += part.split.counts
        for system, own in enumerate(part.split.systems):
            columns[system].append(
                Observations(
                    items=own.items + sizes[number], codes=places[own.codes], statistics=own.statistics
                )
            )
    split = Split(
        metric=parts[0][1].split.metric,
        buckets=len(order),
        counts=counts,
        systems=tuple(_concatenated(column) for column in columns),
    )
    buckets = tuple(_common(name, own) for name, own in names.items())
    return Bucketed(feature=parts[0][1].feature, buckets=buckets, split=split)


def _common(name: str, buckets: Sequence[Bucket]) -> Bucket:
    return buckets[0] if len(set(buckets)) == 1 else Bucket(name=name)


def _concatenated(parts: Sequence[Observations]) -> Observations:
    return Observations(
        items=np.concatenate([part.items for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
        statistics=np.concatenate([part.statistics for part in parts]),
    )


def pooled_edges(cells: Sequence[CellAttributes]) -> dict[str, tuple[Bucket, ...]]:
    """Return the buckets of every continuous feature that the values of all languages together make."""
    values: dict[str, list[Any]] = {}
    features: dict[str, Feature] = {}
    for cell in cells:
        for attribute in cell.attributes:
            if attribute.feature.continuous:
                features[attribute.feature.name] = attribute.feature
                values.setdefault(attribute.feature.name, []).append(attribute.values)
    return {name: edges_of(features[name], np.concatenate(own)) for name, own in values.items()}
