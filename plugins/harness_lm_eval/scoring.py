"""Converts metrics, filters, generation and shots of a task file for specs and prompts, with notes on what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import near_names
from harness_lm_eval.expression import UnsupportedError

__all__ = ["check_filters", "read_generation", "read_metrics", "shot_notes"]

_RANKED = {
    "acc": "accuracy",
    "acc_norm": "accuracy_char",
    "acc_bytes": "accuracy_byte",
    "acc_mutual_info": "accuracy_pmi",
}
_GENERATED = {"exact_match": "exact_match", "bleu": "bleu", "chrf": "chrf"}
_CORPUS = frozenset({"bleu", "chrf"})
"""Metrics of the whole set, whose aggregation in lm-eval has their name."""
_USUAL = {"multiple_choice": ("acc", "acc_norm"), "generate_until": ("exact_match",)}
"""What lm-eval computes where a task names no metric (``DEFAULT_METRIC_REGISTRY``, 0.4.13)."""
_METRIC_KEYS = frozenset({"metric", "aggregation", "higher_is_better", "ignore_case", "ignore_punctuation"})
_MAX_TOKENS = 256
"""``DEFAULT_MAX_GEN_TOKS``."""
_GREEDY = (None, 0, 0.0, False)


def read_metrics(given: Any, output_type: str, delimiter: str) -> tuple[list[str], list[str]]:
    """Return our metrics in the order of the task file, and what differs; raises `UnsupportedError`."""
    known = _RANKED if output_type == "multiple_choice" else _GENERATED
    entries = [{"metric": name} for name in _USUAL[output_type]] if given is None else given
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(entry, Mapping) for entry in entries)
    ):
        raise UnsupportedError(f"expected a list of metrics, found {given!r}")
    names = [str(entry.get("metric")) for entry in entries]
    for entry, name in zip(entries, names, strict=True):
        if name not in known:
            near = [item for item in near_names(name, known) if item != name]
            meant = f"; did you mean {near[0]!r}?" if near else f"; supported are {', '.join(known)}"
            raise UnsupportedError(
                f"the metric {name!r} of {output_type}, which has no equivalent here{meant}"
            )
        further = sorted(key for key in set(entry) - _METRIC_KEYS if entry[key])
        if further:
            raise UnsupportedError(f"{further[0]!r} of the metric {name!r}")
        own = name if name in _CORPUS else "mean"
        if entry.get("aggregation", own) != own:
            raise UnsupportedError(
                f"the aggregation {entry['aggregation']!r} of the metric {name!r}; ours is {own!r}"
            )
    notes = []
    if "acc_norm" in names and delimiter:
        notes.append(
            f"acc_norm is accuracy_char, which counts the {delimiter!r} before a choice among its characters; "
            "lm-eval does not."
        )
    if output_type == "generate_until" and "exact_match" in names:
        notes.append(
            "exact_match compares answers after SQuAD's English normalisation (small letters, no punctuation, "
            "no articles); lm-eval's compares texts as they are."
        )
    return [known[name] for name in dict.fromkeys(names)], notes


def check_filters(given: Any, output_type: str) -> None:
    """Raise `UnsupportedError` for a filter that does more than take the first answer or remove spaces."""
    harmless = {"take_first"} | ({"remove_whitespace"} if output_type == "generate_until" else set())
    pipelines = given or []
    if not isinstance(pipelines, list) or not all(isinstance(item, Mapping) for item in pipelines):
        raise UnsupportedError(f"expected a list of filters, found {given!r}")
    if len(pipelines) > 1:
        names = ", ".join(str(item.get("name")) for item in pipelines)
        raise UnsupportedError(
            f"{len(pipelines)} filters that score the same answers ({names}); ours read an answer one way"
        )
    for pipeline in pipelines:
        for step in pipeline.get("filter") or []:
            name = step.get("function") if isinstance(step, Mapping) else step
            if name not in harmless:
                raise UnsupportedError(
                    f"the filter {name!r}, which is not supported; supported are {', '.join(sorted(harmless))}"
                )


def read_generation(given: Any, delimiter: str) -> dict[str, Any]:
    """Return ``stop``, ``max_tokens``, ``temperature`` and ``top_p`` of a prompt; raises `UnsupportedError`."""
    options = dict(given or {})
    until = options.pop("until", delimiter)
    stop = [until] if isinstance(until, str) else list(until or [])
    if not all(isinstance(text, str) for text in stop):
        raise UnsupportedError(f"until: expected texts, found {until!r}")
    made: dict[str, Any] = {"stop": [text for text in stop if text]}
    tokens = options.pop("max_gen_toks", options.pop("max_new_tokens", _MAX_TOKENS))
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        raise UnsupportedError(f"max_gen_toks: expected a whole number above 0, found {tokens!r}")
    made["max_tokens"] = tokens
    sampled = options.pop("do_sample", None)
    temperature, top_p = options.pop("temperature", None), options.pop("top_p", None)
    if sampled and temperature not in _GREEDY:
        made["temperature"] = float(temperature)
        if top_p is not None:
            made["top_p"] = float(top_p)
    elif temperature not in _GREEDY and sampled is None:
        made["temperature"] = float(temperature)
    elif sampled:
        raise UnsupportedError("do_sample without a temperature: set one")
    further = sorted(options)
    if further:
        raise UnsupportedError(
            f"{further[0]!r}; supported are until, max_gen_toks, do_sample, temperature and top_p"
        )
    return made


def shot_notes(data: Mapping[str, Any]) -> list[str]:
    """Return notes for the user about the shots of a task; raises `UnsupportedError` for templates of their own."""
    config = data.get("fewshot_config") or {}
    if not isinstance(config, Mapping):
        raise UnsupportedError(f"expected a mapping, found {config!r}")
    for key in config:
        if key not in {"sampler", "split"}:
            raise UnsupportedError(f"{key!r}: shots have the format of the items, and a seed draws them")
    if config and config.get("sampler", "default") not in {"default", "first_n"}:
        raise UnsupportedError(f"the sampler {config['sampler']!r}")
    count = data.get("num_fewshot") or 0
    notes = [f"lm-eval gives it {count} shots: run with --shots {count}."] if count else []
    if config.get("sampler") == "first_n":
        notes.append(
            "lm-eval takes the first items as shots; ours are drawn by a seed, so the prompts differ."
        )
    return notes
