"""lm-evaluation-harness as the other side of the decoder benchmarks: a program that its own Python runs.

``python benchmarks/lm_eval_peer.py ANSWER`` reads one job as JSON on standard input and writes the answer to the file
ANSWER; `ask` starts it. Tasks are lm-eval's own files with our documents in place of the download. Jobs:
``evaluate`` scores tasks with `simple_evaluate`, ``build`` makes the requests of a task, ``rank`` scores given ones,
``write`` answers given prompts.
"""

from __future__ import annotations

import importlib
import json
import re
import string
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

FILES = {"xnli": "xnli/xnli_{0}.yaml", "xcopa": "xcopa/default_{0}.yaml", "xquad": "xquad/xquad_{0}.yaml"}
MEGABYTE = 10**6


def ask(python: str, job: dict[str, Any]) -> Any:
    """Return lm-eval's answer to a job; raises `RuntimeError` with the end of its output where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        done = subprocess.run(
            [python, __file__, str(answer)],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"lm-eval failed: {done.stderr[-2000:]}")
        return json.loads(answer.read_text(encoding="utf-8"))


def main() -> None:
    """Do the job on standard input."""
    job = json.load(sys.stdin)
    answer = {"evaluate": evaluate, "build": build, "rank": rank, "write": write}[job["job"]](job)
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")


def evaluate(job: dict[str, Any]) -> dict[str, Any]:
    """Return by task: what the metrics gave, the answers of every item, and the seconds of the model's part."""
    evaluator: Any = importlib.import_module("lm_eval.evaluator")
    model = _model(job)
    seconds: dict[str, list[float]] = {}
    for name in ("loglikelihood", "generate_until"):
        setattr(model, name, timed(getattr(model, name), seconds))
    answers = {}
    for family, given in job["documents"].items():
        task = _task(family, given, job.get("max_tokens"))
        seconds.clear()
        results = evaluator.simple_evaluate(model=model, tasks=[task], bootstrap_iters=0)
        [(name, samples)] = results["samples"].items()
        answers[family] = {
            "metrics": results["results"][name],
            "answers": [sample["resps"] for sample in sorted(samples, key=lambda one: one["doc_id"])],
            "seconds": next(iter(seconds.values())),
        }
    return answers


def build(job: dict[str, Any]) -> dict[str, Any]:
    """Return how many requests a task makes of its documents, and the seconds."""
    task = _task(job["family"], job["given"], None)
    seconds: dict[str, list[float]] = {}
    timed(task.build_all_requests, seconds)()
    return {"requests": len(task.instances), "seconds": seconds["build_all_requests"]}


def rank(job: dict[str, Any]) -> dict[str, Any]:
    """Return the sums of given requests, the seconds, and the memory in MB before and at most."""
    instance: Any = importlib.import_module("lm_eval.api.instance")
    model = _model(job)
    ready = resident_memory()
    requests = [
        instance.Instance(request_type="loglikelihood", doc={}, arguments=tuple(pair), idx=0)
        for pair in job["requests"]
    ]
    seconds: dict[str, list[float]] = {}
    answers = timed(model.loglikelihood, seconds)(requests)
    peak = peak_memory()
    sums = [total for total, _ in answers]
    return {"sums": sums, "seconds": seconds["loglikelihood"], "ready": ready, "peak": peak}


def write(job: dict[str, Any]) -> dict[str, Any]:
    """Return the texts after given prompts, each with its options, and the seconds."""
    instance: Any = importlib.import_module("lm_eval.api.instance")
    model = _model(job)
    requests = [
        instance.Instance(request_type="generate_until", doc={}, arguments=tuple(pair), idx=0)
        for pair in job["requests"]
    ]
    seconds: dict[str, list[float]] = {}
    texts = timed(model.generate_until, seconds)(requests)
    return {"texts": texts, "seconds": seconds["generate_until"]}


def _model(job: dict[str, Any]) -> Any:
    if "url" in job:
        completions: Any = importlib.import_module("lm_eval.models.openai_completions")
        return completions.LocalCompletionsAPI(
            model=job["served"],
            base_url=f"{job['url']}/completions",
            tokenizer=job["model"],
            tokenizer_backend="huggingface",
            num_concurrent=job["concurrency"],
            batch_size=job["batch_size"],
        )
    huggingface: Any = importlib.import_module("lm_eval.models.huggingface")
    importlib.import_module("torch").set_num_threads(job["threads"])
    return huggingface.HFLM(
        pretrained=job["model"], dtype="float32", device="cpu", batch_size=job["batch_size"]
    )


def _task(family: str, given: dict[str, Any], max_tokens: int | None) -> Any:
    """Return lm-eval's task with our documents; shorter answers where `max_tokens` says so."""
    datasets: Any = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    parent: Any = importlib.import_module("lm_eval.api.task").ConfigurableTask
    # Between versions the loader of task files moved.
    loader: Any = importlib.import_module("lm_eval.tasks._yaml_loader")
    root = Path(importlib.import_module("lm_eval").__file__ or "").parent / "tasks"
    # The scorer of its XQuAD cannot be imported with transformers 5; `_squad_scores` replaces it.
    path = root / FILES[family].format(given["language"])
    config = loader.load_yaml(path, resolve_func=family != "xquad")
    if family == "xquad":
        config["process_results"] = _squad_scores
        config["generation_kwargs"] = {**config["generation_kwargs"], "max_gen_toks": max_tokens}
    documents = datasets.Dataset.from_list(given["documents"])

    class Local(parent):  # type: ignore[misc]
        def download(self, *_: Any, **__: Any) -> None:
            self.dataset = dict.fromkeys(("train", "validation", "test"), documents)

    return Local(config=config)


def _squad_scores(document: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Return F1 and exact match with the first answer, as transformers 4 ``data/metrics/squad_metrics.py`` has them."""
    gold, predicted = _tokens(document["answers"]["text"][0]), _tokens(results[0])
    same = sum((Counter(gold) & Counter(predicted)).values())
    if not gold or not predicted:
        f1 = float(gold == predicted)
    else:
        f1 = 2 * same / (len(gold) + len(predicted))
    return {"f1": f1, "exact_match": float(gold == predicted)}


def _tokens(text: str) -> list[str]:
    plain = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def timed(work: Any, seconds: dict[str, list[float]]) -> Any:
    """Return `work` so that its CPU and wall seconds are kept under its name."""

    def run(*arguments: Any, **options: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return work(*arguments, **options)
        finally:
            seconds[work.__name__] = [time.process_time() - cpu, time.perf_counter() - wall]

    return run


def resident_memory() -> float:
    """Return the memory of this process in MB."""
    return _memory("VmRSS")


def peak_memory() -> float:
    """Return the most memory that this process had, in MB; `getrusage` would count the parent's before the start."""
    return _memory("VmHWM")


def _memory(name: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(rf"{name}:\s+(\d+)", status)[0]) * 1024 / MEGABYTE


if __name__ == "__main__":
    main()
