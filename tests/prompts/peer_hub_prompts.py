"""What lm-evaluation-harness asks about rows of Hub datasets: run by its own Python, writes one JSON object a line.

Standard input holds ``{name: {"path": task file below lm-eval's folder of tasks, "documents": [...]}}``. Each line has
the name, the requests of one document without shots, and the index of the request that lm-eval takes for right.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    datasets: Any = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    task_module: Any = importlib.import_module("lm_eval.api.task")
    loader: Any = importlib.import_module("lm_eval.tasks._yaml_loader")
    root = Path(importlib.import_module("lm_eval").__file__ or "").parent / "tasks"
    for name, given in json.load(sys.stdin).items():
        documents = datasets.Dataset.from_list(given["documents"])
        config = loader.load_yaml(root / given["path"], resolve_func=True)

        class Local(task_module.ConfigurableTask):  # type: ignore[misc]
            def download(self, *_: Any, rows: Any = documents, **__: Any) -> None:
                self.dataset = {split: rows for split in ("train", "validation", "dev", "eval", "test")}

        task = Local(config=config)
        for row in task.test_docs() if task.has_test_docs() else task.validation_docs():
            # The description is the text before all shots; an empty one is what the presets have.
            context = task.doc_to_text(row)
            requests = task.construct_requests(row, context)
            target = task.doc_to_target(row)
            choices = task.doc_to_choice(row)
            right = target if isinstance(target, int) else choices.index(target)
            line = {"name": name, "requests": [list(one.args[:2]) for one in requests], "right": right}
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
