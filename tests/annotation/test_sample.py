"""Draws: random, without overlap, by strata with weights, and as suspects with a control."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.errors import UnknownNameError, UsageError
from harness_translation.annotation.export import ExportRequest, export_sheets, read_suspects
from harness_translation.annotation.sample import CONTROL, SUSPECT, Sample, draw_samples
from tests.annotation.conftest import Export, text_items


def ids(sample: Sample) -> list[str]:
    return [one.item.id for one in sample.drawn]


def test_sheets_of_a_parallel_task_share_no_item() -> None:
    texts = [text_items(), text_items(language="ur"), text_items(variant="tt")]
    samples = draw_samples(texts, size=20, seed=0)
    drawn = [identifier for sample in samples for identifier in ids(sample)]
    assert len(drawn) == len(set(drawn)) == 60
    assert {one.weight for sample in samples for one in sample.drawn} == {3.0}
    with pytest.raises(UsageError, match=r"has 18 .*--size 21 needs 21"):
        draw_samples(texts, size=21, seed=0)


def test_ids_of_other_languages_are_other_items_where_a_task_is_not_parallel() -> None:
    texts = [text_items(30, parallel=False), text_items(30, language="ur", parallel=False)]
    hindi, urdu = draw_samples(texts, size=30, seed=0)
    assert sorted(ids(hindi)) == sorted(ids(urdu))
    versions = [text_items(30, parallel=False), text_items(30, parallel=False, variant="tt")]
    own, machine = draw_samples(versions, size=15, seed=0)
    assert not set(ids(own)) & set(ids(machine))


def test_the_seed_decides_and_a_further_text_changes_nothing_before_it() -> None:
    texts = [text_items(), text_items(language="ur")]
    first, second = draw_samples(texts, size=10, seed=0)
    assert ids(draw_samples(texts[:1], size=10, seed=0)[0]) == ids(first)
    assert set(ids(draw_samples(texts, size=10, seed=1)[0])) != set(ids(first))
    assert ids(draw_samples(texts, size=10, seed=0)[1]) == ids(second)


def test_a_draw_prefers_no_item() -> None:
    drawn = Counter(
        identifier
        for seed in range(300)
        for identifier in ids(draw_samples([text_items(12)], size=4, seed=seed)[0])
    )
    assert set(drawn) == {str(number) for number in range(1, 13)}
    assert all(70 < count < 130 for count in drawn.values()), "expected 100 each, standard deviation 8"


@pytest.mark.parametrize("allocation", ["proportional", "equal"])
def test_the_weights_of_strata_sum_up_to_their_size(allocation: str) -> None:
    (sample,) = draw_samples(
        [text_items()],
        size=12,
        seed=0,
        stratify="genre",
        allocation=allocation,  # type: ignore[arg-type]
    )
    rows, weights = Counter[str](), Counter[str]()
    for one in sample.drawn:
        rows[one.stratum] += 1
        weights[one.stratum] += one.weight  # type: ignore[assignment]
    assert rows == ({"often": 11, "rare": 1} if allocation == "proportional" else {"often": 6, "rare": 6})
    assert weights == pytest.approx({"often": 54, "rare": 6})
    assert sample.design == "stratified by genre"


def test_labels_are_strata_too_and_unknown_attributes_are_errors() -> None:
    (sample,) = draw_samples([text_items()], size=30, seed=0, stratify="label")
    assert Counter(one.item.gold for one in sample.drawn) == {"yes": 10, "no": 10, "maybe": 10}
    with pytest.raises(UsageError, match=r"'topic' .*label, genre"):
        draw_samples([text_items()], size=30, seed=0, stratify="topic")
    with pytest.raises(UsageError, match=r"'rare' .*0 of its 6"):
        draw_samples([text_items()], size=4, seed=0, stratify="genre")


def test_suspects_are_the_first_of_the_ranking_and_the_control_is_drawn_from_the_others() -> None:
    ranking = [str(number) for number in range(20, 0, -1)]
    (sample,) = draw_samples([text_items()], size=20, seed=0, suspects={0: ranking}, control_share=0.4)
    suspects = [one for one in sample.drawn if one.stratum == SUSPECT]
    control = [one for one in sample.drawn if one.stratum == CONTROL]
    assert [(one.item.id, one.rank, one.weight) for one in suspects] == [
        (ranking[place], place + 1, 1.0) for place in range(12)
    ]
    assert len(control) == 8 and {one.weight for one in control} == {48 / 8}
    assert not {one.item.id for one in suspects} & {one.item.id for one in control}


def test_suspects_of_two_texts_are_shared_out() -> None:
    texts = [text_items(), text_items(language="ur")]
    both = {0: ["1", "2", "3"], 1: ["1", "2", "3", "4"]}
    hindi, urdu = draw_samples(texts, size=4, seed=0, suspects=both)
    assert [one.rank for one in hindi.drawn if one.stratum == SUSPECT] == [1, 2]
    assert [one.rank for one in urdu.drawn if one.stratum == SUSPECT] == [3, 4]
    with pytest.raises(UsageError, match=r"nli:hi original.*'99'"):
        draw_samples(texts, size=4, seed=0, suspects={0: ["99"]})
    with pytest.raises(UsageError, match=r"--control-share .*1\b"):
        draw_samples(texts, size=4, seed=0, suspects=both, control_share=1)


def test_rankings_are_read_in_every_form(tmp_path: Path) -> None:
    forms = {
        "a.json": '[{"id": "7", "rank": 2}, {"id": "9", "rank": 1}]',
        "b.jsonl": '{"id": "9"}\n{"id": "7"}\n',
        "c.tsv": "task\tid\nxnli\t9\nxnli\t7\n",
        "d.csv": "rank,id\n2,7\n1,9\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert [row["id"] for row in read_suspects(tmp_path / name)] == ["9", "7"], name
    (tmp_path / "e.json").write_text('{"rows": 1}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"e\.json"):
        read_suspects(tmp_path / "e.json")


def test_items_are_stratified_by_a_file(export: Export, tmp_path: Path) -> None:
    strata = tmp_path / "genre.txt"
    strata.write_text("\n".join("ab"[number % 2] for number in range(24)), encoding="utf-8")
    _, key = export(languages=("hi",), size=8, stratify="genre", strata=strata)
    assert Counter(keyed.drawn.stratum for keyed in key.sheets[0].rows) == {"a": 4, "b": 4}
    strata.write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"2 lines .*24 items of xnli:hi original"):
        export("other", languages=("hi",), size=8, stratify="genre", strata=strata)


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
