"""Splits whose texts were translated: which texts, by whom, over which languages, and the rows that come of it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.data.records import Row
from harness.data.translation.services import (
    OpenTranslator,
    TranslatorContext,
    TranslatorInfo,
    open_translator,
)
from harness.data.translation.store import StoredTranslation, TranslationStore
from harness.errors import DataError, near_names
from harness.languages.detection import is_romanised
from harness.languages.table import LanguageTable
from harness.progress import Progress

Step = tuple[str, str]
"""Source and target language of one translation."""
KEEP, SKIP = "keep", "skip"
Engine = tuple[str, str]
"""Name that views show, and the value of ``--translator``."""


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
    romanised: str = KEEP
    """What becomes of texts in Latin letters where the language has others: they are kept, their items are skipped
    (`skip`), or the translator of this value writes them in the language's script first."""

    def to_json(self) -> dict[str, Any]:
        """Return the chain as plain JSON."""
        return {
            "translator": self.translator,
            "reference": self.reference,
            "steps": [f"{source}->{target}" for source, target in self.steps],
            "fields": list(self.fields),
            **({} if self.romanised == KEEP else {"romanised": self.romanised}),
        }

    @property
    def normalising(self) -> Step | None:
        """The step that writes romanised texts in their script; None where they are kept or skipped.

        The paper's authors had them translated as if they were of the other language: `Translation Errors
        Significantly Impact Low-Resource Languages` (EACL 2024), appendix G.
        """
        source, target = self.steps[0]
        return None if self.romanised in {KEEP, SKIP} else (target, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswers:
    """Questions that are skipped, since no answer was found again in the translated context."""

    lost: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RomanisedTexts:
    """Texts in Latin letters, of a language that has others."""

    language: str
    of: int
    """Distinct texts that were looked at."""
    changed: Mapping[str, str]
    """Text -> what is translated instead; the text itself where it is kept or skipped."""


@dataclass
class Translations:
    """Translations of the splits of one command, with the store of finished ones.

    Args:
        context: Has the translators and languages.
        folder: Of the store.
    """

    context: TranslatorContext
    folder: Path
    seen: dict[tuple[str, str, str], dict[str, StoredTranslation]] = field(default_factory=dict)
    """By translator, source and target: every text that was asked for, for the guards."""
    lost: dict[tuple[str, TextChange], LostAnswers] = field(default_factory=dict)
    """By training set and change."""
    romanised: dict[str, RomanisedTexts] = field(default_factory=dict)
    """By language."""
    _infos: dict[tuple[str, str, str], TranslatorInfo] = field(default_factory=dict)
    """By value of ``--translator``, source and target."""
    _store: TranslationStore | None = None

    def prepare(
        self, wanted: Iterable[tuple[TextChange, Sequence[Row]]], progress: Progress | None = None
    ) -> None:
        """Translate all texts that are not in the store, so that no translator is needed while a model is asked.

        Raises:
            UsageError: A translator is unknown or does not have a pair: before anything is translated by it.
            DataError: A field is missing, or a text is missing in a file of translations.
            HarnessError: A translator failed; what it translated is kept.
        """
        progress = progress or Progress()
        requests = [(change, list(dict.fromkeys(_texts(rows, change)))) for change, rows in wanted]
        # What is known to be in the store needs no translator: a second plan of the command asks for the same texts.
        requests = [
            (change, texts) for change, texts in requests if len(self._chain(change, texts)) < len(texts)
        ]
        for (name, reference), changes in _by_engine(requests, normalised_in=self.context.languages).items():
            with self._opened(name, reference) as opened:
                for change, texts in changes:
                    assert change.normalising is not None
                    self._fill(
                        opened,
                        _romanised(change, texts, self.context.languages),
                        (change.normalising,),
                        progress,
                    )
        for (name, reference), changes in _by_engine(requests).items():
            with self._opened(name, reference) as opened:
                for pair in dict.fromkeys(step for change, _ in changes for step in change.steps):
                    opened.of_pair(*pair)
                for change, texts in changes:
                    self._fill(opened, list(self._begin(change, texts).values()), change.steps, progress)

    def workload(self, wanted: Iterable[tuple[TextChange, Sequence[Row]]]) -> list[dict[str, Any]]:
        """Return the requests that `prepare` would send, one row per translator and pair.

        ``estimated`` is true where the texts are translations that are not there yet: their sources are counted.
        """
        requests = [(change, _texts(rows, change)) for change, rows in wanted]
        estimates = []
        for (name, reference), changes in _by_engine(requests).items():
            with self._opened(name, reference) as opened:
                inputs: dict[Step, list[str]] = {}
                estimated: set[Step] = set()
                for change, texts in changes:
                    current = self._begin(change, texts)
                    for number, pair in enumerate(change.steps, start=1):
                        inputs.setdefault(pair, []).extend(current[text] for text in texts)
                        fingerprint, middles = (
                            opened.of_pair(*pair).info().fingerprint,
                            list(current.values()),
                        )
                        if self.store.missing(fingerprint, middles, *pair):
                            estimated |= set(change.steps[number:])
                        stored = self.store.known(fingerprint, middles, *pair)
                        current = {
                            text: stored[middle].text if middle in stored else middle
                            for text, middle in current.items()
                        }
                for pair, segments in inputs.items():
                    missing = self.store.missing(opened.of_pair(*pair).info().fingerprint, segments, *pair)
                    estimates.append(
                        {
                            "translator": name,
                            "pair": "->".join(pair),
                            "segments": len(segments),
                            "distinct": len(set(segments)),
                            "calls": len(missing),
                            "characters": sum(map(len, missing)),
                            "estimated": pair in estimated,
                        }
                    )
        return estimates

    def rows(self, change: TextChange, rows: Sequence[Row], owner: str = "") -> Iterator[Row]:
        """Yield the rows with their texts translated, from the store; translates what is missing there.

        Rows whose answer is not found again in the translated context are skipped and counted in `lost`.
        """
        texts = list(dict.fromkeys(_texts(rows, change)))
        translations = self._chain(change, texts)
        if len(translations) < len(texts):
            self.prepare([(change, rows)])
            translations = self._chain(change, texts)
        left_out = (
            set(_romanised(change, texts, self.context.languages)) if change.romanised == SKIP else set()
        )
        dropped = 0
        for row in rows:
            fields = dict(row.fields)
            if left_out and any(fields[name] in left_out for name in change.fields):
                continue
            for name in change.fields:
                fields[name] = translations[fields[name]]
            if change.answers is not None:
                answers = _relocated(fields.get(change.answers) or (), translations, fields["context"])
                if not answers:
                    dropped += 1
                    continue
                fields[change.answers] = answers
            yield replace(row, fields=fields)
        if change.answers is not None:
            self.lost[(owner, change)] = LostAnswers(lost=dropped, of=len(rows))

    def infos(self, change: TextChange) -> list[dict[str, Any]]:
        """Return all that decides the answers of every step, for records; empty before anything was translated."""
        keys = [(change.reference, *pair) for pair in change.steps]
        if change.normalising is not None:
            keys = [(change.romanised, *change.normalising), *keys]
        return [
            {"step": f"{source}->{target}", **self._infos[(reference, source, target)].to_json()}
            for reference, source, target in keys
            if (reference, source, target) in self._infos
        ]

    def engines(self) -> dict[str, dict[str, Any]]:
        """Return the engines by ``REFERENCE SOURCE->TARGET``: for manifests, and for other processes."""
        return {
            f"{reference} {source}->{target}": info.to_json()
            for (reference, source, target), info in sorted(self._infos.items())
        }

    def adopt(self, engines: Mapping[str, Mapping[str, Any]]) -> None:
        """Reuse what another process translated with: everything is in the store, nothing need be opened."""
        for key, content in engines.items():
            reference, _, pair = key.rpartition(" ")
            source, _, target = pair.partition("->")
            settings = {name: value for name, value in content.items() if name != "fingerprint"}
            self._infos[(reference, source, target)] = TranslatorInfo(**settings)

    @property
    def store(self) -> TranslationStore:
        """The store, opened at first use; raises `StorageError`."""
        if self._store is None:
            self._store = TranslationStore(self.folder)
            weakref.finalize(self, self._store.close)  # its user has no end of its own
        return self._store

    @contextmanager
    def _opened(self, name: str, reference: str) -> Iterator[OpenTranslator]:
        opened = open_translator(self.context, name, reference)
        try:
            yield opened
        finally:
            opened.translator.close()

    def _fill(
        self, opened: OpenTranslator, texts: Sequence[str], steps: Sequence[Step], progress: Progress
    ) -> None:
        for source, target in steps:
            stored = self.store.translate(opened, texts, source, target, progress)
            self._infos[(opened.reference, source, target)] = opened.of_pair(source, target).info()
            translations = self.seen.setdefault((opened.name, source, target), {})
            translations.update({item.source: item for item in stored})
            texts = list(dict.fromkeys(item.text for item in stored))

    def _begin(self, change: TextChange, texts: Sequence[str]) -> dict[str, str]:
        """Return text -> what the first step translates: itself, or a romanised text in its script."""
        current = {text: text for text in texts}
        romanised = _romanised(change, current, self.context.languages)
        if romanised:
            if change.normalising is not None:
                info = self._infos.get((change.romanised, *change.normalising))
                stored = (
                    {} if info is None else self.store.known(info.fingerprint, romanised, *change.normalising)
                )
                current |= {text: item.text for text, item in stored.items()}
            code = change.steps[0][0]
            before = self.romanised.get(code)
            self.romanised[code] = RomanisedTexts(
                language=code,
                of=max(len(current), 0 if before is None else before.of),
                changed={**({} if before is None else before.changed), **{t: current[t] for t in romanised}},
            )
        return current

    def _chain(self, change: TextChange, texts: Sequence[str]) -> dict[str, str]:
        """Return text -> its translation through all steps, of those that the store has."""
        if change.normalising is not None and (change.romanised, *change.normalising) not in self._infos:
            if _romanised(change, texts, self.context.languages):
                return {}
        current = self._begin(change, texts)
        for source, target in change.steps:
            info = self._infos.get((change.reference, source, target))
            if info is None:
                return {}
            middles = list(dict.fromkeys(current.values()))
            stored = self.store.known(info.fingerprint, middles, source, target)
            current = {
                text: stored[middle].text if middle.strip() else middle
                for text, middle in current.items()
                if not middle.strip() or middle in stored
            }
        return current


def _texts(rows: Sequence[Row], change: TextChange) -> list[str]:
    """Return all texts that are translated; raises `DataError` for a row without one of the fields."""
    texts: list[str] = []
    for row in rows:
        for name in change.fields:
            value = row.fields.get(name)
            if not isinstance(value, str):
                near = near_names(name, row.fields)
                meant = f" Did you mean {near[0]!r}?" if near else ""
                raise DataError(
                    f"{row.where}: the text {name!r}, which is to be translated, is missing.{meant}"
                )
            texts.append(value)
        if change.answers is not None:
            texts += [str(answer["text"]) for answer in row.fields.get(change.answers) or ()]
    return texts


def _relocated(
    answers: Sequence[Mapping[str, Any]], known: Mapping[str, str], context: str
) -> list[dict[str, Any]]:
    """Return the translated answers at their first place in the translated context; others are dropped."""
    relocated = []
    for answer in answers:
        text = known[str(answer["text"])].strip()
        start = context.find(text) if text else -1
        if start >= 0:
            relocated.append({**answer, "text": text, "start": start})
    return relocated


def _romanised(change: TextChange, texts: Iterable[str], languages: LanguageTable) -> list[str]:
    language = languages.get(change.steps[0][0])
    return [] if language.script == "Latn" else [text for text in texts if is_romanised(text)]


Texts = Sequence[str]


def _by_engine(
    parts: Iterable[tuple[TextChange, Texts]], *, normalised_in: LanguageTable | None = None
) -> dict[Engine, list[tuple[TextChange, Texts]]]:
    """Return the changes of every translator, or of those that write romanised texts in their script."""
    grouped: dict[Engine, list[tuple[TextChange, Texts]]] = {}
    for change, texts in parts:
        if normalised_in is None:
            grouped.setdefault((change.translator, change.reference), []).append((change, texts))
        elif change.normalising is not None and _romanised(change, texts, normalised_in):
            grouped.setdefault(("romanised", change.romanised), []).append((change, texts))
    return grouped
