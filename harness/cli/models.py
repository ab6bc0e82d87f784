"""``harness models``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.files import JsonRows

if TYPE_CHECKING:
    from harness.models.adapters import AdapterEntry
    from harness.registry.registry import Registry

app = typer.Typer(add_completion=False)


@app.command()
def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="An adapter, or ADAPTER:REF to see what a model offers."),
    ] = None,
    checked: Annotated[
        str | None,
        typer.Argument(
            metavar="[check ADAPTER:REF]", help="Try a tiny random model of this one's architecture."
        ),
    ] = None,
    json_file: JsonRows = None,
) -> None:
    """List the model adapters; with a name, show its options, or what a model can do.

    Example: harness models check hf:google/mt5-small
    """
    from harness.cli.output import reporting_broken_plugins, write_rows
    from harness.cli.table import print_table
    from harness.registry.discovery import discover
    from harness.registry.registry import Registry

    registry = Registry(discover())
    with reporting_broken_plugins(registry.plugins):
        heads, rows, lines = _table(registry, name) if checked is None else _check(registry, name, checked)
    print_table(heads, lines)
    write_rows(json_file, rows)


def _table(registry: Registry, name: str | None) -> tuple[list[str], list[dict[str, Any]], list[list[str]]]:
    if name is None:
        rows: list[dict[str, Any]] = [
            {"adapter": entry.name, "summary": entry.summary, "examples": list(entry.examples)}
            for entry in registry.adapters
        ]
        lines = [[row["adapter"], row["summary"], "  ".join(row["examples"])] for row in rows]
        return ["adapter", "summary", "try"], rows, lines
    if ":" in name:
        rows = [_description(registry, name)]
        return ["field", name], rows, [[key, str(value)] for key, value in rows[0].items()]
    rows = _options(registry.adapters.get(name))
    return ["option", "default", "meaning"], rows, [[str(value) for value in row.values()] for row in rows]


def _check(
    registry: Registry, word: str | None, name: str
) -> tuple[list[str], list[dict[str, Any]], list[list[str]]]:
    """Return the table of what works with a tiny model; raises `UsageError` for two names without ``check``."""
    from harness.errors import UsageError
    from harness.models.adapters import ModelReference
    from harness.models.options import parse_options

    if word != "check":
        raise UsageError(f"'harness models' takes one name, got {word!r} and {name!r}.")
    reference = ModelReference.parse(name)
    entry = registry.adapters.get(reference.scheme)
    results = entry.check_model(reference.ref, parse_options(entry, {}))
    rows = [{"tried": attempt, "result": result} for attempt, result in results.items()]
    return ["tried with a tiny random model", "result"], rows, [[*row.values()] for row in rows]


def _options(entry: AdapterEntry) -> list[dict[str, Any]]:
    from harness.models.options import option_meanings, options_model

    model = options_model(entry)
    return [
        {"option": key, "default": str(model.model_fields[key].default), "meaning": meaning}
        for key, meaning in option_meanings(model).items()
    ]


def _description(registry: Registry, name: str) -> dict[str, Any]:
    from harness.planning.planner import resolve_model

    description = resolve_model(registry.adapters, name, {}).description
    limits = description.constraints
    fitted = {head.value: sorted(offers) for head, offers in description.after_fit.items()}
    return {
        "adapter": description.adapter,
        "parameters": "unknown" if description.parameters is None else f"{description.parameters:,}",
        "layers": description.layers,
        "revision": description.revision,
        "labels": ", ".join(description.labels),
        "offers": ", ".join(sorted(description.offers)) or "nothing",
        **({} if limits is None else {"constrains to": ", ".join(sorted(limits)) or "nothing"}),
        **{f"after fitting {head}": ", ".join(offers) for head, offers in sorted(fitted.items())},
        "note": description.note,
    }
