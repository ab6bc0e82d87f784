"""`EvaluateLanguages` with the Trainer of transformers: what it logs, and that a training does not notice it."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

import harness
from harness.callbacks import EvaluateLanguages
from harness.errors import CapabilityError, HarnessError, UsageError
from harness_hf import callback as evaluate_languages, loaded_model
from harness_hf.encoder.classification import Classifier
from harness_hf.loaded_model import kept_state

from .conftest import CORPUS, PIECE_LIMIT, save_decoder, sizes, wordpiece

pytestmark = pytest.mark.thorough  # every test trains a model or two

LABELS = ("contradiction", "entailment", "neutral")
STEPS = 6
SETTINGS: dict[str, dict[str, Any]] = {
    "encoder": {"tasks": "xnli", "languages": ["sw", "de"]},
    "decoder": {"tasks": "xcopa", "languages": ["sw", "it"]},
}
Train = Callable[..., Trainer]


def _classifier(tokenizer: Any) -> Any:
    names = dict(enumerate(LABELS))
    config = BertConfig(
        **sizes(tokenizer, PIECE_LIMIT),
        id2label=names,
        label2id={name: place for place, name in names.items()},
    )
    return BertForSequenceClassification(config)


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """By kind: a tokenizer and what makes the untrained network."""
    encoder_tokenizer = wordpiece()
    changes = {"max_position_embeddings": 256, "attention_dropout": 0.1}
    folder = save_decoder(tmp_path_factory.mktemp("decoder"), "llama", **changes)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token, tokenizer.padding_side, tokenizer.model_max_length = "</s>", "left", 256
    return {
        "encoder": (encoder_tokenizer, lambda: _classifier(encoder_tokenizer)),
        "decoder": (tokenizer, lambda: AutoModelForCausalLM.from_pretrained(folder)),
    }


@pytest.fixture
def train(materials: dict[str, tuple[Any, Any]], tmp_path: Path) -> Train:
    """A function that trains a tiny model for a few steps and returns its trainer."""

    def run(
        kind: str,
        *,
        change: Callable[[Any], Any] = lambda network: network,
        arguments: dict[str, Any] | None = None,
        **callback: Any,
    ) -> Trainer:
        tokenizer, make = materials[kind]
        torch.manual_seed(0)
        rows = [dict(tokenizer(text, truncation=True, max_length=PIECE_LIMIT)) for text in CORPUS * 2]
        collator: Any = DataCollatorForLanguageModeling(tokenizer, mlm=False)
        if kind == "encoder":
            rows = [{**row, "labels": number % 3} for number, row in enumerate(rows)]
            collator = DataCollatorWithPadding(tokenizer)
        trainer = Trainer(
            model=change(make()),
            args=TrainingArguments(
                output_dir=str(tmp_path / "training"),
                max_steps=STEPS,
                logging_steps=1,
                per_device_train_batch_size=4,
                learning_rate=5e-3,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
                **(arguments or {}),
            ),
            train_dataset=rows,
            data_collator=collator,
            processing_class=tokenizer,
        )
        if callback:
            given = {**SETTINGS[kind], "every": 2, "limit": 12, "data": "sample", **callback}
            trainer.add_callback(EvaluateLanguages(trainer, **given))
        trainer.train()
        return trainer

    return run


def _losses(trainer: Trainer) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def _weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    assert trainer.model is not None
    return dict(trainer.model.state_dict())


def _evaluations(trainer: Trainer) -> list[dict[str, float]]:
    return [entry for entry in trainer.state.log_history if "eval_languages/seconds" in entry]


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_training_is_the_same_to_the_bit(kind: str, train: Train, tmp_path: Path) -> None:
    alone, watched = train(kind), train(kind, output=tmp_path / "runs")
    assert len(_evaluations(watched)) == 1 + STEPS // 2
    assert _losses(watched) == _losses(alone)
    assert len(_losses(alone)) == STEPS
    before, after = _weights(alone), _weights(watched)
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.filterwarnings("ignore:.gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize(
    "arguments",
    [{"bf16": True}, {"gradient_checkpointing": True}, {"gradient_accumulation_steps": 2}],
    ids=str,
)
@pytest.mark.parametrize("kind", SETTINGS)
def test_so_it_is_with_other_arguments(
    kind: str, arguments: dict[str, Any], train: Train, tmp_path: Path
) -> None:
    alone = train(kind, arguments=arguments)
    watched = train(kind, arguments=arguments, output=tmp_path / "runs", raise_errors=True)
    assert _evaluations(watched)
    assert _losses(watched) == _losses(alone)


@pytest.mark.parametrize("kept", [True, False])
def test_an_evaluation_that_draws_numbers_is_noticed_where_nothing_is_put_back(
    kept: bool, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(callback: EvaluateLanguages, step: int) -> Any:
        torch.rand(step + 1)
        return original(callback, step)

    alone, original = train("encoder"), EvaluateLanguages._run
    monkeypatch.setattr(EvaluateLanguages, "_run", run)
    if not kept:
        monkeypatch.setattr(evaluate_languages, "kept_state", lambda network: nullcontext())
    assert (_losses(train("encoder", output=tmp_path / "runs")) == _losses(alone)) is kept


@pytest.mark.parametrize("kind", SETTINGS)
def test_scores_are_those_of_the_saved_model(kind: str, train: Train, tmp_path: Path) -> None:
    trainer = train(kind, output=tmp_path / "runs")
    saved = tmp_path / "saved"
    trainer.save_model(str(saved))
    settings: dict[str, Any] = {**SETTINGS[kind], "data": "sample", "limit": 12, "output": tmp_path / "after"}
    run = harness.evaluate(
        model=f"hf:{saved}", options={"device": "cpu"}, protocols=("frozen", "prompted"), **settings
    )
    last = harness.load(tmp_path / "runs" / f"step-{STEPS:06}")
    assert last.items().column("answer") == run.items().column("answer")
    logged = _evaluations(trainer)[-1]
    scored = [cell for cell in run.cells if cell.is_scored]
    assert len(scored) == 2
    for cell in scored:
        assert logged[f"eval_{cell.task}/{cell.language}"] == next(iter(cell.metrics.values())).value


def test_changes_are_paired_with_the_evaluation_before(train: Train, tmp_path: Path) -> None:
    trainer = train("decoder", output=tmp_path / "runs")
    entries = _evaluations(trainer)
    assert [entry["step"] for entry in entries] == [0, 2, 4, 6]
    assert not any("change" in name for name in entries[0])
    moved = 0
    for before, after in itertools.pairwise(entries):
        for place in ("sw", "it", "mean"):
            key = f"eval_xcopa/{place}"
            assert after[f"{key}_change"] == pytest.approx(after[key] - before[key])
            if f"{key}_change_low" in after:
                moved += 1
                assert after[f"{key}_change_low"] <= after[f"{key}_change"] <= after[f"{key}_change_high"]
    assert moved
    ids = [harness.load(folder).items().column("id") for folder in sorted((tmp_path / "runs").iterdir())]
    assert all(column == ids[0] for column in ids)


class _Recorder(TrainerCallback):
    def __init__(self) -> None:
        self.logs: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **objects: Any) -> None:
        self.logs.append(dict(logs))


def test_all_loggers_get_the_scores_next_to_the_losses(train: Train, tmp_path: Path) -> None:
    recorder = _Recorder()
    trainer = train("encoder", arguments=None, output=tmp_path / "runs", at_start=False)
    trainer.add_callback(recorder)
    trainer.train()
    assert sum("eval_xnli/sw" in logs for logs in recorder.logs) == STEPS // 2
    assert sum("loss" in logs for logs in recorder.logs) == STEPS
    names = {folder.name for folder in (tmp_path / "runs").iterdir()}
    assert {"step-000002", "step-000002-2"} <= names


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft reads it
def test_low_rank_matrices_are_part_of_the_model(train: Train, tmp_path: Path) -> None:
    def adapted(network: Any) -> Any:
        return get_peft_model(network, LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2))

    alone = train("decoder", change=adapted)
    watched = train("decoder", change=adapted, output=tmp_path / "runs", raise_errors=True)
    assert _losses(watched) == _losses(alone)
    assert len(_evaluations(watched)) == 4


def test_a_failed_evaluation_warns_and_the_training_goes_on(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = train("encoder")

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(loaded_model, "LoadedEncoder", fail)
    with pytest.warns(RuntimeWarning) as caught:
        trainer = train("encoder", output=tmp_path / "runs", every=STEPS + 1)
    assert [f"step {step} " in str(caught[number].message) for number, step in enumerate((0, STEPS))] == [
        True
    ] * 2
    assert _losses(trainer) == _losses(alone)
    assert _evaluations(trainer) == []
    with pytest.raises(RuntimeError):
        train("encoder", output=tmp_path / "others", raise_errors=True)


def test_a_failed_cell_is_named(train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no scores")

    monkeypatch.setattr(Classifier, "procedure", fail)
    with pytest.warns(RuntimeWarning, match="xnli (sw|de)"):
        trainer = train("encoder", output=tmp_path / "runs")
    assert all("eval_xnli/sw" not in entry for entry in trainer.state.log_history)
    with pytest.raises(HarnessError):
        train("encoder", output=tmp_path / "others", raise_errors=True)


def test_what_cannot_be_evaluated_is_said_before_the_first_step(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="with_baselines"):
        train("encoder", with_baselines=True)
    with pytest.raises(HarnessError):
        train("encoder", tasks="xnil", output=tmp_path / "a")
    with pytest.raises(CapabilityError):
        train("encoder", tasks="xcopa", languages=["it"], output=tmp_path / "b")
    with pytest.raises(UsageError, match="device"):
        train("encoder", options={"device": "cpu"}, output=tmp_path / "c")
    with pytest.raises(UsageError, match="2 ways"):
        train("decoder", prompt=["default", "letters"], output=tmp_path / "d")
    monkeypatch.setattr(evaluate_languages, "is_deepspeed_zero3_enabled", lambda: True)
    with pytest.raises(UsageError, match="harness watch"):
        train("encoder", output=tmp_path / "e")


@pytest.fixture
def tagger() -> Iterator[Any]:
    """A network in training mode with gradients, and its inner parts frozen in part."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
    )
    network: Any = BertForTokenClassification(config).train()
    network.bert.embeddings.requires_grad_(False)
    network.bert.encoder.layer[0].eval()
    network(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([[0, 1, 0]])).loss.backward()
    yield network


def test_the_state_of_a_training_is_put_back(tagger: Any) -> None:
    modes = {name: module.training for name, module in tagger.named_modules()}
    frozen = {name: parameter.requires_grad for name, parameter in tagger.named_parameters()}
    gradients = {name: parameter.grad for name, parameter in tagger.named_parameters()}
    buffers, settings = dict(tagger.bert.embeddings.named_buffers()), tagger.config.to_dict()
    drawn = []
    for seeded in (False, True):
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        if seeded:
            with pytest.raises(RuntimeError, match="stopped"), kept_state(tagger):
                tagger.eval().requires_grad_(True)
                tagger.zero_grad()
                tagger.config.id2label, tagger.config.use_cache = {0: "other"}, False
                tagger.bert.embeddings.position_ids = torch.zeros(1, 2)
                tagger.classifier.register_forward_hook(lambda *_: None)
                tagger.new_attribute = 3
                random.random(), np.random.rand(), torch.rand(3)
                raise RuntimeError("stopped")
        drawn.append((random.random(), np.random.rand(), torch.rand(3).tolist()))
    assert drawn[0] == drawn[1]
    assert {name: module.training for name, module in tagger.named_modules()} == modes
    assert {name: parameter.requires_grad for name, parameter in tagger.named_parameters()} == frozen
    assert all(parameter.grad is gradients[name] for name, parameter in tagger.named_parameters())
    after = dict(tagger.bert.embeddings.named_buffers())
    assert all(after[name] is buffers[name] for name in buffers)
    assert tagger.config.to_dict() == settings
    assert not tagger.classifier._forward_hooks
    assert not hasattr(tagger, "new_attribute")


def test_the_tokenizer_is_not_touched(
    train: Train, materials: dict[str, tuple[Any, Any]], tmp_path: Path
) -> None:
    tokenizer, _ = materials["decoder"]
    train("decoder", output=tmp_path / "runs")
    assert (tokenizer.padding_side, tokenizer.pad_token, tokenizer.model_max_length) == ("left", "</s>", 256)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tokenizer(["a", "a b c"], padding=True)["input_ids"][0]) > 1
