"""From rows to examples, and from a model's answers to predictions: what is rejected, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from harness.data.records import BitextExample, Row
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, read_examples
from harness.kinds.methods import MethodContext
from harness.kinds.retrieval import nearest
from harness.languages.table import known_languages
from harness.models.capabilities import EmbedOptions, SpanAnswer
from harness.models.requests import FloatArray
from harness.running.session import Session

LABELS = ("entailment", "neutral")


def _rows(*fields: dict[str, Any]) -> list[Row]:
    return [Row(fields=item, path="f.tsv", line=line) for line, item in enumerate(fields, start=1)]


def _context(**fields: Any) -> ReadContext:
    given = {"owner": "mine", "language": "de", "split": "test", "inputs": ("text",), "labels": LABELS}
    return ReadContext(**{**given, **fields})


@pytest.fixture
def kinds(session: Session) -> dict[str, TaskKind]:
    return {kind.name: kind for kind in session.registry.kinds}


def _method_context(session: Session, task: str, pool: Sequence[Any] = ()) -> MethodContext:
    return MethodContext(
        spec=session.catalog.task(task).spec,
        language=known_languages().get("de"),
        protocol="zero_shot_transfer",
        seed=42,
        pool=pool,
    )


# Rows ---------------------------------------------------------------------------------------------------


def test_items_are_numbered_without_ids_and_labels_are_mapped_and_stripped(
    kinds: dict[str, TaskKind],
) -> None:
    kind, context = kinds["sequence_classification"], _context(label_map={"0": "entailment", "1": "neutral"})
    rows = _rows({"text": "a", "label": " 1 "}, {"text": "b", "label": 0})
    examples = read_examples(kind, rows, context)
    assert [(example.id, example.label) for example in examples] == [("1", "neutral"), ("2", "entailment")]
    fields: list[dict[str, Any]] = [{"id": "a", "text": "a", "label": 1}, {"text": "b", "label": 1}]
    for order in (1, -1):
        with pytest.raises(DataError, match=r"f\.tsv:2: expected an id in every item or in none"):
            read_examples(kind, _rows(*fields[::order]), context)


@pytest.mark.parametrize("identifier", ["", " ", "\u3000", None, 1.5, True])
def test_an_id_is_a_text_with_characters_or_a_whole_number(
    kinds: dict[str, TaskKind], identifier: object
) -> None:
    rows = _rows(
        {"id": "a", "text": "a", "label": "neutral"}, {"id": identifier, "text": "b", "label": "neutral"}
    )
    with pytest.raises(DataError, match=r"f\.tsv:2: expected the id"):
        read_examples(kinds["sequence_classification"], rows, _context())


def test_a_half_answered_set_of_questions_names_the_option_that_skips_the_others(
    kinds: dict[str, TaskKind],
) -> None:
    asked = {"question": "q?", "context": "a cat", "answers": [{"text": "cat", "start": 2}]}
    for rows in ((asked, {**asked, "answers": []}), ({**asked, "answers": []}, asked)):
        with pytest.raises(DataError) as caught:
            read_examples(kinds["span_extraction"], _rows(*rows), _context())
        assert "unanswerable: skip" in str(caught.value.hint)


def test_half_labelled_files_are_rejected(kinds: dict[str, TaskKind]) -> None:
    labelled, bare = {"text": "a", "label": "neutral"}, {"text": "b"}
    kind = kinds["sequence_classification"]
    for rows, message in (((labelled, bare), "is not labelled"), ((bare, labelled), "is labelled")):
        with pytest.raises(DataError, match=rf"f\.tsv:2: this item {message}, while earlier ones are"):
            read_examples(kind, _rows(*rows), _context())
    assert len(read_examples(kind, _rows(bare, bare), _context())) == 2


def test_a_missing_text_names_what_is_there(kinds: dict[str, TaskKind]) -> None:
    with pytest.raises(
        DataError, match=r"f\.tsv:1: expected the text field 'text' of 'mine', found label, txt"
    ):
        read_examples(kinds["sequence_classification"], _rows({"txt": "a", "label": "neutral"}), _context())
    with pytest.raises(DataError, match="expected the text field 'text' of 'mine', found int"):
        read_examples(kinds["sequence_classification"], _rows({"text": 5, "label": "neutral"}), _context())


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("sequence_classification", {"text": "a", "label": "neutral"}),
        ("span_extraction", {"question": "q", "context": "c", "answers": []}),
        ("token_tagging", {"tokens": ["a"], "tags": ["neutral"]}),
        ("bitext_retrieval", {"query": "q", "target": "t"}),
    ],
)
def test_items_share_a_cluster_by_a_field_that_every_row_has(
    kinds: dict[str, TaskKind], kind: str, fields: dict[str, Any]
) -> None:
    rows = _rows({**fields, "premise": "p1"}, {**fields, "premise": "x" * 30}, {**fields, "premise": None})
    clusters = [example.cluster for example in read_examples(kinds[kind], rows, _context(cluster="premise"))]
    assert (clusters[0], clusters[2]) == ("p1", None)
    assert len(clusters[1]) == 16, "a long text is kept as a digest"
    assert read_examples(kinds[kind], rows, _context())[0].cluster is None
    with pytest.raises(DataError, match=r"^f\.tsv:1: .*'premis'.*'mine'.*'premise'"):
        read_examples(kinds[kind], rows, _context(cluster="premis"))


def test_tags_must_be_known_and_as_many_as_tokens(kinds: dict[str, TaskKind]) -> None:
    def read(**fields: Any) -> None:
        read_examples(kinds["token_tagging"], _rows(fields), _context(labels=("NOUN", "VERB")))

    read(tokens=["a", "b"], tags=["NOUN", "VERB"])
    with pytest.raises(DataError, match=r"f\.tsv:1: the sentence has 2 tokens and 1 tags\."):
        read(tokens=["a", "b"], tags=["NOUN"])
    with pytest.raises(
        DataError,
        match=r"f\.tsv:1: token 2, 'b': .*'NOUNN'.* NOUN, VERB .*Did you mean 'NOUN'",
    ):
        read(tokens=["a", "b"], tags=["NOUN", "NOUNN"])
    with pytest.raises(DataError, match=r"expected a sentence with tokens, found none"):
        read(tokens=[], tags=[])


def test_answers_must_stand_in_their_context(kinds: dict[str, TaskKind]) -> None:
    def read(*answers: dict[str, Any]) -> list[Any]:
        fields = {"id": "q7", "question": "q", "context": "Anna schläft.", "answers": answers}
        return read_examples(kinds["span_extraction"], _rows(fields), _context())

    assert read({"text": "schläft", "start": 5})[0].answers[0].start == 5
    with pytest.raises(
        DataError, match=r"f\.tsv:1: the answer 'schläft' of question 'q7' .* character 4; found ' schläf'"
    ):
        read({"text": "schläft", "start": 4})
    with pytest.raises(DataError, match="the answer '' of question 'q7' is not in its context"):
        read({"text": "", "start": 0})


# Answers ------------------------------------------------------------------------------------------------


class _Spans:
    def __init__(self, *answers: SpanAnswer) -> None:
        self.answers = answers

    def extract_spans(self, items: Sequence[Any]) -> list[SpanAnswer]:
        return list(self.answers)


class _Tags:
    def __init__(self, *tags: list[str]) -> None:
        self.tags = tags

    def tag(self, sentences: Sequence[Any]) -> list[list[str]]:
        return list(self.tags)


class _Vectors:
    """Embeds texts as the numbers that they are: an angle in degrees."""

    def __init__(self, *, lost: int = 0, nan: bool = False) -> None:
        self.lost, self.nan = lost, nan

    def embed(self, texts: Sequence[str], *, side: str, options: EmbedOptions | None = None) -> FloatArray:
        angles = np.radians([float(text) for text in texts])[: len(texts) - self.lost]
        vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        if self.nan:
            vectors[-1, 0] = np.nan
        return vectors


def _predict(
    session: Session, kind: str, task: str, adapter: Any, examples: Sequence[Any], **given: Any
) -> Any:
    [method] = [
        method
        for method in session.registry.methods
        if method.kind == kind and method.name in {"head", "embed"}
    ]
    return method.predict(adapter, examples, _method_context(session, task, **given))


def test_spans_must_be_the_text_that_they_name(session: Session, kinds: dict[str, TaskKind]) -> None:
    fields = {"id": "q", "question": "q", "context": "Anna schläft.", "answers": []}
    examples = read_examples(kinds["span_extraction"], _rows(fields), _context())

    def predict(*answers: SpanAnswer) -> Any:
        return _predict(session, "span_extraction", "xquad", _Spans(*answers), examples)

    [prediction] = predict(SpanAnswer(text="Anna", start=0, end=4, score=0.123456789, truncated=True))
    assert prediction.output == {"text": "Anna", "start": 0, "end": 4, "score": 0.123457}
    assert prediction.truncated
    assert predict(SpanAnswer(text="", start=-1, end=-1, score=0.0))[0].output["text"] == ""
    with pytest.raises(
        ContractError, match="answered 'Anna' to question 'q', which is not its context's text at ch"
    ):
        predict(SpanAnswer(text="Anna", start=1, end=5, score=0.0))
    with pytest.raises(ContractError, match=r"extract_spans\(\) returned 0 answers to 1 questions"):
        predict()


def test_tags_must_be_as_many_as_tokens(session: Session, kinds: dict[str, TaskKind]) -> None:
    rows = _rows({"tokens": ["a", "b"]}, {"tokens": ["c"]})
    examples = read_examples(kinds["token_tagging"], rows, _context())

    def predict(*tags: list[str]) -> Any:
        return _predict(session, "token_tagging", "udpos", _Tags(*tags), examples)

    assert [prediction.output for prediction in predict(["X", "Y"], ["Z"])] == [["X", "Y"], ["Z"]]
    with pytest.raises(ContractError, match=r"tag\(\) returned 1 sentences; expected 2"):
        predict(["X", "Y"])
    with pytest.raises(ContractError, match=r"tag\(\) returned 1 tags for the 2 tokens of sentence '1'"):
        predict(["X"], ["Z"])


def test_the_nearest_of_the_whole_pool_is_taken(session: Session) -> None:
    pool = [
        BitextExample(id=str(angle), query=str(angle + 4), target=str(angle)) for angle in (0, 10, 20, 30)
    ]
    predictions = _predict(session, "bitext_retrieval", "tatoeba", _Vectors(), pool[1:3], pool=pool)
    assert [(item.id, item.output["candidate"]) for item in predictions] == [("10", "10"), ("20", "20")]
    assert predictions[0].output["similarity"] == pytest.approx(np.cos(np.radians(4)), abs=1e-6)
    assert predictions[0].output["texts"] == {"10": "10"}
    assert [prediction.tied for prediction in predictions] == [False, False]
    twins = [pool[0], BitextExample(id="again", query="9", target="0"), pool[1]]
    found = _predict(session, "bitext_retrieval", "tatoeba", _Vectors(), twins, pool=twins)
    assert [item.tied for item in found] == [True, False, False]
    for adapter in (_Vectors(lost=1), _Vectors(nan=True)):
        with pytest.raises(
            ContractError, match=r"embed\(\) returned \d vectors for \d query texts, or NaN in them"
        ):
            _predict(session, "bitext_retrieval", "tatoeba", adapter, pool, pool=pool)


def test_nearest_agrees_with_a_plain_matrix_product_and_takes_the_first_of_equals() -> None:
    eye = cast("FloatArray", np.eye(2, dtype=np.float32))
    best, similarity = nearest(eye, np.concatenate([eye, eye]))
    assert (best.tolist(), similarity.tolist()) == ([0, 1], [1.0, 1.0])
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(2800, 8))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    queries, candidates = vectors[:2500], vectors[2500:]
    best, similarity = nearest(queries, candidates)
    product = queries @ candidates.T
    assert (best == product.argmax(axis=1)).all()
    assert similarity == pytest.approx(product.max(axis=1), abs=1e-6)


def test_the_context_of_a_test_split_is_all_that_its_spec_says(session: Session) -> None:
    copa, nli = (session.catalog.task(name).spec for name in ("xcopa", "xnli"))
    found = ReadContext.of_test(copa, "sw", {"0": "choice1"})
    assert (found.owner, found.language, found.split) == ("xcopa", "sw", "test")
    assert (found.inputs, found.labels) == (("premise", "question"), ("choice1", "choice2"))
    assert found.label_map == {"0": "choice1"}
    assert found.phrases["question"]["cause"] == "What was the cause?"
    assert nli.cluster is not None
    assert ReadContext.of_test(nli, "sw", {}).cluster == nli.cluster
