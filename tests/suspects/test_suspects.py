"""Items that look wrong: the verdict, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, kstest

from harness.cli.main import run_command
from harness.errors import DataError, UsageError
from harness.storage.records import ItemRecord
from harness_suspects.answers import read_answers
from harness_suspects.deviation import deviate, expect, weight_masses
from harness_suspects.signs import _wrong_answers, find_signs
from harness_suspects.verdict import Judgement, cluster_q, find_families, join_families, judge
from harness_translation.annotation.items import read_key
from tests.builders import write_item_run
from tests.comparison.conftest import item
from tests.suspects.conftest import CHANCE, MakeRuns, draw_answers

CODES = ("en", "de", "nl", "sw")


def rows_of(arguments: list[str], file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    assert run_command(["suspects", *arguments, "--json", str(file)]) == 0
    head, *rows = json.loads(file.read_text(encoding="utf-8"))
    return head, rows


def test_a_faulty_item_is_the_first_suspect(
    make_runs: MakeRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, faulty = draw_answers(6, languages=4, items=60)
    answers[:, :, 5], answers[:, 2, 5] = 1, 0
    runs = [str(run.path) for run in make_runs((answers, faulty), CODES)]
    page = tmp_path / "page.html"
    head, rows = rows_of([*runs, "--top", "5", "--html", str(page)], tmp_path / "rows.json")
    assert (head["row"], head["prints"], head["languages"], head["items"]) == (
        "task",
        "ranking",
        list(CODES),
        60,
    )
    assert set(head["power"]) >= {"2", "5", "6", "10", "20"}
    assert len(head["families"]) == 6
    first = rows[0]
    assert (first["language"], first["id"], first["basis"]) == ("nl", "i5", "answers")
    assert (first["right"], first["independent_right"], first["asked"], first["elsewhere"]) == (0, 0, 6, 1.0)
    assert first["established"] is False
    assert list(first["texts"]) == ["en", "nl", "de"]  # the source, its own language, one of its branch
    assert set(first["answers"].values()) == {"c"}
    assert first["gold"] == "b"
    shown = capsys.readouterr().out
    assert "Ranking, not a test" in shown
    assert "nl words number 5" in shown
    assert "nl words number 5" in page.read_text(encoding="utf-8")


def test_texts_are_escaped_in_the_page(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> four words here"
    cells = []
    for code in CODES:
        records = [
            text_item(str(number), f"{hostile} {number}", "b" if code == "sw" else "a") for number in range(9)
        ]
        cells.append(({"task": "t", "language": code, "view": {}}, records))
    summary = {"labels": ["a", "b"], "headline": ["accuracy"], "parallel": True, "source": "en", "axes": []}
    run = write_item_run(tmp_path / "run", cells, {"model": "m:<b>", "tasks": {"t": summary}})
    page = tmp_path / "page.html"
    assert run_command(["suspects", str(run.path), "--html", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert(1)" not in html


def test_sheets_hold_suspects_among_others_and_their_report_is_unbiased(
    make_runs: MakeRuns, tmp_path: Path
) -> None:
    answers, faulty = draw_answers(5, languages=4, items=40)
    answers[:, :, 5], answers[:, 2, 5] = 1, 0
    runs = [str(run.path) for run in make_runs((answers, faulty), CODES)]
    sheets = tmp_path / "sheets"
    _, rows = rows_of(
        [*runs, "--top", "4", "--controls", "2", "--output", str(sheets)], tmp_path / "rows.json"
    )
    key = read_key(sheets)
    for sheet in key.sheets:
        listed = {row["id"] for row in rows if row["language"] == sheet.language}
        by_stratum = {
            name: [row for row in sheet.rows if row.stratum == name] for name in ("suspect", "other")
        }
        assert {row.id for row in by_stratum["suspect"]} == listed
        assert len(by_stratum["other"]) == min(2 * len(listed), 40 - len(listed))
        assert sum(row.weight for row in sheet.rows) == pytest.approx(40)
    assert {sheet.language for sheet in key.sheets} == {row["language"] for row in rows}
    files = sorted((sheets / "sheets").glob("*/*.csv"))
    for file in files:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
        header = next(number for number, line in enumerate(lines) if line.startswith("row,"))
        filled = [line.replace(",,", ",a,", 1) for line in lines[header + 1 :]]
        file.write_text("\n".join([*lines[: header + 1], *filled]) + "\n", encoding="utf-8")
    assert run_command(["annotate", "import", str(sheets), *map(str, files)]) == 0
    report = tmp_path / "report.json"
    assert run_command(["annotate", "report", str(sheets), "--json", str(report)]) == 0
    agreement = [row for row in json.loads(report.read_text(encoding="utf-8")) if row["row"] == "agreement"]
    assert all(0 <= row["agreement"] <= 1 for row in agreement)
    assert run_command(["suspects", *runs, "--output", str(sheets)]) == 2  # labels could be lost


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"task": "topics", "language": "nl"}', "id"),
        ('{"task": "topics", "language": "nl", "id": "i0", "weight": 0}', "weight"),
        ('{"task": "topics", "language": "nl", "id": "i99"}', "i99"),
        ('{"task": "topics", "language": "fr", "id": "i0"}', "topics:fr"),
        ("", "empty"),
    ],
)
def test_faulty_lists_of_items_are_errors(
    line: str, words: str, make_runs: MakeRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [run] = make_runs(draw_answers(1, languages=4, items=10), CODES)
    (tmp_path / "items.jsonl").write_text(line + "\n", encoding="utf-8")
    options = [
        "--run",
        str(run.path),
        "--items",
        str(tmp_path / "items.jsonl"),
        "--output",
        str(tmp_path / "out"),
    ]
    assert run_command(["annotate", "export", *options]) == 2
    assert words in capsys.readouterr().err


def test_items_of_a_cluster_are_one_card_apart(make_runs: MakeRuns, tmp_path: Path) -> None:
    answers, faulty = draw_answers(6, languages=4, items=60)
    answers[:, :, 6:8], answers[:, 2, 6:8] = 1, 0
    runs = [str(run.path) for run in make_runs((answers, faulty), CODES, cluster=2)]
    _, rows = rows_of([*runs, "--top", "3"], tmp_path / "rows.json")
    mates = {row["id"]: row["cluster_mates"] for row in rows if row["language"] == "nl"}
    assert mates["i6"] == ["i7"]
    assert mates["i7"] == ["i6"]


def test_what_cannot_be_said_is_an_error(make_runs: MakeRuns) -> None:
    apart = make_runs(draw_answers(2, languages=4, items=10), CODES, parallel=False)
    with pytest.raises(UsageError, match="mean something else in every language"):
        read_answers(apart, task=None)


def test_too_few_languages_are_an_error(make_runs: MakeRuns) -> None:
    runs = make_runs(draw_answers(2, languages=4, items=10), CODES)
    with pytest.raises(UsageError, match="at least 3"):
        read_answers(runs, task="topics", languages=["en", "de"])


def text_item(identifier: str, text: str, answer: str = "a", **given: Any) -> ItemRecord:
    inputs = json.dumps({"id": identifier, "inputs": {"text": text}})
    return item(identifier, answer, "a", scores={"accuracy": float(answer == "a")}, inputs=inputs, **given)


def test_signs_of_texts_are_found_without_answers(tmp_path: Path) -> None:
    english = [f"the number {number * 1111} is in this English text" for number in range(1, 30)]
    texts = {
        "en": english,
        "de": [text.replace("is in this English", "steht in diesem deutschen") for text in english],
        "ru": [f"число {number * 1111} стоит в этом русском тексте" for number in range(1, 30)],
        "sw": [f"namba {number * 1111} iko kwenye maandishi haya ya hapa" for number in range(1, 30)],
    }
    texts["de"][3] = english[3]
    texts["ru"][5] = "chislo 6666 stoit v etom russkom tekste"
    texts["sw"][7] = texts["sw"][8]
    texts["sw"][9] = texts["sw"][9] * 20
    cells = []
    for code, lines in texts.items():
        records = [text_item(str(number), text) for number, text in enumerate(lines)]
        cells.append(({"task": "t", "language": code, "view": {}}, records))
    summary = {"labels": ["a", "b"], "headline": ["accuracy"], "parallel": True, "source": "en", "axes": []}
    runs = [write_item_run(tmp_path / "run", cells, {"model": "m:a", "tasks": {"t": summary}})]
    answers = read_answers(runs, task=None)
    signs = {
        (answers.languages[language], answers.ids[number], sign.name)
        for (language, number), listed in find_signs(answers, ((0,),)).items()
        for sign in listed
    }
    assert signs == {
        ("de", "3", "not translated"),
        ("ru", "5", "other script"),
        ("sw", "7", "text of another item"),
        ("sw", "8", "text of another item"),
        ("sw", "7", "number"),
        ("sw", "9", "length"),
    }


def test_answers_that_do_not_fit_are_left_out_and_counted(tmp_path: Path) -> None:
    def cells(change: str) -> list[Any]:
        made = []
        for code in CODES:
            records = [text_item(str(number), f"text {number}") for number in range(4)]
            if code == "de":
                records[0] = text_item("0", "text 0", inputs_digest=change)
                records[1] = text_item("1", "text 1", unparsed=True)
                records[2] = text_item("2", "text 2", " " if change == "one" else "a")
            made.append(({"task": "t", "language": code, "view": {}}, records))
        return made

    summary = {"labels": ["a", "b"], "headline": ["accuracy"], "parallel": True, "source": "en", "axes": []}
    manifest = {"tasks": {"t": summary}}
    runs = [
        write_item_run(tmp_path / name, cells(name), {"model": f"m:{name}", **manifest})
        for name in ("one", "two")
    ]
    answers = read_answers(runs, task=None)
    language, item_number = answers.languages.index("de"), answers.ids.index("0")
    assert np.isnan(answers.right[1, language, item_number])
    assert np.isnan(answers.right[:, language, answers.ids.index("1")]).all()
    assert any("1 answer that were given to other inputs" in note for note in answers.notes)
    assert any("3 answers that are empty, could not be read" in note for note in answers.notes)


def test_a_task_without_scores_by_item_is_an_error(tmp_path: Path) -> None:
    cells = [
        (
            {"task": "t", "language": code, "view": {}},
            [item("0", {"ranking": ["x"]}, ["x"], inputs=json.dumps({"id": "0", "text": "x"}))],
        )
        for code in CODES
    ]
    summary = {"headline": ["bleu"], "parallel": True, "source": "en", "axes": []}
    run = write_item_run(tmp_path / "run", cells, {"model": "m:a", "tasks": {"t": summary}})
    with pytest.raises(DataError, match="no score by item"):
        read_answers([run], task=None)


RATE = 0.05
"""The share of false discoveries that the command promises."""


def judged(systems: int, faults: float, seed: int) -> tuple[Judgement, npt.NDArray[np.bool_]]:
    answers, faulty = draw_answers(systems, faults=faults, seed=seed)
    return judge(answers, CHANCE, range(answers.shape[2])), faulty


def test_weights_of_right_answers_have_the_binomial_distribution() -> None:
    masses = weight_masses(np.full((5, 1), 0.3), np.ones(5, dtype=np.int64))
    assert masses[:, 0] == pytest.approx(binom.pmf(range(6), 5, 0.3))
    heavy = weight_masses(np.array([[0.5], [0.25]]), np.array([2, 1]))
    assert heavy[:, 0] == pytest.approx([0.375, 0.125, 0.375, 0.125])


def test_p_values_without_faults_are_uniform() -> None:
    rng = np.random.default_rng(1)
    drawn = []
    for seed in range(3):
        answers, _ = draw_answers(10, seed=seed)
        deviation = deviate(answers, expect(answers), CHANCE)
        width = deviation.p - deviation.p_below
        drawn.append(deviation.p_below + rng.random(width.shape) * width)
    p = np.concatenate(drawn).ravel()
    assert kstest(p, "uniform").statistic < 0.04
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(p <= 0.001) < 0.004


def test_expectations_leave_out_the_language_itself() -> None:
    answers, _ = draw_answers(4, languages=5, items=60)
    wrong, right = answers.copy(), answers.copy()
    wrong[:, 2, 7], right[:, 2, 7] = 0, 1
    first, second = expect(wrong), expect(right)
    own = np.abs(second.logits[:, 2, 7] - first.logits[:, 2, 7]).max()
    others = np.abs(second.logits[:, 3, 7] - first.logits[:, 3, 7]).max()
    assert own < others / 3


@pytest.mark.thorough
def test_false_discoveries_are_few_and_recall_rises_with_systems() -> None:
    established = {size: 0 for size in (2, 5, 10, 25)}
    true = dict(established)
    queue: dict[int, list[float]] = {size: [] for size in established}
    for size in established:
        for seed in range(4):
            judgement, faulty = judged(size, 0.03, seed)
            listed = np.nan_to_num(judgement.q, nan=1.0) <= RATE
            established[size] += int(listed.sum())
            true[size] += int((listed & faulty).sum())
            count = int(faulty.sum())
            first = np.argsort(-judgement.deviation.posterior.ravel())[:count]
            queue[size].append(float(faulty.ravel()[first].mean()))
    recall = [float(np.mean(queue[size])) for size in established]
    assert recall == sorted(recall)
    assert recall[0] > 3 * 0.03
    assert recall[-1] > 0.6
    assert established[25] > 30
    assert true[25] >= 0.9 * established[25]


@pytest.mark.thorough
def test_nothing_is_established_without_faults() -> None:
    counts = [int((np.nan_to_num(judged(20, 0.0, seed)[0].q, nan=1.0) <= RATE).sum()) for seed in range(10)]
    assert sum(count > 0 for count in counts) <= 2


@pytest.mark.thorough
def test_few_systems_are_ranked_and_many_are_tested() -> None:
    few, _ = judged(2, 0.03, 5)
    many, _ = judged(30, 0.03, 5)
    assert not few.tested
    assert not few.established.any()
    assert many.tested
    assert many.established.any()
    assert np.array_equal(many.established, np.nan_to_num(many.q, nan=1.0) <= RATE)
    assert few.power[2] < many.power[30]
    assert few.calibration.correlation is not None
    assert few.calibration.correlation > 0.05 > abs(many.calibration.permuted_correlation or 1)


def test_chances_of_a_fault_are_calibrated_with_many_systems() -> None:
    judgement, faulty = judged(20, 0.03, 3)
    likely = judgement.deviation.posterior > 0.5
    assert likely.sum() > 10
    assert faulty[likely].mean() == pytest.approx(judgement.deviation.posterior[likely].mean(), abs=0.2)
    assert judgement.deviation.deviation_sd == pytest.approx(0.7, abs=0.25)


def test_systems_that_are_wrong_alike_count_once() -> None:
    alike, _ = draw_answers(6, seed=2, alike=True)
    apart, _ = draw_answers(6, seed=2)
    both = np.concatenate([alike, apart[1:]])
    families = find_families(both)
    assert (0, 1, 2, 3, 4, 5) in families
    assert len(families) == 6
    assert len(judge(both, CHANCE, range(both.shape[2])).families) == 6


def test_a_family_answers_as_most_of_it_do() -> None:
    answers = np.array([[[1.0, 0.0, np.nan]], [[1.0, 0.0, np.nan]], [[0.0, np.nan, np.nan]]])
    [joined] = join_families(answers, [(0, 1, 2)])
    assert joined[0][:2].tolist() == [1.0, 0.0]
    assert np.isnan(joined[0][2])


def test_a_cluster_is_one_test() -> None:
    p = np.array([[0.001, 0.002, 0.6, 0.9], [0.5, 0.7, np.nan, np.nan]])
    q = cluster_q(p, [0, 0, 1, 1])
    assert q[0, 0] == pytest.approx(3 * 0.002)
    assert q[0, 1] == q[0, 0]
    assert q[0, 3] == pytest.approx(0.9)
    assert np.isnan(q[1, 2:]).all()
    alone = cluster_q(p, [0, 1, 2, 3])
    assert alone[0, 0] == pytest.approx(6 * 0.001)


def test_one_system_and_missing_answers_are_ranked() -> None:
    answers, faulty = draw_answers(3, faults=0.05)
    answers[:, 1, 4] = np.nan
    answers[1, :, 9] = np.nan
    answers[2] = np.nan  # of a system none could be read
    judgement = judge(answers, CHANCE, range(answers.shape[2]))
    assert np.isnan(judgement.deviation.p[1, 4])
    assert judgement.deviation.posterior[1, 4] == 0
    alone = judge(answers[:1], CHANCE, range(answers.shape[2]))
    assert not alone.tested
    assert alone.calibration.correlation is None
    first = np.argsort(-alone.deviation.posterior.ravel())[:40]
    assert faulty.ravel()[first].mean() > 2 * faulty.mean()


def test_versions_of_one_model_are_one_witness() -> None:
    said = {(system, 0, 0): "b" for system in range(3)}
    answers: Any = SimpleNamespace(right=np.zeros((3, 1, 1)), said=said)
    assert _wrong_answers(answers, ((0, 1), (2,))) == {(0, 0): {"b": 2}}
