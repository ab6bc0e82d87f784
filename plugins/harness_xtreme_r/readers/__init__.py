"""Readers of the formats that only XTREME-R's tasks have."""

from __future__ import annotations

from harness_xtreme_r.readers.mewsli_x import MEWSLI_X_ENTITIES, MEWSLI_X_MENTIONS, MEWSLI_X_PAIRS
from harness_xtreme_r.readers.xcopa_aligned import XCOPA_ALIGNED
from harness_xtreme_r.readers.xquad_r import SQUAD_SENTENCES, XQUAD_R_QUESTIONS, XQUAD_R_SENTENCES

__all__ = ["READERS"]

READERS = (
    MEWSLI_X_ENTITIES,
    MEWSLI_X_MENTIONS,
    MEWSLI_X_PAIRS,
    SQUAD_SENTENCES,
    XCOPA_ALIGNED,
    XQUAD_R_QUESTIONS,
    XQUAD_R_SENTENCES,
)
