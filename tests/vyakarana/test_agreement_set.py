"""Agreement items: the published sets, and those that a treebank gives."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from harness.data.readers.conllu import Sentence, read_sentences
from harness.data.records import Row
from harness.errors import DataError, UsageError
from harness_vyakarana.agreement_set import Lexicon
from harness_vyakarana.readers import READERS
from tests.vyakarana.conftest import run

READER = READERS[1]
HEADER = "pattern constr_id sent_id correct_number form class type prefix n_attr punct freq len_context len_prefix sent"
RIGHT = ["N_V", "3", "0", "plur", "are", "correct", "original", "the <unk>", "1", "False", "9", "2", "2"]
SENT = '"the keys are "" here "" . <eos>"'


def table(path: Path, *lines: list[str]) -> Path:
    rows = [HEADER.split(), *([*line, SENT] for line in lines)]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def changed(**changes: str) -> list[str]:
    cells = dict(zip(HEADER.split(), RIGHT, strict=False))
    return list({**cells, "form": "is", "class": "wrong", **changes}.values())


def read(path: Path) -> list[Row]:
    return list(READER.read([path], {}))


def test_two_lines_of_the_published_table_are_an_item(tmp_path: Path) -> None:
    [row] = read(table(tmp_path / "generated.tab", RIGHT, changed()))
    assert dict(row.fields) == {
        "id": "N_V__3__0",
        "construction": "N_V__3",
        "group": "original",
        "before": "the keys ",
        "right": "are",
        "wrong": "is",
        "after": ' " here " .',
        "tags": {"pattern": "N_V", "number": "plur", "attractors": "1", "distance": "2"},
    }
    assert row.line == 2


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ([], r"generated\.tab:2: "),
        ([RIGHT], r"generated\.tab:3: .* line 2, .*'correct' .*N_V__3__0"),
        ([changed(sent_id="4")], r"generated\.tab:3: .*'wrong' .*N_V__3__4"),
    ],
)
def test_lines_that_are_no_pair_are_rejected(tmp_path: Path, second: list[list[str]], found: str) -> None:
    with pytest.raises(DataError, match=found):
        read(table(tmp_path / "generated.tab", RIGHT, *second))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"prefix": "a <unk>"}, r":2: .*'sent' .*'2' .*'prefix'.*'the keys"),
        ({"len_prefix": "1"}, r"'sent' .*'1' .*'prefix'"),
        ({"len_prefix": "two"}, r"'sent' .*'two' .*'prefix'"),
        ({"type": "generated"}, r":2: .*'0' .*'generated'.*'original'"),
    ],
)
def test_a_row_that_contradicts_itself_is_rejected(
    tmp_path: Path, changes: dict[str, str], found: str
) -> None:
    right = changed(**{"form": "are", "class": "correct", **changes})
    with pytest.raises(DataError, match=found):
        read(table(tmp_path / "generated.tab", right, changed(**changes)))


@pytest.mark.parametrize(("language", "constructions"), [("English", 41), ("Italian", 119)])
def test_the_published_sets(data_root: Path, language: str, constructions: int) -> None:
    """Each original sentence has nine nonce sentences; target positions are those of ``generated.eval``."""
    folder = data_root / "colorlessgreen" / "agreement" / language
    rows = [row.fields for row in read(folder / "generated.tab")]
    assert Counter(row["group"] for row in rows) == {
        "original": constructions,
        "generated": 9 * constructions,
    }
    assert set(Counter(row["construction"] for row in rows).values()) == {10}
    places = [int(line) for line in (folder / "generated.eval").read_text().split()]
    assert [row["before"].count(" ") for row in rows] == places
    texts = (folder / "generated.text").read_text(encoding="utf-8").splitlines()
    gold = [line.split("\t")[6:8] for line in (folder / "generated.gold").read_text("utf-8").splitlines()]
    assert [[row["right"], row["wrong"]] for row in rows] == gold
    for row, text in zip(rows, texts, strict=True):
        words = text.removesuffix(" <eos>").split(" ")
        place = row["before"].count(" ")
        assert [*row["before"].split(), *row["after"].split()] == words[:place] + words[place + 1 :]


# Our own sets ------------------------------------------------------------------------------------------


def make(source: Path, target: Path) -> list[dict[str, Any]]:
    run("agreement", source, "--output", target)
    return [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


def test_the_sample_is_what_the_command_writes(
    hindi: tuple[Sentence, ...], own: Path, tmp_path: Path
) -> None:
    sample = files("harness_task_specs") / "sample" / "colorless_green_agreement" / "hi.jsonl"
    items = make(own / "hi_own-ud-test.conllu", tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text(encoding="utf-8") == sample.read_text(encoding="utf-8")
    texts = {
        sentence.sent_id: next(line for line in sentence.comments if line.startswith("# text ="))
        for sentence in hindi
    }
    for item in items:
        assert f"# text = {item['before']}{item['right']}{item['after']}" == texts[item["construction"]]


def test_the_english_sample_pairs_originals_with_nonce_sentences() -> None:
    path = files("harness_task_specs") / "sample" / "colorless_green_agreement" / "en.jsonl"
    items = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for original, nonce in zip(items[::2], items[1::2], strict=True):
        assert (original["group"], nonce["group"]) == ("original", "generated")
        for key in ("construction", "right", "wrong", "tags"):
            assert original[key] == nonce[key]
        for item in (original, nonce):
            assert item["id"] == f"{item['construction']}-{item['group']}"
            assert item["before"].endswith(" ") and item["after"].startswith(" ")
        assert nonce["before"] != original["before"]


def test_forms_disagree_in_one_feature(own: Path, tmp_path: Path) -> None:
    items = {item["id"]: item for item in make(own / "hi_own-ud-test.conllu", tmp_path / "a.jsonl")}
    pairs = {name: (item["right"], item["wrong"]) for name, item in items.items()}
    assert pairs["hi-01:5:gender"] == ("पढ़ी", "पढ़ा")
    assert (pairs["hi-12:3:gender"], pairs["hi-12:3:number"]) == (("रहते", "रहती"), ("रहते", "रहता"))
    # वह is both genders, रुको has none, and a singular verb is never set against a polite plural.
    assert not any(name.startswith(("hi-10", "hi-14")) for name in pairs)
    assert [name for name in pairs if name.endswith("number")] == ["hi-12:3:number"]
    # A masculine noun is between a feminine one and its verb.
    tags = items["hi-03:6:gender"]["tags"]
    assert (tags["controller"], tags["attractors"], tags["distance"]) == ("बहन", "1", "3")


def test_variants_are_generated_ones_of_their_source(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    source = own / "hi_own-ud-test.conllu"
    (folder / source.name).write_bytes(source.read_bytes())
    run("colorless-green", source, "--out", folder / "hi_own-ud-test.cg.conllu")
    items = make(folder, tmp_path / "a.jsonl")
    groups = Counter(item["group"] for item in items)
    assert groups["generated"] > groups["original"] == 13
    assert {item["construction"] for item in items} <= {f"hi-{number:02}" for number in range(1, 15)}
    assert len({item["id"] for item in items}) == len(items)
    for item in items:
        assert item["group"] == ("generated" if "-org" in item["id"] else "original")
        assert item["id"].startswith(item["construction"])
    assert make(folder, tmp_path / "b.jsonl") == items


def tamil(*verbs: str) -> str:
    """Return a treebank in which a noun and a verb share gender and number; a verb is ``form:lemma:gender:rest``."""
    sentences = []
    for number, verb in enumerate(verbs):
        form, lemma, gender, rest = verb.split(":")
        feats = f"Gender={gender}|Number=Sing"
        sentences.append(
            f"# sent_id = t{number}\n1\tஅ\tஅ\tNOUN\t_\tCase=Nom|{feats}\t2\tnsubj\t_\t_\n"
            f"2\t{form}\t{lemma}\tVERB\t_\t{feats}|{rest}\t0\troot\t_\t_\n\n"
        )
    return "".join(sentences)


def test_a_language_without_paradigms_takes_the_forms_of_the_treebank(tmp_path: Path) -> None:
    path = tmp_path / "ta_x-ud-test.conllu"
    path.write_text(
        tamil(
            "கூறினார்:கூறு:Com:Polite=Form|Tense=Past",
            "கூறியது:கூறு:Neut:Tense=Past",
            "கூறினான்:கூறு:Masc:Tense=Past",
            "கூறும்:கூறு:Neut:Tense=Fut",
        ),
        encoding="utf-8",
    )
    pairs = {item["id"]: item["wrong"] for item in make(path, tmp_path / "a.jsonl")}
    # A common gender includes the masculine, so that its form is not wrong for it; the future has one form here.
    assert pairs == {"t0:2:gender": "கூறியது", "t1:2:gender": "கூறினான்", "t2:2:gender": "கூறியது"}
    assert Lexicon().other_gender(next(read_sentences(path)).words[1]) is None


def test_faults_are_errors(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    text = (own / "hi_own-ud-test.conllu").read_bytes()
    (folder / "hi_a-ud-dev.conllu").write_bytes(text)
    (folder / "hi_a-ud-test.conllu").write_bytes(text)
    with pytest.raises(DataError, match=r"'hi-01' .*'hi_a-ud-dev\.conllu'"):
        make(folder, tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()
    (folder / "ta_a-ud-test.conllu").write_bytes((own / "ta_own-ud-test.conllu").read_bytes())
    with pytest.raises(UsageError, match="hi, ta"):
        make(folder, tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("file", "least"), [("UD_Hindi-PUD/hi_pud-ud-test.conllu", 700), ("UD_Tamil-TTB", 40)]
)
def test_real_treebanks_give_items(data_root: Path, tmp_path: Path, file: str, least: int) -> None:
    items = make(data_root / "ud" / file, tmp_path / "a.jsonl")
    assert len(items) >= least
    assert all(item["right"] != item["wrong"] for item in items)
    assert sum(item["tags"]["attractors"] != "0" for item in items) >= 10
