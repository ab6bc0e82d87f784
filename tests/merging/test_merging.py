"""Runs and shards are merged."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.analysis.merge import merge_runs
from harness.errors import DataError, StorageError, UsageError
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options, settings
from harness.planning.shards import Shard, parse_shard, plan_digest, take_shard
from harness.running.session import open_session, prepare
from harness.storage.results import CellResult, DamagedRunError, Entry
from harness.storage.run_folder import Run, with_baselines

MakeRun = Callable[..., Run]
Edit = Callable[..., Run]
Cli = Callable[..., tuple[int, str, str]]

TASKS = ("xnli:en+sw+hi", "udpos:en+de", "tatoeba:de+hi", "xquad:en+qu")
TIMES = {"seconds"}
METRICS = open_session().registry.metrics


def _without_times(value: Any) -> Any:
    value = value.to_json() if isinstance(value, Entry) else value
    if isinstance(value, dict):
        return {name: _without_times(item) for name, item in value.items() if name not in {*TIMES, "reused"}}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _merged(runs: list[Run], output: Path, **settings: Any) -> Run:
    merge_runs([run.path for run in runs], output, METRICS, **settings)
    return Run(output)


def _cell(run: Run, title: str) -> CellResult:
    [cell] = [cell for cell in run.cells if f"{cell.task}:{cell.language}" == title]
    return cell


@pytest.fixture(scope="module")
def whole(make_run: MakeRun) -> Run:
    return make_run(*TASKS, with_baselines=True, seeds=(1, 2))


@pytest.fixture(scope="module")
def shards(make_run: MakeRun) -> list[Run]:
    return [make_run(*TASKS, with_baselines=True, seeds=(1, 2), shard=f"{index}/3") for index in (1, 2, 3)]


@pytest.fixture(scope="module")
def xnli(make_run: MakeRun) -> Run:
    return make_run("xnli:en+sw")


@pytest.fixture(scope="module")
def udpos(make_run: MakeRun) -> Run:
    return make_run("udpos:en+de")


def test_merged_shards_are_the_run_that_did_it_all(whole: Run, shards: list[Run], tmp_path: Path) -> None:
    assert min(len(run.manifest.cells) for run in shards) > 0
    merged = _merged([shards[2], shards[0], shards[1]], tmp_path / "merged")
    pairs = list(zip(with_baselines(merged), with_baselines(whole), strict=True))
    assert len(pairs) > 1
    for found, expected in pairs:
        for name in ("cells", "tasks", "suites", "fits", "notes", "model"):
            assert _without_times(getattr(found.results, name)) == _without_times(
                getattr(expected.results, name)
            ), name
        assert list(found.results.fits) == list(expected.results.fits)
        for name in ("tasks", "specs", "cells", "suites", "resolved", "options"):
            assert getattr(found.manifest, name) == getattr(expected.manifest, name), name
        assert found.results.run.requests == expected.results.run.requests
        for cell in expected.cells:
            if cell.status == "ok":
                assert list(found.records(cell)) == list(expected.records(cell))
    assert not merged.manifest.has("shard")
    assert [part["shard"] for part in merged.manifest.merged_from] == ["3/3", "1/3", "2/3"]
    seconds = sum(run.results.run.seconds for run in shards)
    assert merged.results.run.seconds == pytest.approx(seconds, abs=0.01)


def test_a_suite_is_aggregated_again(make_run: MakeRun, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"languages": ("en", "de"), "model": "baseline:random"}
    whole = make_run("xtreme_r", **settings)
    parts = [make_run("xtreme_r", **settings, shard=f"{index}/2") for index in (1, 2)]
    merged = _merged(parts, tmp_path / "merged")
    assert whole.results.suites
    assert merged.results.suites == whole.results.suites
    assert merged.results.suites != parts[0].results.suites
    assert _without_times(merged.cells) == _without_times(whole.cells)


def test_missing_shards_are_rejected_and_then_skipped(
    shards: list[Run], whole: Run, tmp_path: Path, cli: Cli
) -> None:
    paths = [shards[0].path, shards[2].path]
    assert cli("merge", *paths, "--output", tmp_path / "merged")[0] == 2
    with pytest.raises(UsageError, match=r"The shards 2/3 of the plan are missing\. .*--incomplete"):
        merge_runs(paths, tmp_path / "merged", METRICS)
    notes = merge_runs(paths, tmp_path / "merged", METRICS, incomplete=True)
    part = Run(tmp_path / "merged")
    lost = [cell for cell in part.cells if "2/3" in cell.reason]
    assert {cell.reason for cell in lost} == {"in shard 2/3, which was not merged"}
    assert {cell.digest for cell in lost} == {cell["digest"] for cell in shards[1].manifest.cells}
    assert {cell.status for cell in lost} == {"skipped"}
    assert any(f"shard 2/3 was not merged: {len(lost)} cells" in line for line in notes)
    assert part.manifest.shard == "1+3/3"
    assert [cell.digest for cell in part.cells] == [cell.digest for cell in whole.cells]
    # What was missing can be added later, and then nothing mentions it any more.
    later = _merged([part, shards[1]], tmp_path / "later")
    assert _without_times(later.results.cells) == _without_times(whole.results.cells)
    assert later.results.notes == whole.results.notes
    assert not later.manifest.has("shard")


def test_runs_over_different_tasks_and_languages(
    make_run: MakeRun, xnli: Run, udpos: Run, tmp_path: Path
) -> None:
    hindi = make_run("xnli:hi")
    merged = _merged([xnli, udpos, hindi], tmp_path / "merged")
    whole = make_run("xnli:en+sw+hi", "udpos:en+de")
    assert _without_times(merged.cells) == _without_times(whole.cells)
    assert merged.results.tasks == whole.results.tasks
    assert merged.manifest.tasks == whole.manifest.tasks
    assert merged.manifest.config["tasks"] == ["xnli:en+sw", "udpos:en+de", "xnli:hi"]
    assert merged.manifest.config["languages"] is None
    assert merged.results.fits.keys() == whole.results.fits.keys()


@pytest.mark.parametrize("name", [name for name, setting in settings().items() if setting.merged == "task"])
def test_settings_of_how_many_items_differ_between_tasks(
    xnli: Run, udpos: Run, edit: Edit, tmp_path: Path, name: str
) -> None:
    other = edit(udpos, lambda content: content["config"].update({name: 9}), "manifest.json")
    merged = _merged([xnli, other], tmp_path / "merged")
    assert {cell.task for cell in merged.cells} == {"xnli", "udpos"}
    assert merged.manifest.config[name] is None
    [note] = [note for note in merged.results.notes if note.startswith(f"--{name} differs")]
    assert "9 for udpos" in note


def test_what_another_run_could_do_is_not_skipped(make_run: MakeRun, xnli: Run, tmp_path: Path) -> None:
    skipped = make_run("udpos:th+de", "xnli:th")
    skipped_cells = [cell for cell in skipped.cells if cell.status == "skipped"]
    assert {cell.task for cell in skipped_cells} == {"udpos", "xnli"}
    merged = _merged([xnli, skipped], tmp_path / "merged")
    assert [cell for cell in merged.cells if cell.status == "skipped"] == skipped_cells


def test_an_equal_cell_is_taken_once_and_reported(make_run: MakeRun, xnli: Run, tmp_path: Path) -> None:
    again = make_run("xnli:sw+hi")
    notes = merge_runs([xnli.path, again.path], tmp_path / "merged", METRICS)
    assert notes == [f"1 cells of {again.path} are in an earlier run, too"]
    cells = [f"{cell.task}:{cell.language}" for cell in Run(tmp_path / "merged").cells]
    assert cells == ["xnli:en", "xnli:sw", "xnli:hi"]


def test_a_finished_cell_replaces_one_that_failed(xnli: Run, edit: Edit, tmp_path: Path) -> None:
    def fail(results: dict[str, Any]) -> None:
        results["cells"][1] |= {"status": "failed", "metrics": {}, "reason": "planted", "n": 0}

    failed = edit(xnli, fail)
    (failed.path / "failures").mkdir()
    file = failed.path / "failures" / f"{failed.cells[1].digest}.txt"
    file.write_text("a traceback", encoding="utf-8")
    assert _merged([failed, xnli], tmp_path / "good").cells == xnli.cells
    alone = _merged([failed], tmp_path / "alone")
    assert alone.cells == failed.cells
    assert (alone.path / "failures" / file.name).read_text(encoding="utf-8") == "a traceback"


def _first_cell(**change: Any) -> Callable[[dict[str, Any]], object]:
    return lambda results: results["cells"][0].update(change)


def _score(results: dict[str, Any]) -> None:
    results["cells"][0]["metrics"]["accuracy"]["value"] -= 0.25


CONFLICTS: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    (
        "results.json",
        lambda content: content["model"].update(adapter="hf"),
        'the adapter: "baseline" and "hf"',
    ),
    (
        "results.json",
        lambda content: content["model"]["metadata"].update(ngrams="9"),
        r"the model \(ngrams\)",
    ),
    (
        "results.json",
        lambda content: content["model"]["metadata"].update(weights="9"),
        "what is known of the",
    ),
    ("results.json", lambda content: content["run"].update(data="hub"), r"the place of the data \(--data\)"),
    (
        "manifest.json",
        lambda content: content["resolved"]["specs"][-1].update(version=2, digest="0"),
        "the document of the training set 'mnli': it has version 2, and the former has version 1",
    ),
    (
        "results.json",
        lambda content: content["cells"][0]["data"].update(digest="0"),
        "the test data of 'xnli'",
    ),
    ("results.json", _first_cell(digest="0" * 12), "the training or prompt of 'xnli' in 'en'"),
    ("manifest.json", lambda content: content["config"].update(limit=9), "the setting 'limit': 4 and 9"),
    ("manifest.json", lambda content: content["config"].update(seeds=[3]), "the setting 'seeds'"),
    ("manifest.json", lambda content: content["config"].update(shots=3), "the setting 'shots': 0 and 3"),
    ("manifest.json", lambda content: content["config"].update(prompt="lm_eval"), "the setting 'prompt'"),
    (
        "manifest.json",
        lambda content: content["tasks"]["xnli"].update(metrics=["f1"]),
        "'metrics' of the task",
    ),
    (
        "manifest.json",
        lambda content: content["resolved"]["specs"][0].update(digest="9"),
        "the document of the recipe 'quick'",
    ),
]


@pytest.mark.parametrize(("file", "change", "difference"), CONFLICTS)
def test_runs_that_do_not_belong_together_are_rejected(
    xnli: Run, edit: Edit, tmp_path: Path, file: str, change: Any, difference: str
) -> None:
    other = edit(xnli, change, file)
    with pytest.raises(UsageError, match=f"cannot be merged: they differ in {difference}"):
        merge_runs([xnli.path, other.path], tmp_path / "merged", METRICS)
    assert not (tmp_path / "merged").exists()


def test_training_on_other_data_is_rejected(xnli: Run, edit: Edit, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        [train] = [split for split in manifest["resolved"]["data"] if split["split"] == "train"]
        train["digest"] = "another"

    with pytest.raises(UsageError, match=r"they differ in the data of 'mnli' in 'en' \(train\)"):
        merge_runs([xnli.path, edit(xnli, change, "manifest.json").path], tmp_path / "merged", METRICS)


def test_a_cell_with_other_scores_is_rejected(xnli: Run, edit: Edit, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"different scores of xnli:en \(zero_shot_transfer\): accuracy"):
        merge_runs([xnli.path, edit(xnli, _score).path], tmp_path / "merged", METRICS)


def test_rounding_is_no_other_score(xnli: Run, edit: Edit, tmp_path: Path) -> None:
    def nudge(results: dict[str, Any]) -> None:
        results["cells"][0]["metrics"]["accuracy"]["value"] -= 5e-6

    assert _merged([xnli, edit(xnli, nudge)], tmp_path / "merged").cells == xnli.cells


def test_other_models_are_rejected(make_run: MakeRun, xnli: Run, tmp_path: Path) -> None:
    other = make_run("xnli:en+sw", model="baseline:char-ngram", options={"ngrams": "3"})
    with pytest.raises(UsageError, match=r'the model \(ngrams\): "4" and "3"'):
        merge_runs([xnli.path, other.path], tmp_path / "merged", METRICS)


def test_shards_of_different_plans_are_rejected(make_run: MakeRun, shards: list[Run], tmp_path: Path) -> None:
    settings: dict[str, Any] = {"seeds": (1, 2)}
    other = make_run("xnli:en+sw", **settings, shard="2/3")
    with pytest.raises(UsageError, match="are shards of different plans"):
        merge_runs([shards[0].path, other.path], tmp_path / "merged", METRICS)
    halves = make_run(*TASKS, **settings, shard="2/2")
    with pytest.raises(UsageError, match="divide their plan differently: into 3 shards and into 2"):
        merge_runs([shards[0].path, halves.path], tmp_path / "merged", METRICS)


def test_no_runs_and_used_folders_are_rejected(xnli: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        merge_runs([xnli.path, tmp_path / "none"], tmp_path / "merged", METRICS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"is no run: it has no manifest\.json"):
        merge_runs([xnli.path, tmp_path / "empty"], tmp_path / "merged", METRICS)
    with pytest.raises(UsageError, match="A run was named twice"):
        merge_runs([xnli.path, xnli.path], tmp_path / "merged", METRICS)
    with pytest.raises(UsageError, match="already holds a run"):
        merge_runs([xnli.path], xnli.path, METRICS)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").touch()
    with pytest.raises(UsageError, match="is not empty"):
        merge_runs([xnli.path], tmp_path / "used", METRICS)
    assert _merged([xnli], tmp_path / "empty").cells == xnli.cells


def test_a_merge_that_breaks_leaves_nothing(xnli: Run, udpos: Run, edit: Edit, tmp_path: Path) -> None:
    broken = edit(udpos, lambda results: None)
    records = sorted(broken.path.rglob("*.parquet"))
    records[-1].unlink()
    with pytest.raises(DataError, match="of a finished cell are missing"):
        merge_runs([xnli.path, broken.path], tmp_path / "out" / "merged", METRICS)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_leaves_nothing(xnli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr("harness.analysis.merge.shutil.copyfile", full)
    with pytest.raises(StorageError, match=r"merged' cannot be written: .*No space left on device"):
        merge_runs([xnli.path], tmp_path / "out" / "merged", METRICS)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_merged_run_is_merged_again(xnli: Run, udpos: Run, edit: Edit, tmp_path: Path) -> None:
    older = edit(udpos, lambda results: results["run"].update(harness="0.0.9"))
    older = edit(older, lambda manifest: manifest.pop("resolved"), "manifest.json")
    first = _merged([xnli], tmp_path / "first")
    second = _merged([first, older], tmp_path / "second")
    assert second.cells == [*xnli.cells, *udpos.cells]
    [inner, _] = second.manifest.merged_from
    assert [part["id"] for part in inner["merged_from"]] == [xnli.results.run.id]
    # What only a part of the run says of its data would make a lock file without the rest.
    assert (first.manifest.has("resolved"), second.manifest.has("resolved")) == (True, False)
    assert any("made by the harness 0.0.9 and" in note for note in second.results.notes)


def test_a_digest_from_outside_never_becomes_a_path(xnli: Run, edit: Edit, tmp_path: Path) -> None:
    with pytest.raises(DamagedRunError, match=r"'cells\.0\.digest': '\.\./\.\./elsewhere'"):
        broken = edit(xnli, _first_cell(digest="../../elsewhere"))
        merge_runs([broken.path], tmp_path / "merged", METRICS)


def test_journals_and_single_cells_are_copied(xnli: Run, udpos: Run, edit: Edit, tmp_path: Path) -> None:
    runs = [edit(run, lambda results: None) for run in (xnli, udpos)]
    for run, names in zip(runs, (["0", "1", "10", "2"], ["0"]), strict=True):
        for name in ("journal", "cells"):  # the run's own
            shutil.rmtree(run.path / name)
        (run.path / "journal").mkdir()
        for name in names:
            (run.path / "journal" / f"{name}.log").write_text(f"{run.path.name} {name}", encoding="utf-8")
        (run.path / "cells").mkdir()
        (run.path / "cells" / f"{run.cells[0].digest}.json").write_text("{}", encoding="utf-8")
    merged = _merged(runs, tmp_path / "merged")
    logs = [(merged.path / "journal" / f"{number}.log").read_text(encoding="utf-8") for number in range(5)]
    assert [log.split()[1] for log in logs] == ["0", "1", "2", "10", "0"]
    assert logs[4].split()[0] == runs[1].path.name
    assert len(list((merged.path / "cells").iterdir())) == 2


def test_the_command(cli: Cli, xnli: Run, udpos: Run) -> None:
    status, out, err = cli("merge", xnli.path, udpos.path, "--output", "merged", "--json", "rows.json")
    assert (status, err) == (0, "")
    assert "Run folder: merged" in out
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert {row["task"] for row in rows} == {"xnli", "udpos"}
    before = Run("merged").results
    for command in (("report", "merged"), ("score", "merged"), ("compare", "merged", xnli.path)):
        assert cli(*command)[0] == 0, command
    assert Run("merged").results == before
    assert cli("merge", xnli.path)[0] == 2
    status, _, err = cli("merge", xnli.path, "--output", "merged")
    assert (status, err[:6]) == (2, "Error:")
    status, _, err = cli("merge", xnli.path, "none", "--output", "other")
    assert (status, "'none' does not exist" in err) == (2, True)


def test_runs_with_languages_that_different_files_add(make_run: MakeRun, xnli: Run, tmp_path: Path) -> None:
    """Each run knows the language of its own fragment; the merged run knows all."""
    items = open_session().catalog.entry("task", "xnli").folder.joinpath("sample/xnli/sw.jsonl")
    runs = [xnli]
    for code, further in (
        ("yo", ""),
        ("qpf", "name: Palatine German, script: Latn, family: Indo-European, "),
    ):
        folder = tmp_path / code
        (folder / "sample/xnli").mkdir(parents=True)
        (folder / f"sample/xnli/{code}.jsonl").write_text(items.read_text(encoding="utf-8"), encoding="utf-8")
        text = f"{further}provenance: native, parallel: false, test: {{sample: xnli/{code}.jsonl}}"
        path = folder / f"{code}.yaml"
        path.write_text(f"extends: xnli\nlanguages:\n  {code}: {{{text}}}\n", encoding="utf-8")
        runs.append(make_run(f"xnli:{code}", tasks_from=(path,)))
    merged = _merged(runs, tmp_path / "merged")
    summary = merged.manifest.tasks["xnli"]
    assert {code: Path(file).name for code, file in summary.added.items()} == {
        "yo": "yo.yaml",
        "qpf": "qpf.yaml",
    }
    assert (summary.names, sorted(summary.unpaired)) == ({"qpf": "Palatine German"}, ["qpf", "yo"])
    [row] = merged.results.tasks
    assert sorted(row.by_language) == ["en", "qpf", "sw", "yo"]


SHARDING_TASKS = ("xnli:en+sw+hi+de", "udpos:en+de", "xquad:en+de", "tatoeba:de+hi")


@pytest.fixture(scope="module")
def plan() -> Plan:
    config = RunConfig(tasks=SHARDING_TASKS, model="baseline:char-ngram", data=data_options(["sample"]))
    return prepare(config).plan


@pytest.fixture(scope="module")
def large(plan: Plan) -> Callable[[list[int]], Plan]:
    """Return a plan with so many cells of each fit, the first number without one."""
    fits = plan.fits

    def make(counts: list[int]) -> Plan:
        cells = []
        for number, count in enumerate(counts):
            fit = None if number == 0 else replace(fits[0], seed=number)
            cells += [replace(plan.cells[0], fit=fit, seed=seed) for seed in range(count)]
        return replace(plan, cells=tuple(cells))

    return make


def _digests(plan: Plan) -> list[str]:
    return [cell.digest for cell in plan.cells]


@pytest.mark.parametrize("text", ["0/4", "5/4", "a/b", "2", "2/", "/2", "-1/2", "1/0", "1/2/3", "1.0/2", ""])
def test_nonsense_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match=f"--shard {text} names no part; expected I/N"):
        parse_shard(text)


def test_a_shard_is_read_and_shown() -> None:
    shard = parse_shard("2/4")
    assert shard == Shard(index=2, count=4)
    assert str(shard) == "2/4"


@pytest.mark.thorough
@given(data=st.data())
def test_every_cell_is_in_one_shard_and_the_parts_are_balanced(
    large: Callable[[list[int]], Plan], data: Any
) -> None:
    counts = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=5).filter(sum))
    plan = large(counts)
    total = len(plan.cells)
    count = data.draw(st.integers(1, total))
    parts = [take_shard(plan, Shard(index=index, count=count)) for index in range(1, count + 1)]
    together = [digest for part in parts for digest in _digests(part)]
    assert sorted(together) == sorted(_digests(plan))
    sizes = [len(part.cells) for part in parts]
    assert min(sizes) >= 1
    assert all(abs(size - total / count) <= total / count / 2 + 1 for size in sizes)
    for part in parts:
        kept = set(_digests(part))
        assert _digests(part) == [digest for digest in _digests(plan) if digest in kept]
        assert (part.skipped, part.notes, part.suites) == (plan.skipped, plan.notes, plan.suites)


def test_a_cut_spares_a_fit(large: Callable[[list[int]], Plan]) -> None:
    plan = large([0, 7, 9])
    halves = [take_shard(plan, Shard(index=index, count=2)) for index in (1, 2)]
    assert [len(half.fits) for half in halves] == [1, 1]
    free = large([16])
    assert [len(take_shard(free, Shard(index=index, count=2)).cells) for index in (1, 2)] == [8, 8]


def test_more_shards_than_cells_are_rejected(plan: Plan) -> None:
    count = len(plan.cells) + 1
    with pytest.raises(UsageError, match=f"into {count} parts, so that some are empty. Use at most"):
        take_shard(plan, Shard(index=1, count=count))
    parts = [
        take_shard(plan, Shard(index=index, count=count), may_be_empty=True) for index in range(1, count + 1)
    ]
    assert sorted(len(part.cells) for part in parts) == [0] + [1] * len(plan.cells)


def test_the_digest_is_that_of_the_cells(plan: Plan) -> None:
    assert plan_digest(plan) == plan_digest(replace(plan, notes=("another note",)))
    assert plan_digest(plan) != plan_digest(replace(plan, cells=plan.cells[1:]))


def test_the_summary_says_which_shard_has_a_cell(plan: Plan) -> None:
    shard = Shard(index=2, count=3)
    part = take_shard(plan, shard)
    summary = part.shard
    assert (summary["shard"], summary["plan"]) == ("2/3", plan_digest(plan))
    own = [cell["digest"] for cell in summary["plan_cells"] if cell["shard"] == 2]
    assert own == _digests(part)
    assert [cell["digest"] for cell in summary["plan_cells"]] == _digests(plan)
