from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.conllu import Token, TreebankError, read_sentences
from harness.errors import DataError
from harness_vyakarana.treebank import feats_of, sentence_text

REST = "\t_" * 8


def row(identifier: str, head: str, form: str = "a", *, feats: str = "_") -> str:
    return f"{identifier}\t{form}\t_\tX\t_\t{feats}\t{head}\tdep\t_\t_"


def written(path: Path) -> bytes:
    return "".join(map(sentence_text, read_sentences(path))).encode()


def faults(folder: Path, text: str) -> list[str]:
    path = folder / "a.conllu"
    path.write_bytes(text.encode())
    with pytest.raises(TreebankError) as caught:
        list(read_sentences(path))
    assert str(path) in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


# Round trip -------------------------------------------------------------------------------------------

cell = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="\t"), min_size=1
)
ending = st.sampled_from(["\n", "\r\n"])


@st.composite
def treebanks(draw: st.DrawFn) -> str:
    """Texts of treebanks with comments, ranges, empty nodes, odd spacing and any line ends."""
    text = draw(st.sampled_from(["", "\ufeff", "\n", "\r\n\n"]))
    for number in range(draw(st.integers(1, 3))):
        lines = [f"# sent_id = s{number}", *("#" + draw(cell) for _ in range(draw(st.integers(0, 2))))]
        lines = [line for line in lines if not line.startswith("#") or "sent_id" not in line[9:]]
        count = draw(st.integers(1, 4))
        for word in range(1, count + 1):
            if word == 1 and count > 1 and draw(st.booleans()):
                lines.append(f"1-2\t{draw(cell)}" + "\t_" * 8)
            rest = [draw(cell) for _ in range(5)]
            head = str(draw(st.integers(1, word - 1))) if word > 1 else "0"
            lines.append("\t".join([str(word), *rest, head, draw(cell), draw(cell), draw(cell)]))
            if draw(st.booleans()):
                lines.append("\t".join([f"{word}.1", draw(cell)] + ["_"] * 8))
        text += "".join(line + draw(ending) for line in lines)
        text += "".join(draw(st.lists(ending, min_size=1, max_size=3)))
    return text


@given(treebanks(), st.booleans())
def test_what_is_read_is_written_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, text: str, whole: bool
) -> None:
    path = tmp_path_factory.mktemp("treebank") / "a.conllu"
    path.write_bytes((text if whole else text.rstrip("\r\n")).encode())
    assert written(path) == path.read_bytes()


@pytest.mark.thorough
def test_released_treebanks_are_written_byte_for_byte(data_root: Path) -> None:
    paths = sorted([*data_root.glob("ud/*/*.conllu"), *data_root.glob("vyakarana/**/*.conllu")])
    assert len(paths) > 20
    for path in paths:
        assert written(path) == path.read_bytes(), path


def test_our_treebanks_are_named(own: Path) -> None:
    for path in own.glob("*.conllu"):
        assert list(read_sentences(path, named=True))
        assert written(path) == path.read_bytes()


# What is in a sentence --------------------------------------------------------------------------------


def test_words_are_distinguished_from_ranges_and_empty_nodes(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"# sent_id = x\n1-2\tab{REST}\n{row('1', '2')}\n{row('2', '0')}\n2.1\tc{REST}\n\n")
    (sentence,) = read_sentences(path)
    assert [token.id for token in sentence.tokens] == ["1-2", "1", "2", "2.1"]
    assert [word.id for word in sentence.words] == ["1", "2"]
    assert sentence.heads == (2, 0)
    assert sentence.tokens[0].span == (1, 2)
    assert sentence.words[0].span is None


def test_features_have_several_values() -> None:
    cells = row("1", "0", feats="Case=Gen,Acc|odd|Gender=Masc").split("\t")
    assert Token(*cells).features == {"Case": "Gen,Acc", "Gender": "Masc"}
    assert Token(*row("1", "0").split("\t")).features == {}
    assert feats_of({"b": "1", "A": "2"}) == "A=2|b=1"
    assert feats_of({}) == "_"


# Faults -----------------------------------------------------------------------------------------------


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = (
        f"# sent_id = one\n{row('1', '2')}\n{row('2', '1')}\n\n"
        f"# sent_id = two\n{row('1', '0')}\n{row('2', '0')}\n\n"
        f"# sent_id = three\n{row('1', '0')}\n{row('3', '1')}\n\n"
        f"# sent_id = four\n{row('1', '0')}\n{row('2', '9')}\n{row('3', '_')}\n\n"
        f"# sent_id = five\n{row('1', '0')}\textra\n\n"
        f"# sent_id = one\n{row('1', '0')}\n\n"
    )
    expected = [
        ("line 2: sentence 'one': ", "root"),
        ("line 2: sentence 'one': ", "1 -> 2 -> 1"),
        ("line 7: sentence 'two': ", "word 1"),
        ("line 11: sentence 'three': ", "'3'"),
        ("line 15: sentence 'four': ", "'9'"),
        ("line 16: sentence 'four': ", "'_'"),
        ("line 19: sentence 'five': ", "11"),
        ("line 21: sentence 'one': ", "line 1"),
    ]
    for fault, (where, found) in zip(faults(tmp_path, text), expected, strict=True):
        assert fault.startswith(where) and found in fault


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([row("1", "0"), "2-1\tx" + "\t_" * 8], "'2-1'"),
        (["1-3\tx" + "\t_" * 8, row("1", "0")], "words up to 3"),
        (["1-2\tx" + "\t_" * 8, row("1", "0"), "2-3\tx" + "\t_" * 8, row("2", "1")], "'2-3'"),
        ([row("1", "0"), "3.1\tx" + "\t_" * 8], "'3.1'"),
        ([row("1", "0"), "# late"], "comments"),
        ([row("1", "0", form="")], "column 2"),
        (["# only a comment"], "words"),
        ([row("x", "0")], "'x'"),
        ([row("1", "00")], "'00'"),
    ],
)
def test_a_broken_sentence_is_rejected(tmp_path: Path, lines: list[str], found: str) -> None:
    assert any(found in fault for fault in faults(tmp_path, "\n".join([*lines, "\n"])))


def test_bytes_that_are_not_utf8_are_reported_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(b"# sent_id = a\n1\t\xff" + b"\t_" * 8 + b"\n\n")
    with pytest.raises(DataError, match=r"a\.conllu:2: .*0xff"):
        list(read_sentences(path))


def test_empty_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("\n\n")
    with pytest.raises(TreebankError):
        list(read_sentences(tmp_path / "a.conllu"))
    with pytest.raises(DataError, match=r"b\.conllu"):
        list(read_sentences(tmp_path / "b.conllu"))


def test_good_sentences_come_before_the_faults_of_others(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"# sent_id = a\n{row('1', '0')}\n\n# sent_id = b\n{row('2', '0')}\n\n")
    sentences = read_sentences(path)
    assert next(sentences).sent_id == "a"
    with pytest.raises(TreebankError):
        next(sentences)


def test_what_is_odd_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"{row('1', '_', feats='SG;NOM')}\n\n")
    [sentence] = read_sentences(path)
    assert (sentence.heads, sentence.sent_id, sentence.words[0].features) == ((), None, {})
    with pytest.raises(TreebankError, match="sent_id"):
        list(read_sentences(path, named=True))
