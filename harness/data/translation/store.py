"""Translations on disk, by content: a segment is translated once, whatever task, field or variant asks for it.

One SQLite file per folder. A row's key is a digest of (fingerprint of the translator, source, target, text); rows are
committed batch by batch, so that an interrupted command continues with the batch in which it stopped, and several
processes may write.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.data.translation.services import OpenTranslator, Translation, Translator
from harness.errors import ContractError, HarnessError, StorageError
from harness.progress import Progress

BATCH_CHARACTERS = 16_000
"""Characters of one batch at most, padding counted: every segment as long as its longest."""
BATCH_SEGMENTS = 256
_SCHEMA = """
create table if not exists translation (
    key blob primary key,
    source text not null, target text not null, text text not null, translation text not null,
    finish text not null, source_tokens integer, target_tokens integer, created real not null
) without rowid;
create table if not exists translator (fingerprint text primary key, info text not null) without rowid;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTranslation:
    """A segment with its translation."""

    source: str
    text: str
    truncated: bool


class TranslationStore:
    """The translations of one folder.

    Args:
        folder: Made where it is missing.

    Raises:
        StorageError: The folder or its file cannot be made, or is no store.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "translations.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, timeout=60)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            self._database.executescript(f"pragma journal_mode = wal; pragma synchronous = normal; {_SCHEMA}")
        except sqlite3.Error as error:
            self._database.close()
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._database.close()

    def __enter__(self) -> TranslationStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def missing(self, fingerprint: str, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the distinct texts that `translate` would ask for: those that are neither known nor blank."""
        distinct = [text for text in dict.fromkeys(texts) if text.strip()]
        stored = self.known(fingerprint, distinct, source, target)
        return [text for text in distinct if text not in stored]

    def translate(
        self,
        translator: OpenTranslator,
        segments: Sequence[str],
        source: str,
        target: str,
        progress: Progress | None = None,
    ) -> list[StoredTranslation]:
        """Return one translation per segment, in order; only what is not in the store is translated, each text once.

        A segment of white space alone is its own translation. What was translated before a failure is kept.

        Raises:
            UsageError: The translator does not have the pair.
            ContractError: It answered another number of segments.
            StorageError: The answers cannot be kept.
        """
        engine = translator.of_pair(source, target)
        info = engine.info()
        missing = self.missing(info.fingerprint, segments, source, target)
        if missing:
            self._describe(info.fingerprint, json.dumps(info.to_json(), ensure_ascii=False))
            progress = progress or Progress()
            progress.start(f"{translator.name} {source}->{target}", len(missing), "segments")
            try:
                for batch in _batches(missing):
                    answers = _answers(engine, translator.name, batch, source, target)
                    self._add(info.fingerprint, batch, answers, source, target)
                    progress.advance(len(batch))
            finally:
                progress.finish()
        translations = self.known(info.fingerprint, list(dict.fromkeys(segments)), source, target)
        return [
            translations[text] if text.strip() else StoredTranslation(source=text, text=text, truncated=False)
            for text in segments
        ]

    def known(
        self, fingerprint: str, texts: Sequence[str], source: str, target: str
    ) -> dict[str, StoredTranslation]:
        """Return text -> translation, of those that are there."""
        translations = {}
        try:
            for start in range(0, len(texts), 500):
                batch = texts[start : start + 500]
                keys = {_key(fingerprint, source, target, text): text for text in batch}
                marks = ",".join("?" * len(keys))
                rows = self._database.execute(
                    f"select key, translation, finish from translation where key in ({marks})",  # noqa: S608
                    list(keys),
                )
                for key, translation, finish in rows:
                    text = keys[key]
                    translations[text] = StoredTranslation(
                        source=text, text=translation, truncated=finish == "length"
                    )
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return translations

    def _add(
        self,
        fingerprint: str,
        texts: Sequence[str],
        answers: Sequence[Translation],
        source: str,
        target: str,
    ) -> None:
        now = time.time()
        rows = []
        for text, answer in zip(texts, answers, strict=True):
            key = _key(fingerprint, source, target, text)
            fields = (answer.text, answer.finish, answer.source_tokens, answer.target_tokens)
            rows.append((key, source, target, text, *fields, now))
        with self._writing() as database:
            database.executemany("insert or ignore into translation values (?,?,?,?,?,?,?,?,?)", rows)

    def _describe(self, fingerprint: str, info: str) -> None:
        with self._writing() as database:
            database.execute("insert or ignore into translator values (?, ?)", (fingerprint, info))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._database:
                yield self._database
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> StorageError:
        return StorageError(
            f"The translations in {str(self.path)!r} cannot be read or written: {error}.",
            hint="Make room there or make it writable; what was translated is kept.",
        )


def _key(fingerprint: str, source: str, target: str, text: str) -> bytes:
    content = "\0".join((fingerprint, source, target, text))
    return hashlib.blake2b(content.encode(), digest_size=16).digest()


def _answers(
    engine: Translator, name: str, batch: Sequence[str], source: str, target: str
) -> list[Translation]:
    try:
        answers = engine.translate(batch, source, target)
    except HarnessError:
        raise
    except Exception as error:
        raise ContractError(
            f"The translator {name!r} failed at {source}->{target}: {type(error).__name__}: {error}.",
            hint="Run the same command again: what was translated before is kept.",
        ) from error
    if len(answers) != len(batch):
        raise ContractError(
            f"The translator {name!r} answered {len(answers)} of {len(batch)} segments ({source}->{target})."
        )
    return answers


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield batches of texts of like length, the longest first: what does not fit the memory fails at once."""
    batch: list[str] = []
    longest = 0
    for text in sorted(texts, key=len, reverse=True):
        longest = longest or len(text)
        if batch and (len(batch) >= BATCH_SEGMENTS or longest * (len(batch) + 1) > BATCH_CHARACTERS):
            yield batch
            batch, longest = [], len(text)
        batch.append(text)
    if batch:
        yield batch
