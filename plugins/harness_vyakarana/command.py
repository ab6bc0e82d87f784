"""``harness treebank`` on the command line: generate, check and describe treebanks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness import DataError, UsageError
from harness.cli.output import echo
from harness_vyakarana.command_code_switch import code_switch

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Generate, check, split and describe treebanks in CoNLL-U.",
)

Json = Annotated[Path | None, typer.Option("--json", help="Also write the table to this file.")]
Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        help="Language code; default: the prefix of the file name, such as hi in hi_hdtb-ud-dev.",
    ),
]
Compat = Annotated[
    Literal["paper"] | None,
    typer.Option("--compat", help="paper: as in the released treebanks, with their errors of agreement."),
]
Shorter = Annotated[
    int, typer.Option("--drop-shorter-than", min=1, help="Drop sentences with fewer words than this.")
]
Pool = Annotated[
    Path | None,
    typer.Option("--pool", help="Take donors from this file; for a shard, give the file of the whole split."),
]


@app.command("colorless-green")
def colorless_green(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file, or a folder of them.")],
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="A file for a file, a folder for a folder.")
    ],
    compat: Compat = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw of donors.")] = 0,
    language: Language = None,
    shortest: Shorter = 4,
    no_swap: Annotated[
        bool, typer.Option("--no-swap", help="For a folder: do not swap train and test.")
    ] = False,
    pool: Pool = None,
    json_file: Json = None,
) -> None:
    """Replace content words by others with the same features, in four gender variants per sentence.

    In a folder, train and test are swapped as published: the generated train comes from the source's test.
    """
    # Imported here so that help stays fast.
    from harness import open_session
    from harness.cli.display import ConsoleProgress
    from harness.cli.output import check_output_file
    from harness_vyakarana.donors import DEFAULT, PAPER
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.report_table import show_reports
    from harness_vyakarana.treebank_file import generate_file, jobs_of

    check_output_file(json_file)
    jobs = jobs_of(source, output, language=language, swap=not no_swap)
    if pool is not None and len(jobs) > 1:
        raise UsageError("--pool needs one file; in a folder, each file has its own donors.")
    grammars = registered_grammars(open_session().registry)
    for job in jobs:
        grammar_of(job.language, grammars)
    if source.is_dir():
        output.mkdir(parents=True, exist_ok=True)
    else:
        check_output_file(output)
    mode = PAPER if compat else DEFAULT
    reports = []
    with ConsoleProgress() as progress:
        for job in jobs:
            progress.start(job.source.name, 0, "sentences")
            report = generate_file(
                job,
                grammars,
                mode,
                seed=seed,
                shortest=shortest,
                pool_file=pool,
                advance=progress.advance,
            )
            progress.finish()
            reports.append((job, report))
    show_reports(reports, json_file)


@app.command()
def stats(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file, or a folder of them.")],
    json_file: Json = None,
) -> None:
    """Count the contents of a treebank, and show which tasks it supports and why not the others."""
    from harness.cli.output import check_output_file, write_rows
    from harness_vyakarana.conllu import read_sentences
    from harness_vyakarana.report_table import show_stats
    from harness_vyakarana.stats import stats_of, stats_row
    from harness_vyakarana.treebank_file import treebank_files

    check_output_file(json_file)
    found = [(path.name, stats_of(read_sentences(path))) for path in treebank_files(source)]
    show_stats(found)
    if json_file is not None:
        write_rows(json_file, [stats_row(name, counts) for name, counts in found])


@app.command()
def check(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The .conllu file that was varied.")],
    generated: Annotated[
        Path, typer.Argument(metavar="GENERATED", help="The .conllu file with the variants.")
    ],
    compat: Compat = None,
    language: Language = None,
    shortest: Shorter = 4,
    pool: Pool = None,
    json_file: Json = None,
) -> None:
    """Check a generated treebank against its source: donors, function words, structure, variants, agreement."""
    from harness import open_session
    from harness.cli.output import check_output_file
    from harness_vyakarana.conllu import read_sentences, read_treebank
    from harness_vyakarana.donors import DEFAULT, PAPER, DonorPool
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.report_table import show_check
    from harness_vyakarana.treebank_check import check_colorless
    from harness_vyakarana.treebank_file import require_language

    check_output_file(json_file)
    grammar = grammar_of(require_language(source, language), registered_grammars(open_session().registry))
    mode = PAPER if compat else DEFAULT
    donors = DonorPool(grammar, mode).add(read_sentences(pool)) if pool is not None else None
    result = check_colorless(
        read_treebank(source).sentences,
        read_sentences(generated),
        grammar,
        mode,
        pool=donors,
        shortest=shortest,
    )
    show_check(result, json_file)
    if result.violations:
        if compat is None:
            echo("To check a released treebank, or one generated with --compat paper, use --compat paper.")
        raise typer.Exit(1)


@app.command()
def agreement(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file, or a folder of them.")],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="The .jsonl file to write.")],
    language: Language = None,
    json_file: Json = None,
) -> None:
    """Write items for the task colorless_green_agreement: verbs with a form that does not agree.

    Give a folder that holds a treebank and its colorless-green version to compare the two.
    """
    import json

    from harness.cli.output import check_output_file, write_rows
    from harness.cli.table import print_table
    from harness_vyakarana.agreement_set import AgreementSet, Lexicon
    from harness_vyakarana.grammar import grammar_of, load_grammars
    from harness_vyakarana.treebank_file import (
        require_language,
        treebank_files,
        usable_sentences,
        written_file,
    )

    check_output_file(json_file)
    check_output_file(output)
    files = treebank_files(source)
    languages = sorted({require_language(path, language) for path in files})
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
                        f"{path}:{sentence.line}: the sent_id {sentence.sent_id!r} is already used in {first.name!r}."
                    )
                for item in made.items(sentence):
                    file.write(json.dumps(item, ensure_ascii=False).encode() + b"\n")
    row = made.report.row(str(source))
    skipped = "; ".join(f"{count:,} {reason}" for reason, count in made.report.skipped.most_common())
    echo(
        f"Wrote {output}: {made.report.items.total():,} items from {made.report.sentences:,} sentences"
        + (f" (skipped verbs: {skipped})." if skipped else ".")
    )
    print_table(
        ("group", "contrast", "items"),
        [(one["group"], one["contrast"], f"{one['items']:,}") for one in row["items"]],
    )
    if json_file is not None:
        write_rows(json_file, [row])


app.command("code-switch")(code_switch)


@app.command()
def split(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file.")],
    output: Annotated[
        Path,
        typer.Option("--output", "--out", "-o", help="Folder for train.conllu, dev.conllu and test.conllu."),
    ],
    ratios: Annotated[str, typer.Option(help="Shares of the sentences: train/dev/test.")] = "80/10/10",
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
) -> None:
    """Split a treebank that came in one file into train, dev and test, by the hash of its ids.

    Whole documents (from one '# newdoc' to the next) and the variants of a sentence stay together.
    """
    from harness.cli.table import print_table
    from harness_vyakarana.split import parse_ratios, split_file

    shares = parse_ratios(ratios)
    if source.is_dir():
        raise UsageError(f"{str(source)!r} is a folder, expected one .conllu file to split.")
    parts = split_file(source, output, shares, seed=seed)
    total = sum(part.sentences for part in parts)
    print_table(
        ("file", "kept whole", "sentences", "words", "share"),
        [
            (
                str(part.path),
                f"{part.units:,}",
                f"{part.sentences:,}",
                f"{part.words:,}",
                f"{part.sentences / total:.1%}",
            )
            for part in parts
        ],
    )
