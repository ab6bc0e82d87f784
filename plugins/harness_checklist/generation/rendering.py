"""Rendering of a draw: the variants that apply to it, the forms of its fill-ins, its texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_checklist.suites.space import Space
from harness_checklist.suites.suite import Condition, FillInEntry, TestTemplate
from harness_checklist.suites.template import TRANSFORMS, Placeholder, TextTemplate, parse

Draw = Sequence[int]
"""The number of the option taken, for every group of the space."""


class NoFormError(Exception):
    """A text needs a fill-in that has no form for this draw: the draw is impossible."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """The texts of one draw."""

    contexts: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """The templates of variants that apply together, and their placeholders, each once."""

    contexts: tuple[TextTemplate, ...]
    questions: tuple[TextTemplate, ...]
    answers: tuple[TextTemplate, ...]
    used: tuple[tuple[int, Placeholder], ...]
    """With the group that each is drawn in."""
    wholes: tuple[tuple[int, Placeholder], ...]
    """One for each slot, pairs aside: no two may show the same words."""


class Renderer:
    """Renders the draws of a test in one language."""

    def __init__(self, test: TestTemplate, space: Space, language: str) -> None:
        self._space = space
        self._language = language
        self._contexts = [parse(context.text) for context in test.contexts]
        self._questions = [(parse(item.ask), parse(item.answer)) for item in test.questions]
        self._shown: dict[int, _Shown] = {}
        self._known: dict[tuple[str, int], str] = {}
        """Reference and option -> a value that depends on nothing else."""
        self.every: int = (1 << (len(test.contexts) + len(test.questions))) - 1
        self.masks = self._option_masks(test)

    def _option_masks(self, test: TestTemplate) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return, for every group that conditions name, its number and the variants that each option allows."""
        masks: dict[int, list[int]] = {}
        conditions = [*(item.when for item in test.contexts), *(item.when for item in test.questions)]
        for bit, when in enumerate(conditions):
            for key, allowed in when.items():
                group, met = self._space.options_where(key, allowed)
                group_masks = masks.setdefault(group, [self.every] * len(self._space.groups[group].options))
                for number in range(len(group_masks)):
                    if number not in met:
                        group_masks[number] &= ~(1 << bit)
        return tuple((group, tuple(group_masks)) for group, group_masks in sorted(masks.items()))

    def render(self, draw: Draw) -> Rendition | None:
        """Return the texts of a draw; raises `NoFormError`. None: two slots show the same words."""
        variants = self.every  # one bit each: contexts in the lowest, questions above
        for group, masks in self.masks:
            variants &= masks[draw[group]]
        if variants not in self._shown:
            self._shown[variants] = self._applying(variants)
        templates = self._shown[variants]
        if len(templates.wholes) > 1:
            wholes = {self._texts(self._entry(group, item, draw), draw) for group, item in templates.wholes}
            if len(wholes) < len(templates.wholes):
                return None
        values = {}
        for group, item in templates.used:
            cached = self._known.get((item.reference, draw[group]))
            values[item.reference] = self._value(item, draw) if cached is None else cached
        return Rendition(
            tuple([template.fill(values) for template in templates.contexts]),
            tuple([template.fill(values) for template in templates.questions]),
            tuple([template.fill(values) for template in templates.answers]),
        )

    def _applying(self, variants: int) -> _Shown:
        contexts = tuple(item for bit, item in enumerate(self._contexts) if variants >> bit & 1)
        pairs = [item for bit, item in enumerate(self._questions, len(self._contexts)) if variants >> bit & 1]
        if not contexts or not pairs:
            return _Shown((), (), (), (), ())
        questions, answers = zip(*pairs, strict=True)
        used = {
            item.reference: item for text in (*contexts, *questions, *answers) for item in text.placeholders
        }
        grouped = tuple((self._space.group_of[item.key], item) for item in used.values())
        wholes = {item.key: (group, item) for group, item in grouped if item.attribute is None}
        return _Shown(contexts, questions, answers, grouped, tuple(wholes.values()))

    def _entry(self, group: int, placeholder: Placeholder, draw: Draw) -> FillInEntry:
        return self._space.groups[group].options[draw[group]].entries[placeholder.entry]

    def _texts(self, entry: FillInEntry, draw: Draw) -> tuple[str, ...]:
        for form in entry.forms:
            if not form.when or self._is_met(form.when, draw):
                return form.texts
        raise NoFormError

    def _is_met(self, when: Condition, draw: Draw) -> bool:
        met = (self._space.options_where(key, allowed) for key, allowed in when.items())
        return all(draw[group] in options for group, options in met)

    def _value(self, placeholder: Placeholder, draw: Draw) -> str:
        group = self._space.group_of[placeholder.key]
        entry = self._entry(group, placeholder, draw)
        template = parse(self._texts(entry, draw)[placeholder.index])
        text = template.fill({inner.reference: self._value(inner, draw) for inner in template.placeholders})
        if placeholder.transform is not None:
            text = TRANSFORMS[placeholder.transform](text, self._language)
        if not template.placeholders and not entry.forms[0].when:
            self._known[placeholder.reference, draw[group]] = text
        return text
