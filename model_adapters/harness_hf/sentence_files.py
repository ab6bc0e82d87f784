"""What a sentence-transformers model folder says about pooling, length and prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness import AdapterError
from harness_hf.model_folder import read_json

__all__ = ["SENTENCE_FILES", "Pooling", "SentenceFiles", "read_sentence_files"]

Pooling = Literal["mean", "cls", "last", "pooler"]

SENTENCE_FILES = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json")
POOLING_KEYS: Mapping[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    """The defaults of the folder; None where it has no such entry."""

    pooling: Pooling | None = None
    unsupported_pooling: str | None = None
    """A way of pooling that the folder names and the adapter does not have."""
    max_length: int | None = None
    query_prefix: str = ""
    passage_prefix: str = ""


def read_sentence_files(folder: Path) -> SentenceFiles:
    """Return what the folder's sentence-transformers files say; all defaults where there are none."""
    prompts: dict[str, Any] = {}
    if (folder / "config_sentence_transformers.json").is_file():
        prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    length = None
    if (folder / "sentence_bert_config.json").is_file():
        length = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    pooling, unsupported = _pooling(folder / "1_Pooling" / "config.json")
    return SentenceFiles(
        pooling=pooling,
        unsupported_pooling=unsupported,
        max_length=int(length) if length else None,
        query_prefix=str(prompts.get("query") or ""),
        passage_prefix=str(prompts.get("passage") or prompts.get("document") or ""),
    )


def _pooling(path: Path) -> tuple[Pooling | None, str | None]:
    """Return the way of pooling in a ``1_Pooling/config.json``, or the name of one that is not supported."""
    if not path.is_file():
        return None, None
    config = read_json(path)
    modes = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    if isinstance(config.get("pooling_mode"), str):
        names: Mapping[str, Pooling] = {"mean": "mean", "cls": "cls", "lasttoken": "last"}
        mode = names.get(config["pooling_mode"])
        return mode, None if mode else str(config["pooling_mode"])
    if not modes:
        raise AdapterError(f"The file {str(path)!r} names no way of pooling.", hint="Pass -o pooling=mean.")
    if len(modes) == 1 and modes[0] in POOLING_KEYS:
        return POOLING_KEYS[modes[0]], None
    return None, " and ".join(key.removeprefix("pooling_mode_") for key in modes)
