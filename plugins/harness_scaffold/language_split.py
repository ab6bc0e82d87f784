"""A language for an existing task: its names, and the sample items to translate."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from harness import Session, TaskEntry, UsageError
from harness.data.sources import data_ref
from harness.languages.table import Language, known_languages
from harness.planning.prompts import DEFAULT_PRESET
from harness.planning.word_checks import needed_words

__all__ = ["Described", "language_words"]

_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_FLORES = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
_SCRIPT = re.compile(r"[A-Z][a-z]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The description of a language that the harness does not list."""

    name: str | None = None
    script: str | None = None
    family: str | None = None
    flores: str | None = None
    """Its FLORES-200 code, for translators that use it; optional."""


def language_words(
    session: Session, *, code: str, task: str, origin: str, provenance: str, described: Described
) -> dict[str, str]:
    """Return the words of the templates for a new language of a task.

    The items are those of the task's sample in the language `origin`. Raises `UsageError` for an invalid or present
    code, for a language without a description, and for a task whose sample cannot be copied.
    """
    language, lines = _language(code, described)
    entry = session.catalog.task(task)
    if code in entry.spec.languages:
        owner = entry.added.get(code, entry.plugin)
        raise UsageError(f"The task {task!r} has the language {code!r} already, from the plugin {owner!r}.")
    for metric in map(session.registry.metrics.get, entry.spec.metrics):
        if not metric.scores_language(code, entry.spec.metric_options):
            raise UsageError(
                f"The task {task!r} cannot take {code!r}: its metric {metric.name!r} has no rules for it, only for "
                f"{', '.join(metric.languages)}.",
                hint="Start a task of your own with another metric: harness new task NAME",
            )
    items, label_map = _items(entry, origin)
    return {
        "task": task,
        "code": code,
        "language": language,
        "described": lines,
        "provenance": provenance,
        "origin": origin,
        "items": items,
        "count": str(len(items.splitlines())),
        "label_map": label_map,
        "prompts": _prompts(session, task, code),
    }


def _language(code: str, described: Described) -> tuple[str, str]:
    """Return the name of the language, and the lines of the fragment that describe it."""
    table = known_languages()
    given = {"name": described.name, "script": described.script, "family": described.family}
    extra = {} if described.flores is None else {"flores": described.flores}
    if code in table:
        if any([*given.values(), *extra]):
            known = table.get(code)
            raise UsageError(
                f"The language {code!r} is known: {known.name}, {known.script}, {known.family}.",
                hint="Omit --name, --script, --family and --flores.",
            )
        return table.get(code).name, ""
    meant = table.meant_by(code)
    if meant is not None:
        raise UsageError(f"{meant}.")
    if not _CODE.fullmatch(code):
        raise UsageError(f"{code!r} is not a language code: expected one such as 'yo' or 'zh-Hant'.")
    missing = [f"--{name}" for name, value in given.items() if not value]
    if missing:
        raise UsageError(
            f"The language {code!r} is not listed by 'harness languages': it needs {', '.join(missing)}.",
            hint="For example: --name 'Palatine German' --script Latn --family Indo-European.",
        )
    if not _SCRIPT.fullmatch(described.script or ""):
        raise UsageError(
            f"{described.script!r} is not an ISO 15924 script code: expected one such as 'Latn'."
        )
    if any(not str(value).isprintable() for value in given.values()):
        raise UsageError("--name and --family are one line each.")
    if described.flores is not None and not _FLORES.fullmatch(described.flores):
        raise UsageError(f"{described.flores!r} is not a FLORES-200 code: expected one such as 'pfl_Latn'.")
    keys = {**given, **extra}
    lines = "".join(f"\n    {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items())
    return str(described.name), lines


def _prompts(session: Session, task: str, code: str) -> str:
    """Return the words that the task's usual prompt needs, as comments to fill in."""
    if DEFAULT_PRESET not in session.catalog.presets(task):
        return ""
    spec = session.catalog.prompt(task, DEFAULT_PRESET)
    inherited = session.catalog.inherited_prompt(spec)
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    names = needed_words(spec, inherited)
    if not names or code in tables or "en" not in tables:
        return ""
    lines = [
        f"Words of the prompt {DEFAULT_PRESET!r}; without them, prompts in {code} use these English ones.",
        "Translate them, remove the '# ', and set the provenance: native, translated, or copied (from a 'source').",
        "prompts:",
        f"  {DEFAULT_PRESET}:",
        "    provenance: translated",
        "    words:",
        *(f"      {name}: {json.dumps(tables['en'].words[name], ensure_ascii=False)}" for name in names),
    ]
    return "".join(f"\n    # {line}" for line in lines)


def _items(entry: TaskEntry, origin: str) -> tuple[str, str]:
    """Return the lines of the sample in `origin`, and the line of the fragment that maps their labels."""
    spec = entry.spec
    if origin not in spec.languages:
        raise UsageError(
            f"The task {spec.task!r} has no {origin!r} to translate from: it has {', '.join(spec.languages)}.",
            hint="Name one of them with --from.",
        )
    language: Language = entry.languages.get(origin)
    source = spec.source(origin, "test")
    sample = None
    if source is not None and not spec.axes:
        sample_ref = data_ref(
            source, owner=spec.task, language=language, split="test", folder=entry.folders.get(origin)
        )
        sample = sample_ref.sample
    if sample is None or sample.reader != "jsonl" or len(sample.paths) != 1:
        raise UsageError(
            f"The sample of {spec.task!r} in {origin!r} is not a single file of JSON lines, so it cannot be copied.",
            hint="Name another language with --from, or write the package as docs/add-a-language.md does.",
        )
    assert sample_ref.sample_root is not None
    file = sample_ref.sample_root.joinpath(sample.paths[0])
    if not file.is_file():
        raise UsageError(
            f"The task {spec.task!r} has no sample in {origin!r}.", hint="Name another language with --from."
        )
    items = file.read_text(encoding="utf-8").rstrip("\n")
    values = {
        value for line in items.splitlines() for value in json.loads(line).values() if isinstance(value, str)
    }
    needed = {name: label for name, label in (sample.label_map or {}).items() if name in values}
    return items, f"\n      label_map: {json.dumps(needed)}" if needed else ""
