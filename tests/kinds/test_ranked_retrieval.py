"""Ranked retrieval: the pool, what is right for a query, and the ranking with what follows its cut-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from harness.data.pool import CandidatePool
from harness.data.records import Candidate, Prediction, RankedQuery, RetrievalPair, Row
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.methods import MethodContext
from harness.kinds.ranked_retrieval import KIND, METHODS
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


def test_a_pool_must_not_be_empty() -> None:
    with pytest.raises(DataError, match=r"^The candidate pool of 'mine' is empty\.$"):
        _pool()


def test_a_repeated_id_is_reported_with_both_places() -> None:
    with pytest.raises(DataError) as caught:
        _pool(_candidate("a"), _candidate("b"), _candidate("a", "de"))
    assert str(caught.value) == (
        "The candidate id 'a' of 'mine' occurs twice in its pool, as candidates 1 and 3; ids must be unique."
    )


def test_the_digest_depends_on_ids_and_texts_and_their_order() -> None:
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


def _read_candidate(**fields: Any) -> Candidate:
    assert KIND.candidate is not None
    return KIND.candidate(Row(fields=fields, path="pool.jsonl", line=3), CONTEXT)


def test_a_candidate_has_the_language_of_its_row_or_of_its_file() -> None:
    assert _read_candidate(id="Q1", text="x", language="ja").language == "ja"
    assert _read_candidate(id="Q1", text="x").language == "de"
    assert _read_candidate(id="Q1", text="x", answers=["q1", "q2"]).answers == ("q1", "q2")


@pytest.mark.parametrize("identifier", [None, "", 7])
def test_a_candidate_needs_a_text_id(identifier: Any) -> None:
    with pytest.raises(DataError) as caught:
        _read_candidate(id=identifier, text="x")
    assert str(caught.value) == (
        f"pool.jsonl:3: expected a candidate of 'mine' with a text id, found {identifier!r}."
    )


def test_a_candidate_needs_a_text() -> None:
    with pytest.raises(DataError, match=r"pool\.jsonl:3: expected the text field 'text' of 'mine', found id"):
        _read_candidate(id="Q1")


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


def test_a_gold_that_the_pool_names_too_counts_once() -> None:
    pool = _pool(_candidate("a", "en", ["q"]), _candidate("b", "de", ["q"]))
    [query] = _join([_query("q", "a")], pool)
    assert (query.targets, query.languages) == (("a", "b"), ("en", "de"))


def test_the_join_keeps_what_diagnosis_knows_of_a_query() -> None:
    [query] = _join([_query("q", "a", group="names", meta={"genre": "news"})], _pool(_candidate("a")))
    assert (query.group, query.meta) == ("names", {"genre": "news"})


def test_a_gold_outside_of_the_pool_is_rejected() -> None:
    with pytest.raises(DataError) as caught:
        _join([_query("q", "Q9")], _pool(_candidate("Q1"), _candidate("Q2")))
    assert str(caught.value) == (
        "The gold 'Q9' of query 'q' of 'mine' is not among the 2 candidates; the pool is of another release than "
        "the queries."
    )


def test_a_query_without_a_right_candidate_is_rejected_where_the_pool_says_what_it_answers() -> None:
    with pytest.raises(DataError) as caught:
        _join([_query("q")], _pool(_candidate("a", "en", ["r"]), _candidate("b")))
    assert str(caught.value) == "The query 'q' of 'mine' has no right candidate among the 2 of the pool."


def test_an_unlabelled_query_stays_unlabelled() -> None:
    [query] = _join([_query("q")], _pool(_candidate("a")))
    assert (query.targets, KIND.reference(query)) == ((), None)


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
        [method] = METHODS
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


@pytest.mark.parametrize(("size", "tied"), [(20, False), (21, True), (25, True)])
def test_a_tie_counts_where_it_crosses_the_cut_off(ranked: Ranked, size: int, tied: bool) -> None:
    pool = _pool(*(_candidate(f"c{number}") for number in range(size)))
    [prediction] = ranked(_Encoder(), pool, [_query("q", "c0")])
    assert (len(prediction.output["candidates"]), prediction.tied) == (20, tied)


def test_a_tie_within_or_behind_the_ranking_does_not_count(ranked: Ranked) -> None:
    pool = _pool(*(_candidate(f"c{number}") for number in range(25)))
    behind = {f"c{number}": [0.6, 0.8] for number in range(20, 25)}
    [prediction] = ranked(_Encoder(behind), pool, [_query("q", "c0")])
    assert not prediction.tied
    near = {f"c{number}": [1 - 1e-8, 0.0] for number in range(20, 25)}  # equal to six decimals
    [prediction] = ranked(_Encoder(near), pool, [_query("q", "c0")])
    assert prediction.tied


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


def test_one_target_needs_nothing_further(ranked: Ranked) -> None:
    pool = _pool(*(_candidate(f"c{number}") for number in range(30)))
    [prediction] = ranked(_Encoder(), pool, [_query("q", "c1")])
    assert set(prediction.output) == {"candidates", "texts"}
    [unlabelled] = ranked(_Encoder(), pool, [_query("q")])
    assert unlabelled.output["texts"] == {"c0": "c0"}
    assert set(unlabelled.output) == {"candidates", "texts"}


def test_broken_vectors_are_rejected(ranked: Ranked) -> None:
    pool = _pool(_candidate("a"), _candidate("b"))
    with pytest.raises(ContractError, match=r"embed\(\) returned 1 vectors for 2 candidate texts"):
        ranked(_Encoder(lose=1), pool, [_query("q", "a")])
    with pytest.raises(ContractError, match=r"candidate texts, or NaN in them\.$"):
        ranked(_Encoder(spoil=True), pool, [_query("q", "a")])
