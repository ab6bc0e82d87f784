"""One language against another as tables: how many items are right in one of them only, and some of these items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from harness.analysis.language_pair import LanguagePair, SplitItem
from harness.reporting.blocks.columns import table_of
from harness.reporting.blocks.model import BLANK, Block, Field, Note, Notes, Table, as_field, make_table
from harness.reporting.blocks.number import p_text, signed, signed_interval
from harness.reporting.legends import legend
from harness.reporting.weakness.items import Parts, WorstItem, answer_parts, field_rows, gold_parts


def language_pair_blocks(
    pairs: Sequence[LanguagePair], notes: Sequence[str], *, examples: int
) -> list[Block]:
    """Return a table for each task and system, and up to `examples` items of each pair of languages."""
    blocks: list[Block] = []
    for (task, system, _), group in groupby(pairs, key=lambda pair: (pair.task, pair.system, pair.against)):
        task_pairs = list(group)
        blocks += [Note(f"{task}, {system}", "heading"), _counts(task_pairs)]
        blocks += [block for pair in task_pairs for block in _items(pair, examples)]
    tests, against = (dict.fromkeys(getattr(pair, name) for pair in pairs) for name in ("test", "against"))
    sentence = legend("language pair", against=" or ".join(against), tests=" or ".join(tests))
    return [*blocks, Notes(tuple(notes)), Note(sentence, "note")]


def _counts(pairs: Sequence[LanguagePair]) -> Table:
    against = pairs[0].against
    columns: dict[str, Callable[[LanguagePair], str]] = {
        "right in": lambda pair: pair.language,
        "both": lambda pair: f"{pair.both:,}",
        f"{against}\nonly": lambda pair: f"{pair.lost:,}",
        "itself\nonly": lambda pair: f"{pair.gained:,}",
        "neither": lambda pair: f"{pair.neither:,}",
        "difference": lambda pair: signed(pair.difference),
        "95 % interval": lambda pair: BLANK if pair.ci is None else f"[{signed_interval(*pair.ci)}]",
        "p": lambda pair: p_text(pair.p),
    }
    ordered = sorted(pairs, key=lambda pair: (pair.difference, pair.language))
    return table_of(f"Items that are right in a language and in {against}", ordered, columns)


def _items(pair: LanguagePair, examples: int) -> Iterator[Block]:
    lost = [item for item in pair.items if item.is_lost]
    yield from (_item(pair, item) for item in lost[:examples])
    if len(lost) > examples:
        yield Note(
            f"{len(lost) - examples:,} more items are right in {pair.against}, wrong in {pair.language}: --examples N "
            "shows more, --json FILE writes all.",
            "note",
        )


def _item(pair: LanguagePair, item: SplitItem) -> Table:
    names = (pair.against, pair.language)
    sides = ((pair.against_language, item.against), (pair.language, item.language))
    items = [
        WorstItem(title=pair.task, kind=pair.kind, language=code, record=record, answers=())
        for code, record in sides
    ]
    rows = [
        (f"{name} {row.label}", *(_plain(as_field(field)) for field in row.fields))
        for name, worst_item in zip(names, items, strict=True)
        for row in field_rows(worst_item)
    ]
    golds, answers = (
        [_text(render(record, pair.kind, code, {})) for code, record in sides]
        for render in (gold_parts, answer_parts)
    )
    is_same = golds[0] == golds[1]
    rows += [("gold", golds[0])] if is_same else zip((f"{name} gold" for name in names), golds, strict=True)
    rows += zip((f"{name} answer" for name in names), answers, strict=True)
    title = f"Right in {pair.against}, wrong in {pair.language}: item {item.language.id[:200]}"
    return make_table(title, ("", ""), rows, words={0}, folding=True)


def _plain(field: Field) -> str:
    return field.text or _text(field.parts)


def _text(parts: Parts) -> str:
    return "".join(segment if isinstance(segment, str) else segment.text for segment in parts)
