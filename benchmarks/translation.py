"""Translation: calls that are left after XNLI's repeated premises, and what the store and the guards cost.

The first table counts segments of the published files. The second one has the translator `llm` with a real small model
translate texts into an empty store, with all guards; the limit of everything but the model's own time is 5 % of it. The
second row of it has the words reversed instead, so that nothing is left but the store and the guards.
Run: make bench, or python -m benchmarks.translation [--data DIR] [--model REF] [--segments N]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import record
from harness.data.sources import DataFinder, FoundData, find_split
from harness.data.translation.guards import guard_report
from harness.data.translation.services import (
    OpenTranslator,
    Translation,
    Translator,
    TranslatorInfo,
    open_translator,
)
from harness.data.translation.store import TranslationStore
from harness.languages.detection import language_detector
from harness.languages.table import known_languages
from harness.planning.run_config import data_options
from harness.registry.registry import Registry
from harness.running.session import open_session
from harness.specs.catalog import Catalog

LIMIT = 0.05
SEGMENTS = 200
LANGUAGES = ("en", "sw", "hi")
MODEL = "hf-causal:models/smollm2?max_tokens=64"


class Timed:
    """A translator that adds up the seconds of its calls."""

    def __init__(self, engine: Translator) -> None:
        self._engine = engine
        self.seconds = 0.0
        self.calls = 0

    def info(self) -> TranslatorInfo:
        """Return the other one's."""
        return self._engine.info()

    def supports(self, source: str, target: str) -> bool:
        """Return the other one's answer."""
        return self._engine.supports(source, target)

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the other one's answers."""
        started = time.perf_counter()
        try:
            return self._engine.translate(segments, source, target)
        finally:
            self.seconds += time.perf_counter() - started
            self.calls += len(segments)

    def close(self) -> None:
        """Close the other one."""
        self._engine.close()


def xnli(finder: DataFinder, catalog: Catalog, code: str) -> FoundData:
    """Return the test items of XNLI in a language; raises `MissingDataError`."""
    entry = catalog.task("xnli")
    source = entry.spec.source(code, "test")
    assert source is not None
    return find_split(finder, source, "xnli", entry.languages.get(code), "test", entry.folders.get(code))


def segments_of(finder: DataFinder, found: FoundData) -> list[str]:
    """Return premises and hypotheses, as often as they are in the file."""
    return [str(row.fields[name]) for row in finder.rows(found) for name in ("premise", "hypothesis")]


def measure(registry: Registry, reference: str, texts: Sequence[str], folder: Path) -> tuple[Timed, float]:
    """Return the translator with its own seconds, and those of all: store, guards and model."""
    opened = open_translator(registry, "bench", reference)
    timed = Timed(opened.translator)
    opened = replace(opened, translator=timed)
    languages = known_languages()
    # A model makes its buffers in its first call, its weights are read once for their digest, and the detector reads
    # its file: none of these is per segment.
    timed.translate(texts[:2], "sw", "en")
    timed.info()
    language_detector()
    timed.seconds, timed.calls = 0.0, 0
    started = time.perf_counter()
    _translated(opened, texts, folder, languages.get("sw").code)
    seconds = time.perf_counter() - started
    timed.close()
    return timed, seconds


def _translated(opened: OpenTranslator, texts: Sequence[str], folder: Path, source: str) -> None:
    languages = known_languages()
    with TranslationStore(folder) as store:
        stored = store.translate(opened, texts, source, "en")
    distinct = {item.source: item for item in stored}.values()
    guard_report(
        [(item.source, item.text) for item in distinct],
        languages.get(source),
        languages.get("en"),
        truncated=[item.truncated for item in distinct],
        detector=language_detector(),
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--data", default=os.environ.get("HARNESS_DATA"), help="folder with the published data"
    )
    parser.add_argument("--model", default=MODEL, help="what the translator `llm` prompts")
    parser.add_argument("--segments", type=int, default=SEGMENTS, help="distinct texts that it translates")
    given = parser.parse_args(arguments)
    session = open_session()
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as folder:
        options = data_options([given.data or "sample"])
        finder = DataFinder(options, session.registry, Path(folder) / "data")
        calls = Table("XNLI test", "segments", "calls", "ratio", title_justify="left")
        texts: list[str] = []
        for code in LANGUAGES:
            segments = segments_of(finder, xnli(finder, session.catalog, code))
            distinct = len(set(segments))
            calls.add_row(code, f"{len(segments):,}", f"{distinct:,}", f"{distinct / len(segments):.3f}")
            texts = segments if code == "sw" else texts
        console.print(calls)
        several = list(dict.fromkeys(texts))
        table = Table("translator", "segments", "model", "store and guards", "share", "limit")
        for number, (reference, asked) in enumerate(
            ((f"llm:{given.model}", several[: given.segments]), ("reverse", several))
        ):
            timed, seconds = measure(session.registry, reference, asked, Path(folder) / str(number))
            share = (seconds - timed.seconds) / timed.seconds
            real = reference.startswith("llm:")
            if real:
                record("translation: store and guards, share of the model's time", share, LIMIT)
            rate = f"{len(asked) / (seconds - timed.seconds):,.0f} a second"
            table.add_row(
                reference,
                f"{timed.calls:,}",
                f"{timed.seconds:.2f} s",
                f"{seconds - timed.seconds:.3f} s, {rate}",
                f"{share:.2%}" if real else "",
                f"{LIMIT:.0%}" if real else "",
            )
        console.print(table)


if __name__ == "__main__":
    main()
