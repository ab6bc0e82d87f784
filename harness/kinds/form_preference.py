"""Form preference: which form a language model finds likelier in its place (Gulordava et al., 2018).

A choice between the forms of a gap, by log-likelihood and without a prompt: a causal model sees what precedes the
form, a masked one also what follows it (Goldberg, 2019, "Assessing BERT's Syntactic Abilities"). A form may be a whole
sentence with nothing around it: a minimal pair (Warstadt et al., 2020). A gap may have many forms: the candidate
answers to a cloze question, of which all are ranked (Qi et al., 2023, section 4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from harness.data.records import FormChoice, Prediction, Row
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import Method, MethodContext
from harness.models.capabilities import Capability, FillsMasks, ScoresContinuations
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest, MaskRequest
from harness.specs.schema import TaskSpec

_WORD = re.compile(r"\S+")


class FormPreferenceSpec(TaskSpec):
    """The spec of a form preference task; its rows have `before`, `right`, `wrong` and, where known, `after`."""

    kind: Literal["form_preference"]
    compare: Literal["form", "after", "sentence", "sentence_mean"] = "form"
    """What a causal model compares: the log-probability of the form after what precedes it, that of what follows the
    form (the partial score of Trinh and Le, 2018, for Winograd schemas), that of the whole sentence with the form in
    it, or the latter per token. A masked model compares that of the form, with ``sentence_mean`` per
    token."""


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
    raw_forms = row.fields.get("wrong")
    wrong = tuple(raw_forms) if isinstance(raw_forms, list) else (text_of(row, "wrong", context),)
    forms = (right, *wrong)
    if len(forms) < 2 or not all(isinstance(form, str) and form.strip() == form != "" for form in forms):
        raise DataError(
            f"{row.where}: expected forms without spaces around them, a right one and at least one wrong one, "
            f"found {right!r} and {raw_forms!r}."
        )
    if len(set(wrong)) < len(wrong):
        raise DataError(f"{row.where}: the wrong forms {', '.join(map(repr, wrong))} are not all different.")
    return wrong


def _forms(example: FormChoice) -> tuple[str, ...]:
    return (example.right, *example.wrong)


def _predict_by_rank(
    adapter: ScoresContinuations, examples: Sequence[FormChoice], context: MethodContext
) -> list[Prediction]:
    """Compare the forms after what precedes them, the space before them included, or the sentences with them."""
    make = _REQUESTS[_compared(context)]
    requests = [make(example, form) for example in examples for form in _forms(example)]
    answers = adapter.loglikelihood(requests)
    return _preferences(examples, _checked(answers, len(requests), "loglikelihood"), context)


def _after_context(example: FormChoice, form: str) -> LikelihoodRequest:
    context = example.before.rstrip()
    return LikelihoodRequest(context=context, continuation=example.before[len(context) :] + form)


def _before_rest(example: FormChoice, form: str) -> LikelihoodRequest:
    if not example.after.strip():
        raise DataError(f"Item {example.id!r}: expected text after the form, which 'compare: after' scores.")
    return LikelihoodRequest(context=example.before + form, continuation=example.after)


def _as_sentence(example: FormChoice, form: str) -> LikelihoodRequest:
    return LikelihoodRequest(context="", continuation=example.before + form + example.after)


_REQUESTS: Mapping[str, Callable[[FormChoice, str], LikelihoodRequest]] = {
    "form": _after_context,
    "after": _before_rest,
    "sentence": _as_sentence,
    "sentence_mean": _as_sentence,
}


def _predict_by_fill(
    adapter: FillsMasks, examples: Sequence[FormChoice], context: MethodContext
) -> list[Prediction]:
    """Compare the forms by the sum of the log-probabilities of their masked pieces, the whole sentence in view.

    A form that is the whole sentence is masked word by word: its pseudo-log-likelihood (Salazar et al., 2020) with all
    pieces of a word masked at once (``PLL-whole-word`` of Kauf and Ivanova, 2023, section 3).
    """
    requests_by_form = [_masked_parts(example, form) for example in examples for form in _forms(example)]
    requests = [request for form_requests in requests_by_form for request in form_requests]
    answers = iter(_checked(adapter.fill_masks(requests), len(requests), "fill_masks"))
    joined = [_joined([next(answers) for _ in form_requests]) for form_requests in requests_by_form]
    return _preferences(examples, joined, context)


def _masked_parts(example: FormChoice, form: str) -> list[MaskRequest]:
    if example.before or example.after:
        return [MaskRequest(before=example.before, form=form, after=example.after)]
    return [
        MaskRequest(before=form[: word.start()], form=word.group(), after=form[word.end() :])
        for word in _WORD.finditer(form)
    ]


def _joined(answers: Sequence[LikelihoodAnswer]) -> LikelihoodAnswer:
    """Return the answers about the words of a form as one; without tokens where a word cannot be written."""
    if len(answers) == 1:
        return answers[0]
    written = all(answer.token_logprobs for answer in answers)
    tokens = chain.from_iterable(answer.token_logprobs for answer in answers) if written else ()
    return LikelihoodAnswer(
        token_logprobs=tuple(tokens),
        is_greedy=all(answer.is_greedy for answer in answers),
        byte_length=sum(answer.byte_length for answer in answers),
        truncated=any(answer.truncated for answer in answers),
    )


def _predict_by_prefix_fill(
    adapter: FillsMasks, examples: Sequence[FormChoice], context: MethodContext
) -> list[Prediction]:
    """Compare the forms as `fill` does, where the sentence ends with them: what a causal model sees."""
    requests = [
        MaskRequest(before=example.before, form=form) for example in examples for form in _forms(example)
    ]
    answers = adapter.fill_masks(requests)
    return _preferences(examples, _checked(answers, len(requests), "fill_masks"), context)


def _compared(context: MethodContext) -> str:
    """Return the comparison of the task; ``form`` for specs of other kinds, which have no such key."""
    return str(getattr(context.spec, "compare", "form"))


def _checked(answers: Sequence[LikelihoodAnswer], expected: int, asked: str) -> Sequence[LikelihoodAnswer]:
    if len(answers) != expected:
        raise ContractError(f"{asked}() returned {len(answers)} answers to {expected} requests.")
    if not all(np.isfinite(answer.total) for answer in answers):
        raise ContractError(f"{asked}() returned a log-probability that is not finite.")
    return answers


def _preferences(
    examples: Sequence[FormChoice], answers: Sequence[LikelihoodAnswer], context: MethodContext
) -> list[Prediction]:
    by_token = _compared(context) == "sentence_mean"
    predictions, start = [], 0
    for example in examples:
        end = start + len(_forms(example))
        predictions.append(_preference(example, answers[start:end], by_token=by_token))
        start = end
    return predictions


def _preference(example: FormChoice, answers: Sequence[LikelihoodAnswer], *, by_token: bool) -> Prediction:
    """Return the form with the largest score; none where it has an equal, or where a form cannot be written.

    For Gulordava et al. an item is right where the right form is likelier than the wrong one: equal ones are wrong.
    """
    forms = _forms(example)
    written = all(answer.token_logprobs for answer in answers)
    scores = [_score(answer, by_token=by_token) for answer in answers]
    known_scores = [value for value in scores if value is not None]
    tied = written and known_scores.count(max(known_scores)) > 1
    output: dict[str, Any] = {
        "label": forms[int(np.argmax(known_scores))] if written and not tied else None,
        "forms": list(forms),
        "scores": scores,
        "tokens": [len(answer.token_logprobs) for answer in answers],
    }
    return Prediction(
        id=example.id,
        output=output,
        truncated=any(answer.truncated for answer in answers),
        unparsed=not written,
        tied=tied,
    )


def _score(answer: LikelihoodAnswer, *, by_token: bool) -> float | None:
    if not answer.token_logprobs:
        return None
    return round(answer.total / len(answer.token_logprobs) if by_token else answer.total, 6)


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
    summary="a language model prefers the right form, sentence or answer to the wrong ones",
    texts=lambda example, spec: (example.before + example.right + example.after,),
)

KINDS = (KIND,)
