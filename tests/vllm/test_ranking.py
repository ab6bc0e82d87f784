"""Log-probabilities of continuations against the stand-in's own numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from harness.errors import AdapterError
from harness.models.requests import LikelihoodRequest
from harness_vllm.ranking import read_scores

pytestmark = pytest.mark.thorough

Ranker = Callable[..., Any]
PAIRS = [
    ("The cat sat on the", " warm mat"),
    ("The cat sat on the", " door"),
    ("Der Hund", " schläft neben der Tür"),
    ("बिल्ली चटाई", " पर"),
    ("yes", " no"),
]


def requests(pairs: list[tuple[str, str]]) -> list[LikelihoodRequest]:
    return [LikelihoodRequest(context=context, continuation=continuation) for context, continuation in pairs]


def expected(stand_in: Any, ids: list[int], start: int) -> tuple[float, ...]:
    return tuple(stand_in.logprob(ids[: place + 1]) for place in range(start, len(ids)))


@pytest.mark.parametrize("scoring", ["prompt_logprobs", "echo", "auto"])
@pytest.mark.parametrize("prompts_per_request", [1, 3])
def test_numbers_are_those_of_the_server(
    either_ranker: Ranker,
    stand_in: Any,
    scoring: str,
    prompts_per_request: int,
) -> None:
    model = either_ranker(scoring=scoring, prompts_per_request=prompts_per_request, concurrency=2)
    answers = model.loglikelihood(requests(PAIRS))
    for (context, continuation), answer in zip(PAIRS, answers, strict=True):
        ids, start = stand_in.ids(context + continuation), len(stand_in.ids(context))
        assert answer.token_logprobs == pytest.approx(expected(stand_in, ids, start), abs=1e-9)
        assert answer.is_greedy == all(
            stand_in.rank(ids[: place + 1]) == 1 for place in range(start, len(ids))
        )
        assert answer.byte_length == len(continuation.encode())
        assert not answer.truncated
        assert not answer.straddles


def test_a_server_without_prompt_logprobs_is_asked_to_echo(ranker: Ranker, stand_in: Any) -> None:
    stand_in.missing.add("prompt_logprobs")
    [answer] = ranker().loglikelihood(requests(PAIRS[:1]))
    ids = stand_in.ids("The cat sat on the warm mat")
    assert answer.token_logprobs == pytest.approx(
        expected(stand_in, ids, len(stand_in.ids("The cat sat on the")))
    )
    assert stand_in.posted("completions")[-1]["echo"] is True


def test_bos_stands_before_texts_and_empty_contexts(
    ranker: Ranker, stand_in: Any, folders: dict[str, Path]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders["bos"])
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    stand_in.missing.add("tokenize")
    cat = stand_in.ids(" cat")
    with_bos = ranker(tokenizer=folders["bos"])
    empty, full = with_bos.loglikelihood(requests([("", " cat"), ("The", " cat")]))
    assert empty.token_logprobs == pytest.approx(expected(stand_in, [bos, *cat], 1))
    assert full.token_logprobs == pytest.approx(
        expected(stand_in, [bos, *stand_in.ids("The cat")], len(stand_in.ids("The")) + 1)
    )
    [without] = ranker().loglikelihood(requests([("", " cat")]))
    assert without.token_logprobs == pytest.approx(expected(stand_in, [eos, *cat], 1))


def test_a_token_across_the_boundary_belongs_to_the_continuation(
    either_ranker: Ranker, stand_in: Any
) -> None:
    model = either_ranker()
    pairs = [("yes no red ", "green"), ("the cat s", "at")]
    for (context, continuation), answer in zip(pairs, model.loglikelihood(requests(pairs)), strict=True):
        ids = stand_in.ids(context + continuation)
        alone = stand_in.ids(context)
        assert ids[: len(alone)] != alone, "the example does not straddle"
        assert answer.straddles
        assert answer.token_logprobs == pytest.approx(expected(stand_in, ids, len(alone) - 1))
        assert answer.byte_length == len(continuation)


def test_an_empty_context_of_a_tokenizer_unknown_here_is_rejected(ranker: Ranker) -> None:
    with pytest.raises(AdapterError, match="tokenizer=FOLDER"):
        ranker(tokenizer=None).loglikelihood(requests([("", " cat")]))


def test_long_contexts_lose_their_beginning(ranker: Ranker, stand_in: Any, folders: dict[str, Path]) -> None:
    context = "The dog and the cat. " * 40
    tokenizer = AutoTokenizer.from_pretrained(folders["bos"])
    stand_in.missing.add("tokenize")
    for name in ("plain", "bos"):
        model = ranker(tokenizer=folders[name])
        long, short = model.loglikelihood(requests([(context, " yes no"), ("The", " yes no")]))
        ids = stand_in.ids(context + " yes no")
        scored = len(stand_in.ids(" yes no"))
        first = [tokenizer.bos_token_id] if name == "bos" else []
        sent = [*first, *ids[-(63 - len(first)) :]]
        assert sent in [request["prompt"] for request in stand_in.posted("completions")]
        assert long.token_logprobs == pytest.approx(expected(stand_in, sent, len(sent) - scored))
        assert (long.truncated, short.truncated) == (True, False)


def test_a_continuation_longer_than_the_context_is_rejected(ranker: Ranker) -> None:
    with pytest.raises(AdapterError, match=r"The continuation ' yes yes.* has \d+ tokens.* of 63 tokens"):
        ranker().loglikelihood(requests([("a", " yes" * 90)]))


def test_a_continuation_without_a_token_is_rejected(either_ranker: Ranker) -> None:
    with pytest.raises(AdapterError, match="The continuation of 'The cat' is empty"):
        either_ranker().loglikelihood(requests([("The cat", "")]))


def test_the_same_tokens_are_sent_once(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(scoring="prompt_logprobs")
    model.loglikelihood(requests([("one", " two")]))
    before = len(stand_in.posted("completions"))
    answers = model.loglikelihood(requests([("yes", " no red"), ("yes no", " red")] * 3))
    assert len(stand_in.posted("completions")) == before + 1
    assert [len(answer.token_logprobs) for answer in answers] == [3, 2] * 3


def test_the_context_is_asked_of_the_server_once(ranker: Ranker, stand_in: Any) -> None:
    ranker(tokenizer=None, concurrency=1).loglikelihood(requests([("yes", " no"), ("yes", " red")]))
    assert [request["prompt"] for request in stand_in.posted("tokenize")].count("yes") == 1


def test_another_models_tokenizer_is_rejected(
    ranker: Ranker, folders: dict[str, Path], tmp_path: Path
) -> None:
    content = json.loads((folders["plain"] / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["a"], vocabulary["e"] = vocabulary["e"], vocabulary["a"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").write_bytes(
        (folders["plain"] / "tokenizer_config.json").read_bytes()
    )
    with pytest.raises(AdapterError, match="is not that of the model 'tiny'"):
        ranker(tokenizer=tmp_path)


def test_a_folder_that_the_server_names_is_used_where_it_is_here(
    ranker: Ranker, stand_in: Any, folders: dict[str, Path]
) -> None:
    stand_in.root = str(folders["plain"])
    ranker(tokenizer=None).loglikelihood(requests(PAIRS))
    assert len(stand_in.posted("tokenize")) == 1, "the comparison of the tokenizers alone"


def test_a_server_that_cannot_tokenise_says_so(ranker: Ranker, stand_in: Any) -> None:
    stand_in.missing.add("tokenize")
    with pytest.raises(AdapterError, match="tokenizer=FOLDER"):
        ranker(tokenizer=None)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("malformed", "something that is no JSON"),
        ("fewer", r"gave \d choices for \d prompts.*prompts_per_request=1"),
        ("others", "no log-probability and rank of token"),
        ("more", r"gave \d choices for \d prompts"),
        ("swapped", "did not score the tokens that it was sent"),
        ("shorter", "tokens instead of"),
        ("nan", r"gave 'nan' \(float\) as choices\[\d\]\.prompt_logprobs\[\d+\]\.\d+\.logprob"),
        ("empty", "without choices"),
        ("400", "answered 400: planted fault"),
        ("404", "answered 404: planted fault"),
    ],
)
def test_a_wrong_answer_is_never_a_number(ranker: Ranker, stand_in: Any, fault: str, message: str) -> None:
    model = ranker(scoring="prompt_logprobs", prompts_per_request=4, concurrency=1, retries=0)
    stand_in.faults.append(fault)
    with pytest.raises(AdapterError, match=message):
        model.loglikelihood(requests(PAIRS))
    assert len(model.loglikelihood(requests(PAIRS))) == len(PAIRS), "it works again afterwards"


def test_a_server_without_log_probabilities_is_rejected(ranker: Ranker, stand_in: Any) -> None:
    stand_in.missing.add("prompt_logprobs")
    with pytest.raises(AdapterError, match=r"gives no log-probabilities of prompts.*scoring=echo"):
        ranker(scoring="prompt_logprobs").loglikelihood(requests(PAIRS))


@pytest.mark.parametrize("number", [0.0, 0.0005])
@pytest.mark.parametrize("form", ["prompt_logprobs", "echo"])
def test_numbers_that_are_all_zero_are_no_log_probabilities(form: Any, number: float) -> None:
    def answer(*numbers: float) -> dict[str, Any]:
        scores = [None, *({str(place): {"logprob": own, "rank": 1}} for place, own in enumerate(numbers, 1))]
        tops = [None, *({"x": own} for own in numbers)]
        table = {"token_logprobs": [None, *numbers], "top_logprobs": tops, "tokens": None}
        choice = {"index": 0, "text": "", "logprobs": table, "prompt_logprobs": scores}
        return {"choices": [choice]}

    with pytest.raises(AdapterError, match="all 3 tokens"):
        read_scores(answer(number, number, number), [(0, 1, 2, 3)], form, "http://server")
    [scored] = read_scores(answer(number, -1.0, number), [(0, 1, 2, 3)], form, "http://server")
    assert scored.logprobs == (0.0, -1.0, 0.0)


LABELS = [("The cat sat on the", label) for label in ("!", "?", "=")]
"""Choices of one token each."""


def test_choices_of_one_token_are_one_prompt(either_ranker: Ranker, stand_in: Any) -> None:
    stand_in.next_tokens = 0.0005
    model = either_ranker()
    model.loglikelihood(requests(PAIRS))
    before = len(stand_in.posted("completions"))
    answers = model.loglikelihood(requests([*LABELS, PAIRS[0]]))
    sent = stand_in.posted("completions")[before:]
    context = stand_in.ids(LABELS[0][0])
    assert sorted(payload["prompt"] for payload in sent) == sorted([context, stand_in.ids("".join(PAIRS[0]))])
    for (text, label), answer in zip(LABELS, answers, strict=False):
        [wanted] = expected(stand_in, stand_in.ids(text + label), len(context))
        assert answer.token_logprobs == pytest.approx((wanted - 0.0005,), abs=1e-9)
    assert len(answers[-1].token_logprobs) > 1
    assert model.notices() == [
        "3 of 9 continuations were scored by the next token of their context, the others as whole prompts: "
        "the two ways differed by 0.0005 in a check."
    ]


def test_a_choice_that_is_not_in_the_answer_is_a_whole_prompt(ranker: Ranker, stand_in: Any) -> None:
    stand_in.next_tokens = 0.0005
    [stand_in.lost] = stand_in.ids("?")
    model = ranker()
    answers = model.loglikelihood(requests(LABELS))
    start = len(stand_in.ids(LABELS[0][0]))
    wanted = [expected(stand_in, stand_in.ids(text + label), start)[0] for text, label in LABELS]
    found = [answer.token_logprobs[0] for answer in answers]
    assert found == pytest.approx([wanted[0] - 0.0005, wanted[1], wanted[2] - 0.0005], abs=1e-9)
    assert "2 of 3 continuations" in model.notices()[0]


@pytest.mark.parametrize("scoring", ["auto", "prompt_logprobs", "next_token"])
def test_another_next_token_is_not_used(ranker: Ranker, stand_in: Any, scoring: str) -> None:
    """A server whose numbers of written tokens are changed by its sampling."""
    stand_in.next_tokens = 0.01
    model = ranker(scoring=scoring)
    answers = model.loglikelihood(requests(LABELS))
    start, off = len(stand_in.ids(LABELS[0][0])), 0.01 if scoring == "next_token" else 0.0
    for (text, label), answer in zip(LABELS, answers, strict=True):
        [wanted] = expected(stand_in, stand_in.ids(text + label), start)
        assert answer.token_logprobs == pytest.approx((wanted - off,), abs=1e-9)
    assert len(model.notices()) == (scoring != "prompt_logprobs")
    assert ("option.scoring" in model.identity()) == (scoring == "next_token")


def test_a_server_without_next_tokens_cannot_be_made_to_give_them(ranker: Ranker) -> None:
    with pytest.raises(AdapterError, match=r"next token by token id.*Run without -o scoring=next_token"):
        ranker(scoring="next_token").loglikelihood(requests(LABELS))


@pytest.mark.parametrize("scoring", ["auto", "prompt_logprobs"])
@pytest.mark.parametrize("prompts_per_request", [1, 4])
def test_a_server_whose_numbers_depend_on_the_order_is_rejected(
    ranker: Ranker, stand_in: Any, scoring: str, prompts_per_request: int
) -> None:
    stand_in.stale = 2.0
    model = ranker(scoring=scoring, prompts_per_request=prompts_per_request)
    with pytest.raises(AdapterError, match=r"differ by up to 2 .*42019.*--no-enable-prefix-caching"):
        model.loglikelihood(requests(PAIRS))
    stand_in.stale = 0.001
    assert len(model.loglikelihood(requests(PAIRS))) == len(PAIRS), "rounding is no fault"
