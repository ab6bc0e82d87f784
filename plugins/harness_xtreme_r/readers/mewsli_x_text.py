"""The texts of Mewsli-X that a dual encoder reads: mentions in their sentence, and descriptions.

Source: google-research/xtreme ``third_party/utils_mewslix.py`` (preprocess_mention,
preprocess_entity_description, Context.truncate with a window of 0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness import DataError
from harness_xtreme_r.readers.member import member
from harness_xtreme_r.readers.offset import cuts_character

__all__ = [
    "CHECK_OFFSETS",
    "CHECK_OFFSETS_OPTION",
    "LAYOUTS",
    "check_layout",
    "description_text",
    "mention_text",
]

CHECK_OFFSETS: Final = ("true", "text")
CHECK_OFFSETS_OPTION: Final = (
    "'true' (default: a mention must be the text at its offsets and not cut a combined character) or 'text' (it "
    "must be the text at its offsets)"
)
LAYOUTS: Final[Mapping[str, tuple[str, str]]] = {
    "mewsli_x_entities": ("entity_id", "description"),
    "mewsli_x_mentions": ("context", "mentions"),
    "mewsli_x_pairs": ("contextual_mention", "entity"),
}
"""Reader -> the keys by which a line of its file is known."""

_MARKED: Final = re.compile(r"\{(.*?)\}")


def check_layout(record: Mapping[str, Any], reader: str, where: str) -> None:
    """Raise `DataError` where a line has other keys than the reader expects, naming the reader that fits."""
    first, second = LAYOUTS[reader]
    if first in record and second in record:
        return
    shown = ", ".join(repr(key) for key in record) or "nothing"
    fitting = [name for name, keys in LAYOUTS.items() if all(key in record for key in keys)]
    hint = (
        f"This is another file of Mewsli-X: read it with {fitting[0]!r}."
        if fitting
        else "Expected the layout of the release 20220518_6."
    )
    raise DataError(f"{where}: expected {first!r} and {second!r}, found {shown}.", hint=hint)


def mention_text(context: Mapping[str, Any], mention: Mapping[str, Any], where: str, *, check: str) -> str:
    """Return ``mention: left { mention } right`` with the one sentence that holds the mention.

    Earlier ``{...}`` in the sentence become ``(...)``; newlines become spaces, and each pair of spaces one. The
    mention also comes first, so that a short maximum length does not lose it. `check` is one of
    `CHECK_OFFSETS`. Raises `DataError` where the offsets do not fit the mention, or no sentence holds it.
    """
    text = member(context, "text", str, where)
    if not text:
        raise DataError(
            f"{where}: expected the text of the article, found none.",
            hint="The release comes without texts: restore them from the WikiNews dumps with its own script.",
        )
    record = member(mention, "mention_span", dict, where)
    surface = member(record, "text", str, where)
    start, end = _span(record, text, where)
    _check_mention(start, end, surface, text, where, check)
    sentences = [_span(item, text, where) for item in member(context, "sentence_spans", list, where)]
    holding = [span for span in sentences if span[0] <= start and end <= span[1]]
    if not holding:
        raise DataError(
            f"{where}: expected the mention {surface!r} inside of one of the {len(sentences)} sentences, found "
            "none that holds it."
        )
    left = _MARKED.sub(r"(\1)", text[holding[0][0] : start])
    right = _MARKED.sub(r"(\1)", text[end : holding[0][1]])
    return _one_line(f"{surface}: {left} {{ {surface} }} {right}")


def description_text(entity: Mapping[str, Any], where: str) -> str:
    """Return the sentences of an entity's description in one line; its title is not used.

    Raises `DataError` where there are none.
    """
    description = member(entity, "description", str, where)
    sentences = []
    for item in member(entity, "sentence_spans", list, where):
        start, end = _span(item, description, where)
        sentences.append(description[start:end])
    text = _one_line(" ".join(sentences))
    if not text:
        raise DataError(f"{where}: expected a description with at least one sentence, found none.")
    return text


def _span(record: Any, text: str, where: str) -> tuple[int, int]:
    start, end = member(record, "start", int, where), member(record, "end", int, where)
    if not 0 <= start < end <= len(text):
        raise DataError(
            f"{where}: expected offsets inside of the {len(text)} characters of the text, found {start} to {end}."
        )
    return start, end


def _check_mention(start: int, end: int, surface: str, text: str, where: str, check: str) -> None:
    found = text[start:end]
    if found != surface:
        raise DataError(f"{where}: expected the mention {surface!r} from {start} to {end}, found {found!r}.")
    for offset in (start, end):
        if check == "true" and cuts_character(text, offset):
            raise DataError(
                f"{where}: expected the mention {surface!r} to begin and end between characters, found the "
                f"offset {offset} inside of {text[offset - 1 : offset + 1]!r}.",
                hint="A release that marks such mentions on purpose can be read with check_offsets: text.",
            )


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("  ", " ").strip()
