"""The baseline: the prompt itself, which under the prompt ``default`` is the sentence to translate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness import CapabilityError
from harness.models import AdapterOptions, Generated, GenerateOptions, ModelDescription, Prompt


class Copy:
    """Implements the protocol `harness.models.capabilities.Generates`; a token is a word."""

    def __init__(self, description: ModelDescription, options: AdapterOptions) -> None:
        pass

    def identity(self) -> Mapping[str, str]:
        """Return all that makes the answers what they are."""
        return {"adapter": "copy", "algorithm": "1"}

    def close(self) -> None:
        """Free nothing; a second call does nothing either."""

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return every prompt, of a conversation the last turn, up to a stop string or the most tokens.

        Raises `CapabilityError` where the answer is to be of a certain form.
        """
        return [_copied(prompt, option) for prompt, option in zip(prompts, options, strict=True)]


def _copied(prompt: Prompt, options: GenerateOptions) -> Generated:
    if any(limit is not None for limit in (options.choices, options.regex, options.json_schema)):
        raise CapabilityError("The adapter 'copy' cannot constrain what it writes.")
    text = prompt if isinstance(prompt, str) else prompt[-1].text
    text = text[: min((text.find(stop) for stop in options.stop if stop in text), default=len(text))]
    words = text.split()
    if len(words) <= options.max_tokens:
        return Generated(text=text, tokens=len(words), finished=True)
    return Generated(text=" ".join(words[: options.max_tokens]), tokens=options.max_tokens, finished=False)
