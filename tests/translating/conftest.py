"""Translators that count what they are asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.data.translation import store as translation_store
from harness.data.translation.services import OpenTranslator, Translation, TranslatorInfo


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


@pytest.fixture
def log(
    tmp_path: Path, install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Counter[str]]:
    """Install the translator; return how often each segment was answered so far."""
    source = Path(__file__).with_name("mortal_translator.py").read_text(encoding="utf-8")
    install_plugin("mortal_translator", source)
    monkeypatch.setattr(translation_store, "BATCH_SEGMENTS", 3)
    path = tmp_path / "asked.jsonl"
    monkeypatch.setenv("MORTAL_LOG", str(path))
    return lambda: Counter(path.read_text(encoding="utf-8").splitlines())
