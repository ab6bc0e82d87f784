"""The reader of the four tasks of Vyakarana (Patil et al., MRL 2021, section 4): treebanks read as items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import DataError, Reader, Row, UsageError
from harness.data.readers.reader import choice

if TYPE_CHECKING:
    from harness_vyakarana.conllu import Sentence

__all__ = ["DEEPEST", "MASK_WORD", "READERS", "source_of", "variant_of"]

MASK_WORD: Final = "[MASK]"
"""The word in place of the verb, ``mask_word`` in the specs; as in the released notebooks."""
DEEPEST: Final = 14
"""The deepest tree with a class of its own, as published; deeper ones are of the class ``15+``."""
FULL, CASE_ONLY = "full", "case_only"
MASKED, PREFIX, STRICT = "masked", "prefix", "strict"
_VARIANT: Final = re.compile(r"(.+)-(org[1-9][0-9]*)")


def source_of(sent_id: str) -> str:
    """Return the id of the sentence that a sentence was made from: ``test-s1-org2`` gives ``test-s1``."""
    found = _VARIANT.fullmatch(sent_id)
    return found[1] if found else sent_id


def variant_of(sent_id: str) -> str | None:
    """Return the gender variant, ``org1`` to ``org4`` as in the released treebanks; None for an original sentence.

    Where genders are varied: the source's genders, the opposite ones, all masculine, all feminine.
    """
    found = _VARIANT.fullmatch(sent_id)
    return found[2] if found else None


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    from harness_vyakarana.conllu import read_sentences

    if "task" not in options:
        raise UsageError(f"The reader 'vyakarana' needs the option 'task': {', '.join(_TASKS)}.")
    task = choice(options, "task", list(_TASKS))
    views = _VIEWS[task]
    if not views and "inputs" in options:
        raise UsageError(f"The reader option 'inputs' is only for gcm and sva; the task is {task!r}.")
    view = choice(options, "inputs", views) if views else ""
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
    from harness_vyakarana.labels import pos_labels

    yield None, {"tokens": _forms(sentence), "tags": pos_labels(sentence)}


def _depths(sentence: Sentence, view: str, path: Path) -> Items:
    from harness_vyakarana.labels import depth_label

    try:
        depth = depth_label(sentence)
    except ValueError as error:
        raise DataError(f"{path}:{sentence.line}: {error}") from error
    label = str(depth) if depth <= DEEPEST else f"{DEEPEST + 1}+"
    yield None, {"sentence": " ".join(_forms(sentence)), "label": label}


def _cases(sentence: Sentence, view: str, path: Path) -> Items:
    """Yield the words of a sentence with their cases; a sentence without cases is skipped in both views."""
    from harness_vyakarana.labels import case_labels

    words = list(zip(_forms(sentence), case_labels(sentence), strict=True))
    if view == CASE_ONLY:
        words = [(form, label) for form, label in words if label is not None]
    if any(label is not None for _, label in words):
        yield None, {"tokens": [form for form, _ in words], "labels": [label for _, label in words]}


def _agreement(sentence: Sentence, view: str, path: Path) -> Items:
    from harness_vyakarana.labels import agreement_items, strict_agreement_items

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

READERS = (
    Reader(
        name="vyakarana",
        read=_read,
        summary="a treebank in CoNLL-U, read for one of the tasks of Vyakarana",
        options={
            "task": "pos, stdp, gcm or sva",
            "inputs": "of gcm: full (default) or case_only; of sva: masked (default), prefix or strict",
        },
    ),
)
