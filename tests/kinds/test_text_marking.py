"""Text marking: spans from rows and from tagged sentences, pre-tokens, answers of taggers, runs on the sample."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.api import evaluate
from harness.data.records import MarkedText, Row, TaggedSpan
from harness.errors import ContractError, DataError, SpecError
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.methods import MethodContext
from harness.kinds.tagging import METHODS, TEXT_MARKING as KIND, pretokens, spans_of_pretokens
from harness.languages.character import splits_combination
from harness.languages.table import known_languages
from harness.metrics.catalog import METRICS
from harness.metrics.metric import MetricContext
from harness.running.session import Session, open_session

UPOS = ("ADJ", "ADP", "ADV", "DET", "NOUN", "PROPN", "PUNCT", "VERB")
BIO = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
SPAN_F1 = next(metric for metric in METRICS if metric.name == "span_f1")


def _read(*rows: Mapping[str, Any], labels: Sequence[str] = BIO, language: str = "en", **more: Any) -> Any:
    context = ReadContext(owner="mine", language=language, split="test", labels=tuple(labels), **more)
    numbered = [Row(fields=fields, path="f.jsonl", line=line) for line, fields in enumerate(rows, start=1)]
    return read_examples(KIND, numbered, context)


def _marked(example: MarkedText) -> list[tuple[str, str]]:
    return [(example.text[span.start : span.end], span.tag) for span in example.spans or ()]


# Spans of rows ------------------------------------------------------------------------------------------


def test_spans_are_sorted_and_their_tags_mapped() -> None:
    text = "Ana lives in Łódź."
    [example] = _read(
        {"id": "a", "text": text, "spans": [[13, 17, "5"], [0, 3, "PER"]]}, label_map={"5": "LOC"}
    )
    assert example == MarkedText(
        id="a",
        text=text,
        spans=(TaggedSpan(start=0, end=3, tag="PER"), TaggedSpan(start=13, end=17, tag="LOC")),
    )
    assert KIND.reference(example) == [[0, 3, "PER"], [13, 17, "LOC"]]


def test_items_without_spans_are_unlabelled_and_empty_lists_are_labels() -> None:
    [bare, *_] = _read({"text": "a"}, {"text": "b", "spans": None})
    assert (bare.id, bare.spans, KIND.reference(bare)) == ("1", None, None)
    [labelled] = _read({"text": "a", "spans": []})
    assert KIND.reference(labelled) == []
    with pytest.raises(DataError, match=r"f\.jsonl:2: this item is not labelled, while earlier ones are"):
        _read({"text": "a", "spans": []}, {"text": "b"})
    rows = [{"text": "a", "spans": [], "d": "p"}, {"tokens": ["a"], "tags": ["O"], "d": "p"}]
    assert [example.cluster for example in _read(*rows, cluster="d")] == ["p", "p"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "", "spans": []}, r"f\.jsonl:1: item '1': expected a text, found an empty one"),
        ({"txt": "a", "spans": []}, "expected the text field 'text' of 'mine'"),
        ({"tokens": ["a", "b"], "tags": ["O"]}, "the sentence has 2 tokens and 1 tags"),
        ({"tokens": ["a"], "tags": ["B-PERS"]}, "'B-PERS'"),
        ({"tokens": ["a", ""], "tags": ["O", "O"]}, "the tokens do not make its text: token 2 is empty"),
    ],
)
def test_rows_without_a_text_or_with_wrong_tags_are_rejected(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        _read(row)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 9, "PER"]], "expected a span with 0 <= start < end <= 8"),
        ([[-1, 2, "PER"]], "expected a span with 0 <= start"),
        ([[3, 3, "PER"]], "expected a span with 0 <= start < end"),
        ([["0", 3, "PER"]], r"expected a span with .* found \['0', 3, 'PER'\]"),
        ([[True, 3, "PER"]], "expected a span with 0 <= start"),
        ([[0, 3]], r"expected a span as \[start, end, tag\], found \[0, 3\]"),
        ("PER", r"expected 'spans' to be a list of \[start, end, tag\], found 'PER'"),
        ([[2, 6, "LOC"], [0, 3, "PER"]], r"do not overlap, found \[0, 3, 'PER'\] and \[2, 6, 'LOC'\]"),
        ([[0, 2, "B-PER"]], r"'B-PER'.* PER, ORG, LOC \(task 'mine'\)\. Did you mean 'PER'"),
        ([[0, 1, "PER"]], "the offset 1 of the span .* lies inside the combined character 'e\u0301'"),
        ([[1, 3, "PER"]], "the offset 1 of the span .* lies inside the combined character"),
        ([[7, 8, "PER"]], "the offset 7 of the span .* lies inside the combined character 'क\u093f'"),
    ],
)
def test_spans_that_are_none_are_rejected_by_file_and_item(spans: Any, message: str) -> None:
    text = "e\u0301te\u0301 क\u093f"
    assert len(text) == 8
    with pytest.raises(DataError, match=rf"f\.jsonl:1: item 'x': .*{message}"):
        _read({"id": "x", "text": text, "spans": spans})


# Spans of tagged sentences ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("I-PER I-PER O B-LOC I-LOC", [("Ice Cube", "PER"), ("New York", "LOC")]),
        ("B-PER I-LOC O B-LOC B-LOC", [("Ice", "PER"), ("Cube", "LOC"), ("New", "LOC"), ("York", "LOC")]),
        ("O I-ORG I-ORG I-LOC O", [("Cube in", "ORG"), ("New", "LOC")]),
        ("I-PER B-PER I-PER O O", [("Ice", "PER"), ("Cube in", "PER")]),
        ("O O O O O", []),
    ],
)
def test_entities_follow_the_lenient_rule(tags: str, entities: list[tuple[str, str]]) -> None:
    [example] = _read({"tokens": "Ice Cube in New York".split(), "tags": tags.split()})
    assert example.text == "Ice Cube in New York"
    assert _marked(example) == entities


def test_tokens_are_found_in_the_text_that_the_row_has() -> None:
    fields = {"tokens": ["Er", "geht", "zum", "See", "."], "text": "Er geht  zum See.", "sent_id": "s"}
    tags = ["PROPN", "VERB", "ADP", "NOUN", "PUNCT"]
    [example] = _read({**fields, "tags": tags}, labels=UPOS)
    assert _marked(example) == list(zip(fields["tokens"], tags, strict=True))
    assert (example.text, example.meta) == ("Er geht  zum See.", {"sent_id": "s"})
    with pytest.raises(
        DataError, match=r"f\.jsonl:1: item '7': .* token 3, 'zum', is not at 'zur See\.', character 8"
    ):
        _read({**fields, "tags": tags, "text": "Er geht zur See.", "id": "7"}, labels=UPOS)


def test_sentences_without_text_get_one_by_their_language() -> None:
    row = {"tokens": ["東", "京", "（", "都", "）"], "tags": ["B-LOC", "I-LOC", "O", "O", "O"]}
    assert [(item.text, _marked(item)) for item in _read(row, language="ja")] == [
        ("東京（都）", [("東京", "LOC")])
    ]
    [unlabelled] = _read({"tokens": ["a", ","], "tags": None})
    assert (unlabelled.text, unlabelled.spans) == ("a,", None)


def test_fused_words_keep_their_surface_and_their_tag(tmp_path: Path, session: Session) -> None:
    path = tmp_path / "es.conllu"
    lines = [
        "1-2\tDámelo\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No",
        "1\tDa\t_\tVERB\t_\t_\t0\t_\t_\t_",
        "2\tmelo\t_\tPRON\t_\t_\t1\t_\t_\t_",
        "3\t.\t_\tPUNCT\t_\t_\t1\t_\t_\t_",
    ]
    reader = session.registry.readers.get("conllu")
    context = ReadContext(owner="mine", language="es", split="test", labels=(*UPOS, "PRON"))
    for text in (["# text = Dámelo ."], []):
        path.write_text("\n".join([*text, *lines, "", ""]), encoding="utf-8")
        [example] = read_examples(KIND, reader.read([path], {}), context)
        assert _marked(example) == [("Dámelo", "VERB"), (".", "PUNCT")]
        assert example.text == ("Dámelo ." if text else "Dámelo.")
        with pytest.raises(DataError, match=r"token 1, 'Da'.*'Dámelo.*tokens: fused"):
            read_examples(KIND, reader.read([path], {"tokens": "words"}), context)


# Answers ------------------------------------------------------------------------------------------------


class _Tagger:
    def __init__(self, *tags: list[str]) -> None:
        self.tags = tags
        self.seen: list[list[str]] = []

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        self.seen = [list(sentence) for sentence in sentences]
        return list(self.tags)


def _predict(session: Session, tagger: _Tagger, *texts: str, task: str = "udpos_raw") -> list[Any]:
    context = MethodContext(
        spec=session.catalog.task(task).spec,
        language=known_languages().get("zh"),
        protocol="frozen",
        seed=1,
    )
    examples = [MarkedText(id=str(number), text=text, spans=None) for number, text in enumerate(texts)]
    [head] = [method for method in METHODS if (method.kind, method.name) == (KIND.name, "head")]
    return [prediction.output["spans"] for prediction in head.predict(tagger, examples, context)]


def test_the_tagger_sees_pretokens_and_no_empty_sentence(session: Session) -> None:
    tagger = _Tagger(["NOUN", "PUNCT"], ["NUM"])
    assert _predict(session, tagger, "Ana.", " \ufeff ", " 12") == [
        [[0, 3, "NOUN"], [3, 4, "PUNCT"]],
        [],
        [[1, 3, "NUM"]],
    ]
    assert tagger.seen == [["Ana", "."], ["12"]]


def test_neighbours_with_one_tag_are_one_word_only_without_spaces(session: Session) -> None:
    tagger = _Tagger("PROPN PROPN NOUN NOUN NOUN NUM NUM PUNCT PUNCT".split())
    [spans] = _predict(session, tagger, "東京 都庁 舎2 3..")
    tags = " ".join(f"{start}-{end}:{tag}" for start, end, tag in spans)
    assert tags == "0-2:PROPN 3-5:NOUN 6-7:NOUN 7-8:NUM 9-10:NUM 10-11:PUNCT 11-12:PUNCT"
    entities = _Tagger("I-PER I-PER I-PER O B-LOC I-PER".split())
    assert _predict(session, entities, "Dr. Dre in Bonn 東", task="wikiann_raw") == [
        [[0, 7, "PER"], [11, 15, "LOC"], [16, 17, "PER"]]
    ]


def test_tags_must_be_as_many_as_pretokens(session: Session) -> None:
    with pytest.raises(ContractError, match=r"tag\(\) returned 1 sentences; expected 2"):
        _predict(session, _Tagger(["X"]), "a", "b")
    with pytest.raises(ContractError, match=r"tag\(\) returned 1 tags for the 2 pre-tokens of text '0'"):
        _predict(session, _Tagger(["X"]), "a.")


words = st.lists(
    st.sampled_from(["Ana", "e\u0301te\u0301", "12", "(", ",", "Łódź", "किताब"]), min_size=1, max_size=9
)


@given(st.data(), words, st.sampled_from([("bio", BIO), ("flat", UPOS)]))
def test_gold_tags_on_pretokens_that_are_the_tokens_are_all_right(
    data: st.DataObject, tokens: list[str], tag_set: tuple[str, tuple[str, ...]]
) -> None:
    scheme, labels = tag_set
    size = len(tokens)
    tags = data.draw(st.lists(st.sampled_from(labels), min_size=size, max_size=size))
    [example] = _read({"tokens": tokens, "tags": tags}, labels=labels)
    pieces = pretokens(example.text)
    assert [example.text[piece.start : piece.end] for piece in pieces] == tokens
    found = [[span.start, span.end, span.tag] for span in spans_of_pretokens(pieces, tags, scheme)]
    gold = KIND.reference(example)
    assert found == gold
    expected = 1.0 if gold else 0.0
    assert SPAN_F1.compute([{"spans": found}], [gold], MetricContext(language="en")).value == expected


# Specs and runs -----------------------------------------------------------------------------------------

SPEC = """
task: {name}
kind: {kind}
version: 1
description: d
citation: c
license: l
labels: [O, B-PER, I-PER, B-ORG, I-ORG, B-LOC, I-LOC]
metrics: [{metric}]
transfer: {{source: en, stages: [ner], recipe: quick}}
splits:
  train: {{local: "ner/train-{{language}}.tsv", reader: tagged}}
  test: {{local: "ner/test-{{language}}.tsv", reader: tagged}}
languages: {{en: {{}}, de: {{}}}}
"""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("scheme: bio", "scheme: flat", "these labels are BIO tags, so 'scheme' must be 'bio'"),
        ("[O, B-PER", "[B-PER", "the scheme 'bio'.* 'B-PER'"),
        ("I-LOC]", "LOC]", "the scheme 'bio'"),
        ("scheme: bio\n", "", "the key 'scheme' is missing"),
        ("[span_f1]", "[chunk_f1]", "the metric 'chunk_f1' scores token_tagging"),
    ],
)
def test_labels_and_metrics_must_fit(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = SPEC.format(name="mine", kind="text_marking\nscheme: bio", metric="span_f1").replace(
        "[ner]", "[mine]"
    )
    assert before in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(SpecError, match=message):
        session = open_session([path])
        from harness.checks.spec_checks import check_task

        check_task(session.catalog.task("mine"), session.registry, session.catalog)


@pytest.fixture
def ner(tmp_path: Path) -> Callable[..., Any]:
    """Run small token and raw-text tasks that share their training data; returns the run."""
    sentences = [
        "Ana\tB-PER\nKova\tI-PER\nlives\tO\nin\tO\nBonn\tB-LOC\n.\tO\n",
        "Bonn\tI-LOC\nis\tO\nold\tO\n.\tO\n",
        "old\tO\nAna\tI-PER\nis\tO\nin\tO\nBonn\tB-LOC\n,\tO\nBonn\tI-LOC\n",
    ]
    for name in ("train-en", "test-en", "test-de"):
        path = tmp_path / "data" / "ner" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(sentences), encoding="utf-8")
    paths = []
    for name, kind, metric in (("ner", "token_tagging", "chunk_f1"), ("ner_raw", "text_marking", "span_f1")):
        more = "\nscheme: bio" if kind == "text_marking" else ""
        paths.append(tmp_path / f"{name}.yaml")
        paths[-1].write_text(SPEC.format(name=name, kind=kind + more, metric=metric), encoding="utf-8")

    def run(**settings: Any) -> Any:
        return evaluate(
            ["ner", "ner_raw"],
            "baseline:char-ngram",
            data=tmp_path / "data",
            tasks_from=tuple(paths),
            output=tmp_path / "run",
            **settings,
        )

    return run


def test_token_and_span_scores_of_one_fit_agree_where_pretokens_are_the_tokens(
    ner: Callable[..., Any],
) -> None:
    finished = ner()
    cells = {(cell.task, cell.language): cell for cell in finished.cells}
    assert [cell.status for cell in cells.values()] == ["ok"] * 4, cells
    assert len({cell.fit for cell in cells.values()}) == len(finished.results.fits) == 1
    for language in ("en", "de"):
        in_tokens = cells["ner", language].metrics["chunk_f1"].value
        assert cells["ner_raw", language].metrics["span_f1"].value == pytest.approx(in_tokens)
        assert in_tokens > 0.5, "the tagger has seen these sentences"
        items = list(finished.records(cells["ner_raw", language]))
        # The gold data begins entities with I-, also after an entity that a comma ends.
        assert items[2].reference == [[4, 7, "PER"], [14, 18, "LOC"], [20, 24, "LOC"]]
        assert items[2].scores["span_f1"][2] == 3


@pytest.mark.parametrize("model", ["baseline:char-ngram", "baseline:majority"])
def test_a_baseline_tags_the_raw_text_of_the_sample(tmp_path: Path, model: str) -> None:
    finished = evaluate(
        "udpos:de+zh,udpos_raw:de+zh".split(","),
        model,
        data="sample",
        recipe="quick",
        train_limit=30,
        output=tmp_path / "run",
    )
    cells = {(cell.task, cell.language): cell for cell in finished.cells}
    assert {cell.status for cell in cells.values()} == {"ok"}
    assert len({cell.fit for cell in cells.values()}) == 1
    raw = cells["udpos_raw", "de"]
    assert raw.metrics.keys() == {"span_f1", "span_precision", "span_recall"}
    assert raw.n == raw.size
    assert raw.n > 10
    for item in finished.records(raw):
        assert item.prediction["spans"]
        assert [span[:2] for span in item.reference] == [span[:2] for span in item.prediction["spans"]]
    # German pre-tokens are the words of these sentences, so that spans are right where tags are.
    tokens = cells["udpos", "de"].metrics["token_accuracy"].value
    assert raw.metrics["span_f1"].value == pytest.approx(tokens)
    assert 0 < tokens <= 1
    assert cells["udpos_raw", "zh"].metrics["span_f1"].value < 1


def _pieces(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in pretokens(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Dr. Dre's 2nd CD (1999)…", ["Dr", ".", "Dre", "'", "s", "2nd", "CD", "(", "1999", ")", "…"]),
        ("e\u0301te\u0301 naïve", ["e\u0301te\u0301", "naïve"]),
        ("किताबें पढ़ी।", ["किताबें", "पढ़ी", "।"]),
        ("olori \u0300\u0301n síl", ["olori", "\u0300\u0301n", "síl"]),
        ("می\u200cروم.", ["می\u200cروم", "."]),
        ("東京タワー2024年。", ["東", "京", "タ", "ワ", "ー", "2024", "年", "。"]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("ที่นี่ Thai", ["ที่", "นี่", "Thai"]),
        ("မြန်မာ ၁၂", ["မြ", "န်", "မာ", "၁၂"]),
        ("ខ្មែរ", ["ខ្", "មែ", "រ"]),
        ("한국어 x東y", ["한국어", "x", "東", "y"]),
        ("👩\u200d🚀👍🏽!\ufe0f", ["👩\u200d🚀", "👍", "🏽", "!\ufe0f"]),
        ("a\u200bb\u00a0c\u3000d", ["a", "b", "c", "d"]),
        ("\ufeff a \u200e\u200d\u200eb\u200e", ["a", "\u200e\u200d\u200eb\u200e"]),
        (" \ufeff\n", []),
        ("", []),
    ],
)
def test_the_rule(text: str, pieces: list[str]) -> None:
    assert _pieces(text) == pieces
    assert [piece.unspaced for piece in pretokens("x 東京1。")] == [False, True, True, False, False]


@given(st.text(st.characters() | st.sampled_from("a1 東ก\u0301\u094d\u200d\u200c\u200b👩(.")))
def test_pretokens_are_in_order_and_lose_nothing_visible(text: str) -> None:
    found = pretokens(text)
    covered = set()
    before = 0
    for piece in found:
        assert before <= piece.start < piece.end <= len(text)
        covered |= set(range(piece.start, piece.end))
        before = piece.end
    for position, character in enumerate(text):
        if position not in covered:
            assert character.isspace() or unicodedata.category(character) == "Cf"


@given(st.text(st.sampled_from("ab1 東ก\u0301\u094d\u3099(.़"), max_size=12))
def test_no_pretoken_cuts_a_combined_character(text: str) -> None:
    for piece in pretokens(text):
        assert not splits_combination(text, piece.start)
        assert not splits_combination(text, piece.end)
