"""Writes the errata that ship with the harness: python -m benchmarks.errata_seeds --data DIR [--output DIR].

They are facts that anybody can see in the data: a placeholder for a sentence, a minimal pair without a difference, one
pair of sentences with two labels, and a translation that was read. No text is written: items have ids and digests.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import open_session
from harness.data import ClassificationExample, DataFinder
from harness.planning import data_options
from harness.storage import cache_folder
from harness_errata.document import ErrataDocument, write_errata
from harness_errata.fitting import DataItems

FOLDER = Path("plugins/harness_errata/errata")
WHO = "this project, by reading the data"
PLACEHOLDER = "NS"
MINIMAL_PAIRS = {
    "turblimp": "ezgibasar/TurBLiMP @ 297de13, 4 of its 16 phenomena",
    "colorless_green_agreement": "facebookresearch/colorlessgreenRNNs @ dbffbf0",
}
Entry = dict[str, Any]


class Seeds:
    """Finds the entries of every file in data."""

    def __init__(self, data: Path) -> None:
        self._session = open_session()
        self._finder = DataFinder(data_options((str(data),)), self._session.registry, cache_folder() / "data")

    def _examples(self, task: str) -> Iterator[tuple[str, dict[str, tuple[str, Any]]]]:
        items = DataItems(self._session, self._finder, task, {"equal": "keep"} if task == "turblimp" else {})
        for language in items.languages:
            examples = items.examples(language)
            if examples is not None:
                yield language, examples

    def placeholders(self) -> Iterator[Entry]:
        """Yield the rows of PAWS-X with NS in the place of a sentence."""
        for language, examples in self._examples("pawsx"):
            for identifier, (digest, example) in examples.items():
                if PLACEHOLDER in example.inputs.values():
                    yield entry(language, identifier, digest)

    def repeats(self) -> Iterator[Entry]:
        """Yield the rows of XNLI whose premise and hypothesis another row has with another label."""
        for language, examples in self._examples("xnli"):
            rows: dict[tuple[str, ...], list[tuple[str, str, ClassificationExample]]] = defaultdict(list)
            for identifier, (digest, example) in examples.items():
                rows[tuple(example.inputs.values())].append((identifier, digest, example))
            for same in rows.values():
                if len({example.label for *_, example in same}) > 1:
                    for identifier, digest, example in same:
                        others = ", ".join(
                            f"{other!r} ({its.label})" for other, _, its in same if other != identifier
                        )
                        reason = (
                            f"The item {others} has the same premise and hypothesis, this one is {example.label}: "
                            "at most one of two labels is right"
                        )
                        yield entry(language, identifier, digest, reason=reason)

    def equal_pairs(self, task: str) -> Iterator[Entry]:
        """Yield minimal pairs whose right form is also the wrong one."""
        for language, examples in self._examples(task):
            for identifier, (digest, example) in examples.items():
                if example.right in example.wrong:
                    yield entry(language, identifier, digest)

    def lost_politics(self) -> Iterator[Entry]:
        """Yield the item of SIB-200 whose translation is about something else."""
        for language, examples in self._examples("sib200"):
            if language == "zh" and "1868" in examples:
                yield entry(language, "1868", examples["1868"][0])


def entry(language: str, identifier: str, digest: str, **more: str) -> Entry:
    """Return an entry that takes an item out."""
    return {"id": identifier, "language": language, "field": "item", "digest": digest, **more}


def main(argv: list[str] | None = None) -> None:
    """Write the files and print how many entries they have."""
    parser = argparse.ArgumentParser(description="The errata that ship with the harness.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=FOLDER)
    given = parser.parse_args(argv)
    seeds = Seeds(given.data)
    files = {
        "pawsx": (
            "the files of XTREME, without ids",
            "google-research-datasets/paws @ 02b29f3; counted in docs/benchmarks/pawsx.md",
            f"A sentence was not translated: it is {PLACEHOLDER}",
            list(seeds.placeholders()),
        ),
        "xnli": (
            "the test files of XTREME and KorNLI, without ids",
            "facebookresearch/XNLI @ 9624695",
            None,
            list(seeds.repeats()),
        ),
        "sib200": (
            "dadelani/sib-200 @ 593cea8",
            "The files zho_Hans/test.tsv and eng_Latn/test.tsv",
            "The translation lost the word 'political' and speaks of travel warnings; the label 'politics' comes from "
            "the English text",
            list(seeds.lost_politics()),
        ),
        **{
            task: (
                revision,
                revision,
                "Both forms are the same",
                list(seeds.equal_pairs(task)),
            )
            for task, revision in MINIMAL_PAIRS.items()
        },
    }
    for task, (revision, source, reason, entries) in files.items():
        print(f"{task}: {len(entries)} entries")
        head = {"errata": task, "revision": revision, "source": source, "who": WHO, "votes": "1/1"}
        if reason is not None:
            head["reason"] = reason
        if entries:
            ErrataDocument.model_validate({**head, "entries": tuple(entries)})
            write_errata(given.output / f"{task}.yaml", head, entries)


if __name__ == "__main__":
    main()
