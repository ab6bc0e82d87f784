from __future__ import annotations

import pytest
from transformers.models.auto import modeling_auto

from harness_hf import description as architecture
from harness_hf.description import ENCODER_TYPES, Family, read_architecture


@pytest.mark.parametrize("model_type", sorted(ENCODER_TYPES))
def test_encoders_are_those_of_transformers(model_type: str) -> None:
    assert read_architecture({"model_type": model_type}).family is Family.ENCODER
    assert model_type in modeling_auto.MODEL_MAPPING_NAMES


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
