"""Run all benchmarks: python -m benchmarks [--data DIR]."""

from __future__ import annotations

import argparse
import os

from benchmarks import (
    checklist,
    contamination,
    coverage,
    decoder_endtoend,
    decoder_scores,
    diagnosis,
    drift,
    encoder_inference,
    explanation,
    fleet,
    gap,
    generation,
    item_response,
    journal,
    large_vocabulary,
    memory,
    planning,
    plugins,
    power,
    precision,
    probing,
    processes,
    prompt_building,
    retrieval,
    run_overhead,
    startup,
    training,
    translation,
    transliteration,
    vllm_client,
)


def main() -> None:
    """Run all benchmarks that their data allow."""
    parser = argparse.ArgumentParser(description="Run all benchmarks.")
    parser.add_argument(
        "--data", default=os.environ.get("HARNESS_DATA"), help="folder with the published data"
    )
    given = parser.parse_args()
    startup.main([])
    diagnosis.main([])
    retrieval.main([])
    vllm_client.main([])
    prompt_building.main([])
    decoder_endtoend.main([])
    large_vocabulary.main([])
    decoder_scores.main([] if given.data is None else ["--data", given.data])
    journal.main([])
    checklist.main()
    run_overhead.main([] if given.data is None else ["--data", given.data])
    processes.main([] if given.data is None else ["--data", given.data])
    if given.data is None:
        print("Encoder inference needs the XNLI test set: give --data DIR or set HARNESS_DATA.")
    else:
        encoder_inference.main(["--data", given.data])
    training.main([])
    # The last ones end with a status where they miss their limit.
    gap.main([])
    coverage.main([])
    power.main([])
    precision.main([])
    item_response.main(["--draws", "20"])
    drift.main([])
    explanation.main([])
    planning.main([])
    plugins.main([])
    fleet.main([])
    memory.main([])
    translation.main([] if given.data is None else ["--data", given.data])
    generation.main([])
    transliteration.main([])
    contamination.main([])
    probing.main(["--memory"])
    probing.main([])


if __name__ == "__main__":
    main()
