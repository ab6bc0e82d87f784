"""Evaluation of another split than test: the dev set of a task in place of its test set."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from harness.specs.schema import LanguageEntry, Source, TaskSpec
from harness.specs.task_entry import TaskEntry

EvaluatedSplit = Literal["test", "validation"]


def evaluated_on(entry: TaskEntry, split: EvaluatedSplit) -> TaskEntry:
    """Return a task whose items to score are those of a split; the task itself for ``test``.

    Everything that is made of test items (variants, translations, checks of ids) is then made of that split's. A dev
    set is the task's `validation`, else the files that its spec names as dev files in place of a missing test set.
    A language without it has no test source, and known releases, whose sizes are of test sets, do not count.
    """
    if split == "test":
        return entry
    spec = entry.spec
    languages = {
        code: (language or LanguageEntry()).model_copy(update={"test": _dev_source(spec, code)})
        for code, language in spec.languages.items()
    }
    variants = {
        name: variant.model_copy(update={"splits": {**variant.splits, "test": source}})
        for name, variant in spec.variants.items()
        if (source := variant.splits.get("validation")) is not None
    }
    translate = spec.translate
    if translate is not None:
        fields = ("source", "tt", "te")
        translate = translate.model_copy(
            update={name: _dev_files(getattr(translate, name)) for name in fields}
        )
    changed = {
        "splits": {name: source for name, source in spec.splits.items() if name != "test"},
        "languages": languages,
        "variants": variants,
        "translate": translate,
        "releases": {},
    }
    return replace(entry, spec=spec.model_copy(update=changed))


def _dev_source(spec: TaskSpec, code: str) -> Source | None:
    return spec.source(code, "validation") or _dev_files(spec.source(code, "test"))


def _dev_files(source: Source | None) -> Source | None:
    """Return the dev files of a test source, read as they are there; None without any."""
    files = (
        () if source is None else tuple(item for item in source.alternatives if item.split == "validation")
    )
    return (
        source.model_copy(update={"local": files, "hub": None, "sample": None}) if source and files else None
    )
