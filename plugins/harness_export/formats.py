"""A run in the formats of other tools: Every Eval Ever, the Hub, MTEB, and one LaTeX table of systems.

- Every Eval Ever, schema 0.3.0 (github.com/evaleval/every_eval_ever, ``eval.schema.json``) has no field for a language:
  `language_details` says how ``additional_details`` names it. All values of
  ``additional_details`` are texts, and scores are proportions.
- The Hub: ``modelcard.md`` and ``eval_results.yaml`` of github.com/huggingface/hub-docs. Both are plain YAML, so that
  nothing of huggingface_hub is needed. ``model-index`` holds fractions, ``.eval_results`` scores x100, as the Hub's own
  examples do.
- MTEB: result files of retrieval tasks (``mteb.TaskResult``, mteb 2). Scores keep the names of the harness, and the
  file names the task ``harness/NAME``: MTEB's own Tatoeba searches from the other language to English and has another
  main score, so that its numbers are not these.
- LaTeX: the table of the report's page, with names that may be published.

`ExportedScore` is a cell's metric with its data, its conditions and its uncertainty, for every format.
"""

from __future__ import annotations

import datetime
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from harness import Run, distinguishing, grouped, open_session
from harness.languages import known_languages
from harness.reporting import read_material, system_table, systems_latex
from harness.storage import CellResult, MetricValue

SCHEMA_VERSION = "0.3.0"
SPLITS = {"train": "train", "validation": "val", "test": "test"}
SELF_DEPLOYED = ("hf-", "baseline")
"""Adapters whose model runs in the same process."""
PIPELINES = {
    "sequence_classification": "text-classification",
    "token_tagging": "token-classification",
    "span_extraction": "question-answering",
    "multiple_choice": "multiple-choice",
    "numeric_answer": "text-generation",
    "summary": "summarization",
    "translation": "translation",
    "bitext_retrieval": "sentence-similarity",
    "ranked_retrieval": "sentence-similarity",
}
"""Kinds of the core by the Hub's names of tasks; others are ``other``."""
KINDS = {"bitext_retrieval", "ranked_retrieval"}
Key = tuple[str, str | None, int | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubData:
    """The place of a test set on the Hub."""

    path: str
    config: str | None
    split: str
    revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedScore:
    """One metric of one finished cell."""

    run: Run
    cell: CellResult
    metric: str
    value: MetricValue
    headline: bool
    higher_is_better: bool

    @property
    def hub(self) -> HubData | None:
        """The Hub data set that the task's spec names for this cell, read from there or not; None without one."""
        spec: Mapping[str, Any] = self.run.manifest.specs.get(self.cell.task, {})
        split, language, table = self.cell.split or "test", self.cell.language, known_languages()
        entry = spec.get("languages", {}).get(language) or {}
        place = entry.get(split, {}).get("hub") or spec.get("splits", {}).get(split, {}).get("hub")
        if not isinstance(place, Mapping) or "path" not in place:
            return None
        codes = {"language": language, **(table.get(language).codes() if language in table else {})}
        named = {
            name: own.get(language, own.get("default", "")) for name, own in spec.get("codes", {}).items()
        }
        named |= entry.get("codes", {})
        codes |= {name: code.format_map(codes) for name, code in named.items() if code}
        try:
            config = str(place["config"]).format_map(codes | self.cell.view) if place.get("config") else None
        except KeyError:
            config = None
        return HubData(
            path=str(place["path"]).format_map(codes),
            config=config,
            split=str(place.get("split", split)),
            revision=self.cell.data.get("revision") if self.from_hub else None,
        )

    @property
    def from_hub(self) -> bool:
        """Whether the items were read from the Hub."""
        return self.cell.data.get("origin") == "hub"

    @property
    def shots(self) -> int | None:
        """The number of examples in the prompt; None without prompts."""
        return None if self.cell.prompt is None else int(self.cell.prompt["shots"])

    def details(self) -> dict[str, str]:
        """Return all that a reader needs to judge the number, as texts; what does not apply is missing."""
        cell, head = self.cell, self.run.results.run
        values: dict[str, Any] = {
            **language_details(cell.language),
            "task": cell.task,
            "task_version": cell.version,
            "split": cell.split,
            "dev_set_used_as_test_set": cell.stands_in or None,
            "protocol": cell.protocol,
            "method": cell.method,
            "fit": cell.fit,
            "seed": cell.seed,
            **{f"view.{name}": value for name, value in sorted(cell.view.items())},
            "num_fewshot": self.shots,
            "prompt": None if cell.prompt is None else cell.prompt.get("name"),
            "items": cell.n,
            "items_of_the_test_set": cell.size,
            "partial": "true" if cell.size is not None and cell.n < cell.size else None,
            "candidates_missing": " ".join((cell.pool or {}).get("missing") or []) or None,
            "truncated": cell.truncated or None,
            "unparsed": cell.unparsed or None,
            "corrected_gold": "true" if cell.gold else None,
            "interval_method": self.value.ci_method,
            "provenance": cell.provenance,
            "data_origin": cell.data.get("origin"),
            "data_sha256": cell.data.get("digest"),
            "data_revision": cell.data.get("revision"),
            "sample_data": "true" if head.data == "sample" else None,
            "harness": head.harness,
            "cell": cell.digest,
        }
        return texts(values)

    def sentence(self) -> str:
        """Return the same in a line for people."""
        cell = self.cell
        interval = ""
        if self.value.ci is not None:
            low, high = self.value.ci
            interval = f" (95 % interval {100 * low:.1f} to {100 * high:.1f})"
        size = "" if cell.size in {None, cell.n} else f" of {cell.size}"
        parts = [
            f"{self.metric} x100{interval}",
            f"{cell.n}{size} items in {cell.language}",
            f"{cell.split} split" + (" used as the test set" if cell.stands_in else ""),
            f"{cell.protocol}, {cell.method}, seed {cell.seed}",
            *(f"{name}={value}" for name, value in sorted(cell.view.items()) if name != "shots"),
            *([] if self.shots is None else [f"{self.shots}-shot"]),
            *([] if self.from_hub else [f"items from {cell.data.get('origin')} files"]),
            *(["SAMPLE DATA"] if self.run.results.run.data == "sample" else []),
            f"harness {self.run.results.run.harness}",
        ]
        return "; ".join(parts)


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that are not None as texts, as fields of details hold them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None
    }


def without_none(value: Any) -> Any:
    """Return a JSON value without the keys, at any depth, whose value is None."""
    if isinstance(value, Mapping):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def safe_name(text: str) -> str:
    """Return a text as it may be part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)


def distinct_names(found: Sequence[ExportedScore]) -> list[str]:
    """Return for every score what its cell differs in from others of its task and language: ``frozen_seed-2``.

    Formats without fields for a protocol, a seed or a view need it so that no score takes the place of another.
    """
    conditions = [_conditions(score.cell) for score in found]
    cells = [(score.cell.task, score.cell.language) for score in found]
    twins = grouped(zip(cells, conditions, strict=True))
    return ["_".join(distinguishing(own, twins[cell])) for cell, own in zip(cells, conditions, strict=True)]


def _conditions(cell: CellResult) -> list[str]:
    view = [f"{name}-{value}" for name, value in sorted(cell.view.items())]
    return [str(cell.protocol), str(cell.method), f"seed-{cell.seed}", *view]


def language_details(code: str) -> dict[str, str]:
    """Return how every format names a language that has no field for one: the only mapping of languages."""
    table = known_languages()
    if code not in table:
        return {"language": code}
    language = table.get(code)
    details = {"language_name": language.name, "script": language.script, "iso639_3": language.iso639_3}
    return {"language": code} | {name: value for name, value in details.items() if value}


def clean_model_name(run: Run) -> str:
    """Return the model as it may be published: a Hub id, or the last part of a local path or of an address."""
    head = run.results.model
    if "://" in head.ref:
        return run.manifest.identity.get("model") or "served-model"
    is_path = head.ref.startswith(("/", ".", "~")) or Path(head.ref).exists()
    name = Path(head.ref).name if is_path else head.ref
    return f"{head.adapter}/{name}" if head.adapter == "baseline" else name


def created(run: Run) -> float | None:
    """Return when the run was made, in seconds since 1970; None where it does not say."""
    try:
        moment = datetime.datetime.fromisoformat(run.manifest.created)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def scores(run: Run) -> Iterator[ExportedScore]:
    """Yield the metrics of all finished cells, in the order of the run."""
    metrics = open_session().registry.metrics
    for cell in run.cells:
        if not cell.is_scored:
            continue
        headline = run.manifest.tasks[cell.task].headline
        for name, value in cell.metrics.items():
            yield ExportedScore(
                run=run,
                cell=cell,
                metric=name,
                value=value,
                headline=name in headline,
                higher_is_better=name not in metrics or metrics.get(name).higher_is_better,
            )


def eee_files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the record of the first run."""
    run = runs[0]
    results = [_eee_result(score) for score in scores(run)]
    if not results:
        return {}
    name = clean_model_name(run)
    moment = created(run)
    stamp = None if moment is None else str(int(moment))
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"harness/{name.replace('/', '_')}/{stamp or run.results.run.id}",
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": "multilingual-harness",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "multilingual-harness",
            "version": run.results.run.harness or "unknown",
            "additional_details": _run_details(run),
        },
        "model_info": _model_info(run, name),
        "evaluation_results": results,
    }
    text = json.dumps(without_none(record), ensure_ascii=False, indent=2) + "\n"
    return {f"{name.replace('/', '_')}.json": text}


def _run_details(run: Run) -> dict[str, str]:
    states = [cell.status for cell in run.cells]
    details = {
        "run": run.results.run.id,
        "data": run.results.run.data,
        "sample_data": "true" if run.results.run.data == "sample" else None,
        "limit": run.manifest.config.get("limit"),
        "cells_failed": states.count("failed") or None,
        "cells_skipped": states.count("skipped") or None,
        **{f"version.{name}": version for name, version in run.manifest.versions.items()},
    }
    return texts(details)


def _model_info(run: Run, name: str) -> dict[str, Any]:
    head = run.results.model
    details = {
        "deployment_type": "self_deployed" if head.adapter.startswith(SELF_DEPLOYED) else "unknown",
        "model_availability": "unknown",
        "adapter": head.adapter,
        "revision": head.revision,
        "parameters": head.parameters,
        "weights_sha256": run.manifest.identity.get("weights"),
        "dtype": run.manifest.identity.get("dtype"),
    }
    developer = name.partition("/")[0] if "/" in name and head.adapter != "baseline" else None
    return {"name": name, "id": name, "developer": developer, "additional_details": texts(details)}


def _eee_result(score: ExportedScore) -> dict[str, Any]:
    cell, prompt = score.cell, score.cell.prompt
    names = {"num_fewshot": "shots", "prompt": "name", "prompt_digest": "digest"}
    shots = prompt and {name: prompt.get(key) for name, key in names.items()}
    return {
        "evaluation_result_id": f"{cell.digest}.{score.metric}",
        "evaluation_name": f"harness.{cell.task}.{cell.language}",
        "source_data": _source(score),
        "metric_config": {
            "evaluation_description": score.sentence(),
            "metric_id": score.metric,
            "metric_name": score.metric,
            "metric_unit": "proportion",
            "lower_is_better": not score.higher_is_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
            "additional_details": {"headline": str(score.headline).lower()},
        },
        "score_details": {
            "score": score.value.value,
            "uncertainty": _uncertainty(score),
            "details": score.details(),
        },
        "generation_config": shots and {"additional_details": texts(shots)},
    }


def _source(score: ExportedScore) -> dict[str, Any]:
    """Return where the items are from; paths of this machine stay here."""
    cell, hub = score.cell, score.hub if score.from_hub else None
    details = {
        **language_details(cell.language),
        "provenance": cell.provenance,
        "split": cell.split,
        "sha256": cell.data.get("digest"),
        "origin": cell.data.get("origin"),
    }
    if hub is None:
        return {"dataset_name": cell.task, "source_type": "other", "additional_details": texts(details)}
    details |= {"config": hub.config or None, "revision": hub.revision or None}
    return {
        "dataset_name": cell.task,
        "source_type": "hf_dataset",
        "hf_repo": hub.path,
        "hf_split": SPLITS.get(hub.split, hub.split),
        "samples_number": cell.size,
        "additional_details": texts(details),
    }


def _uncertainty(score: ExportedScore) -> dict[str, Any]:
    value, error, interval = score.value, None, None
    if value.se is not None:
        error = {"value": value.se, "method": "analytic" if value.draws is None else "bootstrap"}
    if value.ci is not None:
        ends = {"lower": value.ci[0], "upper": value.ci[1]}
        interval = {**ends, "confidence_level": 0.95, "method": value.ci_method or "unknown"}
    return {
        "num_samples": score.cell.n,
        "standard_error": error,
        "confidence_interval": interval,
        "num_bootstrap_samples": value.draws,
    }


def model_index(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the metadata of a model card: one result per cell, all its metrics in it.

    Tools join results of one data set, config, split and revision, so that the config says what else differs.
    """
    run = runs[0]
    run_scores = list(scores(run))
    cells: dict[str, tuple[str, list[ExportedScore]]] = {}
    for score, name in zip(run_scores, distinct_names(run_scores), strict=True):
        cells.setdefault(score.cell.digest, (name, []))[1].append(score)
    if not run_scores:
        return {}
    model = clean_model_name(run)
    results = [_result(run, cell_scores, name) for name, cell_scores in cells.values()]
    return {f"{safe_name(model)}.yaml": _dumped({"model-index": [{"name": model, "results": results}]})}


def _dumped(document: Any) -> str:
    return yaml.safe_dump(without_none(document), sort_keys=False, allow_unicode=True, width=120)


def _result(run: Run, own: Sequence[ExportedScore], name: str) -> dict[str, Any]:
    first, cell = own[0], own[0].cell
    hub = first.hub if first.from_hub else None
    config = (hub and hub.config) or cell.language
    dataset = {
        "name": f"{cell.task} ({cell.language})",
        "type": hub.path if hub else cell.task,
        "config": f"{config} ({name})" if name else config,
        "split": cell.split,
        "revision": hub and hub.revision,
        "args": first.details(),
    }
    kind = PIPELINES.get(run.manifest.tasks[cell.task].kind, "other")
    return {
        "task": {"type": kind, "name": cell.task},
        "dataset": dataset,
        "metrics": [_metric(score) for score in own],
    }


def _metric(score: ExportedScore) -> dict[str, Any]:
    value = score.value
    low, high = value.ci or (None, None)
    details = {
        "n": score.cell.n,
        "standard_error": value.se,
        "ci_low": low,
        "ci_high": high,
        "ci_level": value.ci and 0.95,
        "ci_method": value.ci_method,
        "scale": "fraction",
    }
    return {"type": score.metric, "value": value.value, "name": score.metric, "args": details}


def eval_results(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the files of ``.eval_results/``: the headline metrics of cells whose task has a data set on the Hub.

    One file holds one task under one protocol, seed and view, since the Hub takes several scores of one data set from
    several files only.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    headline = [score for score in scores(runs[0]) if score.headline]
    for score, name in zip(headline, distinct_names(headline), strict=True):
        if (hub := score.hub) is not None:
            metrics = {other.metric for other in headline if other.cell.digest == score.cell.digest}
            parts = [score.cell.task, score.metric if len(metrics) > 1 else "", name]
            file = f".eval_results/{safe_name('_'.join(filter(None, parts)))}.yaml"
            task = hub.config or score.cell.language
            entry = {
                "dataset": {"id": hub.path, "task_id": task, "revision": hub.revision},
                "value": round(100 * score.value.value, 4),
                "date": score.run.manifest.created or None,
                "notes": score.sentence(),
            }
            groups.setdefault(file, []).append(entry)
    return {file: _dumped(entries) for file, entries in groups.items()}


def mteb_files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return one result file for every retrieval task under one protocol, seed and view."""
    run = runs[0]
    groups: dict[Key, dict[str, list[ExportedScore]]] = {}
    for score in scores(run):
        cell = score.cell
        if run.manifest.tasks[cell.task].kind in KINDS:
            key = (cell.task, cell.protocol, cell.seed, json.dumps(cell.view, sort_keys=True))
            groups.setdefault(key, {}).setdefault(cell.language, []).append(score)
    return {_mteb_name(key, list(groups)): _mteb_text(run, key, own) for key, own in groups.items()}


def _mteb_name(key: Key, keys: Sequence[Key]) -> str:
    def parts(task: str, protocol: str | None, seed: int | None, view: str) -> list[str]:
        return [str(protocol), f"seed-{seed}", view]

    twins = [parts(*sibling) for sibling in keys if sibling[0] == key[0]]
    labels = [key[0], *distinguishing(parts(*key), twins)]
    return f"{safe_name('_'.join(labels)).strip('-')}.json"


def _mteb_text(run: Run, key: Key, cells: Mapping[str, Sequence[ExportedScore]]) -> str:
    splits = grouped((own[0].cell.split or "test", _subset(run, code, own)) for code, own in cells.items())
    data = next(iter(cells.values()))[0].cell.data
    document = {
        "dataset_revision": data.get("revision") or f"sha256:{data.get('digest')}",
        "task_name": f"harness/{key[0]}",
        "mteb_version": None,
        "scores": splits,
        "evaluation_time": round(sum(own[0].cell.seconds for own in cells.values()), 3),
        "kg_co2_emissions": None,
        "date": created(run),
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _subset(run: Run, code: str, own: Sequence[ExportedScore]) -> dict[str, Any]:
    headline = next((score for score in own if score.headline), own[0])
    metrics: dict[str, Any] = {"main_score": headline.value.value, "main_score_metric": headline.metric}
    for score in own:
        value = score.value
        metrics[score.metric] = value.value
        metrics |= {f"{score.metric}_se": value.se} if value.se is not None else {}
        if value.ci is not None:
            metrics |= {f"{score.metric}_ci_low": value.ci[0], f"{score.metric}_ci_high": value.ci[1]}
    searched = run.manifest.tasks[headline.cell.task]
    languages = ["en", code] if searched.kind == "bitext_retrieval" and code != "en" else [code]
    return {
        **metrics,
        "hf_subset": code,
        "languages": [_language_script(each) for each in languages],
        "num_samples": headline.cell.n,
        "details": headline.details(),
    }


def _language_script(code: str) -> str:
    """Return ``deu-Latn``, as MTEB writes languages."""
    details = language_details(code)
    return "{iso639_3}-{script}".format(**details) if "iso639_3" in details else code


def latex_files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the table of all runs; where several are of one model, the names of their folders are added."""
    models = [clean_model_name(run) for run in runs]
    names = {
        run.path: f"{model} ({run.path.name})" if models.count(model) > 1 else model
        for run, model in zip(runs, models, strict=True)
    }
    material = replace(read_material(runs), names=names)
    table = system_table(material)
    return {} if table is None else {"systems.tex": systems_latex(material, table)}
