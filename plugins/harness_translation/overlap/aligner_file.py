"""Existing links by any aligner: a text file with the words and their links.

A line is ``SOURCE ||| TARGET ||| LINKS``: both sentences with a space between words, as fast_align and awesome-align
read them, and the links in the Pharaoh format, ``i-j`` with words numbered from 0, or ``i-j:p`` with a probability.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import DataError, UsageError, near_names
from harness.data import Alignment, Link, WordPair

SEPARATOR: Final = "|||"
_LINK: Final = re.compile(r"(\d+)-(\d+)(?::(\d*\.?\d+(?:[eE]-?\d+)?))?")
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _AlignmentLine:
    """A pair of sentences with its links."""

    source: Words
    target: Words
    links: tuple[Link, ...]


class FileAligner:
    """Looks pairs up by their texts without spaces; returns its words, so that a different segmentation is an error."""

    def __init__(self, path: Path, known: Mapping[tuple[str, str], _AlignmentLine], digest: str) -> None:
        self._path = path
        self._known = known
        self._digest = digest

    def identity(self) -> dict[str, str]:
        """Return the identity of the links."""
        return {"aligner": "file", "aligner.sha256": self._digest}

    def close(self) -> None:
        """Do nothing: the file has been read."""

    def align(self, pairs: Sequence[WordPair]) -> list[Alignment]:
        """Return the links of every pair with the file's words; raises `DataError` for an unknown pair."""
        return [self._found(pair) for pair in pairs]

    def _found(self, pair: WordPair) -> Alignment:
        aligned = self._known.get((_key(pair.source), _key(pair.target)))
        if aligned is None:
            sources = {source: " ".join(line.source) for (source, _), line in self._known.items()}
            near = near_names("".join(pair.source), sources, limit=1)
            raise DataError(
                f"The alignments {str(self._path)!r} do not have the pair {' '.join(pair.source)!r} and "
                f"{' '.join(pair.target)!r}.",
                hint=f"The nearest source sentence there is {sources[near[0]]!r}." if near else None,
            )
        return Alignment(links=aligned.links, source_words=aligned.source, target_words=aligned.target)


def open_file(reference: str) -> FileAligner:
    """Return the aligner of a file; raises `UsageError` if it cannot be read, `DataError` for another format."""
    path = Path(reference)
    try:
        content = path.read_bytes()
        lines = content.decode("utf-8").split("\n")
    except OSError as error:
        raise UsageError(f"The alignments {reference!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"The alignments {reference!r} are not UTF-8: {error.reason}.") from error
    by_pair: dict[tuple[str, str], _AlignmentLine] = {}
    line_numbers: dict[tuple[str, str], int] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        line = _parsed(text, f"{path}:{number}")
        key = _key(line.source), _key(line.target)
        first = line_numbers.setdefault(key, number)
        if by_pair.setdefault(key, line) != line:
            raise DataError(f"{path}:{number}: the pair has other links here than in line {first}.")
    return FileAligner(path, by_pair, hashlib.sha256(content).hexdigest())


def _key(words: Sequence[str]) -> str:
    """Return words without white space, in which segmentations may differ."""
    return "".join("".join(words).split())


def _parsed(line: str, where: str) -> _AlignmentLine:
    fields = line.split(SEPARATOR)
    if len(fields) != 3:
        raise DataError(f"{where}: expected SOURCE ||| TARGET ||| LINKS, found {len(fields)} parts.")
    # A word may hold U+00A0 or U+3000: aligners part words at ASCII's spaces.
    source, target = (tuple(re.findall(r"[^ \t\r]+", sentence)) for sentence in fields[:2])
    links: list[Link] = []
    for text in fields[2].split():
        matched = _LINK.fullmatch(text)
        if matched is None:
            raise DataError(f"{where}: expected links such as 0-1 or 0-1:0.87, found {text!r}.")
        source_index, target_index, probability = matched.groups()
        link = Link(source=int(source_index), target=int(target_index), probability=float(probability or 1.0))
        if link.source >= len(source) or link.target >= len(target) or link.probability > 1:
            raise DataError(f"{where}: the link {text!r} does not fit {len(source)} and {len(target)} words.")
        links.append(link)
    return _AlignmentLine(source=source, target=target, links=tuple(links))
