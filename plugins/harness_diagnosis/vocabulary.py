"""How well the model's tokens and the training data fit each item: fertility and unknown words."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.data import FeatureContext, Items
from harness.languages import word_counts
from harness_diagnosis.length import word_lists
from harness_diagnosis.script import item_texts

Floats = npt.NDArray[np.float64]


def _joined(items: Items) -> list[str]:
    found: list[str] = items.once(
        "joined texts", lambda: [" ".join(row) for row in zip(*item_texts(items), strict=True)]
    )
    return found


def fertility(items: Items, context: FeatureContext) -> Floats | None:
    """Return the tokens of the run's model a word, over the texts of every item (Rust et al. 2021, section 3.2).

    None where the model is no folder with a ``tokenizer.json``, or the package tokenizers is not installed.
    """
    file = None if context.model is None else context.model / "tokenizer.json"
    if file is None or not file.is_file():
        return None
    texts = _joined(items)
    if not texts:
        return None
    state = file.stat()
    tokenizer = _tokenizer(file, (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    if tokenizer is None:
        return None
    distinct = list(dict.fromkeys(texts))
    encoded = tokenizer.encode_batch(distinct, add_special_tokens=False)
    counts = {text: len(own.ids) for text, own in zip(distinct, encoded, strict=True)}
    tokens = np.array([counts[text] for text in texts], dtype=np.float64)
    words = word_counts(texts)
    return np.asarray(np.divide(tokens, words, out=np.full(len(tokens), np.nan), where=words > 0))


@lru_cache(maxsize=1)
def _tokenizer(file: Path, state: tuple[int, ...]) -> Any:
    """Return the tokenizer of a file, read once per state of the file; None without the package tokenizers.

    A multilingual vocabulary takes half a second to read, and every cell of a run needs the same one.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    found: Any = Tokenizer.from_file(str(file))
    found.no_truncation()
    found.no_padding()
    return found


def unknown_words(items: Items, context: FeatureContext) -> Floats | None:
    """Return the share of the words of every item that are not in the training data; None where they were not given."""
    vocabulary = context.vocabulary
    if vocabulary is None or not item_texts(items):
        return None
    lists = word_lists(items, "joined texts", lambda: _joined(items))
    if lists is None:
        return None
    shares = (sum(word not in vocabulary for word in own) / len(own) if own else np.nan for own in lists)
    return np.fromiter(shares, np.float64, len(lists))
