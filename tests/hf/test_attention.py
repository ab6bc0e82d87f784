"""Streamed attention against what `output_attentions=True` gives for one text at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harness.errors import CapabilityError
from harness.models.capabilities import ExposesAttentions, TextInput
from harness.models.requests import AttentionOptions, TextAttention

Over = Literal["max", "mean"]
Row = Literal["first", "mean"]
PAIRS = [
    TextInput(text="The cat sat on the warm mat.", text_pair="A dog slept near the door, and the cat too."),
    TextInput(text="Der Hund schläft neben der Tür", text_pair="Le café était fermé"),
    TextInput(text="good bad", text_pair="yes"),
    TextInput(text="one two three four"),
]


@pytest.fixture(scope="module", params=["bert", "xlm-roberta", "roberta"])
def classifier_folder(
    request: pytest.FixtureRequest, folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A classifier with random weights large enough that heads look at different pieces."""
    folder = tmp_path_factory.mktemp("classifier")
    load: Any = AutoModelForSequenceClassification
    torch.manual_seed(1)
    network = load.from_pretrained(folders[request.param], num_labels=3)
    network.config.id2label = {0: "contradiction", 1: "entailment", 2: "neutral"}
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if "query" in name or "key" in name:
                weights.normal_(std=1.0)
    network.save_pretrained(folder)
    tokenizer: Any = AutoTokenizer
    tokenizer.from_pretrained(folders[request.param]).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def classifier(classifier_folder: Path, open_folder: Any) -> Iterator[Any]:
    adapter = open_folder(classifier_folder)
    yield adapter
    adapter.close()


def plain(folder: Path, item: TextInput, over: Over, row: Row) -> list[list[float]]:
    """The scores of one input from whole attention tensors, by segment."""
    load: Any = AutoModelForSequenceClassification
    network = load.from_pretrained(folder, attn_implementation="eager").eval()
    make: Any = AutoTokenizer
    tokenizer = make.from_pretrained(folder)
    given = tokenizer(item.text, item.text_pair, return_tensors="pt")
    with torch.inference_mode():
        layers = network(**given, output_attentions=True).attentions
    weights = torch.stack([layer[0] for layer in layers])  # layer, head, row, column
    rows = weights[:, :, 0] if row == "first" else weights.mean(dim=2)
    joined = rows.amax(dim=(0, 1)) if over == "max" else rows.mean(dim=(0, 1))
    segments = given.sequence_ids(0)
    return [
        [float(joined[place]) for place, segment in enumerate(segments) if segment == number]
        for number in range(1 if item.text_pair is None else 2)
    ]


def ask(adapter: Any, items: list[TextInput], options: AttentionOptions | None = None) -> list[TextAttention]:
    return [answer for _, answer in sorted(adapter.attentions(items, options), key=lambda pair: pair[0])]


@pytest.mark.parametrize("over", ["max", "mean"])
@pytest.mark.parametrize("row", ["first", "mean"])
def test_streamed_scores_are_those_of_whole_tensors(
    classifier_folder: Path, classifier: Any, over: Over, row: Row
) -> None:
    assert isinstance(classifier, ExposesAttentions)
    found = ask(classifier, PAIRS, AttentionOptions(over=over, row=row))
    for item, answer in zip(PAIRS, found, strict=True):
        expected = plain(classifier_folder, item, over, row)
        assert len(answer.segments) == len(expected)
        for part, scores in zip(answer.segments, expected, strict=True):
            assert part.scores == pytest.approx(scores, abs=1e-5)
        assert not answer.truncated


def test_pieces_stand_where_their_characters_are(classifier: Any) -> None:
    for item, answer in zip(PAIRS, ask(classifier, PAIRS), strict=True):
        texts = [item.text] if item.text_pair is None else [item.text, item.text_pair]
        for text, part in zip(texts, answer.segments, strict=True):
            covered = {
                place
                for start, end in zip(part.starts, part.ends, strict=True)
                for place in range(start, end)
            }
            letters = {place for place, character in enumerate(text) if not character.isspace()}
            assert letters <= covered


def test_a_text_that_is_too_long_is_marked(classifier: Any) -> None:
    long = TextInput(text="cat " * 200, text_pair="dog")
    (answer,) = ask(classifier, [long])
    assert answer.truncated
    assert len(answer.segments[1].scores) >= 1


def test_classifying_goes_on_as_before(classifier: Any) -> None:
    labels = ["contradiction", "entailment", "neutral"]
    before = classifier.classify(PAIRS, labels)
    ask(classifier, PAIRS)
    assert (classifier.classify(PAIRS, labels) == before).all()
    assert classifier._session.backbone.config._attn_implementation == "sdpa"


def test_a_network_that_declares_nothing_returns_its_attention(classifier: Any, monkeypatch: Any) -> None:
    declared = dict(classifier.attentions(PAIRS))
    monkeypatch.setattr(type(classifier._session.backbone), "_can_record_outputs", None)
    found = dict(classifier.attentions(PAIRS))
    for number, expected in declared.items():
        for one, other in zip(found[number].segments, expected.segments, strict=True):
            assert one.scores == pytest.approx(other.scores, abs=1e-5)


def test_a_network_that_hides_its_attention_is_rejected(classifier: Any, monkeypatch: Any) -> None:
    backbone = classifier._session.backbone
    monkeypatch.setattr(type(backbone), "_can_record_outputs", None)
    forward = backbone.forward
    monkeypatch.setattr(backbone, "forward", lambda **given: [forward(**given).last_hidden_state])
    with pytest.raises(CapabilityError, match="attention"):
        ask(classifier, PAIRS)


def test_no_matrix_of_length_by_length_is_made(classifier: Any, monkeypatch: Any) -> None:
    """The weights that a layer hands over have one row."""
    from harness_hf.encoder import attention

    shapes: list[tuple[int, ...]] = []
    add = attention._RunningRow.add

    def spy(self: Any, weights: torch.Tensor) -> None:
        shapes.append(tuple(weights.shape))
        add(self, weights)

    monkeypatch.setattr(attention._RunningRow, "add", spy)
    ask(classifier, PAIRS[:1])
    assert len(shapes) == 4
    assert all(shape[2] == 1 for shape in shapes)
