"""Whether errata are of the items at hand: by the digest of every item's texts, and by what its gold was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import DataError, MissingDataError, Problem, Run, SpecError, UsageError, open_session
from harness.data import DataFinder, GoldFile
from harness.planning import data_options
from harness.storage import cache_folder
from harness_errata.document import GOLD, ITEM, Errata, ErrataFile, Erratum

if TYPE_CHECKING:
    from harness.running import Session

Items = Mapping[str, tuple[str, Any]]
"""Id -> the digest of the item's texts, and its gold answer."""
OTHER_ITEMS = frozenset({"variant", "translator", "split"})
"""Conditions of cells whose items are not the test items in a task's own text."""


@dataclass(slots=True, kw_only=True)
class FittedFile:
    """What a file says of the items at hand."""

    file: ErrataFile
    applied: list[Erratum] = field(default_factory=list)
    """Entries of gold answers and of items that are taken out, whose item is there and as the entry says."""
    texts: list[Erratum] = field(default_factory=list)
    """Entries of input texts, which fit and need the model to be asked again."""
    absent: list[tuple[int | None, Erratum]] = field(default_factory=list)
    """Entries of items that are not there, with their lines."""
    unread: list[Erratum] = field(default_factory=list)
    """Entries in languages that are not at hand."""
    mismatches: list[tuple[int | None, str]] = field(default_factory=list)
    """Entries that are of another item, by line."""


def _fit_file(file: ErrataFile, items_of: Callable[[str], Items | None]) -> FittedFile:
    """Return which entries fit; `items_of` gives the items of a language, None where they are not at hand."""
    fitted = FittedFile(file=file)
    languages = {entry.language for entry in file.document.entries}
    items = {language: items_of(language) for language in sorted(languages)}
    for line, entry in zip(file.lines, file.document.entries, strict=True):
        by_id = items[entry.language]
        if by_id is None:
            fitted.unread.append(entry)
        elif entry.id not in by_id:
            fitted.absent.append((line, entry))
        elif fault := _mismatch(entry, *by_id[entry.id]):
            fitted.mismatches.append((line, fault))
        else:
            (fitted.texts if entry.is_text else fitted.applied).append(entry)
    return fitted


def _mismatch(entry: Erratum, digest: str, reference: Any) -> str:
    title = f"the item {entry.id!r} in {entry.language}"
    if digest != entry.digest:
        return f"{title} has other texts: their digest is {digest}, and {entry.digest} in the errata"
    if entry.field in GOLD and reference != entry.was:
        return f"the {entry.field} of {title} is {reference!r}, and was {entry.was!r} for the errata"
    return ""


def fit_run(errata: Errata, run: Run) -> tuple[list[FittedFile], list[str]]:
    """Return the file of each task of a run that is of its items, and why other tasks have none.

    Raises:
        DataError: Where no file is of the run's items, or its records are broken.
        UsageError: Where the run has no task of the errata, or scores dev items.
    """
    tasks = sorted(errata.tasks & set(run.manifest.tasks))
    if not tasks:
        raise UsageError(
            f"The errata {str(errata.folder)!r} correct items of {', '.join(sorted(errata.tasks))}; the run "
            f"{str(run.path)!r} has {', '.join(sorted(run.manifest.tasks))}."
        )
    if any(cell.task in tasks and "split" in cell.view for cell in run.cells):
        raise UsageError(f"The run {str(run.path)!r} scores dev items, and errata are of test items.")
    chosen: list[FittedFile] = []
    reasons: list[str] = []
    for task in tasks:
        items = RunItems(run, task)
        fits = [_fit_file(file, items) for file in errata.files if file.document.errata == task]
        fitting = [item for item in fits if not item.mismatches]
        if fitting:
            chosen.append(max(fitting, key=lambda item: len(item.applied)))
        else:
            reasons.append(_misfit(task, min(fits, key=lambda item: len(item.mismatches))))
    if not chosen:
        raise DataError(
            f"The errata {str(errata.folder)!r} are of other items than the run {str(run.path)!r}: "
            f"{'; '.join(reasons)}.",
            hint="Give errata of the same revision of the data.",
        )
    return chosen, reasons


class RunItems:
    """The items of a task of a run by language, each read once; None in languages that it does not have."""

    def __init__(self, run: Run, task: str) -> None:
        self._run = run
        self._cells = {
            cell.language: cell
            for cell in run.cells
            if cell.task == task and cell.status == "ok" and not OTHER_ITEMS & set(cell.view)
        }
        self._read: dict[str, Items] = {}

    def __call__(self, language: str) -> Items | None:
        """Return the items of a language."""
        cell = self._cells.get(language)
        if cell is not None and language not in self._read:
            records = self._run.records(cell)
            self._read[language] = {record.id: (record.inputs_digest, record.reference) for record in records}
        return self._read.get(language)


def _misfit(task: str, fitted: FittedFile) -> str:
    (line, first), *others = fitted.mismatches
    more = f" ({len(others)} more)" if others else ""
    place = f"{fitted.file.path.name}:{line}"
    return f"{task}, revision {fitted.file.document.revision!r}, {place}: {first}{more}"


def gold_of(errata: Errata, fitted: Sequence[FittedFile]) -> GoldFile:
    """Return the corrections that need no answers of the model, as a corrected gold; its name has their digest."""
    labels = {
        (item.file.document.errata, entry.language, "", "", entry.id): (
            None if entry.field == ITEM else entry.corrected
        )
        for item in fitted
        for entry in item.applied
    }
    return GoldFile(path=errata.folder, name=f"errata-{errata.digest[:8]}", labels=labels)


class DataItems:
    """The test items of a task by language, from data files; None where there are none at hand."""

    def __init__(
        self, session: Session, finder: DataFinder, task: str, options: Mapping[str, str] | None = None
    ) -> None:
        """Raise `UnknownNameError` where there is no such task; `options` are further ones of its reader."""
        from harness.specs import select

        (selected,) = select(session.catalog, [task], None)
        self._entry = selected.entry
        self._session, self._finder, self._options = session, finder, options or {}
        self.languages = tuple(selected.languages)

    def __call__(self, language: str) -> Items | None:
        """Return the items of a language."""
        reference = self._session.registry.kinds.get(self._entry.spec.kind).reference
        examples = self.examples(language)
        if examples is None:
            return None
        return {
            identifier: (digest, reference(example)) for identifier, (digest, example) in examples.items()
        }

    def examples(self, language: str) -> dict[str, tuple[str, Any]] | None:
        """Return the digest and the example of each item by id; raises `DataError` for broken data."""
        from harness.data import find_split
        from harness.kinds import ReadContext, read_examples
        from harness.running import inputs_digest

        spec, entry = self._entry.spec, self._entry
        source = spec.source(language, "test") if language in spec.languages else None
        if source is None:
            return None
        if self._options:
            source = source.model_copy(update={"options": {**(source.options or {}), **self._options}})
        names = entry.languages.get(language), "test", entry.folders.get(language)
        try:
            test = find_split(self._finder, source, spec.task, *names, {})
        except MissingDataError:
            return None
        kind = self._session.registry.kinds.get(spec.kind)
        context = ReadContext.of_test(spec, language, test.label_map)
        rows = self._finder.rows(test)
        return {item.id: (inputs_digest(item), item) for item in read_examples(kind, rows, context)}


def fit_data(
    errata: Errata, data: Sequence[str], tasks_from: Sequence[Path], *, allow_code: bool
) -> list[FittedFile]:
    """Return how the files fit the test items of data; raises `UnknownNameError`, and `DataError` for broken data."""
    session = open_session(tuple(tasks_from), allow_code=allow_code)
    finder = DataFinder(data_options(tuple(data)), session.registry, cache_folder() / "data")
    return [_fit_file(file, DataItems(session, finder, file.document.errata)) for file in errata.files]


def fit_runs(errata: Errata, folders: Sequence[Path]) -> list[FittedFile]:
    """Return how the files fit the items of runs; raises `DataError` for broken records."""
    return [
        _fit_file(file, RunItems(run, file.document.errata))
        for run in map(Run, folders)
        for file in errata.files
        if file.document.errata in run.manifest.tasks
    ]


def check_fits(fits: Sequence[FittedFile], *, complete: bool) -> None:
    """Raise `SpecError` with the first file that is wrong about the items at hand.

    Args:
        fits: How the files fit.
        complete: Whether all items are at hand, so that an entry of another one is a fault; those that take an item
            out are none, as a task may leave it out already.
    """
    for fitted in fits:
        problems = [Problem(message=message, line=line) for line, message in fitted.mismatches]
        problems += [
            Problem(message=f"{entry.language} has no item {entry.id!r}", line=line)
            for line, entry in fitted.absent
            if complete and entry.field != ITEM
        ]
        if problems:
            raise SpecError(fitted.file.path, sorted(problems, key=lambda problem: problem.line or 0))


def check_rows(errata: Errata, fits: Sequence[FittedFile]) -> Iterator[dict[str, Any]]:
    """Yield a row per file: its entries, and how many were verified; None where nothing was."""
    for file in errata.files:
        verified = [fitted for fitted in fits if fitted.file is file]
        applied = {(*entry.key, entry.field) for item in verified for entry in (*item.applied, *item.texts)}
        absent = {entry.key for item in verified for _, entry in item.absent}
        yield {
            "file": file.path.name,
            "task": file.document.errata,
            "revision": file.document.revision,
            "languages": len({entry.language for entry in file.document.entries}),
            "entries": len(file.document.entries),
            "verified": len(applied) if verified else None,
            "left out already": len(absent) if verified else None,
        }
