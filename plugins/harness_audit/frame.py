"""What is wrong around the words of a prompt: marks without their other half, words run into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import Finding, PromptItem
from harness.languages.table import Language
from harness_audit.prompt import TaskPrompt

__all__ = ["join_findings", "mark_findings"]

BRACKETS = ("()", "[]", "{}", "\u300c\u300d", "\u300e\u300f", "\u300a\u300b", "\u3010\u3011", "\uff08\uff09")
QUOTES = ('"', "\u201c\u201d\u201e", "\u00ab\u00bb")
"""Marks that come in pairs; which mark opens a pair differs between languages."""


def mark_findings(prompt: TaskPrompt, item: PromptItem) -> Iterator[Finding]:
    """Yield quotation marks and brackets of a prompt that have no other half, whatever the item has."""
    for text in _frames(prompt, prompt.marked(item)):
        odd = [marks for marks in BRACKETS if text.count(marks[0]) != text.count(marks[1])]
        odd += [marks for marks in QUOTES if sum(map(text.count, marks)) % 2]
        if odd:
            unpaired = "".join(sorted(set(odd[0]) & set(text)))
            yield prompt.finding(
                "marks", "quotation marks and brackets in pairs", f"{unpaired!r} without its other half"
            )
            return


def join_findings(prompt: TaskPrompt, item: PromptItem, language: Language) -> Iterator[Finding]:
    """Yield answers that are put to the context without the space that words of the language have between them."""
    if prompt.spec.formulation == "generation" or language.segmentation != "space":
        return
    ranked = prompt.compiled.ranking(prompt.marked(item))
    for text in ranked.continuations:
        if ranked.context[-1:].isalnum() and text[:1].isalnum():
            joined = ranked.context.split()[-1] + text.split()[0]
            yield prompt.finding("join", "a space or a mark between context and answer", repr(joined))
            return


def _frames(prompt: TaskPrompt, item: PromptItem) -> Sequence[str]:
    """Return all that a model is given or ranks of an item, one entry per choice."""
    if prompt.spec.formulation == "generation":
        return [prompt.compiled.system(item) + prompt.compiled.context(item)]
    ranked = prompt.compiled.ranking(item)
    return [prompt.compiled.system(item) + ranked.context + text for text in ranked.continuations]
