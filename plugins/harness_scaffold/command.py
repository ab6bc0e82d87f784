"""Write a task for your data, or a package: plugin, task, language, adapter, metric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli import echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.running import Session
    from harness_scaffold.data_task import TableColumns, TaskTable
    from harness_scaffold.scaffold import PackageName

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Write a task for a table of yours, or a small working package with tests.",
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of the package and of what it adds: lowercase letters, digits, '-'."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "--out", "-o", help="The new folder; default: one named after the package."),
]
LanguageName = Annotated[
    str | None, typer.Option("--language-name", help="Name of a language that the harness does not know.")
]
Script = Annotated[str | None, typer.Option("--script", help="Its script, such as Latn.")]
Family = Annotated[str | None, typer.Option("--family", help="Its family.")]
AsPackage = Annotated[
    bool, typer.Option("--package", help="With --from: write a package with the data, to install with pip.")
]
License = Annotated[
    str | None,
    typer.Option("--license", metavar="ID", help="With --package: licence of the data, as cc-by-4.0."),
]
Citation = Annotated[
    str | None, typer.Option("--citation", help="With --package: where the data are from; default: the file.")
]
Provenance = Annotated[
    Literal["native", "human-translated", "machine-translated", "post-edited"],
    typer.Option("--provenance", help="How the text in the language is made."),
]


@app.command()
def plugin(name: Name, output: Output = None) -> None:
    """Write a package with a task, a metric and a report format."""
    session, checked = _opened(name, output)
    _check_names(session, checked.package)
    _check_free(checked, "report format", session.registry.reports)
    metric = f"{checked.package}_lowest_recall"
    _write("plugin", checked, output, {**_task_words("accuracy", metric), "metric": metric})


@app.command()
def task(
    name: Name,
    table: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Write one YAML for this .csv, .tsv, .jsonl or .parquet."
        ),
    ] = None,
    text: Annotated[str, typer.Option("--text", help="The column of the text, or of two: a,b.")] = "text",
    label: Annotated[str, typer.Option("--label", help="The column of the label.")] = "label",
    language_column: Annotated[
        str | None, typer.Option("--language-column", help="The column of the language: code or name.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--language", metavar="CODE", help="The language of all rows.")
    ] = None,
    language_name: LanguageName = None,
    script: Script = None,
    family: Family = None,
    identifier: Annotated[
        str | None,
        typer.Option("--id", help="The column of an id that is the same item in every language."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option("--train", metavar="FILE", help="The rows to train on; default: none.")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--test-share", min=0.01, max=0.99, help="Test on this share, train on the rest."),
    ] = None,
    package: AsPackage = False,
    license_name: License = None,
    provenance: Provenance = "native",
    citation: Citation = None,
    output: Output = None,
) -> None:
    """Write a task: of your own file with --from, else a package with a spec, a prompt and a sample."""
    from harness import UsageError

    if table is not None:
        from harness_scaffold.data_task import TableColumns
        from harness_scaffold.language_split import Described

        texts = tuple(part.strip() for part in text.split(","))
        columns = TableColumns(
            texts=texts,
            label=label,
            language=language_column,
            only=only,
            identifier=identifier,
            described=Described(name=language_name, script=script, family=family),
        )
        card = _card(table, license_name, provenance, citation) if package else None
        _write_from_table(name, table, columns, train, share, output, card)
        return
    if package:
        raise UsageError("--package needs the data: --from FILE.")
    session, checked = _opened(name, output)
    _check_names(session, checked.package)
    _write("task", checked, output, _task_words("accuracy"))


def _card(file: Path, license_name: str | None, provenance: str, citation: str | None) -> dict[str, str]:
    """Return the data card of a package; raises `UsageError` where the data have no licence."""
    from harness import UsageError

    if license_name is None:
        raise UsageError(
            "A package that others install needs the licence of its data.",
            hint="Give it with --license, for example cc-by-4.0, cc0-1.0 or other.",
        )
    return {
        "description": f"The rows of {file.name}: a text and its label.",
        "citation": citation or file.name,
        "license": license_name,
        "provenance": provenance,
    }


def _write_from_table(
    name: str,
    file: Path,
    columns: TableColumns,
    train: Path | None,
    share: float | None,
    output: Path | None,
    card: Mapping[str, str] | None = None,
) -> None:
    from harness import UsageError, open_session
    from harness_scaffold.data_task import divide, read_table, shared_texts, spec_text, training_language
    from harness_scaffold.scaffold import check_output_folder, package_name

    if (columns.language is None) == (columns.only is None):
        raise UsageError("Say which language the rows are in: --language-column COLUMN, or --language CODE.")
    if train is not None and share is not None:
        raise UsageError("--train and --test-share cannot be given together: the test set is the whole file.")
    task = package_name(name).package
    target = output or Path(f"{task}.yaml")
    session = open_session() if card is None else _opened(name, output)[0]
    _check_names(session, task)
    written = [target]
    table = learned = read_table(session, file, columns)
    files, source, folder = {"test": file.name}, None, file.parent
    if train is not None:
        if train.resolve().parent != file.resolve().parent:
            raise UsageError(f"{str(train)!r} must lie in the folder of {str(file)!r}, which --data names.")
        learned = read_table(session, train, columns)
        shared = shared_texts(table, learned, columns)
        if shared:
            raise UsageError(
                f"{shared} rows of {str(file)!r} are also in {str(train)!r}, which is trained on.",
                hint="Remove them from one of the files, or give one file with --test-share.",
            )
        source = training_language(learned)
        files = {"train": train.name, **files}
    elif share is not None:
        parts = divide(table, columns, share)
        files = {split: f"{task}-{split}.jsonl" for split in ("train", "test")}
        folder = target.parent
        written += [folder / part for part in files.values()]
        source = training_language(table)
    if card is not None:
        pair = (learned.rows, table.rows) if share is None else parts
        splits = {"test": table.rows} if source is None else {"train": pair[0], "test": pair[1]}
        spec = spec_text(task, table, columns, dict.fromkeys(splits, ""), source, card)
        _write_data_package(package_name(name), output, table, splits, spec, card)
        return
    for path in written:
        check_output_folder(path)
    for path, rows in zip(written[1:], parts if share is not None else (), strict=True):
        _write_lines(path, rows)
    target.write_text(spec_text(task, table, columns, files, source), encoding="utf-8")
    echo(f"{' '.join(map(str, written))}: {table.summary()}")
    if source is None:
        echo(
            "All rows are test items: a model is prompted. To fine-tune, give --train FILE or --test-share 0.3."
        )
    model = "MODEL" if source is None else "baseline:majority"
    echo(f"Run: harness eval --tasks {task} --tasks-from {target} --data {folder} --model {model}")


def _write_data_package(
    name: PackageName,
    output: Path | None,
    table: TaskTable,
    splits: Mapping[str, Iterable[Mapping[str, Any]]],
    spec: str,
    card: Mapping[str, str],
) -> None:
    """Write a package with a task and its data; its tests fail where a language is a copy of another one."""
    fewest = min(counts.total() for counts in table.counts.values())
    words = {
        **card,
        "codes": ", ".join(table.counts),
        "counts": table.summary(),
        "languages": str(len(table.counts)),
        "fewest": str(1 if len(splits) > 1 else fewest),
    }
    root = f"src/{name.package}"
    further = {f"{root}/data/{split}.jsonl": _lines(rows) for split, rows in splits.items()}
    _write("data", name, output, words, {f"{root}/specs/{name.package}.yaml": spec, **further})


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    import json

    return "".join(json.dumps(dict(row), ensure_ascii=False, default=str) + "\n" for row in rows)


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text(_lines(rows), encoding="utf-8")


@app.command()
def language(
    code: Annotated[str, typer.Argument(metavar="CODE", help="Language code, such as yo or zh-Hant.")],
    task_name: Annotated[str, typer.Option("--task", help="The task that it joins.")] = "xnli",
    origin: Annotated[
        str, typer.Option("--from", metavar="CODE", help="Copy the sample of this language.")
    ] = "en",
    provenance: Provenance = "human-translated",
    called: Annotated[
        str | None, typer.Option("--name", help="Name of a language that the harness does not list.")
    ] = None,
    script: Annotated[str | None, typer.Option("--script", help="Its script, such as Latn.")] = None,
    family: Annotated[str | None, typer.Option("--family", help="Its family.")] = None,
    flores: Annotated[
        str | None, typer.Option("--flores", help="Its FLORES code, such as pfl_Latn; optional.")
    ] = None,
    output: Output = None,
) -> None:
    """Write a package that adds a language to a task; translate the items of its sample next."""
    from harness import open_session
    from harness_scaffold.language_split import Described, language_words

    words = language_words(
        open_session(),
        code=code,
        task=task_name,
        origin=origin,
        provenance=provenance,
        described=Described(name=called, script=script, family=family, flores=flores),
    )
    _, checked = _opened(f"{task_name}-{code}".lower().replace("_", "-"), output)
    words["summary"] = f"The language {code} for the task {task_name} of the harness."
    _write("language", checked, output, words)
    echo(f"The sample still holds the text in {origin!r}: translate it, and keep ids and labels.")


@app.command()
def adapter(name: Name, output: Output = None) -> None:
    """Write a package with a model adapter that turns texts into vectors."""
    session, checked = _opened(name, output)
    _check_free(checked, "model adapter", session.registry.adapters)
    _write("adapter", checked, output, {})


@app.command()
def metric(name: Name, output: Output = None) -> None:
    """Write a package with a metric whose interval is resampled."""
    session, checked = _opened(name, output)
    _check_free(checked, "metric", session.registry.metrics)
    _write("metric", checked, output, {"metric": checked.package})


def _opened(name: str, output: Path | None) -> tuple[Session, PackageName]:
    """Return the session and the checked name; the name and the output folder must be free."""
    from harness import UsageError, open_session
    from harness_scaffold.scaffold import check_output_folder, check_package_is_free, package_name

    checked = package_name(name)
    check_output_folder(output or Path(checked.distribution))
    session = open_session()
    found = session.registry.plugins
    owners = {item.name: item.distribution for item in (*found.loaded, *found.broken)}
    if checked.package in owners or checked.package in found.disabled:
        owner = f" of the package {owners[checked.package]!r}" if checked.package in owners else ""
        raise UsageError(f"The name {checked.package!r} is taken by a plugin{owner}.", hint="Choose another.")
    check_package_is_free(checked)
    return session, checked


def _check_free(name: PackageName, sort: str, known: Iterable[Any]) -> None:
    """Raise `UsageError` where the name of something known is the same, in either spelling."""
    from harness import UsageError

    for other in (item.name for item in known):
        if other.replace("-", "_") == name.package:
            raise UsageError(f"The name {other!r} is taken by a {sort}.", hint="Choose another.")


def _check_names(session: Session, name: str) -> None:
    from harness import UsageError

    for sort in ("task", "training", "suite"):
        if name in session.catalog.names(sort):
            label = "training set" if sort == "training" else sort
            owner = session.catalog.entry(sort, name).plugin
            raise UsageError(
                f"The name {name!r} is taken by a {label} of the plugin {owner!r}.",
                hint="Choose another; 'harness tasks list' shows all.",
            )


def _task_words(*metrics: str) -> Mapping[str, str]:
    listed = ", ".join(metrics)
    return {"metrics": listed, "padding": " " * max(1, 20 - len(listed))}


def _write(
    sort: str,
    name: PackageName,
    output: Path | None,
    words: Mapping[str, str],
    further: Mapping[str, str] | None = None,
) -> None:
    """Write the files of the templates, and `further` ones: path -> text."""
    from harness_scaffold.scaffold import render, write_package

    folder = output or Path(name.distribution)
    named = {"adapter": "model adapter", "data": "task"}.get(sort, sort)
    own = {"package": name.package, "distribution": name.distribution}
    own["summary"] = f"The {named} {name.package} for the harness."
    contents = {**render(sort, {**own, **words}), **(further or {})}
    write_package(folder, contents)
    echo(f"{folder}: {len(contents)} files")
    for path in sorted(contents):
        echo(f"  {path}")
    echo(f"Install it: pip install -e {folder}   Test it: pytest {folder}   Then read {folder / 'README.md'}")
