"""The readers that this plugin brings."""

from __future__ import annotations

from harness_xtreme_r.readers.mewsli_x_entities import MEWSLI_X_ENTITIES
from harness_xtreme_r.readers.mewsli_x_mentions import MEWSLI_X_MENTIONS
from harness_xtreme_r.readers.mewsli_x_pairs import MEWSLI_X_PAIRS
from harness_xtreme_r.readers.squad_sentences import SQUAD_SENTENCES
from harness_xtreme_r.readers.xcopa_aligned import XCOPA_ALIGNED
from harness_xtreme_r.readers.xquad_r_questions import XQUAD_R_QUESTIONS
from harness_xtreme_r.readers.xquad_r_sentences import XQUAD_R_SENTENCES

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
