"""Describes an lm-eval task as a spec; lm-eval itself makes its requests and scores.

Only the task file is read: no data, and no Python is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from harness import Problem, SpecError, UsageError, near_names
from harness.languages import known_languages
from harness.specs import MadeTask
from harness_lm_eval.task_index import (
    CODE_VARIABLE,
    PREFIX,
    Python,
    TaskFile,
    TaskPlace,
    code_is_allowed,
    find_place,
    find_places,
    installed_version,
    names_of,
    read_task,
)

_LOCALE = re.compile(r"([A-Za-z]{2})[_-][A-Z]{2}")
"""A language with its country: ``HI_IN`` is Hindi, though ``in`` alone once meant Indonesian."""
_PAIR = re.compile(r"[a-z]{2,3}[_-][a-z]{2}")
_LEAST_WORD = 4
"""Letters of a name such as ``thai``; shorter ends are often words: ``physics_gre``, ``meta_ar_msa``."""
_SCORING = ("output_type", "metric_list", "filter_list", "num_fewshot")
LIKELIHOOD: Final = "lm_eval_likelihood"
GENERATION: Final = "lm_eval_generation"
_KINDS: Final = {"multiple_choice": LIKELIHOOD, "loglikelihood": LIKELIHOOD, "generate_until": GENERATION}
_USUAL_METRICS: Final = {
    "multiple_choice": ("acc", "acc_norm"),
    "loglikelihood": ("perplexity", "acc"),
    "generate_until": ("exact_match",),
}
"""``DEFAULT_METRIC_REGISTRY`` of lm-eval 0.4.13, ``lm_eval/api/registry.py``."""
_AGGREGATIONS: Final = {
    **dict.fromkeys(("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "likelihood"), "mean"),
    **{name: name for name in ("f1", "bleu", "chrf", "chrf++", "ter", "perplexity", "brier_score", "bypass")},
    "acc_all": "mean",
    "mcc": "matthews_corrcoef",
}
"""Registered metrics with their usual aggregation, ``lm_eval/api/metrics.py``."""
_LESS_IS_BETTER: Final = frozenset({"brier_score", "perplexity", "ter"})
_NO_SHARE: Final = _LESS_IS_BETTER | {"likelihood", "bypass"}
"""Metrics that are no share of the items: printed below the table, as lm-eval computes them."""
_GENERATION_KEYS: Final = (
    *("until", "do_sample", "temperature", "top_p"),
    *("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"),
)
_UNSUPPORTED: Final = {
    "class": "the task is a Python class, which makes its own requests",
    "doc_to_image": "images; only texts are supported",
    "doc_to_audio": "sounds; only texts are supported",
}
_UNDETERMINED: Final = {"name": "Undetermined", "script": "Zyyy", "family": "Undetermined"}
"""The ISO 639-3 and ISO 15924 names of an unknown language and script."""


def read_language(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the language code and the key that it comes from, ``dataset_name`` or ``task``; None without one.

    A code that is only the end of a longer name counts where no other part of the task's name is a code:
    ``blimp_nl__om_te`` is not Telugu.
    """
    for key in ("dataset_name", "task"):
        name = str(data.get(key) or "")
        for part in _whole_codes(name):
            code = _known_code(part)
            if code is not None:
                return code, key
        code = _ending(name, str(data.get("task") or ""))
        if code is not None:
            return code, key
    return None


def _whole_codes(name: str) -> Iterator[str]:
    """Yield full codes: the name, the language of ``HI_IN``, and ``swh_Latn`` at its end."""
    yield name
    locale = _LOCALE.fullmatch(name)
    if locale is not None:
        yield locale.group(1).lower()
    pair = re.split(r"[_.\-]", name)[-2:]
    if len(pair) == 2 and len(pair[1]) == _LEAST_WORD:
        yield "_".join(pair)


def _ending(name: str, task: str) -> str | None:
    parts = re.split(r"[_.\-]", name)
    known = known_languages().listed
    if len(parts[-1]) >= _LEAST_WORD:
        return _known_code(parts[-1])
    others = {*parts[:-1], *re.split(r"[_.\-]", task)} - {parts[-1]}
    is_pair = re.search(rf"(?:^|_)[a-z]{{2,3}}-{re.escape(parts[-1])}$", name) is not None
    if parts[-1] not in known or (not is_pair and any(part in known for part in others)):
        return None
    return parts[-1]


@lru_cache(maxsize=65_536)
def _known_code(name: str) -> str | None:
    """Return the language code of a name; English names of fewer than four letters are words, ``en_fr`` is a pair."""
    table = known_languages().listed  # codes of three letters are words of tasks: law, med
    code = None if _PAIR.fullmatch(name) else table.code_of(name)
    is_short = code is not None and len(name) < _LEAST_WORD and name.lower() == table.get(code).name.lower()
    return None if is_short and name not in table else code


def _family_names(pattern: str) -> list[str]:
    """Return the tasks of a task, a group, a tag, a glob, or a name without its language.

    Tasks that differ in their language only are one name, ``belebele``; ``belebele:sn+sw`` where the pattern names
    only some of its languages. Raises what `names_of` does.
    """
    places = find_places()
    if pattern not in places and _family_members(pattern):
        return [pattern]
    names = names_of(pattern)
    if pattern in names:
        return names
    return list(dict.fromkeys(_joined(names)))


def _family_members(name: str) -> Mapping[str, str]:
    """Return language -> task of the tasks whose name without the language is `name`; empty for fewer than two.

    They belong to one folder of benchmarks, since others have other prompts, and have the same kind of output, metrics,
    filters and shots. Of several such sets the largest one counts. A task of that name goes before them.
    """
    places = find_places()
    if name in places and not places[name].is_group:
        return {}
    families: dict[tuple[str, str], dict[str, str]] = {}
    for task in sorted(_candidates(name, places)):
        place = places[task]
        file = read_task(place.path)
        found = _without_language(task, file)
        if found is not None and found[0] == name:
            family = families.setdefault((place.benchmark, _scoring(file)), {})
            family.setdefault(found[1], task)
    largest = max(families.values(), key=len, default={})
    return largest if len(largest) > 1 else {}


def _joined(names: Sequence[str]) -> Iterator[str]:
    places, wanted = find_places(), set(names)
    families: dict[str, Mapping[str, str]] = {}
    for name in names:
        found = _without_language(name, read_task(places[name].path))
        family = "" if found is None else found[0]
        if family and family not in families:
            families[family] = _family_members(family)
        members = families.get(family, {})
        own = sorted(language for language, task in members.items() if task in wanted)
        if name not in members.values() or len(own) < 2:
            yield name
        else:
            yield family if len(own) == len(members) else f"{family}:{'+'.join(own)}"


def _candidates(name: str, places: Mapping[str, TaskPlace]) -> Iterator[str]:
    """Yield tasks whose name has one or two more parts than `name`, which are a language."""
    wanted = name.split("_")
    for task, place in places.items():
        parts = task.split("_")
        width = len(parts) - len(wanted)
        if place.is_group or width not in (1, 2):
            continue
        rests = (parts[:start] + parts[start + width :] for start in range(len(wanted) + 1))
        if any(
            rest == wanted and _known_code("_".join(parts[start : start + width])) is not None
            for start, rest in enumerate(rests)
        ):
            yield task


def _without_language(name: str, file: TaskFile) -> tuple[str, str] | None:
    """Return the name of a task without its language, and the language; None where the name does not have it."""
    found = read_language(file.data)
    parts = name.split("_")
    for width in (2, 1):
        for start in reversed(range(len(parts) - width + 1)):
            code = _known_code("_".join(parts[start : start + width]))
            rest = "_".join(parts[:start] + parts[start + width :])
            if found is not None and code == found[0] and rest:
                return rest, code
    return None


def _scoring(file: TaskFile) -> str:
    return repr([file.data.get(key) for key in _SCORING])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scoring:
    """One metric of a task."""

    name: str
    aggregation: str
    """A name of lm-eval's, or ``function:TASK`` for Python that the task's file names."""
    is_shown: bool


def make_document(name: str, shots: int) -> MadeTask:
    """Return the document of a task, or of all that differ from it in their language only.

    Raises `SpecError` with every key that cannot be taken, and `UsageError` where lm-eval is not installed or the
    task does not let its shots be changed.
    """
    version = installed_version(name)
    members = _family_members(name)
    files = {task: _checked(task) for task in members.values() or [name]}
    first, task = next(iter(files.items()))
    problems: list[Problem] = []
    metrics = list(_metrics(first, task, problems))
    if not problems and not any(metric.is_shown for metric in metrics):
        problems.append(task.problem("metric_list", "no metric is a share of the items"))
    if problems:
        raise SpecError(task.path, problems)
    own_shots = _shots(name, task, shots)
    found = read_language(task.data)
    if members:
        languages = {code: _test(member, files[member], own_shots) for code, member in members.items()}
        note = " One task of lm-eval for each language."
    elif found is not None:
        languages = {found[0]: _test(name, task, own_shots)}
        note = f" Its language {found[0]!r} was read off {found[1]} ({task.data[found[1]]})."
    else:
        languages, note = {"und": {**_test(name, task, own_shots), **_UNDETERMINED}}, ""
    description = f"The task {name} of lm-evaluation-harness {version}, asked and scored by it.{note}"
    content = _content(name, task.data, metrics, own_shots, languages) | {"description": description}
    return MadeTask(text=json.dumps(content, ensure_ascii=False), source=str(task.path))


def _checked(name: str) -> TaskFile:
    """Return the file of one task; raises `SpecError` with every key that cannot be taken."""
    place = find_place(name)
    task = read_task(place.path)
    problems = [*_problems(task, place)]
    if problems:
        raise SpecError(place.path, sorted(problems, key=lambda item: (item.line or 0, item.key)))
    return task


def _test(name: str, task: TaskFile, shots: int) -> dict[str, Any]:
    split = task.data.get("test_split") or task.data.get("validation_split")
    source = {"path": f"{PREFIX}:{name}", "split": str(split), "reader": "jsonl"}
    return {"test": {"hub": source | ({"config": "{shots}"} if shots else {})}}


def _content(
    name: str, data: Mapping[str, Any], metrics: list[_Scoring], shots: int, languages: Mapping[str, Any]
) -> dict[str, Any]:
    output_type = _output_type(data)
    keys = [(metric, name) for metric in metrics for name in _filters(data)]
    return {
        "task": f"{PREFIX}:{name}",
        "kind": _KINDS[output_type],
        "version": 1,
        "citation": "unknown",
        "license": "unknown",
        "output_type": output_type,
        "shots": shots,
        "task_version": str((data.get("metadata") or {}).get("version", "Yaml")),
        "metrics": [_own_name(metric.name, name) for metric, name in keys if metric.is_shown],
        "metric_options": {
            _own_name(metric.name, name): metric.aggregation for metric, name in keys if metric.is_shown
        },
        "further": {
            f"{metric.name},{name}": metric.aggregation for metric, name in keys if not metric.is_shown
        },
        "protocols": ["prompted"],
        **({"axes": {"shots": [str(shots)]}} if shots else {}),
        "languages": languages,
    }


def _own_name(metric: str, name: str) -> str:
    return f"{PREFIX}:{metric}" + ("" if name == "none" else f",{name}")


def _output_type(data: Mapping[str, Any]) -> str:
    return str(data.get("output_type") or "generate_until")


def _filters(data: Mapping[str, Any]) -> list[str]:
    given = data.get("filter_list")
    return [str(item["name"]) for item in given] if isinstance(given, list) else ["none"]


def _shots(name: str, task: TaskFile, wanted: int) -> int:
    """Return the number of examples before each item; as in lm-eval, a task that sets 0 keeps it."""
    own = task.data.get("num_fewshot")
    if wanted and own == 0:
        raise UsageError(
            f"--shots {wanted} cannot be given for '{PREFIX}:{name}', which says num_fewshot: 0.",
            hint="Run it by itself, without --shots.",
        )
    return wanted or int(own or 0)


# Problems ---------------------------------------------------------------------------------------------


def _problems(task: TaskFile, place: TaskPlace) -> Iterator[Problem]:
    data = task.data
    output_type = _output_type(data)
    if output_type not in _KINDS:
        expected = ", ".join(_KINDS)
        yield task.problem("output_type", f"{output_type!r} is not supported; expected {expected}")
    for key, reason in _UNSUPPORTED.items():
        if data.get(key) is not None:
            yield task.problem(key, reason)
    if data.get("unsafe_code"):
        yield task.problem("unsafe_code", "the task runs what a model writes, which is never done here")
    if not (data.get("test_split") or data.get("validation_split")):
        yield task.problem("task", "no test_split and no validation_split: there is nothing to score")
    options = data.get("generation_kwargs")
    for option in options if isinstance(options, Mapping) else ():
        if option not in _GENERATION_KEYS:
            near = near_names(option, _GENERATION_KEYS)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            yield task.problem("generation_kwargs", f"{option!r} is not an option of models here{meant}")
    if place.is_included and not code_is_allowed():
        yield from _code(task)


def _code(task: TaskFile) -> Iterator[Problem]:
    """Yield every place where a file of the user needs Python to run."""
    allow = f"set {CODE_VARIABLE}=1 to let it run"
    for key, value in task.data.items():
        for code in _functions(value):
            yield task.problem(key, f"!function {code.name} is Python of this folder: read it, then {allow}")
    arguments = task.data.get("dataset_kwargs")
    if isinstance(arguments, Mapping) and arguments.get("trust_remote_code"):
        yield task.problem("dataset_kwargs", f"trust_remote_code runs a program of the dataset: {allow}")
    if task.data.get("process_results") is None:
        for metric in _listed_metrics(task.data):
            name = metric.get("metric")
            if isinstance(name, str) and (metric.get("hf_evaluate") or name not in _AGGREGATIONS):
                message = f"{name!r} is no metric of lm-eval, which would run a program of that name: {allow}"
                yield task.problem("metric_list", message)


def _functions(value: Any) -> Iterator[Python]:
    if isinstance(value, Python):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _functions(item)
    elif isinstance(value, list):
        for item in value:
            yield from _functions(item)


# Metrics ----------------------------------------------------------------------------------------------


def _listed_metrics(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = data.get("metric_list")
    if given is None:
        return [{"metric": name} for name in _USUAL_METRICS.get(_output_type(data), ())]
    return [item if isinstance(item, Mapping) else {} for item in given] if isinstance(given, list) else []


def _metrics(name: str, task: TaskFile, problems: list[Problem]) -> Iterator[_Scoring]:
    for item in _listed_metrics(task.data):
        given = item.get("metric")
        metric = given.name.rpartition(".")[2] if isinstance(given, Python) else given
        if not isinstance(metric, str) or not metric:
            problems.append(task.problem("metric_list", f"expected the name of a metric, found {metric!r}"))
            continue
        aggregation = item.get("aggregation", _AGGREGATIONS.get(metric, "mean"))
        more = item.get("higher_is_better", metric not in _LESS_IS_BETTER)
        yield _Scoring(
            name=metric,
            aggregation=aggregation if isinstance(aggregation, str) else f"function:{name}",
            is_shown=bool(more) and metric not in _NO_SHARE,
        )


class _Source:
    """The source of ``lm_eval:NAME``; see `harness.specs.task_entry.MakesTasks`."""

    def names(self, pattern: str) -> list[str]:
        return _family_names(pattern)

    def document(self, name: str, shots: int) -> MadeTask:
        return make_document(name, shots)


SOURCE = _Source()
