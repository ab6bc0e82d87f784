"""The keys of a task file: which are read, which have no effect, and which are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness import Problem, SpecError, near_names
from harness_lm_eval.task_file import Python, TaskFile

__all__ = ["key_problems", "reject_group"]

_READ = frozenset(
    "task dataset_path dataset_name dataset_kwargs training_split validation_split test_split fewshot_split "
    "doc_to_text doc_to_target doc_to_choice description target_delimiter fewshot_delimiter num_fewshot "
    "fewshot_config metric_list output_type generation_kwargs filter_list repeats metadata".split()
)
_WITHOUT_EFFECT = frozenset("tag task_alias should_decontaminate doc_to_decontamination_query".split())
"""Names, and checks that score nothing."""
_UNSUPPORTED = {
    "custom_dataset": "data made by Python",
    "doc_to_audio": "sound",
    "doc_to_image": "pictures",
    "gen_prefix": "a beginning of the answer; our prompts have none",
    "process_docs": "items made by Python",
    "process_results": "scoring by Python",
    "unsafe_code": "items that are run as code",
    "use_prompt": "a prompt of promptsource",
}


def reject_group(task: TaskFile) -> None:
    """Raise `SpecError` with the members of a group: each must be imported by itself."""
    members = task.data.get("task")
    if "group" not in task.data and not isinstance(members, list) and "task_list" not in task.data:
        return
    key = "group" if "group" in task.data else "task" if isinstance(members, list) else "task_list"
    names = list(_members(members)) + list(_members(task.data.get("task_list")))
    listed = ", ".join(names) if names else "no tasks of its own"
    message = f"is a group, not a task; import its members one by one: {listed}"
    raise SpecError(task.path, [task.problem(key, message)])


def _members(given: Any) -> Iterator[str]:
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield str(item.get("group") or item.get("task") or item)


def key_problems(task: TaskFile) -> list[Problem]:
    """Return a problem for every key that holds Python, cannot be imported, or is unknown to lm-eval."""
    problems: list[Problem] = []
    for key, value in task.data.items():
        code = list(_python_in(value))
        if code:
            names = ", ".join(f"{item.tag} {item.name}".strip() for item in code)
            problems.append(
                task.problem(key, f"{names}: Python is never run; write the spec by hand instead")
            )
        elif value in (None, "", False) or key in _READ | _WITHOUT_EFFECT:
            continue
        elif key in _UNSUPPORTED:
            problems.append(task.problem(key, f"{_UNSUPPORTED[key]}: not supported"))
        else:
            near = near_names(key, _READ | _WITHOUT_EFFECT | set(_UNSUPPORTED))
            meant = f"; did you mean {near[0]!r}?" if near else ""
            problems.append(task.problem(key, f"a key that is not known{meant}"))
    return problems


def _python_in(value: Any) -> Iterator[Python]:
    if isinstance(value, Python):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _python_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _python_in(item)
