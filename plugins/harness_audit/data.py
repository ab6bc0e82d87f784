"""Checks of the data of a task: label maps, labels, ids, counts, scripts, placeholders, choices, other versions."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from harness import DataError, MissingDataError, UsageError
from harness.checks import Finding, ItemIds, Note, misalignment, stands_for_source
from harness.data import MarkedText, TaggedSentence, find_split
from harness.kinds import ReadContext, TaskKind, read_examples
from harness.languages import LanguageTable, text_scripts
from harness.specs import SPLITS, Provenance, Source, TaskSpec, source_language
from harness_audit.split import AuditedSplit, TextIndex, item_text, named_ids

if TYPE_CHECKING:
    from harness.data import DataFinder, Reader
    from harness.specs import TaskEntry

PLACEHOLDERS = frozenset({"", "ns", "n/a", "na", "nan", "null", "none", "-", "--", "?"})
"""Texts that mark a missing text; PAWS-X has ``NS`` for sentences that were not translated."""
LONGEST = 16
"""Characters of the longest text that is looked at as a placeholder."""
LEAST_AGREEMENT = 0.9
"""Share of items whose label must be that of the source language: PAWS-X's differ in 0.6 %, an inverted map in all."""
SEVERAL = 10
"""Items per label from which on every label is expected to occur."""
LEAST_WORDS = 4
"""Words of the shortest text that must be translated: names, numbers and short answers may be equal."""
_WORD = re.compile(r"[^\W\d_]{2,}")
LETTERS_A_SIGN = 3
"""Letters for which a Han character or kana counts: a sentence with foreign names is not one in their script."""
_WRITTEN_IN = {
    "Jpan": ("Hani",),
    "Kore": ("Hani",),
    "Hang": ("Kore", "Hani"),
    "Hans": ("Hani",),
    "Hant": ("Hani",),
}
EQUAL = "equal"
"""The option of readers that skip pairs of identical sentences: ``keep`` reads them too."""
UNEVEN = 0.001
"""The p below which an uneven spread of gold answers over positions is reported."""
LEAST_EXPECTED = 5
"""Gold answers per position that a chi-square test needs (Cochran, 1954)."""
Results = Iterator[Finding | Note]


def script_matches(script: str, expected: str) -> bool:
    """Return whether a text's script is one that a language of a script is written in."""
    return script == expected or script in _WRITTEN_IN.get(expected, ())


def joined_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings; those that differ only in the language become one."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for item in findings:
        codes = groups.setdefault((item.task, item.check, item.expected, item.found), [])
        codes += [code for code in item.languages if code not in codes]
    return [
        Finding(task=task, languages=tuple(codes), check=check, expected=expected, found=observed)
        for (task, check, expected, observed), codes in groups.items()
    ]


# Labels -------------------------------------------------------------------------------------------------


def label_map_findings(spec: TaskSpec) -> Iterator[Finding]:
    """Yield languages whose label map is not that of most others, and values that have two meanings in one place."""
    maps: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    meanings: dict[tuple[str, str, str], dict[str, str]] = {}
    for code, split in itertools.product(spec.languages, SPLITS):
        source = spec.source(code, split)
        for location, label_map in () if source is None else _label_maps(source):
            maps.setdefault((split, location), {})[code] = label_map
            for raw, label in label_map.items():
                meanings.setdefault((location, code, raw), {}).setdefault(label, split)

    def finding(code: str, expected: str, found: str) -> Finding:
        return Finding(task=spec.task, languages=(code,), check="label map", expected=expected, found=found)

    for (name, location), by_language in maps.items():
        texts = {code: json.dumps(dict(sorted(label_map.items()))) for code, label_map in by_language.items()}
        usual, _ = Counter(texts.values()).most_common(1)[0]
        expected = f"the label map {usual} of the other languages in the {name} split ({location})"
        yield from (finding(code, expected, text) for code, text in texts.items() if text != usual)
    for (location, code, raw), labels in meanings.items():
        if len(labels) > 1:
            meaning = " and ".join(
                f"{label!r} in the {split} split ({location})" for label, split in labels.items()
            )
            yield finding(code, f"one label for the value {raw!r}", meaning)


def _label_maps(source: Source) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the label map of each location of a source, by a name of the location that is free of the language."""
    for item in source.alternatives:
        label_map = source.label_map if item.label_map is None else item.label_map
        yield f"local {' '.join(item.paths)}", label_map or {}
    if source.hub is not None:
        yield f"Hub {source.hub.path}", source.hub.label_map or {}


def label_findings(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any]) -> Iterator[Finding]:
    """Yield the labels of a task with one label per item that never occur, where the others are about equally frequent.

    Among labels of very different frequency a rare one may be missing; in a balanced set a map has lost it.
    """
    labels, size = spec.label_names, len(references)
    if not labels or not isinstance(references[0], str) or size < SEVERAL * len(labels):
        return
    counts = Counter(references)
    if min(counts.values()) * 2 * len(labels) < size:
        return
    for label in labels:
        if label not in counts:
            expected = f"every label among {size:,} items of the {split.title} split"
            yield split.finding("labels", expected, f"none with {label!r}")


# Items of parallel tasks --------------------------------------------------------------------------------


def parallel_results(
    spec: TaskSpec, tests: Sequence[AuditedSplit], reference: Callable[[Any], Any]
) -> Iterator[Finding | Note]:
    """Yield languages of a parallel task whose labels are not those of the source language's items."""
    if not spec.parallel or not spec.label_names:
        return
    labelled = {
        (split.language, split.axes): {
            item.id: label for item in split.examples if isinstance(label := reference(item), str)
        }
        for split in tests
    }
    for split in filter(lambda split: spec.pairs(split.language), tests):
        first = next(key for key in labelled if key[1] == split.axes)
        source = (source_language(spec), split.axes)
        compared = source if source in labelled else first
        ours, theirs = labelled[split.language, split.axes], labelled[compared]
        common = ours.keys() & theirs.keys()
        differing = [name for name in ours if name in common and ours[name] != theirs[name]]
        if not differing:
            continue
        name, same = differing[0], len(common) - len(differing)
        example = f"(first: item {name!r} is {ours[name]!r}, and {theirs[name]!r} in {compared[0]})"
        if same < LEAST_AGREEMENT * len(common):
            agreement = f"{same:,} of {len(common):,} that agree {example}"
            yield split.finding(
                "parallel labels", f"the labels of the same items in {compared[0]}", agreement
            )
        else:
            count = f"{len(differing):,} of {len(common):,} labels"
            sentence = f"{count} differ from those of the same items in {compared[0]} {example}"
            yield split.note("parallel labels", sentence)


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
        order: What `harness.checks.id_alignment.pairing_order` returns.
        numbered: Returns whether the items of a split are named by their number.
    """
    splits = {(split.language, split.axes): split for split in tests}
    for (code, axes), split in splits.items():
        counterpart = next((splits[name, axes] for name in order if (name, axes) in splits), split)
        if counterpart is split or not spec.pairs(code):
            continue
        ours, theirs = (
            ItemIds(ids=[example.id for example in side.examples], numbered=numbered(side))
            for side in (split, counterpart)
        )
        replaces_source = stands_for_source(spec, counterpart.language)
        ids = {*ours.ids}
        if sentence := misalignment(ours, theirs, counterpart.language, whole=replaces_source):
            ids_of = f"the ids of {counterpart.language!r} in the {split.title} split"
            expected = f"{ids_of}, or 'parallel: false' below {code!r}"
            yield split.finding("parallel ids", expected, sentence)
        elif missing := [name for name in theirs.ids if name not in ids]:
            if spec.release_of(code, len(ours.ids)) is None:
                count = f"{len(missing):,} of {len(theirs.ids):,} items of {counterpart.language}"
                sentence = f"{count} are missing in the {split.title} split ({named_ids(missing)})"
                yield split.note("parallel ids", sentence)


def copy_results(spec: TaskSpec, tests: Sequence[AuditedSplit]) -> Iterator[Finding | Note]:
    """Yield languages of a parallel task with the text of the source language's items; most of them is a fault.

    Texts are compared without case and outer spaces; those of fewer than four words may be equal.
    """
    source = source_language(spec)
    texts = {split.axes: _texts(split) for split in tests if split.language == source}
    for split in tests:
        if not spec.pairs(split.language) or split.language.partition("-")[0] == source.partition("-")[0]:
            continue
        theirs = texts.get(split.axes, {})
        common = {
            name: text
            for name, text in _texts(split).items()
            if len(_WORD.findall(theirs.get(name, ""))) >= LEAST_WORDS
        }
        same = [name for name, text in common.items() if text == theirs[name]]
        counted = f"{len(same):,} of {len(common):,} with the text of the same item in {source}"
        if 2 * len(same) > len(common):
            expected = f"items of the {split.title} split in their own language"
            yield split.finding("not translated", expected, f"{counted} ({named_ids(same)})")
        elif same:
            sentence = (
                f"not translated: of the items of the {split.title} split {counted} ({named_ids(same)})"
            )
            yield split.note("not translated", sentence)


def _texts(split: AuditedSplit) -> Mapping[str, str]:
    return {example.id: " ".join(item_text(example).casefold().split()) for example in split.examples}


# Items --------------------------------------------------------------------------------------------------


def count_findings(spec: TaskSpec, split: AuditedSplit) -> Iterator[Finding]:
    """Yield a number of test items that no published release of the task has; samples are never releases."""
    size, files = len(split.examples), split.found.files
    if files.origin == "sample" or files.stands_in or not spec.known_releases(split.language):
        return
    if spec.release_of(split.language, size) is None:
        published = " or ".join(f"{count:,}" for count in spec.known_releases(split.language).values())
        expected = f"{published} items in the {split.title} split, as published"
        yield split.finding("count", expected, f"{size:,}")


def stand_in_notes(split: AuditedSplit) -> Iterator[Note]:
    """Yield a development set that replaces the test set."""
    files = split.found.files
    if files.stands_in:
        sentence = f"the {files.split_used} split is used in place of the {split.title} split"
        yield split.note("stand-in", sentence)


def placeholder_notes(split: AuditedSplit) -> Iterator[Note]:
    """Yield how many items have a placeholder for a missing text."""
    names: Counter[str] = Counter()
    items = []
    for example in split.examples:
        placeholders = set(filter(_is_placeholder, _replaceable(example)))
        items += [example.id] if placeholders else []
        names.update(placeholders)
    if items:
        frequent = ", ".join(f"{name!r}" for name, _ in names.most_common(3))
        count = f"{len(items):,} of {len(split.examples):,} items of the {split.title} split"
        yield split.note(
            "placeholder", f"{count} have a placeholder for a text ({frequent}; {named_ids(items)})"
        )


def provenance_notes(spec: TaskSpec, tests: Sequence[AuditedSplit]) -> Iterator[Note]:
    """Yield the languages whose spec does not say how the test items were made."""
    unsaid = [
        code for code in dict.fromkeys(split.language for split in tests) if not spec.provenance_of(code)
    ]
    if unsaid:
        text = "the spec does not say how the test items were made: give 'provenance', one of "
        text += ", ".join(get_args(Provenance))
        yield Note(task=spec.task, languages=tuple(unsaid), check="provenance", text=text)


def _is_placeholder(text: str) -> bool:
    """Return whether a text marks a missing one; invisible characters do not count."""
    if len(text.strip()) > LONGEST:
        return False
    visible = "".join(character for character in text if unicodedata.category(character)[0] not in "CZ")
    return visible.casefold() in PLACEHOLDERS


def _with_text(examples: Iterable[Any]) -> list[Any]:
    """Return the items that are not placeholders alone."""
    return [
        item for item in examples if not (texts := _replaceable(item)) or not all(map(_is_placeholder, texts))
    ]


def _replaceable(example: Any) -> list[str]:
    """Return the texts for which a placeholder may stand: a sentence of a treebank may be a question mark."""
    if isinstance(example, TaggedSentence | MarkedText):
        return []
    names = ("question", "context", "query", "target", "text")
    texts = [value for name in names if isinstance(value := getattr(example, name, None), str)]
    if getattr(example, "context", None) == "":  # a question that is asked without a passage
        texts.remove("")
    inputs = getattr(example, "inputs", None)
    if isinstance(inputs, Mapping) and inputs:
        texts = [*inputs.values()]
    return [*texts, *getattr(example, "choices", ())]


def script_results(split: AuditedSplit, languages: LanguageTable) -> Iterator[Finding | Note]:
    """Yield how many items are mostly written in another script than the language's; most of them is a fault.

    Not where the task has axes: one of their conditions may be another script, as that of code-switched text.
    """
    expected = languages.get(split.language).script
    scripts = _scripts(_with_text(split.examples))
    foreign = {name: script for name, script in scripts.items() if not script_matches(script, expected)}
    if not foreign:
        return
    counts = Counter(foreign.values()).most_common(3)
    summary = ", ".join(f"{count:,} in {script}" for script, count in counts)
    summary += f" ({named_ids(list(foreign))})"
    size = len(split.examples)
    if 2 * len(foreign) > size and not split.axes:
        most = f"most items of the {split.title} split in the script {expected}"
        yield split.finding("script", most, f"of {size:,} items {summary}")
        return
    some = f"of {size:,} items of the {split.title} split are romanised or mostly in another script than"
    yield split.note("script", f"{some} {expected}: {summary}")


def _scripts(examples: Sequence[Any]) -> dict[str, str]:
    """Return, by id, the scripts of items with letters; of two sentences, that of the one not in Latin letters."""
    sides = [[item_text(example) for example in examples]]
    targets = [getattr(example, "target", getattr(example, "reference", None)) for example in examples]
    if all(isinstance(target, str) for target in targets):
        sides.append([str(target) for target in targets])
    by_id = {}
    sentence = [text_scripts(texts, sign=LETTERS_A_SIGN) for texts in sides]
    for example, *scripts in zip(examples, *sentence, strict=True):
        letter_scripts = [script for script in scripts if script is not None and script != "Zyyy"]
        if letter_scripts:
            by_id[example.id] = min(letter_scripts, key="Latn".__eq__)
    return by_id


def overlap_findings(
    spec: TaskSpec, tests: Sequence[AuditedSplit], learned: Iterable[AuditedSplit]
) -> Iterator[Finding]:
    """Yield test items that also stand, exactly or nearly, in what a model of the task learns from."""
    for split in learned:
        index = TextIndex(_with_text(split.examples))
        used = set(split.found.files.paths)
        title = f"the {split.title} split of {split.owner!r}"
        for test in tests:
            shared = used & set(test.found.files.paths)
            if shared and split.split == "train":
                expected = f"a {test.title} split that is not {title}"
                yield test.finding("overlap", expected, f"the same file {min(shared).name!r}")
            if shared or (split.owner == spec.task and split.axes != test.axes):
                continue
            overlap = index.overlap(_with_text(test.examples))
            if overlap.exact or overlap.near:
                test_id, learned_id = overlap.example or ("", "")
                yield test.finding(
                    "overlap",
                    f"no item of the {test.title} split in {title} ({split.language})",
                    f"of {len(test.examples):,} items {overlap.exact:,} exact and {overlap.near:,} near "
                    f"duplicates (first: {test.split} item {test_id!r} = {split.split} item {learned_id!r}, "
                    f"{overlap.text!r})",
                )


def identical_notes(
    split: AuditedSplit, finder: DataFinder, reader_of: Callable[[str], Reader]
) -> Iterator[Note]:
    """Yield how many pairs have identical forms: those that the reader skips, and those that are scored as wrong."""
    if not hasattr(split.examples[0], "wrong"):
        return
    scored = [example.id for example in split.examples if example.right in example.wrong]
    if scored:
        count = f"{len(scored):,} of {len(split.examples):,} items of the {split.title} split"
        yield split.note(
            "identical forms", f"{count} have a wrong form that equals the right one ({named_ids(scored)})"
        )
    files = split.found.files
    options = {} if files.reader is None else reader_of(files.reader).options
    if EQUAL not in options or files.options.get(EQUAL) == "keep":
        return
    unfiltered = replace(split.found, files=replace(files, options={**files.options, EQUAL: "keep"}))
    skipped = [
        str(row.fields["id"]) for row in finder.rows(unfiltered) if row.fields["right"] == row.fields["wrong"]
    ]
    if skipped:
        count = f"{len(skipped):,} of {len(split.examples) + len(skipped):,} pairs of the {split.title} split"
        yield split.note(
            "identical forms",
            f"{count} are two identical sentences and are not scored ({named_ids(skipped)})",
        )


def candidate_findings(spec: TaskSpec, tests: Sequence[AuditedSplit]) -> Iterator[Finding]:
    """Yield languages of a parallel task whose items have other numbers of candidates than the source language's."""
    counted = {
        (split.language, split.axes): {example.id: len(example.wrong) + 1 for example in split.examples}
        for split in tests
        if spec.pairs(split.language) and hasattr(split.examples[0], "wrong")
    }
    for split in tests:
        ours = counted.get((split.language, split.axes), {})
        same_axes = [sizes for (_, axes), sizes in counted.items() if axes == split.axes]
        theirs = counted.get((source_language(spec), split.axes)) or next(iter(same_axes), {})
        differ = [name for name, size in ours.items() if theirs.get(name, size) != size]
        if differ:
            name = differ[0]
            expected = (
                f"as many candidates as the same items of the {split.title} split have in other languages"
            )
            count = f"{len(differ):,} with others (first: item {name!r} has {ours[name]} and {theirs[name]})"
            yield split.finding("parallel candidates", expected, count)


def position_notes(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any]) -> Iterator[Note]:
    """Yield choices that are gold more or less often than others, where chance does not explain it (chi-square)."""
    labels, size = spec.label_names, len(references)
    if spec.kind != "multiple_choice" or len(labels) < 2 or size < LEAST_EXPECTED * len(labels):
        return
    from scipy.stats import chisquare

    counts = Counter(references)
    p = float(chisquare([counts[label] for label in labels]).pvalue)
    if p < UNEVEN:
        shares = ", ".join(f"{label} {counts[label] / size * 100:.1f} %" for label in labels)
        sentence = (
            f"the right answers of the {split.title} split are not spread evenly over the positions ({shares}; "
            f"chi-square p {'< .001' if p < 0.001 else f'= {p:.3f}'})"
        )
        yield split.note("answer position", sentence)


def variant_results(
    entry: TaskEntry, kind: TaskKind, finder: DataFinder, tests: Sequence[AuditedSplit]
) -> Results:
    """Yield the faults of the variants that a spec names, against the task's own test items."""
    spec = entry.spec
    for (name, variant), test in itertools.product(spec.variants.items(), tests):
        source, folder = variant.splits.get("test"), entry.folders.get(test.language)
        if source is None or folder is None:
            continue
        language = entry.languages.get(test.language)
        conditions = dict(zip(spec.axes, test.axes, strict=True))
        title = f"the variant {name!r}"
        try:
            resolved = find_split(finder, source, spec.task, language, "test", folder, conditions)
        except MissingDataError:
            continue
        try:
            context = ReadContext.of_test(spec, test.language, resolved.label_map)
            examples = read_examples(kind, finder.rows(resolved), context)
        except (DataError, UsageError) as error:
            yield test.finding("variant", f"readable items in {title}", str(error).rstrip("."))
            continue
        if spec.label_names:
            yield from _labels(kind, test, examples, title)
        test_ids = {example.id for example in test.examples}
        ids = {example.id for example in examples}
        absent = sorted(test_ids - ids)
        further = sorted(ids - test_ids)
        if absent or further:
            sentence = f"{len(examples):,}: {len(absent):,} are missing and {len(further):,} are others"
            expected = f"the {len(test_ids):,} items of the {test.title} split in {title}"
            yield test.finding("variant", expected, f"{sentence} ({named_ids([*absent, *further])})")


def _labels(kind: TaskKind, test: AuditedSplit, examples: Sequence[Any], title: str) -> Results:
    """Yield labels that are not those of the items with the same ids; golds that are texts may differ."""
    labels = {example.id: kind.reference(example) for example in test.examples}
    shared = [example for example in examples if example.id in labels]
    wrong = [example.id for example in shared if kind.reference(example) not in (None, labels[example.id])]
    if wrong:
        count = f"{len(wrong):,} of {len(shared):,} others ({named_ids(wrong)})"
        yield test.finding("variant", f"the labels of the same items in {title}", count)
