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
from harness.errors import HarnessError
from harness.registry.registry import Registry
from harness.reporting.comparison.comparison import comparison_blocks, comparison_rows
from harness.reporting.render.console import render_blocks
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

from .conftest import LABELS, SPANS, TAGS, item, labelled

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
    [scores] = task.scores
    assert task.systems == ("first", "second")
    assert scores.values == pytest.approx((4 / 6, 3 / 6))
    assert task.agreement.same == ((1.0, 3 / 6), (3 / 6, 1.0))
    assert task.agreement.right == ((4 / 6, 2 / 6), (2 / 6, 3 / 6))
    assert (language.all_right, language.none_right) == (("0", "2"), ("5",))
    assert [(cost.tokens, cost.dropped_shots, cost.seconds) for cost in task.costs] == [
        (7, 0, 1.5),
        (None, 2, 0.0),
    ]
    [note] = task.notes
    assert note.startswith("acc: ")
    assert "first" in note
    assert "0.250 for second" in note


def test_the_interval_of_independent_items_is_that_of_the_paired_t_test(
    make_run: MakeRun, registry: Registry
) -> None:
    random = np.random.default_rng(5)
    gold = "".join(random.choice(list("abc"), 60))
    answers = ["".join(random.choice(list("abc"), 60)) for _ in range(2)]
    runs = [
        make_run(name, [("xnli", "de", labelled(text, gold), {})])
        for name, text in zip("xy", answers, strict=True)
    ]
    [task] = compare(runs, registry.metrics).tasks
    difference = task.scores[0].differences[1]
    assert task.scores[0].differences[0] is None
    assert difference is not None
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
        runs = [
            make_run(
                f"{name}-{parallel}",
                [("xnli", code, labelled(text, GOLD), {}) for code in ("de", "sw")],
                specs=specs,
            )
            for name, text in (("x", "aabbcc"), ("y", "abbacc"))
        ]
        [task] = compare(runs, registry.metrics).tasks
        difference = task.scores[0].differences[1]
        assert difference is not None
        assert difference.low is not None
        reaches.append(difference.value - difference.low)
    # The second language repeats the first one: as independent items they would halve the variance.
    right = np.array([0, -1, 0, -1, 0, 0], float)
    t = stats.t.ppf(0.975, 5)
    assert reaches[1] == pytest.approx(t * right.std(ddof=1) / np.sqrt(6))
    assert reaches[0] < 0.75 * reaches[1]


def test_a_task_is_the_unweighted_mean_over_languages(make_run: MakeRun, registry: Registry) -> None:
    runs = [
        make_run(
            name,
            [("xnli", "de", labelled(text, GOLD), {}), ("xnli", "sw", labelled("a", "a"), {})],
        )
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
    first = [item(str(number), tags, tags) for number, tags in enumerate(gold)]
    second = [item("0", ["DET", "VERB"], gold[0]), item("1", ["VERB"], gold[1])]
    runs = [
        make_run(name, [("udpos", "de", records, {})], specs={"udpos": TAGS})
        for name, records in (("x", first), ("y", second))
    ]
    [task] = compare(runs, registry.metrics).tasks
    difference = task.scores[0].differences[1]
    assert difference is not None
    # Swapping the one sentence that differs turns the sign of the difference: no swap is less extreme.
    assert (difference.p, difference.method) == (1.0, "paired bootstrap")
    assert (difference.won, difference.mcnemar) == (None, None)
    # Resamples hold the sentence twice, once or not at all.
    assert (difference.low, difference.high) == (0.0, 0.5)
    assert difference.value > 0
    assert task.agreement.right == ((1.0, 0.5), (0.5, 0.5))


def test_texts_and_rankings_are_compared_by_their_answer(make_run: MakeRun, registry: Registry) -> None:
    spans = [
        make_run(
            f"s{start}",
            [("xquad", "de", [item("0", {"text": "der Hund", "start": start}, ["der Hund"])], {})],
            specs={"xquad": SPANS},
        )
        for start in (3, -1)
    ]
    [task] = compare(spans, registry.metrics).tasks
    assert task.agreement.same[0] == (1.0, 1.0)
    ranked = {"kind": "ranked_retrieval", "metrics": ["map_at_20"], "headline": ["map_at_20"]}
    runs = [
        make_run(
            f"r{rest}",
            [("lareqa", "de", [item("0", {"candidates": ["p", rest]}, ["p"])], {"pool": {"digest": rest}})],
            specs={"lareqa": ranked},
        )
        for rest in "qr"
    ]
    [task] = compare(runs, registry.metrics).tasks
    assert task.agreement.same[0] == (1.0, 1.0)
    assert task.notes == ("The candidates that were searched are not the same.",)


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
    return [
        make_run(
            f"run{number}",
            [("xnli", "de", labelled("aabbcc", GOLD), {"protocol": name}) for name in own],
            model=model,
        )
        for number, own in enumerate(held)
    ]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([["frozen"], ["frozen"]], [("xnli", 2)]),
        (
            [["zero_shot_transfer", "frozen"], ["zero_shot_transfer", "frozen"]],
            [
                ("xnli (zero_shot_transfer)", 2),
                ("xnli (frozen)", 2),
                ("xnli (zero_shot_transfer and frozen)", 2),
                ("xnli (zero_shot_transfer and frozen)", 2),
            ],
        ),
        (
            [["in_language", "frozen"], ["frozen"]],
            [("xnli (frozen)", 2), ("xnli (in_language and frozen)", 2)],
        ),
        ([["prompted", "frozen"]], [("xnli", 2)]),
        # Nothing is alike, so that the two runs are compared all the same.
        ([["prompted"], ["frozen"]], [("xnli", 2)]),
    ],
)
def test_like_is_compared_with_like(
    make_run: MakeRun, registry: Registry, held: list[list[str]], expected: list[tuple[str, int]]
) -> None:
    tasks = compare(_protocols(make_run, *held), registry.metrics).tasks
    assert [(task.title, len(task.systems)) for task in tasks] == expected


def test_two_runs_of_a_model_that_differ_in_protocol_are_a_pair(
    make_run: MakeRun, registry: Registry
) -> None:
    [task] = compare(_protocols(make_run, ["prompted"], ["frozen"], model="hf:e5"), registry.metrics).tasks
    assert (task.systems[0], task.scores[0].differences[0]) == ("e5 (prompted)", None)
    assert not any("protocols" in note for note in task.notes)


def test_conditions_of_the_items_are_compared_apart(make_run: MakeRun, registry: Registry) -> None:
    variants = [("xnli", "de", labelled("aabbcc", GOLD), {"view": {"variant": name}}) for name in ("o", "t")]
    runs = [make_run(name, variants) for name in "xy"]
    compared = compare(runs, registry.metrics).tasks
    assert [(task.title, len(task.systems)) for task in compared] == [
        ("xnli (variant=o)", 2),
        ("xnli (variant=t)", 2),
    ]


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


def _error(runs: list[Run], registry: Registry, **given: Any) -> str:
    with pytest.raises(HarnessError) as caught:
        compare(runs, registry.metrics, **given)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_bad_input_ends_in_one_sentence(make_run: MakeRun, registry: Registry) -> None:
    first = make_run("x", [("xnli", "de", labelled("aabbcc", GOLD), {})])
    second = make_run("y", [("pawsx", "de", labelled("aabbcc", GOLD), {})], specs={"pawsx": LABELS})
    other = make_run("z", [("xnli", "de", [item("9", "a", "a")], {})])
    kinds = make_run("k", [("xnli", "de", [item("0", ["X"], ["X"])], {})], specs={"xnli": TAGS})
    twice = make_run("t", [("xnli", "de", labelled("a", "a"), {})] * 2)
    assert _error([first, second], registry) == (
        f"UsageError: No task was finished by two systems: '{first.path}' has xnli; '{second.path}' has pawsx."
    )
    assert _error([first], registry).endswith(
        f"No task was finished by two systems: '{first.path}' has xnli."
    )
    message = _error([first, other], registry)
    assert message.startswith("DataError: Nothing can be compared. xnli: ")
    assert re.findall(r"items that (\w) does[^.]*: (\d)\.", message) == [("x", "1"), ("z", "6")]
    assert "different tasks under the name 'xnli': sequence_classification and token" in _error(
        [first, kinds], registry
    )
    message = _error([first, twice], registry)
    assert message.startswith(f"DataError: The run '{twice.path}' ")
    assert "'xnli' in 'de'" in message
    assert _error([first, first], registry).startswith(f"UsageError: The run '{first.path}' is named twice")
    assert "No metric named 'acuracy'. Did you mean 'accuracy'" in _error(
        [first, other], registry, metric="acuracy"
    )
    assert _error([first, other], registry, metric="f1") == (
        "DataError: Nothing can be compared. xnli: the metric 'f1' does not score it."
    )
    assert "No finished task of these runs named 'xnil'" in _error([first, other], registry, tasks=["xnil"])
    assert "No finished language of these runs named 'ed'" in _error(
        [first, other], registry, languages=["ed"]
    )


def test_a_metric_that_cannot_score_a_system_names_it(make_run: MakeRun, registry: Registry) -> None:
    runs = [make_run(name, [("xnli", "de", labelled("a", "a"), {})]) for name in "xy"]
    message = _error(runs, registry, metric="accuracy_byte")
    assert _error(runs, registry, metric="evaluate:x").startswith(
        "UsageError: The metric 'evaluate:x' is a program, which runs only with --allow-code."
    )
    assert message.startswith(
        "HarnessError: x in 'de': The metric 'accuracy_byte' cannot score these predictions: "
    )


@pytest.mark.parametrize("width", [80, 100])
def test_tables_stay_within_the_terminal(make_run: MakeRun, registry: Registry, width: int) -> None:
    runs = [
        make_run(
            f"run{number}",
            [
                ("xnli", code, labelled(text, GOLD), {"tokens": 1_234_567, "seconds": 12_345.6})
                for code in ("de", "sw")
            ],
            model=f"[red]{number}",
        )
        for number, text in enumerate(["aabbcc", "aabbca", "bbbbcc", "cccccc", "aaaaaa", "abcabc", "bcabca"])
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
    runs = [
        make_run(name, [("xnli", "de", labelled(text, GOLD), {})], data="sample")
        for name, text in (("x", "aabbcc"), ("y", "aabbca"))
    ]
    paths = [run.path for run in runs]
    status, out, err = cli("compare", *paths, "--json", "rows.json", "--items", "items.json")
    assert (status, err) == (0, "")
    assert "SAMPLE DATA" in out
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert [(row["language"], row["system"]) for row in rows] == [
        (None, "x"),
        (None, "y"),
        ("de", "x"),
        ("de", "y"),
    ]
    assert rows[1]["same"] == {"x": 5 / 6, "y": 1.0}
    [items] = json.loads(Path("items.json").read_text(encoding="utf-8"))
    assert (items["all_right"], items["none_right"]) == (["0", "1", "2", "3", "4"], [])
    assert items["systems"] == ["x", "y"]
    status, out, err = cli("compare", paths[0], "nowhere")
    assert (status, out) == (2, "")
    assert err == "Error: The run folder 'nowhere' does not exist. Look below 'runs'.\n"
    assert cli("compare", *paths, "--json", "no/where.json")[0] == 2
