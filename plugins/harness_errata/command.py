"""Correct items of benchmarks: check files of corrections, show both scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import AllowCode, Data, TasksFrom, extends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_errata.document import Errata

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Correct items of benchmarks, and show both scores."
)

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A folder of errata files; 'shipped' has those of the harness.")
]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
ErrataFolder = Annotated[
    Path | None,
    typer.Option(
        "--errata",
        metavar="DIR",
        help="Show the scores as published and with the corrections of this folder; 'shipped' has the harness's.",
    ),
]


@app.callback()
def errata() -> None:
    """Check files of corrections, and score runs as published and corrected."""


@app.command("check")
def check(
    folder: Folder,
    data: Data = None,
    tasks_from: TasksFrom = None,
    runs: Annotated[
        list[Path] | None, typer.Option("--run", help="Verify on the items of this run, not on data files.")
    ] = None,
    allow_code: AllowCode = False,
    json_file: Json = None,
) -> None:
    """Check errata for a pull request: keys, languages, repeats, and with --data or --run ids and digests.

    Exit status 2 with all faults and their lines.

    Example: harness errata check errata --data data
    """
    # Imported here so that help stays fast.
    from harness.cli import check_output_file, echo, print_table, write_rows
    from harness_errata.document import read_errata
    from harness_errata.fitting import check_fits, check_rows, fit_data, fit_runs

    check_output_file(json_file, ".json")
    read = read_errata(folder)
    if runs:
        fits = fit_runs(read, runs)
    else:
        fits = fit_data(read, data, tasks_from or (), allow_code=allow_code) if data else []
    check_fits(fits, complete=not runs)
    rows = list(check_rows(read, fits))
    heads = [name for name in rows[0] if name != "revision"]
    print_table(heads, [["-" if row[name] is None else str(row[name]) for name in heads] for row in rows])
    echo(f"Digest of the folder: {read.digest[:16]}")
    if not fits:
        echo("Ids and digests were not verified. To verify them: --data FOLDER, --data hub, or --run RUN.")
    if json_file is not None:
        write_rows(json_file, rows)


@app.command("score")
def score(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    errata_folder: Annotated[
        Path, typer.Option("--errata", metavar="DIR", help="A folder of errata files, or 'shipped'.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", help="Keep the corrected run here; of several runs, a folder of them."
        ),
    ] = None,
    allow_code: AllowCode = False,
    json_file: Json = None,
) -> None:
    """Score runs as published and corrected, from the same answers, with the changes in rank.

    Example: harness errata score runs/a runs/b --errata shipped
    """
    from harness.cli import check_output_file
    from harness_errata.document import read_errata

    check_output_file(json_file, ".json")
    _show_both(folders, read_errata(folder=errata_folder), output, json_file, allow_code=allow_code)


def _show_both(
    folders: Sequence[Path],
    read: Errata,
    output: Path | None = None,
    json_file: Path | None = None,
    *,
    allow_code: bool = False,
) -> None:
    """Score runs as published and corrected, print both scores, and write the rows; raises as `correct_runs` does."""
    from harness import open_session
    from harness.cli import echo, print_table, reporting_broken_plugins, write_rows
    from harness_errata.correction import correct_runs, notes, score_rows, score_table

    registry = open_session(allow_code=allow_code).registry
    with reporting_broken_plugins(registry.plugins):
        runs = correct_runs(folders, read, registry, output)
        rows = score_rows(runs, read, registry)
    print_table(*score_table(rows))
    echo("")
    for line in notes(runs, read):
        echo(line)
    if output is not None:
        echo(f"The corrected {'run is' if len(runs) == 1 else 'runs are in'} {output}.")
    if json_file is not None:
        write_rows(json_file, rows)


def in_eval(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``harness eval`` the option: the run is made as without it, then scored twice."""

    @extends(command)
    def evaluate(errata: ErrataFolder = None, **given: Any) -> Any:
        if errata is None:
            return command(**given)
        from harness.cli import echo
        from harness_errata import FINISHED
        from harness_errata.document import read_errata

        read = read_errata(errata)  # before the model is opened
        FINISHED.clear()
        status = command(**given)
        if FINISHED:  # elsewhere this process started others, of which one shows it
            echo("")
            _show_both(FINISHED[-1:], read, allow_code=bool(given.get("allow_code")))
        return status

    return evaluate


def in_score(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``harness score`` the option: RUN stays as it is, and ``--output`` keeps the corrected run."""

    @extends(command)
    def score(errata: ErrataFolder = None, **given: Any) -> Any:
        if errata is None:
            return command(**given)
        from harness import UsageError
        from harness.cli import check_output_file
        from harness_errata.document import read_errata

        for name in ("gold", "metrics", "timeout"):
            if given[name] is not None:
                raise UsageError(
                    f"--errata and --{name} cannot be given together.",
                    hint="Keep the corrected run with --output, and score that one.",
                )
        check_output_file(given["json_file"], ".json")
        _show_both(
            [given["folder"]],
            read_errata(errata),
            given["output"],
            given["json_file"],
            allow_code=given["allow_code"],
        )
        return 0

    return score
