"""One shaded character per language of a task, in the same order in every row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from harness.reporting.console import SHADES
from harness.reporting.glance import LanguageGlance, TaskGlance
from harness.reporting.heat import levels
from harness.reporting.unreadable import UNREADABLE

__all__ = ["language_groups", "strip_head", "strip_of"]

FAILED = "!"
UNREAD = "?"
BETWEEN = " "
"""Between two families."""


def language_groups(tasks: Sequence[TaskGlance]) -> list[list[str]]:
    """Return the languages that have something to show in any task, by family; families of one language are together.

    The order is that of the tables by language: families with most languages first, then codes.
    """
    families: dict[str, list[str]] = {}
    for task in tasks:
        for language in task.languages:
            own = families.setdefault(language.family, [])
            if _sign(language) and language.code not in own:
                own.append(language.code)
    ordered = sorted(families.items(), key=lambda item: (-len(item[1]), item[0]))
    groups = [sorted(codes) for _, codes in ordered if len(codes) > 1]
    single = [code for _, codes in ordered if len(codes) == 1 for code in codes]
    return [*groups, single] if single else groups


def strip_head(groups: Sequence[Sequence[str]]) -> str:
    """Return the codes from top to bottom, one column each."""
    columns = [code for group in groups for code in (*group, BETWEEN)][:-1]
    return "\n".join("".join(line).rstrip() for line in zip_longest(*columns, fillvalue=" "))


def strip_of(task: TaskGlance, groups: Sequence[Sequence[str]]) -> str:
    """Return the characters of one task: a shade from chance (or 0) to 100, blank where it has no score.

    Scores that do not differ measurably have the same shade, as in the page.
    """
    scores = [language.score for language in task.languages]
    shown = levels([score.value for score in scores], [score.reach for score in scores])
    low = task.chance or 0.0
    signs = {
        language.code: _shade(level, low) if level is not None else _sign(language)
        for language, level in zip(task.languages, shown, strict=True)
    }
    return BETWEEN.join("".join(signs.get(code) or " " for code in group) for group in groups)


def _shade(value: float, low: float) -> str:
    part = (value - low) / (1 - low) if low < 1 else 0.0
    return SHADES[min(len(SHADES) - 1, max(0, int(part * len(SHADES))))]


def _sign(language: LanguageGlance) -> str:
    """Return the character of a language without a level; empty where it has nothing to show."""
    if language.score.value is not None:
        return SHADES[0]
    return {FAILED: FAILED, UNREADABLE: UNREAD}.get(language.score.mark, "")
