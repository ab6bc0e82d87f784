"""The lock's revision is what is loaded; the Hub's cache is laid out by hand, so that nothing needs a connection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("datasets")

from huggingface_hub import constants

from harness.data.sources import DataFinder, Pins
from harness.errors import UsageError
from harness.planning.lock_file import Lock, check_locked, read_lock
from harness.planning.plan import Plan
from harness.planning.planner import make_plan, resolve_model
from harness.planning.resolution import resolve_tasks
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import open_session
from harness.specs.selection import select

Cli = Callable[..., tuple[int, str, str]]

FIRST, NEWER = "1" * 40, "2" * 40
CARD = """---
configs:
- config_name: sw
  data_files:
  - split: test
    path: sw/test-*
---
"""


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Publish a commit of XNLI in Swahili with so many items."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    root = tmp_path / "hub" / "datasets--facebook--xnli"

    def put(commit: str, items: int) -> None:
        folder = root / "snapshots" / commit
        (folder / "sw").mkdir(parents=True)
        (folder / "README.md").write_text(CARD, encoding="utf-8")
        rows = [{"premise": "Paka analala", "hypothesis": f"Paka {i}", "label": i % 3} for i in range(items)]
        parquet.write_table(pa.Table.from_pylist(rows), folder / "sw" / "test-0.parquet")
        (root / "refs").mkdir(exist_ok=True)
        (root / "refs" / "main").write_text(commit, encoding="utf-8")

    return put


def _plan(cache: Path, pins: Pins | None = None) -> Plan:
    """Plan with a model that needs no training, so that only the test set is loaded."""
    session = open_session()
    options = data_options(["hub"])
    config = RunConfig(tasks=("xnli:sw",), model="planted:nothing", data=options)
    finder = DataFinder(options, session.registry, cache, pins=pins)
    model = resolve_model(session.registry.adapters, config.model, {})
    return make_plan(config, session.registry, session.catalog, finder, model)


@pytest.fixture
def planted(install_plugin: Callable[..., Path]) -> None:
    """Install the adapter ``planted`` of the tests of runs."""
    file = Path(__file__).parents[1] / "running" / "planted_adapter.py"
    install_plugin("planted_adapter", file.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("planted")
def test_the_revision_of_the_lock_is_loaded(
    publish: Callable[[str, int], None], tmp_path: Path, cli: Cli
) -> None:
    publish(FIRST, 5)
    status, out, _ = cli("lock", "xnli:sw", "--data", "hub", "--output", tmp_path / "lock.json")
    assert status == 0
    assert out.splitlines()[1].split() == ["hub", "1", "1", "1", "0"]
    locked = read_lock(tmp_path / "lock.json")
    [entry] = locked.lock.data
    assert entry.hub is not None
    assert (entry.hub.path, entry.hub.config, entry.hub.split) == ("facebook/xnli", "sw", "test")
    assert entry.hub.revision == FIRST
    assert entry.files[0].name == f"{FIRST}.parquet"
    assert dict(locked.pins) == {("facebook/xnli", "sw", "test"): FIRST}

    publish(NEWER, 6)
    cache, catalog = tmp_path / "cache" / "data", open_session().catalog
    unpinned = _plan(cache)
    assert unpinned.cells[0].test.files.revision == NEWER
    with pytest.raises(UsageError) as caught:
        check_locked(unpinned, locked, catalog)
    for part in (FIRST, NEWER, unpinned.cells[0].test.digest(), entry.digest):
        assert part in str(caught.value)
    pinned = _plan(cache, locked.pins)
    assert (pinned.cells[0].test.files.revision, pinned.cells[0].test.files.pinned) == (FIRST, True)
    check_locked(pinned, locked, catalog)


def test_a_revision_that_was_not_seen_is_never_invented(
    publish: Callable[[str, int], None], tmp_path: Path
) -> None:
    publish(FIRST, 5)
    session = open_session()
    finder = DataFinder(data_options(["hub"]), session.registry, tmp_path / "cache")
    resolution, _ = resolve_tasks(session.catalog, finder, select(session.catalog, ["xnli:sw"]))
    [entry] = resolution.data
    assert entry.hub is not None
    hub = entry.hub.model_copy(update={"revision": None})
    unseen = entry.model_copy(update={"hub": hub})
    assert (entry.pinned, unseen.pinned) == (True, False)
    path = tmp_path / "lock.json"
    lock = Lock.of(resolution.model_copy(update={"data": (unseen,)}))
    path.write_text(lock.to_text(), encoding="utf-8")
    assert '"revision": null' in path.read_text(encoding="utf-8")
    assert dict(read_lock(path).pins) == {}
