"""Readers of prompts with instructions: JSON lines as IFEval has them, and the table of Multi-IF."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import Reader, Row, choice, is_blank_line, numbered_lines, parse_json, without_blank_lines

TURNS: Final = (1, 2, 3)


def _read_ifeval(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row of one turn per line; the second item with a key gets ``KEY#2`` as its id."""
    skips = choice(options, "malformed", ("fail", "skip")) == "skip"
    for path in paths:
        keys: Counter[str] = Counter()
        for line, text in without_blank_lines(path, numbered_lines(path), is_blank_line):
            try:
                record = parse_json(text, path, first_line=line)
            except DataError:
                if skips:
                    continue
                raise
            key = str(record.get("key"))
            keys[key] += 1
            identifier = key if keys[key] == 1 else f"{key}#{keys[key]}"
            yield Row(fields={"id": identifier, "turns": [record]}, path=str(path), line=line)


def _read_multi_if(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the conversations of one language; a turn with the prompt ``None`` or without one is no turn."""
    language = options.get("language")
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for number, record in enumerate(csv.DictReader(file, strict=True), start=1):
                if language in (None, record.get("language")):
                    turns = [turn for turn in (_turn(record, index, path, number) for index in TURNS) if turn]
                    fields = {"id": str(record.get("key") or number), "turns": turns}
                    yield Row(fields=fields, path=str(path), line=number)


def _turn(record: Mapping[str, str | None], index: int, path: Path, number: int) -> dict[str, Any] | None:
    """Return a turn; its three cells are JSON, and so is every argument in the last of them."""
    written = record.get(f"turn_{index}_prompt")
    if written in (None, "", "None"):
        return None
    names, arguments = (
        parse_json(record.get(f"turn_{index}_{column}") or "[]", path, first_line=number)
        for column in ("instruction_id_list", "kwargs")
    )
    prompt = parse_json(str(written), path, first_line=number)
    if not isinstance(prompt, dict) or "content" not in prompt:
        raise DataError(f"{path}: record {number}: expected a message with 'content' in turn {index}.")
    values = [parse_json(text, path, first_line=number) for text in arguments]
    return {"prompt": prompt["content"], "instruction_id_list": names, "kwargs": values}


READERS: Final = (
    Reader(
        name="ifeval",
        read=_read_ifeval,
        summary="JSON lines with key, prompt, instruction_id_list and kwargs, as IFEval and Marco-Bench-MIF have them",
        options={"malformed": "a line that is no JSON: 'fail' (default) or 'skip'"},
        filters=frozenset(),
    ),
    Reader(
        name="multi_if",
        read=_read_multi_if,
        summary="Multi-IF: a table with up to three turns per row, whose cells are JSON",
        options={"language": "the English name in the column 'language', such as 'Hindi'; all without it"},
        filters=frozenset({"language"}),
    ),
)
