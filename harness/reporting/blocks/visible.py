"""Characters that are not seen, or that reorder what stands around them."""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"  # control characters but tab and line ends
    "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides and isolates: they reorder what stands around them
    "\u2028\u2029\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"  # tag characters: invisible text
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # no characters at all
)


def visible(text: str) -> str:
    """Return a text with ``⟦U+202E⟧`` in the place of each character that is not seen or reorders others.

    Joiners and the left-to-right and right-to-left marks stay: many languages are written with them.
    """
    return INVISIBLE.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", text)
