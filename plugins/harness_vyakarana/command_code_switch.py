"""``harness treebank code-switch`` on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.output import echo

__all__ = ["code_switch", "language_of", "switched_files"]

if TYPE_CHECKING:
    from harness import Transliterator
    from harness.registry.registry import Registry
    from harness_vyakarana.code_switch import CodeSwitch, SwitchCounts

DEFAULT_ENGINE = "rules"
EXAMPLES = 5


def code_switch(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A CoNLL-U file, or a folder of them.")],
    out: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="A file for a file, a folder for a folder.")
    ],
    engine: Annotated[
        str | None,
        typer.Option(help="The transliterator; default: the engine of the language definition, else rules."),
    ] = None,
    ratio: Annotated[float, typer.Option(help="Share of the tokens that are switched.")] = 1.0,
    noise: Annotated[
        float, typer.Option(help="Share of the switched tokens with a spelling variation.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    language: Annotated[
        str | None,
        typer.Option(
            help="Language code; default: the prefix of the file name, such as ta in ta_ttb-ud-test."
        ),
    ] = None,
    compat: Annotated[
        Literal["paper"] | None, typer.Option(help="paper: as in the released files, without Orig= in MISC.")
    ] = None,
) -> None:
    """Write a treebank in Latin letters, token by token: FORM, LEMMA and text; all else is unchanged."""
    # Imported here so that help stays fast.
    from harness import open_session
    from harness.storage.files import FileNotWrittenError
    from harness_vyakarana.code_switch import CodeSwitch, SwitchCounts, code_switch_file

    registry = open_session().registry
    jobs = [
        (
            path,
            target,
            CodeSwitch(
                engine=_engine(engine, language or language_of(path), registry),
                language=language or language_of(path),
                ratio=ratio,
                noise=noise,
                seed=seed,
                paper=compat == "paper",
            ),
        )
        for path, target in switched_files(source, out)
    ]
    total = SwitchCounts()
    for path, target, switch in jobs:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileNotWrittenError(target, error) from error
        total.add(code_switch_file(path, target, switch))
    _print_counts(total, [switch for _, _, switch in jobs])


def _print_counts(total: SwitchCounts, switches: Sequence[CodeSwitch]) -> None:
    used = {switch.engine.name: switch.engine for switch in switches}.values()
    names = ", ".join(f"{one.name} {one.version} ({one.licence})" for one in used)
    echo(
        f"{total.switched} of {total.tokens} tokens switched, {total.respelt} respelt, in {total.sentences} sentences "
        f"of {len(switches)} file(s), by {names}."
    )
    if total.unknown:
        shown = ", ".join(f"{form} ({count})" for form, count in total.unknown.most_common(EXAMPLES))
        echo(f"{total.unknown.total()} tokens still have letters without a rule: {shown}.", err=True)


def _engine(name: str | None, language: str, registry: Registry) -> Transliterator:
    """Return the named engine, or else the engine of the language's definition."""
    from harness_vyakarana.grammar import registered_grammars

    if name is None:
        grammar = registered_grammars(registry).get(language)
        name = (grammar.transliterator if grammar is not None else None) or DEFAULT_ENGINE
    transliterator = registry.transliterators.get(name)
    if transliterator.ready is not None:
        transliterator.ready()
    return transliterator


def switched_files(source: Path, out: Path) -> list[tuple[Path, Path]]:
    """Return (source, target) of every file; raises `MissingDataError` or `UsageError`."""
    from harness import MissingDataError, UsageError

    if source.is_dir():
        if out.exists() and not out.is_dir():
            raise UsageError(
                f"{str(source)!r} is a folder, expected a folder for --out, found the file {str(out)!r}."
            )
        pairs = [(path, out / path.relative_to(source)) for path in sorted(source.rglob("*.conllu"))]
        if not pairs:
            raise MissingDataError(f"The folder {str(source)!r} has no .conllu files.")
    elif source.is_file():
        if out.is_dir():
            raise UsageError(
                f"{str(source)!r} is a file, expected a file for --out, found the folder {str(out)!r}."
            )
        pairs = [(source, out)]
    else:
        raise MissingDataError(f"The file or folder {str(source)!r} does not exist.")
    if any(path.resolve() == target.resolve() for path, target in pairs):
        raise UsageError(f"--out {str(out)!r} would overwrite its source.", hint="Give another --output.")
    return pairs


def language_of(path: Path) -> str:
    """Return the language code that the name of a UD file begins with: ``ta`` of ``ta_ttb-ud-test.conllu``."""
    from harness import UsageError

    code, underscore, _ = path.name.partition("_")
    if not underscore or not code.isalpha() or not code.islower() or len(code) > 3:
        raise UsageError(
            f"The name of {str(path)!r} does not start with a language code, as ta_ttb-ud-test.conllu does.",
            hint="Give --language.",
        )
    return code
