"""lm-eval itself on the tasks of a folder, and its own tools on result files, run by its own Python.

``python peer_run.py evaluate MODEL FOLDER SHOTS ANSWER TASK...`` writes results and samples of its `HFLM` to ANSWER;
``python peer_run.py read FOLDER ANSWER`` what its tools read in the result files below FOLDER.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def evaluate(model: str, folder: str, shots: str, names: list[str]) -> dict[str, Any]:
    """Return by task what lm-eval scored, and the arguments, answers and hashes of its samples."""
    importlib.import_module("torch").set_num_threads(1)
    lm_eval: Any = importlib.import_module("lm_eval")
    huggingface: Any = importlib.import_module("lm_eval.models.huggingface")
    tasks: Any = importlib.import_module("lm_eval.tasks")
    results = lm_eval.simple_evaluate(
        model=huggingface.HFLM(pretrained=model, dtype="float32", device="cpu", batch_size=4),
        tasks=names,
        num_fewshot=int(shots) or None,
        task_manager=tasks.TaskManager(include_defaults=False, include_path=folder),
        bootstrap_iters=100,
    )
    return {key: results[key] for key in ("results", "samples", "versions", "n-shot", "n-samples")}


def read(folder: str) -> dict[str, Any]:
    """Return the table, the names in file names, and the features of samples, by lm-eval's and datasets' functions."""
    tools: Any = importlib.import_module("lm_eval.utils")
    datasets: Any = importlib.import_module("datasets")
    files = [str(path) for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    [results] = tools.get_results_filenames(files)
    samples = tools.get_sample_results_filenames(files)
    loaded = {
        tools.get_file_task_name(Path(path).name): datasets.load_dataset(
            "json", data_files=path, split="train"
        ).to_list()
        for path in samples
    }
    table = tools.make_table(json.loads(Path(results).read_text(encoding="utf-8")))
    dates = [tools.get_file_datetime(Path(path).name) for path in samples]
    return {"table": table, "samples": loaded, "dates": dates}


def main() -> None:
    """Do what the arguments say."""
    if sys.argv[1] == "evaluate":
        model, folder, shots, place = sys.argv[2:6]
        answer = evaluate(model, folder, shots, sys.argv[6:])
    else:
        answer, place = read(sys.argv[2]), sys.argv[3]
    Path(place).write_text(json.dumps(answer, default=str), encoding="utf-8")


if __name__ == "__main__":
    main()
