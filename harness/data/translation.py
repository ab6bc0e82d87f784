"""Splits whose texts were translated: which texts, by whom, over which languages, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.data.records import Row
from harness.errors import DataError, UsageError, near_names
from harness.languages import known_languages
from harness.progress import Progress, SilentProgress
from harness.registry import Registry
from harness.translating import open_translators, translator_names
from harness.translation_guards import GuardReport, guard_report, language_detector
from harness.translation_store import TranslationStore
from harness.translators import OpenTranslator, TranslatorInfo

__all__ = ["Step", "TextChange", "Translations", "refuse_unnamed"]

Step = tuple[str, str]
"""Source and target language of one translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """How the texts of a split are changed before they are read as items."""

    translator: str
    """The name that views show."""
    reference: str
    """The value of ``--translator`` that opens it."""
    steps: tuple[Step, ...]
    """``(("en", "sw"), ("sw", "en"))`` is a round trip."""
    fields: tuple[str, ...]
    answers: str | None = None
    """Field with gold spans of `context` (``{text, start}``): those are translated and looked for again."""

    def to_json(self) -> dict[str, Any]:
        """Return the chain as plain JSON."""
        return {
            "translator": self.translator,
            "reference": self.reference,
            "steps": [f"{source}->{target}" for source, target in self.steps],
            "fields": list(self.fields),
        }


@dataclass
class Translations:
    """What translates the splits of one command, and keeps what was translated.

    Args:
        registry: Has the translators.
        folder: Of the store.
    """

    registry: Registry
    folder: Path
    guards: dict[tuple[str, str, str], GuardReport] = field(default_factory=dict)
    """By translator, source and target."""
    lost: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By chain: questions whose answer was not found again in the translated context, of how many."""
    _infos: dict[tuple[str, str, str], TranslatorInfo] = field(default_factory=dict)
    _store: TranslationStore | None = None

    def prepare(
        self, wanted: Iterable[tuple[TextChange, Sequence[Row]]], progress: Progress | None = None
    ) -> None:
        """Translate all texts that the store lacks, so that no translator is needed while a model is asked.

        Raises:
            UsageError: A translator is unknown or does not have a pair.
            DataError: A field is missing, or a file of translations lacks a text.
            AdapterError: A translator failed; what it translated is kept.
        """
        by_reference: dict[tuple[str, str], list[tuple[TextChange, Sequence[Row]]]] = {}
        for change, rows in wanted:
            by_reference.setdefault((change.translator, change.reference), []).append((change, rows))
        for (name, reference), parts in by_reference.items():
            [opened] = open_translators(self.registry, [f"{name}={reference}"])
            try:
                for change, rows in parts:
                    self._fill(opened, change, rows, progress or SilentProgress())
            finally:
                opened.translator.close()

    def workload(self, change: TextChange, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return what the first step would ask for, and for later ones at most as much: a row a step."""
        [opened] = open_translators(self.registry, [f"{change.translator}={change.reference}"])
        try:
            texts = _texts(rows, change)
            found = []
            for source, target in change.steps:
                load = self.store.workload(opened, texts, source, target)
                found.append(
                    {
                        "translator": change.translator,
                        "pair": f"{source}->{target}",
                        "segments": load.segments,
                        "distinct": load.distinct,
                        "calls": load.calls,
                        "characters": load.characters,
                    }
                )
            return found
        finally:
            opened.translator.close()

    def rows(self, change: TextChange, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the rows with their texts translated, from the store; translates what it lacks.

        Rows whose answer is not found again in the translated context are left out and counted in `lost`.
        """
        texts = set(_texts(rows, change))
        if len(self._chain(change, texts)) < len(texts):
            self.prepare([(change, rows)])
        known = self._chain(change, texts)
        dropped = 0
        for row in rows:
            fields = dict(row.fields)
            for name in change.fields:
                fields[name] = known[fields[name]]
            if change.answers is not None:
                answers = _relocated(fields.get(change.answers) or (), known, fields["context"])
                if not answers:
                    dropped += 1
                    continue
                fields[change.answers] = answers
            yield replace(row, fields=fields)
        if change.answers is not None:
            chain = f"{change.translator} {' '.join('->'.join(step) for step in change.steps)}"
            self.lost[chain] = (dropped, len(rows))

    def infos(self, change: TextChange) -> list[dict[str, Any]]:
        """Return what decides the answers of every step, for records; empty before anything was translated."""
        keys = [(change.translator, source, target) for source, target in change.steps]
        return [self._infos[key].to_json() for key in keys if key in self._infos]

    def told(self) -> list[str]:
        """Return what the guards found, a sentence a pair and translator."""
        sentences = []
        for (name, source, target), report in self.guards.items():
            faults = [f"{count} {guard}" for guard, count in report.counts.items() if count]
            if faults:
                sentences.append(
                    f"{name} {source}->{target}: of {report.segments:,} translations {', '.join(faults)}."
                )
        return sentences

    @property
    def store(self) -> TranslationStore:
        """The store, opened at first use; raises `StorageError`."""
        if self._store is None:
            self._store = TranslationStore(self.folder)
        return self._store

    def _fill(
        self, opened: OpenTranslator, change: TextChange, rows: Sequence[Row], progress: Progress
    ) -> None:
        texts = list(dict.fromkeys(_texts(rows, change)))
        for source, target in change.steps:
            stored = self.store.translate(opened, texts, source, target, progress)
            key = (change.translator, source, target)
            self._infos[key] = opened.of_pair(source, target).info()
            languages = known_languages()
            report = guard_report(
                [(item.source, item.text) for item in stored],
                languages.get(source),
                languages.get(target),
                truncated=[item.truncated for item in stored],
                detector=language_detector(),
            )
            if key not in self.guards or report.segments >= self.guards[key].segments:
                self.guards[key] = report
            texts = list(dict.fromkeys(item.text for item in stored))

    def _chain(self, change: TextChange, texts: Iterable[str]) -> dict[str, str]:
        """Return text -> its translation through all steps, of those that the store has."""
        current = {text: text for text in texts}
        for source, target in change.steps:
            info = self._infos.get((change.translator, source, target))
            if info is None:
                return {}
            middles = list(dict.fromkeys(current.values()))
            known = self.store.known(info.fingerprint, middles, source, target)
            current = {
                text: known[middle].text if middle.strip() else middle
                for text, middle in current.items()
                if not middle.strip() or middle in known
            }
        return current


def _texts(rows: Sequence[Row], change: TextChange) -> list[str]:
    """Return all texts that are translated; raises `DataError` for a row without one of the fields."""
    found: list[str] = []
    for row in rows:
        for name in change.fields:
            value = row.fields.get(name)
            if not isinstance(value, str):
                near = near_names(name, row.fields)
                meant = f" Did you mean {near[0]!r}?" if near else ""
                raise DataError(
                    f"{row.where}: the text {name!r}, which is to be translated, is missing.{meant}"
                )
            found.append(value)
        if change.answers is not None:
            found += [str(answer["text"]) for answer in row.fields.get(change.answers) or ()]
    return found


def _relocated(
    answers: Sequence[Mapping[str, Any]], known: Mapping[str, str], context: str
) -> list[dict[str, Any]]:
    """Return the translated answers at their first place in the translated context; others are left out."""
    found = []
    for answer in answers:
        text = known[str(answer["text"])].strip()
        start = context.find(text) if text else -1
        if start >= 0:
            found.append({**answer, "text": text, "start": start})
    return found


def refuse_unnamed(given: Sequence[str], why: str) -> dict[str, str]:
    """Return name -> reference of the translators; raises `UsageError` where there is none."""
    named = translator_names(given)
    if not named:
        raise UsageError(
            f"{why} needs a translator.",
            hint="Such as: --translator hf-seq2seq:facebook/nllb-200-distilled-600M",
        )
    return named
