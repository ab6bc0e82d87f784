"""Converts an lm-eval task file to a spec and a prompt, or reports every reason why not, by key and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from harness import ImportedTask, Problem, SpecError, UsageError
from harness.languages.table import known_languages
from harness.prompts.preset import SPECIAL
from harness_lm_eval.choice import Choices, letter_fields, read_choices
from harness_lm_eval.expression import Field, Part, UnsupportedError, joined, template_parts
from harness_lm_eval.key import key_problems, reject_group
from harness_lm_eval.language import read_language
from harness_lm_eval.scoring import check_filters, read_generation, read_metrics, shot_notes
from harness_lm_eval.source import read_sources
from harness_lm_eval.target import answer_path, read_target
from harness_lm_eval.task_file import TaskFile, find_task, read_task
from harness_lm_eval.writing import document

__all__ = ["PRESET", "import_task"]

PRESET = "lm_eval"
"""The preset of an imported prompt: prompts that repeat another harness's are named after it."""
_SPELT = re.compile(r"[a-z][A-Za-z0-9_]*")
_TAKEN = SPECIAL | {"id", "group", "meta"}
_OUTPUT_TYPES = ("multiple_choice", "generate_until")
_MOST_INPUTS = 2
_BLEU_TOKENIZER = "13a"
"""lm-eval's, whatever the language; ours differ by language."""
Value = TypeVar("Value")


def import_task(source: str, language: str | None) -> ImportedTask:
    """Return the spec and the prompt of a task, named by its file or, where lm-eval's folder is found, by its name.

    Raises `SpecError` with all keys that cannot be taken, and `UsageError` for an unknown language.
    """
    task = read_task(find_task(source))
    reject_group(task)
    return _Conversion(task).made(language)


class _Conversion:
    """The conversion of one task; it collects all problems and reports them together."""

    def __init__(self, task: TaskFile) -> None:
        self._task = task
        self._data = {key: value for key, value in task.data.items() if value is not None}
        self._problems: list[Problem] = key_problems(task)
        self._faulty = {problem.key for problem in self._problems}
        self._notes: list[str] = []

    def made(self, language: str | None) -> ImportedTask:
        output_type = str(self._data.get("output_type", "generate_until"))
        if output_type not in _OUTPUT_TYPES:
            message = f"{output_type!r}: only {' and '.join(_OUTPUT_TYPES)} are supported"
            raise SpecError(self._task.path, [*self._problems, self._task.problem("output_type", message)])
        if not isinstance(self._data.get("task"), str):
            self._reject("task", "the task has no name: this file is made to be included by others")
        for key in ("dataset_name", "training_split", "validation_split", "test_split"):
            if not isinstance(self._data.get(key, ""), str):
                self._reject(key, f"expected a text, found {self._data[key]!r}; quote it in the YAML")
        text = self._take("doc_to_text", self._text)
        self._take("filter_list", lambda value: check_filters(value, output_type))
        self._notes += self._take("fewshot_config", lambda _: shot_notes(self._data)) or []
        if self._data.get("repeats", 1) != 1:
            self._reject("repeats", f"{self._data['repeats']} answers per item; the harness asks once")
        # Everything below depends on the text.
        parts = (self._ranked if output_type == "multiple_choice" else self._generated)(text or [])
        self._raise()
        assert parts is not None
        code = self._language(language)
        return self._documents(code, *parts)

    # Problems -----------------------------------------------------------------------------------------

    def _take(self, key: str, read: Callable[[Any], Value]) -> Value | None:
        """Read the value of a key; an unsupported one becomes a problem of the key."""
        if key in self._faulty:
            return None
        try:
            return read(self._data.get(key))
        except UnsupportedError as error:
            self._reject(key, str(error))
            return None

    def _reject(self, key: str, message: str) -> None:
        self._problems.append(self._task.problem(key, message))
        self._faulty.add(key)

    def _raise(self) -> None:
        if self._problems:
            raise SpecError(
                self._task.path, sorted(self._problems, key=lambda item: (item.line or 0, item.key))
            )

    # Texts --------------------------------------------------------------------------------------------

    def _text(self, value: Any) -> list[Part]:
        if value is None:
            return []
        if not isinstance(value, str):
            raise UnsupportedError(f"expected a template, found {value!r}")
        if value.isidentifier():
            self._notes.append(
                f"doc_to_text is taken for the column {value!r}, as lm-eval does where there is one."
            )
            return [Field((value,))]
        return template_parts(value)

    def _delimiter(self, key: str, usual: str) -> str:
        value = self._data.get(key, usual)
        if not isinstance(value, str):
            self._reject(key, f"expected a text, found {value!r}")
            return usual
        return value

    def _system(self, names: dict[str, str]) -> str:
        parts = self._take("description", lambda value: template_parts(value or ""))
        if any(isinstance(part, Field) for part in parts or []):
            self._reject("description", "a field of the item; the text before all items is the same for all")
        return _template(parts or [], names)

    # The two output types -----------------------------------------------------------------------------

    def _ranked(self, text: list[Part]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        delimiter = self._delimiter("target_delimiter", " ")
        metrics = self._take("metric_list", lambda value: read_metrics(value, "multiple_choice", delimiter))
        choices = self._take("doc_to_choice", read_choices)
        if choices is None:
            return None
        used = _fields([*text, *choices.before, *choices.after])
        lettered = letter_fields(choices, text)
        options = choices.fields or lettered
        inputs = [name for name in used if name not in options]
        if not inputs and "doc_to_text" not in self._faulty:
            self._reject(
                "doc_to_text", "no field of the item besides the choices: our kinds have at least one input"
            )
        elif not options and len(inputs) > _MOST_INPUTS:
            message = f"{len(inputs)} fields ({', '.join(inputs)}); a classification has one or two"
            key = "doc_to_text" if len(_fields(text)) > _MOST_INPUTS else "doc_to_choice"
            self._reject(key, message)
        names = _renamed([*inputs, *options])
        labels = [names[name] for name in options] or list(choices.names())
        target = self._take("doc_to_target", lambda value: read_target(value, choices, labels))
        if target is None or metrics is None:
            return None
        columns = {ours: theirs for theirs, ours in names.items()} | {"label": target[0]}
        sources = self._take(
            "dataset_path",
            lambda _: read_sources(self._data, {"columns": columns, "label_map": target[1]}),
        )
        kind = "multiple_choice" if options else "sequence_classification"
        spec: dict[str, Any] = {"kind": kind, "inputs": [names[name] for name in inputs], "labels": labels}
        spec |= {"metrics": metrics[0], "chance": round(1 / len(labels), 6), "splits": sources}
        self._notes += metrics[1]
        prompt: dict[str, Any] = {"kind": kind, "formulation": "letters" if lettered else "cloze"}
        prompt |= {"system": self._system(names), "item": _template(text, names)}
        prompt["choice"] = delimiter.translate(_BRACES) + self._choice(choices, names, bool(lettered))
        if "accuracy_pmi" in metrics[0]:
            prompt["unconditional"] = ""
        if not options:
            words = {f"label.{label}": word for label, word in zip(labels, choices.words, strict=True)}
            prompt["literals"] = {"provenance": "copied", "source": self._named(), "words": words}
        return spec, prompt

    def _choice(self, choices: Choices, names: dict[str, str], lettered: bool) -> str:
        middle = "{letter}" if lettered else "{label}"
        if choices.fields:
            middle = "".join(["{choice", *(f"|{name}" for name in choices.filters), "}"])
        return _template(choices.before, names) + middle + _template(choices.after, names)

    def _generated(self, text: list[Part]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        delimiter = self._delimiter("target_delimiter", " ")
        between = self._delimiter("fewshot_delimiter", "\n\n")
        if "doc_to_choice" in self._data:
            self._reject("doc_to_choice", "choices for a generated answer")
        metrics = self._take("metric_list", lambda value: read_metrics(value, "generate_until", delimiter))
        options = self._take("generation_kwargs", lambda value: read_generation(value, between))
        answers = self._take("doc_to_target", answer_path)
        used = _fields(text)
        if "doc_to_text" not in self._faulty and not 1 <= len(used) <= _MOST_INPUTS:
            message = f"{len(used)} fields; a question has at most one passage"
            self._reject("doc_to_text", f"{message} ({', '.join(used)})" if used else message)
        if metrics is None or options is None or answers is None or "doc_to_text" in self._faulty:
            return None
        question = "question" if "question" in used else used[-1]
        names = {name: "question" if name == question else "context" for name in used}
        path, before, after = answers
        columns = {ours: theirs for theirs, ours in names.items()} | {"answers": path}
        reading = {"reader": "answer_texts", "options": columns}
        sources = self._take("dataset_path", lambda _: read_sources(self._data, reading))
        if sources is not None and sources.pop("train", None) is not None:
            self._notes.append(
                "The training split is skipped: answers without an offset cannot be trained on."
            )
        self._notes += metrics[1]
        if "\n" not in options["stop"]:
            self._notes.append("Only the first line of an answer is read; lm-eval reads all of it.")
        spec: dict[str, Any] = {"kind": "span_extraction", "metrics": metrics[0], "splits": sources}
        if "bleu" in metrics[0]:
            spec["metric_options"] = {"bleu_tokenizer": _BLEU_TOKENIZER}
        prompt = {"kind": "span_extraction", "formulation": "generation", "system": self._system(names)}
        prompt |= {
            "item": _template(text, names),
            "answer": delimiter.translate(_BRACES) + before + "{gold}" + after,
            **options,
        }
        return spec, prompt

    # Documents ----------------------------------------------------------------------------------------

    def _named(self) -> str:
        return f"lm-evaluation-harness, {self._data['task']}"

    def _language(self, given: str | None) -> str:
        """Return the language's code: the given one, or one from the end of a name in the task file."""
        if given is not None:
            return known_languages().get(given).code
        found = read_language(self._data)
        if found is not None:
            code, key = found
            self._notes.append(f"The language {code!r} comes from {key} ({self._data[key]}).")
            return code
        raise UsageError(
            f"The task {self._data['task']!r} does not say which language it is in.",
            hint="Give the code with --language, such as --language en.",
        )

    def _documents(self, code: str, spec: dict[str, Any], prompt: dict[str, Any]) -> ImportedTask:
        title = str(self._data["task"])
        family = "_".join(re.findall(r"[a-z0-9]+", title.lower())) or "task"
        head = {"task": family, "kind": spec.pop("kind"), "version": self._version()}
        head |= {
            "description": f"Imported from {self._named()}.",
            "citation": "unknown",
            "license": "unknown",
        }
        spec |= {"protocols": ["prompted"], "languages": {code: {}}}
        between = self._delimiter("fewshot_delimiter", "\n\n")
        words = prompt.pop("literals", None)
        literals = {} if words is None else {code: words}
        start = {"prompt": f"{family}/{PRESET}", "tasks": [family], "kind": prompt.pop("kind")}
        start |= {"formulation": prompt.pop("formulation"), "description": f"The prompt of {self._named()}."}
        start |= {"source": f"lm-evaluation-harness, {self._task.path.name}"}
        body = {key: value for key, value in prompt.items() if value != "" or key == "unconditional"}
        asked = {**start, **body, "between": between, **({"literals": literals} if literals else {})}
        self._raise()
        notes = (*self._notes, f"Licence and citation are unknown: write them into {family}.yaml.")
        files = {
            f"{family}.yaml": document({**head, **spec}, notes),
            f"{family}.prompt.yaml": document(asked, ()),
        }
        return ImportedTask(files=files, notes=notes)

    def _version(self) -> int:
        metadata = self._data.get("metadata")
        version = metadata.get("version", 1) if isinstance(metadata, dict) else 1
        try:
            return max(1, int(float(version)))
        except (TypeError, ValueError, OverflowError):
            return 1


_BRACES = str.maketrans({"{": "{{", "}": "}}"})


def _template(parts: Sequence[Part], names: dict[str, str]) -> str:
    """Return parts in the template language of prompts."""
    made = []
    for part in joined(parts):
        if isinstance(part, str):
            made.append(part.translate(_BRACES))
        else:
            made.append("{" + "|".join([names[str(part.path[0])], *part.filters]) + "}")
    return "".join(made)


def _fields(parts: Sequence[Part]) -> list[str]:
    return list(dict.fromkeys(str(part.path[0]) for part in parts if isinstance(part, Field)))


def _renamed(fields: Sequence[str]) -> dict[str, str]:
    """Return names for fields: their own, unless templates cannot spell them or give them another meaning."""
    names: dict[str, str] = {}
    for field in fields:
        name = field if _SPELT.fullmatch(field) else "field_" + re.sub(r"\W|^_+", "", field, flags=re.ASCII)
        name = f"{name}_text" if name in _TAKEN else name
        while name in names.values() or (name != field and name in fields):
            name += "_"
        names[field] = name
    return names
