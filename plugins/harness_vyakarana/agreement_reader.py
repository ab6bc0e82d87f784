"""Readers of agreement items: the published sets of Gulordava et al. (NAACL 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import DataError, Reader, Row
from harness.data.readers.delimited import TSV

__all__ = ["READERS"]

UNKNOWN, END = "<unk>", "<eos>"
COLUMNS = "pattern constr_id sent_id correct_number form class type prefix n_attr len_context len_prefix sent".split()


def _read_colorlessgreen(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row for every two lines of ``generated.tab``: the right form and the wrong one of a sentence.

    The words come from the column `sent`: `prefix` has ``<unk>`` for words unknown to the published models.
    In a nonce sentence `sent` has yet another verb in place of the form; the words after it are those of the sentence.
    """
    given = {"header": "true", "quoting": "rfc4180", "columns": ",".join(COLUMNS)}
    for path in paths:
        right: Row | None = None
        for row in TSV.read([path], given):
            if right is None:
                right = row
            else:
                yield _item(right, row)
                right = None
        if right is not None:
            raise DataError(
                f"{right.where}: expected the line of the wrong form after it, found the end of the file."
            )


def _item(right: Row, wrong: Row) -> Row:
    fields = right.fields
    classes = (fields["class"], wrong.fields["class"])
    same = all(fields[name] == wrong.fields[name] for name in ("pattern", "constr_id", "sent_id", "sent"))
    if classes != ("correct", "wrong") or not same:
        raise DataError(
            f"{wrong.where}: expected the wrong form of the sentence whose right form is in line {right.line}, "
            f"found the {wrong.fields['class']!r} form of {_name(wrong)}."
        )
    words = str(fields["sent"]).split(" ")
    place = _place(right, words)
    after = words[place + 1 :]
    if after[-1:] == [END]:
        after.pop()
    construction = f"{fields['pattern']}__{fields['constr_id']}"
    return Row(
        fields={
            "id": f"{construction}__{fields['sent_id']}",
            "construction": construction,
            "group": _group(right),
            "before": "".join(f"{word} " for word in words[:place]),
            "right": fields["form"],
            "wrong": wrong.fields["form"],
            "after": "".join(f" {word}" for word in after),
            "tags": {
                "pattern": fields["pattern"],
                "number": fields["correct_number"],
                "attractors": fields["n_attr"],
                "distance": fields["len_context"],
            },
        },
        path=right.path,
        line=right.line,
    )


def _name(row: Row) -> str:
    return "__".join(str(row.fields[name]) for name in ("pattern", "constr_id", "sent_id"))


def _group(row: Row) -> str:
    """Return ``original`` for the treebank's own sentence, number 0, and ``generated`` for the nonce ones."""
    group = "original" if row.fields["sent_id"] == "0" else "generated"
    if row.fields["type"] != group:
        raise DataError(
            f"{row.where}: sentence {row.fields['sent_id']!r} is {row.fields['type']!r}; expected {group!r}, since "
            "number 0 is the original sentence."
        )
    return group


def _place(row: Row, words: Sequence[str]) -> int:
    """Return the 0-based position of the form; raises `DataError` if `prefix` and `sent` do not fit."""
    length, prefix = str(row.fields["len_prefix"]), str(row.fields["prefix"]).split(" ")
    place = int(length) if length.isdecimal() else -1
    fits = place == len(prefix) < len(words) and all(
        own in (word, UNKNOWN) for own, word in zip(prefix, words, strict=False)
    )
    if not fits:
        raise DataError(
            f"{row.where}: expected 'sent' to start with the {length!r} words of 'prefix', found {' '.join(words)!r}."
        )
    return place


READERS = (
    Reader(
        name="colorlessgreen",
        read=_read_colorlessgreen,
        summary="number agreement sets of Gulordava et al. (2018), 'generated.tab'",
    ),
)
