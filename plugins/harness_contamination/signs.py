"""The signs of a cell: item order, Min-K%++ and held-back halves; each with its error rate, or why it has none."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from harness import HarnessError
from harness.models import CountsTokens, GenerateOptions, Generates, LikelihoodRequest
from harness.statistics import holm
from harness_contamination import comparison
from harness_contamination.comparison import ALPHA, SEED
from harness_contamination.material import Material

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
    near = [comparison.similarity(own) for own in cell.shards]
    alike = [[own[one[:-1], one[1:]].sum() for one in orders[number]] for number, own in enumerate(near)]
    (advantage, p), (_, free) = comparison.order_test(values), comparison.order_test(np.array(alike))
    return replace(
        sign,
        measured=f"log-likelihood {advantage:+.2f} per shard",
        statistic=advantage,
        p=p,
        false_positive_rate=comparison.order_rate(values),
        model_free_p=free,
        unreadable="neighbours in the file are alike, also without a model" if free <= ALPHA else "",
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
    (auc, p), free = comparison.rank_test(items, fresh), comparison.difference_p(cell.items, cell.fresh)
    return replace(
        sign,
        measured=f"{sign.measured}; AUC {auc:.2f}".removeprefix("; "),
        statistic=auc,
        p=p,
        false_positive_rate=comparison.rank_rate(fresh),
        model_free_p=free,
        unreadable="the fresh texts differ from the items, also without a model" if free <= ALPHA else "",
    )


def sign_rows(signs: Sequence[Sign]) -> list[dict[str, Any]]:
    """Return one plain object per sign, with ``p_holm`` over all that have a p, and the sentence ``reading``."""
    tested = {at: one.p for at, one in enumerate(signs) if one.p is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())).tolist(), strict=True))
    rows = []
    for at, one in enumerate(signs):
        found = adjusted.get(at)
        reading = f"Not readable: {one.unreadable}." if one.unreadable else FOUND[one.sign]
        if found is not None and found > ALPHA:
            reading = "No evidence."
        rows.append({**asdict(one), "p_holm": found, "reading": reading})
    return rows
