from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.data.records import Answer, ClassificationExample, SpanExample, TaggedSentence
from harness.errors import TrainingError
from harness.models.capabilities import Classifies, Head, HeadSpec, SpanQuestion, Tags, TextInput
from harness.models.requests import HasTrainingLoss
from harness.progress import Progress
from harness_hf.training import loop
from harness_hf.training.batches import micro_batch_size
from harness_hf.training.step import SummedStep

from .conftest import Options, equal, script_scores, weights

pytestmark = pytest.mark.thorough

SPEC = HeadSpec(head=Head.CLASSIFICATION, labels=("bad", "good"), inputs=("text",))


def examples(count: int) -> list[ClassificationExample]:
    texts = ["the good cat", "a bad dog sat near the door", "happy good", "sad bad mat"]
    return [
        ClassificationExample(
            id=str(number),
            inputs={"text": texts[number % 4] + " two" * (number % 7)},
            label=SPEC.labels[1 - number % 2],
        )
        for number in range(count)
    ]


def test_the_folder_holds_the_model_and_nothing_else(bert: Any, fit_options: Options) -> None:
    options = fit_options()
    bert.fit(examples(16), examples(8), SPEC, options)
    names = {file.name for file in options.directory.iterdir()}
    assert names == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "harness_fit.json",
    }
    record = json.loads((options.directory / "harness_fit.json").read_text())
    assert record["labels"] == ["bad", "good"]
    assert record["steps"] == 6
    assert record["metric"] == "accuracy"
    assert 0 <= record["best_score"] <= 1
    assert record["base"] == dict(bert.identity())
    with pytest.raises(TrainingError, match="already holds a fitted model"):
        bert.fit(examples(16), [], SPEC, options)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_does_not_look_finished(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    options = fit_options(eval_steps=1)
    real = loop.TrainingRun.take_step

    def interrupted(run: loop.TrainingRun) -> float:
        if run.state.step == 2:
            raise error
        return real(run)

    monkeypatch.setattr(loop.TrainingRun, "take_step", interrupted)
    with pytest.raises(error):
        bert.fit(examples(32), examples(8), SPEC, options)
    assert {file.name for file in options.directory.iterdir()} == {"checkpoints"}
    monkeypatch.undo()
    fitted = bert.fit(examples(32), examples(8), SPEC, options)
    assert fitted._record.resumed_at == (2,)
    assert isinstance(fitted, Classifies)
    assert not (options.directory / "checkpoints").exists()


def test_a_failure_while_saving_does_not_look_finished(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(type(bert._session.tokenizer), "save_pretrained", full)
    options = fit_options(epochs=1)
    with pytest.raises(OSError, match="No space"):
        bert.fit(examples(16), [], SPEC, options)
    assert not (options.directory / "harness_fit.json").exists()


def test_a_loss_that_is_not_finite_stops(bert: Any, fit_options: Options) -> None:
    with torch.no_grad():
        bert._session.network.get_input_embeddings().weight.fill_(float("nan"))
    folder = fit_options("poisoned").directory
    bert._session.network.save_pretrained(folder)
    bert._session.tokenizer.save_pretrained(folder)
    bert._session.folder = folder
    with pytest.raises(TrainingError, match=r"loss became nan at step 1 with learning rate 0\.005"):
        bert.fit(examples(16), [], SPEC, fit_options())


def test_weights_that_are_not_finite_are_not_saved(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.TrainingRun.take_step

    def poisoned(run: loop.TrainingRun) -> float:
        loss = real(run)
        if run.state.step == run.total:
            with torch.no_grad():
                run.network.classifier.bias.fill_(float("inf"))
        return loss

    monkeypatch.setattr(loop.TrainingRun, "take_step", poisoned)
    options = fit_options()
    with pytest.raises(TrainingError, match=r"'classifier\.bias' is not finite after training"):
        bert.fit(examples(16), [], SPEC, options)
    assert not options.directory.joinpath("harness_fit.json").exists()


def test_the_best_checkpoint_is_kept(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dev score is made to be best after the second of four evaluations."""
    states = script_scores(monkeypatch, (0.5, 0.9, 0.9, 0.1))
    fitted = bert.fit(examples(32), examples(8), SPEC, fit_options(eval_steps=2, epochs=2))
    assert len(states) == 4
    assert equal(weights(fitted), states[1])
    assert fitted._record.best_score == 0.9


def test_without_a_dev_set_or_selection_the_last_checkpoint_is_kept(bert: Any, fit_options: Options) -> None:
    last = bert.fit(examples(32), [], SPEC, fit_options("last"))
    unselected = bert.fit(examples(32), examples(8), SPEC, fit_options("unselected", select_best=False))
    assert last._record.best_score is None
    assert unselected._record.best_score is None
    assert equal(weights(last), weights(unselected))


def test_batches_of_like_length_pad_less_and_are_the_same_every_time(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[list[int]] = []
    real = SummedStep._backward

    def recording(self: Any, batch: Any, own: int, total: int) -> Any:
        batches.append(batch["attention_mask"].sum(dim=1).tolist())
        return real(self, batch, own, total)

    monkeypatch.setattr(SummedStep, "_backward", recording)
    first = weights(bert.fit(examples(320), [], SPEC, fit_options("a", epochs=1, group_by_length=True)))
    grouped = list(batches)
    second = weights(bert.fit(examples(320), [], SPEC, fit_options("b", epochs=1, group_by_length=True)))
    assert equal(first, second)
    batches.clear()
    bert.fit(examples(320), [], SPEC, fit_options("c", epochs=1))

    def padding(chosen: list[list[int]]) -> int:
        return sum(max(batch) * len(batch) - sum(batch) for batch in chosen)

    assert sorted(chain(*grouped)) == sorted(chain(*batches))
    assert padding(grouped) < padding(batches) / 2


def test_training_that_ends_at_its_starting_loss_says_so(bert: Any, fit_options: Options) -> None:
    still = bert.fit(examples(24), [], SPEC, fit_options("still", max_steps=12, learning_rate=1e-12))
    moved = bert.fit(examples(24), [], SPEC, fit_options("moved", max_steps=60, learning_rate=5e-3))
    assert isinstance(still, HasTrainingLoss)
    unchanged, changed = still.training_loss(), moved.training_loss()
    assert unchanged is not None
    assert changed is not None
    assert unchanged["last"] == pytest.approx(unchanged["first"], rel=0.05)
    assert (unchanged["steps"], changed["steps"]) == (12, 60)
    assert changed["last"] < changed["first"]


def test_frozen_embeddings_stay(bert: Any, fit_options: Options) -> None:
    before = weights(bert)
    frozen = weights(bert.fit(examples(24), [], SPEC, fit_options("frozen", freeze_embeddings=True)))
    free = weights(bert.fit(examples(24), [], SPEC, fit_options("free")))
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(frozen["bert." + name], before[name])
    assert not torch.equal(free["bert." + name], before[name])
    layer = "encoder.layer.0.output.dense.weight"
    assert not torch.equal(frozen["bert." + layer], before[layer])


def without_dropout(bert: Any, folder: Path) -> None:
    """Save a BERT so that it is trained without dropout."""
    config = bert._session.network.config
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    bert._session.network.save_pretrained(folder)
    bert._session.tokenizer.save_pretrained(folder)


def tagged(count: int, extra: int = 1) -> list[TaggedSentence]:
    return [
        TaggedSentence(
            id=str(number),
            tokens=("the", "cat", "sat", *["sat"] * (number % extra)),
            tags=("DET", "NOUN", "VERB", *["VERB"] * (number % extra)),
        )
        for number in range(count)
    ]


def spans(count: int) -> list[SpanExample]:
    """Spans in contexts of the same pieces: the library's loss runs its softmax over padding too."""
    return [
        SpanExample(
            id=str(n),
            question="who",
            context="the cat sat",
            answers=((Answer(text="cat", start=4), Answer(text="sat", start=8))[n % 2],),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("spec", "train"),
    [
        (SPEC, examples(32)),
        (HeadSpec(head=Head.TAGGING, labels=("DET", "NOUN", "VERB")), tagged(32, extra=4)),
        (HeadSpec(head=Head.SPAN_EXTRACTION), spans(32)),
    ],
)
def test_accumulated_gradients_are_those_of_the_batch(
    bert: Any, fit_options: Options, open_folder: Any, tmp_path: Path, spec: HeadSpec, train: list[Any]
) -> None:
    """Two sequences at a time give what sixteen at once give, also where they have targets of many lengths."""
    without_dropout(bert, tmp_path / "plain")
    # A large epsilon makes the step of AdamW proportional to the gradient, and nothing clips it.
    step = {"learning_rate": 1.0, "adam_epsilon": 10.0, "max_grad_norm": 1e9, "max_steps": 1}
    whole, parts = (
        open_folder(tmp_path / "plain", **how).fit(
            train, [], spec, fit_options(str(how), batch_size=16, **step)
        )
        for how in ({"train_parts": 1}, {"train_batch_tokens": 3 * 32})
    )
    assert whole._record.steps == parts._record.steps == 1
    assert (whole._record.micro_batch, parts._record.micro_batch) == (16, 2)
    left, right = weights(whole), weights(parts)
    name = "encoder.layer.3.output.dense.weight"
    moved = left[f"bert.{name}"] - weights(bert)[name]
    scale = float(moved.abs().max())
    assert scale > 1e-6
    torch.testing.assert_close(
        (right[f"bert.{name}"] - weights(bert)[name]) / scale, moved / scale, rtol=0, atol=1e-3
    )


@pytest.mark.parametrize(
    ("batch", "pieces", "budget", "parts", "expected"),
    [
        (32, 128, 8192, 1, 32),
        (32, 128, 8192, 4, 8),
        (32, 384, 8192, 1, 16),
        (32, 384, 8192, 3, 11),
        (6, 100, 400, 1, 3),
        (6, 100, 400, 2, 3),
        (7, 100, 600, 1, 1),
        (8, 9999, 10, 4, 1),
    ],
)
def test_the_size_of_a_micro_batch(batch: int, pieces: int, budget: int, parts: int, expected: int) -> None:
    assert micro_batch_size(batch, pieces, budget, parts) == expected


def test_a_second_stage_keeps_the_head_only_where_labels_agree(bert: Any, fit_options: Options) -> None:
    first = bert.fit(examples(24), [], SPEC, fit_options("first"))
    before = weights(first)
    still = {"learning_rate": 1e-12, "epochs": 1}
    same = weights(first.fit(examples(8), [], SPEC, fit_options("same", **still)))
    for name, value in before.items():
        torch.testing.assert_close(same[name], value, atol=1e-6, rtol=0)
    turned = replace(SPEC, labels=("good", "bad"))
    other = weights(first.fit(examples(8), [], turned, fit_options("other", **still)))
    layer = "bert.encoder.layer.3.output.dense.weight"
    torch.testing.assert_close(other[layer], before[layer])
    assert not torch.allclose(other["classifier.weight"], before["classifier.weight"], atol=1e-3)
    assert float(other["classifier.weight"].abs().max()) < 0.2
    more = replace(SPEC, labels=("bad", "good", "neither"))
    second = first.fit(examples(16), [], more, fit_options("second", epochs=1))
    assert second.classify([TextInput(text="x")], more.labels).shape == (1, 3)


def test_a_second_stage_with_another_head(bert: Any, fit_options: Options) -> None:
    spans_first = bert.fit(spans(16), [], HeadSpec(head=Head.SPAN_EXTRACTION), fit_options("spans"))
    (answer,) = spans_first.extract_spans([SpanQuestion(id="1", question="who", context="the cat sat")])
    assert answer.text
    tagger = spans_first.fit(
        tagged(16), [], HeadSpec(head=Head.TAGGING, labels=("DET", "NOUN", "VERB")), fit_options("tags")
    )
    assert isinstance(tagger, Tags)
    assert not hasattr(tagger, "extract_spans")
    assert [len(row) for row in tagger.tag([["the", "cat"]])] == [2]
    vectors = spans_first.embed(["the cat"], side="query")
    assert not np.allclose(vectors, bert.embed(["the cat"], side="query"), atol=1e-3)


class Steps(Progress):
    """Keeps what training reports."""

    def __init__(self) -> None:
        self.reported: list[Any] = []

    def start(self, title: str, total: int, unit: str, done: int = 0) -> None:
        self.reported.append((total, unit, done))

    def advance(self, count: int) -> None:
        self.reported.append(count)

    def status(self, message: str) -> None:
        self.reported.append(message)

    def finish(self) -> None:
        self.reported.append("finish")


def test_steps_and_scores_on_the_dev_set_are_reported(bert: Any, fit_options: Options) -> None:
    progress = Steps()
    options = replace(fit_options(epochs=2), progress=progress)
    fitted = bert.fit(examples(16), examples(8), SPEC, options)
    best = f"accuracy {100 * fitted._record.best_score:.1f}"
    (head, *steps, last), scores = progress.reported, [2, 5]
    assert (head, last) == ((4, "steps", 0), "finish")
    assert [step for number, step in enumerate(steps) if number not in scores] == [1, 1, 1, 1]
    assert [steps[number].partition(" on ")[2] for number in scores] == [
        "the dev set after 2 steps",
        "the dev set after 4 steps",
    ]
    assert best in {steps[number].partition(" on ")[0] for number in scores}


def test_a_resumed_fit_reports_the_steps_that_are_left(
    bert: Any, fit_options: Options, capfd: pytest.CaptureFixture[str]
) -> None:
    progress = Steps()
    options = replace(
        fit_options(eval_steps=1), progress=progress, stopping=lambda: len(progress.reported) > 3
    )
    with pytest.raises(KeyboardInterrupt):
        bert.fit(examples(16), examples(8), SPEC, options)
    taken = progress.reported.count(1)
    assert 0 < taken < 6
    assert progress.reported[-1] == "finish"
    progress.reported.clear()
    bert.fit(examples(16), examples(8), SPEC, replace(options, stopping=lambda: False))
    assert progress.reported[0] == (6, "steps", taken)
    assert progress.reported.count(1) == 6 - taken
    captured = capfd.readouterr()
    assert captured.out == captured.err == "", "nothing is written past the progress"


def test_limits_of_steps_evaluations_and_lengths(bert: Any, fit_options: Options) -> None:
    options = fit_options(max_steps=3, eval_steps=100, max_length=4096)
    fitted = bert.fit(examples(16), examples(8), SPEC, options)
    assert (fitted._record.steps, fitted._record.max_length) == (3, 64)
    assert fitted._record.best_score is not None, "a short run is evaluated once"
    assert fitted.classify([TextInput(text="cat " * 500)], SPEC.labels).shape == (1, 2)


def test_what_the_folder_says_about_embedding_is_kept(
    fit_options: Options, folders: dict[str, Path], open_folder: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "declared"
    shutil.copytree(folders["bert"], folder)
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "yes "}}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    fitted = open_folder(folder).fit(examples(16), [], SPEC, fit_options(epochs=1))
    assert fitted._session.sentence_files == open_folder(folder)._session.sentence_files
    assert fitted._session.sentence_files.pooling == ("cls",)
