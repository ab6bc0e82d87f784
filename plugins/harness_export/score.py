"""What makes a number: a cell's metric with its data, its conditions and its uncertainty, for every format."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Run, open_session
from harness.languages import known_languages
from harness.storage import CellResult, MetricValue


@dataclass(frozen=True, slots=True, kw_only=True)
class HubData:
    """The place of a test set on the Hub."""

    path: str
    config: str | None
    split: str
    revision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
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


def distinct_names(found: Sequence[Score]) -> list[str]:
    """Return for every score what its cell differs in from others of its task and language: ``frozen_seed-2``.

    Formats without fields for a protocol, a seed or a view need it so that no score takes the place of another.
    """
    conditions = [_conditions(score.cell) for score in found]
    twins: dict[tuple[str, str], list[list[str]]] = {}
    for score, own in zip(found, conditions, strict=True):
        twins.setdefault((score.cell.task, score.cell.language), []).append(own)
    return [
        "_".join(
            part
            for part in own
            if any(part not in twin for twin in twins[score.cell.task, score.cell.language])
        )
        for score, own in zip(found, conditions, strict=True)
    ]


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


def scores(run: Run) -> Iterator[Score]:
    """Yield the metrics of all finished cells, in the order of the run."""
    metrics = open_session().registry.metrics
    for cell in run.cells:
        if not cell.is_scored:
            continue
        headline = run.manifest.tasks[cell.task].headline
        for name, value in cell.metrics.items():
            yield Score(
                run=run,
                cell=cell,
                metric=name,
                value=value,
                headline=name in headline,
                higher_is_better=name not in metrics or metrics.get(name).higher_is_better,
            )
