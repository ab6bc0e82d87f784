from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.planning.lock_file import check_locked, read_lock
from harness.running.session import Prepared
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]
MakePrepared = Callable[..., Prepared]


@pytest.mark.parametrize(
    ("lock", "tasks", "settings"),
    [
        ("xnli", ("xnli",), {}),
        ("xtreme_r", ("xtreme_r",), {"languages": ("en", "de", "sw", "hi")}),
        (
            "xcopa --variants original,aligned_question",
            ("xcopa",),
            {"variants": ("original", "aligned_question")},
        ),
        ("udpos --train-languages en --recipe quick", ("udpos",), {"recipe": "quick"}),
        ("mlqa_cross,lareqa", ("lareqa",), {}),
    ],
)
def test_a_lock_of_tasks_serves_their_runs(
    cli: Cli, prepared: MakePrepared, lock: str, tasks: tuple[str, ...], settings: dict[str, Any]
) -> None:
    status, _, _ = cli("lock", *lock.split(), "--data", "sample")
    assert status == 0
    ready = prepared(*tasks, **settings)
    assert ready.plan.cells
    check_locked(ready.plan, read_lock(Path("harness.lock.json")), ready.session.catalog)


def test_what_is_shown_and_written(cli: Cli) -> None:
    status, out, _ = cli(
        "lock", "xnli:en+sw+th", "--data", "sample", "--output", "a.json", "--json", "b.json"
    )
    assert status == 0
    rows = json.loads(Path("b.json").read_text(encoding="utf-8"))
    lock = read_lock(Path("a.json")).lock
    assert [row["digest"] for row in rows] == [entry.digest for entry in lock.data]
    assert out.splitlines()[1].split() == ["sample", str(len(rows)), str(len(rows)), str(len(rows)), "0"]
    assert "not found and not locked: 'xnli' (test) in th" in out
    text = Path("a.json").read_text(encoding="utf-8")
    cli("lock", "xnli:th+sw+en", "--data", "sample", "--output", "a.json")
    assert Path("a.json").read_text(encoding="utf-8") == text


def test_a_run_is_locked(cli: Cli, make_run: Callable[..., Run]) -> None:
    run = make_run("xnli:en+sw")
    status, out, err = cli("lock", run.path)
    assert (status, err) == (0, "")
    assert "the model char-ngram" in out
    lock = read_lock(Path("harness.lock.json")).lock
    assert lock.model is not None
    assert {entry.owner for entry in lock.data} == {"xnli", "mnli"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("lock", "Missing argument"),
        ("lock xnly --data sample", "Did you mean 'xnli'?"),
        ("lock runs/none", "The run folder 'runs/none' does not exist."),
        ("lock runs/none xnli", "one run is locked at a time"),
        ("lock runs/none --data sample", "--data chooses among tasks"),
        ("lock xnli --data sample --variants typo", "No variant named 'typo'"),
        ("lock xnli --data sample --output no/such/folder.json", "its folder is not there"),
        ("lock xnli --data nowhere", "The data folder 'nowhere' does not exist."),
    ],
)
def test_bad_input_is_reported(cli: Cli, command: str, message: str) -> None:
    status, out, err = cli(*command.split())
    assert (status, out) == (2, "")
    assert message in err
    assert os.listdir() == []  # noqa: PTH208


def test_nothing_to_lock_is_reported(cli: Cli) -> None:
    Path("data").mkdir()
    status, _, err = cli("lock", "xnli", "--data", "data")
    assert status == 1
    assert "No test split of the named tasks was found" in err
    assert "looked for" in err


def test_other_training_languages_are_locked(cli: Cli, prepared: MakePrepared) -> None:
    rows = "Eine\tDET\nKatze\tNOUN\n\n" * 3
    for name in ("train-en", "train-de", "dev-en", "dev-de", "test-de", "test-en"):
        for folder in ("udpos", "pos"):
            path = Path("data") / folder / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(rows + f"{name}\tX\n\n", encoding="utf-8")
    for name, languages in (("plain", ()), ("german", ("de",))):
        more = [item for code in languages for item in ("--train-languages", code)]
        status, _, _ = cli("lock", "udpos:de", "--data", "data", "--output", f"{name}.json", *more)
        assert status == 0
    ready = prepared("udpos:de", data="data", train_languages=("de",))
    assert ready.plan.cells
    check_locked(ready.plan, read_lock(Path("german.json")), ready.session.catalog)
    with pytest.raises(UsageError, match=r"The data of 'udpos' in 'de' \(train\) is not in the lock file"):
        check_locked(ready.plan, read_lock(Path("plain.json")), ready.session.catalog)
