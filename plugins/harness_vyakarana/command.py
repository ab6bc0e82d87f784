"""Colorless-green and code-switched treebanks: make, check, split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness import DataError, UsageError
from harness.cli import echo

if TYPE_CHECKING:
    from harness.data import Transliterator
    from harness.registry import Registry
    from harness_vyakarana.colorless import Report
    from harness_vyakarana.treebank import Job

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Generate, check, split and describe treebanks in CoNLL-U.",
)

Source = Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file, or a folder of them.")]
Output = Annotated[
    Path, typer.Option("--output", "--out", "-o", help="A file for a file, a folder for a folder.")
]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the table to this file.")]
Seed = Annotated[int, typer.Option(help="Seed of the draw.")]
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
EXAMPLES = 5
SHOWN_VIOLATIONS = 20

# What is needed is imported in each command, so that help stays fast.


@app.command("colorless-green")
def colorless_green(
    source: Source,
    output: Output,
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
    from harness import open_session
    from harness.cli import check_output_file, show_progress, write_rows
    from harness_vyakarana.colorless import generate_file
    from harness_vyakarana.donors import DEFAULT, PAPER
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.treebank import jobs_of, make_folder

    check_output_file(json_file, ".json")
    jobs = jobs_of(source, output, language=language, swap=not no_swap)
    if pool is not None and len(jobs) > 1:
        raise UsageError("--pool needs one file; in a folder, each file has its own donors.")
    registered = registered_grammars(open_session().registry)
    grammars = [grammar_of(job.language, registered) for job in jobs]
    if not source.is_dir():
        check_output_file(output)
    reports = []
    with show_progress() as progress:
        for job, grammar in zip(jobs, grammars, strict=True):
            make_folder(job.target.parent)
            progress.start(job.source.name, 0, "sentences")
            report = generate_file(
                job,
                grammar,
                PAPER if compat else DEFAULT,
                seed=seed,
                shortest=shortest,
                pool_file=pool,
                advance=progress.advance,
            )
            progress.finish()
            reports.append((job, report))
    _show_reports(reports, compat)
    if json_file is not None:
        write_rows(json_file, [_report_row(job, report) for job, report in reports])


def _show_reports(reports: list[tuple[Job, Report]], compat: str | None) -> None:
    from harness.cli import print_table
    from harness_vyakarana.colorless import Report

    total = Report()
    for job, report in reports:
        total.add(report)
        echo(
            f"Wrote {job.target}: {report.written:,} sentences from {report.read:,} of {job.source.name}"
            f" ({report.dropped:,} dropped as too short)."
        )
    rows = []
    for upos in sorted(set(total.replaced) | set(total.inflected) | {upos for upos, _ in total.missing}):
        lower = sum(count for (tag, step), count in total.stepped.items() if tag == upos and step)
        counts = (total.inflected[upos], total.stepped[upos, 0], lower, total.without_donor[upos])
        words, replaced = total.words[upos], total.replaced[upos]
        share = f"{100 * replaced / words:.1f}"
        rows.append((upos, f"{words:,}", f"{replaced:,}", share, *(f"{count:,}" for count in counts)))
    heads = ("UPOS", "words", "replaced", "%", "inflected", "full key", "backed off", "no donor")
    print_table(heads, rows)
    genders = sorted(total.gender_counts())
    if genders:
        variants = sorted({variant for variant, _ in total.genders})
        gender_rows = [
            (f"org{variant + 1}", {gender: total.genders[variant, gender] for gender in genders})
            for variant in variants
        ]
        gender_rows += [
            (job.target.name, report.gender_counts()) for job, report in reports if len(reports) > 1
        ]
        gender_rows.append(("all", total.gender_counts()))
        columns = ("variant", *(head for gender in genders for head in (gender, "%")))
        print_table(columns, [(name, *_shares(counts, genders)) for name, counts in gender_rows])
    for sentence in total.rarely_replaced():
        echo(f"Warning: {sentence}.", err=True)
    if compat and total.rarely_replaced():
        echo(
            "The published keys need all of these features; without --compat paper, others are used.",
            err=True,
        )


def _shares(counts: Mapping[str, int], names: Sequence[str]) -> Iterator[str]:
    """Yield the count of every name, and its share in percent."""
    total = sum(counts.values())
    for name in names:
        yield f"{counts[name]:,}"
        yield f"{100 * counts[name] / total:.1f}" if total else "-"


def _report_row(job: Job, report: Report) -> dict[str, Any]:
    def in_order(counts: Counter[str]) -> dict[str, int]:
        return {name: counts[name] for name in sorted(counts)}

    return {
        "source": str(job.source),
        "target": str(job.target),
        "language": job.language,
        "read": report.read,
        "dropped": report.dropped,
        "written": report.written,
        "words": in_order(report.words),
        "replaced": in_order(report.replaced),
        "inflected": in_order(report.inflected),
        "ladder": {f"{upos}:{step}": report.stepped[upos, step] for upos, step in sorted(report.stepped)},
        "without_donor": in_order(report.without_donor),
        "missing": {f"{upos}:{name}": count for (upos, name), count in sorted(report.missing.items())},
        "gender_totals": in_order(report.gender_counts()),
        "genders": {
            f"org{variant + 1}:{gender}": report.genders[variant, gender]
            for variant, gender in sorted(report.genders)
        },
    }


@app.command()
def stats(source: Source, json_file: Json = None) -> None:
    """Count the contents of a treebank, and show which tasks it supports and why not the others."""
    from harness.cli import check_output_file, print_table, write_rows
    from harness.data import read_sentences
    from harness_vyakarana.labels import FEATURES, stats_of
    from harness_vyakarana.treebank import treebank_files

    check_output_file(json_file, ".json")
    treebank_counts = [(path.name, stats_of(read_sentences(path))) for path in treebank_files(source)]
    sizes, labels, tasks = [], [], []
    for name, counts in treebank_counts:
        depths = f"{min(counts.depths)}-{max(counts.depths)}" if counts.depths else "-"
        shares = (f"{100 * counts.share(feature):.1f}" for feature in FEATURES)
        sizes.append((name, f"{counts.sentences:,}", f"{counts.words:,}", *shares, depths))
        labels.append((name, "genders", _counts(counts.genders, shares=True)))
        labels.append((name, "gcm", _counts(counts.cases)))
        labels.append((name, "sva", f"{_counts(counts.agreement)} (strict {counts.strict:,})"))
        for task, items, reason in counts.tasks():
            tasks.append((name, task, f"{items:,}", f"no: {reason}" if reason else "yes"))
    print_table(("treebank", "sentences", "words", *(f"{name} %" for name in FEATURES), "depth"), sizes)
    print_table(("treebank", "labels", "words by label"), labels)
    print_table(("treebank", "task", "items", "supported"), tasks)
    if json_file is not None:
        write_rows(json_file, [counts.row(name) for name, counts in treebank_counts])


def _counts(counts: Counter[str], *, shares: bool = False) -> str:
    total = counts.total()
    names = (
        f"{name} {count:,}{f' ({100 * count / total:.1f} %)' if shares else ''}"
        for name, count in counts.most_common()
    )
    return ", ".join(names) or "none"


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
    from dataclasses import asdict

    from harness import open_session
    from harness.cli import check_output_file, write_rows
    from harness.data import read_sentences
    from harness_vyakarana.donors import DEFAULT, PAPER, DonorPool
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.treebank import language_of
    from harness_vyakarana.treebank_check import check_colorless

    check_output_file(json_file, ".json")
    grammar = grammar_of(language_of(source, language), registered_grammars(open_session().registry))
    mode = PAPER if compat else DEFAULT
    result = check_colorless(
        list(read_sentences(source)),
        read_sentences(generated),
        grammar,
        mode,
        pool=None if pool is None else DonorPool(grammar, mode).add(read_sentences(pool)),
        shortest=shortest,
    )
    violations = result.violations
    echo(
        f"{result.sentences:,} sentences, {result.words:,} words, {result.changed.total():,} changed:"
        f" {len(violations):,} violations."
    )
    differing = [
        f"{name.upper()} of {count:,} words" for name, count in sorted(result.other_release.items()) if count
    ]
    if differing:
        echo(f"The source is from another release: {', '.join(differing)} differ; not counted as violations.")
    for violation in violations[:SHOWN_VIOLATIONS]:
        echo(f"  {violation}")
    if len(violations) > SHOWN_VIOLATIONS:
        echo(f"  and {len(violations) - SHOWN_VIOLATIONS} more (--json writes all).")
    if json_file is not None:
        write_rows(json_file, [asdict(violation) for violation in violations])
    if violations:
        if compat is None:
            echo("To check a released treebank, or one generated with --compat paper, use --compat paper.")
        raise typer.Exit(1)


@app.command()
def agreement(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="The .jsonl file to write.")],
    language: Language = None,
    json_file: Json = None,
) -> None:
    """Write items for the task colorless_green_agreement: verbs with a form that does not agree.

    Give a folder that holds a treebank and its colorless-green version to compare the two.
    """
    import json

    from harness import open_session
    from harness.cli import check_output_file, print_table, write_rows
    from harness.storage import write_atomically
    from harness_vyakarana.agreement_set import AgreementSet, Lexicon
    from harness_vyakarana.grammar import grammar_of, registered_grammars
    from harness_vyakarana.treebank import language_of, treebank_files, usable_sentences

    check_output_file(json_file, ".json")
    check_output_file(output, ".jsonl")
    files = treebank_files(source)
    languages = sorted({language_of(path, language) for path in files})
    if len(languages) > 1:
        raise UsageError(
            f"The files of {str(source)!r} are in {', '.join(languages)}; expected one language."
        )
    grammar = grammar_of(languages[0], registered_grammars(open_session().registry))
    agreement_set = AgreementSet(
        grammar, Lexicon(sentence for path in files for sentence in usable_sentences(path))
    )
    file_of: dict[str, Path] = {}
    lines = []
    for path in files:
        for sentence in usable_sentences(path):
            if (first := file_of.setdefault(str(sentence.sent_id), path)) is not path:
                raise DataError(
                    f"{path}:{sentence.line}: the sent_id {sentence.sent_id!r} is already used in {first.name!r}."
                )
            lines += [json.dumps(item, ensure_ascii=False) + "\n" for item in agreement_set.items(sentence)]
    write_atomically(output, "".join(lines).encode())
    row = agreement_set.report.row(str(source))
    skipped = "; ".join(f"{count:,} {reason}" for reason, count in agreement_set.report.skipped.most_common())
    report = agreement_set.report
    echo(
        f"Wrote {output}: {report.items.total():,} items from {report.sentences:,} sentences"
        + (f" (skipped verbs: {skipped})." if skipped else ".")
    )
    print_table(
        ("group", "contrast", "items"),
        [(item["group"], item["contrast"], f"{item['items']:,}") for item in row["items"]],
    )
    if json_file is not None:
        write_rows(json_file, [row])


@app.command("code-switch")
def code_switch(
    source: Source,
    output: Output,
    engine: Annotated[
        str | None,
        typer.Option(
            help="The transliterator; default: the engine of the language definition, else rules. Of the tokens of the "
            "released csCG-TTB, rules spells 20 % alike, indictrans (installed by hand, AGPL) 100 %."
        ),
    ] = None,
    ratio: Annotated[float, typer.Option(help="Share of the tokens that are switched.")] = 1.0,
    noise: Annotated[
        float, typer.Option(help="Share of the switched tokens with a spelling variation.")
    ] = 0.0,
    seed: Seed = 0,
    language: Language = None,
    compat: Annotated[
        Literal["paper"] | None, typer.Option(help="paper: as in the released files, without Orig= in MISC.")
    ] = None,
) -> None:
    """Write a treebank in Latin letters, token by token: FORM, LEMMA and text; all else is unchanged."""
    from harness import open_session
    from harness_vyakarana.code_switch import CodeSwitch, SwitchCounts, code_switch_file
    from harness_vyakarana.treebank import jobs_of, make_folder

    registry = open_session().registry
    jobs = jobs_of(source, output, language=language)
    switches = [
        CodeSwitch(
            engine=_engine(engine, job.language, registry),
            language=job.language,
            ratio=ratio,
            noise=noise,
            seed=seed,
            paper=compat == "paper",
        )
        for job in jobs
    ]
    total = SwitchCounts()
    for job, switch in zip(jobs, switches, strict=True):
        make_folder(job.target.parent)
        total.add(code_switch_file(job.source, job.target, switch))
    used = list({switch.engine.name: switch.engine for switch in switches}.values())
    names = ", ".join(
        f"{used_engine.name} {used_engine.version} ({used_engine.licence})" for used_engine in used
    )
    echo(
        f"{total.switched} of {total.tokens} tokens switched, {total.respelt} respelt, in {total.sentences} sentences "
        f"of {len(switches)} file(s), by {names}."
    )
    for used_engine in used:
        echo(f"{used_engine.name}: {used_engine.summary}.")
    if total.unknown:
        frequent = ", ".join(f"{form} ({count})" for form, count in total.unknown.most_common(EXAMPLES))
        echo(f"{total.unknown.total()} tokens still have letters without a rule: {frequent}.", err=True)


def _engine(name: str | None, language: str, registry: Registry) -> Transliterator:
    """Return the named engine, or else the engine of the language's definition."""
    from harness_vyakarana.grammar import registered_grammars

    if name is None:
        grammar = registered_grammars(registry).get(language)
        name = (grammar.transliterator if grammar is not None else None) or "rules"
    transliterator = registry.transliterators.get(name)
    if transliterator.ready is not None:
        transliterator.ready()
    return transliterator


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
    from harness.cli import print_table
    from harness_vyakarana.treebank import parse_ratios, split_file

    shares = parse_ratios(ratios)
    if source.is_dir():
        raise UsageError(f"{str(source)!r} is a folder, expected one .conllu file to split.")
    files = split_file(source, output, shares, seed=seed)
    total = sum(file.sentences for file in files)
    rows = []
    for file in files:
        counts = (f"{file.units:,}", f"{file.sentences:,}", f"{file.words:,}")
        rows.append((str(file.path), *counts, f"{file.sentences / total:.1%}"))
    print_table(("file", "kept whole", "sentences", "words", "share"), rows)


@app.command()
def show(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="IN...", help="Files or folders: a treebank, and those made from it."),
    ],
    sentences: Annotated[
        list[str] | None,
        typer.Option("--sentence", metavar="ID", help="The sent_id in the source; repeatable."),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Without --sentence: how many to show.")] = 1,
    format_name: Annotated[str | None, typer.Option("--format", help="text or latex.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Write to this file.")
    ] = None,
) -> None:
    """Show sentences with their generated versions side by side, word by word."""
    from harness.cli import choose_format, write_file
    from harness.reporting import print_blocks, render_latex
    from harness_vyakarana.side_by_side import side_by_side

    format_name = choose_format(format_name, output, {"text": ".txt", "latex": ".tex"})
    tables = side_by_side(sources, sentences or [], count=count)
    text = render_latex(tables) if format_name == "latex" else print_blocks(tables).lstrip("\n")
    if output is None:
        echo(text, nl=False)
    else:
        write_file(output, text)
