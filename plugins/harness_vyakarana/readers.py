"""The reader of the four tasks of Vyakarana (Patil et al., MRL 2021, section 4): treebanks read as items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError, UsageError
from harness.data import TSV, Reader, Row, Sentence, choice, read_sentences
from harness_vyakarana.labels import (
    agreement_items,
    case_labels,
    depth_label,
    pos_labels,
    strict_agreement_items,
)
from harness_vyakarana.treebank import made_from, source_of, variant_of

MASK_WORD: Final = "[MASK]"
"""The word in place of the verb, ``mask_word`` in the specs; as in the released notebooks."""
DEEPEST: Final = 14
"""The deepest tree with a class of its own, as published; deeper ones are of the class ``15+``."""
FULL, CASE_ONLY = "full", "case_only"
MASKED, PREFIX, STRICT = "masked", "prefix", "strict"
WITHOUT, WITH = "false", "true"
NO_TAG: Final = "None"
"""The class of the ranges of multi-word tokens, which have no part of speech, in the released notebooks."""


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    if "task" not in options:
        raise UsageError(f"The reader 'vyakarana' needs the option 'task': {', '.join(_TASKS)}.")
    task = choice(options, "task", list(_TASKS))
    views = _VIEWS[task]
    for name, tasks in (("inputs", "gcm and sva"), ("ranges", "pos and stdp")):
        if name in options and bool(views) != (name == "inputs"):
            raise UsageError(f"The reader option {name!r} is only for {tasks}; the task is {task!r}.")
    view = choice(options, "inputs", views) if views else choice(options, "ranges", [WITHOUT, WITH])
    for path in paths:
        for sentence in read_sentences(path):
            common = _common(sentence, path)
            for number, fields in _TASKS[task](sentence, view, path):
                identifier = common["id"] if number is None else f"{common['id']}:{number}"
                meta = {**common["meta"], **fields.pop("meta", {})}
                yield Row(
                    fields={**common, **fields, "id": identifier, "meta": meta},
                    path=str(path),
                    line=sentence.line,
                )


Items = Iterator[tuple[int | None, dict[str, Any]]]
"""Fields of an item, and the id of its word if a sentence can have several items."""


def _common(sentence: Sentence, path: Path) -> dict[str, Any]:
    if sentence.sent_id is None:
        raise DataError(f"{path}:{sentence.line}: expected a sentence with a sent_id, found none.")
    variant = variant_of(sentence.sent_id)
    return {
        "id": sentence.sent_id,
        "source": source_of(sentence.sent_id),
        "group": variant,
        "meta": {} if variant is None else {"variant": variant},
    }


def _forms(sentence: Sentence) -> list[str]:
    return [word.form for word in sentence.words]


def _parts_of_speech(sentence: Sentence, view: str, path: Path) -> Items:
    """Yield the words with their tags; with ranges, every line of the file, ranges before their words."""
    if view == WITH:
        tags = [NO_TAG if token.upos == "_" else token.upos for token in sentence.tokens]
        yield None, {"tokens": [token.form for token in sentence.tokens], "tags": tags}
    else:
        yield None, {"tokens": _forms(sentence), "tags": pos_labels(sentence)}


def _depths(sentence: Sentence, view: str, path: Path) -> Items:
    try:
        depth = depth_label(sentence)
    except ValueError as error:
        raise DataError(f"{path}:{sentence.line}: {error}") from error
    label = str(depth) if depth <= DEEPEST else f"{DEEPEST + 1}+"
    forms = [token.form for token in sentence.tokens] if view == WITH else _forms(sentence)
    yield None, {"sentence": " ".join(forms), "label": label}


def _cases(sentence: Sentence, view: str, path: Path) -> Items:
    """Yield the words of a sentence with their cases; a sentence without cases is skipped in both views."""
    words = list(zip(_forms(sentence), case_labels(sentence), strict=True))
    if view == CASE_ONLY:
        words = [(form, label) for form, label in words if label is not None]
    if any(label is not None for _, label in words):
        yield None, {"tokens": [form for form, _ in words], "labels": [label for _, label in words]}


def _agreement(sentence: Sentence, view: str, path: Path) -> Items:
    forms = _forms(sentence)
    if view == MASKED and MASK_WORD in forms:
        raise DataError(
            f"{path}:{sentence.line}: the sentence {sentence.sent_id!r} has the word {MASK_WORD!r}, which marks "
            "the masked verb."
        )
    for item in strict_agreement_items(sentence) if view == STRICT else agreement_items(sentence):
        before = forms[: item.word]
        words = [*before, MASK_WORD, *forms[item.word + 1 :]] if view == MASKED else before
        meta = {"attractors": str(item.attractors)} if view == STRICT else {}
        if not words:
            meta["prefix"] = "empty"
        yield item.word + 1, {"sentence": " ".join(words), "label": item.label, "meta": meta}


_TASKS: Final[Mapping[str, Callable[[Sentence, str, Path], Items]]] = {
    "pos": _parts_of_speech,
    "stdp": _depths,
    "gcm": _cases,
    "sva": _agreement,
}
_VIEWS: Final[Mapping[str, Sequence[str]]] = {
    "pos": (),
    "stdp": (),
    "gcm": (FULL, CASE_ONLY),
    "sva": (MASKED, PREFIX, STRICT),
}

# The published sets of Gulordava et al. (NAACL 2018) --------------------------------------------------

UNKNOWN, END = "<unk>", "<eos>"
COLUMNS = "pattern constr_id sent_id correct_number form class type prefix n_attr len_context len_prefix sent".split()


def _read_colorlessgreen(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row for every two lines of ``generated.tab``: the right form and the wrong one of a sentence.

    The words come from the column `sent`: `prefix` has ``<unk>`` for words unknown to the published models.
    In a nonce sentence `sent` has yet another verb in place of the form; the words after it are those of the sentence.
    """
    tsv_options = {"header": "true", "quoting": "rfc4180", "columns": ",".join(COLUMNS)}
    for path in paths:
        right: Row | None = None
        for row in TSV.read([path], tsv_options):
            if right is None:
                right = row
            else:
                yield _item(right, row)
                right = None
        if right is not None:
            raise DataError(
                f"{right.where}: expected the line of the wrong form after it, found the end of the file."
            )


def _item(right: Row, wrong: Row) -> Row:
    fields = right.fields
    classes = (fields["class"], wrong.fields["class"])
    same = all(fields[name] == wrong.fields[name] for name in ("pattern", "constr_id", "sent_id", "sent"))
    if classes != ("correct", "wrong") or not same:
        raise DataError(
            f"{wrong.where}: expected the wrong form of the sentence whose right form is in line {right.line}, "
            f"found the {wrong.fields['class']!r} form of {_name(wrong)}."
        )
    words = str(fields["sent"]).split(" ")
    position = _place(right, words)
    after = words[position + 1 :]
    if after[-1:] == [END]:
        after.pop()
    construction = f"{fields['pattern']}__{fields['constr_id']}"
    return Row(
        fields={
            "id": f"{construction}__{fields['sent_id']}",
            "construction": construction,
            "group": _group(right),
            "before": "".join(f"{word} " for word in words[:position]),
            "right": fields["form"],
            "wrong": wrong.fields["form"],
            "after": "".join(f" {word}" for word in after),
            "tags": {
                "pattern": fields["pattern"],
                "number": fields["correct_number"],
                "attractors": fields["n_attr"],
                "distance": fields["len_context"],
            },
        },
        path=right.path,
        line=right.line,
    )


def _name(row: Row) -> str:
    return "__".join(str(row.fields[name]) for name in ("pattern", "constr_id", "sent_id"))


def _group(row: Row) -> str:
    """Return ``original`` for the treebank's own sentence, number 0, and ``generated`` for the nonce ones."""
    group = "original" if row.fields["sent_id"] == "0" else "generated"
    if row.fields["type"] != group:
        raise DataError(
            f"{row.where}: sentence {row.fields['sent_id']!r} is {row.fields['type']!r}; expected {group!r}, since "
            "number 0 is the original sentence."
        )
    return group


def _place(row: Row, words: Sequence[str]) -> int:
    """Return the 0-based position of the form; raises `DataError` if `prefix` and `sent` do not fit."""
    length, prefix = str(row.fields["len_prefix"]), str(row.fields["prefix"]).split(" ")
    position = int(length) if length.isdecimal() else -1
    fits = position == len(prefix) < len(words) and all(
        prefix_word in (word, UNKNOWN) for prefix_word, word in zip(prefix, words, strict=False)
    )
    if not fits:
        raise DataError(
            f"{row.where}: expected 'sent' to start with the {length!r} words of 'prefix', found {' '.join(words)!r}."
        )
    return position


READERS = (
    Reader(
        name="vyakarana",
        read=_read,
        summary="a treebank in CoNLL-U, read for one of the tasks of Vyakarana",
        options={
            "task": "pos, stdp, gcm or sva",
            "inputs": "of gcm: full (default) or case_only; of sva: masked (default), prefix or strict",
            "ranges": "of pos and stdp: whether the ranges of multi-word tokens are words too, false (default) or true",
        },
        made_from=made_from,
    ),
    Reader(
        name="colorlessgreen",
        read=_read_colorlessgreen,
        summary="number agreement sets of Gulordava et al. (2018), 'generated.tab'",
    ),
)
