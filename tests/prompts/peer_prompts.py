"""What lm-evaluation-harness asks: run by its own Python, writes one JSON object a line.

Each line has the family, the language, and the requests that its task class makes of one document, without shots. Only
the data are replaced: standard input holds ``{family: {"languages": [...], "documents": [...]}}``.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

FOLDERS = {"xnli": "xnli", "xcopa": "xcopa", "pawsx": "paws-x", "xquad": "xquad", "mlqa": "mlqa"}
FILES = {
    "xnli": "xnli_{0}.yaml",
    "xcopa": "default_{0}.yaml",
    "pawsx": "paws_{0}.yaml",
    "xquad": "xquad_{0}.yaml",
    "mlqa": "mlqa_{0}_{0}.yaml",
}


def main() -> None:
    datasets: Any = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    task_module: Any = importlib.import_module("lm_eval.api.task")
    # Between versions the loader of task files moved.
    loader: Any = importlib.import_module("lm_eval.tasks._yaml_loader")
    root = Path(importlib.import_module("lm_eval").__file__ or "").parent / "tasks"

    for family, given in json.load(sys.stdin).items():
        documents = given["documents"]
        for language in given["languages"]:
            path = root / FOLDERS[family] / FILES[family].format(language)
            # The scorer of its XQuAD cannot be imported with transformers 5, and is not needed to ask.
            config = loader.load_yaml(path, resolve_func=family != "xquad")
            config.pop("process_results", None)
            task = made(task_module.ConfigurableTask, config, datasets.Dataset.from_list(documents))
            split = task.test_docs() if task.has_test_docs() else task.validation_docs()
            assert len(split) == len(documents)
            for processed in split:
                context = task.fewshot_context(processed, 0)
                requests = task.construct_requests(processed, context)
                requests = requests if isinstance(requests, list) else [requests]
                # What follows the text in a generation request are its options.
                wanted = 1 if family in {"xquad", "mlqa"} else 2
                line = {
                    "family": family,
                    "language": language,
                    "requests": [list(request.args[:wanted]) for request in requests],
                }
                sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


def made(parent: Any, config: dict[str, Any], documents: Any) -> Any:
    """Return lm-eval's task with our documents in place of the download."""

    class Local(parent):  # type: ignore[misc]
        def download(self, *_: Any, **__: Any) -> None:
            self.dataset = {split: documents for split in ("train", "validation", "test")}

    return Local(config=config)


if __name__ == "__main__":
    main()
