"""Translation as an axis of evaluation: whether a benchmark's translations, not the model, cause a low score.

The measures are those of "Translation Errors Significantly Impact Low-Resource Languages in Cross-Lingual Learning"
(Agrawal et al., EACL 2024).
"""

from __future__ import annotations

__all__: list[str] = []
