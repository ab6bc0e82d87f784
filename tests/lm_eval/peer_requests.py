"""What lm-eval itself asks of documents, run by its own Python.

Standard input is ``{"path": task file, "documents": [...]}``, and one
line of JSON a document holds its requests without shots.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Print what lm-eval asks."""
    datasets: Any = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    task_module: Any = importlib.import_module("lm_eval.api.task")
    loader: Any = importlib.import_module("lm_eval.tasks._yaml_loader")
    given = json.load(sys.stdin)
    documents = datasets.Dataset.from_list(given["documents"])

    class Local(task_module.ConfigurableTask):  # type: ignore[misc]
        def download(self, *_: Any, **__: Any) -> None:
            self.dataset = dict.fromkeys(("train", "validation", "test"), documents)

    task = Local(config=loader.load_yaml(Path(given["path"])))
    for item in task.test_docs() if task.has_test_docs() else task.validation_docs():
        requests = task.construct_requests(item, task.fewshot_context(item, 0))
        gold = task.doc_to_target(item)
        line = {"requests": [list(request.args[:2]) for request in requests], "gold": gold}
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
