"""The translated splits that a command names: found, counted, translated, guarded, compared with a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.api import Session, data_options, open_session
from harness.checking import check_task
from harness.data.records import Row
from harness.data.sources import DataFinder, FoundData
from harness.errors import HarnessError, MissingDataError, UsageError, near_names
from harness.fit_planning import find_split
from harness.fitting import cache_folder
from harness.progress import Progress
from harness.specs.catalog import TaskEntry
from harness.specs.selection import select
from harness.translation_planning import VariantPlanner, source_language

__all__ = ["Corpus", "TranslatedSplit", "gather_corpora"]

KNOWN = ("tt", "te", "bt")
SHOWN = 2
LONG = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSplit:
    """The test items of one task and language in one variant by one translator."""

    entry: TaskEntry
    language: str
    variant: str
    found: FoundData

    @property
    def name(self) -> str:
        """``xnli/tt-nllb/sw``: safe as a path."""
        assert self.found.change is not None
        translator = "".join(c if c.isalnum() or c in "._-" else "-" for c in self.found.change.translator)
        return (
            f"{self.entry.spec.task}/{self.variant}-{translator.strip('.-') or 'translator'}/{self.language}"
        )


@dataclass
class Corpus:
    """All splits of one command."""

    session: Session
    finder: DataFinder
    splits: list[TranslatedSplit] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def workloads(self) -> list[dict[str, Any]]:
        """Return calls and characters, a row a split and step."""
        rows = []
        for split in self.splits:
            assert split.found.change is not None
            for load in self.finder.translations.workload(split.found.change, self._before(split)):
                rows.append({**_named(split), **load})
        return rows

    def translate(self, progress: Progress) -> list[dict[str, Any]]:
        """Translate everything that the store lacks; return a row a split with what the guards found."""
        self.finder.translate([split.found for split in self.splits], progress)
        rows = []
        for split in self.splits:
            change = split.found.change
            assert change is not None
            after = self.rows(split)
            counts: dict[str, int] = {}
            for source, target in change.steps:
                report = self.finder.translations.guards.get((change.translator, source, target))
                for guard, count in ({} if report is None else report.counts).items():
                    counts[guard] = counts.get(guard, 0) + count
            rows.append(
                {
                    **_named(split),
                    "translator": change.translator,
                    "chain": " ".join(f"{source}->{target}" for source, target in change.steps),
                    "items": len(after),
                    **counts,
                    "chrf++": self._reference_score(split, after),
                }
            )
        return rows

    @property
    def found(self) -> int:
        """How many faults the guards found."""
        return sum(report.found for report in self.finder.translations.guards.values())

    def examples(self) -> Iterator[str]:
        """Yield one line for each of the first faults of every guard."""
        for (name, source, target), report in self.finder.translations.guards.items():
            for guard, pairs in report.examples.items():
                for before, after in pairs[:SHOWN]:
                    yield f"{name} {source}->{target} {guard}: {_short(before)} => {_short(after)}"

    def rows(self, split: TranslatedSplit) -> list[Row]:
        """Return the translated rows of a split."""
        return list(self.finder.rows(split.found))

    def _before(self, split: TranslatedSplit) -> list[Row]:
        return self.finder.rows_before(split.found)

    def _reference_score(self, split: TranslatedSplit, after: Sequence[Row]) -> float | None:
        """Return chrF++ against the human text in the language that a variant ends in; None where there is none."""
        spec = split.entry.spec
        assert spec.translate is not None and split.found.change is not None
        end = split.found.change.steps[-1][1]
        source = spec.source(end, "test") or (spec.translate.source if end == source_language(spec) else None)
        if source is None:
            return None
        try:
            import sacrebleu

            folder = split.entry.folders.get(end) or next(iter(split.entry.folders.values()), None)
            found = find_split(self.finder, source, spec.task, split.entry.languages.get(end), "test", folder)
            human = {
                str(row.fields.get("id", number)): row
                for number, row in enumerate(self.finder.rows(found), start=1)
            }
        except (ImportError, HarnessError):
            return None
        pairs = [
            (str(row.fields[name]), str(human[key].fields.get(name, "")))
            for row in after
            for name in spec.translate.fields
            if (key := str(row.fields["id"])) in human
        ]
        if not pairs:
            return None
        score = sacrebleu.CHRF(word_order=2).corpus_score([text for text, _ in pairs], [[text for _, text in pairs]])
        return float(score.score)


def gather_corpora(
    tasks: Sequence[str],
    translators: Sequence[str],
    *,
    languages: Sequence[str] | None,
    variants: Sequence[str],
    data: Sequence[str],
    tasks_from: Sequence[Path] = (),
    limit: int | None = None,
) -> Corpus:
    """Return the splits that tasks, languages, variants and translators name, and why others are left out.

    Raises `UsageError` for a name that nobody knows, and where nothing is left.
    """
    for name in variants:
        if name not in KNOWN:
            near = near_names(name, KNOWN)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"The variant {name!r} is not made by translation; those are tt, te and bt.{meant}"
            )
    session = open_session(tasks_from)
    finder = DataFinder(data_options(list(data)), session.registry, cache_folder() / "data")
    planner = VariantPlanner(variants, translators, finder, limit)
    made = Corpus(session=session, finder=finder)
    for selected in select(session.catalog, tasks, languages):
        check_task(selected.entry, session.registry, session.catalog)
        conditions: Mapping[str, str] = dict.fromkeys(selected.entry.spec.axes, "")
        for code in selected.languages:
            for variant in planner.variants:
                try:
                    for version in planner.plan(selected.entry, code, variant, conditions):
                        made.splits.append(
                            TranslatedSplit(
                                entry=selected.entry, language=code, variant=variant, found=version.found
                            )
                        )
                except MissingDataError as error:
                    made.skipped.append(f"{selected.entry.spec.task}:{code} {variant}: {error}")
    if not made.splits:
        shown = " ".join(dict.fromkeys(made.skipped))
        raise UsageError(f"Nothing is left to translate. {shown}")
    return made


def _named(split: TranslatedSplit) -> dict[str, Any]:
    return {"task": split.entry.spec.task, "language": split.language, "variant": split.variant}


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= LONG else plain[: LONG - 3] + "...")
