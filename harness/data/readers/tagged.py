"""Sentences with a tag per token: a word and its tag a line, or spans in brackets (MASSIVE).

In files of lines a blank line separates sentences. Brackets are ``wake me at [time : five am]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import whitespace

from harness.data.readers.reader import (
    COLUMNS,
    WHERE,
    Column,
    MissingColumnError,
    Reader,
    choice,
    counted,
    is_blank_line,
    numbered_lines,
    wanted_columns,
    without_blank_lines,
)
from harness.data.readers.tabular import read_jsonl, read_parquet
from harness.data.records import Row
from harness.errors import DataError, UsageError

_LONGEST = 1_000
"""Characters of a word of a file without tags."""
_EXPECTED = {1: "a word alone", 2: "a word, a tab and a tag"}
_MARKUP = ("<!doctype", "<?xml", "<html")
_SEPARATED = re.compile(r"[^\s,;|][ ,;|]+[^\s,;|]")
_SPAN = re.compile(r"\[\s*(\w+)\s*:([^\[\]]*)\]")
_TOKENS = ("space", "character")


def _read_tagged(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    prefixed = choice(options, "token_prefix", ("none", "lang")) == "lang"
    by_space = choice(options, "separator", ("tab", "space")) == "space"
    columns = wanted_columns(options)
    if columns is not None:
        yield from (
            _by_columns(path, lines, columns) for path in paths for lines in _sentences(path, is_blank_line)
        )
        return
    width: int | None = None
    for path in paths:
        has_words = False
        for lines in _sentences(path, is_blank_line if by_space else _blank_rule(path)):
            sentence = list(_with_tabs(path, lines)) if by_space else lines
            width = width or sentence[0][1].count("\t") + 1
            has_words = has_words or width != 1 or _is_of_words(path, sentence)
            cells = [_word_and_tag(path, line, text, width, prefixed=prefixed) for line, text in sentence]
            tags = tuple(tag for _, tag in cells) if width == 2 else None
            fields = {"tokens": tuple(word for word, _ in cells), "tags": tags}
            yield Row(fields=fields, path=str(path), line=sentence[0][0])


def _blank_rule(path: Path) -> Callable[[str], bool]:
    """Return the separator of sentences; where lines are words without tags, U+00A0 alone is a word (WikiANN)."""
    first = next((text for _, text in numbered_lines(path) if not is_blank_line(text)), "")
    return is_blank_line if "\t" in first else lambda text: not text.strip(whitespace)


def _sentences(path: Path, is_empty: Callable[[str], bool]) -> Iterator[list[tuple[int, str]]]:
    sentence: list[tuple[int, str]] = []
    for line, text in without_blank_lines(path, numbered_lines(path), is_empty, separated=True):
        if is_empty(text):
            yield sentence
            sentence = []
        else:
            sentence.append((line, text))
    if sentence:
        yield sentence


def _with_tabs(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines that have a word, with a tab for the last space."""
    for line, text in lines:
        word, space, tag = text.rpartition(" ")
        if not space or not tag:
            raise DataError(f"{path}:{line}: expected a word, a space and a tag, found {text[:200]!r}.")
        if word:
            yield line, f"{word}\t{tag}"


def _by_columns(path: Path, lines: Sequence[tuple[int, str]], columns: Sequence[Column]) -> Row:
    """Return the sentence whose columns have numbers, and whose comments, ``# name = value``, have names."""
    comments: dict[str, str] = {}
    words: list[list[str]] = []
    width = 0
    for line, text in lines:
        if not words and text.startswith("#") and "\t" not in text:
            name, equals, value = text[1:].partition("=")
            if equals:
                comments.setdefault(name.strip(), value.strip())
            continue
        words.append(text.split("\t"))
        width = width or len(words[0])
        if len(words[-1]) != width:
            raise DataError(f"{path}:{line}: expected {counted(width)}, found {text[:200]!r}.")
    where = f"{path}:{lines[0][0]}"
    if not words:
        raise DataError(f"{where}: expected the words of a sentence after its comments, found none.")
    fields: dict[str, object] = {}
    for column in columns:
        if column.source.isdecimal():
            number = int(column.source)
            if not 1 <= number <= width:
                raise DataError(f"{where}: expected a column {number}, found {counted(width)}.")
            fields[column.field] = tuple(cells[number - 1] for cells in words if all(cells))
        elif column.source in comments:
            fields[column.field] = comments[column.source]
        else:
            raise MissingColumnError(column.source, comments, where)
    return Row(fields=fields, path=str(path), line=lines[0][0])


def _check_tagged(options: Mapping[str, str]) -> None:
    if wanted_columns(options) is not None and len(options) > 1:
        raise UsageError("The reader 'tagged' takes 'columns' without other options.")


def _is_of_words(path: Path, sentence: Sequence[tuple[int, str]]) -> bool:
    """Return whether lines without a tab are words without tags; raises `DataError` where they are another format.

    A word may hold a space or a comma (``10 000``), but not every word of a sentence does, and none begins with a
    space. One short line with spaces decides nothing: a later sentence does.
    """
    line, first = next((item for item in sentence if item[1][0] in whitespace), sentence[0])
    if first[0] not in whitespace and len(first) <= _LONGEST and not first.lower().startswith(_MARKUP):
        if not all(_SEPARATED.search(text) for _, text in sentence):
            return True
        if len(sentence) == 1 and first.count(" ") < 4:
            return False
    raise DataError(f"{path}:{line}: expected {_EXPECTED[2]}, found {first[:80]!r}.")


def _word_and_tag(path: Path, line: int, text: str, width: int, *, prefixed: bool) -> tuple[str, str]:
    cells = text.split("\t")
    if len(cells) != width:
        expected = _EXPECTED.get(width, _EXPECTED[2])
        raise DataError(f"{path}:{line}: expected {expected}, found {counted(len(cells))}: {text[:200]!r}.")
    if width not in _EXPECTED:
        raise DataError(f"{path}:{line}: expected {_EXPECTED[2]}, found {counted(width)}: {text!r}.")
    word, tag = cells[0], cells[-1] if width == 2 else ""
    if prefixed:
        _, colon, word = word.partition(":")
        if not colon:
            raise DataError(
                f"{path}:{line}: expected a word with a language prefix such as 'en:', found {cells[0]!r}."
            )
    if not word or (width == 2 and not tag):
        raise DataError(f"{path}:{line}: expected {_EXPECTED[width]}, found {text!r}.")
    return word, tag


TAGGED = Reader(
    name="tagged",
    read=_read_tagged,
    summary="Tagged sentences, 'word<TAB>tag' a line and a blank line between sentences.",
    options={
        "columns": "columns by number, comments by name: 'tokens=2,label=intent' is column 2 and '# intent = ...'; "
        "a line with an empty column is left out",
        "separator": "'tab' (default), or 'space': the last one of a line; a line without a word is left out",
        "token_prefix": "'none' (default), or 'lang' to strip the 'xx:' before each word, at its first colon",
    },
    check=_check_tagged,
)


def _read_bracketed(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per sentence, with the fields ``tokens`` and ``tags`` in place of ``marked``."""
    by_character = choice(options, "tokens", _TOKENS) == "character"
    reader_options = {name: value for name, value in options.items() if name != "tokens"}
    for path in paths:
        read = read_parquet if path.suffix == ".parquet" else read_jsonl
        for row in read([path], reader_options):
            fields = dict(row.fields)
            marked = fields.pop("marked", None)
            if not isinstance(marked, str):
                raise DataError(
                    f"{row.where}: expected the text field 'marked', found {type(marked).__name__}.",
                    hint="Name the column with 'columns' in the spec: {marked: annot_utt}.",
                )
            fields["tokens"], fields["tags"] = _bracketed_tags(marked, row.where, by_character=by_character)
            yield Row(fields=fields, path=row.path, line=row.line)


def _bracketed_tags(marked: str, where: str, *, by_character: bool) -> tuple[list[str], list[str]]:
    """Return the tokens of a sentence and their tags (``O``, ``B-time``, ``I-time``)."""
    tokens: list[str] = []
    tags: list[str] = []
    end = 0
    for match in _SPAN.finditer(marked):
        _add_span(marked[end : match.start()], None, tokens, tags, where, by_character=by_character)
        _add_span(match[2], match[1], tokens, tags, where, by_character=by_character)
        end = match.end()
    _add_span(marked[end:], None, tokens, tags, where, by_character=by_character)
    return tokens, tags


def _add_span(
    text: str, label: str | None, tokens: list[str], tags: list[str], where: str, *, by_character: bool
) -> None:
    if "[" in text or "]" in text:
        raise DataError(f"{where}: expected spans written '[label : text]', found {text.strip()[:80]!r}.")
    span_tokens = [token for word in text.split() for token in _split_word(word, by_character=by_character)]
    if label is not None and not span_tokens:
        raise DataError(f"{where}: the span {label!r} has no text.")
    tokens += span_tokens
    tags += ["O" if label is None else f"{'I' if at else 'B'}-{label}" for at in range(len(span_tokens))]


def _split_word(word: str, *, by_character: bool) -> Sequence[str]:
    """Return the tokens of a word: of characters, all-ASCII words stay whole, as in the authors' script.

    Source: alexa/massive, scripts/create_hf_dataset.py.
    """
    return [*word] if by_character and not word.isascii() else [word]


BRACKETED = Reader(
    name="bracketed",
    read=_read_bracketed,
    summary="JSON lines or Parquet with spans in brackets: 'wake me at [time : five am]' in the field 'marked'.",
    options={
        "columns": COLUMNS,
        "where": WHERE,
        "tokens": "'space' (default) or 'character', for scripts without spaces between words",
    },
)
