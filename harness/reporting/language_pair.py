"""One language against another as tables: how many items are right in one of them only, and some of these items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.analysis.language_pair import LanguagePair, SplitItem
from harness.reporting.answer_text import Parts, answer_parts, gold_parts
from harness.reporting.items import WorstItem, field_rows
from harness.reporting.model import Block, Field, Note, Notes, Table, as_field, rows_of
from harness.reporting.number import NOTHING, p_text, signed, signed_interval
from harness.reporting.system_name import short_system

__all__ = ["language_pair_blocks"]

LEGEND = (
    "Difference: the share of right items in the language minus that in {against}, x100, over the items that both "
    "have; brackets: 95 % interval of the paired differences. p: {tests}."
)


def language_pair_blocks(
    pairs: Sequence[LanguagePair], notes: Sequence[str], *, examples: int
) -> list[Block]:
    """Return a table for each task and system, and up to `examples` items of each pair of languages."""
    blocks: list[Block] = []
    for (task, system), group in groupby(pairs, key=lambda pair: (pair.task, pair.system)):
        own = list(group)
        blocks += [Note(f"{task}, {short_system(system)}", "heading"), _counts(own)]
        for pair in own:
            blocks += _items(pair, examples)
    tests = " or ".join(dict.fromkeys(pair.test for pair in pairs))
    legend = LEGEND.format(against=pairs[0].against, tests=tests)
    return [*blocks, Notes(tuple(notes)), Note(legend, "note")]


def _counts(pairs: Sequence[LanguagePair]) -> Table:
    against = pairs[0].against
    heads = ("both", f"{against}\nonly", "itself\nonly", "neither", "difference", "95 % interval", "p")
    rows = [
        (
            pair.language,
            *(f"{count:,}" for count in (pair.both, pair.lost, pair.gained, pair.neither)),
            signed(pair.difference),
            NOTHING if pair.ci is None else f"[{signed_interval(*pair.ci)}]",
            p_text(pair.p),
        )
        for pair in sorted(pairs, key=lambda pair: (pair.difference, pair.language))
    ]
    title = f"Items that are right in a language and in {against}"
    return Table(title=title, corner="right in", heads=heads, rows=rows_of(rows))


def _items(pair: LanguagePair, examples: int) -> Iterator[Block]:
    lost = [item for item in pair.items if item.is_lost]
    for item in lost[:examples]:
        yield _item(pair, item)
    if len(lost) > examples:
        yield Note(
            f"{len(lost) - examples:,} more items are right in {pair.against}, wrong in {pair.language}: --examples N "
            "shows more, --json FILE writes all.",
            "note",
        )


def _item(pair: LanguagePair, item: SplitItem) -> Table:
    sides = ((pair.against, item.against), (pair.language, item.language))
    shown = [
        WorstItem(title=pair.task, kind=pair.kind, language=code, record=record, answers=())
        for code, record in sides
    ]
    rows = [
        (f"{own.language} {row.label}", *(_plain(as_field(field)) for field in row.fields))
        for own in shown
        for row in field_rows(own)
    ]
    golds = [_text(gold_parts(own.record, pair.kind, own.language, {})) for own in shown]
    named = (
        [("gold", golds[0])]
        if golds[0] == golds[1]
        else zip((f"{code} gold" for code, _ in sides), golds, strict=True)
    )
    rows += named
    rows += [
        (f"{own.language} answer", _text(answer_parts(own.record, pair.kind, own.language, {})))
        for own in shown
    ]
    title = f"Right in {pair.against}, wrong in {pair.language}: item {item.language.id[:200]}"
    return Table(title=title, heads=("",), rows=rows_of(rows), words=frozenset({0}), folding=True)


def _plain(field: Field) -> str:
    return field.text or _text(field.parts)


def _text(parts: Parts) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in parts)
