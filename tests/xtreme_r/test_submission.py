"""Submissions are scored and exchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner, Result

from harness.data.records import Prediction
from harness.errors import DataError, MissingDataError, UsageError
from harness_xtreme_r.submission.command import app
from harness_xtreme_r.submission.exchange import (
    from_sorted_english_indices,
    read_predictions,
    sorted_english_order,
    to_sorted_english_indices,
    write_predictions,
)
from harness_xtreme_r.submission.formats import TASKS
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
    gold = {"xnli/test-de.tsv": "neutral\n", "xnli/test-sw.tsv": "neutral\n" * 3}
    predictions = {"xnli/test-de.tsv": "neutral\n", "xnli/test-sw.tsv": "entailment\n" * 3}
    result = score_submission(laid_out(tmp_path / "p", predictions), laid_out(tmp_path / "g", gold))
    assert result.tasks["xnli"].mean == {"accuracy": 50.0}
    assert [score.items for score in result.tasks["xnli"].languages.values()] == [1, 3]


def test_missing_languages_are_reported(tmp_path: Path) -> None:
    gold = {f"pawsx/test-{code}.tsv": "0\n1\n" for code in ("de", "en", "fr")}
    predictions = {
        "pawsx/test-en.tsv": "0\n0\n",
        "pawsx/test-ja.tsv": "0\n0\n",
        "pawsx/test-de.txt": "0\n1\n",
        "lareqa/test-de.json": "{}",
        "tatoba/test-de.tsv": "0\n",
    }
    root = laid_out(tmp_path / "p", predictions)
    result = score_submission(root, laid_out(tmp_path / "g", gold | {"xcopa/test-et.jsonl": '{"label": 0}'}))
    score = result.tasks["pawsx"]
    assert (score.missing, score.without_gold) == (("de", "fr"), ("ja",))
    points = {"accuracy": 50.0}
    assert result.as_json() == {
        "pawsx": {"languages": {"en": points}, "mean": points, "missing": ["de", "fr"]}
    }
    named = ("lareqa", "'tatoeba'", "test-de.txt", "1 of 3 languages", "ja", "xcopa")
    assert len(result.warnings) == len(named)
    assert all(name in warning for name, warning in zip(named, result.warnings, strict=True))


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


def test_rejects_folders_without_anything_to_score(tmp_path: Path) -> None:
    gold = laid_out(tmp_path / "g", GOLD)
    with pytest.raises(UsageError, match="absent"):
        score_submission(tmp_path / "absent", gold)
    with pytest.raises(MissingDataError):
        score_submission(gold / "xnli", gold)
    other = laid_out(tmp_path / "sw", {"mlqa/test-sw.json": '{"a": "paka"}'})
    with pytest.raises(DataError, match=r"test-sw.json: .*MLQA.*'sw'"):
        score_submission(other, other)


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


@pytest.mark.parametrize(
    ("name", "empty"), [("xquad", {"text": None}), ("mewslix", {"candidates": [], "further": []})]
)
def test_an_absent_id_is_an_unparsed_prediction(name: str, empty: dict[str, Any], tmp_path: Path) -> None:
    path = write_predictions(TASKS[name], tmp_path, "fi", predictions(name)[:2])
    assert read_predictions(TASKS[name], path, IDS)[2] == Prediction(id="9", output=empty, unparsed=True)


RANKED = [f"Q{number}" for number in range(25)]


@pytest.mark.parametrize(
    ("name", "outputs", "written"),
    [
        ("xcopa", [{"label": "choice2", "scores": [0.1, 0.9]}, {"label": "choice1"}, {"label": "choice2"}],
         '{"label": 1}\n{"label": 0}\n{"label": 1}\n'),
        # The candidates of "a", "b" and "c", the sorted English sentences.
        ("tatoeba", OUTPUTS["tatoeba"], "1\n0\n1\n"),
        ("xquad", [{"text": "cat", "start": 3, "end": 6, "score": 0.5}, {"text": "x"}, {"text": None}],
         {"7": "cat", "8": "x"}),
        ("mewslix", [{"candidates": RANKED[:20], "further": RANKED[20:]}] * 3, dict.fromkeys(IDS, RANKED[:20])),
    ],
)  # fmt: skip
def test_a_file_has_what_the_format_knows(
    name: str, outputs: list[Any], written: str | dict[str, Any], tmp_path: Path
) -> None:
    path = write_predictions(TASKS[name], tmp_path, "fi", predictions(name, outputs), english=ENGLISH)
    text = path.read_text(encoding="utf-8")
    assert (text if isinstance(written, str) else json.loads(text)) == written


@pytest.mark.parametrize(
    ("ids", "message"), [(RANKED[:21], "20 .* found 21"), (["Q1", "Q2", "Q1"], "'Q1' 2 times")]
)
def test_a_faulty_ranking_is_neither_written_nor_read(ids: list[str], message: str, tmp_path: Path) -> None:
    outputs = [*OUTPUTS["mewslix"][:2], {"candidates": ids, "further": []}]
    path = TASKS["mewslix"].path(tmp_path, "ta")
    with pytest.raises(DataError, match=rf"test-ta.json: id '9': .*{message}"):
        write_predictions(TASKS["mewslix"], tmp_path, "ta", predictions("mewslix", outputs))
    assert not path.exists()
    path.parent.mkdir()
    path.write_text(json.dumps({"7": ["Q1"], "9": ids}), encoding="utf-8")
    with pytest.raises(DataError, match=rf"test-ta.json: id '9': .*{message}"):
        read_predictions(TASKS["mewslix"], path, IDS)


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("xnli", {"label": None}),
        ("xcopa", {"label": None}),
        ("xcopa", {"label": "choice3"}),
        ("xcopa", {"label": 1}),
        ("tatoeba", {"candidate": None}),
    ],
)
def test_an_item_without_an_answer_of_the_format_is_rejected(
    name: str, output: dict[str, Any], tmp_path: Path
) -> None:
    outputs = [*OUTPUTS[name][:2], output]
    with pytest.raises(DataError, match="item '9'"):
        write_predictions(TASKS[name], tmp_path, "fi", predictions(name, outputs), english=ENGLISH)


def test_items_and_english_sentences_must_fit(tmp_path: Path) -> None:
    path = write_predictions(TASKS["xnli"], tmp_path, "fi", predictions("xnli"))
    with pytest.raises(DataError, match=r"test-fi.tsv: xnli: expected 2 items, found 3"):
        read_predictions(TASKS["xnli"], path, IDS[:2])
    with pytest.raises(UsageError, match="'tatoeba'"):
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


def test_prints_a_table_and_writes_json(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (folders[0] / "udpos" / "test-ur.tsv").unlink()
    output = tmp_path / "scores.json"
    result = invoke("--predictions", folders[0], "--gold", folders[1], "--json", output)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [word for word in result.stdout.split() if word in LANGUAGES] == LANGUAGES[:-1]
    assert any("udpos" in line and "f1" in line and "66.7" in line and "29*" in line for line in lines)
    assert any("precision" in line for line in lines)
    assert "missing from the mean" in result.stdout
    assert "no predictions for ur" in result.stderr
    rows = json.loads(output.read_text())
    points = dict.fromkeys(("f1", "precision", "recall"), 200 / 3)
    assert rows["udpos"]["languages"]["de"] == pytest.approx(points)
    assert rows["udpos"]["missing"] == ["ur"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_score_is_cut_off(folders: tuple[Path, Path], columns: int) -> None:
    result = invoke("--predictions", folders[0], "--gold", folders[1], columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert result.stdout.count("66.7") == len(LANGUAGES) + 3
    assert "…" not in result.stdout


def test_errors_reach_the_caller(folders: tuple[Path, Path], tmp_path: Path) -> None:
    unwritable = invoke("--predictions", folders[0], "--gold", folders[1], "--json", tmp_path / "no/x")
    assert isinstance(unwritable.exception, UsageError)
    (folders[0] / "udpos" / "test-af.tsv").write_text("DET\n")
    malformed = invoke("--predictions", folders[0], "--gold", folders[1])
    assert isinstance(malformed.exception, DataError)


SENTENCES = ["Zoos open.\n", " apples fell.", "Birds sing.", "apples are red."]
PAIR_IDS = ["0", "1", "2", "3"]


def test_order_is_that_of_stripped_lines_by_code_point() -> None:
    # The English file becomes: Birds sing. / Zoos open. / apples are red. / apples fell.
    assert sorted_english_order(SENTENCES) == [2, 0, 3, 1]
    assert sorted_english_order(["b", "a", "b ", "a"]) == [1, 3, 0, 2], "equal sentences keep their order"
    assert to_sorted_english_indices(PAIR_IDS, PAIR_IDS, SENTENCES) == [2, 0, 3, 1]
    # The query "Zoos open." found the foreign sentence of "Birds sing."; it is line 1 of the sorted file.
    assert to_sorted_english_indices(["2", "1", "2", "3"], PAIR_IDS, SENTENCES) == [2, 2, 3, 1]


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 99)), min_size=1, max_size=30))
def test_inverse_and_the_same_accuracy(pairs: list[tuple[str, int]]) -> None:
    english = [text for text, _ in pairs]
    ids = [f"pair-{number}" for number in range(len(pairs))]
    candidates = [ids[number % len(ids)] for _, number in pairs]
    indices = to_sorted_english_indices(candidates, ids, english)
    assert from_sorted_english_indices(indices, ids, english) == candidates
    gold = sorted_english_order(english)
    assert sorted(gold) == list(range(len(pairs)))
    hits = sum(candidate == key for candidate, key in zip(candidates, ids, strict=True))
    assert sum(index == line for index, line in zip(indices, gold, strict=True)) == hits


@pytest.mark.parametrize(
    ("candidates", "ids", "english", "message"),
    [
        (["0", "9", "2", "3"], PAIR_IDS, SENTENCES, "Pair '1': .*found '9'"),
        (PAIR_IDS[:3], PAIR_IDS, SENTENCES, "candidate for each of the 4 pairs, found 3"),
        (PAIR_IDS, PAIR_IDS, SENTENCES[:3], "4 English sentences, .*found 3"),
        (PAIR_IDS, ["0"] * 4, SENTENCES, "4 distinct pair ids, found 1"),
    ],
)
def test_rejects_candidates_that_do_not_fit(
    candidates: list[str], ids: list[str], english: list[str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        to_sorted_english_indices(candidates, ids, english)


@pytest.mark.parametrize(
    ("indices", "message"), [([0, 4, 1, 2], "Line 2: .* 0 to 3, found 4"), ([0], "4 lines, .*found 1")]
)
def test_rejects_lines_that_do_not_fit(indices: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_sorted_english_indices(indices, PAIR_IDS, SENTENCES)
