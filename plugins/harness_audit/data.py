"""What is wrong with the data of a task: label maps, labels, counts, scripts, placeholders, overlap of splits."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from harness import Finding, Note, TaggedSentence, TaskSpec
from harness.data.records import MarkedText
from harness.languages.scripts import text_scripts
from harness.languages.table import LanguageTable
from harness.planning.id_alignment import ItemIds, misalignment, stands_for_source
from harness.specs.schema import SPLITS, Provenance, Source
from harness_audit.overlap import TextIndex, item_text
from harness_audit.split import AuditedSplit, named_ids

__all__ = [
    "PLACEHOLDERS",
    "count_findings",
    "id_results",
    "item_inputs",
    "joined_findings",
    "label_findings",
    "label_map_findings",
    "overlap_findings",
    "parallel_findings",
    "placeholder_notes",
    "provenance_notes",
    "script_matches",
    "script_results",
    "stand_in_notes",
]

PLACEHOLDERS = frozenset({"", "ns", "n/a", "na", "nan", "null", "none", "-", "--", "?"})
"""Texts that mark a missing text; PAWS-X has ``NS`` for sentences that were not translated."""
LONGEST = 16
"""Characters of the longest text that is looked at as a placeholder."""
LEAST_AGREEMENT = 0.9
"""Share of items whose label must be that of the source language: PAWS-X's differ in 0.6 %, an inverted map in all."""
SEVERAL = 10
"""Items per label from which on every label is expected to occur."""
LETTERS_A_SIGN = 3
"""Letters for which a Han character or kana counts: a sentence with foreign names is not one in their script."""
_JOINED = {
    "Jpan": {"Hani", "Hira", "Kana"},
    "Kore": {"Hani", "Hang"},
    "Hans": {"Hani"},
    "Hant": {"Hani"},
    "Hang": {"Kore", "Hani"},
}


def script_matches(script: str, expected: str) -> bool:
    """Return whether a text's script is one that a language of a script is written in."""
    return script == expected or script in _JOINED.get(expected, ())


def joined_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings; those that differ only in the language become one."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for item in findings:
        codes = groups.setdefault((item.task, item.check, item.expected, item.found), [])
        codes += [code for code in item.languages if code not in codes]
    return [
        Finding(task=task, languages=tuple(codes), check=check, expected=expected, found=found)
        for (task, check, expected, found), codes in groups.items()
    ]


# Labels -------------------------------------------------------------------------------------------------


def label_map_findings(spec: TaskSpec) -> Iterator[Finding]:
    """Yield languages whose label map is not that of most others, and values that have two meanings in one place."""
    maps: dict[str, dict[str, Mapping[str, str]]] = {}
    for code in spec.languages:
        for split in SPLITS:
            source = spec.source(code, split)
            for place, own in () if source is None else _label_maps(source):
                maps.setdefault(f"{split} split ({place})", {})[code] = own
    for where, by_language in maps.items():
        texts = {code: json.dumps(dict(sorted(own.items()))) for code, own in by_language.items()}
        usual, _ = Counter(texts.values()).most_common(1)[0]
        for code, text in texts.items():
            if text != usual:
                yield Finding(
                    task=spec.task,
                    languages=(code,),
                    check="label map",
                    expected=f"the label map {usual} of the other languages in the {where}",
                    found=text,
                )
    yield from _double_meanings(spec, maps)


def _double_meanings(
    spec: TaskSpec, maps: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> Iterator[Finding]:
    meanings: dict[tuple[str, str, str], dict[str, str]] = {}
    for where, by_language in maps.items():
        place = where.partition("(")[2].rstrip(")")
        for code, own in by_language.items():
            for raw, label in own.items():
                meanings.setdefault((place, code, raw), {}).setdefault(label, where)
    for (_, code, raw), labels in meanings.items():
        if len(labels) > 1:
            sentence = " and ".join(f"{label!r} in the {where}" for label, where in labels.items())
            yield Finding(
                task=spec.task,
                languages=(code,),
                check="label map",
                expected=f"one label for the value {raw!r}",
                found=sentence,
            )


def _label_maps(source: Source) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield what each place of a source makes of its labels, by a name that does not hold the language."""
    for item in source.alternatives:
        own = source.label_map if item.label_map is None else item.label_map
        yield f"local {' '.join(item.paths)}", own or {}
    if source.hub is not None:
        yield f"Hub {source.hub.path}", source.hub.label_map or {}


def label_findings(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any]) -> Iterator[Finding]:
    """Yield the labels of a task with one label per item that never occur, where the others are about equally frequent.

    Among labels of very different frequency a rare one may be missing; in a balanced set a map has lost it.
    """
    labels = spec.label_names
    if not labels or not isinstance(references[0], str) or len(references) < SEVERAL * len(labels):
        return
    counts = Counter(references)
    if min(counts.values()) * 2 * len(labels) < len(references):
        return
    for label in labels:
        if label not in counts:
            yield Finding(
                task=spec.task,
                languages=(split.language,),
                check="labels",
                expected=f"every label among {len(references):,} items of the {split.title} split",
                found=f"none with {label!r}",
            )


def parallel_findings(
    spec: TaskSpec, tests: Sequence[AuditedSplit], reference: Callable[[Any], Any]
) -> Iterator[Finding | Note]:
    """Yield languages of a parallel task whose labels are not those of the source language's items."""
    source = "en" if spec.transfer is None else spec.transfer.source
    labelled = {
        (split.language, split.axes): {
            item.id: label for item in split.examples if isinstance(label := reference(item), str)
        }
        for split in tests
    }
    if not spec.parallel or not spec.label_names:
        return
    for (code, axes), own in labelled.items():
        if not spec.pairs(code):
            continue
        first = next((key for key in labelled if key[1] == axes), (code, axes))
        gold = labelled.get((source, axes), labelled[first])
        common = own.keys() & gold.keys()
        others = [name for name in own if name in gold and own[name] != gold[name]]
        same = len(common) - len(others)
        compared = source if (source, axes) in labelled else first[0]
        shown = "".join(
            f" (first: item {name!r} is {own[name]!r}, and {gold[name]!r} in {compared})"
            for name in others[:1]
        )
        if common and same < LEAST_AGREEMENT * len(common):
            yield Finding(
                task=spec.task,
                languages=(code,),
                check="parallel labels",
                expected=f"the labels of the same items in {compared}",
                found=f"{same:,} of {len(common):,} that agree{shown}",
            )
        elif same < len(common):
            count = f"{len(others):,} of {len(common):,} labels"
            sentence = f"{count} differ from those of the same items in {compared}{shown}"
            yield Note(task=spec.task, languages=(code,), check="parallel labels", text=sentence)


def id_results(
    spec: TaskSpec,
    tests: Sequence[AuditedSplit],
    order: Sequence[str],
    numbered: Callable[[AuditedSplit], bool],
) -> Iterator[Finding | Note]:
    """Yield languages of a parallel task whose items are not those of the language that they are paired with.

    That some are missing is a note, unless a published release has as many.

    Args:
        spec: The task.
        tests: Its test items.
        order: What `harness.planning.id_alignment.pairing_order` returns.
        numbered: Returns whether the items of a split are named by their number.
    """
    splits = {(split.language, split.axes): split for split in tests}
    for (code, axes), split in splits.items():
        others = [splits[other, axes] for other in order if (other, axes) in splits]
        if not others or others[0] is split or not spec.pairs(code):
            continue
        own, theirs = (
            ItemIds(ids=[example.id for example in one.examples], numbered=numbered(one))
            for one in (split, others[0])
        )
        known = {*own.ids}
        sentence = misalignment(
            own, theirs, others[0].language, whole=stands_for_source(spec, others[0].language)
        )
        if sentence is not None:
            yield Finding(
                task=spec.task,
                languages=(code,),
                check="parallel ids",
                expected=f"the ids of {others[0].language!r} in the {split.title} split, or 'parallel: false' below "
                f"{code!r}",
                found=sentence,
            )
        elif missing := [name for name in theirs.ids if name not in known]:
            if spec.release_of(code, len(own.ids)) is None:
                count = f"{len(missing):,} of {len(theirs.ids):,} items of {others[0].language}"
                yield Note(
                    task=spec.task,
                    languages=(code,),
                    check="parallel ids",
                    text=f"{count} are missing in the {split.title} split ({named_ids(missing)})",
                )


# Items --------------------------------------------------------------------------------------------------


def count_findings(spec: TaskSpec, split: AuditedSplit) -> Iterator[Finding]:
    """Yield a number of test items that no published release of the task has; samples are never releases."""
    size = len(split.examples)
    if split.origin == "sample" or split.found.files.stands_in or not spec.knows_release(split.language):
        return
    if spec.release_of(split.language, size) is None:
        counts = [release.count(split.language) for release in spec.releases.values()]
        known = " or ".join(f"{count:,}" for count in counts if count is not None)
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="count",
            expected=f"{known} items in the {split.title} split, as published",
            found=f"{size:,}",
        )


def stand_in_notes(spec: TaskSpec, split: AuditedSplit) -> Iterator[Note]:
    """Yield a development set that replaces the test set."""
    if split.found.files.stands_in:
        sentence = f"the {split.found.files.split_used} split is used in place of the {split.title} split"
        yield Note(task=spec.task, languages=(split.language,), check="stand-in", text=sentence)


def placeholder_notes(spec: TaskSpec, split: AuditedSplit) -> Iterator[Note]:
    """Yield how many items have a placeholder for a missing text."""
    names: Counter[str] = Counter()
    items = []
    for example in split.examples:
        found = set(filter(_is_placeholder, _replaceable(example)))
        items += [example.id] if found else []
        names.update(found)
    if items:
        shown = ", ".join(f"{name!r}" for name, _ in names.most_common(3))
        yield Note(
            task=spec.task,
            languages=(split.language,),
            check="placeholder",
            text=f"{len(items):,} of {len(split.examples):,} items of the {split.title} split have a placeholder for a "
            f"text ({shown}; {named_ids(items)})",
        )


def provenance_notes(spec: TaskSpec, tests: Sequence[AuditedSplit]) -> Iterator[Note]:
    """Yield the languages whose spec does not say how the test items were made."""
    unsaid = [code for code in dict.fromkeys(split.language for split in tests) if not spec.provenance(code)]
    if unsaid:
        yield Note(
            task=spec.task,
            languages=tuple(unsaid),
            check="provenance",
            text=f"the spec does not say how the test items were made: give 'provenance', one of "
            f"{', '.join(get_args(Provenance))}",
        )


def _is_placeholder(text: str) -> bool:
    """Return whether a text marks a missing one; invisible characters do not count."""
    if len(text.strip()) > LONGEST:
        return False
    seen = "".join(character for character in text if unicodedata.category(character)[0] not in "CZ")
    return seen.casefold() in PLACEHOLDERS


def _with_text(examples: Iterable[Any]) -> list[Any]:
    """Return the items that are not placeholders alone."""
    return [
        item for item in examples if not (texts := _replaceable(item)) or not all(map(_is_placeholder, texts))
    ]


def _replaceable(example: Any) -> list[str]:
    """Return the texts for which a placeholder may stand: a sentence of a treebank may be a question mark."""
    return [] if isinstance(example, TaggedSentence | MarkedText) else item_inputs(example)


def item_inputs(example: Any) -> list[str]:
    """Return the texts of an item that a model reads, each by itself; labels are none."""
    names = ("question", "context", "query", "target", "text")
    given = [value for name in names if isinstance(value := getattr(example, name, None), str)]
    inputs = getattr(example, "inputs", None)
    if isinstance(inputs, Mapping) and inputs:
        given = [*inputs.values()]
    return [*given, *getattr(example, "choices", ())]


def script_results(spec: TaskSpec, split: AuditedSplit, languages: LanguageTable) -> Iterator[Finding | Note]:
    """Yield how many items are mostly written in another script than the language's; most of them is a fault.

    Not where the task has axes: one of their conditions may be another script, as that of code-switched text.
    """
    expected = languages.get(split.language).script
    found = {
        name: script
        for name, script in _scripts(_with_text(split.examples)).items()
        if not script_matches(script, expected)
    }
    if not found:
        return
    counts = Counter(found.values()).most_common(3)
    scripts = ", ".join(f"{count:,} in {script}" for script, count in counts) + f" ({named_ids(list(found))})"
    size = len(split.examples)
    if 2 * len(found) > size and not split.axes:
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="script",
            expected=f"most items of the {split.title} split in the script {expected}",
            found=f"of {size:,} items {scripts}",
        )
        return
    sentence = f"of {size:,} items of the {split.title} split are romanised or mostly in another script than {expected}"
    yield Note(task=spec.task, languages=(split.language,), check="script", text=f"{sentence}: {scripts}")


def _scripts(examples: Sequence[Any]) -> dict[str, str]:
    """Return, by id, the scripts of items with letters; of two sentences, that of the one not in Latin letters."""
    sides = [[item_text(example) for example in examples]]
    targets = [getattr(example, "target", None) for example in examples]
    if all(isinstance(target, str) for target in targets):
        sides.append([str(target) for target in targets])
    found = {}
    sentence = [text_scripts(texts, sign=LETTERS_A_SIGN) for texts in sides]
    for example, *scripts in zip(examples, *sentence, strict=True):
        known = [script for script in scripts if script is not None and script != "Zyyy"]
        if known:
            found[example.id] = min(known, key="Latn".__eq__)
    return found


def overlap_findings(
    spec: TaskSpec, tests: Sequence[AuditedSplit], learned: Iterable[AuditedSplit]
) -> Iterator[Finding]:
    """Yield test items that also stand, exactly or nearly, in what a model of the task learns from."""
    for split in learned:
        index = TextIndex(_with_text(split.examples))
        used = set(split.found.files.paths)
        for test in tests:
            if used & set(test.found.files.paths) and split.split == "train":
                yield Finding(
                    task=spec.task,
                    languages=(test.language,),
                    check="overlap",
                    expected=f"a {test.title} split that is not the {split.title} split of {split.owner!r}",
                    found=f"the same file {Path(min(used)).name!r}",
                )
                continue
            if used & set(test.found.files.paths) or (split.owner == spec.task and split.axes != test.axes):
                continue
            overlap = index.overlap(_with_text(test.examples))
            if overlap.exact or overlap.near:
                own, other = overlap.example or ("", "")
                yield Finding(
                    task=spec.task,
                    languages=(test.language,),
                    check="overlap",
                    expected=f"no item of the {test.title} split in the {split.title} split of {split.owner!r} "
                    f"({split.language})",
                    found=f"of {len(test.examples):,} items {overlap.exact:,} exact and {overlap.near:,} near "
                    f"duplicates (first: {test.split} item {own!r} = {split.split} item {other!r}, {overlap.text!r})",
                )
