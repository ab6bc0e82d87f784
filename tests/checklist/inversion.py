"""Which draw of a suite a case shows: the search behind the proof on the released suites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from harness_checklist.generation import NoFormError, Renderer
from harness_checklist.suite import LanguageSuite
from harness_checklist.template import Option, Space

Example = tuple[str, str, str]
"""Context, question, answer."""


class Inversion:
    """Finds the draws of a test in one language that show given examples."""

    def __init__(self, spoken: LanguageSuite, test_id: str) -> None:
        self.space = Space(spoken.tests[test_id], spoken.names)
        self.renderer = Renderer(spoken.tests[test_id], self.space, spoken.language)

    def find(self, examples: Iterable[Example]) -> Mapping[str, str] | None:
        """Return the fill-ins of a draw that shows exactly these examples (each as often), or None."""
        wanted = Counter(examples)
        text = "\n".join(part for example in wanted for part in example)
        choices = [list(_standing(group.options, text)) for group in self.space.groups]
        for draw in product(*choices):
            if Counter(self._shown(draw)) == wanted:
                found: dict[str, str] = {}
                for group, number in zip(self.space.groups, draw, strict=True):
                    found |= group.options[number].ids
                return found
        return None

    def _shown(self, draw: tuple[int, ...]) -> Iterator[Example]:
        try:
            shown = self.renderer.render(draw)
        except NoFormError:
            return
        if shown is not None:
            for context in shown.contexts:
                for question, answer in zip(shown.questions, shown.answers, strict=True):
                    yield context, question, answer


def _standing(options: tuple[Option, ...], text: str) -> list[int]:
    """Return the options whose entries all have a form in the text, longest first; all options where none match."""
    found = []
    for number, option in enumerate(options):
        shown = [
            _longest(entry.forms, text)
            for key, entry in option.entries.items()
            if key[-2:] not in ("p1", "p2")
        ]
        if all(length is not None for length in shown):
            found.append((sum(length or 0 for length in shown), number))
    found.sort(key=lambda item: (-item[0], item[1]))
    return [number for _, number in found] or list(range(len(options)))


def _longest(forms: Iterable[object], text: str) -> int | None:
    return max(
        (len(form) for entry in forms for form in entry.texts if form.strip() in text),  # type: ignore[attr-defined]
        default=None,
    )
