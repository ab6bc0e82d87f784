"""Ranked retrieval: the pool, what is right for a query, and the ranking with what follows its cut-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from harness.data.records import Candidate, CandidatePool, Prediction, RankedQuery, RetrievalPair, Row
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.methods import MethodContext
from harness.kinds.retrieval import METHODS, RANKED_RETRIEVAL as KIND
from harness.languages.table import known_languages
from harness.models.capabilities import EmbedOptions
from harness.models.requests import FloatArray
from harness.running.session import Session

CONTEXT = ReadContext(owner="mine", language="de", split="test")


def _pool(*candidates: Candidate, **fields: Any) -> CandidatePool:
    return CandidatePool(candidates, owner="mine", **fields)


def _candidate(
    identifier: str, language: str = "en", answers: Sequence[str] = (), text: str = ""
) -> Candidate:
    return Candidate(id=identifier, text=text or identifier, language=language, answers=tuple(answers))


def _query(identifier: str = "q", *targets: str, **fields: Any) -> RankedQuery:
    return RankedQuery(id=identifier, query=identifier, targets=targets, **fields)


def _read(*fields: dict[str, Any], split: str = "test") -> list[Any]:
    rows = [Row(fields=item, path="f.jsonl", line=line) for line, item in enumerate(fields, start=1)]
    return read_examples(KIND, rows, ReadContext(owner="mine", language="de", split=split))


def _join(examples: Sequence[RankedQuery], pool: CandidatePool) -> list[RankedQuery]:
    assert KIND.join is not None
    return list(KIND.join(examples, pool))


# The pool -----------------------------------------------------------------------------------------------


def test_a_pool_has_unique_ids_and_a_digest_of_ids_and_texts_in_order() -> None:
    one, two = _candidate("a", text="x"), _candidate("b", text="y")
    digests = [
        _pool(one, two).digest,
        _pool(two, one).digest,
        _pool(_candidate("a", text="z"), two).digest,
        _pool(_candidate("c", text="x"), two).digest,
        _pool(_candidate("a", text="xb"), _candidate("", text="y")).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert _pool(one, two).digest == digests[0]
    with pytest.raises(DataError, match="pool of 'mine' is empty"):
        _pool()
    with pytest.raises(DataError, match="'a' of 'mine' occurs twice in its pool, as candidates 1 and 3"):
        _pool(one, two, _candidate("a", "de"))


def _read_candidate(**fields: Any) -> Candidate:
    assert KIND.candidate is not None
    return KIND.candidate(Row(fields=fields, path="pool.jsonl", line=3), CONTEXT)


def test_a_candidate_has_the_language_of_its_row_or_of_its_file() -> None:
    assert _read_candidate(id="Q1", text="x", language="ja").language == "ja"
    assert _read_candidate(id="Q1", text="x").language == "de"
    assert _read_candidate(id="Q1", text="x", answers=["q1", "q2"]).answers == ("q1", "q2")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(({"id": name, "text": "x"}, f"with a text id, found {name!r}") for name in (None, "", 7)),
        ({"id": "Q1"}, "expected the text field 'text' of 'mine', found id"),
    ],
)
def test_a_candidate_needs_a_text_and_an_id(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"pool\.jsonl:3: .*{message}"):
        _read_candidate(**fields)


# Queries and their right candidates ---------------------------------------------------------------------


def test_queries_are_read_for_a_test_and_pairs_for_training() -> None:
    [query] = _read({"id": "q", "query": "Who?", "target": "Q1"})
    assert (query.targets, KIND.reference(query)) == (("Q1",), {"targets": ["Q1"], "languages": []})
    [pair] = _read({"id": "q", "query": "Who?", "passage": "She."}, split="train")
    assert isinstance(pair, RetrievalPair)
    assert KIND.reference(pair) == {"targets": ["q"]}
    with pytest.raises(DataError, match=r"f\.jsonl:1: expected the text field 'passage'"):
        _read({"id": "q", "query": "Who?"}, split="validation")


def test_targets_and_languages_come_from_the_pool() -> None:
    pool = _pool(
        _candidate("en/1", "en", ["q"]),
        _candidate("en/2"),
        _candidate("de/1", "de", ["q", "r"]),
        _candidate("de/2"),
    )
    [q, r] = _join([_query("q", cluster="p1"), _query("r")], pool)
    assert (q.targets, q.languages, q.cluster, q.query) == (("en/1", "de/1"), ("en", "de"), "p1", "q")
    assert KIND.reference(r) == {"targets": ["de/1"], "languages": ["de"]}
    # A gold that the pool names too counts once, and what diagnosis knows of a query is kept.
    [both] = _join([_query("q", "en/1", group="names", meta={"genre": "news"})], pool)
    assert (both.targets, both.languages) == (("en/1", "de/1"), ("en", "de"))
    assert (both.group, both.meta) == ("names", {"genre": "news"})
    [unlabelled] = _join([_query("q")], _pool(_candidate("a")))
    assert (unlabelled.targets, KIND.reference(unlabelled)) == ((), None)
    with pytest.raises(DataError, match="The gold 'Q9' of query 'q' of 'mine' is not among the 4 candidates"):
        _join([_query("q", "Q9")], pool)
    with pytest.raises(DataError, match="The query 's' of 'mine' has no right candidate among the 4"):
        _join([_query("s")], pool)


# The ranking --------------------------------------------------------------------------------------------


class _Encoder:
    """Embeds what `vectors` says; one vector for every other text."""

    def __init__(
        self, vectors: dict[str, list[float]] | None = None, *, lose: int = 0, spoil: bool = False
    ) -> None:
        self._vectors = vectors or {}
        self._lose = lose
        self._spoil = spoil
        self.calls: list[tuple[str, int]] = []

    def embed(self, texts: Sequence[str], *, side: str, options: EmbedOptions) -> FloatArray:
        self.calls.append((side, len(texts)))
        rows = np.asarray([self._vectors.get(text, [1.0, 0.0]) for text in texts], dtype=np.float32)
        if self._spoil:
            rows[-1, 0] = np.nan
        return rows[: len(rows) - self._lose]


Ranked = Callable[..., list[Prediction]]


@pytest.fixture
def ranked(session: Session) -> Ranked:
    """Prepare and predict as a run does."""

    def rank(encoder: _Encoder, pool: CandidatePool, queries: Sequence[RankedQuery]) -> list[Prediction]:
        joined = _join(queries, pool)
        context = MethodContext(
            spec=session.catalog.task("lareqa").spec,
            language=known_languages().get("en"),
            protocol="frozen",
            seed=42,
            pool=joined,
            candidates=pool,
        )
        [method] = [method for method in METHODS if method.kind == KIND.name]
        assert method.prepare is not None
        method.prepare(encoder, context)
        method.prepare(encoder, context)
        return method.predict(encoder, joined, context)

    return rank


def test_equal_candidates_stand_in_the_order_of_the_pool(ranked: Ranked) -> None:
    pool = _pool(*(_candidate(f"c{number}") for number in (3, 1, 2)))
    encoder = _Encoder({"c1": [0.8, 0.6]})
    [prediction] = ranked(encoder, pool, [_query("q", "c1")])
    assert prediction.output == {"candidates": ["c3", "c2", "c1"], "texts": {"c3": "c3", "c1": "c1"}}
    assert encoder.calls == [("passage", 3), ("query", 1)]  # prepared twice, embedded once


@pytest.mark.parametrize(
    ("size", "last", "tied"),
    [
        (20, None, False),
        (21, None, True),
        (25, [0.6, 0.8], False),  # a tie within the ranking, or behind it
        (25, [1 - 1e-8, 0.0], True),  # equal to six decimals
    ],
)
def test_a_tie_counts_where_it_crosses_the_cut_off(
    ranked: Ranked, size: int, last: list[float] | None, tied: bool
) -> None:
    pool = _pool(*(_candidate(f"c{number}") for number in range(size)))
    encoder = _Encoder({f"c{number}": last for number in range(20, size)} if last else None)
    [prediction] = ranked(encoder, pool, [_query("q", "c0")])
    assert (len(prediction.output["candidates"]), prediction.tied) == (20, tied)
    assert set(prediction.output) == {"candidates", "texts"}, "one target needs nothing further"


@pytest.mark.parametrize("languages", [(), ("en", "de", "fr")])
def test_the_ranking_goes_on_for_as_many_candidates_as_a_query_has_other_targets(
    ranked: Ranked, languages: tuple[str, ...]
) -> None:
    """Without them a target behind the others would be lost for the score with one target, whatever the pool is."""
    answering = [_candidate(f"t{number}", code, ["q"]) for number, code in enumerate(("en", "de", "fr"))]
    pool = _pool(*(_candidate(f"c{number:02}") for number in range(30)), *answering, languages=languages)
    [prediction] = ranked(_Encoder(), pool, [_query("q")])
    assert prediction.output["candidates"] == [f"c{number:02}" for number in range(20)]
    assert prediction.output["further"] == ["c20", "c21"]


def test_broken_vectors_are_rejected(ranked: Ranked) -> None:
    pool = _pool(_candidate("a"), _candidate("b"))
    with pytest.raises(ContractError, match=r"embed\(\) returned 1 vectors for 2 candidate texts"):
        ranked(_Encoder(lose=1), pool, [_query("q", "a")])
    with pytest.raises(ContractError, match=r"candidate texts, or NaN in them\.$"):
        ranked(_Encoder(spoil=True), pool, [_query("q", "a")])
