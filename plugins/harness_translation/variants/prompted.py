"""Translation by a prompted model, behind any adapter that writes text."""

from __future__ import annotations

from collections.abc import Sequence

from harness import CapabilityError, UsageError
from harness.data import Translation, TranslatorContext, TranslatorInfo
from harness.models import Capability, GenerateOptions, Generates
from harness.planning import resolve_model

PROMPT = "Translate this text from {source} into {target}.\n\n{source}: {text}\n{target}:"
"""One line after the target language's name is the answer; line breaks within a segment become spaces."""
MAX_TOKENS = 256


class PromptedTranslator:
    """Prompts a model to translate, one segment per prompt."""

    def __init__(
        self,
        adapter: Generates,
        ref: str,
        context: TranslatorContext,
        *,
        licence: str = "",
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._adapter = adapter
        self._ref = ref
        self._languages = context.languages
        self._licence = licence
        self._max_tokens = max_tokens

    def info(self) -> TranslatorInfo:
        """Return the model's identity, with the prompt among the decoding settings."""
        identity = dict(self._adapter.identity())  # type: ignore[attr-defined]
        return TranslatorInfo(
            id=self._ref,
            engine="llm",
            engine_version="1",
            decoding={"prompt": PROMPT, "max_tokens": self._max_tokens, **identity},
            licence=self._licence,
        )

    def supports(self, source: str, target: str) -> bool:
        """Return whether both languages have a name that the prompt can use."""
        return source in self._languages and target in self._languages

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the line that the model writes for every segment."""
        names = {"source": self._languages.get(source).name, "target": self._languages.get(target).name}
        prompts = [PROMPT.format(text=" ".join(segment.split()), **names) for segment in segments]
        options = [GenerateOptions(max_tokens=self._max_tokens, stop=("\n",))] * len(prompts)
        return [
            Translation(
                text=answer.text.strip(),
                finish="stop" if answer.finished and not answer.truncated else "length",
                target_tokens=answer.tokens,
            )
            for answer in self._adapter.generate(prompts, options)
        ]

    def close(self) -> None:
        """Free the model."""
        self._adapter.close()  # type: ignore[attr-defined]


def open_prompted(ref: str, context: TranslatorContext) -> PromptedTranslator:
    """Return the translator of a model; ``hf-causal:PATH?max_tokens=64&dtype=float16`` passes options on.

    Raises `UsageError` for a model that does not exist, `CapabilityError` for one that does not generate text.
    """
    model_name, _, query = ref.partition("?")
    if ":" not in model_name:
        raise UsageError(
            f"The translator 'llm' needs a model, got {ref!r}.",
            hint="For example: llm:hf-causal:models/smollm2",
        )
    options = dict(option.partition("=")[::2] for option in query.split("&") if option)
    longest = options.pop("max_tokens", str(MAX_TOKENS))
    if not longest.isdecimal() or int(longest) < 1:
        raise UsageError(
            f"max_tokens of the translator {ref!r} must be a whole number of at least 1, got {longest!r}."
        )
    model = resolve_model(context.adapters, model_name, options)
    if Capability.GENERATES not in model.description.offers:
        raise CapabilityError(
            f"The model {model_name!r} does not generate text, so it cannot be prompted to translate."
        )
    adapter = model.entry.open(model.description, model.options)
    assert isinstance(adapter, Generates)
    licence = str(model.description.metadata.get("licence", ""))
    return PromptedTranslator(adapter, model_name, context, licence=licence, max_tokens=int(longest))
