"""``harness checklist sheet``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness import UsageError
from harness.cli.output import echo

__all__ = ["sheet"]


def sheet(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="Name, folder or released .tsv.")],
    language: Annotated[
        str, typer.Option("--language", "-l", help="Code of the language to translate into.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="A .tsv or .csv file; else it is printed.")
    ] = None,
) -> None:
    """Write a translator's sheet: all texts of a suite, with columns for a translation and its variants.

    The texts that the suite has are filled in. Import the sheet: harness checklist import SHEET --suite SUITE

    Example: harness checklist sheet basics --language sv --output basics-sv.tsv
    """
    from harness.cli.output import check_output_file, write_file
    from harness_checklist.sheets.reading import CODE, DELIMITERS
    from harness_checklist.sheets.sheet import write_sheet
    from harness_checklist.shipped import find_suite

    check_output_file(output)
    if not CODE.fullmatch(language):
        raise UsageError(f"{language!r} is not a language code: expected one such as 'sv'.")
    if output is not None and output.suffix not in DELIMITERS:
        raise UsageError(f"The sheet {str(output)!r} is of no known kind: expected .tsv or .csv.")
    found = find_suite(suite)
    if found.source_language not in found.languages:
        raise UsageError(
            f"The suite {found.name!r} has no {found.source_language!r}, the language to translate from."
        )
    text = write_sheet(found, language, delimiter="\t" if output is None else DELIMITERS[output.suffix])
    if output is None:
        echo(text, nl=False)
        return
    write_file(output, text)
    filled = language in found.languages
    echo(
        f"Wrote {output}: {'filled in with the texts that the suite has' if filled else 'to be filled in'}. "
        f"Import it: harness checklist import {output} --suite {suite} --output DIR"
    )
