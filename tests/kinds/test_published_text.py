"""Raw text and spans of the published files themselves: every token stands where its span says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.builtin import harness_register_readers
from harness.data.records import MarkedText, Row
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.tagging import TEXT_MARKING as KIND, pretokens
from harness.metrics.chunk import chunks

pytestmark = pytest.mark.thorough

UPOS = tuple("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
BIO = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
BY_NAME = {reader.name: reader for reader in harness_register_readers()}

TREEBANKS = {
    # File below ud/: sentences, words (fused)
    "UD_Chinese-GSD/zh_gsd-ud-test.conllu": (500, 12_010),
    "UD_English-EWT/en_ewt-ud-test.conllu": (2_077, 24_740),
    "UD_English-EWT/en_ewt-ud-train.sample1500.conllu": (1_510, 23_608),
    "UD_German-GSD/de_gsd-ud-test.conllu": (977, 16_225),
    "UD_Hindi-PUD/hi_pud-ud-test.conllu": (1_000, 23_829),
    "UD_Tagalog-TRG/tl_trg-ud-test.conllu": (128, 734),
    "UD_Tamil-TTB/ta_ttb-ud-dev.conllu": (80, 1_129),
    "UD_Tamil-TTB/ta_ttb-ud-test.conllu": (120, 1_772),
    "UD_Tamil-TTB/ta_ttb-ud-train.conllu": (400, 5_734),
    "UD_Telugu-MTG/te_mtg-ud-dev.conllu": (131, 662),
    "UD_Telugu-MTG/te_mtg-ud-test.conllu": (146, 721),
    "UD_Telugu-MTG/te_mtg-ud-train.conllu": (1_051, 5_082),
    "UD_Turkish-IMST/tr_imst-ud-test.conllu": (1_100, 9_750),
    "UD_Vietnamese-VTB/vi_vtb-ud-test.conllu": (800, 11_692),
    "UD_Wolof-WTB/wo_wtb-ud-test.conllu": (470, 10_049),
    "UD_Yoruba-YTB/yo_ytb-ud-test.conllu": (317, 8_198),
}
WIKIANN = {
    # Language of wikiann/dev-*.tsv: sentences, entities
    "ar": (10_000, 11_267),
    "hi": (1_000, 1_226),
    "ml": (1_000, 1_185),
    "my": (100, 127),
    "ta": (1_000, 1_220),
    "ur": (1_000, 1_019),
    "yo": (100, 107),
}


def _both(
    path: Path, reader: str, language: str, labels: tuple[str, ...]
) -> tuple[list[Row], list[MarkedText]]:
    options = {"language": language} if reader == "conllu" else {}
    rows = list(BY_NAME[reader].read([path], options))
    context = ReadContext(owner="published", language=language, split="test", labels=labels)
    return rows, read_examples(KIND, rows, context)


def _visible(text: str) -> str:
    return re.sub("[\\s\u200b\u200c]", "", text)


def _surfaces(example: MarkedText) -> list[str]:
    return [_visible(example.text[span.start : span.end]) for span in example.spans or ()]


@pytest.mark.parametrize("name", TREEBANKS)
def test_every_word_of_a_treebank_is_found_in_its_text(data_root: Path, name: str) -> None:
    language = name.rpartition("/")[2].partition("_")[0]
    rows, examples = _both(data_root / "ud" / name, "conllu", language, UPOS)
    words = 0
    for row, example in zip(rows, examples, strict=True):
        assert example.text == row.fields["text"]
        assert _surfaces(example) == [_visible(token) for token in row.fields["tokens"]]
        assert [span.tag for span in example.spans or ()] == list(row.fields["tags"])
        words += len(example.spans or ())
    assert (len(examples), words) == TREEBANKS[name]


def test_the_text_is_the_same_without_its_comment(data_root: Path, tmp_path: Path) -> None:
    """``SpaceAfter=No`` and ``# text`` say the same in the treebanks, but for the width of spaces."""
    for name in TREEBANKS:
        path = data_root / "ud" / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        bare = tmp_path / path.name
        bare.write_text("".join(line for line in lines if not line.startswith("# text =")), encoding="utf-8")
        with_text, without = (BY_NAME["conllu"].read([file], {}) for file in (path, bare))
        for row, other in zip(with_text, without, strict=True):
            assert other.fields["text"].split() == row.fields["text"].split()


@pytest.mark.parametrize("language", WIKIANN)
def test_every_entity_of_wikiann_has_its_tokens(data_root: Path, language: str) -> None:
    rows, examples = _both(data_root / "wikiann" / f"dev-{language}.tsv", "tagged", language, BIO)
    entities = reachable = 0
    for row, example in zip(rows, examples, strict=True):
        tokens, found = row.fields["tokens"], chunks(row.fields["tags"])
        assert _visible(example.text) == _visible("".join(tokens))
        assert _surfaces(example) == [_visible("".join(tokens[first : last + 1])) for _, first, last in found]
        assert [span.tag for span in example.spans or ()] == [kind for kind, _, _ in found]
        pieces = pretokens(example.text)
        starts, ends = {piece.start for piece in pieces}, {piece.end for piece in pieces}
        entities += len(found)
        reachable += sum(span.start in starts and span.end in ends for span in example.spans or ())
    assert (len(examples), entities) == WIKIANN[language]
    # A tagger can find all entities but those that end with an invisible character.
    assert entities - 1 <= reachable <= entities


def test_unlabelled_files_have_texts_and_no_spans(data_root: Path) -> None:
    path = data_root / "wikiann" / "unlabelled-test" / "test-ta.tsv"
    examples: list[Any] = _both(path, "tagged", "ta", BIO)[1]
    assert all(example.text and example.spans is None for example in examples)
