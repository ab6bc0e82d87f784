"""A translated data set on disk: JSON lines for the reader `jsonl`, and a card that describes how they were made."""

from __future__ import annotations

import datetime
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import Row, UsageError
from harness.storage.files import write_atomically
from harness_translation.variants.corpus import Corpus, TranslatedSplit

__all__ = ["check_output_folder", "write_dataset"]


def check_output_folder(folder: Path | None) -> None:
    """Raise `UsageError` unless the folder is new or empty."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} is not an empty folder.", hint="Give a new one with --output.")


def write_dataset(corpus: Corpus, folder: Path) -> int:
    """Write every split, ``card.json`` and ``README.md``; return the number of files. Raises `UsageError`."""
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
        card = _card(corpus)
        write_atomically(folder / "card.json", json.dumps(card, ensure_ascii=False, indent=1) + "\n")
        write_atomically(folder / "README.md", _readme(card))
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    return len(corpus.splits) + 2 + bool(romanised)


def _record(row: Row, split: TranslatedSplit) -> dict[str, Any]:
    record = {name: value for name, value in row.fields.items() if value is not None}
    if isinstance(record.get("label"), str | int):
        raw = str(record["label"])
        record["label"] = split.found.label_map.get(raw, raw)
    return record


def _card(corpus: Corpus) -> dict[str, Any]:
    try:
        own = version("multilingual-harness")
    except PackageNotFoundError:
        own = None
    splits = []
    for split in corpus.splits:
        spec, change = split.entry.spec, split.found.change
        assert change is not None
        splits.append(
            {
                "file": f"{split.name}.jsonl",
                "task": spec.task,
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
        "harness": own,
        "splits": splits,
        "guards": corpus.guards(),
        "romanised": len(corpus.romanised()),
    }


def _readme(card: dict[str, Any]) -> str:
    lines = [
        "# Translated test items",
        "",
        f"Made by multilingual-harness {card['harness']} at {card['created']}. Labels and ids are those of the source "
        "items. `card.json` has the fingerprints, settings and digests.",
        "",
        "| file | variant | chain | licence of source and translators |",
        "|---|---|---|---|",
    ]
    for split in card["splits"]:
        chain = ", then ".join(
            f"{step['step']} by {step['id']} ({step['engine']})" for step in split["chain"]
        )
        licences = [split["licence of the source"], *(step["licence"] for step in split["chain"])]
        licence = "; ".join(dict.fromkeys(item for item in licences if item)) or "not stated"
        lines.append(f"| {split['file']} | {split['variant']} | {chain} | {licence} |")
    lines += [
        "",
        "Findings of the guards:",
        "",
        "| translator | pair | segments | faults |",
        "|---|---|---|---|",
    ]
    for row in card["guards"]:
        faults = ", ".join(f"{count} {name}" for name, count in row["faults"].items() if count)
        lines.append(
            f"| {row['translator']} | {row['source']}->{row['target']} | {row['segments']} | {faults or 'none'} |"
        )
    if card["romanised"]:
        lines += [
            "",
            f"{card['romanised']} texts are romanised; `romanised.jsonl` lists the texts translated instead.",
        ]
    return "\n".join(lines) + "\n"
