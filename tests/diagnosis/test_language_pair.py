"""What one system has right in one language and wrong in another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from harness.analysis.language_pair import language_pairs, version_pairs
from harness.errors import UnknownNameError, UsageError
from harness.reporting.languages.language import language_pair_blocks
from harness.reporting.render.console import print_blocks
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from tests.diagnosis.conftest import MakeRun, pair, sentence

Cli = Callable[..., tuple[int, str, str]]
GOLD = "neutral"


def _pairs(code: str, rights: str, *, clusters: int = 0) -> list[ItemRecord]:
    """Return items that are right (1) or wrong (0) in the order of their ids."""
    return [
        pair(
            f"i{number}",
            f"premise {number} ({code})",
            f"hypothesis {number} ({code})",
            GOLD if right == "1" else "entailment",
            GOLD,
            cluster=f"c{number // clusters}" if clusters else None,
        )
        for number, right in enumerate(rights)
    ]


ENGLISH, SWAHILI = "111111111100", "110000111101"


def test_items_are_counted_and_tested_in_pairs(make_run: MakeRun) -> None:
    english, swahili = _pairs("en", ENGLISH), _pairs("sw", SWAHILI)[::-1]
    run = make_run("a", {("xnli", "en"): english, ("xnli", "sw"): swahili})
    [found], notes = language_pairs([run], ["sw"], "en")
    assert (found.both, found.lost, found.gained, found.neither, notes) == (6, 4, 1, 1, [])
    assert found.p == pytest.approx(stats.binomtest(1, 5).pvalue)
    assert found.test == "McNemar, exact"
    paired = stats.ttest_rel(list(map(int, SWAHILI)), list(map(int, ENGLISH)))
    assert found.ci == pytest.approx(tuple(paired.confidence_interval()))
    lost = [item for item in found.items if item.is_lost]
    assert [item.language.id for item in lost] == ["i5", "i4", "i3", "i2"]
    assert all(item.language.id == item.against.id for item in found.items)


def test_items_of_a_cluster_are_one_draw(make_run: MakeRun) -> None:
    cells = {
        ("xnli", code): _pairs(code, rights, clusters=3)
        for code, rights in (("en", "1" * 12), ("sw", "0" * 12))
    }
    [found], _ = language_pairs([make_run("a", cells)], [], "en")
    # Four clusters that all differ: 2 of 16 vectors of signs are as extreme.
    assert found.p == pytest.approx(2 / 16)
    assert found.test == "random signs of clusters"


def test_other_tasks_and_languages_are_reported(make_run: MakeRun) -> None:
    tagged = [sentence("1", "a b", "NOUN VERB", "NOUN VERB")]
    cells = {("udpos", "en"): tagged, ("udpos", "sw"): tagged, ("xnli", "en"): _pairs("en", "11")}
    run = make_run("a", cells)
    with pytest.raises(UsageError, match="No parallel task has items in sw and en") as error:
        language_pairs([run], ["sw"], "en")
    assert "not parallel" in str(error.value)
    assert "finished in en only" in str(error.value)
    with pytest.raises(UnknownNameError):
        language_pairs([run], ["sw"], "xx")


def test_the_texts_of_both_languages_are_shown(make_run: MakeRun, cli: Cli, tmp_path: Path) -> None:
    run = make_run(
        "a", {("xnli", code): _pairs(code, rights) for code, rights in (("en", ENGLISH), ("sw", SWAHILI))}
    )
    pairs, notes = language_pairs([run], ["sw"], "en")
    text = print_blocks(language_pair_blocks(pairs, notes, examples=1))
    for shown in ("premise 2 (en)", "hypothesis 2 (sw)", "neutral", "entailment", "3 more items"):
        assert shown in text
    assert "premise 3" not in text
    rows = tmp_path / "rows.json"
    cli("diagnose", run.path, "--language", "sw", "--against", "en", "--json", rows)
    head, *items = json.loads(rows.read_text(encoding="utf-8"))
    assert (head["kind"], head["lost"], head["gained"]) == ("language_pair", 4, 1)
    assert [item["right_in"] for item in items].count("en") == 4
    first = items[0]
    assert first["inputs"]["language"]["inputs"]["premise"] == "premise 2 (sw)"
    assert (first["answer"], first["gold"]["against"]) == ({"language": "entailment", "against": GOLD}, GOLD)


def test_options_of_buckets_are_rejected(make_run: MakeRun, cli: Cli) -> None:
    run = make_run("a", {("xnli", "en"): _pairs("en", "11"), ("xnli", "sw"): _pairs("sw", "10")})
    status, _, err = cli("diagnose", run.path, "--against", "en", "--attributes", "len1")
    assert status == 2
    assert "--attributes" in err


def test_versions_of_a_language_are_paired_item_by_item(tmp_path: Path, cli: Cli) -> None:
    """Table 8 of the translation-errors paper: what is right in machine text, wrong in the human translation."""
    run = tmp_path / "run"
    asked = ("eval", "--tasks", "xnli:en+sw+hi", "--data", "sample", "--model", "baseline:char-ngram")
    given = (
        "--variants zs,tt,te,bt --translator r=reverse,i=identity --recipe quick --limit 12 --train-limit 50"
    )
    assert cli(*asked, *given.split(), "--output", run)[0] == 0
    folder = Run(run)
    pairs, _ = version_pairs([folder], [], ["te", "bt"])
    assert {(pair.language, pair.against, pair.against_language) for pair in pairs} == {
        (code, f"{variant} ({name})", code if variant == "te" else "en")
        for code in ("sw", "hi")
        for variant in ("te", "bt")
        for name in "ri"
    }
    for own in pairs:
        variant, name = own.against.rstrip(")").split(" (")
        cells = [cell for cell in folder.cells if cell.language == own.language]
        [cell] = [cell for cell in cells if cell.view == {"variant": variant, "translator": name}]
        [human] = [cell for cell in cells if not cell.view]
        rights = [{item.id: item.correct for item in folder.records(part)} for part in (human, cell)]
        lost = sum(not rights[0][key] and bool(rights[1][key]) for key in rights[0])
        assert (own.lost, own.both + own.lost + own.gained + own.neither) == (lost, 12)
    status, out, _ = cli("diagnose", run, "--language", "sw", "--variant", "te")
    assert status == 0 and "te (r)" in out
    assert cli("diagnose", run, "--variant", "xx")[0] == 2
    assert cli("diagnose", run, "--variant", "te", "--against", "en")[0] == 2
    with pytest.raises(UsageError, match="human translation"):
        version_pairs([folder], ["en"], ["te"])
