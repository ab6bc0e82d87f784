"""The metrics of the core: ``metrics.tsv`` says what they are, this module how they are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.metrics import chunk, classification, question_answering as answers, ranking, written
from harness.metrics.metric import METRIC_TABLE, Metric

_FAMILIES: Final = {
    **{"chunk": chunk, "classification": classification, "ranking": ranking},
    **{"question_answering": answers, "written": written},
}
"""The modules whose functions have the names of their metrics."""
_RANKED: Final = {"methods": frozenset({"rank"})}
_MLQA: Final = {"options": ("answer_language",), "languages": answers.MLQA_LANGUAGES}
_MKQA: Final = {"languages": answers.MKQA_LANGUAGES}
_ERRORS: Final = {"higher_is_better": False}
_SACREBLEU: Final = {"ready": written.require_sacrebleu}
_FURTHER: Final[Mapping[str, Mapping[str, Any]]] = {
    "f1": {"compute": answers.squad_f1},
    "exact_match": {"compute": answers.squad_exact_match},
    **dict.fromkeys(("mlqa_f1", "mlqa_exact_match"), _MLQA),
    **dict.fromkeys(("mkqa_f1", "mkqa_exact_match"), _MKQA),
    "one_target_map_at_20": {"by_item": False},
    **dict.fromkeys(("accuracy_char", "accuracy_byte", "accuracy_token"), _RANKED),
    "accuracy_pmi": {**_RANKED, "prompt_field": "unconditional"},
    "chrf": {**_SACREBLEU, "signature": written.chrf_signature},
    "chrf_plus": {**_SACREBLEU, "signature": written.chrf_plus_signature},
    "bleu": {**_SACREBLEU, "signature": written.bleu_signature, "options": ("bleu_tokenizer",)},
    "spbleu": {**_SACREBLEU, "signature": written.spbleu_signature, "missing": written.missing_spbleu},
    "exact_value": {"options": (written.TOLERANCE,)},
    **dict.fromkeys(("off_target", "copied"), _ERRORS),
}
"""Fields of `Metric` that are not its defaults."""


def _metric(row: Mapping[str, str]) -> Metric:
    fields: dict[str, Any] = {"by_item": True, **_FURTHER.get(row["name"], {})}
    fields |= {name: row[name] for name in ("name", "description", "source")}
    compute = fields.pop("compute", None) or getattr(_FAMILIES[row["family"]], row["name"])
    from_counts, kinds = getattr(compute, "from_counts", None), frozenset(row["kinds"].split())
    return Metric(**fields, compute=compute, from_counts=from_counts, kinds=kinds)


METRICS: Final = tuple(map(_metric, METRIC_TABLE))
