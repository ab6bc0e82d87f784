"""What lm-eval asks in a task, as a data file of ours: so it is pinned, resumed and recorded like any other."""

from __future__ import annotations

from pathlib import Path

from harness.data.resolve import HubFiles, ResolvedData
from harness_lm_eval.live_task import live_task, write_requests
from harness_lm_eval.task_index import installed_version

__all__ = ["resolve_requests"]


def resolve_requests(hub: HubFiles, cache: Path) -> ResolvedData:
    """Return the file of a task's requests, ``lm_eval:NAME`` with the number of shots as config.

    Raises `MissingDataError` where lm-eval cannot load the task's data.
    """
    name = hub.path.partition(":")[2]
    live = live_task(name, int(hub.config or 0))
    config = live.task.config
    is_local = config.dataset_path in ("json", "csv", "parquet", "text", "arrow")
    revision = (config.dataset_kwargs or {}).get("revision")
    return ResolvedData(
        paths=(write_requests(live, cache),),
        reader="jsonl",
        origin="hub",
        split_used=hub.split,
        revision=revision,
        pinned=is_local or (isinstance(revision, str) and len(revision) == 40),
        describe=f"{hub.path} ({hub.split}) by lm-eval {installed_version(name)}",
    )
