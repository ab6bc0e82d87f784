"""The options of the adapter of decoders."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from harness_hf.options import ModelOptions

__all__ = ["CausalOptions"]


class CausalOptions(ModelOptions):
    """Options of ``hf-causal``."""

    chat_template: Path | None = Field(
        default=None, description="File with a Jinja chat template to use in place of the model's own."
    )
    share_prefixes: bool = Field(
        default=True,
        description="Whether texts with a common beginning are run through it once; false gives the same "
        "answers more slowly.",
    )
