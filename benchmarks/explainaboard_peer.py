"""ExplainaBoard 0.12.7 on the items of our own runs, in the environment that ``make .venv-explainaboard`` makes.

Plain pip cannot install it: what it needs imports names that newer packages have removed. ``explainaboard.txt`` is a
set of versions with which its command runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run

PYTHON = Path(".venv-explainaboard/bin/python")
TASKS = {"questions": "qa-extractive", "entities": "named-entity-recognition"}


def peer_command(run: Path, task: str) -> list[str] | None:
    """Return the command that diagnoses the items of a run, with intervals; None where it is not installed."""
    if not PYTHON.is_file():
        return None
    gold, output = run / "peer.gold", run / "peer.output"
    records = list(_records(run))
    if task == "questions":
        gold.write_text(json.dumps([_question(record) for record in records]), encoding="utf-8")
        answered = [
            {**_question(record), "predicted_answers": {"text": record.prediction["text"]}}
            for record in records
        ]
        output.write_text(json.dumps(answered), encoding="utf-8")
    else:
        gold.write_text(_tagged(records, gold=True), encoding="utf-8")
        output.write_text(_tagged(records, gold=False), encoding="utf-8")
    files = ["--custom-dataset-paths", str(gold), "--system-outputs", str(output)]
    # The newer name of the option is ignored: both share a destination, and the older one's default wins.
    options = ["--conf-value", "0.05", "--skip-failed-analyses", "--report-json", str(run / "peer.json")]
    return [str(PYTHON), "-m", "explainaboard.explainaboard_main", "--task", TASKS[task], *files, *options]


def _records(run: Path) -> Iterator[ItemRecord]:
    opened = Run(run)
    for cell in opened.cells:
        yield from opened.records(cell)


def _question(record: ItemRecord) -> dict[str, object]:
    answers = {"text": list(record.reference), "answer_start": [0] * len(record.reference)}
    fields = record.fields
    return {
        "id": record.id,
        "context": fields["context"],
        "question": fields["question"],
        "answers": answers,
    }


def _tagged(records: list[ItemRecord], *, gold: bool) -> str:
    sentences = []
    for record in records:
        tags = record.reference if gold else record.prediction
        rows = zip(record.fields["tokens"], tags, strict=True)
        sentences.append("".join(f"{token}\t{tag}\n" for token, tag in rows))
    return "\n".join(sentences)
