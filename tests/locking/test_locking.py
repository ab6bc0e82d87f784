"""Tasks are locked, and a run compares its data with the lock."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError, UsageError
from harness.models.capabilities import ModelDescription
from harness.planning.lock_file import (
    Lock,
    LockedModel,
    LockFile,
    check_locked,
    lock_run,
    locked_model,
    read_lock,
)
from harness.planning.resolution import resolve_plan
from harness.running.session import Prepared
from harness.storage.results import Manifest
from harness.storage.run_folder import Run

MakePrepared = Callable[..., Prepared]
WriteLock = Callable[[Lock], Path]
Change = Callable[[dict[str, Any]], object]

ENGLISH = "".join(f"A cat {number} sleeps.\tA cat rests.\tentailment\n" for number in range(6))
SWAHILI = "".join(f"Paka {number} analala.\tPaka anapumzika.\tentailment\n" for number in range(6))


def _lock(ready: Prepared) -> Lock:
    return Lock.of(resolve_plan(ready.plan, ready.session.catalog))


def _check(ready: Prepared, path: Path) -> None:
    check_locked(ready.plan, read_lock(path), ready.session.catalog)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with XNLI in English and Swahili, and MNLI."""
    for name, text in (
        ("xnli/test-en.tsv", ENGLISH),
        ("xnli/test-sw.tsv", SWAHILI),
        ("xnli/dev-en.tsv", ENGLISH),
        ("xnli/train-en.tsv", ENGLISH),
    ):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "data"


def test_a_lock_serves_the_plan_it_was_made_of(prepared: MakePrepared, write_lock: WriteLock) -> None:
    tasks = ("xnli:en+sw", "udpos:de", "tatoeba:de", "lareqa:en+de", "xquad:qu+en")
    ready = prepared(*tasks, recipe="quick", with_baselines=True)
    path = write_lock(_lock(ready))
    _check(ready, path)
    for task in tasks:
        _check(prepared(task, recipe="quick"), path)
    assert path.read_text(encoding="utf-8") == _lock(prepared(*tasks[::-1], recipe="quick")).to_text()


def test_what_is_written(prepared: MakePrepared, write_lock: WriteLock, folder: Path) -> None:
    ready = prepared("xnli:en+sw", data=folder)
    content = json.loads(write_lock(_lock(ready)).read_text(encoding="utf-8"))
    assert (content["harness_lock"], content["model"]) == (1, None)
    by_split = {(entry["owner"], entry["language"], entry["split"]): entry for entry in content["data"]}
    swahili = by_split["xnli", "sw", "test"]
    digest = hashlib.sha256(SWAHILI.encode()).hexdigest()
    assert swahili["files"] == [{"name": "xnli/test-sw.tsv", "sha256": digest}]
    assert (swahili["origin"], swahili["hub"]) == ("local", None)
    [cell] = [cell for cell in ready.plan.cells if cell.language.code == "sw"]
    assert swahili["digest"] == cell.test.digest()
    documents = {(entry["sort"], entry["name"]): entry for entry in content["specs"]}
    assert documents["task", "xnli"]["version"] == 1
    assert documents["recipe", "xtreme_r"]["version"] is None
    assert ("training", "mnli") in documents


def test_shots_and_prompts_are_locked(prepared: MakePrepared, planted_ranker: str) -> None:
    ready = prepared("xnli:sw", model=planted_ranker, protocols=("prompted",), shots=2)
    lock = _lock(ready)
    assert {(entry.owner, entry.language, entry.split) for entry in lock.data} == {
        ("xnli", "sw", "test"),
        ("mnli", "en", "train"),
    }
    assert ("prompt", "xnli/default") in {entry.key for entry in lock.specs}


@pytest.fixture
def planted_ranker(install_plugin: Callable[..., Path]) -> str:
    """Install the adapter of the tests of prompted runs and return the name of a model."""
    file = Path(__file__).parents[1] / "running" / "ranking_adapter.py"
    install_plugin("ranking_adapter", file.read_text(encoding="utf-8"))
    return "ranks:it"


def test_a_file_that_changed_is_rejected(prepared: MakePrepared, write_lock: WriteLock, folder: Path) -> None:
    path = write_lock(_lock(prepared("xnli:en+sw", data=folder)))
    file = folder / "xnli" / "test-sw.tsv"
    before = prepared("xnli:sw", data=folder).plan.cells[0].test.digest()
    file.write_text(SWAHILI.replace("Paka 3", "Paka 33"), encoding="utf-8")
    ready = prepared("xnli:en+sw", data=folder)
    after = next(cell.test.digest() for cell in ready.plan.cells if cell.language.code == "sw")
    with pytest.raises(UsageError) as caught:
        _check(ready, path)
    message = str(caught.value)
    assert "The data of 'xnli' in 'sw' (test) is not the locked one: the file 'xnli/test-sw.tsv'" in message
    for digest in (before, after, hashlib.sha256(SWAHILI.encode()).hexdigest()):
        assert digest in message
    assert f"harness lock RUN|TASKS --output {path}" in message
    _check(prepared("xnli:en", data=folder), path)


def test_training_data_that_changed_are_rejected(
    prepared: MakePrepared, write_lock: WriteLock, folder: Path
) -> None:
    path = write_lock(_lock(prepared("xnli:en", data=folder)))
    trained = [
        entry.files[0].name
        for entry in read_lock(path).lock.data
        if (entry.owner, entry.split) == ("mnli", "train")
    ]
    (folder / trained[0]).write_text(ENGLISH * 2, encoding="utf-8")
    with pytest.raises(UsageError, match=r"The data of 'mnli' in 'en' \(train\) is not the locked one"):
        _check(prepared("xnli:en", data=folder), path)


def test_data_missing_in_the_lock_are_rejected(
    prepared: MakePrepared, write_lock: WriteLock, folder: Path
) -> None:
    path = write_lock(_lock(prepared("xnli:en", recipe="quick")))
    with pytest.raises(UsageError, match=r"The data of 'xnli' in 'sw' \(test\) is not in the lock file"):
        _check(prepared("xnli:sw", recipe="quick"), path)
    with pytest.raises(UsageError, match="The document of the task 'tatoeba' is not in the lock file"):
        _check(prepared("tatoeba:de"), path)
    with pytest.raises(UsageError, match="The document of the recipe 'xtreme_r' is not in the lock file"):
        _check(prepared("xnli:en"), path)
    with pytest.raises(
        UsageError, match="they come from a data folder, and the lock has the embedded sample"
    ):
        _check(prepared("xnli:en", recipe="quick", data=folder), path)


def _edited(path: Path, change: Change) -> Path:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _document(content: dict[str, Any], sort: str) -> dict[str, Any]:
    [found] = [entry for entry in content["specs"] if entry["sort"] == sort]
    entry: dict[str, Any] = found
    return entry


def test_a_document_that_changed_is_rejected(prepared: MakePrepared, write_lock: WriteLock) -> None:
    ready = prepared("xnli:en")
    lock = _lock(ready)
    path = _edited(write_lock(lock), lambda content: _document(content, "task").update(version=7, digest="0"))
    with pytest.raises(UsageError, match=r"task 'xnli' .* it has version 1, and the lock has version 7"):
        _check(ready, path)
    for sort, title in (("task", "task 'xnli'"), ("training", "training set 'mnli'"), ("recipe", "recipe")):

        def change(content: dict[str, Any], sort: str = sort) -> None:
            _document(content, sort).update(digest="0")

        path = _edited(write_lock(lock), change)
        with pytest.raises(
            UsageError, match=f"document of the {title}.* is not the locked one: .*, 0 in the"
        ):
            _check(ready, path)


BROKEN: list[tuple[Change | str, str]] = [
    ("", "it is no JSON"),
    ("[]", "the key 'harness_lock' with the number of its format is missing"),
    ("{}", "the key 'harness_lock' with the number of its format is missing"),
    (lambda content: content.update(harness_lock=2), "has the format 2; this harness reads 1"),
    (lambda content: content.update(data=[]), "it locks no data"),
    (lambda content: content.pop("specs"), "specs: Field required"),
    (lambda content: content["data"][0].update(digest=3), "data.0.digest: Input should be a valid string"),
    (
        lambda content: content["data"][0].update(surprise=3),
        "data.0.surprise: Extra inputs are not permitted",
    ),
    (lambda content: content["data"][0].update(origin="moon"), "data.0.origin: Input should be"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_a_broken_lock_is_reported(
    prepared: MakePrepared, write_lock: WriteLock, change: Change | str, message: str
) -> None:
    path = write_lock(_lock(prepared("xnli:en")))
    if isinstance(change, str):
        path.write_text(change, encoding="utf-8")
    else:
        _edited(path, change)
    with pytest.raises(UsageError) as caught:
        read_lock(path)
    assert message in str(caught.value)
    assert repr(str(path)) in str(caught.value)


def test_a_lock_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        read_lock(tmp_path / "none.json")


def test_a_run_is_locked_with_its_model(make_run: Callable[..., Run], prepared: MakePrepared) -> None:
    run = make_run("xnli:en+sw", "udpos:de", with_baselines=True)
    lock = lock_run(run)
    ready = prepared("xnli:en+sw", "udpos:de", recipe="quick")
    assert (lock.data, lock.specs) == (_lock(ready).data, _lock(ready).specs)
    fields: dict[str, Any] = {"adapter": "baseline", "ref": "char-ngram", "revision": None, "weights": None}
    assert lock.model is not None
    assert lock.model.options == {name: str(value) for name, value in run.manifest.options.items()}
    assert lock.model == LockedModel(**fields, options=lock.model.options)
    digests = {cell.data["digest"] for cell in run.cells if cell.status == "ok"}
    assert digests <= {entry.digest for entry in lock.data}


def test_a_run_that_does_not_say_what_it_resolved_is_reported(make_run: Callable[..., Run]) -> None:
    run = make_run("xnli:en")
    known = {name: value for name, value in run.manifest.to_json().items() if name != "resolved"}
    run.manifest = Manifest.model_validate(known)
    with pytest.raises(UsageError, match="does not say what it resolved"):
        lock_run(run)
    run.manifest = run.manifest.changed(resolved={"data": 3})
    with pytest.raises(UsageError, match="'resolved' is broken: data: "):
        lock_run(run)


def _model_lock(prepared: MakePrepared, **model: Any) -> LockFile:
    fields = {"adapter": "hf-encoder", "ref": "a/model", "revision": None, "weights": "aaa", "files": "bbb"}
    kept = LockedModel.model_validate({**fields, **model})
    resolution = resolve_plan((ready := prepared("xnli:en")).plan, ready.session.catalog)
    return LockFile(path=Path("a.json"), lock=Lock.of(resolution, kept))


def _description(**fields: Any) -> ModelDescription:
    given = {"adapter": "hf-encoder", "ref": "b/model", "offers": frozenset(), **fields}
    return ModelDescription(**given)


def test_another_model_is_rejected(prepared: MakePrepared) -> None:
    locked = _model_lock(prepared)
    same = {"weights": "aaa", "files": "bbb", "torch": "2.0"}
    locked_model(locked, _description(), same)
    with pytest.raises(AdapterError, match=r"its digest of the weights is ccc, and .*'a\.json' has aaa"):
        locked_model(locked, _description(), {**same, "weights": "ccc"})
    with pytest.raises(
        AdapterError, match=r"digest of the configuration and tokenizer is None, and .* has bbb"
    ):
        locked_model(locked, _description(), {"weights": "aaa"})
    with pytest.raises(AdapterError, match=r"its adapter is baseline, and .* has hf-encoder"):
        locked_model(locked, _description(adapter="baseline"), same)
    unnamed = _model_lock(prepared, weights=None, files=None)
    locked_model(unnamed, _description(ref="a/model"), {})
    with pytest.raises(AdapterError, match=r"its name is b/model, and .* has a/model"):
        locked_model(unnamed, _description(), {})


@pytest.mark.parametrize(
    ("identity", "options"),
    [
        ({"dimension": "64", "option.chat": "false"}, {"dimension": 64}),
        ({"dimension": "128", "option.chat": "true"}, {"dimension": 128}),
        ({"dimension": "128", "option.chat": "false", "option.thinking": "on"}, {"dimension": 128}),
        ({"dimension": "128"}, {"dimension": 128}),
        ({"dimension": "128", "option.chat": "false"}, {"dimension": 128, "temperature": 0.7}),
    ],
)
def test_an_option_that_changes_answers_is_rejected(
    prepared: MakePrepared, identity: dict[str, str], options: dict[str, Any]
) -> None:
    kept = {"dimension": "128", "chat": "false"}
    locked = _model_lock(prepared, ref="b/model", weights=None, files=None, options=kept)
    same = {"dimension": "128", "option.chat": "false", "device": "cuda", "torch": "2.0"}
    locked_model(locked, _description(), same, {"dimension": 128, "device": "auto", "temperature": None})
    with pytest.raises(AdapterError, match="its option '"):
        locked_model(locked, _description(), identity, options)
    older = _model_lock(prepared, ref="b/model", weights=None, files=None)
    locked_model(older, _description(), identity, options)


def test_a_lock_of_tasks_names_no_model(prepared: MakePrepared) -> None:
    ready = prepared("xnli:en")
    locked = LockFile(path=Path("a.json"), lock=_lock(ready))
    locked_model(locked, _description(), {})


Cli = Callable[..., tuple[int, str, str]]


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
