"""Bitext: two files whose lines, or whose rows with equal keys, are translations of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.data.readers.reader import Reader, choice, count_blank_lines, is_blank_line, numbered_lines
from harness.data.readers.tabular import CSV, TSV, read_jsonl, read_parquet
from harness.data.records import Row
from harness.errors import DataError, UsageError


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    if len(paths) != 2:
        raise UsageError(f"The reader 'bitext' needs two files, one of each language, found {len(paths)}.")
    query_index = int(choice(options, "query_index", ("0", "1")))
    query_path, target_path = paths[query_index], paths[1 - query_index]
    return (_joined if "key" in options else _parallel)(query_path, target_path, options)


def _parallel(query_path: Path, target_path: Path, options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the pairs of two files of lines; a line that is blank in both is no pair."""
    queries, targets = _sentences(query_path), _sentences(target_path)
    shorter, longer = sorted((queries, targets), key=len)
    while len(longer) > len(shorter) and not longer[-1]:
        longer.pop()
    if len(queries) != len(targets):
        raise DataError(
            f"{query_path}: expected as many lines as {target_path} has, "
            f"found {len(queries)} against {len(targets)}."
        )
    blank = 0
    for line, (query, target) in enumerate(zip(queries, targets, strict=True), start=1):
        if not query and not target:
            blank += 1
            continue
        if not query or not target:
            path = target_path if query else query_path
            raise DataError(f"{path}:{line}: expected a sentence, found a blank line.")
        fields = {"id": str(line), options.get("query", "query"): query, "target": target}
        yield Row(fields=fields, path=str(query_path), line=line)
    count_blank_lines(query_path, blank)


def _joined(query_path: Path, target_path: Path, options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the pairs of two tables, in the order of the queries; both must have the same keys, each once."""
    queries, targets = _table(query_path, options), _table(target_path, options)
    for path, rows, other_path, other_rows in (
        (query_path, queries, target_path, targets),
        (target_path, targets, query_path, queries),
    ):
        for key, row in rows.items():
            if key not in other_rows:
                raise DataError(
                    f"{row.where}: {options['key']} {key!r} of {path.name} is not in {other_path}."
                )
    for key, row in queries.items():
        query, target = row.fields["text"], targets[key].fields["text"]
        fields = {"id": key, options.get("query", "query"): query, "target": target}
        yield Row(fields=fields, path=row.path, line=row.line)


def _table(path: Path, options: Mapping[str, str]) -> dict[str, Row]:
    columns = {"columns": f"key={options['key']},text={options['text']}"}
    if path.suffix == ".parquet":
        rows = read_parquet([path], columns)
    elif path.suffix == ".jsonl":
        rows = read_jsonl([path], columns)
    elif path.suffix == ".csv":
        rows = CSV.read([path], {**columns, "header": "true"})
    else:
        rows = TSV.read([path], {**columns, "header": "true", "quoting": "rfc4180"})
    by_key: dict[str, Row] = {}
    for row in rows:
        key = "" if row.fields["key"] is None else str(row.fields["key"])
        if not key.strip():
            raise DataError(f"{row.where}: expected the {options['key']} of a sentence, found none.")
        if key in by_key:
            raise DataError(f"{row.where}: expected each {options['key']} once, found {key!r} again.")
        if not str(row.fields["text"]).strip():
            raise DataError(f"{row.where}: expected a sentence, found none.")
        by_key[key] = row
    return by_key


def _sentences(path: Path) -> list[str]:
    """Return the lines of a file, blank ones as empty texts."""
    return ["" if is_blank_line(text) else text.rstrip() for _, text in numbered_lines(path)]


def _check(options: Mapping[str, str]) -> None:
    if ("key" in options) != ("text" in options):
        raise UsageError("The reader 'bitext' needs the options 'key' and 'text' together, or none of them.")


BITEXT = Reader(
    name="bitext",
    read=_read,
    summary="Two files with one sentence per line; equal line numbers, or equal keys of tables, are translations.",
    options={
        "query_index": "which of the two files holds the queries: '0' (default) or '1'",
        "query": "the field that queries become: 'query' (default), or 'source' of translations",
        "key": "for tables (.parquet, .jsonl; with a header .csv, else tabs): the column that joins rows, and the id",
        "text": "their column with the sentence",
    },
    check=_check,
    joins=True,
)
