"""Runs one evaluation and records its path, by the Python of the program that evaluates; `call_path` starts it.

``python benchmarks/call_path_tracer.py ANSWER PROGRAM MODEL [DOCUMENTS]`` writes JSON to the file ANSWER. ``functions``
has the functions of the program on the stack at the deepest call of a model, without comprehensions, and ``types`` the
classes of the program whose ``__init__`` was called, or that pydantic validated, outside of imports.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

MAKERS = {
    "__init__": 0,
    "__post_init__": 0,
    "model_validate": 0,
    "model_validate_json": 0,
    "model_construct": 0,
}
"""Functions that make an object -> the position of their argument that is the object or its class."""


class Tracer:
    """Records the path of an evaluation while it is entered.

    Args:
        packages: Beginnings of the names of the program's packages.
    """

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self.functions: list[str] = []
        self.types: set[str] = set()

    def __enter__(self) -> None:
        """Begin."""
        module: Any = importlib.import_module("torch.nn.modules.module")
        module.register_module_forward_pre_hook(self._called)
        sys.setprofile(self._profile)

    def __exit__(self, *_: object) -> None:
        """End."""
        sys.setprofile(None)

    def _is_of_program(self, module: Any) -> bool:
        return isinstance(module, str) and module.startswith(self._packages)

    def _called(self, module: Any, _: object) -> None:
        if type(module).__module__.startswith("transformers"):
            functions = [
                f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"
                for frame in list(_frames(sys._getframe()))[::-1]
                if self._is_of_program(frame.f_globals.get("__name__"))
                and (frame.f_code.co_name[0] != "<" or frame.f_code.co_name == "<lambda>")
            ]
            self.functions = max(self.functions, functions, key=len)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name not in MAKERS or not code.co_varnames:
            return
        made = frame.f_locals.get(code.co_varnames[MAKERS[code.co_name]])
        kind = made if isinstance(made, type) else type(made)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in self.types or not self._is_of_program(kind.__module__) or issubclass(kind, BaseException):
            return
        if not any("importlib" in above.f_code.co_filename for above in _frames(frame)):
            self.types.add(name)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def run_command(main: Callable[[], Any], *words: str) -> None:
    """Run a command as the shell does."""
    sys.argv = list(words)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def evaluate_harness(model: str, _: str) -> Tracer:
    """Evaluate with the harness's command."""
    run: Any = importlib.import_module("harness.cli.main").run
    tracer = Tracer("harness", "__main__")
    with tempfile.TemporaryDirectory() as folder, tracer:
        words = (
            f"eval --tasks xnli:en --model hf:{model} --data sample --option device=cpu --output {folder}/run"
        )
        run_command(run, "harness", *words.split())
    tracer.functions = [name for name in tracer.functions if not name.startswith("__main__")]
    return tracer


def evaluate_lm_eval(model: str, documents: str) -> Tracer:
    """Evaluate with lm-eval's command and a task file for the documents."""
    run: Any = importlib.import_module("lm_eval.__main__").cli_evaluate
    tracer = Tracer("lm_eval")
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "task": "sample_xnli",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"validation": documents}},
            "validation_split": "validation",
            "output_type": "multiple_choice",
            "doc_to_text": "",
            "doc_to_target": "label",
            "doc_to_choice": "{{[premise+', right? Yes, '+hypothesis,premise+', right? Also, '+hypothesis,"
            "premise+', right? No, '+hypothesis]}}",
            "metric_list": [{"metric": "acc"}],
        }
        Path(folder, "sample_xnli.yaml").write_text(json.dumps(task), encoding="utf-8")
        words = f"run --model hf --model_args pretrained={model} --tasks sample_xnli --include_path {folder}"
        with tracer:
            run_command(run, "lm-eval", *words.split(), "--device", "cpu", "--batch_size", "8")
    return tracer


def evaluate_mteb(model: str, documents: str) -> Tracer:
    """Evaluate the documents as mteb's task XNLI, which compares the two sentences of a pair."""
    mteb: Any = importlib.import_module("mteb")
    transformers: Any = importlib.import_module("sentence_transformers")
    datasets: Any = importlib.import_module("datasets")
    rows = [json.loads(line) for line in Path(documents).read_text(encoding="utf-8").splitlines()]
    pairs = [(row["premise"], row["hypothesis"], int(row["label"] == 0)) for row in rows]
    columns = {
        name: list(column)
        for name, column in zip(("sentence1", "sentence2", "labels"), zip(*pairs, strict=True), strict=True)
    }
    task = mteb.get_task("XNLI", languages=["eng"], eval_splits=["test"], hf_subsets=["en"])
    task.dataset = {"en": {"test": datasets.Dataset.from_dict(columns)}}
    task.data_loaded = True
    tracer = Tracer("mteb")
    with tracer:
        mteb.evaluate(transformers.SentenceTransformer(model, device="cpu"), task, cache=None)
    return tracer


PROGRAMS = {"harness": evaluate_harness, "lm-eval": evaluate_lm_eval, "mteb": evaluate_mteb}


if __name__ == "__main__":
    answer, program, model, *documents = sys.argv[1:]
    traced = PROGRAMS[program](model, *(documents or [""]))
    content = {"functions": traced.functions, "types": sorted(traced.types)}
    Path(answer).write_text(json.dumps(content), encoding="utf-8")
