"""The signs of a cell: item order, Min-K%++ and held-back halves, each with its error rate, or why it has none.

Tests compare the order of a file with random orders, scores with those of fresh texts, and texts without a model.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from harness import HarnessError, UsageError
from harness.models import CountsTokens, GenerateOptions, Generates, LikelihoodRequest
from harness.running import CellReader, Prepared
from harness.statistics import holm

SEED = 0
"""Of all draws."""
Floats = npt.NDArray[np.float64]
_ALPHA = 0.05
DRAWS = 1_000
GRAM = 3
MOST = 1_000
"""Texts of each sort that are compared without a model."""
LEAST_SHARDS, LEAST_FRESH = 5, 10
LOWEST = 0.2
"""The share of the least likely tokens that Min-K%++ averages."""
NEAR_EXACT = 0.5
REACH = 30
FOUND = {
    "order": "Evidence: the order of the file is likelier than random orders.",
    "min-k++": "Evidence: the items are more familiar than the fresh texts.",
    "completion": "Evidence: the items are completed better than the fresh texts.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Items that are tested in one task and language."""

    task: str
    language: str
    shards: Sequence[Sequence[str]]
    """All items of the file in its order; those that share a cluster are one, each text once."""
    drawn: Sequence[int]
    """The numbers of the shards that the model is asked about."""
    data: Mapping[str, Any]
    """Files and digest, as in results."""
    fresh: Sequence[str]

    @property
    def items(self) -> list[str]:
        """The items of the shards that were drawn."""
        return [text for number in self.drawn for text in self.shards[number]]


def read_material(
    prepared: Prepared, fresh: Mapping[str, Sequence[str]], size: int, limit: int | None
) -> list[Material]:
    """Return the items of every task and language of a plan in shards of `size`; a limit draws whole shards.

    Raises `UsageError` where there are none.
    """
    kinds = prepared.session.registry.kinds
    reader, found = CellReader(prepared.session.registry, prepared.finder), {}
    for cell in prepared.plan.cells:
        task, code, texts_of = cell.spec.task, cell.language.code, kinds.get(cell.spec.kind).texts
        # The cells of several prompts have the same items.
        if texts_of is None or (task, code) in found:
            continue
        clusters: dict[str, dict[str, None]] = {}
        for item in reader.read(cell)[0]:
            own = clusters.setdefault(item.id if item.cluster is None else item.cluster, {})
            own |= dict.fromkeys(text for text in texts_of(item, cell.spec) if text.strip())
        texts = [" ".join(own) for own in clusters.values() if own]
        # Items that do not fill the last shard are not used, except where they are all that there are.
        starts = range(0, max(1, len(texts) - size + 1), size)
        wanted = len(starts) if limit is None else max(1, limit // size)
        found[task, code] = Material(
            task=task,
            language=code,
            shards=[texts[start : start + size] for start in starts],
            drawn=sorted(np.random.default_rng(SEED).permutation(len(starts))[:wanted].tolist()),
            data=cell.test.to_json(),
            fresh=fresh.get(code, ()),
        )
    if not found:
        raise UsageError("No items are left to test.", hint="Give the folder of their files with --data DIR.")
    return list(found.values())


def read_fresh(path: Path) -> dict[str, list[str]]:
    """Return the texts of a file by language, whose lines are ``code<TAB>text``; raises `UsageError` for others."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The file of fresh texts {str(path)!r} cannot be read: {error}.") from error
    texts: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines, start=1):
        code, _, text = (part.strip() for part in line.partition("\t"))
        if not code or not text:
            raise UsageError(
                f"{path}:{number}: expected a language code, a tab and a text, found {line[:60]!r}."
            )
        texts.setdefault(code, {})[text] = None
    return {code: list(own) for code, own in texts.items()}


def order_test(values: Floats) -> tuple[float, float]:
    """Return the mean advantage of the first order, and the p of its one-sided t-test over shards.

    `values` has shape (shards, 1 + random orders). The advantage of a shard is its first value minus the mean of the
    others: the sharded likelihood comparison test of Oren et al. 2023 (arXiv 2310.17623).
    """
    advantage = values[:, 0] - values[:, 1:].mean(axis=1)
    return float(advantage.mean()), float(_t_test(advantage))


def order_rate(values: Floats) -> float:
    """Return how often `order_test` of a random order of every shard against the shard's others has p <= 0.05."""
    others = values[:, 1:]
    shards, count = others.shape
    first = others[np.arange(shards), np.random.default_rng(SEED).integers(count, size=(DRAWS, shards))]
    return float(np.mean(_t_test(first - (others.sum(axis=1) - first) / (count - 1)) <= _ALPHA))


def _t_test(advantage: Floats) -> Floats:
    """Return the p over the last axis; 0.5 where all are equal."""
    spread, count = advantage.std(axis=-1, ddof=1), advantage.shape[-1]
    t = advantage.mean(axis=-1) * count**0.5 / np.where(spread > 0, spread, np.inf)
    return np.asarray(stats.t.sf(t, count - 1), dtype=np.float64)


def rank_test(items: Sequence[float], fresh: Sequence[float]) -> tuple[float, float]:
    """Return how often an item scores higher than a fresh text (AUC), and the p of the one-sided Mann-Whitney test."""
    found = stats.mannwhitneyu(items, fresh, alternative="greater")
    return float(found.statistic) / (len(items) * len(fresh)), float(found.pvalue)


def rank_rate(fresh: Sequence[float]) -> float:
    """Return how often `rank_test` of two random halves of the fresh texts has p <= 0.05."""
    mixed = np.random.default_rng(SEED).permuted(np.tile(np.asarray(fresh, np.float64), (DRAWS, 1)), axis=1)
    one, other = np.array_split(mixed, 2, axis=1)
    return float(np.mean(stats.mannwhitneyu(one, other, alternative="greater", axis=1).pvalue <= _ALPHA))


def similarity(texts: Sequence[str]) -> Floats:
    """Return the Jaccard similarity of the texts' character trigrams, shape (n, n)."""
    grams = [{text[at : at + GRAM] for at in range(max(1, len(text) - GRAM + 1))} for text in texts]
    numbers = {
        gram: number for number, gram in enumerate(dict.fromkeys(gram for own in grams for gram in own))
    }
    columns = [numbers[gram] for own in grams for gram in own]
    sizes = np.array([len(own) for own in grams])
    rows = (np.ones(len(columns)), columns, np.r_[0, sizes.cumsum()])
    held = sparse.csr_array(rows, shape=(len(texts), len(numbers)))
    shared: Floats = np.asarray((held @ held.T).toarray(), dtype=np.float64)
    near: Floats = shared / (sizes[:, None] + sizes - shared)
    return near


def difference_p(items: Sequence[str], fresh: Sequence[str]) -> float:
    """Return the p of whether items and fresh texts differ in their trigrams: then scores may follow topic or style.

    The maximum mean discrepancy of the similarities with 999 random relabellings (Gretton et al. 2012); why scores need
    such a check: Das et al. 2024 (arXiv 2406.16201).
    """
    random = np.random.default_rng(SEED)
    one, other = ([own[at] for at in random.permutation(len(own))[:MOST]] for own in (items, fresh))
    near = similarity([*one, *other])
    np.fill_diagonal(near, 0.0)
    m, n = len(one), len(other)
    first = np.tile(np.repeat([1.0, 0.0], [m, n]), (DRAWS, 1))
    first[1:] = random.permuted(first[1:], axis=1)
    # Of every relabelling: the sums of similarities within the first, across, and within the second.
    within = ((first @ near) * first).sum(axis=1)
    across = first @ near.sum(axis=1) - within
    second = near.sum() - within - 2 * across
    apart = within / (m * (m - 1)) + second / (n * (n - 1)) - 2 * across / (m * n)
    return float(np.mean(apart >= apart[0] - 1e-12))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One sign of one cell."""

    task: str
    language: str
    sign: str
    items: int
    data: Mapping[str, Any]
    measured: str = ""
    """The statistic in words."""
    statistic: float | None = None
    p: float | None = None
    false_positive_rate: float | None = None
    model_free_p: float | None = None
    """Of the check that needs no model."""
    unreadable: str = ""
    """Why `p` is missing, or would be no evidence if it were low."""
    detail: Any = None
    """What the statistic was computed from."""


def measure_signs(adapter: Any, cell: Material, permutations: int) -> Iterator[Sign]:
    """Yield the signs of a cell; one that cannot be measured has the reason."""
    for name, measure in (("order", _order), ("min-k++", _min_k), ("completion", _completion)):
        sign = Sign(task=cell.task, language=cell.language, sign=name, items=len(cell.items), data=cell.data)
        try:
            yield measure(adapter, cell, sign, permutations)
        except HarnessError as error:
            yield replace(sign, unreadable=str(error).rstrip("."))


def random_orders(size: int, count: int, shard: int) -> list[list[int]]:
    """Return the order of the file and `count` random orders of a shard of so many items."""
    random = np.random.default_rng([SEED, shard])
    return [list(range(size)), *(random.permutation(size).tolist() for _ in range(count))]


def _order(adapter: Any, cell: Material, sign: Sign, permutations: int) -> Sign:
    if len(cell.drawn) < LEAST_SHARDS:
        shards = f"{len(cell.drawn)} shards of {len(cell.shards[0])} items"
        return replace(sign, unreadable=f"{shards}; at least {LEAST_SHARDS} are needed")
    orders = [random_orders(len(own), permutations, number) for number, own in enumerate(cell.shards)]
    asked = [
        LikelihoodRequest(context="", continuation="\n".join(cell.shards[shard][index] for index in one))
        for shard in cell.drawn
        for one in orders[shard]
    ]
    totals = np.array([answer.total for answer in adapter.loglikelihood(asked)])
    values = totals.reshape(len(cell.drawn), -1)
    # Where the file itself puts similar items next to each other, any model finds its order likelier.
    near = [similarity(own) for own in cell.shards]
    alike = [[own[one[:-1], one[1:]].sum() for one in orders[number]] for number, own in enumerate(near)]
    (advantage, p), (_, free) = order_test(values), order_test(np.array(alike))
    return replace(
        sign,
        measured=f"log-likelihood {advantage:+.2f} per shard",
        statistic=advantage,
        p=p,
        false_positive_rate=order_rate(values),
        model_free_p=free,
        unreadable="neighbours in the file are alike, also without a model" if free <= _ALPHA else "",
        detail={"shards": list(cell.drawn), "log_likelihoods": values.round(4).tolist()},
    )


def _min_k(adapter: Any, cell: Material, sign: Sign, permutations: int) -> Sign:
    if not hasattr(adapter, "standard_scores"):
        return replace(sign, unreadable="the adapter gives no standard scores of tokens; hf-causal does")
    # A score without a reference means nothing.
    texts = [*cell.items, *cell.fresh] if len(cell.fresh) >= LEAST_FRESH else []
    return _compared(sign, cell, [min_k(own) for own in adapter.standard_scores(texts)])


def min_k(scores: Sequence[float], share: float = LOWEST) -> float:
    """Return the mean of the lowest share of token scores, of one at least (Zhang et al. 2024, arXiv 2404.02936)."""
    return float(np.mean(sorted(scores)[: max(1, int(share * len(scores)))]))


def _completion(adapter: Any, cell: Material, sign: Sign, permutations: int) -> Sign:
    if not isinstance(adapter, Generates) or not isinstance(adapter, CountsTokens):
        return replace(sign, unreadable="the adapter writes no text")
    cut = [halves(text) for text in (*cell.items, *cell.fresh)]
    options = [GenerateOptions(max_tokens=count) for count in adapter.token_counts([held for _, held in cut])]
    written = adapter.generate([first for first, _ in cut], options)
    scores = [overlap(answer.text, held) for answer, (_, held) in zip(written, cut, strict=True)]
    near = [score >= NEAR_EXACT for score in scores]
    counts = f"{sum(near[: sign.items])} of {sign.items} near exact"
    if cell.fresh:
        counts += f", fresh {sum(near[sign.items :])} of {len(cell.fresh)}"
    return _compared(replace(sign, measured=counts), cell, scores)


def halves(text: str) -> tuple[str, str]:
    """Return a text cut in its middle, before the next space where there is one nearby."""
    middle = (len(text) + 1) // 2
    space = text.find(" ", middle, middle + REACH)
    cut = middle if space < 0 else space
    return text[:cut], text[cut:]


def overlap(written: str, held: str) -> float:
    """Return the longest string that both have, as a share of the second one; spaces are collapsed."""
    one, other = " ".join(written.split()), " ".join(held.split())
    match = difflib.SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    return match.size / max(1, len(other))


def _compared(sign: Sign, cell: Material, scores: Sequence[float]) -> Sign:
    """Return a sign with the rank test of the scores of items, which come first, against those of fresh texts."""
    items, fresh = list(scores[: sign.items]), list(scores[sign.items :])
    sign = replace(sign, detail={"scores": items, "fresh_scores": fresh})
    if len(cell.fresh) < LEAST_FRESH:
        count = f"{len(cell.fresh)} fresh texts, fewer than {LEAST_FRESH}"
        return replace(sign, unreadable=count if cell.fresh else "no fresh texts (--fresh)")
    (auc, p), free = rank_test(items, fresh), difference_p(cell.items, cell.fresh)
    return replace(
        sign,
        measured=f"{sign.measured}; AUC {auc:.2f}".removeprefix("; "),
        statistic=auc,
        p=p,
        false_positive_rate=rank_rate(fresh),
        model_free_p=free,
        unreadable="the fresh texts differ from the items, also without a model" if free <= _ALPHA else "",
    )


def sign_rows(signs: Sequence[Sign]) -> list[dict[str, Any]]:
    """Return one plain object per sign, with ``p_holm`` over all that have a p, and the sentence ``reading``."""
    tested = {at: one.p for at, one in enumerate(signs) if one.p is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())).tolist(), strict=True))
    rows = []
    for at, one in enumerate(signs):
        found = adjusted.get(at)
        reading = f"Not readable: {one.unreadable}." if one.unreadable else FOUND[one.sign]
        if found is not None and found > _ALPHA:
            reading = "No evidence."
        rows.append({**asdict(one), "p_holm": found, "reading": reading})
    return rows
