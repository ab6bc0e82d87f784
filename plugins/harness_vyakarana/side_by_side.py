"""A sentence with its generated versions side by side, word by word: Figures 3 and 4 of Patil et al. (2021)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import DataError, MissingDataError
from harness.data import Sentence, read_sentences
from harness.reporting import Table, rows_of
from harness_vyakarana.treebank import made_from, source_of, treebank_files, variant_of


def side_by_side(paths: Sequence[Path], wanted: Sequence[str], *, count: int = 1) -> list[Table]:
    """Return a table for every sentence: its words with part of speech, in all versions that the files have.

    Args:
        paths: Files, or folders of them: of a treebank and those generated from it.
        wanted: Ids of source sentences; without them, the first ones that all paths have.
        count: The number of sentences, where none are named.

    Raises:
        DataError: Versions of a sentence do not have the same number of words.
        MissingDataError: There is no file, or a sentence that is in none.
    """
    versions: dict[str, list[tuple[str, int, Sentence]]] = {}
    for index, path in enumerate(paths):
        for file in treebank_files(path):
            origin = made_from(file)
            script = "latin" if "transliterator" in origin else ""
            for sentence in read_sentences(file):
                source = source_of(str(sentence.sent_id))
                if not wanted or source in wanted:
                    variant = variant_of(str(sentence.sent_id)) or "original"
                    versions.setdefault(source, []).append((f"{variant} {script}".rstrip(), index, sentence))
    shared = [
        sent_id
        for sent_id in versions
        if {index for _, index, _ in versions[sent_id]} == {*range(len(paths))}
    ]
    for name in wanted:
        if name not in versions:
            raise MissingDataError(f"No file of {', '.join(map(str, paths))} has the sentence {name!r}.")
    if not wanted and not shared:
        raise MissingDataError(
            f"{', '.join(map(str, paths))} have no sentence in common: are these its sources?"
        )
    return [_table(name, versions[name]) for name in wanted or shared[:count]]


def _table(name: str, versions: Sequence[tuple[str, int, Sentence]]) -> Table:
    sentences = [sentence for _, _, sentence in versions]
    if len({len(sentence.words) for sentence in sentences}) > 1:
        raise DataError(f"The versions of the sentence {name!r} have different numbers of words.")
    words = zip(*(sentence.words for sentence in sentences), strict=True)
    return Table(
        title=name,
        corner="word",
        heads=("UPOS", "Case", "Gender", *(head for head, _, _ in versions)),
        rows=rows_of(
            (
                tokens[0].id,
                tokens[0].upos,
                tokens[0].feature("Case") or "",
                tokens[0].feature("Gender") or "",
                *(word.form for word in tokens),
            )
            for tokens in words
        ),
        words=frozenset(range(len(versions) + 3)),
        divided=True,
    )
