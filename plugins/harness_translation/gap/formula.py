"""The differences between the versions of a test set, of "Translation Errors ..." (EACL 2024), section 3.

ZS is the human-translated test set, TT its translation into the source language, TE the machine translation of the
source test set into the target language, and BT the translation of TE back. ZS and TT come from human-made text, TE
and BT from machine-made text; the model reads the target language in ZS and TE, the source language in TT and BT.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

VARIANTS: Final = ("zs", "tt", "te", "bt")
CONTRASTS: Final = {
    "delta": ("zs", "tt", "bt"),
    "te_zs": ("zs", "te"),
    "bt_tt": ("tt", "bt"),
    "tt_zs": ("zs", "tt"),
}
"""The variants that each contrast needs."""
FLAGGED: Final = ("delta", "te_zs", "bt_tt")
"""The contrasts of machine-made with human-made text: a value above zero speaks against the human text."""
TITLES: Final = {
    "delta": "delta = BT - max(ZS, TT)",
    "te_zs": "TE - ZS",
    "bt_tt": "BT - TT",
    "tt_zs": "TT - ZS",
}
TRANSFER: Final = tuple(f"transfer_gap_{variant}" for variant in VARIANTS)
HEADS: Final = {
    **{name: name.upper() for name in VARIANTS},
    **{name: name.upper().replace("_", "-") for name in CONTRASTS},
    **{name: f"gap {variant.upper()}" for name, variant in zip(TRANSFER, VARIANTS, strict=True)},
}
"""The heads of the columns, by quantity."""


def contrast(quantity: str, scores: dict[str, Any]) -> Any:
    """Return a contrast of scores by variant, in their unit and shape (arrays element by element).

    ``delta`` is BT minus the better of ZS and TT: for arrays element by element, so that each resample has
    its own maximum. Sources: section 3.1 and Tables 1, 2 and 9 of the paper.
    """
    if quantity == "delta":
        return scores["bt"] - np.maximum(scores["zs"], scores["tt"])
    less, more = CONTRASTS[quantity]
    return scores[more] - scores[less]
