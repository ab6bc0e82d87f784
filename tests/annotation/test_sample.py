"""Draws: random, without overlap, and by strata with weights."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.errors import UnknownNameError, UsageError
from harness_translation.annotation.export import ExportRequest, export_sheets
from harness_translation.annotation.key import Sheet
from harness_translation.annotation.sample import draw_sheets
from tests.annotation.conftest import Export, text_items


def ids(sheet: Sheet) -> list[str]:
    return [row.id for row in sheet.rows]


def test_sheets_of_a_parallel_task_share_no_item() -> None:
    texts = [text_items(), text_items(language="ur"), text_items(variant="tt")]
    samples = draw_sheets(texts, size=20, seed=0)
    drawn = [identifier for sample in samples for identifier in ids(sample)]
    assert len(drawn) == len(set(drawn)) == 60
    assert {one.weight for sample in samples for one in sample.rows} == {3.0}
    with pytest.raises(UsageError, match=r"has 18 .*--size 21 needs 21"):
        draw_sheets(texts, size=21, seed=0)


def test_ids_of_other_languages_are_other_items_where_a_task_is_not_parallel() -> None:
    texts = [text_items(30, parallel=False), text_items(30, language="ur", parallel=False)]
    hindi, urdu = draw_sheets(texts, size=30, seed=0)
    assert sorted(ids(hindi)) == sorted(ids(urdu))
    versions = [text_items(30, parallel=False), text_items(30, parallel=False, variant="tt")]
    own, machine = draw_sheets(versions, size=15, seed=0)
    assert not set(ids(own)) & set(ids(machine))


def test_the_seed_decides_and_a_further_text_changes_nothing_before_it() -> None:
    texts = [text_items(), text_items(language="ur")]
    first, second = draw_sheets(texts, size=10, seed=0)
    assert ids(draw_sheets(texts[:1], size=10, seed=0)[0]) == ids(first)
    assert set(ids(draw_sheets(texts, size=10, seed=1)[0])) != set(ids(first))
    assert ids(draw_sheets(texts, size=10, seed=0)[1]) == ids(second)


def test_a_draw_prefers_no_item() -> None:
    drawn = Counter(
        identifier
        for seed in range(300)
        for identifier in ids(draw_sheets([text_items(12)], size=4, seed=seed)[0])
    )
    assert set(drawn) == {str(number) for number in range(1, 13)}
    assert all(70 < count < 130 for count in drawn.values()), "expected 100 each, standard deviation 8"


@pytest.mark.parametrize("allocation", ["proportional", "equal"])
def test_the_weights_of_strata_sum_up_to_their_size(allocation: str) -> None:
    (sample,) = draw_sheets(
        [text_items()],
        size=12,
        seed=0,
        stratify="genre",
        allocation=allocation,  # type: ignore[arg-type]
    )
    rows, weights = Counter[str](), Counter[str]()
    for one in sample.rows:
        rows[one.stratum] += 1
        weights[one.stratum] += one.weight  # type: ignore[assignment]
    assert rows == ({"often": 11, "rare": 1} if allocation == "proportional" else {"often": 6, "rare": 6})
    assert weights == pytest.approx({"often": 54, "rare": 6})
    assert sample.design == "stratified by genre"


def test_labels_are_strata_too_and_unknown_attributes_are_errors() -> None:
    (sample,) = draw_sheets([text_items()], size=30, seed=0, stratify="label")
    assert Counter(one.gold for one in sample.rows) == {"yes": 10, "no": 10, "maybe": 10}
    with pytest.raises(UsageError, match=r"'topic' .*label, genre"):
        draw_sheets([text_items()], size=30, seed=0, stratify="topic")
    with pytest.raises(UsageError, match=r"'rare' .*0 of its 6"):
        draw_sheets([text_items()], size=4, seed=0, stratify="genre")


def test_impossible_requests_are_errors(tmp_path: Path, export: Export) -> None:
    folder, _ = export()
    with pytest.raises(UsageError, match="--output"):
        export_sheets(ExportRequest(tasks=("xnli",)), folder)
    with pytest.raises(UsageError, match="--tasks"):
        export_sheets(ExportRequest(), tmp_path / "none")
    with pytest.raises(UnknownNameError) as error:
        export("a", variants=("tt",))
    assert error.value.name == "tt"
    with pytest.raises(UsageError, match=r"'udpos' .*'token_tagging'"):
        export("b", tasks=("udpos",))
    with pytest.raises(UnknownNameError) as error:
        export("c", languages=("fi",))
    assert error.value.name == "fi"
    assert not (tmp_path / "b").exists()
