"""What a draw shows: the variants that apply to it, the forms of its fill-ins, its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness_checklist.suites.space import Space
from harness_checklist.suites.suite import Condition, Entry, TestTemplate
from harness_checklist.suites.template import TRANSFORMS, Placeholder, Template, parse

__all__ = ["NoFormError", "Renderer", "Rendition"]

Draw = Sequence[int]
"""The number of the option taken, for every group of the space."""
_Met = tuple[tuple[int, frozenset[int]], ...]


class NoFormError(Exception):
    """A text needs a fill-in that has no form for this draw: the draw is impossible."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """The texts of one draw."""

    contexts: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is shown for one set of variants that apply together."""

    contexts: tuple[Template, ...]
    questions: tuple[Template, ...]
    answers: tuple[Template, ...]
    values: tuple[tuple[str, int, tuple[str | _Dynamic, ...]], ...]
    """Reference, group, and for every option its text."""
    wholes: tuple[tuple[int, tuple[tuple[str, ...] | _Chosen, ...]], ...]
    """Group, and for every option all aligned forms: no two slots of a draw may show the same."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The forms of an entry that depend on the draw."""

    forms: tuple[tuple[_Met, tuple[str, ...]], ...]

    def texts(self, draw: Draw) -> tuple[str, ...]:
        for met, texts in self.forms:
            if all(draw[group] in options for group, options in met):
                return texts
        raise NoFormError


@dataclass(frozen=True, slots=True)
class _Dynamic:
    """A value that depends on the draw: through conditions on forms, or through placeholders in them."""

    chosen: _Chosen
    placeholder: Placeholder


class Renderer:
    """Renders the draws of a test in one language."""

    def __init__(self, test: TestTemplate, space: Space, language: str) -> None:
        self._space = space
        self._language = language
        self._contexts = tuple(parse(context.text) for context in test.contexts)
        self._questions = tuple((parse(item.ask), parse(item.answer)) for item in test.questions)
        self._count = len(test.contexts)
        self._plans: dict[int, _Plan] = {}
        self._values: dict[str, tuple[str, int, tuple[str | _Dynamic, ...]]] = {}
        self.every: int = (1 << (len(test.contexts) + len(test.questions))) - 1
        self.masks = self._option_masks(test)

    def _option_masks(self, test: TestTemplate) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return, for every group that conditions name, its number and the variants that each option allows."""
        masks: dict[int, list[int]] = {}
        conditions = [*(item.when for item in test.contexts), *(item.when for item in test.questions)]
        for bit, when in enumerate(conditions):
            for key, allowed in when.items():
                group, met = self._space.options_where(key, allowed)
                found = masks.setdefault(group, [self.every] * len(self._space.groups[group].options))
                for number in range(len(found)):
                    if number not in met:
                        found[number] &= ~(1 << bit)
        return tuple((group, tuple(found)) for group, found in sorted(masks.items()))

    def variants(self, draw: Draw) -> int:
        """Return the contexts and questions that apply, one bit each: contexts in the lowest, questions above."""
        mask = self.every
        for group, masks in self.masks:
            mask &= masks[draw[group]]
        return mask

    def render(self, draw: Draw) -> Rendition | None:
        """Return the texts of a draw; raises `NoFormError`. None: two slots show the same words."""
        variants = self.variants(draw)
        plan = self._plans.get(variants)
        if plan is None:
            plan = self._plans[variants] = self._plan(variants)
        if len(plan.wholes) > 1:
            wholes = set()
            for group, options in plan.wholes:
                whole = options[draw[group]]
                wholes.add(whole.texts(draw) if isinstance(whole, _Chosen) else whole)
            if len(wholes) < len(plan.wholes):
                return None
        shown: dict[str, str] = {}
        for reference, group, texts in plan.values:
            value = texts[draw[group]]
            shown[reference] = value if isinstance(value, str) else self._show(value, draw)
        return Rendition(
            tuple([template.fill(shown) for template in plan.contexts]),
            tuple([template.fill(shown) for template in plan.questions]),
            tuple([template.fill(shown) for template in plan.answers]),
        )

    def _plan(self, variants: int) -> _Plan:
        contexts = tuple(item for bit, item in enumerate(self._contexts) if variants >> bit & 1)
        asked = [item for bit, item in enumerate(self._questions, self._count) if variants >> bit & 1]
        if not contexts or not asked:
            return _Plan((), (), (), (), ())
        questions, answers = zip(*asked, strict=True)
        used: dict[str, Placeholder] = {}
        for template in (*contexts, *questions, *answers):
            used |= {placeholder.reference: placeholder for placeholder in template.placeholders}
        slots = {item.key: None for item in used.values() if item.attribute is None}
        wholes = [(self._space.group_of[slot], self._wholes(slot)) for slot in slots]
        return _Plan(
            contexts, questions, answers, tuple(self._value(item) for item in used.values()), tuple(wholes)
        )

    def _wholes(self, slot: str) -> tuple[tuple[str, ...] | _Chosen, ...]:
        options = self._space.groups[self._space.group_of[slot]].options
        chosen = [self._chosen(option.entries[slot]) for option in options]
        return tuple(item.forms[0][1] if not item.forms[0][0] else item for item in chosen)

    def _value(self, placeholder: Placeholder) -> tuple[str, int, tuple[str | _Dynamic, ...]]:
        reference = placeholder.reference
        if reference not in self._values:
            key = reference_key(placeholder)
            group = self._space.group_of[placeholder.key]
            options = self._space.groups[group].options
            cache: dict[int, str | _Dynamic] = {}
            texts = []
            for option in options:
                entry = option.entries[key]
                if id(entry) not in cache:
                    cache[id(entry)] = self._text(entry, placeholder)
                texts.append(cache[id(entry)])
            self._values[reference] = (reference, group, tuple(texts))
        return self._values[reference]

    def _text(self, entry: Entry, placeholder: Placeholder) -> str | _Dynamic:
        first = entry.forms[0]
        template = parse(first.texts[placeholder.index]) if not first.when else None
        if template is not None and template.constant is not None:
            return self._transformed(template.constant, placeholder)
        return _Dynamic(self._chosen(entry), placeholder)

    def _chosen(self, entry: Entry) -> _Chosen:
        return _Chosen(tuple((self._met(form.when), form.texts) for form in entry.forms))

    def _met(self, when: Condition) -> _Met:
        return tuple(self._space.options_where(key, allowed) for key, allowed in when.items())

    def _show(self, value: _Dynamic, draw: Draw) -> str:
        template = parse(value.chosen.texts(draw)[value.placeholder.index])
        shown: Mapping[str, str] = {
            inner.reference: self._shown_inner(inner, draw) for inner in template.placeholders
        }
        return self._transformed(template.fill(shown), value.placeholder)

    def _shown_inner(self, placeholder: Placeholder, draw: Draw) -> str:
        _, group, texts = self._value(placeholder)
        value = texts[draw[group]]
        return value if isinstance(value, str) else self._show(value, draw)

    def _transformed(self, text: str, placeholder: Placeholder) -> str:
        if placeholder.transform is None:
            return text
        return TRANSFORMS[placeholder.transform](text, self._language)


def reference_key(placeholder: Placeholder) -> str:
    """Return the key of a placeholder's entry in `Option.entries`."""
    return replace(placeholder, index=0, transform=None).reference
