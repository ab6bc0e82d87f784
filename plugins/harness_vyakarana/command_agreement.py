"""``harness treebank agreement`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["agreement"]


def agreement(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file, or a folder of them.")],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="The .jsonl file to write.")],
    language: Annotated[
        str | None,
        typer.Option(
            "--language", help="Language code; default: the prefix of the file name, as in hi_hdtb-ud."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the table to this file.")
    ] = None,
) -> None:
    """Write items for the task colorless_green_agreement: verbs with a form that does not agree.

    Give a folder that holds a treebank and its colorless-green version to compare the two.
    """
    # Imported here so that help stays fast.
    import json

    from harness.cli.display import check_output_file, print_table, write_rows
    from harness.errors import DataError, UsageError
    from harness_vyakarana.agreement_set import AgreementSet, Lexicon
    from harness_vyakarana.grammar import grammar_of, load_grammars
    from harness_vyakarana.treebank_file import known_language, treebank_files, usable_sentences, written_file

    check_output_file(json_file)
    check_output_file(output)
    files = treebank_files(source)
    languages = sorted({known_language(path, language) for path in files})
    if len(languages) > 1:
        raise UsageError(
            f"The files of {str(source)!r} are in {', '.join(languages)}; expected one language."
        )
    grammar = grammar_of(languages[0], load_grammars())
    lexicon = Lexicon(sentence for path in files for sentence in usable_sentences(path))
    made = AgreementSet(grammar, lexicon)
    seen: dict[str, Path] = {}
    with written_file(output) as file:
        for path in files:
            for sentence in usable_sentences(path):
                if (first := seen.setdefault(str(sentence.sent_id), path)) is not path:
                    raise DataError(
                        f"{path}:{sentence.line}: the sent_id {sentence.sent_id!r} was used in {first.name!r} already."
                    )
                for item in made.items(sentence):
                    file.write(json.dumps(item, ensure_ascii=False).encode() + b"\n")
    row = made.report.row(str(source))
    left = "; ".join(f"{count:,} {reason}" for reason, count in made.report.left.most_common())
    typer.echo(
        f"Wrote {output}: {made.report.items.total():,} items from {made.report.sentences:,} sentences"
        + (f" (verbs left out: {left})." if left else ".")
    )
    print_table(
        ("group", "contrast", "items"),
        [(one["group"], one["contrast"], f"{one['items']:,}") for one in row["items"]],
    )
    if json_file is not None:
        write_rows(json_file, [row])
