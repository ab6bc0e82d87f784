"""What a step is made of, against plain torch; and trainings that are resumed, or short of memory."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from safetensors.torch import load_file
from transformers import (
    AutoModelForSequenceClassification,
    get_constant_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

from harness.data.records import ClassificationExample
from harness.errors import TrainingError, UsageError
from harness.models.capabilities import FitOptions, Head, HeadSpec, TrainingSettings
from harness_hf.loading import choose_precision
from harness_hf.training.batches import StepBatches, cut, default_parts, micro_batch_size, seed_of
from harness_hf.training.checkpoint import CheckpointFolder
from harness_hf.training.engine import Engine, learning_rate, training_device
from harness_hf.training.step import TrainingStep

from .conftest import Options, equal

pytestmark = pytest.mark.thorough

SPEC = HeadSpec(head=Head.CLASSIFICATION, labels=("bad", "good"), inputs=("text",))
WORDS = ("cat", "dog", "mat", "door", "red", "green", "blue")


def examples(count: int) -> list[ClassificationExample]:
    return [
        ClassificationExample(
            id=str(n), inputs={"text": f"the {WORDS[n % 7]}{' two' * (n % 4)}"}, label=SPEC.labels[n % 3 % 2]
        )
        for n in range(count)
    ]


def weights(options: FitOptions) -> dict[str, torch.Tensor]:
    return load_file(options.directory / "model.safetensors")


@given(
    count=st.integers(1, 60),
    batch_size=st.integers(1, 20),
    size=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
    grouped=st.booleans(),
)
def test_an_epoch_has_every_example_once(
    count: int, batch_size: int, size: int, seed: int, grouped: bool
) -> None:
    lengths = [1 + n % 5 for n in range(count)] if grouped else None
    batches = StepBatches(count, batch_size=batch_size, seed=seed, lengths=lengths)
    assert batches.per_epoch == math.ceil(count / batch_size)
    for epoch in (0, 2):
        steps = [batches.examples(epoch * batches.per_epoch + n) for n in range(batches.per_epoch)]
        assert sorted(index for step in steps for index in step) == list(range(count))
        assert all(len(step) == batch_size for step in steps[:-1])
        for step in steps:
            assert [index for part in cut(step, size) for index in part] == step
    # A step can be asked for at once, as after a kill.
    last = 3 * batches.per_epoch - 1
    again = StepBatches(count, batch_size=batch_size, seed=seed, lengths=lengths)
    assert again.examples(last) == batches.examples(last)


def test_epochs_and_seeds_differ() -> None:
    one, other = (StepBatches(50, batch_size=50, seed=seed) for seed in (1, 2))
    assert one.examples(0) != one.examples(1)
    assert one.examples(0) != other.examples(0)
    assert len({seed_of(1, step, micro) for step in range(30) for micro in range(30)}) == 900


@pytest.mark.parametrize(
    ("batch_size", "device", "processes", "expected"),
    [
        (32, "cpu", 1, 4),
        (32, "cpu", 3, 4),
        (8, "cpu", 1, 2),
        (6, "cpu", 1, 1),
        (7, "cpu", 4, 1),
        (32, "cuda", 1, 1),
        (6, "cuda", 4, 4),
    ],
)
def test_parts(batch_size: int, device: str, processes: int, expected: int) -> None:
    parts = default_parts(batch_size, torch.device(device), processes)
    assert parts == expected
    assert len(cut(range(batch_size), micro_batch_size(batch_size, 1, 10**9, parts))) <= parts


@pytest.mark.parametrize("schedule", ["linear", "constant"])
@pytest.mark.parametrize(("warmup", "share"), [(0, 0.0), (3, 0.0), (1, 0.3)])
def test_learning_rates_are_those_of_transformers(schedule: Any, warmup: int, share: float) -> None:
    settings = TrainingSettings(
        learning_rate=0.5,
        epochs=1,
        batch_size=1,
        lr_schedule=schedule,
        warmup_steps=warmup,
        warmup_share=share,
    )
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    steps = max(warmup, math.ceil(share * 10))
    make: Any = get_constant_schedule_with_warmup
    scheduler = make(optimizer, steps)
    if schedule == "linear":
        linear: Any = get_linear_schedule_with_warmup
        scheduler = linear(optimizer, steps, 10)
    expected = []
    for _ in range(10):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    rate = learning_rate(settings, 10, torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5))
    assert [rate(step) for step in range(10)] == expected


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_the_weights_are_those_of_a_plain_loop(
    with_head: Any, open_folder: Any, fit_options: Options, optimizer: Any
) -> None:
    """One example at a time through transformers, gradients averaged by hand, nothing of the harness's loop."""
    from transformers.optimization import Adafactor

    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = with_head(AutoModelForSequenceClassification, SPEC.labels, **plain)
    train = examples(11)
    options = fit_options(
        epochs=2, batch_size=4, learning_rate=1e-2, adam_epsilon=1e-4, weight_decay=0.1, optimizer=optimizer
    )
    # Padding changes the rounding of a sum, which Adafactor magnifies: one example at a time here too.
    open_folder(folder, train_parts=4).fit(train, [], SPEC, options)

    network: Any = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    tokenizer = open_folder(folder)._session.tokenizer
    decayed = [
        one for name, one in network.named_parameters() if "bias" not in name and "LayerNorm" not in name
    ]
    others = [one for name, one in network.named_parameters() if "bias" in name or "LayerNorm" in name]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    adafactor: Any = Adafactor
    reference = (
        torch.optim.AdamW(groups, lr=1e-2, eps=1e-4)
        if optimizer == "adamw"
        else adafactor(groups, lr=1e-2, scale_parameter=False, relative_step=False)
    )
    batches = StepBatches(11, batch_size=4, seed=options.seed)
    for step in range(6):
        chosen = batches.examples(step)
        for index in chosen:
            inputs = tokenizer(train[index].inputs["text"], return_tensors="pt")
            label = torch.tensor([SPEC.labels.index(str(train[index].label))])
            (network(**inputs, labels=label).loss / len(chosen)).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for group in reference.param_groups:
            group["lr"] = 1e-2 * (6 - step) / 6
        reference.step()
        reference.zero_grad()
    found = weights(options)
    for name, value in network.state_dict().items():
        if "key.bias" not in name:  # its gradient is rounding alone, which optimisers magnify
            torch.testing.assert_close(found[name], value, rtol=0, atol=2e-5, msg=name)


def without_memory(monkeypatch: pytest.MonkeyPatch, error: Exception, rows: int, at: int = 0) -> None:
    real = TrainingStep._batch

    def limited(self: Any, step: int, number: int, chosen: Any) -> Any:
        batch = real(self, step, number, chosen)
        if step >= at and len(chosen) > rows:
            raise error
        return batch

    monkeypatch.setattr(TrainingStep, "_batch", limited)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_memory_that_ends_halves_the_micro_batch(
    open_folder: Any,
    open_bert: Any,
    fit_options: Options,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    """What was done before stays; nothing but rounding and dropout changes, so a run at that size is the same."""
    small = fit_options("small", epochs=1)
    bert = open_bert(train_parts=4)
    fitted = bert.fit(examples(32), [], SPEC, small)
    assert fitted.notices() == []
    assert fitted._record.micro_batch == 2
    without_memory(monkeypatch, error, rows=3)
    halved = fit_options("halved", epochs=1)
    fitted = open_bert(train_parts=1).fit(examples(32), [], SPEC, halved)
    assert equal(weights(small), weights(halved))
    assert fitted._record.steps == 4
    (notice,) = fitted.notices()
    assert re.findall(r"\d+", notice) == ["8", "2", "8"]
    assert open_folder(halved.directory).notices() == fitted.notices()


def test_an_example_that_does_not_fit(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_memory(monkeypatch, torch.OutOfMemoryError("CUDA out of memory."), rows=0)
    with pytest.raises(
        TrainingError, match=r"too small to train on one example of \d+ pieces at a time"
    ) as caught:
        bert.fit(examples(8), [], SPEC, fit_options())
    assert "max_length" in str(caught.value.hint)


def test_memory_that_ends_in_the_optimiser(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Engine, "update", full)
    with pytest.raises(TrainingError, match="too small for the state of the optimiser 'adamw'"):
        bert.fit(examples(8), [], SPEC, fit_options())


def test_another_error_is_not_taken_for_want_of_memory(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_memory(monkeypatch, RuntimeError("mat1 and mat2 shapes cannot be multiplied"), rows=0)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        bert.fit(examples(8), [], SPEC, fit_options())


def stopped(options: FitOptions, after: int) -> FitOptions:
    """Return options that ask to stop after so many steps."""
    asked = iter(range(1, 1000))
    return FitOptions(
        directory=options.directory,
        settings=options.settings,
        seed=options.seed,
        stopping=lambda: next(asked) == after,
    )


@pytest.mark.parametrize(("optimizer", "dev"), [("adamw", 9), ("adamw", 0), ("adafactor", 0)])
@pytest.mark.parametrize("after", [1, 4, 6])
def test_a_stopped_training_goes_on_to_the_same_end(
    bert: Any, fit_options: Options, optimizer: Any, dev: int, after: int
) -> None:
    """Step 4 ends an epoch, 6 ends the training; both are measured after the stop."""
    settings = {"epochs": 1.5, "optimizer": optimizer, "weight_decay": 0.1}
    whole = fit_options("whole", **settings)
    expected = bert.fit(examples(30), examples(dev), SPEC, whole)._record
    options = fit_options("parts", **settings)
    with pytest.raises(KeyboardInterrupt):
        bert.fit(examples(30), examples(dev), SPEC, stopped(options, after))
    assert {file.name for file in options.directory.iterdir()} == {"checkpoints"}
    found = bert.fit(examples(30), examples(dev), SPEC, options)._record
    assert equal(weights(whole), weights(options))
    assert found == expected.model_copy(update={"resumed_at": (after,)})
    assert not (options.directory / "checkpoints").exists()


@pytest.mark.parametrize("damage", ["training.json", "weights.safetensors", "optimizer.safetensors", "best"])
def test_a_torn_checkpoint_is_ignored(bert: Any, fit_options: Options, damage: str) -> None:
    whole, options = fit_options("whole", eval_steps=1), fit_options("parts", eval_steps=1)
    bert.fit(examples(24), examples(9), SPEC, whole)
    with pytest.raises(KeyboardInterrupt):
        bert.fit(examples(24), examples(9), SPEC, stopped(options, 3))
    folder = options.directory / "checkpoints"
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 2
    assert names[1] == "step-00000003"
    path = folder / names[0] / "weights.safetensors" if damage == "best" else folder / names[1] / damage
    path.write_bytes(path.read_bytes()[:-7])
    found = bert.fit(examples(24), examples(9), SPEC, options)
    assert found._record.resumed_at == ()
    assert equal(weights(whole), weights(options))


def test_a_checkpoint_of_another_training_is_ignored(bert: Any, fit_options: Options) -> None:
    options = fit_options()
    with pytest.raises(KeyboardInterrupt):
        bert.fit(examples(24), [], SPEC, stopped(options, 3))
    other = fit_options(weight_decay=0.5)
    assert other.directory == options.directory
    assert bert.fit(examples(24), [], SPEC, other)._record.resumed_at == ()


def test_a_fit_that_was_killed_after_its_record_is_finished(bert: Any, fit_options: Options) -> None:
    options = fit_options()
    record = bert.fit(examples(8), [], SPEC, options)._record
    (options.directory / "checkpoints" / "step-00000001").mkdir(parents=True)
    again = bert.fit(examples(8), [], SPEC, options)
    assert again._record == record
    assert not (options.directory / "checkpoints").exists()


def test_checkpoints_come_by_the_clock(
    open_bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    real = CheckpointFolder.save

    def saving(self: Any, state: Any, *rest: Any) -> None:
        real(self, state, *rest)
        saved.append(state.step)
        content = json.loads((self._folder / f"step-{state.step:08}" / "training.json").read_text())
        assert content["state"]["step"] == state.step
        assert len(list(self._folder.iterdir())) == 1

    monkeypatch.setattr(CheckpointFolder, "save", saving)
    rare = open_bert()
    rare.fit(examples(32), [], SPEC, fit_options("rare", epochs=1))
    assert saved == []
    clock = iter(range(0, 10**6, 90))
    monkeypatch.setattr("harness_hf.training.loop.time", SimpleNamespace(monotonic=lambda: next(clock)))
    often = open_bert(train_checkpoint_minutes=2)
    often.fit(examples(32), [], SPEC, fit_options("often", epochs=1))
    assert saved == [2, 4]


def test_fp16_needs_a_gpu(open_bert: Any, fit_options: Options) -> None:
    model = open_bert(mixed_precision="fp16", device="cpu")
    with pytest.raises(TrainingError, match="fp16 needs a GPU"):
        model.fit(examples(8), [], SPEC, fit_options())


def test_bf16_trains(open_bert: Any, fit_options: Options) -> None:
    options = fit_options(epochs=1)
    model = open_bert(mixed_precision="bf16")
    record = model.fit(examples(16), examples(8), SPEC, options)._record
    assert record.best_score is not None
    assert record.fp32_from is None
    assert {value.dtype for value in weights(options).values()} == {torch.float32}
    plain = fit_options("plain", epochs=1)
    open_bert(mixed_precision="no").fit(examples(16), examples(8), SPEC, plain)
    assert not equal(weights(options), weights(plain))


class Overflowing(torch.nn.Module):
    """Adds zero; in bf16, from some call on, divides by a sum that float32 keeps apart from zero."""

    calls = 0

    def __init__(self, layer: torch.nn.Module, after: int) -> None:
        super().__init__()
        self.layer, self.after = layer, after

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(states)
        Overflowing.calls += self.training
        if Overflowing.calls <= self.after:
            return found
        one = torch.ones(1, 1)
        apart = torch.nn.functional.linear(one, one * (1 + 2**-10)) - 1  # 2^-10, and 0 in bf16
        return found + apart.float().reciprocal().mul(0).squeeze()


@pytest.mark.parametrize("after", [0, 5])
def test_what_is_not_finite_in_bf16_is_trained_in_float32(
    open_bert: Any,
    fit_options: Options,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    from harness_hf.encoder import heads

    real = heads._load

    def load(*arguments: Any) -> Any:
        network = real(*arguments)
        network.classifier = Overflowing(network.classifier, after)
        network.save_pretrained = lambda folder: bare(network).save_pretrained(folder)
        return network

    def bare(network: Any) -> Any:
        del network.save_pretrained
        network.classifier = network.classifier.layer
        return network

    monkeypatch.setattr(heads, "_load", load)
    Overflowing.calls = 0
    options = fit_options(epochs=1)
    model = open_bert(mixed_precision="bf16", train_parts=1)
    fitted = model.fit(examples(64), [], SPEC, options)
    assert fitted._record.fp32_from == after + 1
    assert fitted._record.steps == 8
    assert fitted._record.resumed_at == ()
    (notice,) = fitted.notices()
    assert re.findall(r"step (\d+)", notice) == [str(after + 1)]
    if after == 0:
        Overflowing.calls = 0
        plain = fit_options("plain", epochs=1)
        alone = open_bert(mixed_precision="no", train_parts=1)
        assert alone.fit(examples(64), [], SPEC, plain)._record.fp32_from is None
        assert equal(weights(plain), weights(options))


@pytest.mark.parametrize(
    ("configured", "option", "expected"),
    [
        (None, "auto", "no"),
        (None, "bf16", "bf16"),
        ("bf16", "auto", "bf16"),
        ("no", "bf16", "bf16"),
        ("bf16", "bf16", "bf16"),
        ("bf16", "no", None),
        ("fp8", "auto", None),
    ],
)
def test_the_precision_of_accelerates_configuration(
    monkeypatch: pytest.MonkeyPatch, configured: str | None, option: str, expected: str | None
) -> None:
    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    if configured is not None:
        monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", configured)
    if expected is not None:
        assert choose_precision(option, torch.device("cpu")) == expected
    else:
        with pytest.raises(UsageError, match=f"has mixed_precision '{configured}'"):
            choose_precision(option, torch.device("cpu"))


@pytest.mark.parametrize(
    ("environment", "match"),
    [
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "asks for DeepSpeed"),
        ({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "1"}, "the first version of FSDP"),
        ({"ACCELERATE_USE_FSDP": "true"}, "the first version of FSDP"),
    ],
)
def test_ways_of_accelerate_that_are_not_supported(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], match: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=match) as caught:
        bert.fit(examples(8), [], SPEC, fit_options())
    assert "fsdp_version: 2" in str(caught.value.hint)


def test_a_training_has_one_device() -> None:
    assert training_device(torch.device("cpu")) == torch.device("cpu")
    assert training_device(torch.device("cuda", 2)) == torch.device("cuda", 2)
    assert training_device(torch.device("cuda")) == torch.device("cuda", 0)
