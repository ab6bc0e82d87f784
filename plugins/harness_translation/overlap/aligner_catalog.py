"""The declarations of the word aligners of this package."""

from __future__ import annotations

from typing import Final

from harness import Aligner

__all__ = ["ALIGNERS"]

ALIGNERS: Final = (
    Aligner(
        name="file",
        target="harness_translation.overlap.aligner_file:open_file",
        licence="Apache-2.0",
        summary="Existing links: lines of SOURCE ||| TARGET ||| 0-0 1-2:0.87 (Pharaoh).",
        reference="FILE",
    ),
    Aligner(
        name="simalign",
        target="harness_translation.overlap.aligner_simalign:open_simalign",
        licence="MIT",
        summary="SimAlign (Jalili Sabet et al., 2020); its links have no probabilities.",
        reference="MODEL@METHOD",
        needs=("simalign",),
        install="pip install simalign",
    ),
    Aligner(
        name="awesome-align",
        target="harness_translation.overlap.aligner_awesome:open_awesome",
        licence="BSD-3-Clause",
        summary="The authors' awesome-align (Dou and Neubig, 2021), for BERT checkpoints as pytorch_model.bin.",
        reference="MODEL",
        needs=("awesome_align",),
        install="pip install awesome-align",
    ),
)
