"""Write the items of ONERULER for a model: as long as its window, counted with its own tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import JsonFile, Languages, takes_settings

if TYPE_CHECKING:
    from harness_long_context.generation import Count, Item

Texts = Annotated[Path, typer.Option("--texts", help="The folder OneRuler/data of mungg/OneRuler.")]
Output = Annotated[Path, typer.Option("--output", help="Data folder; the files go into its folder oneruler.")]
Lengths = Annotated[
    list[str] | None,
    typer.Option("--lengths", help="8k, 32k, 64k, 128k; all by default, as pieces of the model."),
]
Items = Annotated[int, typer.Option("--items", min=1, help="Items per task, language and length.")]
Seed = Annotated[int, typer.Option("--seed", help="Of all draws.")]
app = typer.Typer(add_completion=False)
NOTE = """
Equal pieces are no equal information: compare 'characters' and 'sentences' before languages. Run them with:
harness eval --tasks oneruler_niah,oneruler_cwe --model {model} --chat --data {output}"""
COLUMNS = ("language", "length", "task", "sentences", "characters", "pieces")
SHOWN = ("niah_single", "cwe_easy", "cwe_hard")
"""Tasks with a row in the table: the five of needles have the same text."""


@app.command()
@takes_settings("model", "options")
def needles(
    texts: Texts,
    output: Output,
    languages: Languages = None,
    lengths: Lengths = None,
    items: Items = 50,
    seed: Seed = 0,
    json_file: JsonFile = None,
    **given: Any,
) -> None:
    """Write needles in books and lists of frequent words, in 26 languages, as long as a model's window (ONERULER).

    The text fills 8k to 128k pieces of the model's own tokenizer. Items of one number have the same needles, places
    and questions in all languages.

    Example: harness needles --model hf:models/smollm2 --texts OneRuler/data --output data --lengths 8k
    """
    # Imported here so that help stays fast.
    from harness.cli import check_output_file, echo, print_table, show_progress, write_rows
    from harness_long_context.generation import LENGTHS
    from harness_long_context.metrics import LANGUAGES

    check_output_file(json_file, ".json")
    codes = _names("language", languages, list(LANGUAGES))
    sizes = {name: LENGTHS[name] for name in _names("length", lengths, list(LENGTHS))}
    model = given["model"] or ""
    rows = []
    with _counting(model, given["options"]) as count, show_progress() as progress:
        progress.start("Contexts", len(codes), "languages")
        for code in codes:
            rows += _write_language(texts, output / "oneruler", code, sizes, range(items), seed, count)
            progress.advance(1)
        progress.finish()
    write_rows(json_file, [{**row, "model": model, "seed": seed, "items": items} for row in rows])
    print_table(COLUMNS, [[_cell(value) for value in row.values()] for row in rows])
    echo(NOTE.format(model=model, output=output))


def _cell(value: str | int | None) -> str:
    return f"{value:,}" if isinstance(value, int) else value or ""


def _names(noun: str, option: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """Return the names of a repeatable option with commas, all where there is none; raises `UnknownNameError`."""
    from harness import UnknownNameError

    chosen = [name.strip() for text in option or names for name in text.split(",")]
    for name in chosen:
        if name not in names:
            raise UnknownNameError(noun, name, names)
    return list(dict.fromkeys(chosen))


@contextmanager
def _counting(model: str, options: Sequence[str] | None) -> Iterator[Count]:
    """Yield the function that counts the pieces of a text with the model's tokenizer.

    Raises `UsageError` without a model, and `CapabilityError` for one that does not count.
    """
    from contextlib import closing

    from harness import CapabilityError, UsageError, open_session
    from harness.models import CountsTokens
    from harness.planning import key_values, resolve_model

    if not model:
        raise UsageError("Option --model is missing: its tokenizer counts the pieces.")
    resolved = resolve_model(open_session().registry.adapters, model, key_values(options or []))
    with closing(resolved.entry.open(resolved.description, resolved.options)) as adapter:
        if not isinstance(adapter, CountsTokens):
            raise CapabilityError(f"The model {model!r} does not count the pieces of prompts.")
        yield lambda text: adapter.token_counts([text])[0]


def _write_language(
    texts: Path, folder: Path, code: str, lengths: dict[str, int], numbers: range, seed: int, count: Count
) -> list[dict[str, Any]]:
    """Write the files of a language; return one row per length and sort of task, with the size of the first item."""
    from harness.cli import echo
    from harness_long_context.generation import language_files
    from harness_long_context.material import read_material

    material = read_material(texts, code)
    if not material.words:
        echo(f"{code}: there is no dictionary of words, so oneruler_cwe is not written.", err=True)
    rows = []
    for name, task, sentences, items in language_files(material, lengths, numbers, seed, count):
        _write(folder / task / f"{code}-{name}.jsonl", items)
        if task in SHOWN:
            context, question = items[0]["context"], items[0]["question"]
            sizes = (sentences, len(context), count(context + question))
            rows.append(dict(zip(COLUMNS, (code, name, task, *sizes), strict=True)))
    return rows


def _write(path: Path, items: Sequence[Item]) -> None:
    import json

    from harness.storage import write_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    write_atomically(path, "".join(lines).encode())
