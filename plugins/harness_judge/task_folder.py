"""The folder of a judgement: a spec, a prompt, answers of a run or two as its items; and the rubric of the judge."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from harness import DataError, Run, UnknownNameError, UsageError
from harness.specs import Code, Literals, Name, SpecModel, read_yaml, validate_document
from harness.storage import CellResult, ItemRecord, write_atomically
from harness_judge.kind import ORDERS

INPUTS = {
    "gold": ("source", "reference", "answer"),
    "scale": ("source", "answer"),
    "pair": ("source", "first", "second"),
}
METRICS = {
    "gold": ("judge_accuracy", "judge_kappa"),
    "scale": ("judge_rating",),
    "pair": ("judge_preference", "judge_order_change"),
}
Item = dict[str, Any]
Cells = Mapping[tuple[str, str], CellResult]
TAG = re.compile(r"<(?=\s*/?\s*(?:source|reference|answer|answer[12])\s*>)", re.IGNORECASE)
LANGUAGES = ("source_name", "target_name")
"""Fields with the names of the languages of a translation."""
NO_TEXTS = frozenset({"id", "names", *LANGUAGES})
"""Fields of an item that are no texts of it."""


class Rubric(SpecModel):
    """A rubric; its texts are those of a prompt (`harness.specs.documents.PromptSpec`)."""

    rubric: Name
    judges: Literal["gold", "scale", "pair"]
    """`gold`: whether an answer agrees with the reference, compared with the item's own score; `scale`: how good an
    answer is; `pair`: which of two answers is better."""
    description: str
    source: str
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    """The verdicts, from the worst to the best; ``no``, ``yes`` of gold and ``1``, ``2``, ``0`` (a tie) of pairs."""
    item: str
    choice: str = " {label}"
    literals: dict[Code, Literals]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fields that `item` may show: `languages`, a line before the source, only where it does."""
        further = ("languages",) if "{languages}" in self.item else ()
        return (*INPUTS[self.judges], *further)

    @property
    def identity(self) -> str:
        """``NAME@DIGEST``: the digest is of all its words, so that a passport is for what the judge is asked."""
        return f"{self.rubric}@{sha256(self.model_dump_json().encode()).hexdigest()[:16]}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of the verdicts."""
        return METRICS[self.judges]


def read_rubric(name: str) -> Rubric:
    """Return a shipped rubric by name, or one of a file; raises `UsageError`, and `SpecError` with all its faults."""
    shipped = {
        file.name.removesuffix(".yaml"): file
        for file in files("harness_judge").joinpath("rubrics").iterdir()
        if file.name.endswith(".yaml")
    }
    source = shipped.get(name) or Path(name)
    if name not in shipped and not name.endswith((".yaml", ".yml")):
        raise UnknownNameError("rubric", name, sorted(shipped))
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The rubric {name!r} cannot be read: {reason}.") from error
    return validate_document(Rubric, read_yaml(text, name))


def write_tasks(runs: Sequence[Run], rubric: Rubric, folder: Path) -> dict[str, dict[str, int]]:
    """Write a task for every task of the runs, and return its items by language.

    Raises:
        UsageError: Where the rubric does not fit the runs, a run has two cells of a task in a language, or the folder
            is not empty.
        DataError: For damaged records, and a task or language whose name cannot be that of a file.
    """
    wanted = 2 if rubric.judges == "pair" else 1
    if len(runs) != wanted:
        raise UsageError(
            f"The rubric {rubric.rubric!r} judges {'two runs' if wanted == 2 else 'one run'}, got {len(runs)}."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"The folder {str(folder)!r} is not empty.", hint="Give another one with --output.")
    sides = [_cells(run) for run in runs]
    items: dict[str, dict[str, list[Item]]] = {}
    for task, language in sides[0]:
        if all((task, language) in side for side in sides):
            cells = [side[task, language] for side in sides]
            own = list(_items(runs, cells, rubric))
            if own:
                items.setdefault(task, {})[language] = own
    if not items:
        raise UsageError("The runs have no answers to judge: no finished cell is in all of them.")
    written = {}
    for task, by_language in items.items():
        name = f"judge_{_plain(task)}_{rubric.rubric}"
        _write(name, task, by_language, rubric, runs, folder)
        written[name] = {code: len(own) for code, own in by_language.items()}
    return written


def _cells(run: Run) -> Cells:
    found: dict[tuple[str, str], CellResult] = {}
    for cell in run.cells:
        if cell.status != "ok":
            continue
        if found.setdefault((cell.task, cell.language), cell) is not cell:
            raise UsageError(
                f"The run {str(run.path)!r} has several cells of {cell.task} in {cell.language}; a judged run has one "
                "prompt, seed and variant.",
                hint="Evaluate again with one of them: --prompt NAME, --seeds N or --variants NAME.",
            )
    return found


def _items(runs: Sequence[Run], cells: Sequence[CellResult], rubric: Rubric) -> Iterator[Item]:
    first = runs[0].records(cells[0])
    if rubric.judges == "pair":
        others = {record.id: record for record in runs[1].records(cells[1])}
        for record in first:
            other = others.get(record.id)
            if other is not None and other.inputs == record.inputs:
                yield from _pair(record, other)
        return
    for record in first:
        own: Item = {"id": record.id, "cluster": record.cluster or record.id, "label": None}
        own |= _source(record) | {"answer": _answer(record)}
        if rubric.judges == "gold":
            if record.correct is None:
                raise UsageError(
                    f"{cells[0].task} has no answers that are right or wrong, which the rubric "
                    f"{rubric.rubric!r} compares the judge with.",
                    hint="Use a rubric with a scale, such as --rubric translation.",
                )
            own |= {
                "reference": _data(record.gold or ""),
                "label": rubric.labels[-1 if record.correct else 0],
            }
        yield own


def _pair(record: ItemRecord, other: ItemRecord) -> Iterator[Item]:
    answers = [_answer(record), _answer(other)]
    for order in ORDERS:
        shown = answers if order == ORDERS[0] else answers[::-1]
        yield {
            "id": f"{record.id}-{order}",
            "cluster": record.cluster or record.id,
            "label": None,
            "meta": {"pair": record.id, "order": order},
            **_source(record),
            "first": shown[0],
            "second": shown[1],
        }


def _source(record: ItemRecord) -> dict[str, str]:
    """Return the texts of an item, and a line with the languages of a translation or summary, otherwise empty."""
    texts = _texts({key: value for key, value in record.fields.items() if key not in NO_TEXTS})
    # Without it, a copy of the source is a fluent text with the whole meaning.
    names = dict.fromkeys(str(record.fields[name]) for name in LANGUAGES if record.fields.get(name))
    return {"source": _data("\n".join(texts)), "languages": "\n" + " → ".join(names) if names else ""}


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of an item; the choices of one with choices are among them, names of fields are not."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for own in value.values():
            yield from _texts(own)
    elif isinstance(value, list):
        for own in value:
            yield from _texts(own)


def _answer(record: ItemRecord) -> str:
    """Return the written text of the model where it wrote, otherwise its answer; empty where there is none."""
    prediction = record.prediction
    written = prediction.get("raw") if isinstance(prediction, Mapping) else None
    return _data(written if isinstance(written, str) else record.answer or "")


def _data(text: str) -> str:
    """Return a text in which no tag of a rubric ends it early: a judged answer is data, not part of the prompt."""
    return TAG.sub("‹", text)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", name.lower())


def _write(
    name: str, task: str, items: Mapping[str, list[Item]], rubric: Rubric, runs: Sequence[Run], folder: Path
) -> None:
    judged = " and ".join(
        f"{run.results.run.id} ({run.results.model.ref}, {run.results.run.data} data)" for run in runs
    )
    spec = {
        "task": name,
        "kind": "judgement",
        "version": 1,
        "description": f"{rubric.description} The answers of {judged} to {task}.",
        "citation": rubric.source,
        "license": "that of the judged items and answers",
        "inputs": list(rubric.inputs),
        "labels": list(rubric.labels),
        "rubric": rubric.identity,
        "metrics": list(rubric.metrics),
        "cluster": "cluster",
        "draw": "clusters" if rubric.judges == "pair" else "items",
        "protocols": ["prompted"],
        "splits": {"test": {"local": f"{name}/{{language}}.jsonl", "reader": "jsonl"}},
        "languages": {code: {} for code in items},
    }
    prompt = {
        "prompt": f"{name}/default",
        "tasks": [name],
        "kind": "judgement",
        "formulation": "hybrid",
        "max_tokens": 16,
        "stop": [],
        **rubric.model_dump(mode="json", include={"description", "source", "item", "choice", "literals"}),
    }
    for code, own in items.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]+", code):
            raise DataError(f"The language {code!r} of {task} cannot be the name of a file.")
        lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in own)
        _keep(folder / name / f"{code}.jsonl", lines)
    for suffix, document in (("", spec), (".prompt", prompt)):
        text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=110)
        _keep(folder / f"{name}{suffix}.yaml", text)


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
