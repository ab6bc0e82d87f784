from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.checks.task_audit import TaskAudit
from harness.running.auditor import open_auditor
from harness.running.session import open_session
from harness.specs.task_entry import TaskEntry

Audit = Callable[..., TaskAudit]

SPEC = """
task: mood
kind: sequence_classification
version: 1
description: Whether a remark is pleased.
citation: example2026mood
license: cc0-1.0
inputs: [text]
labels: [annoyed, pleased]
metrics: [accuracy]
chance: 0.5
parallel: true
transfer: {source: en, stages: [mood], recipe: xtreme_r}
releases:
  first: {counts: 40}
splits:
  test:
    local: mood/test-{language}.tsv
    columns: [text, label]
    label_map: {"1": pleased, "0": annoyed}
languages:
  en:
    provenance: native
    train: {local: mood/train-en.tsv, columns: [text, label], label_map: {"1": pleased, "0": annoyed}}
  de: {provenance: human-translated}
  ru: {provenance: human-translated}
"""
WORDS: Mapping[str, str] = {
    "en": "The remark about number",
    "de": "Die Bemerkung über",
    "ru": "Замечание о числе",
}


def remarks(language: str, size: int = 40) -> list[tuple[str, str]]:
    """Return (text, raw label) of a balanced test set."""
    return [(f"{WORDS[language]} {number}", str(number % 2)) for number in range(size)]


@pytest.fixture
def data() -> dict[str, Sequence[tuple[str, str]]]:
    """Return the files of the task ``mood`` without a fault, to be changed by tests."""
    files: dict[str, Sequence[tuple[str, str]]] = {f"test-{code}": remarks(code) for code in WORDS}
    files["train-en"] = [(f"Some other words, the example {number}", str(number % 2)) for number in range(8)]
    return files


@pytest.fixture
def audit(tmp_path: Path, data: dict[str, Sequence[tuple[str, str]]]) -> Audit:
    """Audit the task ``mood`` with its prompts on the files of `data`."""

    def audited(*, spec: str = SPEC, prompts: Sequence[str] = ()) -> TaskAudit:
        (tmp_path / "data" / "mood").mkdir(parents=True, exist_ok=True)
        for name, rows in data.items():
            text = "".join(f"{sentence}\t{label}\n" for sentence, label in rows)
            (tmp_path / "data" / "mood" / f"{name}.tsv").write_text(text, encoding="utf-8")
        folder = tmp_path / "specs"
        folder.mkdir(exist_ok=True)
        (folder / "mood.yaml").write_text(spec, encoding="utf-8")
        for number, prompt in enumerate(prompts):
            (folder / f"prompt{number}.yaml").write_text(prompt, encoding="utf-8")
        session = open_session([folder])
        auditor = open_auditor(session, [tmp_path / "data"])
        entry: TaskEntry = session.catalog.task("mood")
        return auditor.audit(entry)

    return audited
