"""What the reader of the tasks gives: on the treebanks of these tests, on the sample, and on released data."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import f1_score

from harness.data.readers.conllu import read_sentences, text_of
from harness.data.records import Row
from harness.errors import DataError, HarnessError, UsageError
from harness.kinds.kind import ReadContext, read_examples
from harness.running.session import open_session
from harness_vyakarana.colorless import generate_file
from harness_vyakarana.donors import DEFAULT
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.readers import MASK_WORD, READERS
from harness_vyakarana.treebank import Job, sentence_text, source_of, variant_of

SAMPLE = Path(__file__).resolve().parents[2] / "task_specs/harness_task_specs/sample/vyakarana"
READER = READERS[0]


def rows(path: Path, task: str, inputs: str | None = None) -> list[Row]:
    return list(READER.read([path], {"task": task} | ({} if inputs is None else {"inputs": inputs})))


def fields(path: Path, task: str, inputs: str | None = None) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in rows(path, task, inputs)]


@pytest.fixture
def hindi_file(own: Path) -> Path:
    return own / "hi_own-ud-test.conllu"


@pytest.mark.parametrize(
    ("name", "source", "variant"),
    [
        ("s1-org2", "s1", "org2"),
        ("s1", "s1", None),
        ("a-organ2", "a-organ2", None),
        ("a-org2-org1", "a-org2", "org1"),
        ("-org1", "-org1", None),
    ],
)
def test_variants_are_recognised_by_the_id(name: str, source: str, variant: str | None) -> None:
    assert (source_of(name), variant_of(name)) == (source, variant)


def test_parts_of_speech_are_those_of_words_not_of_ranges(own: Path) -> None:
    row = fields(own / "ta_own-ud-test.conllu", "pos")[2]
    assert row == {
        "id": "ta-03",
        "source": "ta-03",
        "group": None,
        "meta": {},
        "tokens": ["மரங்கள்", "உம்", "வீடுகள்", "உம்", "உயர்ந்தன", "."],
        "tags": ["NOUN", "PART", "NOUN", "PART", "VERB", "PUNCT"],
    }


def test_depth_has_a_sentence_and_a_class(hindi_file: Path, tmp_path: Path) -> None:
    row = rows(hindi_file, "stdp")[2]
    assert row.fields["sentence"] == "मेरी बहन पुराने बाज़ार से लौटी थी ।"
    assert (row.fields["label"], row.line) == ("2", 23)
    chain = tmp_path / "chain.conllu"
    for depth, label in ((14, "14"), (15, "15+"), (16, "15+")):
        lines = "".join(f"{n}\tw\tw\tX\t_\t_\t{n - 1}\tdep\t_\t_\n" for n in range(1, depth + 2))
        chain.write_text(f"# sent_id = s\n{lines}\n", encoding="utf-8")
        assert fields(chain, "stdp")[0]["label"] == label


def test_case_has_two_views_with_the_same_items(hindi_file: Path) -> None:
    full, bare = fields(hindi_file, "gcm"), fields(hindi_file, "gcm", "case_only")
    assert full == fields(hindi_file, "gcm", "full")
    assert full[2]["labels"] == ["Acc,Gen", "Nom", "Acc", "Acc", None, None, None, None]
    assert bare[2]["tokens"] == ["मेरी", "बहन", "पुराने", "बाज़ार"]
    assert bare[2]["labels"] == ["Acc,Gen", "Nom", "Acc", "Acc"]
    for one, other in zip(full, bare, strict=True):
        assert one["id"] == other["id"]
        assert [label for label in one["labels"] if label is not None] == other["labels"]
    assert len(full) == len(fields(hindi_file, "pos")) - 1, "'रुको ज़रा।' has no case"


def test_agreement_has_three_views(hindi_file: Path) -> None:
    masked, prefix, strict = (fields(hindi_file, "sva", view) for view in ("masked", "prefix", "strict"))
    assert masked == fields(hindi_file, "sva")
    [item] = [row for row in masked if row["source"] == "hi-03"]
    assert item["id"] == "hi-03:6"
    assert item["sentence"] == f"मेरी बहन पुराने बाज़ार से {MASK_WORD} थी ।"
    assert (item["label"], item["meta"]) == ("Sing-Fem", {})
    assert [row["id"] for row in prefix] == [row["id"] for row in masked]
    [item] = [row for row in prefix if row["source"] == "hi-03"]
    assert item["sentence"] == "मेरी बहन पुराने बाज़ार से"
    [item] = [row for row in strict if row["source"] == "hi-03"]
    assert (item["sentence"], item["meta"]) == ("मेरी बहन पुराने बाज़ार से", {"attractors": "1"})
    assert {row["id"] for row in strict} < {row["id"] for row in prefix}
    two = [row["id"] for row in masked if row["source"] == "hi-09"]
    assert two == ["hi-09:5", "hi-09:9"], "a sentence has an item for each of its verbs"


VERB_FIRST = """# sent_id = s-org3
1\tआया\tआ\tVERB\t_\tGender=Masc|Number=Sing\t0\troot\t_\t_
2\tWORD\tराम\tPROPN\t_\tCase=Nom|Gender=Masc|Number=Sing\t1\tnsubj\t_\t_

"""


def test_an_empty_prefix_is_kept_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(VERB_FIRST.replace("WORD", "राम"), encoding="utf-8")
    [prefix], [strict], [masked] = (fields(path, "sva", view) for view in ("prefix", "strict", "masked"))
    assert (prefix["sentence"], prefix["meta"]) == ("", {"variant": "org3", "prefix": "empty"})
    assert strict["meta"] == {"variant": "org3", "attractors": "0", "prefix": "empty"}
    assert (masked["sentence"], masked["meta"], masked["group"]) == (
        "[MASK] राम",
        {"variant": "org3"},
        "org3",
    )


def test_bad_input_is_an_error(tmp_path: Path, hindi_file: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(VERB_FIRST.replace("WORD", MASK_WORD), encoding="utf-8")
    assert len(fields(path, "sva", "prefix")) == 1
    with pytest.raises(DataError, match=r"a\.conllu:1: .*'s-org3' .*'\[MASK\]'"):
        rows(path, "sva", "masked")
    path.write_text(VERB_FIRST.removeprefix("# sent_id = s-org3\n"), encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.conllu:1: .*sent_id"):
        rows(path, "pos")
    path.write_text("# sent_id = s\n1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.conllu:1: .*'s' "):
        rows(path, "stdp")
    for given, found in (
        ({}, r"'task': pos, stdp, gcm, sva"),
        ({"task": "sav"}, r"'pos' or 'stdp' or 'gcm' or 'sva'.*'sav'"),
        ({"task": "gcm", "inputs": "masked"}, r"'full' or 'case_only'.*'masked'"),
        ({"task": "pos", "inputs": "full"}, r"'inputs' .*'pos'"),
    ):
        with pytest.raises(UsageError, match=found):
            list(READER.read([hindi_file], given))


# The specs and the sample --------------------------------------------------------------------------------


def test_the_spec_names_the_word_that_the_reader_writes() -> None:
    spec = open_session().catalog.task("vyakarana_sva").spec
    assert getattr(spec, "mask_word", None) == MASK_WORD


@pytest.mark.parametrize("path", sorted(SAMPLE.rglob("*.conllu")), ids=lambda path: "-".join(path.parts[-3:]))
def test_the_sample_is_sound(path: Path) -> None:
    sentences = list(read_sentences(path, named=True))
    text = path.read_text(encoding="utf-8")
    assert "".join(map(sentence_text, sentences)) == text == unicodedata.normalize("NFC", text)
    for sentence in sentences:
        texts = [line for line in sentence.comments if line.startswith("# text = ")]
        assert texts == [f"# text = {text_of(sentence.tokens)}"] * (path.parts[-2] == "original")
        for word in sentence.words:
            names = [pair.partition("=")[0] for pair in word.feats.split("|")]
            assert names == sorted(set(names)), word


@pytest.mark.parametrize("language", ["hi", "ta", "ur", "mr"])
def test_no_sentence_of_a_training_file_is_tested_on(language: str) -> None:
    texts = [
        text_of(sentence.tokens)
        for split in ("train", "dev", "test")
        for sentence in list(read_sentences(SAMPLE / language / "original" / f"{split}.conllu"))
    ]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("language", ["hi", "ta"])
@pytest.mark.parametrize(("split", "origin"), [("train", "test"), ("dev", "dev"), ("test", "train")])
def test_the_sample_is_what_the_generator_makes(
    language: str, split: str, origin: str, tmp_path: Path, grammars: dict[str, Grammar]
) -> None:
    """Of the first sentences of a split, with donors from all of it; without notes in comments and MISC."""
    whole = SAMPLE / language / "original" / f"{origin}.conllu"
    kept = list(read_sentences(SAMPLE / language / "cg" / f"{split}.conllu"))
    count = len({source_of(sentence.sent_id or "") for sentence in kept})
    part, made = tmp_path / "part.conllu", tmp_path / "made.conllu"
    sentences = list(read_sentences(whole))[:count]
    part.write_text("".join(map(sentence_text, sentences)), encoding="utf-8")
    generate_file(
        Job(source=part, target=made, language=language), grammars[language], DEFAULT, pool_file=whole
    )
    switched = list(read_sentences(SAMPLE / language / "cscg" / f"{split}.conllu"))
    found = list(read_sentences(made))
    assert len(found) == 4 * count
    for own, other, latin in zip(found, kept, switched, strict=True):
        assert own.sent_id == other.sent_id == latin.sent_id
        for token, green, mixed in zip(own.tokens, other.tokens, latin.tokens, strict=True):
            assert (token.form, token.lemma, token.feats) == (green.form, green.lemma, green.feats)
            assert (token.id, token.feats, token.head) == (mixed.id, mixed.feats, mixed.head)
        assert all(word.form.isascii() for word in latin.words)


# Released data -------------------------------------------------------------------------------------------


def examples(path: Path, task: str, inputs: str | None = None) -> list[Any]:
    spec = open_session().catalog.task(f"vyakarana_{task}").spec
    context = ReadContext(
        owner=spec.task,
        language="xx",
        split="test",
        inputs=spec.input_names,
        labels=spec.label_names,
        cluster=spec.cluster,
    )
    return read_examples(open_session().registry.kinds.get(spec.kind), rows(path, task, inputs), context)


@pytest.mark.parametrize(
    ("split", "sentences", "words", "cases", "verbs", "depths"),
    [
        ("train", 400, 6329, 2868, 262, (1, 11)),
        ("dev", 80, 1263, 550, 65, (1, 12)),
        ("test", 120, 1989, 814, 98, (2, 10)),
    ],
)
def test_items_of_ttb(
    data_root: Path, split: str, sentences: int, words: int, cases: int, verbs: int, depths: tuple[int, int]
) -> None:
    """Vyakarana, table 2, and the counts of verbs and depths that awk gives."""
    path = data_root / f"ud/UD_Tamil-TTB/ta_ttb-ud-{split}.conllu"
    pos = examples(path, "pos")
    assert (len(pos), sum(len(example.tags) for example in pos)) == (sentences, words)
    for inputs in ("full", "case_only"):
        assert sum(len(example.labels) for example in examples(path, "gcm", inputs)) == cases
    found = [int(example.label) for example in examples(path, "stdp")]
    assert (len(found), min(found), max(found)) == (sentences, *depths)
    assert Counter(example.label for example in examples(path, "sva")) == {"other": verbs}


def test_items_of_hindi(data_root: Path) -> None:
    path = data_root / "ud/UD_Hindi-PUD/hi_pud-ud-test.conllu"
    assert sum(len(example.targets) for example in examples(path, "gcm")) == 10_054
    masked, prefix = (examples(path, "sva", view) for view in ("masked", "prefix"))
    assert len(masked) == len(prefix) == 1_555
    assert len(examples(path, "sva", "strict")) == 251
    empty = [example for example in prefix if not example.inputs["sentence"]]
    assert all(example.meta == {"prefix": "empty"} for example in empty)
    assert len(empty) == sum("prefix" in example.meta for example in prefix) < 16
    own = data_root / "vyakarana/hindi/hi_hdtb-docs-sample.conllu"
    assert sum(len(example.targets) for example in examples(own, "gcm")) == 378
    assert (len(examples(own, "sva")), len(examples(own, "sva", "strict"))) == (53, 18)


def test_variants_of_a_released_sentence_are_one_cluster(data_root: Path) -> None:
    for folder in ("CG-TTB", "csCG-TTB"):
        found = examples(data_root / f"vyakarana/tamil/{folder}/train.conllu", "pos")
        assert (len(found), len({example.cluster for example in found})) == (480, 120)
        assert Counter(example.group for example in found) == {f"org{number}": 120 for number in (1, 2, 3, 4)}
        assert all(example.meta["variant"] == example.group for example in found)


def test_degenerate_scores_come_out_of_our_own_metric(data_root: Path) -> None:
    """Vyakarana, table 5: 0.0716 and 0.0898 of STDP, and the constant Nom of GCM, on what CG-TTB's test is made of."""
    metric = open_session().registry.metrics.get("weighted_f1")
    from harness.metrics.metric import MetricContext

    path = data_root / "ud/UD_Tamil-TTB/ta_ttb-ud-train.conllu"
    labels = open_session().catalog.task("vyakarana_stdp").spec.label_names
    context = MetricContext(language="ta", labels=labels)
    words = {example.id: len(example.tags) for example in examples(path, "pos")}
    depths = [example.label for example in examples(path, "stdp") if words[example.id] > 3]
    assert len(depths) == 399
    for label, wanted in (("3", 0.0716), ("4", 0.0898)):
        value = metric.compute([label] * 399, depths, context).value
        assert round(value, 4) == wanted
        assert value == pytest.approx(f1_score(depths, [label] * 399, average="weighted"))
    gold = [list(example.labels) for example in examples(path, "gcm")]
    cases = open_session().catalog.task("vyakarana_gcm").spec.label_names
    guesses = [["Nom"] * len(own) for own in gold]
    value = metric.compute(guesses, gold, MetricContext(language="ta", labels=cases)).value
    assert round(value, 4) == 0.5603


def test_a_case_that_is_not_in_the_spec_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(VERB_FIRST.replace("Case=Nom", "Case=Xyz"), encoding="utf-8")
    with pytest.raises(HarnessError, match=r"a\.conllu:1: .*'Xyz'.*Abl"):
        examples(path, "gcm")
