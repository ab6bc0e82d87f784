"""Errata documents: one YAML file per benchmark and revision, whose entries name what is wrong with an item."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from harness import Problem, SpecError, UsageError, near_names
from harness.languages import known_languages
from harness.specs import Code, Document, Name, SpecModel, read_yaml, validate_document

ITEM: Final = "item"
"""The field of an entry that takes an item out."""
GOLD: Final = ("label", "answers")
"""Fields of gold answers: corrected without asking the model again."""
SHIPPED: Final = "shipped"
"""As a folder: the facts that this package brings."""
FROM_FILE: Final = ("reason", "who", "votes")
"""What an entry may leave to its file."""
Votes = Annotated[str, Field(pattern=r"^[0-9]+/[0-9]+$")]
"""``2/3``: people who agree, of those who looked."""
Key = tuple[str, str]
"""Language and id."""


class Erratum(SpecModel):
    """One entry: what an item of a test set has, and what it should have."""

    id: str
    language: Code
    field: str
    """``item``, ``label``, ``answers``, or an input field, whose correction needs the model to be asked again."""
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """Of the item's texts, as ``inputs_digest`` of the records of a run: other texts are another item."""
    was: str | list[str] | None = None
    corrected: Annotated[str | list[str] | None, Field(alias="is")] = None
    reason: str | None = None
    who: str | None = None
    votes: Votes | None = None

    @property
    def key(self) -> Key:
        """The item."""
        return self.language, self.id

    @property
    def is_text(self) -> bool:
        """Whether it corrects an input text."""
        return self.field not in (ITEM, *GOLD)


class ErrataDocument(SpecModel):
    """A file: the corrections of the test items of one benchmark in one revision."""

    errata: Name
    """The task."""
    revision: str
    """Where the items come from, in words or as a commit; the digests decide."""
    source: str
    """Where the facts can be seen."""
    reason: str | None = None
    who: str | None = None
    votes: Votes | None = None
    entries: Annotated[tuple[Erratum, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrataFile:
    """A validated file of a folder."""

    path: Path
    document: ErrataDocument
    lines: Sequence[int | None]
    """By entry."""

    @property
    def digest(self) -> str:
        """SHA-256 of what the file says, whatever its layout."""
        content = self.document.model_dump(mode="json", by_alias=True)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Errata:
    """All files of a folder."""

    folder: Path
    files: Sequence[ErrataFile]

    @property
    def digest(self) -> str:
        """SHA-256 of all files: it names the errata with every score."""
        return hashlib.sha256("".join(sorted(file.digest for file in self.files)).encode()).hexdigest()

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks whose items it corrects."""
        return frozenset(file.document.errata for file in self.files)


def read_errata(folder: Path) -> Errata:
    """Return the errata of a folder, ``shipped`` for those of this package.

    Raises:
        UsageError: Where there is no such folder, or no file in it.
        SpecError: With all faults of all files, by line.
    """
    if str(folder) == SHIPPED and not folder.exists():
        with as_file(files("harness_errata").joinpath("errata")) as shipped:
            return Errata(folder=folder, files=read_errata(shipped).files)
    paths = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if not paths:
        reason = "has no .yaml files" if folder.is_dir() else "is no folder"
        raise UsageError(
            f"The errata {str(folder)!r} cannot be read: it {reason}.",
            hint=f"Give a folder of errata files, or {SHIPPED!r} for those that come with the harness.",
        )
    read: list[ErrataFile] = []
    problems: dict[Path, list[Problem]] = {}
    first: dict[tuple[str, str], Path] = {}
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            yaml = read_yaml(text, str(path))
            document = validate_document(ErrataDocument, yaml)
        except SpecError as error:
            problems[path] = list(error.problems)
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The errata {str(path)!r} cannot be read: {error}.") from error
        file = ErrataFile(path=path, document=document, lines=_lines(yaml, document))
        faults = list(_faults(file))
        same = first.setdefault((document.errata, document.revision), path)
        if same is not path:
            message = f"the file {same.name!r} is of the same task and revision; there is one file for each"
            faults.append(Problem(message=message, line=yaml.line_of(["revision"])))
        if faults:
            problems[path] = faults
        read.append(file)
    if problems:
        (path, own), *others = problems.items()
        further = [
            Problem(message=f"{other}: {fault}", line=None) for other, faults in others for fault in faults
        ]
        raise SpecError(path, [*own, *further])
    return Errata(folder=folder, files=read)


def _lines(yaml: Document, document: ErrataDocument) -> list[int | None]:
    return [yaml.line_of(["entries", index]) for index in range(len(document.entries))]


def _faults(file: ErrataFile) -> Iterator[Problem]:
    languages = known_languages()
    first: dict[tuple[Key, str], tuple[int | None, Erratum]] = {}
    removed = {entry.key for entry in file.document.entries if entry.field == ITEM}
    for line, entry in zip(file.lines, file.document.entries, strict=True):
        for message in _entry_faults(entry, file.document):
            yield Problem(message=message, line=line)
        if entry.language not in languages:
            near = near_names(entry.language, [language.code for language in languages.listed])
            meant = f"; did you mean {near[0]!r}?" if near else ""
            yield Problem(message=f"unknown language {entry.language!r}{meant}", line=line)
        title = f"the {entry.field} of the item {entry.id!r} in {entry.language}"
        before, same = first.setdefault((entry.key, entry.field), (line, entry))
        if same is not entry:
            what = "repeats" if same.corrected == entry.corrected else "contradicts"
            yield Problem(message=f"{title} {what} the entry on line {before}", line=line)
        elif entry.field != ITEM and entry.key in removed:
            yield Problem(message=f"{title} is corrected, and another entry takes the item out", line=line)


def _entry_faults(entry: Erratum, document: ErrataDocument) -> Iterator[str]:
    for name in FROM_FILE:
        if getattr(entry, name) is None and getattr(document, name) is None:
            yield f"the entry of {entry.id!r} has no {name!r}, and the file has none for all"
    expected: dict[str, Any] = {ITEM: type(None), "answers": list}
    sort = expected.get(entry.field, str)
    names = {str: "a text", list: "a list of texts", type(None): "nothing (the item is taken out)"}
    if not isinstance(entry.corrected, sort):
        yield f"the 'is' of the field {entry.field!r} must be {names[sort]}, found {entry.corrected!r}"
    if entry.field in GOLD and not isinstance(entry.was, sort):
        yield f"the 'was' of the field {entry.field!r} must be {names[sort]}, found {entry.was!r}"
    if entry.field in GOLD and entry.was == entry.corrected:
        yield f"'was' and 'is' of {entry.id!r} are the same"


def write_errata(path: Path, head: Mapping[str, str], entries: Sequence[Mapping[str, Any]]) -> None:
    """Write a file, an entry a line, so that a change in git is a line."""
    from harness.cli import write_file

    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    lines += ["entries:", *(f"  - {json.dumps(entry, ensure_ascii=False)}" for entry in entries)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "\n".join(lines) + "\n")
