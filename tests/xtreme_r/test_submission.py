"""Submissions are scored and exchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.data.records import Prediction
from harness.errors import DataError, MissingDataError, UsageError
from harness_xtreme_r.submission.command import app
from harness_xtreme_r.submission.exchange import read_predictions, write_predictions
from harness_xtreme_r.submission.layout import TASKS
from harness_xtreme_r.submission.scoring import score_submission

GOLD = {
    "xnli/test-de.tsv": "neutral\nentailment\ncontradictory\nneutral\n",
    "pawsx/test-de.tsv": "0\n1\n",
    "xcopa/test-et.jsonl": '{"label": 0}\n{"label": 1}\n',
    "udpos/test-de.tsv": "Der\tDET\nHund\tNOUN\nHof\tNOUN\n\nBellt\tVERB\n",
    "panx/test-de.tsv": "B-PER\nI-PER\nO\n",
    "xquad/test-de.json": '{"a": ["der Hund", "Hund"], "b": ["Katze"]}',
    "mlqa/test-de.json": '{"a": "der Hund", "b": "Katze"}',
    "tydiqa/test-fi.json": '{"a": "kissa"}',
    "tatoeba/test-de.tsv": "1\n0\n2\n3\n",
    "mewslix/test-de.json": '{"m": ["Q1"], "n": ["Q2"]}',
}
PREDICTIONS = {
    "xnli/test-de.tsv": "neutral\nneutral\ncontradiction\nneutral\n",
    "pawsx/test-de.tsv": "0\n0\n",
    "xcopa/test-et.jsonl": '{"label": 0}\n{"label": 1}\n',
    "udpos/test-de.tsv": "DET\nNOUN\nADJ\n\nVERB\n",
    "panx/test-de.tsv": "I-PER\nI-PER\nB-LOC\n",
    "xquad/test-de.json": '{"a": "der Hund bellt", "z": "?"}',
    "mlqa/test-de.json": '{"a": "ein Hund", "b": "eine große Katze"}',
    "tydiqa/test-fi.json": '{"a": "Kissa."}',
    "tatoeba/test-de.tsv": "1\n0\n2\n2\n",
    "mewslix/test-de.json": '{"m": ["Q7", "Q8", "Q1"], "k": ["Q9"]}',
}
# By hand. UD-POS: predicted chunks DET, NOUN(1), ADJ, VERB; gold DET, NOUN(1-2), VERB; two are correct.
# XQuAD a: {der, hund, bellt} against {der, hund} gives 4/5, b has no answer. MLQA b: {große, katze} against
# {katze} gives 2/3.
POINTS = {
    "xnli": {"accuracy": 75.0},
    "pawsx": {"accuracy": 50.0},
    "xcopa": {"accuracy": 100.0},
    "udpos": {"f1": 100 * 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3), "precision": 50.0, "recall": 200 / 3},
    "panx": {"f1": 200 / 3, "precision": 50.0, "recall": 100.0},
    "xquad": {"exact_match": 0.0, "f1": 40.0},
    "mlqa": {"exact_match": 50.0, "f1": 100 * (1 + 2 / 3) / 2},
    "tydiqa": {"exact_match": 100.0, "f1": 100.0},
    "tatoeba": {"accuracy": 75.0},
    "mewslix": {"map@20": 100 / 3 / 2},
}


def laid_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_all_ten_tasks(tmp_path: Path) -> None:
    result = score_submission(laid_out(tmp_path / "p", PREDICTIONS), laid_out(tmp_path / "g", GOLD))
    rows = result.as_json()
    assert list(rows) == list(TASKS) == list(POINTS)
    for name, points in POINTS.items():
        (language,) = rows[name]["languages"]
        assert rows[name] == {"languages": {language: pytest.approx(points)}, "mean": pytest.approx(points)}
        assert list(rows[name]["mean"]) == list(points)
    assert json.loads(json.dumps(rows)) == rows
    assert result.warnings == (
        "xquad de: 1 of 2 items have no prediction and count 0, such as 'b'.",
        "xquad de: 1 of the predicted ids are not in the gold, such as 'z'.",
        "mewslix de: 1 of 2 items have no prediction and count 0, such as 'n'.",
        "mewslix de: 1 of the predicted ids are not in the gold, such as 'k'.",
    )


def test_gold_as_predictions_scores_100(tmp_path: Path) -> None:
    gold = laid_out(tmp_path / "g", GOLD)
    for name, task in TASKS.items():
        (path,) = (gold / name).iterdir()
        content = task.format.read_gold(path)
        if name in ("xquad", "mlqa", "tydiqa"):
            content = {item.id: item.references[0] for item in content}
        elif name == "mewslix":
            content = {item.id: item.references for item in content}
        task.format.write(tmp_path / "p" / name / path.name, content)
    result = score_submission(tmp_path / "p", gold)
    assert result.warnings == ()
    for score in result.tasks.values():
        assert set(score.mean.values()) == {100.0}


def test_the_mean_is_over_languages_not_items(tmp_path: Path) -> None:
    gold = {"xnli/test-de.tsv": "neutral\n", "xnli/test-sw.tsv": "neutral\nneutral\nneutral\n"}
    predictions = {
        "xnli/test-de.tsv": "neutral\n",
        "xnli/test-sw.tsv": "entailment\nentailment\nentailment\n",
    }
    result = score_submission(laid_out(tmp_path / "p", predictions), laid_out(tmp_path / "g", gold))
    assert result.tasks["xnli"].mean == {"accuracy": 50.0}
    assert [score.items for score in result.tasks["xnli"].languages.values()] == [1, 3]


def test_missing_languages_are_reported(tmp_path: Path) -> None:
    gold = {f"pawsx/test-{code}.tsv": "0\n1\n" for code in ("de", "en", "fr")} | {
        "xcopa/test-et.jsonl": '{"label": 0}'
    }
    predictions = {
        "pawsx/test-en.tsv": "0\n0\n",
        "pawsx/test-ja.tsv": "0\n0\n",
        "pawsx/test-de.txt": "0\n1\n",
        "lareqa/test-de.json": "{}",
        "tatoba/test-de.tsv": "0\n",
    }
    root = laid_out(tmp_path / "p", predictions)
    result = score_submission(root, laid_out(tmp_path / "g", gold))
    score = result.tasks["pawsx"]
    assert (score.missing, score.without_gold) == (("de", "fr"), ("ja",))
    assert result.as_json() == {
        "pawsx": {
            "languages": {"en": {"accuracy": 50.0}},
            "mean": {"accuracy": 50.0},
            "missing": ["de", "fr"],
        }
    }
    assert result.warnings == (
        f"{root / 'lareqa'} was not scored: no task of that name has a public file format.",
        f"{root / 'tatoba'} was not scored: no task of that name has a public file format. "
        "Did you mean 'tatoeba'?",
        f"{root / 'pawsx' / 'test-de.txt'} was not read: expected the name test-LANG.tsv.",
        "pawsx: no predictions for de, fr; the mean is over 1 of 3 languages.",
        "pawsx: no gold for ja; these predictions were not scored.",
        "xcopa: no predictions; the gold has et.",
    )


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    gold = {"xnli/test-de.tsv": "neutral\n", "pawsx/test-de.tsv": "0\n1\n", "tatoeba/test-de.tsv": "0\n"}
    predictions = gold | {"xnli/test-de.tsv": "neutrall\n", "pawsx/test-de.tsv": "0\n"}
    paths = laid_out(tmp_path / "p", predictions), laid_out(tmp_path / "g", gold)
    with pytest.raises(
        DataError, match=r"2 files .*\n .*test-de.tsv:1: .*neutrall.*\n .*test-de.tsv:1: expected 2 lines"
    ):
        score_submission(*paths)
    (tmp_path / "p/xnli/test-de.tsv").write_text("neutral\n")
    with pytest.raises(DataError, match=r"^\S+pawsx/test-de.tsv:1: expected 2 lines"):
        score_submission(*paths)


def test_mlqa_rejects_a_language_without_rules(tmp_path: Path) -> None:
    files = {"mlqa/test-sw.json": '{"a": "paka"}'}
    with pytest.raises(DataError, match=r"test-sw.json: MLQA has no answer rules for the language 'sw'"):
        score_submission(laid_out(tmp_path / "p", files), laid_out(tmp_path / "g", files))


def test_rejects_folders_without_anything_to_score(tmp_path: Path) -> None:
    gold = laid_out(tmp_path / "g", GOLD)
    with pytest.raises(UsageError, match=r"No folder '.*absent'; expected one with a folder for each task"):
        score_submission(tmp_path / "absent", gold)
    with pytest.raises(MissingDataError, match=r"No task has a file TASK/test-LANG.EXT"):
        score_submission(gold / "xnli", gold)


IDS = ["7", "8", "9"]
ENGLISH = ["c", "a", "b"]
OUTPUTS: dict[str, list[Any]] = {
    "xnli": [{"label": label} for label in ("neutral", "entailment", "contradiction")],
    "pawsx": [{"label": label} for label in ("0", "1", "1")],
    "xcopa": [{"label": label} for label in ("choice1", "choice2", "choice2")],
    "udpos": [["DET", "NOUN"], ["VERB"], ["X"]],
    "panx": [["B-PER"], ["O", "I-LOC"], ["O"]],
    "xquad": [{"text": "cat"}, {"text": ""}, {"text": "獅子"}],
    "mlqa": [{"text": "cat"}, {"text": ""}, {"text": "獅子"}],
    "tydiqa": [{"text": "cat"}, {"text": ""}, {"text": "獅子"}],
    "tatoeba": [{"candidate": "8"}, {"candidate": "8"}, {"candidate": "7"}],
    "mewslix": [{"candidates": ids, "further": []} for ids in (["Q1", "Q2"], [], ["Q3"])],
}


def predictions(name: str, outputs: list[Any] | None = None) -> list[Prediction]:
    return [Prediction(id=key, output=out) for key, out in zip(IDS, outputs or OUTPUTS[name], strict=True)]


@pytest.mark.parametrize("name", TASKS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    english = ENGLISH if name == "tatoeba" else None
    path = write_predictions(TASKS[name], tmp_path, "fi", predictions(name), english=english)
    assert path.parent == tmp_path / name
    assert read_predictions(TASKS[name], path, IDS, english=english) == predictions(name)


def test_tatoeba_is_written_in_the_order_of_the_sorted_english_lines(tmp_path: Path) -> None:
    path = write_predictions(TASKS["tatoeba"], tmp_path, "fi", predictions("tatoeba"), english=ENGLISH)
    assert path.read_text(encoding="utf-8") == "1\n0\n1\n"  # the candidates of "a", "b", "c"


def test_scores_and_offsets_are_not_exported(tmp_path: Path) -> None:
    outputs = [{"text": "cat", "start": 3, "end": 6, "score": 0.5}] * 3
    path = write_predictions(TASKS["xquad"], tmp_path, "fi", predictions("xquad", outputs))
    assert [p.output for p in read_predictions(TASKS["xquad"], path, IDS)] == [{"text": "cat"}] * 3


@pytest.mark.parametrize(
    ("name", "empty"), [("xquad", {"text": None}), ("mewslix", {"candidates": [], "further": []})]
)
def test_an_absent_id_is_an_unparsed_prediction(name: str, empty: dict[str, Any], tmp_path: Path) -> None:
    path = write_predictions(TASKS[name], tmp_path, "fi", predictions(name)[:2])
    assert read_predictions(TASKS[name], path, IDS)[2] == Prediction(id="9", output=empty, unparsed=True)


def test_the_choices_of_xcopa_are_numbered_from_0(tmp_path: Path) -> None:
    outputs = [{"label": "choice2", "scores": [0.1, 0.9]}, {"label": "choice1"}, {"label": "choice2"}]
    path = write_predictions(TASKS["xcopa"], tmp_path, "et", predictions("xcopa", outputs))
    assert path.read_text(encoding="utf-8") == '{"label": 1}\n{"label": 0}\n{"label": 1}\n'


@pytest.mark.parametrize("label", ["choice3", 1])
def test_an_answer_that_is_no_choice_is_rejected(label: Any, tmp_path: Path) -> None:
    outputs = [*OUTPUTS["xcopa"][:2], {"label": label}]
    message = rf"xcopa: item '9': expected the answer 'choice1' or 'choice2', found {label!r}"
    with pytest.raises(DataError, match=message):
        write_predictions(TASKS["xcopa"], tmp_path, "et", predictions("xcopa", outputs))


def test_of_a_ranking_the_candidates_are_written_and_not_those_after_them(tmp_path: Path) -> None:
    ranked = [f"Q{number}" for number in range(25)]
    outputs = [{"candidates": ranked[:20], "further": ranked[20:]}] * 3
    path = write_predictions(TASKS["mewslix"], tmp_path, "ta", predictions("mewslix", outputs))
    found = read_predictions(TASKS["mewslix"], path, IDS)
    assert [p.output for p in found] == [{"candidates": ranked[:20], "further": []}] * 3


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([f"Q{number}" for number in range(21)], "expected at most 20 entity ids, found 21"),
        (["Q1", "Q2", "Q1"], "expected every entity id once, found 'Q1' 2 times"),
    ],
)
def test_a_faulty_ranking_is_neither_written_nor_read(ids: list[str], message: str, tmp_path: Path) -> None:
    outputs = [*OUTPUTS["mewslix"][:2], {"candidates": ids, "further": []}]
    with pytest.raises(DataError, match=rf"test-ta.json: id '9': {message}"):
        write_predictions(TASKS["mewslix"], tmp_path, "ta", predictions("mewslix", outputs))
    path = TASKS["mewslix"].path(tmp_path, "ta")
    assert not path.exists()
    path.parent.mkdir()
    path.write_text(json.dumps({"7": ["Q1"], "9": ids}), encoding="utf-8")
    with pytest.raises(DataError, match=rf"test-ta.json: id '9': {message}"):
        read_predictions(TASKS["mewslix"], path, IDS)


def test_a_question_without_an_answer_is_skipped(tmp_path: Path) -> None:
    outputs: list[Any] = [{"text": None}, {"text": "x"}, {"text": "y"}]
    path = write_predictions(TASKS["xquad"], tmp_path, "fi", predictions("xquad", outputs))
    assert [p.unparsed for p in read_predictions(TASKS["xquad"], path, IDS)] == [True, False, False]


@pytest.mark.parametrize(("name", "key"), [("xnli", "label"), ("xcopa", "label"), ("tatoeba", "candidate")])
def test_a_missing_line_is_rejected(name: str, key: str, tmp_path: Path) -> None:
    outputs = [*OUTPUTS[name][:2], {key: None}]
    with pytest.raises(DataError, match=r"item '9' has no answer, and its file has a line for every item"):
        write_predictions(TASKS[name], tmp_path, "fi", predictions(name, outputs), english=ENGLISH)


def test_rejects_other_counts_and_names_the_file(tmp_path: Path) -> None:
    path = write_predictions(TASKS["xnli"], tmp_path, "fi", predictions("xnli"))
    with pytest.raises(DataError, match=r"test-fi.tsv: xnli: expected 2 items, found 3"):
        read_predictions(TASKS["xnli"], path, IDS[:2])


def test_tatoeba_needs_the_english_sentences(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'tatoeba' are ordered by the English sentences"):
        write_predictions(TASKS["tatoeba"], tmp_path, "fi", predictions("tatoeba"))


LANGUAGES = (
    "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl tr ur".split()
)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for side in ("p", "g"):
        for language in LANGUAGES:
            path = tmp_path / side / "udpos" / f"test-{language}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("DET\nNOUN\n\nVERB\n" if side == "g" else "DET\nADJ\n\nVERB\n")
    return tmp_path / "p", tmp_path / "g"


def invoke(*arguments: object, columns: int = 80) -> Result:
    runner = CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    return runner.invoke(app, ["score", *map(str, arguments)])


def test_prints_a_table_of_80_columns_and_writes_json(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (folders[0] / "udpos" / "test-ur.tsv").unlink()
    output = tmp_path / "scores.json"
    result = invoke("--predictions", folders[0], "--gold", folders[1], "--json", output)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [word for word in result.stdout.split() if word in LANGUAGES] == LANGUAGES[:-1]
    assert any("udpos" in line and "f1" in line and "66.7" in line and "29*" in line for line in lines)
    assert any("precision" in line for line in lines)
    assert "missing from the mean" in result.stdout
    assert "warning: udpos: no predictions for ur; the mean is over 29 of 30 languages." in result.stderr
    rows = json.loads(output.read_text())
    assert rows["udpos"]["languages"]["de"] == pytest.approx(
        {"f1": 200 / 3, "precision": 200 / 3, "recall": 200 / 3}
    )
    assert rows["udpos"]["missing"] == ["ur"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_score_is_cut_off(folders: tuple[Path, Path], columns: int) -> None:
    result = invoke("--predictions", folders[0], "--gold", folders[1], columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert result.stdout.count("66.7") == len(LANGUAGES) + 3
    assert "…" not in result.stdout


def test_errors_reach_the_caller(folders: tuple[Path, Path], tmp_path: Path) -> None:
    absent = invoke("--predictions", tmp_path / "absent", "--gold", folders[1])
    assert isinstance(absent.exception, UsageError)
    unwritable = invoke("--predictions", folders[0], "--gold", folders[1], "--json", tmp_path / "no/x")
    assert isinstance(unwritable.exception, UsageError)
    assert "its folder is not there" in str(unwritable.exception)
    (folders[0] / "udpos" / "test-af.tsv").write_text("DET\n")
    malformed = invoke("--predictions", folders[0], "--gold", folders[1])
    assert isinstance(malformed.exception, DataError)
    assert malformed.exception.exit_code == 1
