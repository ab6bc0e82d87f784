"""Prints what a tracker has of a run as JSON: ``read_back.py wandb|mlflow|trackio``.

It is run by the Python that has the trackers. trackio's and MLflow's own interfaces read their stores; what Weights &
Biases wrote offline, it can only send, so its file is read here: blocks of 32 KiB that hold records in parts, as
LevelDB's log has them, each record a message of ``wandb_internal.proto``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEAD, FILE_HEAD = 32768, 7, 7


def mlflow_run() -> dict[str, Any]:
    """Return the only run of the experiment."""
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("harness")
    [run] = client.search_runs([experiment.experiment_id])
    histories = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    folder = Path(client.download_artifacts(run.info.run_id, ""))
    return {
        "name": run.info.run_name,
        "id": run.info.run_id,
        "finished": run.info.status == "FINISHED",
        "metrics": run.data.metrics,
        "counts": {name: len(points) for name, points in histories.items()},
        "config": json.loads((folder / "config.json").read_text(encoding="utf-8")),
        "params": run.data.params,
        "rows": len((folder / "results.csv").read_text(encoding="utf-8").splitlines()) - 1,
        "results": json.loads((folder / "results.json").read_text(encoding="utf-8")),
    }


def trackio_run() -> dict[str, Any]:
    """Return the only run of the project."""
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    [run] = trackio.Api().runs("harness")
    logs = SQLiteStorage.get_logs("harness", run.name)
    values = [
        (name, value)
        for log in logs
        for name, value in log.items()
        if isinstance(value, float) and "/" in name
    ]
    table = [log["results"] for log in logs if "results" in log][-1]
    blobs = [
        path for path in Path(os.environ["TRACKIO_DIR"]).glob("artifacts/*/blobs/*/*/*") if path.is_file()
    ]
    return {
        "name": run.name,
        "id": run.name,
        "metrics": dict(values),
        "counts": {name: sum(own == name for own, _ in values) for name, _ in values},
        "config": run.config,
        "rows": len(table["_value"]),
        "results": json.loads(blobs[0].read_text(encoding="utf-8")),
    }


def wandb_run() -> dict[str, Any]:
    """Return the run of all files that were written offline."""
    from wandb.proto.wandb_internal_pb2 import Record

    files = sorted(Path("wandb").glob("offline-run-*/*.wandb"))
    metrics: dict[str, float] = {}
    found: dict[str, Any] = {"counts": {}, "metrics": metrics, "kinds": [], "attempts": len(files)}
    for content in (content for file in files for content in records(file.read_bytes())):
        record = Record()
        record.ParseFromString(content)
        kind = record.WhichOneof("record_type")
        found["kinds"].append(kind)
        if kind == "run":
            config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
            found |= {"name": record.run.display_name, "id": record.run.run_id, "config": config}
            found["host"] = record.run.host
        elif kind == "history":
            for item in record.history.item:
                name, value = "/".join(item.nested_key) or item.key, json.loads(item.value_json)
                if name == "results/nrows":
                    found["rows"] = value
                elif isinstance(value, float) and not name.startswith("_"):
                    metrics[name] = value
                    found["counts"][name] = found["counts"].get(name, 0) + 1
        elif kind == "summary":
            for item in record.summary.update:
                name = "/".join(item.nested_key) or item.key
                value = json.loads(item.value_json)
                if isinstance(value, float) and not name.startswith("_"):
                    metrics[name] = value
        elif kind == "artifact" and record.artifact.type == "results":
            [entry] = [one for one in record.artifact.manifest.contents if one.path == "results.json"]
            found["results"] = json.loads(Path(entry.local_path).read_text(encoding="utf-8"))
        elif kind == "exit":
            found["finished"] = record.exit.exit_code == 0
    return found


def records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a file; a part is 1 whole, 2 the first, 3 a middle or 4 the last one."""
    at, parts = FILE_HEAD, b""
    while at + HEAD <= len(content):
        left = BLOCK - at % BLOCK
        if left < HEAD:
            at += left
            continue
        length, part = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        parts += content[at + HEAD : at + HEAD + length]
        at += HEAD + length
        if part in {1, 4}:
            yield parts
            parts = b""


if __name__ == "__main__":
    made = {"mlflow": mlflow_run, "trackio": trackio_run, "wandb": wandb_run}[sys.argv[1]]()
    sys.stdout.write("\n" + json.dumps(made))
