"""Translators that count what they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from harness.translators import OpenTranslator, Translation, TranslatorInfo


@dataclass
class Counting:
    """Writes texts in capitals; fails once it has answered `until` batches."""

    name: str = "capitals"
    until: int | None = None
    pairs: frozenset[tuple[str, str]] | None = None
    asked: list[str] = field(default_factory=list)
    batches: int = 0

    def info(self) -> TranslatorInfo:
        return TranslatorInfo(id=self.name, engine="test", engine_version="1")

    def supports(self, source: str, target: str) -> bool:
        return self.pairs is None or (source, target) in self.pairs

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        if self.until is not None and self.batches >= self.until:
            raise RuntimeError("the power is gone")
        self.batches += 1
        self.asked += segments
        return [Translation(text=f"{target}:{segment.upper()}") for segment in segments]

    def close(self) -> None:
        pass


Opened = Callable[[Counting], OpenTranslator]


@pytest.fixture
def opened() -> Opened:
    return lambda engine: OpenTranslator(name="t", reference="test", translator=engine)
