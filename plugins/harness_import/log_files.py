"""Logs of other harnesses, and plain tables of answers: which files are logs, and their cells with their items."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from harness import DataError, HarnessError, UsageError, near_names, require_extra, show_step
from harness.data import CSV, TSV, Row, read_jsonl, read_parquet, whole_text
from harness_import.logged import (
    UNDETERMINED,
    LoggedCell,
    LoggedItem,
    asked_choices,
    choice_position,
    joined,
    language_code,
    plain_scores,
    split_language,
    without_gold,
)

_INVALID: Final = "[invalid]"
"""The answer of lm-eval's filters that find none, ``lm_eval/filters/extraction.py``."""
_CLOSE: Final = 1e-6
_UNUSED: Final = {"messages", "events", "store", "attachments"}
_OPENING: Final = 4096
_COUNTS: Final = frozenset({"num_failed_instances"})
_COLUMNS: Final = ("model", "task", "language", "id", "answer", "gold", "score")
_READERS: Final = {
    ".csv": (CSV.read, {}),
    ".tsv": (TSV.read, {"header": "true", "quoting": "rfc4180"}),
    ".jsonl": (read_jsonl, {}),
    ".parquet": (read_parquet, {}),
}
"""By suffix: what reads a table, and with which options."""
_TRUTH: Final = {"true": 1.0, "false": 0.0}
Read = Callable[[Path], Iterator[LoggedCell]]
SUFFIXES: Final = frozenset({".eval", ".json", *_READERS})
_EXPECTED: Final = (
    "Expected lm-eval's samples_*.jsonl with results_*.json, logs of inspect_ai, EuroEval's results, instances of "
    f"Every Eval Ever, or a table with the columns {', '.join(_COLUMNS)}."
)


def _is_samples(first: Mapping[str, Any]) -> bool:
    """Return whether the first record of a file is one of lm-eval's samples."""
    return {"doc_id", "doc", "filtered_resps", "filter"} <= first.keys()


def _read_samples(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a file of samples, one per filter.

    Raises `UsageError` where the results file is missing, and `DataError` where a line or the results are broken.
    """
    task, _, date = path.stem.removeprefix("samples_").rpartition("_")
    results_path = path.with_name(f"results_{date}.json")
    if not results_path.is_file():
        raise UsageError(
            f"The samples {str(path)!r} are without their results file {results_path.name!r}, which names the model.",
            hint="Give both files in one folder, as lm-eval writes them with --output_path and --log_samples.",
        )
    results = _results(results_path)
    configs = results.get("configs") or {}
    # Characters that a file name cannot have are replaced in it, so that the task is looked up the other way around.
    name = next((each for each in configs if each == task or _sanitized(each) == task), task)
    config: Mapping[str, Any] = configs.get(name) or {}
    base, language = split_language(name, str(config.get("dataset_name") or ""))
    rows: dict[str, list[Row]] = {}
    for row in read_jsonl([path], {}):
        rows.setdefault(str(row.fields.get("filter")), []).append(row)
    settings: Mapping[str, Any] = results.get("config") or {}
    shots = (results.get("n-shot") or {}).get(name)
    version = (results.get("versions") or {}).get(name)
    for chosen, filtered in rows.items():
        view = {"shots": str(shots)} if shots else {}
        items = [_sample_item(row, str(config.get("output_type"))) for row in filtered]
        items, notes = _kept_metrics(name, chosen, items, results)
        yield LoggedCell(
            harness="lm_eval",
            version=str(results.get("lm_eval_version") or "unknown"),
            model=str(results.get("model_name") or results_path.parent.name),
            task=base,
            logged_name=name,
            language=language,
            items=items,
            files=(results_path, path),
            view=view if len(rows) == 1 else {**view, "filter": chosen},
            task_version=int(version) if isinstance(version, int | float) else None,
            parameters=settings.get("model_num_parameters"),
            seed=settings.get("random_seed"),
            notes=notes,
        )


def _results(path: Path) -> Mapping[str, Any]:
    # lm-eval writes NaN for scores that are none.
    try:
        content = json.loads(whole_text(path))
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}.") from error
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        raise DataError(f"{path}: expected the results of lm-eval, an object with the key 'results'.")
    return content


def _sanitized(name: str) -> str:
    return "".join("_" if mark in '"<>:/|\\?*[]' else mark for mark in name)


def _sample_item(row: Row, output_type: str) -> LoggedItem:
    sample = row.fields
    try:
        document, responses = sample["doc"], sample["filtered_resps"]
        names, target = list(sample["metrics"]), str(sample["target"])
    except (KeyError, TypeError) as error:
        raise DataError(f"{row.where}: expected a sample of lm-eval, without {error}.") from error
    fields = without_gold(document) if isinstance(document, Mapping) else {"doc": document}
    choices: tuple[str, ...] = ()
    answer: str | None
    if output_type == "multiple_choice":
        # The second half of the requests is without context, for one of the metrics.
        halves = 2 if "acc_mutual_info" in names else 1
        choices = _continuations(sample.get("arguments"))
        choices = choices[: len(choices) // halves]
        answer = _best(responses[: len(responses) // halves], row)
        gold = target if target.isdecimal() else choice_position(target.strip(), choices)
    else:
        answer, gold = _written(responses) if output_type == "generate_until" else None, target
    unparsed = answer == _INVALID
    return LoggedItem(
        id=str(sample["doc_id"]),
        answer=None if unparsed else answer,
        gold=gold,
        scores=plain_scores({name: sample.get(name) for name in names}),
        fields=fields,
        choices=choices,
        unparsed=unparsed,
    )


def _continuations(arguments: Any) -> tuple[str, ...]:
    """Return the texts that were ranked, from what a request was made of."""
    requests = arguments.values() if isinstance(arguments, Mapping) else arguments or ()
    pairs = [
        list(request.values()) if isinstance(request, Mapping) else list(request) for request in requests
    ]
    return tuple(str(pair[1]).strip() for pair in pairs if len(pair) > 1)


def _best(responses: Any, row: Row) -> str:
    """Return the position of the first of the most likely choices, as lm-eval's `process_results` takes it."""
    try:
        sums = [float(response[0]) for response in responses]
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(f"{row.where}: expected a log-likelihood for every choice.") from error
    return str(sums.index(max(sums)))


def _written(responses: Any) -> str | None:
    first = responses[0] if isinstance(responses, list) and responses else responses
    return str(first[0] if isinstance(first, list) and first else first).strip()


def _kept_metrics(
    name: str, chosen: str, items: Sequence[LoggedItem], results: Mapping[str, Any]
) -> tuple[list[LoggedItem], tuple[str, ...]]:
    """Return the items with the metrics that are a mean of them, and higher for better answers; and what was dropped.

    A metric that lm-eval aggregates in another way (F1 over all items, BLEU, perplexity) has no score of an item.
    """
    aggregates = results["results"].get(name) or {}
    better = (results.get("higher_is_better") or {}).get(name) or {}
    dropped = {}
    for metric in dict.fromkeys(metric for item in items for metric in item.scores):
        values = [item.scores[metric] for item in items if metric in item.scores]
        total = aggregates.get(f"{metric},{chosen}")
        if better.get(metric) is False:
            dropped[metric] = "is lower for better answers"
        elif isinstance(total, int | float) and not math.isclose(fmean(values), total, abs_tol=_CLOSE):
            dropped[metric] = f"is {total:g} in the results and {fmean(values):g} as the mean of the samples"
    kept = [
        replace(item, scores={key: value for key, value in item.scores.items() if key not in dropped})
        for item in items
    ]
    return kept, tuple(f"{name}: {metric} {reason}: left out." for metric, reason in dropped.items())


def _is_log(path: Path) -> bool:
    """Return whether a file is a log of inspect_ai, by its suffix or, as JSON, by its first keys."""
    if path.suffix != ".json":
        return path.suffix == ".eval"
    with path.open("rb") as file:
        opening = file.read(_OPENING)
    return b'"status"' in opening and b'"eval_id"' in opening


def _read_log(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a log, one per language of its samples.

    Raises `MissingExtraError` where inspect_ai is not installed, and `DataError` for a broken or unfinished log.
    """
    with require_extra("Reading logs of inspect_ai", "inspect", f"{__name__}:read_log"):
        tool: Any = importlib.import_module("inspect_ai.log")
        scorer: Any = importlib.import_module("inspect_ai.scorer")
    try:
        log = tool.read_eval_log(str(path), exclude_fields=_UNUSED)
    except Exception as error:  # its package raises what its parsers do
        raise DataError(f"{path} cannot be read by inspect_ai: {error}.") from error
    if log.status != "success" or not log.samples:
        raise DataError(
            f"{path}: expected a finished log with samples, found one with the status {log.status!r} and "
            f"{len(log.samples or ())} samples.",
            hint="Finish it with 'inspect eval-retry', or leave the file out.",
        )
    task, language = split_language(log.eval.task.rpartition("/")[2], *_languages(log.eval.task_args))
    to_float = scorer.value_to_float()
    shots = next((str(value) for key, value in log.eval.task_args.items() if "shot" in key.lower()), None)
    cell = LoggedCell(
        harness="inspect_ai",
        version=str((log.eval.packages or {}).get("inspect_ai", "unknown")),
        model=log.eval.model,
        task=task,
        logged_name=log.eval.task,
        language=language,
        files=(path,),
        view={"shots": shots} if shots and shots != "0" else {},
        task_version=log.eval.task_version if isinstance(log.eval.task_version, int) else None,
    )
    for code, samples in _by_language(log.samples, language, path).items():
        yield replace(cell, language=code, items=[_inspect_item(sample, to_float) for sample in samples])


def _by_language(samples: Sequence[Any], language: str, path: Path) -> dict[str, list[Any]]:
    by_code: dict[str, list[Any]] = {}
    for sample in samples:
        named = _languages(sample.metadata) or [language]
        by_code.setdefault(language_code(named[0], str(path)), []).append(sample)
    return by_code


def _languages(settings: Mapping[str, Any] | None) -> list[str]:
    return [str(value) for key, value in (settings or {}).items() if key.lower() in {"language", "lang"}]


def _inspect_item(sample: Any, to_float: Any) -> LoggedItem:
    scores: dict[str, Any] = {}
    answers = []
    for name, score in (sample.scores or {}).items():
        is_several = isinstance(score.value, dict)
        parts = (
            {f"{name}_{key}": each for key, each in score.value.items()}
            if is_several
            else {name: score.value}
        )
        scores |= {key: to_float(value) for key, value in parts.items()}
        answers.append(score.answer)
    choices = tuple(map(str, sample.choices or ()))
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    answer = next((each for each in answers if each is not None), None)
    messages = [] if isinstance(sample.input, str) else sample.input
    asked = "\n".join(message.text for message in messages) or str(sample.input)
    identifier = str(sample.id)
    return LoggedItem(
        id=identifier if sample.epoch == 1 else f"{identifier}#{sample.epoch}",
        answer=choice_position(answer, choices),
        gold=choice_position(targets[0] if len(targets) == 1 else None, choices),
        scores=plain_scores(scores),
        fields={
            "input": asked,
            **asked_choices(choices),
            **without_gold(json.loads(json.dumps(sample.metadata or {}, default=str))),
        },
        choices=choices,
        cluster=identifier,
        unparsed=answer is None,
    )


def _is_records(first: Mapping[str, Any]) -> bool:
    """Return whether the first record of a file is one of EuroEval's results."""
    return {"dataset", "task", "model", "results"} <= first.keys()


def _read_results(path: Path) -> Iterator[LoggedCell]:
    """Yield a cell per record and language; raises `DataError` where a record is broken."""
    for row in read_jsonl([path], {}):
        record = row.fields
        raw = record["results"].get("raw") if isinstance(record.get("results"), Mapping) else None
        iterations = raw.get("test") if isinstance(raw, Mapping) else raw
        languages = record.get("languages") or record.get("dataset_languages") or []
        if not iterations or not isinstance(iterations, list) or not languages:
            raise DataError(f"{row.where}: expected 'languages' and the list 'raw' of 'results' of EuroEval.")
        few_shot, validation = record.get("few_shot"), record.get("validation_split")
        generative = bool(record.get("generative"))
        # Languages that share a data set, such as the two of Norwegian, share its score.
        language = language_code(str(languages[0]), row.where)
        yield LoggedCell(
            harness="euroeval",
            version=str(record.get("euroeval_version") or record.get("scandeval_version") or "unknown"),
            model=str(record["model"]),
            task=str(record["dataset"]),
            language=language,
            items=[_iteration(number, scores, row) for number, scores in enumerate(iterations, start=1)],
            files=(path,),
            view={
                **({"shots": "few" if few_shot else "0"} if generative else {}),
                **({"split": "validation"} if validation else {}),
            },
            protocol="prompted" if generative else "in_language",
            parameters=record.get("num_model_parameters"),
            notes=(f"{record['dataset']}: its items are EuroEval's iterations; the log has no answers.",),
        )


def _iteration(number: int, scores: Any, row: Row) -> LoggedItem:
    if not isinstance(scores, Mapping):
        raise DataError(f"{row.where}: expected the scores of an iteration by name, found {scores!r}.")
    named = {name.removeprefix("test_"): value for name, value in scores.items() if name not in _COUNTS}
    return LoggedItem(id=f"iteration-{number}", answer=None, gold=None, scores=plain_scores(named))


def _is_instances(first: Mapping[str, Any]) -> bool:
    """Return whether the first record of a file is one of Every Eval Ever's instances."""
    return {"schema_version", "evaluation_name", "sample_id", "evaluation", "model_id"} <= first.keys()


def _read_instances(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a file; raises `DataError` where a record is broken."""
    yield from joined(_cell_and_item(row, path) for row in read_jsonl([path], {}))


def _cell_and_item(row: Row, path: Path) -> tuple[LoggedCell, LoggedItem]:
    try:
        name = str(row.fields["evaluation_name"])
        task, language = split_language(name)
        cell = LoggedCell(
            harness="every_eval_ever",
            version=f"schema {row.fields['schema_version']}",
            model=str(row.fields["model_id"]),
            task=task,
            logged_name=name,
            language=language_code((row.fields.get("metadata") or {}).get("language") or language, row.where),
            files=(path,),
        )
        return cell, _instance_item(row)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{row.where}: expected an instance of Every Eval Ever: {error!r}.") from error


def _instance_item(row: Row) -> LoggedItem:
    record = row.fields
    asked, evaluation = record["input"], record["evaluation"]
    choices = tuple(map(str, asked.get("choices") or ()))
    attribution = [each for each in record.get("answer_attribution") or () if each.get("is_terminal")]
    raw = (record.get("output") or {}).get("raw") or []
    written = attribution[-1]["extracted_value"] if attribution else (raw[0] if raw else None)
    references: Sequence[str] = asked.get("reference") or []
    return LoggedItem(
        id=str(record["sample_id"]),
        answer=choice_position(written, choices),
        gold=choice_position(references[0] if len(references) == 1 else None, choices),
        scores=plain_scores({"score": evaluation["score"], "is_correct": evaluation["is_correct"]}),
        fields={"input": str(asked["raw"]), **asked_choices(choices)},
        choices=choices,
    )


def _read_table(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a table; further columns are what was asked.

    ``cluster`` marks what is resampled together, and ``protocol`` how the model was prepared.

    Raises `DataError` where a column is missing, and for a score that is no number.
    """
    yield from joined((_row_cell(row, path), _row_item(row)) for row in _read_rows(path))


def _row_cell(row: Row, path: Path) -> LoggedCell:
    missing = [name for name in _COLUMNS if name not in row.fields]
    if missing:
        near = near_names(missing[0], row.fields)
        raise DataError(
            f"{row.where}: a table of answers has the columns {', '.join(_COLUMNS)}; {missing[0]!r} is missing.",
            hint=f"Did you mean the column {near[0]!r}? Rename it." if near else None,
        )
    return LoggedCell(
        harness="table",
        version=path.suffix.removeprefix("."),
        model=_text(row, "model"),
        task=_text(row, "task"),
        language=language_code(_text(row, "language"), row.where),
        files=(path,),
        protocol=str(row.fields.get("protocol") or "prompted"),
    )


def _read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table; raises `DataError` where one is broken."""
    read, options = _READERS[path.suffix]
    yield from read([path], options)


def _text(row: Row, name: str) -> str:
    value = row.fields[name]
    if value is None or not str(value).strip():
        raise DataError(f"{row.where}: the column {name!r} is empty.")
    return str(value).strip()


def _optional(row: Row, name: str) -> str | None:
    value = row.fields[name]
    return None if value is None or value == "" else str(value)


def _row_item(row: Row) -> LoggedItem:
    fields: Mapping[str, Any] = {
        name: value for name, value in row.fields.items() if name not in {*_COLUMNS, "cluster", "protocol"}
    }
    cluster = row.fields.get("cluster")
    text = _text(row, "score")
    try:
        scores = plain_scores({"score": _TRUTH[text.lower()] if text.lower() in _TRUTH else float(text)})
    except ValueError:
        scores = {}
    if not scores:
        raise DataError(f"{row.where}: expected a finite number as the score, found {text!r}.")
    return LoggedItem(
        id=_text(row, "id"),
        answer=_optional(row, "answer"),
        gold=_optional(row, "gold"),
        scores=scores,
        fields=without_gold(fields),
        cluster=None if cluster is None or cluster == "" else str(cluster),
    )


_BY_RECORD: Final[tuple[tuple[Callable[[Mapping[str, Any]], bool], Read], ...]] = (
    (_is_samples, _read_samples),
    (_is_instances, _read_instances),
    (_is_records, _read_results),
)


def read_logs(paths: Sequence[Path], undetermined: str = UNDETERMINED) -> list[LoggedCell]:
    """Return all cells of logs; `undetermined` is the language of those that name none.

    Raises `UsageError` for a file that no reader takes and where there is none, and `DataError` for a broken one.
    """
    cells: list[LoggedCell] = []
    for path, read in _readable(paths):
        show_step(f"Reading {path.name}")
        for cell in read(path):
            _check_ids(cell)
            language = undetermined if cell.language == UNDETERMINED else cell.language
            scored = [item for item in cell.items if item.scores]
            lost = len(cell.items) - len(scored)
            notes = (
                (*cell.notes, f"{cell.title}: {lost} items have no score: left out.") if lost else cell.notes
            )
            cells.append(replace(cell, language=language, items=scored, notes=notes))
    if not cells:
        raise UsageError(f"No log is in {', '.join(map(str, paths))}.", hint=_EXPECTED)
    return cells


def _readable(paths: Sequence[Path]) -> Iterator[tuple[Path, Read]]:
    """Yield the logs with their readers: every file that is named must be one, of a folder those that are."""
    for path in paths:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
            yield from ((file, read) for file in files if (read := _reader(file, named=False)) is not None)
            continue
        if not path.is_file():
            raise UsageError(f"The log {str(path)!r} does not exist.")
        read = _reader(path, named=True)
        if read is not None:
            yield path, read
        elif not _is_results(path):
            raise UsageError(f"The file {str(path)!r} is no log that can be imported.", hint=_EXPECTED)


def _is_results(path: Path) -> bool:
    """Return whether a file is read with another one: lm-eval's results, which samples name."""
    return path.suffix == ".json" and path.name.startswith("results_")


def _reader(path: Path, *, named: bool) -> Read | None:
    if path.suffix in {".eval", ".json"}:
        return _read_log if _is_log(path) else None
    if path.suffix not in _READERS:
        return None
    try:
        first = next((row.fields for row in _read_rows(path)), {})
    except HarnessError:
        if named:
            raise
        return None
    readers = [read for fits, read in _BY_RECORD if fits(first)]
    is_table = named or set(_COLUMNS) <= first.keys()
    return readers[0] if readers else _read_table if is_table and first else None


def _check_ids(cell: LoggedCell) -> None:
    ids: set[str] = set()
    for item in cell.items:
        if item.id in ids:
            raise UsageError(
                f"The item {item.id!r} is twice in {cell.title} of {cell.model!r} ({cell.files[-1].name}).",
                hint="Give one run of a model and task at a time.",
            )
        ids.add(item.id)
