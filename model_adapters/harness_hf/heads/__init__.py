"""Linear heads on the hidden states of any backbone, for architectures and decoders without a class of their own."""

from __future__ import annotations
