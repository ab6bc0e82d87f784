"""A translated data set on disk: JSON lines for the reader `jsonl`, and a card that describes how they were made."""

from __future__ import annotations

import datetime
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import UsageError
from harness.data import Row
from harness.storage import write_atomically
from harness_translation.variants.corpus import Corpus, TranslatedSplit, path_name


def check_output_folder(folder: Path | None) -> None:
    """Raise `UsageError` unless the folder is new or empty."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} is not an empty folder.", hint="Give a new one with --output.")


def write_dataset(corpus: Corpus, folder: Path) -> int:
    """Write every split and ``card.json``; return the number of files. Raises `UsageError`."""
    try:
        for split in corpus.splits:
            path = folder / f"{split.name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(_record(row, split), ensure_ascii=False) for row in corpus.rows(split)]
            write_atomically(path, "\n".join(lines) + "\n")
        romanised = corpus.romanised()
        if romanised:
            lines = [json.dumps(row, ensure_ascii=False) for row in romanised]
            write_atomically(folder / "romanised.jsonl", "\n".join(lines) + "\n")
        tables = [_write_table(name, pairs, folder) for name, pairs in _segments(corpus).items()]
        card = json.dumps(_card(corpus, tables), ensure_ascii=False, indent=1)
        write_atomically(folder / "card.json", card + "\n")
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    return len(corpus.splits) + len(tables) + 1 + bool(romanised)


def _segments(corpus: Corpus) -> dict[str, list[dict[str, str]]]:
    """Return every segment with its translation, by translator, as the translator ``file`` reads them."""
    tables: dict[str, list[dict[str, str]]] = {}
    for (name, source, target), segments in corpus.finder.translations.seen.items():
        tables.setdefault(name, []).extend(
            {"source": source, "target": target, "text": text, "translation": segment.text}
            for text, segment in segments.items()
        )
    return tables


def _write_table(name: str, lines: list[dict[str, str]], folder: Path) -> str:
    """Write the segments of a translator; return the value of ``--translator`` that reads them."""
    path = folder / f"translations-{path_name(name)}.jsonl"
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return f"{path_name(name)}=file:{path.name}"


def _record(row: Row, split: TranslatedSplit) -> dict[str, Any]:
    record = {name: value for name, value in row.fields.items() if value is not None}
    if isinstance(record.get("label"), str | int):
        raw = str(record["label"])
        record["label"] = split.found.label_map.get(raw, raw)
    return record


def _card(corpus: Corpus, tables: list[str]) -> dict[str, Any]:
    try:
        harness_version = version("multilingual-harness")
    except PackageNotFoundError:
        harness_version = None
    splits = []
    for split in corpus.splits:
        spec, change = split.spec, split.found.change
        assert change is not None
        splits.append(
            {
                "file": f"{split.name}.jsonl",
                "task": split.owner,
                "language": split.language,
                "variant": split.variant,
                "licence of the source": spec.license,
                "source": split.found.to_json(),
                "chain": corpus.finder.translations.infos(change),
            }
        )
    return {
        "schema": 1,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "harness": harness_version,
        "translator": tables,
        "splits": splits,
        "guards": corpus.guards(),
        "romanised": len(corpus.romanised()),
    }
