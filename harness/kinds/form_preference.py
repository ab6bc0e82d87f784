"""Form preference: which form of a word a language model finds likelier in its place (Gulordava et al., 2018).

A choice between the forms of a gap, by log-likelihood and without a prompt: a causal model sees what precedes the
form, a masked one also what follows it (Goldberg, 2019, "Assessing BERT's Syntactic Abilities").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from harness.data.records import FormChoice, Prediction, Row
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import Method, MethodContext
from harness.models.capabilities import Capability, FillsMasks, ScoresContinuations
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest, MaskRequest
from harness.specs.schema import TaskSpec

__all__ = ["KIND", "METHODS", "FormPreferenceSpec"]


class FormPreferenceSpec(TaskSpec):
    """The spec of a form preference task; its rows have `before`, `right`, `wrong` and, where known, `after`."""

    kind: Literal["form_preference"]


def _example(row: Row, number: int, context: ReadContext) -> FormChoice:
    right = text_of(row, "right", context)
    wrong = _wrong_forms(row, right, context)
    return FormChoice(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row, "tags"),
        before=text_of(row, "before", context),
        right=right,
        wrong=wrong,
        after=text_of(row, "after", context) if row.fields.get("after") is not None else "",
    )


def _wrong_forms(row: Row, right: str, context: ReadContext) -> tuple[str, ...]:
    """Return the wrong forms: one, or a list of them.

    One that is the right form is kept: the released Italian set has such a pair. No model is right there, since equal
    forms are equally likely, and Gulordava et al. count that as wrong; the task audit reports such items.
    """
    given = row.fields.get("wrong")
    wrong = tuple(given) if isinstance(given, list) else (text_of(row, "wrong", context),)
    forms = (right, *wrong)
    if len(forms) < 2 or not all(isinstance(form, str) and form.strip() == form != "" for form in forms):
        raise DataError(
            f"{row.where}: expected forms without spaces around them, a right one and at least one wrong one, "
            f"found {right!r} and {given!r}."
        )
    if len(set(wrong)) < len(wrong):
        raise DataError(f"{row.where}: the wrong forms {', '.join(map(repr, wrong))} are not all different.")
    return wrong


def _forms(example: FormChoice) -> tuple[str, ...]:
    return (example.right, *example.wrong)


def _predict_by_rank(
    adapter: ScoresContinuations, examples: Sequence[FormChoice], context: MethodContext
) -> list[Prediction]:
    """Compare the forms by their log-probability after what precedes them; the space before them is theirs."""
    requests = [
        LikelihoodRequest(
            context=(kept := example.before.rstrip()), continuation=example.before[len(kept) :] + form
        )
        for example in examples
        for form in _forms(example)
    ]
    return _preferences(examples, adapter.loglikelihood(requests), "loglikelihood")


def _predict_by_fill(
    adapter: FillsMasks, examples: Sequence[FormChoice], context: MethodContext
) -> list[Prediction]:
    """Compare the forms by the sum of the log-probabilities of their masked pieces, the whole sentence in view."""
    requests = [
        MaskRequest(before=example.before, form=form, after=example.after)
        for example in examples
        for form in _forms(example)
    ]
    return _preferences(examples, adapter.fill_masks(requests), "fill_masks")


def _predict_by_prefix_fill(
    adapter: FillsMasks, examples: Sequence[FormChoice], context: MethodContext
) -> list[Prediction]:
    """Compare the forms as `fill` does, where the sentence ends with them: what a causal model sees."""
    requests = [
        MaskRequest(before=example.before, form=form) for example in examples for form in _forms(example)
    ]
    return _preferences(examples, adapter.fill_masks(requests), "fill_masks")


def _preferences(
    examples: Sequence[FormChoice], answers: Sequence[LikelihoodAnswer], asked: str
) -> list[Prediction]:
    expected = sum(len(_forms(example)) for example in examples)
    if len(answers) != expected:
        raise ContractError(f"{asked}() returned {len(answers)} answers to {expected} requests.")
    if not all(np.isfinite(answer.total) for answer in answers):
        raise ContractError(f"{asked}() returned a log-probability that is not finite.")
    predictions, start = [], 0
    for example in examples:
        end = start + len(_forms(example))
        predictions.append(_preference(example, answers[start:end]))
        start = end
    return predictions


def _preference(example: FormChoice, answers: Sequence[LikelihoodAnswer]) -> Prediction:
    """Return the form with the largest sum; none where it has an equal, or where a form cannot be written.

    For Gulordava et al. an item is right where the right form is likelier than the wrong one: equal ones are wrong.
    """
    forms = _forms(example)
    written = all(answer.token_logprobs for answer in answers)
    sums = [round(answer.total, 6) if answer.token_logprobs else None for answer in answers]
    known = [value for value in sums if value is not None]
    tied = written and known.count(max(known)) > 1
    output: dict[str, Any] = {
        "label": forms[int(np.argmax(known))] if written and not tied else None,
        "forms": list(forms),
        "scores": sums,
        "tokens": [len(answer.token_logprobs) for answer in answers],
    }
    return Prediction(
        id=example.id,
        output=output,
        truncated=any(answer.truncated for answer in answers),
        unparsed=not written,
        tied=tied,
    )


METHODS = (
    Method(
        name="rank",
        kind="form_preference",
        requires=Capability.SCORES_CONTINUATIONS,
        protocols=frozenset({"frozen"}),
        predict=_predict_by_rank,
    ),
    Method(
        name="fill",
        kind="form_preference",
        requires=Capability.FILLS_MASKS,
        protocols=frozenset({"frozen"}),
        predict=_predict_by_fill,
    ),
    Method(
        name="fill_prefix",
        kind="form_preference",
        requires=Capability.FILLS_MASKS,
        protocols=frozenset({"frozen"}),
        predict=_predict_by_prefix_fill,
    ),
)

KIND = TaskKind(
    name="form_preference",
    spec_model=FormPreferenceSpec,
    head=None,
    methods=("rank", "fill", "fill_prefix"),
    example=_example,
    reference=lambda example: example.right,
    summary="a language model prefers the right form of a word",
    texts=lambda example, spec: (example.before + example.right + example.after,),
)
