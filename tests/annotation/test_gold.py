"""Corrected gold: faults of files, its place in views and counts, and equal results of eval and score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.rescoring import relabel
from harness.api import evaluate
from harness.data.gold import read_gold
from harness.errors import DataError, SpecError, UsageError
from harness.registry.registry import Registry
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def evaluated(tmp_path: Path) -> Callable[..., Run]:
    numbers = iter(range(100))

    def run(*tasks: str, languages: Sequence[str] = ("hi", "de"), **settings: Any) -> Run:
        given = {"data": "sample", "recipe": "quick", "train_limit": 30, **settings}
        output = tmp_path / f"run-{next(numbers)}"
        return evaluate(
            tasks or ("xnli",), "baseline:char-ngram", languages=languages, output=output, **given
        )

    return run


def write(path: Path, *rows: Mapping[str, str]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(identifier: str, label: str, **fields: str) -> dict[str, str]:
    return {"task": "xnli", "language": "hi", "id": identifier, "label": label, **fields}


def cell_of(run: Run, task: str, language: str) -> CellResult:
    return next(cell for cell in run.cells if (cell.task, cell.language) == (task, language))


def references(run: Run, cell: CellResult) -> dict[str, Any]:
    return {record.id: record.reference for record in run.records(cell)}


def test_a_corrected_gold_makes_another_score_by_eval_and_by_score_alike(
    evaluated: Callable[..., Run], tmp_path: Path, registry: Registry
) -> None:
    selection = {"languages": ("hi", "de", "zh")}
    plain = evaluated("xnli", "xcopa:zh", **selection)
    own = cell_of(plain, "xnli", "hi")
    predictions = {record.id: record.prediction["label"] for record in plain.records(own)}
    inherited = references(plain, own)
    wrong = [identifier for identifier in inherited if predictions[identifier] != inherited[identifier]]
    kept = next(identifier for identifier in inherited if identifier not in wrong)
    # Two items become what the model answered, one keeps its label.
    rows = [row(one, predictions[one]) for one in wrong[:2]] + [row(kept, inherited[kept])]
    path = write(tmp_path / "people.jsonl", *rows)
    before = {file: file.read_bytes() for file in plain.path.rglob("*") if file.is_file()}
    relabel(plain.path, read_gold(path), tmp_path / "relabelled", registry)
    assert {file: file.read_bytes() for file in plain.path.rglob("*") if file.is_file()} == before
    name = read_gold(path).name
    again = evaluated("xnli", "xcopa:zh", **selection, gold=path)
    for run in (again, Run(tmp_path / "relabelled")):
        hindi, german, other = (
            cell_of(run, *where) for where in (("xnli", "hi"), ("xnli", "de"), ("xcopa", "zh"))
        )
        value, count = own.metrics["accuracy"].value, own.n
        assert hindi.metrics["accuracy"].value == pytest.approx(value + 2 / count)
        assert hindi.view == german.view == {"gold": name} and other.view == {}
        assert hindi.gold == {"name": name, "relabelled": 3, "changed": 2, "inherited": count - 3}
        assert german.gold == {"name": name, "relabelled": 0, "changed": 0, "inherited": german.n}
        assert not other.has("gold")
        assert german.metrics == cell_of(plain, "xnli", "de").metrics
        assert references(run, hindi) == {**inherited, **{one: predictions[one] for one in wrong[:2]}}
        assert sum("items: hi 3, de 0, zh 0" in note for note in run.results.notes) == 1
    assert run.manifest.cells == again.manifest.cells, "the same cells by eval and by score"
    with pytest.raises(UsageError, match=r"'people-[0-9a-f]{8}'"):
        relabel(tmp_path / "relabelled", read_gold(path), tmp_path / "third", registry)
    with pytest.raises(UsageError, match="relabelled"):
        relabel(plain.path, read_gold(path), tmp_path / "relabelled", registry)
    assert list(tmp_path.glob(".*")) == []


def test_a_limit_draws_the_same_items_with_a_gold(evaluated: Callable[..., Run], tmp_path: Path) -> None:
    limited, whole = evaluated(limit=6), evaluated()
    ids, every = (list(references(run, cell_of(run, "xnli", "hi"))) for run in (limited, whole))
    left_out = next(one for one in every if one not in ids)
    path = write(tmp_path / "gold.jsonl", row(ids[0], "neutral"), row(left_out, "neutral"))
    run = evaluated(limit=6, gold=str(path))
    cell = cell_of(run, "xnli", "hi")
    assert list(references(run, cell)) == ids
    assert ((cell.gold or {})["relabelled"], (cell.gold or {})["inherited"]) == (1, 5)


def test_a_gold_is_for_test_items(evaluated: Callable[..., Run], tmp_path: Path, registry: Registry) -> None:
    path = write(tmp_path / "gold.jsonl", row("1", "paraphrase", task="pawsx", language="en"))
    with pytest.raises(UsageError, match="dev items"):
        evaluated("pawsx", languages=["en"], split="validation", gold=path)
    dev = evaluated("pawsx", languages=["en"], split="validation")
    with pytest.raises(UsageError, match="dev items"):
        relabel(dev.path, read_gold(path), tmp_path / "new", registry)
    assert not (tmp_path / "new").exists()


def test_labels_of_unknown_items_stop_eval_and_score(
    evaluated: Callable[..., Run], tmp_path: Path, registry: Registry
) -> None:
    path = write(tmp_path / "gold.jsonl", row("unknown", "neutral"))
    with pytest.raises(DataError, match=r"xnli:hi .*'unknown'"):
        evaluated(gold=path)
    plain = evaluated()
    with pytest.raises(DataError, match="xnli:hi"):
        relabel(plain.path, read_gold(path), tmp_path / "new", registry)
    assert not (tmp_path / "new").exists()


UDPOS = {"task": "udpos", "language": "hi", "id": "1", "label": "x"}


@pytest.mark.parametrize(
    ("task", "rows", "names"),
    [
        ("xnli", [row("1", "entailmnt"), row("2", "x")], r"2.*\n.*line 1.*'entailmnt'.*'entailment'"),
        ("xnli", [UDPOS], r"udpos.*xnli"),
        ("udpos", [UDPOS], r"'udpos'.*'token_tagging'"),
    ],
)
def test_unknown_labels_stop_a_run(
    evaluated: Callable[..., Run], tmp_path: Path, task: str, rows: list[dict[str, str]], names: str
) -> None:
    with pytest.raises(UsageError, match=names):
        evaluated(task, gold=write(tmp_path / "gold.jsonl", *rows))


def test_a_gold_file_is_read_with_all_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(
        '{"task": "a"}\n\n{\n[]\n' + 2 * (json.dumps(row("1", "neutral")) + "\n"), encoding="utf-8"
    )
    with pytest.raises(SpecError) as error:
        read_gold(path)
    problems = error.value.problems
    assert [problem.line for problem in problems] == [1, 3, 4, 6]
    assert all(name in problems[0].message for name in ("language", "id", "label"))
    assert "'1'" in problems[3].message and "5" in problems[3].message
    path.write_text("", encoding="utf-8")
    with pytest.raises(SpecError):
        read_gold(path)
    with pytest.raises(UsageError, match=r"gold\.txt"):
        read_gold(write(tmp_path / "gold.txt"))
    with pytest.raises(UsageError, match=r"none\.jsonl"):
        read_gold(tmp_path / "none.jsonl")


def test_labels_hold_for_the_text_that_people_saw(tmp_path: Path) -> None:
    path = write(
        tmp_path / "gold.jsonl",
        row("1", "neutral"),
        row("1", "entailment", variant="tt", translator="nllb"),
        row("2", "neutral", variant="*", translator="*"),
        row("3", "neutral", variant="tt", translator="*"),
    )
    gold = read_gold(path)
    both = {"2": "neutral", "3": "neutral"}
    for language, translator, labels in (
        ("hi", "", {"1": "neutral", "2": "neutral"}),
        ("hi", "nllb", {"1": "entailment", **both}),
        ("hi", "google", both),
        ("ur", "", {}),
    ):
        view = {"variant": "tt", "translator": translator} if translator else {}
        assert gold.of("xnli", language, view).labels == labels
    table = tmp_path / "gold.tsv"
    table.write_text("id\tlabel\ttask\tlanguage\n1\tneutral\txnli\thi\n", encoding="utf-8")
    assert read_gold(table).of("xnli", "hi", {}).labels == {"1": "neutral"}
    assert read_gold(table).name.startswith("gold-") and read_gold(table).name != gold.name


def test_the_command_line_takes_a_gold(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "gold.jsonl", row("1-e", "neutral"))
    asked = ("--tasks", "xnli:hi", "--model", "baseline:majority", "--data", "sample")
    status, out, err = cli("plan", *asked, "--gold", path)
    assert status == 0 and "items: hi 1" in " ".join(out.split()), err
    assert cli("eval", *asked, "--train-limit", "20", "--output", "run")[0] == 0
    status, out, _ = cli("score", "run", "--gold", path, "--output", "new")
    assert status == 0 and f"gold={read_gold(path).name}" in "".join(out.split())
    status, _, err = cli("score", "run", "--gold", path)
    assert status == 2 and "--output DIR" in err
    assert cli("eval", "--resume", "run")[0] == 0
    status, _, err = cli("eval", "--resume", "new")
    assert status == 2 and "plan" in err
