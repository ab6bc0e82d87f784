"""Fits the jobs of a JSON file, in as many processes as a launcher started; runs as a script, outside of pytest."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.data.records import (
    Answer,
    ClassificationExample,
    RetrievalPair,
    SpanExample,
    TaggedSentence,
    TextPair,
)
from harness.models.capabilities import FitOptions, Head, HeadSpec, TextInput, TrainingSettings
from harness_hf.description import describe, describe_seq2seq
from harness_hf.encoder.heads import open_encoder
from harness_hf.options import EncoderOptions, Seq2SeqOptions
from harness_hf.seq2seq.adapter import open_seq2seq
from harness_hf.training.checkpoint import CheckpointFolder
from harness_hf.training.loop import TrainingRun
from harness_hf.training.step import TrainingStep

SPECS = {
    "classification": HeadSpec(head=Head.CLASSIFICATION, labels=("bad", "good"), inputs=("text",)),
    "tagging": HeadSpec(head=Head.TAGGING, labels=("DET", "NOUN", "VERB")),
    "span_extraction": HeadSpec(head=Head.SPAN_EXTRACTION),
    "dual_encoder": HeadSpec(head=Head.DUAL_ENCODER),
    "text_to_text": HeadSpec(head=Head.TEXT_TO_TEXT),
}
SHARDED = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
}
"""What accelerate's launcher sets for FSDP2."""
WORDS = ("cat", "dog", "mat", "door", "red", "green", "blue", "happy", "sad", "good", "bad", "one")


def example(head: str, n: int) -> Any:
    """Return an example whose length and label depend on its number."""
    word, more = WORDS[n % len(WORDS)], " two" * (n % 5)
    if head == "classification":
        return ClassificationExample(
            id=str(n), inputs={"text": f"the {word} sat{more}"}, label=("bad", "good")[n % 3 % 2]
        )
    if head == "tagging":
        tags = ("DET", "NOUN", *["VERB"] * (1 + n % 5))
        return TaggedSentence(id=str(n), tokens=("the", word, *["sat"] * (1 + n % 5)), tags=tags)
    if head == "span_extraction":
        answer = Answer(text=word, start=4)
        return SpanExample(id=str(n), question="who", context=f"the {word} sat{more}", answers=(answer,))
    if head == "dual_encoder":
        return RetrievalPair(id=str(n), query=f"where {word}", passage=f"the {word} sat near three{more}")
    return TextPair(id=str(n), source=f"one {word}", target=f"{word} two{more}")


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Fit one job, and return what happened; the weights lie in its directory."""
    head = job["head"]
    adapter = _open(job)
    steps: list[list[int]] = []
    losses: list[float] = []
    asked: list[int] = []
    undo = _watch(job, steps, losses)

    def stopping() -> bool:
        asked.append(len(asked) + 1)
        return len(asked) == job.get("stop_at") and _rank() == job.get("rank", 0)

    options = FitOptions(
        directory=Path(job["directory"]),
        settings=TrainingSettings(**job["settings"]),
        seed=7,
        stopping=stopping,
    )
    found: dict[str, Any] = {"steps": steps, "losses": losses}
    environment = {**(SHARDED if job.get("sharded") else {}), **job.get("environment", {})}
    os.environ.update(environment)
    try:
        train = [example(head, n) for n in range(job["train"])]
        dev = [example(head, 100 + n) for n in range(job["dev"])]
        fitted = adapter.fit(train, dev, SPECS[head], options)
        record = getattr(fitted, "_record", None) or fitted._session.record
        found |= {"record": json.loads(record.model_dump_json()), "notices": list(fitted.notices())}
        found["engines"] = engines[-1] if engines else None
        if head == "classification":
            texts = [TextInput(text=example(head, n).inputs["text"]) for n in range(job.get("asked", 0))]
            found["answers"] = (
                fitted.classify(texts, SPECS[head].labels).argmax(axis=1).tolist() if texts else []
            )
    except (Exception, KeyboardInterrupt) as error:
        found["error"] = f"{type(error).__name__}: {error}"
    finally:
        undo()
        for name in environment:
            del os.environ[name]
    return found


def _open(job: dict[str, Any]) -> Any:
    if job["head"] == "text_to_text":
        given = Seq2SeqOptions(device="cpu", **job.get("options", {}))
        return open_seq2seq(describe_seq2seq(job["model"], given), given)
    options = EncoderOptions(device="cpu", **job.get("options", {}))
    return open_encoder(describe(job["model"], options), options)


engines: list[str] = []
"""What every training of this process ran on."""


def _watch(job: dict[str, Any], steps: list[list[int]], losses: list[float]) -> Callable[[], None]:
    """Record the examples and loss of every step, and do at a step what the job says; return how to undo it."""
    take, batch, inputs = TrainingRun.take_step, TrainingStep._batch, TrainingStep._inputs
    save = CheckpointFolder.save

    def watched(run: TrainingRun) -> float:
        engines.append(type(run.engine.model).__name__)
        if run.state.step == job.get("kill_at") and _rank() == job.get("rank", 0):
            os.kill(os.getpid(), signal.SIGKILL)
        steps.append(run.batches.examples(run.state.step))
        losses.append(take(run))
        return losses[-1]

    def failing(self: Any, step: int, number: int, examples: Any) -> Any:
        if _rank() == job.get("rank", 0) and step == job.get("fail_at"):
            raise RuntimeError("the cable was cut")
        return batch(self, step, number, examples)

    def limited(self: Any, step: int, one: Any) -> Any:
        if _rank() == job.get("rank", 0) and len(one.examples) > job.get("rows", len(one.examples)):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return inputs(self, step, one)

    def torn(self: Any, state: Any, weights: Any, optimizer: Any) -> None:
        if state.step == job.get("tear_at"):
            optimizer = (optimizer[0], {"never": Killing(written=1)})
        save(self, state, weights, optimizer)

    for name, value in (("_batch", failing), ("_inputs", limited)):
        setattr(TrainingStep, name, value)
    TrainingRun.take_step = watched  # type: ignore[method-assign, assignment]
    CheckpointFolder.save = torn  # type: ignore[method-assign]

    def undo() -> None:
        TrainingRun.take_step, TrainingStep._batch = take, batch  # type: ignore[method-assign]
        TrainingStep._inputs, CheckpointFolder.save = inputs, save  # type: ignore[method-assign]

    return undo


class Killing(dict[str, Any]):
    """Kills the process that writes it as JSON."""

    def items(self) -> Any:
        """Do not return."""
        os.kill(os.getpid(), signal.SIGKILL)


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))


def main(path: Path) -> None:
    """Fit all jobs of a file, and write what happened in this process next to the file."""
    from accelerate import PartialState

    torch.set_num_threads(1)
    state = PartialState(cpu=True)
    assert state.num_processes == int(os.environ.get("WORLD_SIZE", "1"))
    found = [run(job) for job in json.loads(path.read_text())]
    path.with_suffix(f".{_rank()}").write_text(json.dumps(found))
    state.wait_for_everyone()
    state.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
