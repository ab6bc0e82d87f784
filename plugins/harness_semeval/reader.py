"""Reader of SemRel2024: tables whose cell 'Text' holds both sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness import DataError
from harness.data import CSV, Reader, Row


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per pair; the sentences are on two lines, in Hindi and Punjabi each in quotation marks."""
    for path in paths:
        for record in CSV.read([path], {}):
            fields = {name.strip().casefold(): value for name, value in record.fields.items()}
            # The Afrikaans test file has a tab where all others have a line break.
            parts = re.split(r"[\n\t]", str(fields.get("text", "")).strip(), maxsplit=1)
            if len(parts) != 2:
                raise DataError(
                    f"{record.where}: expected two sentences on two lines in the column 'Text', found one."
                )
            pair = [sentence.strip().strip('"').strip() for sentence in parts]
            row = {"id": fields.get("pairid"), "sentence1": pair[0], "sentence2": pair[1]}
            if fields.get("score") not in (None, ""):
                row["score"] = fields["score"]
            yield Row(fields=row, path=record.path, line=record.line)


SEMREL: Final = Reader(
    name="semrel",
    read=_read,
    summary="SemRel2024: PairID, Text with two sentences on two lines, and Score",
)
