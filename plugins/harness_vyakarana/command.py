"""``harness treebank`` on the command line: generate, check and describe treebanks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.errors import UsageError
from harness_vyakarana.command_agreement import agreement
from harness_vyakarana.command_code_switch import code_switch
from harness_vyakarana.command_split import split

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
        "--language", help="Language code; default: the prefix of the file name, as hi in hi_hdtb-ud-dev."
    ),
]
Compat = Annotated[
    Literal["paper"] | None,
    typer.Option(
        "--compat", help="paper: as the released treebanks are, their errors of agreement included."
    ),
]
Shorter = Annotated[
    int, typer.Option("--drop-shorter-than", min=1, help="Drop sentences with fewer words than this.")
]
Pool = Annotated[
    Path | None,
    typer.Option("--pool", help="Take donors from this file; a shard of a split takes them from the whole."),
]


@app.command("colorless-green")
def colorless_green(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file, or a folder of them.")],
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="A file for a file, a folder for a folder.")
    ],
    compat: Compat = None,
    seed: Annotated[int, typer.Option(help="Another seed, other donors.")] = 0,
    language: Language = None,
    shortest: Shorter = 4,
    no_swap: Annotated[
        bool, typer.Option("--no-swap", help="Keep train train and test test (of a folder).")
    ] = False,
    pool: Pool = None,
    json_file: Json = None,
) -> None:
    """Replace content words by others with the same features, in four gender variants a sentence.

    In a folder, train and test are swapped as published: the generated train comes from the source's test.
    """
    # Imported here so that help stays fast.
    from harness.api import open_session
    from harness.cli.display import ConsoleProgress, check_output_file
    from harness_vyakarana.donors import DEFAULT, PAPER
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.report_table import show_reports
    from harness_vyakarana.treebank_file import generate_file, jobs_of

    check_output_file(json_file)
    jobs = jobs_of(source, output, language=language, swap=not no_swap)
    if pool is not None and len(jobs) > 1:
        raise UsageError("--pool is for one file; the files of a folder have donors of their own.")
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
    """Count what a treebank holds, and tell which tasks it can carry and why not the others."""
    from harness.cli.display import check_output_file, write_rows
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
    from harness.api import open_session
    from harness.cli.display import check_output_file
    from harness_vyakarana.conllu import read_sentences, read_treebank
    from harness_vyakarana.donors import DEFAULT, PAPER, DonorPool
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.report_table import show_check
    from harness_vyakarana.treebank_check import check_colorless
    from harness_vyakarana.treebank_file import known_language

    check_output_file(json_file)
    grammar = grammar_of(known_language(source, language), registered_grammars(open_session().registry))
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
            typer.echo("A treebank that was generated with --compat paper, or released, is checked with it.")
        raise typer.Exit(1)


app.command()(agreement)
app.command("code-switch")(code_switch)
app.command()(split)
