"""Whether a checkpoint has the head of a masked language model; reads names only."""

from __future__ import annotations

from pathlib import Path

from harness.errors import AdapterError
from harness_hf.architecture import Architecture
from harness_hf.model_folder import tensor_names

__all__ = ["has_mask_head"]

ARCHITECTURE = "ForMaskedLM"
HEADS = (
    "cls.predictions.",  # bert and what was made after it
    "lm_head.",  # roberta, mpnet, esm, eurobert
    "vocab_transform.",  # distilbert
    "predictions.",  # albert
    "generator_predictions.",  # electra, convbert
    "lm_predictions.",  # deberta
    "pred_layer.",  # xlm, flaubert
    "head.dense.",  # modernbert
)
"""What the names of the head's weights begin with; the output matrix itself is often that of the embeddings."""


def has_mask_head(architecture: Architecture, folder: Path | None) -> bool:
    """Return whether an encoder can fill masks as it stands.

    In a local folder the weights say so, whatever class config.json names: that of pretraining has the head too. Of a
    hub repository only config.json has been read. A checkpoint that was fine-tuned with another head has none.
    """
    if architecture.head is not None:
        return False
    if folder is None:
        return architecture.name.endswith(ARCHITECTURE)
    try:
        return any(name.startswith(HEADS) for name in tensor_names(folder))
    except AdapterError:
        return False  # whoever opens it says what is wrong with its weights
