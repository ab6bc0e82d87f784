"""Variants of the published files: XNLI with the translations of myXNLI, MLQA, PAWS-X and XCOPA."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import evaluate
from harness.data.sources import find_split
from harness.progress import Progress
from harness.specs.schema import Source
from harness_translation.gap.measure import GapOptions, compute_gaps
from harness_translation.gap.system import gap_systems
from harness_translation.variants.corpus import Corpus, gather_corpora
from tests.builders import released_data

PAIR = """id: Google Translate (myXNLI)
licence: CC-BY-NC-4.0
root: {1}
pairs:
- {{source: {0}, target: en, text: test-{0}.tsv, translation: translate-test/test-{0}.en-mt.tsv, columns: [0, 1]}}
"""


@pytest.fixture(scope="module")
def root() -> Path:
    return released_data()


@pytest.fixture
def corpus(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))

    def gather(task: str, translator: str = "identity", **given: Any) -> Corpus:
        settings: dict[str, Any] = {
            "languages": None,
            "variants": ("tt", "te", "bt"),
            "data": [str(root)],
            **given,
        }
        return gather_corpora([task], [translator], **settings)

    return gather


@pytest.mark.thorough
@pytest.mark.parametrize(("code", "distinct"), [("sw", 6678), ("ur", 6672)])
def test_xnli_by_the_published_translations(
    corpus: Any, root: Path, tmp_path: Path, code: str, distinct: int
) -> None:
    table = PAIR.format(code, json.dumps(str(root / "xnli")))
    (tmp_path / "translations.yaml").write_text(table, encoding="utf-8")
    machine = f"translate-test/test-{code}.en-mt.tsv"
    made = corpus(f"xnli:{code}", f"g=file:{tmp_path}", variants=("tt",))
    [load] = made.workloads()
    assert (load["segments"], load["distinct"], load["calls"]) == (10_020, distinct, distinct)
    [row] = made.translate(Progress())
    assert row["items"] == 5010
    assert made.workloads()[0]["calls"] == 0
    lines = [line.split("\t") for line in (root / "xnli" / machine).read_text(encoding="utf-8").splitlines()]
    fields = [item.fields for item in made.rows(made.splits[0])]
    assert [[item["premise"], item["hypothesis"], item["label"]] for item in fields] == lines


def items(made: Corpus, language: str, variant: str) -> dict[str, Mapping[str, Any]]:
    [split] = [item for item in made.splits if (item.language, item.variant) == (language, variant)]
    return {str(row.fields["id"]): row.fields for row in made.rows(split)}


def published(made: Corpus, language: str, source: Any = None) -> dict[str, Mapping[str, Any]]:
    entry = made.splits[0].entry
    assert entry is not None
    given = source or entry.spec.source(language, "test")
    assert isinstance(given, Source)
    folder = next(iter(entry.folders.values()))
    found = find_split(made.finder, given, entry.spec.task, entry.languages.get(language), "test", folder)
    rows = made.finder.rows(found)
    return {str(row.fields.get("id", number)): row.fields for number, row in enumerate(rows, start=1)}


def test_mlqa_translates_questions_only(corpus: Any) -> None:
    made = corpus("mlqa", "reverse", languages=["hi", "es", "de"])
    assert {(split.language, split.variant) for split in made.splits} == {
        ("hi", "tt"), ("hi", "bt"), ("es", "bt"), ("de", "bt"),
    }  # fmt: skip
    assert sum("(test): looked for" in reason for reason in made.skipped) == 5
    english = published(made, "en")
    for code in ("hi", "es", "de"):
        own, back = published(made, code), items(made, code, "bt")
        assert set(back) == set(own)
        for key, item in back.items():
            assert item["context"] == english[key]["context"]
            assert item["answers"] == english[key]["answers"]
            assert item["question"] == " ".join(english[key]["question"].split())
    hindi = published(made, "hi")
    for key, item in items(made, "hi", "tt").items():
        assert item["context"] == english[key]["context"]
        assert item["question"].split() == hindi[key]["question"].split()[::-1]


@pytest.mark.thorough
def test_pawsx_shares_items_and_labels(corpus: Any) -> None:
    made = corpus("pawsx", "identity", languages=["de", "ja"])
    english = published(made, "en")
    for code in ("de", "ja"):
        own = published(made, code)
        for variant, texts in (("tt", own), ("te", english), ("bt", english)):
            found = items(made, code, variant)
            assert list(found) == list(english)
            for key, item in found.items():
                assert item["sentence1"] == texts[key]["sentence1"]
                # The published labels differ in 12 German items.
                assert item["label"] == texts[key]["label"]


def test_xcopa_begins_with_copa(corpus: Any) -> None:
    made = corpus("xcopa", "reverse", languages=["it", "id"])
    assert len(made.splits) == 6
    copa = published(made, "en", made.splits[0].entry.spec.translate.source)
    for code in ("it", "id"):
        own, there, back = published(made, code), items(made, code, "te"), items(made, code, "bt")
        assert list(own) == list(there) == list(back)
        for key, item in there.items():
            assert item["premise"].split() == copa[key]["premise"].split()[::-1]
            assert back[key]["choice1"] == " ".join(copa[key]["choice1"].split())
            # The file of COPA has no labels: all are 0 there.
            assert item["label"] == back[key]["label"] == own[key]["label"]
        assert {item["label"] for item in there.values()} == {0, 1}


@pytest.mark.thorough
def test_mlqa_compares_the_questions_that_hindi_has(root: Path, tmp_path: Path) -> None:
    """Table 4's form on the dev set: 507 questions in every version, and English on the same ones."""
    run = evaluate(
        "mlqa:en+hi",
        "baseline:random",
        data=[root],
        variants="zs,tt,bt",
        translators="identity",
        split="validation",
        train_limit=20,
        output=tmp_path / "run",
    )
    metrics = {}
    for found in compute_gaps(gap_systems([run]), None, GapOptions()):
        by_name = {value.quantity: value for value in found.values if value.language == "hi"}
        assert {by_name[name].items for name in ("source", "zs", "tt", "bt", "bt_tt")} == {507}
        assert by_name["bt"].estimate.value == pytest.approx(by_name["source"].estimate.value)
        assert by_name["delta"].unfair and not by_name["bt_tt"].unfair
        metrics[found.metric] = found.find("zs", "en", "")
    assert set(metrics) == {"mlqa_f1", "mlqa_exact_match"}
    assert all(own is not None and own.items == 1148 for own in metrics.values())
