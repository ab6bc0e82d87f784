"""Splits a treebank of one file into train, dev and test, the same on every machine and in every order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from harness import UsageError
from harness.storage.files import FileNotWrittenError
from harness_vyakarana.conllu import Sentence, read_sentences, sentence_text
from harness_vyakarana.treebank_file import SUFFIX, written_file

__all__ = ["SPLITS", "SplitPart", "parse_ratios", "split_file", "units_of"]

SPLITS = ("train", "dev", "test")
_VARIANT = re.compile(r"-org[0-9]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPart:
    """A file that was written."""

    path: Path
    units: int
    """Documents; sentences if the treebank has none."""
    sentences: int
    words: int


def parse_ratios(text: str) -> tuple[int, ...]:
    """Return the shares of train, dev and test from ``80/10/10``; raises `UsageError`."""
    parts = text.split("/")
    if len(parts) != len(SPLITS) or not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(
            f"The ratios must be three whole numbers for train/dev/test, got {text!r}.",
            hint="For example --ratios 80/10/10.",
        )
    ratios = tuple(map(int, parts))
    if sum(ratios) == 0:
        raise UsageError(f"The ratios must not all be 0, got {text!r}.")
    return ratios


def units_of(sentences: Iterable[Sentence]) -> list[str]:
    """Return the unit of every sentence: its document, else the sentence that it is a variant of, or itself.

    A document reaches from ``# newdoc`` to the next. The variants of a sentence stay together.
    """
    units: list[str] = []
    document: str | None = None
    for sentence in sentences:
        own = _comment(sentence, "source_sent_id") or _VARIANT.sub("", sentence.sent_id or "")
        for comment in sentence.comments:
            if comment[1:].split()[:1] == ["newdoc"]:
                document = "document " + (_comment(sentence, "newdoc id") or f"from {own}")
        units.append(document or own)
    return units


def split_file(source: Path, folder: Path, ratios: Sequence[int], *, seed: int = 0) -> list[SplitPart]:
    """Write the sentences of a file to train, dev and test, each in the order and the bytes of the source.

    Units (see `units_of`) are sorted by a hash of the seed and their names, and cut by the ratios: a unit goes to the
    split of the middle of its sentences. A split of ratio 0 is not written.

    Raises:
        TreebankError: The source has faults, or a sentence without an id.
        UsageError: There are too few units, or the source would be overwritten.
        StorageError: A file cannot be written.
    """
    sentences = list(read_sentences(source, named=True))
    units = units_of(sentences)
    chosen = _assigned(units, ratios, seed)
    targets = {name: folder / f"{name}{SUFFIX}" for name, share in zip(SPLITS, ratios, strict=True) if share}
    if source.resolve() in {path.resolve() for path in targets.values()}:
        raise UsageError(
            f"The file {str(source)!r} is the source and would be overwritten.", hint="Give another --output."
        )
    empty = [name for name in targets if name not in chosen.values()]
    if empty:
        raise UsageError(
            f"No sentence is left for {' and '.join(empty)} with the ratios {'/'.join(map(str, ratios))}: "
            f"{source.name!r} has {len(sentences)} sentences in {len(chosen)} undivided documents or groups.",
            hint="Give other --ratios or another --seed; without '# newdoc' lines, sentences are split one by one.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileNotWrittenError(folder, error) from error
    parts = []
    for name, path in targets.items():
        own = [sentence for sentence, unit in zip(sentences, units, strict=True) if chosen[unit] == name]
        with written_file(path) as file:
            for sentence in own:
                file.write(sentence_text(sentence).encode())
        parts.append(
            SplitPart(
                path=path,
                units=sum(split == name for split in chosen.values()),
                sentences=len(own),
                words=sum(len(sentence.words) for sentence in own),
            )
        )
    return parts


def _assigned(units: Sequence[str], ratios: Sequence[int], seed: int) -> dict[str, str]:
    """Return the split of every unit."""
    sizes: dict[str, int] = {}
    for unit in units:
        sizes[unit] = sizes.get(unit, 0) + 1
    chosen: dict[str, str] = {}
    before = 0
    for unit in sorted(sizes, key=lambda name: (_hash(name, seed), name)):
        middle = before + sizes[unit] / 2
        before += sizes[unit]
        reached = 0
        for name, share in zip(SPLITS, ratios, strict=True):
            reached += share
            if middle * sum(ratios) <= reached * len(units):
                chosen[unit] = name
                break
    return chosen


def _hash(unit: str, seed: int) -> bytes:
    return blake2b(f"{seed}\0{unit}".encode(), digest_size=16).digest()


def _comment(sentence: Sentence, key: str) -> str | None:
    for comment in sentence.comments:
        name, equals, value = comment[1:].partition("=")
        if equals and name.strip() == key:
            return value.strip()
    return None
