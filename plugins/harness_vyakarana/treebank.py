"""Treebank files: how they are named and written, which of them a command works on, and how one is split."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, takewhile
from operator import add
from pathlib import Path

from harness import MissingDataError, Problem, UsageError
from harness.data import Sentence, TreebankError, read_sentences
from harness.languages import known_languages, text_scripts
from harness.storage import FileNotWrittenError, write_atomically

SPLITS = ("train", "dev", "test")
SUFFIX = ".conllu"
_LANGUAGE = re.compile(r"([a-z]{1,3})_.*")
_SPLIT = re.compile(r"(?<![a-z])(train|dev|test)(?![a-z])")
_SWAPPED = {"train": "test", "test": "train", "dev": "dev"}
_VARIANT = re.compile(r"(.+)-(org[1-9][0-9]*)")


# Names --------------------------------------------------------------------------------------------------


def variant_id(sent_id: str, variant: int) -> str:
    """Return the id of a variant, counted from 0: ``<sent_id>-org1`` as in the released treebanks."""
    return f"{sent_id}-org{variant + 1}"


def source_of(sent_id: str) -> str:
    """Return the id of the sentence that a variant was made from: ``s1-org2`` gives ``s1``; others are their own."""
    match = _VARIANT.fullmatch(sent_id)
    return match[1] if match else sent_id


def variant_of(sent_id: str) -> str | None:
    """Return the gender variant, ``org1`` to ``org4`` as in the released treebanks; None for an original sentence.

    Where genders are varied: the source's genders, the opposite ones, all masculine, all feminine.
    """
    match = _VARIANT.fullmatch(sent_id)
    return match[2] if match else None


def language_of(path: Path, given: str | None = None, target: Path | None = None) -> str:
    """Return the language of a treebank file: the first that is known of these.

    The given one; the code that a UD file's name begins with (``hi_hdtb-ud-train``: hi); the one that a generated file
    names in its head; that of the nearest folder of the file, then of its target, which has the name of a language
    (``UD_Tamil-TTB``, ``tamil``) or the code of one in the script of the text (``vyakarana/ta/cg``); the only language
    of that script. Raises `UsageError` if there is none.
    """
    if given is not None:
        return given
    if match := _LANGUAGE.fullmatch(path.name):
        return match[1]
    code = made_from(path).get("language") or _language_of_text(path, target)
    if code is None:
        raise UsageError(
            f"The language of {str(path)!r} is unknown: neither its name (as 'hi_hdtb-ud-dev'), its head, its folders "
            "nor its script has it.",
            hint="Give it with --language, for example --language hi.",
        )
    return code


def _language_of_text(path: Path, target: Path | None) -> str | None:
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as lines:
        columns = (line.split("\t") for line in islice(lines, HEAD_LINES))
        [script] = text_scripts([" ".join(cells[1] for cells in columns if len(cells) > 1)])
    written = [language.code for language in known_languages() if language.script == script]
    # A folder called 'my' is no Burmese treebank; one called 'Burmese' is.
    names = {language.name.casefold(): language.code for language in known_languages()}
    names |= {code.casefold(): code for code in written}
    for folder in (*path.resolve().parents, *(() if target is None else target.resolve().parents)):
        name = folder.name.casefold().removeprefix("ud_").partition("-")[0].replace("_", " ")
        if name in names:
            return names[name]
    return written[0] if len(written) == 1 else None


# The head of a generated file ---------------------------------------------------------------------------

HEAD_LINES = 2000
"""Lines of a file that its script is taken from."""
_LICENCE = re.compile(r"creativecommons\.org/licenses/(by[a-z-]*)/([0-9.]+[0-9])")
UNKNOWN_LICENCE = "unknown"


def licence_of(path: Path) -> str:
    """Return the licence of a treebank file, ``CC-BY-SA-4.0``: of its head if it was generated, else of its folder.

    A folder's is the Creative Commons licence that its ``LICENSE*`` file links, else ``see-`` and that file's name;
    ``unknown`` where there is none.
    """
    if licence := made_from(path).get("licence"):
        return licence
    for file in sorted(path.parent.glob("LICEN[SC]E*")):
        if match := _LICENCE.search(file.read_text(encoding="utf-8", errors="replace")):
            return f"CC-{match[1].upper()}-{match[2]}"
        return f"see-{file.name}"
    return UNKNOWN_LICENCE


def made_from(path: Path) -> dict[str, str]:
    """Return how a file was generated, from the comments at its head; empty for a treebank that was not.

    The names are ``generator``, ``generated_from``, ``licence``, ``mode``, ``seed``, ``language`` and ``donors`` of
    colorless green, and ``transliterator`` and ``code_switch_*`` of a treebank in Latin letters.
    """
    origin: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            head = [line[1:].strip() for line in takewhile(lambda line: line.startswith("#"), lines)]
    except OSError:
        return {}
    for comment in head:
        name, _, value = comment.partition(" = ")
        if name in ("generator", "generated_from", "licence"):
            origin[name] = value
        elif name == "mode":
            origin |= dict(_pairs(comment, ", ", " = "))
        elif name == "code_switch":
            switch = dict(_pairs(value, " ", "="))
            engine = f"{switch.pop('engine', '')} {switch.pop('version', '')}".strip()
            origin |= {"language": switch.pop("language", ""), "transliterator": engine}
            for key, name in (("source", "generated_from"), ("source_licence", "licence")):
                origin |= {name: switch.pop(key)} if key in switch else {}
            switch["engine_licence"] = switch.pop("licence", "")
            origin |= {f"code_switch_{key}": setting for key, setting in switch.items()}
    return origin


def _pairs(text: str, between: str, equals: str) -> Iterator[tuple[str, str]]:
    for item in text.split(between):
        name, _, value = item.partition(equals)
        yield name, value


# Writing ------------------------------------------------------------------------------------------------


def feats_of(features: Mapping[str, str]) -> str:
    """Return the FEATS column of features: sorted by name without regard to case, ``_`` for none."""
    return "|".join(f"{name}={features[name]}" for name in sorted(features, key=str.lower)) or "_"


def sentence_text(sentence: Sentence) -> str:
    """Return the lines of a sentence and the blank lines after it, as in the file it was read from."""
    lines = [*sentence.comments, *map("\t".join, sentence.tokens)]
    body = "".join(map(add, lines, sentence.endings)) if sentence.endings else "\n".join([*lines, ""])
    return sentence.before + body + sentence.after


def write_sentences(path: Path, sentences: Iterable[Sentence]) -> None:
    """Write a file that appears under its name only when it is complete; raises `StorageError`."""
    write_atomically(path, b"".join(sentence_text(sentence).encode() for sentence in sentences))


def make_folder(folder: Path) -> None:
    """Make a folder for output; raises `StorageError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileNotWrittenError(folder, error) from error


# Files of a command -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A file to generate."""

    source: Path
    target: Path
    language: str


def treebank_files(path: Path) -> list[Path]:
    """Return the CoNLL-U files below a folder by name, or the file itself; raises `MissingDataError` for none."""
    if not path.exists():
        raise MissingDataError(f"{path}: expected a .conllu file or a folder of them, found nothing.")
    files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise MissingDataError(f"{path}: expected files *{SUFFIX}, found none.")
    return files


def jobs_of(source: Path, target: Path, *, language: str | None = None, swap: bool = False) -> list[Job]:
    """Return the files to generate: one for a file, one per file for a folder; their folders are not made.

    In a folder, the file of a split is called as the tasks read it, ``train.conllu``, unless a folder has several of
    the split. With `swap`, train and test of a folder that has both are swapped as published: the generated train comes
    from the source's test.

    Raises:
        MissingDataError: There is no source.
        UsageError: The language is unknown, a file is given for a folder or the reverse, or a source would be
            overwritten.
    """
    files, is_folder = treebank_files(source), source.is_dir()
    if target.exists() and target.is_dir() != is_folder:
        source_type, target_type = ("folder", "file") if is_folder else ("file", "folder")
        raise UsageError(
            f"{str(source)!r} is a {source_type}, expected a {source_type} for --output, "
            f"found the {target_type} {str(target)!r}."
        )
    jobs = [
        Job(source=path, target=job_target, language=language_of(path, language, target))
        for path, job_target in zip(
            files, _targets(files, source, target, swap) if is_folder else [target], strict=True
        )
    ]
    for job in jobs:
        _check_target(job.target, files)
    return jobs


def _targets(files: Sequence[Path], source: Path, target: Path, swap: bool) -> Iterator[Path]:
    """Yield the file to generate for every file of a folder."""
    counts = Counter((path.parent, match[1]) for path in files if (match := _SPLIT.search(path.name)))
    for path in files:
        name, match = path.name, _SPLIT.search(path.name)
        if match:
            swapped = swap and all(counts[path.parent, split] for split in ("train", "test"))
            split = _SWAPPED[match[1]] if swapped else match[1]
            name = f"{split}{SUFFIX}" if counts[path.parent, match[1]] == 1 else _SPLIT.sub(split, name)
        yield target / path.relative_to(source).with_name(name)


def _check_target(target: Path, sources: Iterable[Path]) -> None:
    if target.resolve() in {source.resolve() for source in sources}:
        raise UsageError(
            f"The file {str(target)!r} is a source file and would be overwritten.",
            hint="Give another --output.",
        )


def usable_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file; raises `TreebankError` if one has no sent_id or no tree."""
    problems: list[Problem] = []
    try:
        for sentence in read_sentences(path, named=True):
            if sentence.heads:
                yield sentence
            else:
                key = f"sentence {sentence.sent_id!r}"
                problems.append(Problem(message="expected heads, found none", line=sentence.line, key=key))
    except TreebankError as error:
        problems += error.problems
    if problems:
        raise TreebankError(path, sorted(problems, key=lambda problem: problem.line or 0))


# A split, the same on every machine and in every order --------------------------------------------------


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
    shares = text.split("/")
    valid = len(shares) == len(SPLITS) and all(share.isascii() and share.isdigit() for share in shares)
    if not valid or not any(map(int, shares)):
        raise UsageError(
            f"The ratios must be three whole numbers for train/dev/test, not all 0, got {text!r}.",
            hint="For example --ratios 80/10/10.",
        )
    return tuple(map(int, shares))


def units_of(sentences: Iterable[Sentence]) -> list[str]:
    """Return the unit of every sentence: its document, else the sentence that it is a variant of, or itself.

    A document reaches from ``# newdoc`` to the next. The variants of a sentence stay together.
    """
    units: list[str] = []
    document: str | None = None
    for sentence in sentences:
        source_id = sentence.comment("source_sent_id") or source_of(sentence.sent_id or "")
        if any(comment[1:].split()[:1] == ["newdoc"] for comment in sentence.comments):
            document = "document " + (sentence.comment("newdoc id") or f"from {source_id}")
        units.append(document or source_id)
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
    for target in targets.values():
        _check_target(target, [source])
    empty = [name for name in targets if name not in chosen.values()]
    if empty:
        raise UsageError(
            f"No sentence is left for {' and '.join(empty)} with the ratios {'/'.join(map(str, ratios))}: "
            f"{source.name!r} has {len(sentences)} sentences in {len(chosen)} undivided documents or groups.",
            hint="Give other --ratios or another --seed; without '# newdoc' lines, sentences are split one by one.",
        )
    make_folder(folder)
    files = []
    for name, path in targets.items():
        split_sentences = [
            sentence for sentence, unit in zip(sentences, units, strict=True) if chosen[unit] == name
        ]
        write_sentences(path, split_sentences)
        count = sum(split == name for split in chosen.values())
        words = sum(len(sentence.words) for sentence in split_sentences)
        files.append(SplitPart(path=path, units=count, sentences=len(split_sentences), words=words))
    return files


def _assigned(units: Sequence[str], ratios: Sequence[int], seed: int) -> dict[str, str]:
    """Return the split of every unit."""

    def order(unit: str) -> tuple[bytes, str]:
        return blake2b(f"{seed}\0{unit}".encode(), digest_size=16).digest(), unit

    sizes = Counter(units)
    chosen: dict[str, str] = {}
    before = 0
    for unit in sorted(sizes, key=order):
        size = sizes[unit]
        middle = before + size / 2
        before += size
        reached = 0
        for name, share in zip(SPLITS, ratios, strict=True):
            reached += share
            if middle * sum(ratios) <= reached * len(units):
                chosen[unit] = name
                break
    return chosen
