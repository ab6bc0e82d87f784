"""Linear heads of our own: on encoders for which transformers has no class, and on decoders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    BertForQuestionAnswering,
    BertForTokenClassification,
    BertModel,
    LlamaForSequenceClassification,
    LlamaModel,
)

from harness.errors import AdapterError, TrainingError
from harness.models.capabilities import Choice, Head, HeadSpec, SpanQuestion, TextInput
from harness.testing.examples import head_spec, training_examples
from harness_hf.causal.heads import DecoderSession
from harness_hf.fit_record import HEAD_NAME
from harness_hf.heads import HeadedNetwork

from .conftest import Open, Options, decoder_tokenizer, unigram

pytestmark = pytest.mark.thorough

SMALL: Mapping[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 66,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}
ENCODERS: Mapping[str, Mapping[str, Any]] = {
    "bert": SMALL,
    "xlm-roberta": SMALL,
    "deberta": SMALL,
    "eurobert": GROUPED,
    "nomic_bert": SMALL,
}
DECODERS: Mapping[str, Mapping[str, Any]] = {
    "llama": GROUPED,
    "qwen3": GROUPED,
    "gemma": GROUPED,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
}
HEADS = (Head.CLASSIFICATION, Head.TAGGING, Head.SPAN_EXTRACTION, Head.MULTIPLE_CHOICE)


def save_tiny(folder: Path, model_type: str) -> Path:
    """Save a random bare model of a type with a tokenizer of its sort."""
    begins = model_type != "gpt2"
    tokenizer = decoder_tokenizer(begins=begins) if model_type in DECODERS else unigram()
    sizes = {**DECODERS, **ENCODERS}[model_type]
    given = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id or 0, **sizes}
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, bos_token_id=0, eos_token_id=1 if begins else 0, **given)
    make: Any = AutoModelForCausalLM if model_type in DECODERS else AutoModel
    make.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def answers(model: Any, head: Head) -> Any:
    """Return what a fitted model answers to some requests."""
    if head is Head.CLASSIFICATION:
        asked = [
            TextInput(text="The cat sat", text_pair="the dog slept"),
            TextInput(text="good", text_pair=""),
        ]
        return model.classify(asked, head_spec(head).labels).tolist()
    if head is Head.TAGGING:
        return model.tag([["The", "cat", "sat"], ["Der", "Hund"]])
    if head is Head.SPAN_EXTRACTION:
        context = "The cat sat on the warm mat, and the dog slept near the door."
        return model.extract_spans([SpanQuestion(id="1", question="Who slept?", context=context)])
    return model.choose([Choice(context="The cat", choices=("sat", "slept near"))])


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.value)
@pytest.mark.parametrize("model_type", [*ENCODERS, *DECODERS])
def test_every_family_is_fitted_and_read_back(
    model_type: str, head: Head, tmp_path: Path, open_folder: Open, open_decoder: Open, fit_options: Options
) -> None:
    folder = save_tiny(tmp_path / model_type, model_type)
    model = (open_decoder if model_type in DECODERS else open_folder)(folder)
    examples, options = training_examples(head), fit_options(epochs=1, max_query_length=16)
    fitted = model.fit(examples, examples[:4], head_spec(head), options)
    again = (open_decoder if model_type in DECODERS else open_folder)(options.directory)
    assert type(again) is type(fitted)
    assert again.identity() == fitted.identity()
    assert answers(again, head) == answers(fitted, head)
    assert not list(options.directory.glob("*.bin"))


def copied(network: HeadedNetwork, layer: Any) -> HeadedNetwork:
    with torch.no_grad():
        network.head.weight.copy_(layer.weight)
        network.head.bias.copy_(torch.zeros(1) if layer.bias is None else layer.bias)
    return network.eval()


IDS = torch.tensor([[0, 7, 8, 9, 10], [0, 11, 12, 1, 1]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def test_logits_and_losses_are_those_of_transformers_classes(folders: dict[str, Path]) -> None:
    tags: Any = BertForTokenClassification.from_pretrained(folders["bert"], num_labels=3)
    tags.eval()
    spec = HeadSpec(head=Head.TAGGING, labels=("a", "b", "c"))
    own = copied(HeadedNetwork.of(tags.bert, spec, "cls"), tags.classifier)
    labels = torch.tensor([[-100, 0, 1, 2, -100], [-100, 1, -100, -100, -100]])
    given = {"input_ids": IDS, "attention_mask": MASK}
    expected, found = tags(**given, labels=labels), own(**given, labels=labels)
    assert torch.allclose(found.logits, expected.logits, atol=1e-6)
    assert found.loss.item() == pytest.approx(expected.loss.item(), abs=1e-6)
    spans: Any = BertForQuestionAnswering.from_pretrained(folders["bert"])
    spans.eval()
    own = copied(HeadedNetwork.of(spans.bert, HeadSpec(head=Head.SPAN_EXTRACTION), "cls"), spans.qa_outputs)
    targets = {"start_positions": torch.tensor([1, 2]), "end_positions": torch.tensor([3, 2])}
    expected, found = spans(**given, **targets), own(**given, **targets)
    assert torch.allclose(found.start_logits, expected.start_logits, atol=1e-6)
    assert torch.allclose(found.end_logits, expected.end_logits, atol=1e-6)
    assert found.loss.item() == pytest.approx(expected.loss.item(), abs=1e-6)


def test_a_decoder_is_read_at_its_last_token(decoder_folders: dict[str, Path]) -> None:
    reference: Any = LlamaForSequenceClassification.from_pretrained(
        decoder_folders["llama"], num_labels=3, pad_token_id=1
    )
    reference.eval()
    spec = HeadSpec(head=Head.CLASSIFICATION, labels=("a", "b", "c"), inputs=("text",))
    own = copied(HeadedNetwork.of(reference.model, spec, "last"), reference.score)
    labels = torch.tensor([2, 0])
    given = {"input_ids": IDS, "attention_mask": MASK}
    expected, found = reference(**given, labels=labels), own(**given, labels=labels)
    assert torch.allclose(found.logits, expected.logits, atol=1e-5)
    assert found.loss.item() == pytest.approx(expected.loss.item(), abs=1e-5)


def test_choices_are_scored_one_by_one(folders: dict[str, Path]) -> None:
    backbone: Any = BertModel.from_pretrained(folders["bert"])
    own = HeadedNetwork.of(backbone, HeadSpec(head=Head.MULTIPLE_CHOICE), "mean").eval()
    whole = own(IDS[None], MASK[None], labels=torch.tensor([1]))
    assert whole.logits.shape == (1, 2)
    states = backbone(IDS[1:, :3]).last_hidden_state.mean(dim=1)
    assert whole.logits[0, 1].item() == pytest.approx(own.head(states).item(), abs=1e-5)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_decoders_pad_on_the_right_and_separate_two_texts(
    family: str, decoder_folders: dict[str, Path], open_decoder: Open
) -> None:
    session = DecoderSession.of(open_decoder(decoder_folders[family])._session)
    tokenizer = session.tokenizer

    def pieces(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    before = [0] if family == "llama" else []
    (pair,) = session.encode(["The cat"], ["the dog"], 64)
    assert list(pair.input_ids) == [*before, *pieces("The cat"), *pieces("\n"), *pieces("the dog")]
    (short,) = session.encode(["good " * 30], ["the dog"], 20)
    assert len(short) == 20
    assert list(short.input_ids)[-len(pieces("the dog")) :] == pieces("the dog")
    assert [len(one) for one in session.encode([""], None, 64)] == [1]
    padded = session.pad(session.encode(["The cat", "The"], None, 64))
    assert set(padded) == {"input_ids", "attention_mask"}
    assert padded["attention_mask"][1].tolist()[0] == 1
    assert padded["attention_mask"][1].tolist()[-1] == 0


def test_tags_of_decoders_are_read_at_last_pieces(open_llama: Open, fit_options: Options) -> None:
    model = open_llama()
    options = fit_options(epochs=1)
    head = Head.TAGGING
    fitted = model.fit(training_examples(head), [], head_spec(head), options)
    words = ["The", "extraordinary", "cat"]
    session = fitted._session
    ids = [session.tokenizer(f" {word}", add_special_tokens=False)["input_ids"] for word in words]
    assert max(map(len, ids)) > 2
    row = [0, *(token for word in ids for token in word)]
    ends = np.cumsum([len(word) for word in ids])
    backbone: Any = LlamaModel.from_pretrained(options.directory)
    weights = load_file(options.directory / HEAD_NAME)
    with torch.no_grad():
        states = backbone(torch.tensor([row])).last_hidden_state[0, ends]
    numbers = (states @ weights["weight"].T + weights["bias"]).argmax(dim=-1)
    assert fitted.tag([words]) == [[head_spec(head).labels[number] for number in numbers]]


def test_a_second_stage_keeps_the_head(
    decoder_folders: dict[str, Path], open_decoder: Open, fit_options: Options
) -> None:
    head = Head.MULTIPLE_CHOICE
    examples, spec = training_examples(head), head_spec(head)
    first = fit_options("first", epochs=1)
    fitted = open_decoder(decoder_folders["gpt2"]).fit(examples, [], spec, first)
    second = fit_options("second", epochs=1, learning_rate=1e-12)
    fitted.fit(examples, [], spec, second)
    one, other = (load_file(options.directory / HEAD_NAME) for options in (first, second))
    assert torch.allclose(one["weight"], other["weight"], atol=1e-6)


def test_a_damaged_head_is_reported(open_llama: Open, fit_options: Options) -> None:
    head, options = Head.TAGGING, fit_options(epochs=1)
    model = open_llama()
    model.fit(training_examples(head), [], head_spec(head), options)
    (options.directory / HEAD_NAME).write_bytes(b"x")
    with pytest.raises(AdapterError, match=HEAD_NAME):
        model.load_fit(options.directory, head_spec(head))


def test_a_decoder_becomes_a_dual_encoder_by_its_mean(open_llama: Open, fit_options: Options) -> None:
    head, model = Head.DUAL_ENCODER, open_llama()
    with pytest.raises(TrainingError, match="pooling 'cls'"):
        model.fit(training_examples(head), [], head_spec(head), fit_options("cls", pooling="cls"))
    options = fit_options("pooler", epochs=1, max_query_length=16)
    assert options.settings.pooling == "pooler"
    read = model.fit(training_examples(head), [], head_spec(head), options)
    assert read._fit.pooling == "mean"
    options = fit_options("mean", epochs=1, pooling="mean", max_query_length=16)
    fitted = model.fit(training_examples(head), [], head_spec(head), options)
    vectors = fitted.embed(["The cat", "the dog slept near the door"], side="query")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
