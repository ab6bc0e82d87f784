"""Form preference: rows become gaps, and the likelier form wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from harness.data.records import FormChoice, Row
from harness.errors import ContractError, DataError
from harness.kinds.form_preference import KIND, METHODS
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.methods import choose_pairings
from harness.models.capabilities import Capability, ModelDescription
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest, MaskRequest

METHOD = {method.name: method for method in METHODS}
FIELDS = {"before": "The keys to the cabinet ", "right": "are", "wrong": "is", "after": " here ."}


def example(**changes: Any) -> FormChoice:
    rows = [Row(fields={**FIELDS, **changes}, path="f.jsonl", line=1)]
    [read] = read_examples(KIND, rows, ReadContext(owner="mine", language="en", split="test"))
    assert isinstance(read, FormChoice)
    return read


def answer(*logprobs: float, truncated: bool = False) -> LikelihoodAnswer:
    return LikelihoodAnswer(token_logprobs=logprobs, is_greedy=False, byte_length=2, truncated=truncated)


class Model:
    """Gives the answers that were planted, and keeps what it was asked."""

    def __init__(self, *answers: LikelihoodAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def loglikelihood(self, requests: Sequence[Any]) -> list[LikelihoodAnswer]:
        self.asked = list(requests)
        return self.answers

    fill_masks = loglikelihood


def predict(method: str, model: Model, *examples: FormChoice, compare: str = "form") -> list[Any]:
    call: Callable[..., list[Any]] = METHOD[method].predict
    return call(model, examples, SimpleNamespace(spec=SimpleNamespace(compare=compare)))


def test_a_row_becomes_a_gap() -> None:
    found = example(group="original", tags={"attractors": 1}, wrong=["is", "was"])
    assert (found.before, found.right, found.wrong, found.after) == (
        "The keys to the cabinet ",
        "are",
        ("is", "was"),
        " here .",
    )
    assert (found.group, found.meta, KIND.reference(found)) == ("original", {"attractors": "1"}, "are")
    assert example(after=None).after == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"right": " are"},
            r"f\.jsonl:1: expected forms without spaces around them, .*found ' are' and 'is'",
        ),
        ({"wrong": []}, "a right one and at least one wrong one"),
        ({"wrong": ["is", ""]}, "expected forms without spaces"),
        ({"wrong": ["is", 3]}, "expected forms without spaces"),
        ({"wrong": ["is", "is"]}, r"the wrong forms 'is', 'is' are not all different"),
        ({"wrong": None}, "expected the text field 'wrong' of 'mine'"),
        ({"before": None}, "expected the text field 'before' of 'mine'"),
    ],
)
def test_bad_rows_are_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        example(**changes)


def test_a_causal_model_sees_what_precedes_the_form() -> None:
    model = Model(answer(-1.0, -1.0), answer(-2.5))
    [found] = predict("rank", model, example())
    assert model.asked == [
        LikelihoodRequest(context="The keys to the cabinet", continuation=" are"),
        LikelihoodRequest(context="The keys to the cabinet", continuation=" is"),
    ]
    assert found.output == {
        "label": "are",
        "forms": ["are", "is"],
        "scores": [-2.0, -2.5],
        "tokens": [2, 1],
    }
    predict("rank", model, example(before=""))
    assert [request.continuation for request in model.asked] == ["are", "is"]


def test_a_masked_model_sees_both_sides_or_the_beginning() -> None:
    model = Model(answer(-3.0), answer(-1.0, truncated=True))
    [found] = predict("fill", model, example())
    assert model.asked == [
        MaskRequest(before="The keys to the cabinet ", form=form, after=" here .") for form in ("are", "is")
    ]
    assert (found.output["label"], found.truncated) == ("is", True)
    predict("fill_prefix", model, example())
    assert model.asked == [
        MaskRequest(before="The keys to the cabinet ", form=form) for form in ("are", "is")
    ]


def test_whole_sentences_are_compared_by_sum_or_per_token() -> None:
    model = Model(answer(-1.0, -2.0, -3.0), answer(-2.0, -2.5))
    [found] = predict("rank", model, example(), compare="sentence")
    assert model.asked == [
        LikelihoodRequest(context="", continuation=f"The keys to the cabinet {form} here .")
        for form in ("are", "is")
    ]
    assert (found.output["label"], found.output["scores"]) == ("is", [-6.0, -4.5])
    [found] = predict("rank", model, example(), compare="sentence_mean")
    assert (found.output["label"], found.output["scores"]) == ("are", [-2.0, -2.25])
    [found] = predict("fill", model, example(), compare="sentence_mean")
    assert model.asked[0] == MaskRequest(before="The keys to the cabinet ", form="are", after=" here .")
    assert found.output["scores"] == [-2.0, -2.25]


def test_a_masked_model_sees_a_sentence_word_by_word() -> None:
    pair = example(before="", right="cats sleep", wrong="cats sleeps", after="")
    model = Model(answer(-1.0), answer(-2.0, -0.5), answer(-1.0), answer(-4.0, truncated=True))
    [found] = predict("fill", model, pair)
    assert model.asked == [
        MaskRequest(before="", form="cats", after=" sleep"),
        MaskRequest(before="cats ", form="sleep", after=""),
        MaskRequest(before="", form="cats", after=" sleeps"),
        MaskRequest(before="cats ", form="sleeps", after=""),
    ]
    assert found.output == {
        "label": "cats sleep",
        "forms": ["cats sleep", "cats sleeps"],
        "scores": [-3.5, -5.0],
        "tokens": [3, 2],
    }
    assert found.truncated
    model = Model(answer(-1.0), answer(-2.0), answer(-1.0), answer())
    [found] = predict("fill", model, pair)
    assert (found.output["label"], found.output["scores"], found.unparsed) == (None, [-3.0, None], True)


def test_equal_forms_and_forms_that_cannot_be_written_are_not_right() -> None:
    [tie] = predict("fill", Model(answer(-1.0, -1.0), answer(-2.0)), example())
    assert (tie.output["label"], tie.tied, tie.unparsed) == (None, True, False)
    [same] = predict("rank", Model(answer(-1.0), answer(-1.0)), example(wrong="are"))
    assert (same.output["label"], same.tied, same.unparsed) == (None, True, False)
    [lost] = predict("fill", Model(answer(-1.0), answer()), example())
    assert (lost.output["label"], lost.output["scores"], lost.unparsed) == (None, [-1.0, None], True)


def test_broken_models_are_rejected() -> None:
    with pytest.raises(ContractError, match=r"loglikelihood\(\) returned 1 answers to 2 requests"):
        predict("rank", Model(answer(-1.0)), example())
    with pytest.raises(ContractError, match=r"fill_masks\(\) returned a log-probability that is not finite"):
        predict("fill", Model(answer(-1.0), answer(float("nan"))), example())


@pytest.mark.parametrize(
    ("offers", "method"),
    [
        ({Capability.SCORES_CONTINUATIONS, Capability.GENERATES}, "rank"),
        ({Capability.FILLS_MASKS, Capability.FITS, Capability.EMBEDS}, "fill"),
        ({Capability.FITS, Capability.EMBEDS}, None),
    ],
)
def test_the_method_follows_from_what_a_model_can(offers: set[Capability], method: str | None) -> None:
    from harness.running.session import open_session

    spec = open_session().catalog.task("colorless_green_agreement").spec
    model = ModelDescription(adapter="a", ref="m", offers=frozenset(offers), note="it has no such head")
    pairings, reasons = choose_pairings(spec, METHODS, model, head=None)
    if method is None:
        assert pairings == []
        assert reasons == [
            "'frozen' needs FillsMasks or ScoresContinuations; a:m offers Embeds, Fits (it has no such head)"
        ]
    else:
        assert [(pairing.protocol, pairing.method.name) for pairing in pairings] == [("frozen", method)]
