"""Joins, counts, differences and agreement against numbers that were counted by hand, and scipy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from harness.analysis.comparison import Comparison, compare
from harness.errors import DataError, HarnessError, UnknownNameError, UsageError
from harness.registry.registry import Registry
from harness.reporting.comparison.comparison import comparison_blocks, comparison_rows
from harness.reporting.render.console import render_blocks
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

from .conftest import LABELS, SPANS, TAGS, Cells, difference_of, item, labelled, write_runs

MakeRun = Callable[..., Run]
GOLD = "aabbcc"


def _shown(comparison: Comparison, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(render_blocks(comparison_blocks(comparison), width=width))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_scores_agreement_and_items_are_those_counted_by_hand(make_run: MakeRun, registry: Registry) -> None:
    first = make_run("first", [("xnli", "de", labelled("aabbaa", GOLD), {"tokens": 7, "seconds": 1.5})])
    second = make_run("second", [("xnli", "de", labelled("abbcca", GOLD), {"dropped_shots": 2})])
    [task] = compare([first, second], registry.metrics).tasks
    [language] = task.languages
    assert task.systems == ("first", "second")
    assert task.scores[0].values == pytest.approx((4 / 6, 3 / 6))
    assert task.agreement.same == ((1.0, 3 / 6), (3 / 6, 1.0))
    assert task.agreement.right == ((4 / 6, 2 / 6), (2 / 6, 3 / 6))
    assert (language.all_right, language.none_right) == (("0", "2"), ("5",))
    costs = [(cost.tokens, cost.dropped_shots, cost.seconds) for cost in task.costs]
    assert costs == [(7, 0, 1.5), (None, 2, 0.0)]
    [note] = task.notes
    assert note.startswith("acc: ") and "first" in note and "0.250 for second" in note


def test_the_interval_of_independent_items_is_that_of_the_paired_t_test(
    make_run: MakeRun, registry: Registry
) -> None:
    random = np.random.default_rng(5)
    gold, *answers = ("".join(random.choice(list("abc"), 60)) for _ in range(3))
    runs = write_runs(make_run, gold, x=answers[0], y=answers[1])
    [task] = compare(runs, registry.metrics).tasks
    assert task.scores[0].differences[0] is None
    difference = difference_of(task)
    right = [np.array([one == two for one, two in zip(text, gold, strict=True)], float) for text in answers]
    expected = stats.ttest_rel(right[0], right[1]).confidence_interval(0.95)
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))
    assert difference.value == pytest.approx(float((right[0] - right[1]).mean()))
    assert difference.method == "paired t"


def test_translations_of_an_item_are_one_draw_where_the_task_is_parallel(
    make_run: MakeRun, registry: Registry
) -> None:
    reaches = []
    for parallel in (False, True):
        specs = {"xnli": {**LABELS, "parallel": parallel}}
        runs = []
        for name, text in (("x", "aabbcc"), ("y", "abbacc")):
            cells: Cells = [("xnli", code, labelled(text, GOLD), {}) for code in ("de", "sw")]
            runs.append(make_run(f"{name}-{parallel}", cells, specs=specs))
        [task] = compare(runs, registry.metrics).tasks
        difference = difference_of(task)
        assert difference.low is not None
        reaches.append(difference.value - difference.low)
    # The second language repeats the first one: as independent items they would halve the variance.
    right = np.array([0, -1, 0, -1, 0, 0], float)
    t = stats.t.ppf(0.975, 5)
    assert reaches[1] == pytest.approx(t * right.std(ddof=1) / np.sqrt(6))
    assert reaches[0] < 0.75 * reaches[1]


def test_a_task_is_the_unweighted_mean_over_languages(make_run: MakeRun, registry: Registry) -> None:
    single: Cells = [("xnli", "sw", labelled("a", "a"), {})]
    runs = [
        make_run(name, [("xnli", "de", labelled(text, GOLD), {}), *single])
        for name, text in (("x", "aabbcc"), ("y", "bbbccc"))
    ]
    [task] = compare(runs, registry.metrics).tasks
    assert task.scores[0].values == pytest.approx((1.0, (3 / 6 + 1) / 2))
    [task] = compare(runs, registry.metrics, languages=["!de"]).tasks
    assert [part.language for part in task.languages] == ["sw"]


def test_items_that_are_not_the_same_are_counted_and_left_out(make_run: MakeRun, registry: Registry) -> None:
    own = labelled("aabbcc", GOLD)
    others = [replace(own[0], inputs_digest="other"), replace(own[1], reference="c"), *own[2:]]
    others += [item("more", "a", "a")]
    unlabelled = item("none", "a", None)
    runs = [
        make_run("x", [("xnli", "de", [*own, unlabelled], {})]),
        make_run("y", [("xnli", "de", [*reversed(others), unlabelled], {})]),
    ]
    [task] = compare(runs, registry.metrics).tasks
    [language] = task.languages
    assert language.ids == ("2", "3", "4", "5")
    assert (language.differing, language.regraded, language.unlabelled) == (1, 1, 1)
    assert language.missing == (1, 0)
    assert task.scores[0].values == (1.0, 1.0)
    assert [note.rpartition(": ")[2] for note in task.notes] == ["1."] * 4
    reasons = ("x", "inputs", "gold answers differ", "without a gold answer")
    for reason, note in zip(reasons, task.notes, strict=True):
        assert reason in note
    [row, *_] = comparison_rows([task])
    assert (row["n"], row["lacking"], row["differing"], row["regraded"]) == (4, 1, 1, 1)


def test_unread_answers_agree_with_nothing(make_run: MakeRun, registry: Registry) -> None:
    def answers() -> list[ItemRecord]:
        return [
            item("0", {"label": None}, "a", unparsed=True),
            item("1", {"label": None}, "a", truncated=True),
            item("2", "a", "a"),
        ]

    runs = [make_run(name, [("xnli", "de", answers(), {})]) for name in "xy"]
    [task] = compare(runs, registry.metrics).tasks
    assert task.agreement.same[0] == pytest.approx((1 / 3, 1 / 3))
    assert [(cost.unparsed, cost.truncated) for cost in task.costs] == [(1, 1), (1, 1)]


def test_set_level_metrics_are_swapped_and_resampled_and_whole_answers_are_right(
    make_run: MakeRun, registry: Registry
) -> None:
    gold = [["DET", "NOUN"], ["VERB"]]
    runs = []
    for name, answers in (("x", gold), ("y", [["DET", "VERB"], ["VERB"]])):
        records = [item(str(n), *pair) for n, pair in enumerate(zip(answers, gold, strict=True))]
        runs.append(make_run(name, [("udpos", "de", records, {})], specs={"udpos": TAGS}))
    [task] = compare(runs, registry.metrics).tasks
    difference = difference_of(task)
    # Swapping the one sentence that differs turns the sign of the difference: no swap is less extreme.
    assert (difference.p, difference.method) == (1.0, "paired bootstrap")
    assert (difference.won, difference.mcnemar) == (None, None)
    # Resamples hold the sentence twice, once or not at all.
    assert (difference.low, difference.high) == (0.0, 0.5)
    assert difference.value > 0
    assert task.agreement.right == ((1.0, 0.5), (0.5, 0.5))


def test_texts_and_rankings_are_compared_by_their_answer(make_run: MakeRun, registry: Registry) -> None:
    ranked = {"kind": "ranked_retrieval", "metrics": ["map_at_20"], "headline": ["map_at_20"]}
    spans, rankings = [], []
    for number, rest in enumerate("qr"):
        span = item("0", {"text": "der Hund", "start": number}, ["der Hund"])
        spans.append(make_run(f"s{rest}", [("xquad", "de", [span], {})], specs={"xquad": SPANS}))
        ranking, pool = item("0", {"candidates": ["p", rest]}, ["p"]), {"pool": {"digest": rest}}
        rankings.append(make_run(f"r{rest}", [("lareqa", "de", [ranking], pool)], specs={"lareqa": ranked}))
    for runs, notes in ((spans, 0), (rankings, 1)):
        [task] = compare(runs, registry.metrics).tasks
        assert task.agreement.same[0] == (1.0, 1.0)
        assert len(task.notes) == notes, "the candidates that were searched are not the same"


def test_systems_are_named_by_what_distinguishes_them(make_run: MakeRun, registry: Registry) -> None:
    prompted = {"protocol": "prompted", "method": "rank"}
    records = labelled("aabbcc", GOLD)
    cells: list[Any] = [
        ("xnli", "de", records, {}),
        ("xnli", "de", records, prompted),
        ("xnli", "de", records, {**prompted, "view": {"prompt": "lm_eval"}}),
    ]
    first = make_run("first", cells, model="hf:e5")
    second = make_run("second", cells[:1], model="hf:e5")
    third = make_run("third", cells[:1])
    frozen = [f"e5 (frozen, head, {run.path.name})" for run in (first, second)]
    prompted_names = ["e5 (prompted, rank)", "e5 (prompted, rank, prompt=lm_eval)"]
    tasks = compare([first, second, third], registry.metrics).tasks
    assert [(task.title, list(task.systems)) for task in tasks] == [
        ("xnli (frozen)", [*frozen, "third"]),
        ("xnli (prompted)", prompted_names),
        ("xnli (frozen and prompted)", [frozen[0], prompted_names[0], frozen[1]]),
    ]


def _protocols(make_run: MakeRun, *held: Sequence[str], model: str | None = None) -> list[Run]:
    records = labelled("aabbcc", GOLD)
    return [
        make_run(f"run{number}", [("xnli", "de", records, {"protocol": name}) for name in own], model=model)
        for number, own in enumerate(held)
    ]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ("frozen; frozen", ["xnli"]),
        (
            "zero_shot_transfer frozen; zero_shot_transfer frozen",
            ["xnli (zero_shot_transfer)", "xnli (frozen)", *["xnli (zero_shot_transfer and frozen)"] * 2],
        ),
        ("in_language frozen; frozen", ["xnli (frozen)", "xnli (in_language and frozen)"]),
        ("prompted frozen", ["xnli"]),
        # Nothing is alike, so that the two runs are compared all the same.
        ("prompted; frozen", ["xnli"]),
    ],
)
def test_like_is_compared_with_like(
    make_run: MakeRun, registry: Registry, held: str, expected: list[str]
) -> None:
    runs = _protocols(make_run, *(names.split() for names in held.split("; ")))
    tasks = compare(runs, registry.metrics).tasks
    assert [(task.title, len(task.systems)) for task in tasks] == [(title, 2) for title in expected]


def test_two_runs_of_a_model_that_differ_in_protocol_are_a_pair(
    make_run: MakeRun, registry: Registry
) -> None:
    [task] = compare(_protocols(make_run, ["prompted"], ["frozen"], model="hf:e5"), registry.metrics).tasks
    assert (task.systems[0], task.scores[0].differences[0]) == ("e5 (prompted)", None)
    assert not any("protocols" in note for note in task.notes)


def test_conditions_of_the_items_are_compared_apart(make_run: MakeRun, registry: Registry) -> None:
    variants = [("xnli", "de", labelled("aabbcc", GOLD), {"view": {"variant": name}}) for name in ("o", "t")]
    compared = compare([make_run(name, variants) for name in "xy"], registry.metrics).tasks
    shown = [(task.title, len(task.systems)) for task in compared]
    assert shown == [("xnli (variant=o)", 2), ("xnli (variant=t)", 2)]


def test_what_cannot_be_compared_is_reported(make_run: MakeRun, registry: Registry) -> None:
    records, failed = labelled("aabbcc", GOLD), {"status": "failed"}
    specs = {"xnli": LABELS, "pawsx": LABELS}
    first = make_run("x", [("xnli", code, records, {}) for code in ("de", "sw")], specs=specs)
    second = make_run(
        "y",
        [("xnli", "de", records, {}), ("xnli", "sw", [], failed), ("pawsx", "de", records, {})],
        specs=specs,
    )
    third = make_run("z", [("xnli", "de", [], failed)])
    compared = compare([first, second, third], registry.metrics)
    [task] = compared.tasks
    assert [part.language for part in task.languages] == ["de"]
    without_task, without_language = task.notes
    assert without_task.startswith(f"z ({third.path}) did not finish it")
    assert without_language.startswith("y did not finish sw")
    assert compared.notes == ("pawsx: only y finished it.",)


def _error(runs: list[Run], registry: Registry, error: type[HarnessError], **given: Any) -> str:
    with pytest.raises(error) as caught:
        compare(runs, registry.metrics, **given)
    return str(caught.value)


def test_runs_that_cannot_be_compared_are_rejected(make_run: MakeRun, registry: Registry) -> None:
    [first] = write_runs(make_run, GOLD, x="aabbcc")
    second = make_run("y", [("pawsx", "de", labelled("aabbcc", GOLD), {})], specs={"pawsx": LABELS})
    other = make_run("z", [("xnli", "de", [item("9", "a", "a")], {})])
    kinds = make_run("k", [("xnli", "de", [item("0", ["X"], ["X"])], {})], specs={"xnli": TAGS})
    twice = make_run("t", [("xnli", "de", labelled("a", "a"), {})] * 2)
    message = _error([first, second], registry, UsageError)
    assert f"'{first.path}' has xnli; '{second.path}' has pawsx" in message
    assert f"'{first.path}' has xnli" in _error([first], registry, UsageError)
    message = _error([first, other], registry, DataError)
    assert re.findall(r"items that (\w) does[^.]*: (\d)\.", message) == [("x", "1"), ("z", "6")]
    message = _error([first, kinds], registry, HarnessError)
    assert "'xnli': sequence_classification and token" in message
    message = _error([first, twice], registry, DataError)
    assert f"'{twice.path}'" in message and "'xnli' in 'de'" in message
    assert f"'{first.path}' is named twice" in _error([first, first], registry, UsageError)
    for options, error, named in (
        ({"metric": "acuracy"}, UnknownNameError, "'accuracy'"),
        ({"metric": "f1"}, DataError, "'f1'"),
        ({"metric": "evaluate:x"}, UsageError, "--allow-code"),
        ({"tasks": ["xnil"]}, UnknownNameError, "'xnil'"),
        ({"languages": ["ed"]}, UnknownNameError, "'ed'"),
    ):
        assert named in _error([first, other], registry, error, **options)
    message = _error(write_runs(make_run, "a", v="a", w="a"), registry, HarnessError, metric="accuracy_byte")
    assert "v in 'de'" in message and "'accuracy_byte'" in message


@pytest.mark.parametrize("width", [80, 100])
def test_tables_stay_within_the_terminal(make_run: MakeRun, registry: Registry, width: int) -> None:
    texts = ["aabbcc", "aabbca", "bbbbcc", "cccccc", "aaaaaa", "abcabc", "bcabca"]
    cost = {"tokens": 1_234_567, "seconds": 12_345.6}
    runs = [
        make_run(
            f"run{number}",
            [("xnli", code, labelled(text, GOLD), cost) for code in ("de", "sw")],
            model=f"[red]{number}",
        )
        for number, text in enumerate(texts)
    ]
    lines = _shown(compare(runs, registry.metrics), width)
    assert max(map(len, lines)) <= width
    assert "xnli: 12 common items in de sw" in lines
    assert "  G = [red]6" in lines
    assert not any("…" in line for line in lines)
    assert any(line.split() == ["B", "83.3", "+16.7", "-8.1", "to", "+41.4", "0", "0", "0"] for line in lines)
    assert any("1,234,567" in line and "12,345.6" in line for line in lines)


def test_the_command_writes_rows_and_items(
    make_run: MakeRun, cli: Callable[..., tuple[int, str, str]]
) -> None:
    paths = [
        make_run(name, [("xnli", "de", labelled(text, GOLD), {})], data="sample").path
        for name, text in (("x", "aabbcc"), ("y", "aabbca"))
    ]
    status, out, err = cli("compare", *paths, "--json", "rows.json", "--items", "items.json")
    assert (status, err) == (0, "")
    assert "SAMPLE DATA" in out
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    shown = [(row["language"], row["system"]) for row in rows]
    assert shown == [(None, "x"), (None, "y"), ("de", "x"), ("de", "y")]
    assert rows[1]["same"] == {"x": 5 / 6, "y": 1.0}
    [items] = json.loads(Path("items.json").read_text(encoding="utf-8"))
    assert (items["all_right"], items["none_right"]) == (["0", "1", "2", "3", "4"], [])
    assert items["systems"] == ["x", "y"]
    status, out, err = cli("compare", paths[0], "nowhere")
    assert (status, out) == (2, "")
    assert "'nowhere'" in err
    assert cli("compare", *paths, "--json", "no/where.json")[0] == 2
