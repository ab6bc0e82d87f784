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

`ExportedCell` is a cell with its data and its conditions, for every format.
"""

from __future__ import annotations

import datetime
import json
import re
import time
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HubData:
    """The place of a test set on the Hub."""

    path: str
    config: str | None
    split: str
    revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCell:
    """One finished cell."""

    run: Run
    cell: CellResult
    name: str
    """What it differs in from others of its task and language: ``frozen_seed-2``.

    Formats without fields for a protocol, a seed or a view need it so that no score takes the place of another.
    """

    @property
    def headline(self) -> Sequence[str]:
        """The metrics that its task is scored by."""
        return self.run.manifest.tasks[self.cell.task].headline

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
        revision = self.cell.data.get("revision") if self.from_hub else None
        path = str(place["path"]).format_map(codes)
        return HubData(path=path, config=config, split=str(place.get("split", split)), revision=revision)

    @property
    def from_hub(self) -> bool:
        """Whether the items were read from the Hub."""
        return self.cell.data.get("origin") == "hub"

    @property
    def shots(self) -> int | None:
        """The number of examples in the prompt; None without prompts."""
        return None if self.cell.prompt is None else int(self.cell.prompt["shots"])

    def details(self, value: MetricValue) -> dict[str, str]:
        """Return all that a reader needs to judge a score, as texts; what does not apply is missing."""
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
            "interval_method": value.ci_method,
            "provenance": cell.provenance,
            "data_origin": cell.data.get("origin"),
            "data_sha256": cell.data.get("digest"),
            "data_revision": cell.data.get("revision"),
            "sample_data": "true" if head.data == "sample" else None,
            "harness": head.harness,
            "cell": cell.digest,
        }
        return texts(values)

    def sentence(self, metric: str) -> str:
        """Return the same of one of its metrics in a line for people."""
        cell, interval = self.cell, ""
        if (ends := cell.metrics[metric].ci) is not None:
            low, high = ends
            interval = f" (95 % interval {100 * low:.1f} to {100 * high:.1f})"
        size = "" if cell.size in {None, cell.n} else f" of {cell.size}"
        parts = [
            f"{metric} x100{interval}",
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


def exported_cells(run: Run) -> list[ExportedCell]:
    """Return the finished cells, in the order of the run."""
    cells = [cell for cell in run.cells if cell.is_scored]
    twins = grouped(((cell.task, cell.language), _conditions(cell)) for cell in cells)
    return [
        ExportedCell(run=run, cell=cell, name="_".join(distinguishing(_conditions(cell), peers)))
        for cell in cells
        for peers in [twins[cell.task, cell.language]]
    ]


def _conditions(cell: CellResult) -> list[str]:
    view = [f"{name}-{value}" for name, value in sorted(cell.view.items())]
    return [str(cell.protocol), str(cell.method), f"seed-{cell.seed}", *view]


def eee_files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the record of the first run."""
    run, metrics = runs[0], open_session().registry.metrics
    results = [
        _eee_result(
            exported, name, is_lower_better=name in metrics and not metrics.get(name).higher_is_better
        )
        for exported in exported_cells(run)
        for name in exported.cell.metrics
    ]
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


def _eee_result(exported: ExportedCell, metric: str, *, is_lower_better: bool) -> dict[str, Any]:
    cell, value = exported.cell, exported.cell.metrics[metric]
    names = {"num_fewshot": "shots", "prompt": "name", "prompt_digest": "digest"}
    shots = cell.prompt and {name: cell.prompt.get(key) for name, key in names.items()}
    interval = value.ci and {
        "lower": value.ci[0],
        "upper": value.ci[1],
        "confidence_level": 0.95,
        "method": value.ci_method or "unknown",
    }
    error = {"value": value.se, "method": "analytic" if value.draws is None else "bootstrap"}
    return {
        "evaluation_result_id": f"{cell.digest}.{metric}",
        "evaluation_name": f"harness.{cell.task}.{cell.language}",
        "source_data": _source(exported),
        "metric_config": {
            "evaluation_description": exported.sentence(metric),
            "metric_id": metric,
            "metric_name": metric,
            "metric_unit": "proportion",
            "lower_is_better": is_lower_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
            "additional_details": {"headline": str(metric in exported.headline).lower()},
        },
        "score_details": {
            "score": value.value,
            "uncertainty": {
                "num_samples": cell.n,
                "standard_error": None if value.se is None else error,
                "confidence_interval": interval,
                "num_bootstrap_samples": value.draws,
            },
            "details": exported.details(value),
        },
        "generation_config": shots and {"additional_details": texts(shots)},
    }


def _source(exported: ExportedCell) -> dict[str, Any]:
    """Return where the items are from; paths of this machine stay here."""
    cell, hub = exported.cell, exported.hub if exported.from_hub else None
    details = {
        **language_details(cell.language),
        "provenance": cell.provenance,
        "split": cell.split,
        "sha256": cell.data.get("digest"),
        "origin": cell.data.get("origin"),
    }
    source: dict[str, Any] = {"dataset_name": cell.task, "source_type": "other"}
    if hub is not None:
        details |= {"config": hub.config or None, "revision": hub.revision or None}
        source |= {"source_type": "hf_dataset", "hf_repo": hub.path}
        source |= {"hf_split": SPLITS.get(hub.split, hub.split), "samples_number": cell.size}
    return {**source, "additional_details": texts(details)}


def model_index(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the metadata of a model card: one result per cell, all its metrics in it.

    Tools join results of one data set, config, split and revision, so that the config says what else differs.
    """
    results = list(map(_result, exported_cells(runs[0])))
    if not results:
        return {}
    model = clean_model_name(runs[0])
    return {f"{safe_name(model)}.yaml": _dumped({"model-index": [{"name": model, "results": results}]})}


def _dumped(document: Any) -> str:
    return yaml.safe_dump(without_none(document), sort_keys=False, allow_unicode=True, width=120)


def _result(exported: ExportedCell) -> dict[str, Any]:
    cell, hub = exported.cell, exported.hub if exported.from_hub else None
    config = (hub and hub.config) or cell.language
    dataset = {
        "name": f"{cell.task} ({cell.language})",
        "type": hub.path if hub else cell.task,
        "config": f"{config} ({exported.name})" if exported.name else config,
        "split": cell.split,
        "revision": hub and hub.revision,
        "args": exported.details(next(iter(cell.metrics.values()))),
    }
    kind = PIPELINES.get(exported.run.manifest.tasks[cell.task].kind, "other")
    return {
        "task": {"type": kind, "name": cell.task},
        "dataset": dataset,
        "metrics": [_metric(name, value, cell.n) for name, value in cell.metrics.items()],
    }


def _metric(name: str, value: MetricValue, items: int) -> dict[str, Any]:
    low, high = value.ci or (None, None)
    details = {
        "n": items,
        "standard_error": value.se,
        "ci_low": low,
        "ci_high": high,
        "ci_level": value.ci and 0.95,
        "ci_method": value.ci_method,
        "scale": "fraction",
    }
    return {"type": name, "value": value.value, "name": name, "args": details}


def eval_results(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the files of ``.eval_results/``: the headline metrics of cells whose task has a data set on the Hub.

    One file holds one task under one protocol, seed and view, since the Hub takes several scores of one data set from
    several files only.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for exported in exported_cells(runs[0]):
        cell, hub = exported.cell, exported.hub
        if hub is None:
            continue
        metrics = [name for name in cell.metrics if name in exported.headline]
        for metric in metrics:
            parts = [cell.task, metric if len(metrics) > 1 else "", exported.name]
            file = f".eval_results/{safe_name('_'.join(filter(None, parts)))}.yaml"
            entry = {
                "dataset": {"id": hub.path, "task_id": hub.config or cell.language, "revision": hub.revision},
                "value": round(100 * cell.metrics[metric].value, 4),
                "date": exported.run.manifest.created or None,
                "notes": exported.sentence(metric),
            }
            groups.setdefault(file, []).append(entry)
    return {file: _dumped(entries) for file, entries in groups.items()}


def mteb_files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return one result file for every retrieval task under one protocol, seed and view."""
    tasks = runs[0].manifest.tasks
    groups = grouped(
        (
            (cell.task, str(cell.protocol), f"seed-{cell.seed}", json.dumps(cell.view, sort_keys=True)),
            exported,
        )
        for exported in exported_cells(runs[0])
        for cell in [exported.cell]
        if tasks[cell.task].kind in KINDS
    )
    files = {}
    for (task, *conditions), cells in groups.items():
        twins = [others for name, *others in groups if name == task]
        name = safe_name("_".join([task, *distinguishing(conditions, twins)])).strip("-")
        files[f"{name}.json"] = _mteb_text(task, cells)
    return files


def _mteb_text(task: str, cells: Sequence[ExportedCell]) -> str:
    data = cells[0].cell.data
    document = {
        "dataset_revision": data.get("revision") or f"sha256:{data.get('digest')}",
        "task_name": f"harness/{task}",
        "mteb_version": None,
        "scores": grouped((own.cell.split or "test", _subset(own)) for own in cells),
        "evaluation_time": round(sum(own.cell.seconds for own in cells), 3),
        "kg_co2_emissions": None,
        "date": created(cells[0].run),
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _subset(exported: ExportedCell) -> dict[str, Any]:
    cell = exported.cell
    headline = next((name for name in cell.metrics if name in exported.headline), next(iter(cell.metrics)))
    main = cell.metrics[headline]
    metrics: dict[str, Any] = {"main_score": main.value, "main_score_metric": headline}
    for name, value in cell.metrics.items():
        metrics[name] = value.value
        metrics |= {f"{name}_se": value.se} if value.se is not None else {}
        if value.ci is not None:
            metrics |= {f"{name}_ci_low": value.ci[0], f"{name}_ci_high": value.ci[1]}
    is_bitext = exported.run.manifest.tasks[cell.task].kind == "bitext_retrieval"
    languages = ["en", cell.language] if is_bitext and cell.language != "en" else [cell.language]
    return {
        **metrics,
        "hf_subset": cell.language,
        "languages": [_language_script(each) for each in languages],
        "num_samples": cell.n,
        "details": exported.details(main),
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
