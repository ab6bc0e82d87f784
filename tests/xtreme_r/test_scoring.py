from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import DataError, MissingDataError, UsageError
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
