from __future__ import annotations

import pytest
from transformers.models.auto import modeling_auto

from harness.models.capabilities import Head
from harness_hf import architecture
from harness_hf.architecture import ENCODER_TYPES, Family, read_architecture

MAPPINGS = {
    Head.CLASSIFICATION: modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    Head.TAGGING: modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    Head.SPAN_EXTRACTION: modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES,
    Head.MULTIPLE_CHOICE: modeling_auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES,
}


@pytest.mark.parametrize("model_type", sorted(ENCODER_TYPES))
def test_the_heads_are_those_of_transformers(model_type: str) -> None:
    found = read_architecture({"model_type": model_type})
    assert found.family is Family.ENCODER
    with_class = {head for head, mapping in MAPPINGS.items() if model_type in mapping}
    assert found.heads == with_class | {Head.DUAL_ENCODER}


def test_the_other_families_are_those_of_transformers() -> None:
    for model_type in architecture.SEQ2SEQ_TYPES:
        assert model_type in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, model_type
    for model_type in architecture.CAUSAL_TYPES:
        assert model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, model_type
    assert not architecture.SEQ2SEQ_TYPES & (architecture.CAUSAL_TYPES | ENCODER_TYPES)
    assert not architecture.CAUSAL_TYPES & ENCODER_TYPES


def test_labels_are_in_the_order_of_their_numbers() -> None:
    config = {
        "model_type": "bert",
        "architectures": ["BertForTokenClassification"],
        "id2label": {str(number): f"tag{number}" for number in reversed(range(12))},
    }
    assert read_architecture(config).labels == tuple(f"tag{number}" for number in range(12))
