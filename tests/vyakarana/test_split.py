"""``harness treebank split``: what stays together, how much goes where, and that nothing is lost or changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from harness.data.readers.conllu import read_sentences
from harness.errors import DataError, UsageError
from harness_vyakarana.command import app
from harness_vyakarana.treebank import SPLITS, parse_ratios, split_file, units_of

WORD = "1\tघर\tघर\tNOUN\t_\t_\t0\troot\t_\t_"


def sentence(name: str, *comments: str) -> str:
    return "\n".join([*comments, f"# sent_id = {name}", WORD]) + "\n\n"


def documents(sizes: Sequence[int]) -> str:
    return "".join(
        sentence(f"{number}-{place}", *([f"# newdoc id = d{number}"] if place == 0 else []))
        for number, size in enumerate(sizes)
        for place in range(size)
    )


def written(folder: Path) -> dict[str, list[str]]:
    return {
        path.stem: [s.sent_id or "" for s in list(read_sentences(path))]
        for path in sorted(folder.glob("*.conllu"))
    }


@given(st.lists(st.integers(1, 6), min_size=30, max_size=60), st.integers(0, 1000))
def test_documents_stay_whole_and_shares_are_kept(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    source = folder / "source.conllu"
    source.write_text(documents(sizes))
    parts = split_file(source, folder, (60, 20, 20), seed=seed)
    source.unlink()
    found = written(folder)
    where = {name: split for split, names in found.items() for name in names}
    assert sum(map(len, found.values())) == len(where) == sum(sizes)
    for number, size in enumerate(sizes):
        assert len({where[f"{number}-{place}"] for place in range(size)}) == 1
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        assert abs(part.sentences - share * sum(sizes)) <= max(sizes)


def test_sentences_keep_their_bytes_and_their_order(own: Path, tmp_path: Path) -> None:
    lines = (own / "hi_own-ud-test.conllu").read_bytes().splitlines(keepends=True)
    source = tmp_path / "source"
    source.write_bytes(b"".join(line for line in lines if not line.startswith(b"# newdoc")))
    split_file(source, tmp_path, (50, 25, 25))
    blocks = source.read_bytes().split(b"\n\n")
    parts = {name: (tmp_path / f"{name}.conllu").read_bytes().split(b"\n\n") for name in SPLITS}
    gathered = [block for own_blocks in parts.values() for block in own_blocks if block]
    assert sorted(gathered) == sorted(block for block in blocks if block)
    for own_blocks in parts.values():
        places = [blocks.index(block) for block in own_blocks if block]
        assert places == sorted(places) and places


def test_the_order_of_the_file_does_not_matter_but_the_seed_does(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(40)]
    found = []
    for order, seed in ((names, 0), (names[::-1], 0), (names, 1)):
        source = tmp_path / "source"
        source.write_text("".join(map(sentence, order)))
        split_file(source, tmp_path, (80, 10, 10), seed=seed)
        found.append({split: set(own) for split, own in written(tmp_path).items()})
    assert found[0] == found[1] != found[2]
    assert [len(found[0][name]) for name in SPLITS] == [32, 4, 4]


def test_variants_of_a_sentence_stay_together(tmp_path: Path) -> None:
    source = tmp_path / "source"
    lines = [sentence(f"s{n}-org{v}") for n in range(6) for v in range(1, 5)]
    lines += [sentence(f"v{n}-{v}", f"# source_sent_id = s{n}") for n in range(6) for v in "ab"]
    source.write_text("".join(lines))
    units = units_of(list(read_sentences(source)))
    assert units == [f"s{n}" for n in range(6) for _ in range(4)] + [f"s{n}" for n in range(6) for _ in "ab"]


def test_a_document_without_an_id_is_named_after_its_first_sentence(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text(sentence("a") + sentence("b", "# newdoc") + sentence("c") + sentence("d", "# newdoc"))
    units = units_of(list(read_sentences(source)))
    assert units == ["a", "document from b", "document from b", "document from d"]


def test_a_split_of_ratio_0_is_not_written(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text(documents([1] * 10))
    result = CliRunner().invoke(
        app, ["split", str(source), "--output", str(tmp_path / "new"), "--ratios", "70/0/30"]
    )
    assert result.exit_code == 0, result.output
    assert {name: len(own) for name, own in written(tmp_path / "new").items()} == {"train": 7, "test": 3}
    assert "70.0%" in result.output


@pytest.mark.parametrize("text", ["80/20", "a/b/c", "80/10/-10", "0/0/0", "0.8/0.1/0.1"])
def test_bad_ratios_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="ratios"):
        parse_ratios(text)


def test_files_that_cannot_be_split_are_rejected(tmp_path: Path) -> None:
    source = tmp_path / "test.conllu"
    source.write_text(documents([20]))
    with pytest.raises(UsageError, match=r"test\.conllu"):
        split_file(source, tmp_path, (80, 10, 10))
    with pytest.raises(UsageError, match=r"dev and test .*20 .*\b1\b"):
        split_file(source, tmp_path / "out", (90, 5, 5))
    source.write_text(WORD + "\n\n" + sentence("a") + WORD + "\n\n")
    with pytest.raises(DataError, match=r"\n  line 1: [^\n]*\n  line 6: [^\n]*$"):
        split_file(source, tmp_path / "out", (80, 10, 10))
    result = CliRunner().invoke(app, ["split", str(tmp_path), "--output", str(tmp_path / "out")])
    assert isinstance(result.exception, UsageError)


def test_hindi_pud_is_split_by_documents(data_root: Path, tmp_path: Path) -> None:
    source = data_root / "ud/UD_Hindi-PUD/hi_pud-ud-test.conllu"
    parts = split_file(source, tmp_path, (80, 10, 10))
    assert sum(part.units for part in parts) == 397  # counted with grep
    assert [part.sentences for part in parts] == [800, 101, 99]
