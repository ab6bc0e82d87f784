"""All gaps with paired intervals of 15 languages, 5,010 items and 6 variants: reading the run folder included.

    python -m benchmarks.gap

The run is made: XNLI's shape, three hypotheses a premise, the human text and five versions of two translators. It ends
with status 1 where the median takes longer than 5 seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measuring import alternate, record, show
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from harness_translation.gap.measure import GapOptions, compute_gaps
from harness_translation.gap.system import gap_systems

LANGUAGES = "en fr es de el bg ru tr ar vi th zh hi sw ur".split()
VERSIONS = (("zs", ""), ("tt", "nllb"), ("te", "nllb"), ("bt", "nllb"), ("tt", "google"), ("bt", "google"))
LIMIT = 5.0
ITEMS = 5_010
TEXTS = {
    "ar": "هذا نص قصير من الاختبار", "bg": "това е кратък текст за теста", "el": "αυτό είναι ένα σύντομο κείμενο",
    "hi": "यह परीक्षण का एक छोटा पाठ है", "ru": "это короткий текст для теста", "th": "นี่คือข้อความสั้นสำหรับทดสอบ",
    "ur": "یہ جانچ کا ایک مختصر متن ہے", "zh": "这是用于测试的一段短文",
}  # fmt: skip


def _records(language: str, score: float, items: int, seed: int) -> Iterator[ItemRecord]:
    generator = np.random.default_rng(seed)
    hard = np.repeat(np.random.default_rng(1).random(items // 3 + 1), 3)[:items]
    right = generator.random(items) + 0.3 * (hard - 0.5) < score
    text = TEXTS.get(language, "this is a short text of the test")
    for number, own in enumerate(right.tolist()):
        inputs = {"premise": f"{text} {number // 3}", "hypothesis": f"{text} {number}"}
        yield ItemRecord(
            id=str(number),
            inputs_digest=str(number),
            prediction={"label": "entailment" if own else "neutral"},
            reference="entailment",
            scores={"accuracy": float(own)},
            cluster=f"{number // 3}",
            group=None,
            tags={},
            flags={},
            inputs=json.dumps({"id": str(number), "inputs": inputs}, ensure_ascii=False),
        )


def write_run(folder: Path, items: int = ITEMS) -> Run:
    """Write a run of all languages and versions."""
    run = Run.at(folder)
    run.create()
    cells = []
    for place, language in enumerate(LANGUAGES):
        for number, (variant, translator) in enumerate(VERSIONS):
            if language == "en" and variant != "zs":
                continue
            digest = f"{place:06x}{number:06x}"
            score = 0.9 - 0.01 * place + (0.04 if variant in {"te", "bt"} else 0.0)
            records = list(_records(language, score, items, 100 * place + number))
            run.write_records(run.records_path("xnli", language, digest), records)
            view = {} if variant == "zs" else {"variant": variant, "translator": translator}
            head = {
                "task": "xnli",
                "language": language,
                "digest": digest,
                "version": 1,
                "seed": 1,
                "fit": "f",
            }
            rest = {
                "protocol": "zero_shot_transfer",
                "method": "head",
                "view": view,
                "status": "ok",
                "metrics": {},
            }
            cells.append({**head, **rest})
    spec = {"kind": "sequence_classification", "headline": ["accuracy"], "parallel": True, "source": "en"}
    spec |= {"labels": ["entailment", "neutral", "contradiction"]}
    run.write_manifest({"model": "made:model", "tasks": {"xnli": spec}, "suites": []})
    run.write_results({"schema": 1, "run": {"data": "local"}, "cells": cells})
    return Run(folder)


def main(arguments: list[str] | None = None) -> None:
    """Time it, and print the figures."""
    parser = argparse.ArgumentParser(description="Time all gaps of a run.")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run")

        processor: list[float] = []

        def measure() -> None:
            started = time.process_time()
            compute_gaps(gap_systems([run]), None, GapOptions())
            processor.append(time.process_time() - started)

        seconds = alternate({"all gaps, reading included": measure}, rounds=given.rounds)
    show(
        "Gaps of 15 languages x 5,010 items x 6 variants",
        seconds,
        limits={next(iter(seconds)): f"{LIMIT:g} s"},
    )
    print(f"Processor time: {statistics.median(processor):.2f} s; on a busy machine the clock runs on.")
    record("all gaps of a benchmark's translations", statistics.median(processor), LIMIT, unit=" CPU s")


if __name__ == "__main__":
    main()
