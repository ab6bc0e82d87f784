"""A language for an existing task: its names, and the sample items to translate."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from harness import UsageError
from harness.checks import needed_words
from harness.data import data_ref
from harness.languages import Language, known_languages
from harness.planning import DEFAULT_PRESET
from harness.running import Session
from harness.specs import TaskEntry

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
    keys = describe(code, described)
    language = keys.get("name") or known_languages().get(code).name
    lines = "".join(f"\n    {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items())
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
        "count": str(len(items.split("\n"))),
        "label_map": label_map,
        "prompts": _prompts(session, task, code),
    }


def describe(code: str, described: Described, *, option: str = "--name") -> dict[str, str]:
    """Return the entry of a language in a spec: name, script and family where the table does not have all three.

    Raises `UsageError` for a code that is none, for a description of a listed language, and for one that is not whole.

    Args:
        code: The harness's code, or that of a language that it does not know.
        described: What the user says of it; of a living language of ISO 639-3 it is added to what is known.
        option: The option that gives the name.
    """
    table = known_languages()
    given = {"name": described.name, "script": described.script, "family": described.family}
    extra = {} if described.flores is None else {"flores": described.flores}
    known = {key: getattr(table.get(code), key) if code in table else "" for key in given}
    if code in table.listed and any([*given.values(), *extra]):
        raise UsageError(
            f"The language {code!r} is known: {', '.join(known.values())}.",
            hint=f"Omit {option}, --script, --family and --flores.",
        )
    if code in table and table.get(code).is_whole and not any([*given.values(), *extra]):
        return {}
    meant = table.meant_by(code)
    if meant is not None:
        raise UsageError(f"{meant}.")
    if not _CODE.fullmatch(code):
        raise UsageError(f"{code!r} is not a language code: expected one such as 'yo' or 'zh-Hant'.")
    whole = {key: value or known[key] for key, value in given.items()}
    missing = [option if key == "name" else f"--{key}" for key, value in whole.items() if not value]
    if missing:
        raise UsageError(
            f"The language {code!r} is not listed by 'harness languages': it needs {', '.join(missing)}.",
            hint=f"For example: {option} 'Palatine German' --script Latn --family Indo-European.",
        )
    if not _SCRIPT.fullmatch(whole["script"]):
        raise UsageError(f"{whole['script']!r} is not an ISO 15924 script code: expected one such as 'Latn'.")
    if any(not value.isprintable() for value in whole.values()):
        raise UsageError(f"{option} and --family are one line each.")
    if described.flores is not None and not _FLORES.fullmatch(described.flores):
        raise UsageError(f"{described.flores!r} is not a FLORES-200 code: expected one such as 'pfl_Latn'.")
    return {**whole, **extra}


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
        value for line in items.split("\n") for value in json.loads(line).values() if isinstance(value, str)
    }
    needed = {name: label for name, label in (sample.label_map or {}).items() if name in values}
    return items, f"\n      label_map: {json.dumps(needed)}" if needed else ""
