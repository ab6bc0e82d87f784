"""Tasks of lm-eval that differ in their language only, as one task with a table of languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness_lm_eval.task_index import TaskFile, TaskPlace, find_places, names_of, read_task
from harness_lm_eval.task_language import known_code, read_language


def family_names(pattern: str) -> list[str]:
    """Return the tasks of a task, a group, a tag, a glob, or a name without its language.

    Tasks that differ in their language only are one name, ``belebele``; ``belebele:sn+sw`` where the pattern names
    only some of its languages. Raises what `names_of` does.
    """
    places = find_places()
    if pattern not in places and family_members(pattern):
        return [pattern]
    names = names_of(pattern)
    if pattern in names:
        return names
    return list(dict.fromkeys(_joined(names)))


def family_members(name: str) -> Mapping[str, str]:
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
            families[family] = family_members(family)
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
            rest == wanted and known_code("_".join(parts[start : start + width])) is not None
            for start, rest in enumerate(rests)
        ):
            yield task


def _without_language(name: str, file: TaskFile) -> tuple[str, str] | None:
    """Return the name of a task without its language, and the language; None where the name does not have it."""
    found = read_language(file.data)
    parts = name.split("_")
    for width in (2, 1):
        for start in reversed(range(len(parts) - width + 1)):
            code = known_code("_".join(parts[start : start + width]))
            rest = "_".join(parts[:start] + parts[start + width :])
            if found is not None and code == found[0] and rest:
                return rest, code
    return None


_SCORING = ("output_type", "metric_list", "filter_list", "num_fewshot")


def _scoring(file: TaskFile) -> str:
    return repr([file.data.get(key) for key in _SCORING])
