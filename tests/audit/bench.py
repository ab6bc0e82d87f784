"""Plants a fault in a copy of a shipped task, and audits the copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.checks.task_audit import Finding, Note, TaskAudit
from harness.languages.table import known_languages
from harness.metrics.catalog import METRICS
from harness.metrics.metric import Metric, MetricContext, MetricResult
from harness.running.auditor import audited_entry, open_auditor
from harness.running.session import open_session
from harness_audit.auditor import TaskAuditor

Rows = list[dict[str, Any]]
SPECS = Path(str(files("harness_task_specs")))
KNOWN = frozenset(language.code for language in known_languages())


def scorer(name: str, score: Callable[[Any, Any], float], like: str = "accuracy") -> Metric:
    """Return a metric whose item score is a function of prediction and reference."""

    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        items = np.array([float(score(*pair)) for pair in zip(predictions, references, strict=True)])
        return MetricResult(value=float(items.mean()), items=items)

    [model] = [item for item in METRICS if item.name == like]
    return replace(model, name=name, compute=compute)


@dataclass(kw_only=True)
class Bench:
    """A copy of one shipped task, with its sample, that a test may spoil."""

    folder: Path
    task: str
    monkeypatch: pytest.MonkeyPatch
    languages: tuple[str, ...] = ("en", "de")
    """Those whose sample is audited."""
    prompts: list[str] = field(default_factory=list)
    """Further prompts, as YAML."""
    metric: Metric | None = None
    """Scored instead of the task's own."""
    local: dict[str, str] = field(default_factory=dict)
    """Files of a data folder; the sample is audited where there are none."""
    lock: Path | None = None
    spec: str = ""

    def __post_init__(self) -> None:
        [source] = SPECS.glob(f"*/{self.task}.yaml")
        self.spec = source.read_text(encoding="utf-8")

    def replaced(self, old: str, new: str) -> None:
        """Replace a part of the spec, which must be there."""
        assert old in self.spec, old
        self.spec = self.spec.replace(old, new)

    def rows(self, name: str) -> Rows:
        """Return the rows of a file of the sample, such as ``xnli/sw``."""
        own = self.folder / "sample" / f"{name}.jsonl"
        path = own if own.exists() else SPECS / "sample" / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def write(self, name: str, rows: Rows) -> None:
        """Write a file of the sample anew."""
        path = self.folder / "sample" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")

    def change(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change every row of a file of the sample."""
        self.write(name, [change(row) for row in self.rows(name)])

    def audit(self) -> TaskAudit:
        """Return what is found of the copy."""
        for source in (SPECS / "sample").rglob("*"):
            target = self.folder / "sample" / source.relative_to(SPECS / "sample")
            codes = set(source.name.split(".")) & KNOWN
            if source.is_file() and not target.exists() and (not codes or codes & {*self.languages}):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
        folders = [self.folder / "prompts"] if self.prompts else []
        for folder in folders:
            folder.mkdir(exist_ok=True)
        for number, text in enumerate(self.prompts):
            (self.folder / "prompts" / f"{number}.yaml").write_text(text, encoding="utf-8")
        for name, text in self.local.items():
            path = self.folder / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        spec = self.folder / f"{self.task}.yaml"
        spec.write_text(self.spec, encoding="utf-8")
        session = open_session(folders)
        entry = audited_entry(session.catalog, "task", self.task, str(spec))
        assert entry is not None
        data = [str(self.folder / "data")] if self.local else ["sample"]
        auditor = open_auditor(session, data, self.lock)
        if self.metric is not None:
            metrics = [self.metric]
            self.monkeypatch.setattr(TaskAuditor, "_metrics", lambda auditor, entry: metrics)
        return auditor.audit(entry)


def found_by(report: TaskAudit, check: str, language: str | None = None) -> list[Finding | Note]:
    """Return what is found or noted by a check, in a language."""
    found: list[Finding | Note] = [*report.findings, *report.notes]
    return [
        item for item in found if item.check == check and (language is None or language in item.languages)
    ]


Spoil = Callable[[Bench], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One planted fault, and what the audit must report of it."""

    fault: str
    seen: str
    """Where it was seen; empty where it is invented."""
    task: str
    check: str
    language: str | None
    spoil: Spoil
    note: bool = False
    """Whether it may be intended, so that it is a note and no fault."""


class PlantList(list[Plant]):
    """Faults in the order in which they are declared."""

    def planted(
        self,
        task: str,
        fault: str,
        check: str,
        language: str | None = None,
        *,
        seen: str = "",
        note: bool = False,
    ) -> Callable[[Spoil], Spoil]:
        """Return what adds a function that plants a fault."""

        def add(spoil: Spoil) -> Spoil:
            self.append(
                Plant(
                    fault=fault, seen=seen, task=task, check=check, language=language, spoil=spoil, note=note
                )
            )
            return spoil

        return add
