"""A table with one translator per pair of languages: the paper used M2M100 for en->zh and NLLB for all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from harness import DataError, Problem, SpecError, UsageError
from harness.data import Translation, Translator, TranslatorContext, TranslatorInfo
from harness.specs import SpecModel, read_yaml, validate_document

Pair = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z-]+->(\*|[A-Za-z-]+)|\*->[A-Za-z-]+)$")]


class RoutingTable(SpecModel):
    """The YAML document of a routing table."""

    routes: dict[Pair, str] = Field(min_length=1)
    """``en->zh``, ``en->*``, ``*->en`` or ``*`` -> a value of ``--translator``; the most specific one counts."""


class RoutedTranslator:
    """Passes each pair to the translator that the table names; opens a translator when it is first needed."""

    def __init__(self, table: RoutingTable, path: Path, context: TranslatorContext) -> None:
        self._table = table
        self._path = path
        self._context = context
        self._open: dict[str, Translator] = {}

    def info(self) -> TranslatorInfo:
        """Return the table; the translator of a pair describes itself."""
        return TranslatorInfo(
            id=self._path.name, engine="route", engine_version="1", decoding=dict(self._table.routes)
        )

    def supports(self, source: str, target: str) -> bool:
        """Return whether the table has a row for the pair and its translator supports it."""
        return self._named(source, target) is not None and self.route(source, target).supports(source, target)

    def route(self, source: str, target: str) -> Translator:
        """Return the translator of a pair; raises `UsageError` if the table has none."""
        full_name = self._named(source, target)
        if full_name is None:
            raise UsageError(
                f"The routing table {str(self._path)!r} has no row for {source}->{target}.",
                hint=f"Add '{source}->{target}: NAME', or '*: NAME' for all other pairs.",
            )
        if full_name not in self._open:
            name, _, reference = full_name.partition(":")
            self._open[full_name] = self._context.translators.get(name).open(reference, self._context)
        return self._open[full_name]

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the translations by the pair's translator."""
        return self.route(source, target).translate(segments, source, target)

    def close(self) -> None:
        """Close all translators that were opened."""
        for translator in self._open.values():
            translator.close()
        self._open.clear()

    def _named(self, source: str, target: str) -> str | None:
        for key in (f"{source}->{target}", f"{source}->*", f"*->{target}", "*"):
            if key in self._table.routes:
                return self._table.routes[key]
        return None


def open_routes(ref: str, context: TranslatorContext) -> RoutedTranslator:
    """Return the translator of a routing table; raises `UsageError`, `DataError` or `SpecError` with lines."""
    path = Path(ref)
    if not ref or not path.is_file():
        raise UsageError(
            f"The routing table {ref!r} does not exist.", hint="Write a YAML file: routes: {'*': identity}"
        )
    try:
        document = read_yaml(path.read_text(encoding="utf-8"), ref)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The routing table {ref!r} cannot be read: {error}.") from error
    table = validate_document(RoutingTable, document)
    problems = [
        Problem(message=fault, line=document.line_of(["routes", pair]))
        for pair, full_name in table.routes.items()
        for fault in _faults(pair, full_name, context)
    ]
    if problems:
        raise SpecError(ref, problems)
    return RoutedTranslator(table, path, context)


def _faults(pair: str, named: str, context: TranslatorContext) -> Iterator[str]:
    for code in set(pair.split("->")) - {"*"}:
        try:
            context.languages.get(code)
        except UsageError as error:
            yield str(error)
    name = named.partition(":")[0]
    if name == "route":
        yield "a routing table cannot name another one"
    elif name not in context.translators:
        yield f"no translator named {name!r}; known: {', '.join(context.translators.names)}"
