"""What is wrong with the tags of entities: none at all, or a scheme in which an entity need not begin with ``B-``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness import Finding, Note, TaskSpec
from harness_audit.split import AuditedSplit, named_ids

__all__ = ["tag_results"]

TAGGED = "token_tagging"
BEGINS, INSIDE, OUTSIDE = "B-", "I-", "O"


def tag_results(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any]) -> Iterator[Finding | Note]:
    """Yield a split without any entity, and entities that begin with ``I-``; more than half of them is a fault.

    Only of tasks whose labels are those of IOB2 (Tjong Kim Sang and Veenstra, 1999): conlleval scores both schemes
    alike, but a model that is trained on one of them does not.
    """
    labels = [label for label in spec.label_names if label != OUTSIDE]
    begins = [label for label in labels if label.startswith(BEGINS)]
    if spec.kind != TAGGED or not begins or not all(label.startswith((BEGINS, INSIDE)) for label in labels):
        return
    entities, begun_inside, items = 0, 0, []
    for example, tags in zip(split.examples, references, strict=True):
        starts = list(_starts(tags))
        entities += len(starts)
        inside = sum(tag.startswith(INSIDE) for tag in starts)
        begun_inside += inside
        items += [example.id] if inside else []
    if not entities:
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="tags",
            expected=f"entities in the {split.title} split",
            found=f"none in {len(references):,} items",
        )
    elif begun_inside:
        sentence = f"{begun_inside:,} of {entities:,} that begin with {INSIDE!r} ({named_ids(items)})"
        if 2 * begun_inside > entities:
            yield Finding(
                task=spec.task,
                languages=(split.language,),
                check="tags",
                expected=f"entities of the {split.title} split that begin with {BEGINS!r}",
                found=sentence,
            )
        else:
            sentence = f"of the entities of the {split.title} split {sentence}, not with {BEGINS!r}"
            yield Note(task=spec.task, languages=(split.language,), check="tags", text=sentence)


def _starts(tags: Sequence[str]) -> Iterator[str]:
    """Yield the first tag of every entity: a ``B-``, or an ``I-`` that does not continue the entity before it."""
    before = ""
    for tag in tags:
        kind = tag[2:]
        if tag.startswith(BEGINS) or (tag.startswith(INSIDE) and kind != before):
            yield tag
        before = kind if tag.startswith((BEGINS, INSIDE)) else ""
