"""The numbers of the first screen: tiles, tests against chance, the chart of tasks, and the map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import binom, t

from harness.reporting.blocks.number import heat_class
from harness.reporting.blocks.words import Weight, leading
from harness.reporting.overview.glance import Glance, above_chance, chance_p, glance, lags, tiles
from harness.reporting.overview.overview import stands_out, task_chart, tile_map
from harness.reporting.overview.provenance import banners, chips
from harness.reporting.overview.run_remarks import doubt_remarks, run_remarks
from harness.reporting.overview.summary import Material, read_material
from harness.storage.results import MetricValue, SuiteSummary
from harness.storage.run_folder import Run, with_baselines

from .conftest import make_cell as cell

Make = Callable[..., Any]


def score(
    value: float, se: float | None = None, method: str = "t", clusters: int | None = None
) -> MetricValue:
    return MetricValue(value=value, se=se, ci_method=method, clusters=clusters)


def looked_at(*runs: Run) -> tuple[Material, Glance]:
    material = read_material(runs)
    return material, glance(material.every, material.summary)


def measured(language: str, value: float, se: float = 0.02, **fields: Any) -> dict[str, Any]:
    """Return a cell with an error that fits its interval."""
    made: dict[str, Any] = cell(language, value, **fields)
    entry = {"value": value, "se": se, "ci": [value - 1.96 * se, value + 1.96 * se], "ci_method": "t"}
    return {**made, "metrics": {"accuracy": {**entry, "clusters": 100}}}


def test_p_values_are_those_of_the_exact_tests() -> None:
    assert chance_p(score(0.6, 0.07, "wilson", 50), 0.5, 50) == pytest.approx(binom.sf(29, 50, 0.5))
    assert chance_p(score(0.6, 0.05, "clustered t", 8), 0.5, 24) == pytest.approx(t.sf(2, 7))
    assert chance_p(score(1.0, 0.0, "clustered wilson", 5), 0.5, 20) == pytest.approx(0.5**5)
    assert chance_p(score(1.0, 0.0, "wilson", 10), 0.25, 10) == pytest.approx(0.25**10)


@pytest.mark.parametrize("found", [score(0.5, 0.01), score(0.0, 0.0), score(0.9), score(0.9, 0.0)])
def test_what_is_not_higher_or_has_no_error_is_not_above_chance(found: MetricValue) -> None:
    assert chance_p(found, 0.5, 40) == 1.0


def test_cells_above_chance_are_corrected_for_many_tests(write_run: Make) -> None:
    chance = 1 / 3
    # One p of 0.04 is enough alone, and is not among ten.
    lucky = chance + 0.02 * float(t.isf(0.04, 99))
    alone = write_run(measured("de", lucky))
    many = write_run(
        measured("de", lucky),
        measured("sw", 0.9),
        *(measured(code, chance) for code in ("en", "ur", "ar", "bg", "el", "es", "fr", "hi")),
    )
    found = [above_chance(run, looked_at(run)[0].summary) for run in (alone, many)]
    assert found == [(1, 1), (1, 10)]


def test_the_weakest_language_is_named_where_it_is_established(write_run: Make) -> None:
    def weakest(swahili: float) -> tuple[Material, Glance, Any]:
        cells = [
            measured(code, swahili if code == "sw" else 0.8, task=task, digest=f"{place:012d}")
            for place, task in enumerate(("xnli", "pawsx", "xcopa"))
            for code in ("en", "de", "fr", "sw")
        ]
        material, first = looked_at(write_run(*cells))
        [tile] = [tile for tile in tiles(material, first) if tile.title.startswith("Weakest")]
        return material, first, tile

    material, first, tile = weakest(0.5)
    lowest = lags(material, first)[0]
    assert (lowest.code, lowest.tasks) == ("sw", 3)
    assert lowest.mean == pytest.approx(-0.3)
    error = 0.02 * (1 + 1 / 3) ** 0.5 / 3**0.5
    assert lowest.half == pytest.approx(1.96 * error, rel=0.01)
    assert tile.value == "Swahili"
    *_, tile = weakest(0.79)
    assert tile.value == "Not clear"
    assert "Swahili" in tile.note


def test_a_run_of_one_cell_has_only_tiles_that_say_something(write_run: Make) -> None:
    material, first = looked_at(write_run(measured("de", 0.75)))
    found = tiles(material, first)
    assert [tile.value for tile in found] == ["75.0", "1 of 1"]
    assert found[0].note == "chance 33.3"
    assert tile_map(material, first.tasks) is None


def test_a_run_without_scores_has_no_tiles(write_run: Make) -> None:
    material, first = looked_at(write_run(cell("de", None, status="failed", reason="broken", n=0)))
    assert tiles(material, first) == []
    assert [row.value for row in task_chart(material, first.tasks).rows] == [None]


def test_the_mean_and_the_gap_are_those_of_the_tasks(write_run: Make) -> None:
    cells = [
        measured(code, value, task=task, digest=f"{place:012d}")
        for place, (task, values) in enumerate({"xnli": (0.9, 0.5), "pawsx": (0.8, 0.6)}.items())
        for code, value in zip(("en", "de"), values, strict=True)
    ]
    run = write_run(*cells)
    other = write_run(*(measured(one["language"], 0.4, task=one["task"]) for one in cells))
    (run.path / "baselines").mkdir()
    other.path.rename(run.path / "baselines" / "majority")
    material, first = looked_at(*with_baselines(Run(run.path)))
    mean, gap, *_ = tiles(material, first)
    assert (mean.title, mean.value) == ("Mean of 2 tasks", "70.0")
    assert mean.note.endswith("baseline 40.0")
    assert (gap.title, gap.value) == ("Lost on leaving English", "\u221230.0")
    # Two tasks, each with the difference of two errors of 0.02.
    assert gap.small == f"±{196 * 0.02 * 2**0.5 * 2**0.5 / 2:.1f}"


def test_tiles_of_two_runs_show_both_like_with_like(write_run: Make) -> None:
    def made(values: tuple[float, float], *further: Any) -> Run:
        pair = zip(("en", "de"), values, strict=True)
        run: Run = write_run(*(measured(code, value) for code, value in pair), *further)
        return run

    frozen = measured("de", 0.1, task="pawsx", protocol="frozen", method="embed", fit=None, digest="1" * 12)
    trained = measured("de", 0.9, task="pawsx", digest="2" * 12)
    runs = [made((0.9, 0.5), frozen), made((0.8, 0.6), trained)]
    material, first = looked_at(*runs)
    found = tiles(material, first)
    assert [tile.value for tile in found] == ["70.0", "70.0", "\u221240.0", "\u221220.0"]
    names = [material.name(run) for run in runs]
    assert [tile.title.partition(":")[0] for tile in found] == [*names, *names]


def test_a_collapsed_model_has_a_banner_and_no_gap(write_run: Make) -> None:
    collapse = {"answer": "neutral", "count": 60, "of": 60, "unit": "items"}
    run = write_run(*(measured(code, 0.35, collapse=collapse) for code in ("en", "de")))
    material, first = looked_at(run)
    assert first.gap is None
    assert not any("leaving" in tile.title for tile in tiles(material, first))
    assert banners(material)[0].title == "xnli: 'neutral' for all 120 items."
    lucky = write_run(*(measured(code, 0.9, collapse=collapse) for code in ("en", "de")))
    assert above_chance(lucky, looked_at(lucky)[0].summary)[0] == 0


def test_a_useless_model_is_remarked_in_the_summary_and_first_on_the_page(write_run: Make) -> None:
    majority = {"answer": "neutral", "right": 105, "constant": 100, "both": 40, "of": 300}
    loss = {"first": 1.1, "last": 1.09, "steps": 40}
    stage = {"stage": "mnli", "digest": "1" * 12, "reused": True, "train": {"examples": 9}, "loss": loss}
    fits = {"1": {"title": "mnli (en)", "stages": [stage]}}
    cells = [measured(code, 0.35, majority=majority) for code in ("en", "de")]
    run = write_run(*cells, fits=fits)
    doubts = [remark for remark in run_remarks(run) if remark.weight is Weight.INVALID]
    assert [remark.brief.partition(":")[0] for remark in doubts] == ["xnli", "mnli"]
    assert leading(run_remarks(run), 5)[0][:2] == [remark.brief for remark in doubts]
    material, _ = looked_at(run)
    [banner] = banners(material)
    assert banner.title == f"{'; '.join(remark.brief for remark in doubts)}."
    guessing = write_run(*cells, model="baseline:random")
    assert not [remark for remark in run_remarks(guessing) if remark.weight is Weight.INVALID]


@pytest.mark.parametrize(
    ("loss", "is_remarked"),
    [
        ({"first": 1.1, "last": 1.2, "steps": 10}, True),
        ({"first": 1.1, "last": 1.0, "steps": 10}, False),
        ({"first": 1.1, "last": 1.1, "steps": 9}, False),
        (None, False),
    ],
)
def test_training_that_ends_at_its_starting_loss_is_a_remark(
    write_run: Make, loss: dict[str, float] | None, is_remarked: bool
) -> None:
    stage = {"stage": "mnli", **({} if loss is None else {"loss": loss})}
    run = write_run(measured("en", 0.9), fits={"1": {"title": "mnli (en)", "stages": [stage]}})
    assert len(list(doubt_remarks(run))) == is_remarked


@pytest.mark.parametrize(("right", "is_remarked"), [(40, True), (120, False)])
def test_a_small_fall_of_the_loss_is_enough_where_labels_are_right(
    write_run: Make, right: int, is_remarked: bool
) -> None:
    majority = {"answer": "neutral", "right": right, "constant": 50, "both": right // 4, "of": 150}
    stage = {"stage": "mnli", "loss": {"first": 1.1, "last": 1.08, "steps": 40}}
    cells = [measured(code, 0.5, majority=majority, fit="1") for code in ("en", "de")]
    run = write_run(*cells, fits={"1": {"title": "mnli (en)", "stages": [stage]}})
    assert any("loss" in remark.brief for remark in doubt_remarks(run)) == is_remarked


def test_a_row_has_its_marks(write_run: Make) -> None:
    values = {"en": 0.9, "de": 0.5, "sw": 0.4, "ur": 0.4}
    run = write_run(*(measured(code, value) for code, value in values.items()))
    material, first = looked_at(run)
    [row] = task_chart(material, first.tasks).rows
    assert row.value == pytest.approx(55.0)
    assert row.chance == pytest.approx(100 / 3)
    others = {("language", name) for name in ("German", "Swahili", "Urdu")}
    assert {(mark.kind, mark.label) for mark in row.marks} == {("source", "English"), *others}
    assert (row.weakest_text, set(row.weakest)) == ("Urdu +1", {"Urdu", "Swahili"})
    assert row.lowest == pytest.approx(40.0)
    heads, [fields] = task_chart(material, first.tasks).data
    assert dict(zip(heads, fields, strict=True))["mean"] == "55.0"


def test_tiles_of_the_map_go_from_chance_to_100(write_run: Make) -> None:
    run = write_run(
        measured("en", 0.95), measured("de", 1 / 3), cell("sw", None, status="failed", reason="x", n=0),
        measured("ur", 0.65),
    )  # fmt: skip
    material, first = looked_at(run)
    found = tile_map(material, first.tasks)
    assert found is not None
    [(name, fields)] = found.rows
    by_code = {code: field for (code, _), field in zip(found.languages, fields, strict=True)}
    assert name == "xnli"
    texts = {code: field.text for code, field in by_code.items()}
    assert texts == {"en": "95", "de": "33", "sw": "!", "ur": "65"}
    assert by_code["de"].shade == "h0"
    assert by_code["sw"].shade == "absent"
    assert by_code["ur"].shade == heat_class(0.65, 1 / 3, 1.0)
    assert sum(count for _, count in found.families) == len(found.languages)


def test_findings_take_turns(write_run: Make) -> None:
    material = read_material([write_run(*(cell(code) for code in ("de", "sw", "ur", "en")))])
    sentences = {"sw": ["a", "b", "c"], "de": ["xnli: German is d"], "ur": ["e", "f"]}
    found = stands_out(material, sentences)
    assert [f"{one.before}[{one.link}]{one.after}" for one in found] == [
        "[Swahili], a",
        "xnli: [German] is d",
        "[Urdu], e",
        "[Swahili], b",
        "[Urdu], f",
    ]
    assert [one.href for one in found][:2] == ["#language-sw", "#language-de"]
    assert stands_out(material, {}) == []
    # A task with two findings lets others go first.
    sentences = {"sw": ["a: 1"], "de": ["a: 2"], "ur": ["a: 3"], "en": ["b: 4"]}
    assert [one.link for one in stands_out(material, sentences)] == ["Swahili", "German", "English", "Urdu"]


def test_chips_name_the_training_and_the_limits(write_run: Make) -> None:
    stage = {"stage": "mnli", "recipe": "quick", "train": {"languages": ["en"]}}
    run = write_run(
        cell("de"),
        cell("en", protocol="prompted"),
        fits={"f" * 16: {"title": "mnli", "stages": [stage]}},
    )
    run.manifest = run.manifest.changed(config={"limit": 50})
    training = ["fine-tuned on English", "prompted", "recipe quick"]
    assert chips(run) == [*training, "50 items per language", "1 Jan 2026"]


def test_a_sample_is_announced_once(write_run: Make) -> None:
    runs = [write_run(cell("de"), data="sample", model=f"hf:models/{name}") for name in "ab"]
    [banner] = banners(read_material(runs))
    assert banner.title == "Scores of the shipped sample."
    real = write_run(cell("de"))
    [banner] = banners(read_material([runs[0], real]))
    assert banner.title == "models/a: Scores of the shipped sample."


def test_a_suite_with_a_score_is_the_first_tile(write_run: Make) -> None:
    paper = {"value": 0.612, "ci": [0.6, 0.624], "categories": {"c": 0.612}}
    suite = {"suite": "mine", "protocol": "zero_shot_transfer", "paper": paper, "complete": True}
    run = write_run(measured("de", 0.7), suites=[suite])
    known = SuiteSummary(suite="mine", tasks=["xnli"], categories={"c": ["xnli"]})
    run.manifest = run.manifest.changed(suites=[known])
    [first, *_] = tiles(*looked_at(run))
    assert (first.title, first.value, first.small) == ("Score on mine", "61.2", "±1.2")
    assert banners(read_material([run])) == []
