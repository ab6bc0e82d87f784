"""A translator plugin that writes down what it answered, and dies after the number of batches in ``MORTAL_BATCHES``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.data.translation.services import Translation, TranslatorEntry, TranslatorInfo
from harness.hookspecs import hookimpl


class Mortal:
    def __init__(self, ref: str) -> None:
        self._ref = ref
        self._batches = 0

    def info(self) -> TranslatorInfo:
        return TranslatorInfo(
            id=f"mortal {os.environ.get('MORTAL_VERSION', '1')}", engine="t", engine_version="1"
        )

    def supports(self, source: str, target: str) -> bool:
        return "zh" not in {source, target}

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        if self._batches == int(os.environ.get("MORTAL_BATCHES", "1000")):
            raise RuntimeError("the power is gone")
        self._batches += 1
        with Path(os.environ["MORTAL_LOG"]).open("a", encoding="utf-8") as log:
            log.writelines(json.dumps([source, target, text]) + "\n" for text in segments)
        texts = [f"{target} {text}"[:300] for text in segments]
        finish: Any = "length" if self._ref == "short" else "stop"
        return [
            Translation(text=text, finish=finish) for text in texts[: -1 if self._ref == "fewer" else None]
        ]

    def close(self) -> None:
        pass


def open_mortal(ref: str, context: object) -> Mortal:
    return Mortal(ref)


@hookimpl
def harness_register_translators() -> list[TranslatorEntry]:
    return [
        TranslatorEntry(name="mortal", target="mortal_translator:open_mortal", summary="Dies."),
    ]
