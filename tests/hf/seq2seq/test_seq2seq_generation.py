from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from harness.errors import CapabilityError, UsageError
from harness.models.requests import Generated, GenerateOptions, LikelihoodRequest, Turn
from harness_hf.seq2seq import generation as seq2seq_generation
from harness_hf.seq2seq.generation import _sample

Open = Callable[..., Any]
PROMPTS = ["The cat sat on the warm mat", "yes", "Der Hund schläft neben der Tür, die Katze", ""]


def write(model: Any, prompts: list[Any], *options: GenerateOptions) -> list[Generated]:
    written: list[Generated] = model.generate(
        prompts, options if len(options) > 1 else options * len(prompts)
    )
    return written


def test_greedy_is_that_of_transformers(seq2seq: Any) -> None:
    """A network opened apart, with its own generation config, one prompt at a time."""
    session = seq2seq._session
    network = AutoModelForSeq2SeqLM.from_pretrained(session.folder)
    forced = len(session.prefix) - 1
    for prompt, answer in zip(PROMPTS, write(seq2seq, PROMPTS, GenerateOptions(max_tokens=12)), strict=True):
        inputs = session.tokenizer(prompt, return_tensors="pt")
        written = network.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=12 + forced,
            do_sample=False,
            num_beams=1,
        )
        ids = written[0, len(session.prefix) :].tolist()
        assert answer.text == session.tokenizer.decode(ids, skip_special_tokens=True)
        assert answer.tokens == len(ids)
        assert answer.finished == (ids[-1] in session.ends)


def test_beams_and_lengths_of_the_checkpoint_are_not_taken_over(
    t5: Any, open_seq2seq_folder: Open, tmp_path: Path
) -> None:
    expected = write(t5, PROMPTS, GenerateOptions(max_tokens=6))
    place = next(place for place, answer in enumerate(expected) if answer.text)
    written = t5._session.target_tokens([expected[place].text])[0]
    shutil.copytree(t5._session.folder, tmp_path / "beams")
    config = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "num_beams": 3}
    path = tmp_path / "beams" / "generation_config.json"
    path.write_text(json.dumps({**config, "min_length": 20, "no_repeat_ngram_size": 1}))
    beams = open_seq2seq_folder(tmp_path / "beams")
    assert write(beams, PROMPTS, GenerateOptions(max_tokens=6)) == expected
    before = beams.identity()
    path.write_text(json.dumps({**config, "bad_words_ids": [[token] for token in written]}))
    forbidding = open_seq2seq_folder(tmp_path / "beams")
    assert write(forbidding, PROMPTS, GenerateOptions(max_tokens=6))[place] != expected[place]
    assert forbidding.identity()["files"] != before["files"]


def sampled(seed: int, **changes: Any) -> GenerateOptions:
    """Hot: the logits of a random network are far apart."""
    return GenerateOptions(max_tokens=8, temperature=8.0, seed=seed, **changes)


def test_sampling_depends_on_the_seed_and_not_on_the_batch(seq2seq: Any) -> None:
    options = [sampled(3), GenerateOptions(max_tokens=8), sampled(4), sampled(5, top_p=0.5)]
    together = write(seq2seq, PROMPTS, *options)
    alone = [seq2seq.generate([one], [option])[0] for one, option in zip(PROMPTS, options, strict=True)]
    backwards = write(seq2seq, PROMPTS[::-1], *options[::-1])[::-1]
    assert together == alone == backwards
    texts = {write(seq2seq, ["yes"], sampled(seed))[0].text for seed in range(6)}
    assert len(texts) > 3


def test_samples_follow_the_probabilities_of_the_nucleus() -> None:
    scores = torch.log(torch.tensor([0.1, 0.5, 0.3, 0.1]))
    counts = [0] * 4
    random = torch.Generator().manual_seed(0)
    option = GenerateOptions(temperature=1.0, top_p=0.75)
    for _ in range(2000):
        counts[_sample(scores, option, random)] += 1
    assert counts[0] == counts[3] == 0
    assert counts[1] / 2000 == pytest.approx(0.5 / 0.8, abs=0.04)
    cold = GenerateOptions(temperature=0.05)
    assert {_sample(scores, cold, random) for _ in range(50)} == {1}


def test_a_stop_string_ends_the_text(seq2seq: Any) -> None:
    whole = write(seq2seq, PROMPTS, sampled(1))
    stops = [answer.text[1:3] or "never" for answer in whole]
    options = [sampled(1, stop=(stop, "not there")) for stop in stops]
    for answer, before, stop in zip(write(seq2seq, PROMPTS, *options), whole, stops, strict=True):
        if stop == "never":
            assert answer == before
            continue
        assert answer.text == before.text[: before.text.index(stop)]
        assert answer.finished
        assert answer.tokens <= before.tokens


def test_texts_end_at_their_own_limit(t5: Any) -> None:
    options = [GenerateOptions(max_tokens=number) for number in (1, 5, 2, 5)]
    answers = write(t5, PROMPTS, *options)
    assert all(answer.tokens <= option.max_tokens for answer, option in zip(answers, options, strict=True))
    assert answers == [t5.generate([one], [option])[0] for one, option in zip(PROMPTS, options, strict=True)]
    assert any(not answer.finished for answer in answers)


def test_the_end_token_finishes(t5: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that wait for a longer one are filled with padding, which is no part of their text."""
    session = t5._session
    eos, pad = session.ends[0], session.pad_id
    ids = session.tokenizer("yes no", add_special_tokens=False)["input_ids"]
    rows = torch.tensor([[*session.prefix, *ids, eos, pad, pad], [*session.prefix, *ids, 5, 6, 7]])
    monkeypatch.setattr(session.network, "generate", lambda **_: rows)
    short, long = write(t5, ["a", "a"], GenerateOptions(max_tokens=len(ids) + 3))
    assert short == Generated(text="yes no", tokens=len(ids) + 1, finished=True)
    assert (long.tokens, long.finished) == (len(ids) + 3, False)


def test_choices_are_ranked_as_complete_answers(seq2seq: Any, open_seq2seq_folder: Open) -> None:
    choices = ("yes", "yes no", "the dog", "")
    answers = write(seq2seq, PROMPTS, GenerateOptions(choices=choices))
    scoring = open_seq2seq_folder(seq2seq._session.folder, score_eos=True)
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        asked = [LikelihoodRequest(context=prompt, continuation=choice) for choice in choices[:-1]]
        totals = {
            one.continuation: a.total for one, a in zip(asked, scoring.loglikelihood(asked), strict=True)
        }
        best = max(totals, key=lambda text: totals[text])
        assert answer.text in (best, "")
        assert answer.finished
    alone = write(seq2seq, PROMPTS, GenerateOptions(choices=choices[:3]))
    assert {answer.text for answer in alone} <= set(choices[:3])


REJECTED: list[tuple[type[Exception], dict[str, Any]]] = [
    (CapabilityError, {"regex": "a+"}),
    (CapabilityError, {"json_schema": {}}),
    (CapabilityError, {"choices": ("a",), "temperature": 1.0}),
    (UsageError, {"choices": ()}),
    (UsageError, {"max_tokens": 0}),
    (UsageError, {"temperature": -1.0}),
    (UsageError, {"top_p": 0.0}),
]


@pytest.mark.parametrize(("error", "options"), REJECTED)
def test_what_it_cannot_do_is_rejected(t5: Any, error: type[Exception], options: dict[str, Any]) -> None:
    with pytest.raises(error) as caught:
        write(t5, ["yes"], GenerateOptions(**options))
    assert type(caught.value) is error


def test_every_prompt_has_its_options(t5: Any) -> None:
    with pytest.raises(UsageError, match="2 prompts and 1 options"):
        t5.generate(["a", "b"], [GenerateOptions()])


def test_conversations_need_a_chat_template(t5: Any) -> None:
    conversation = (
        Turn(role="user", text="yes"),
        Turn(role="assistant", text="no"),
        Turn(role="user", text="cat"),
    )
    with pytest.raises(CapabilityError, match="has no chat template"):
        write(t5, ["yes", conversation], GenerateOptions())
    with pytest.raises(CapabilityError, match="has no chat template"):
        t5.token_counts([conversation])
    template = "{% for m in messages %}{{ m.content }} {% endfor %}</s>"
    t5._session.tokenizer.chat_template = template
    written = write(t5, ["yes no cat", conversation], GenerateOptions(max_tokens=5))
    assert written[0] == written[1]
    counts = t5.token_counts(["yes no cat", conversation])
    assert counts[0] == counts[1]
    t5._session.tokenizer.chat_template = "{{ raise_exception('no system turn') }}"
    with pytest.raises(CapabilityError, match="no system turn"):
        write(t5, [conversation], GenerateOptions())


def test_a_prompt_that_is_cut_says_so(t5: Any, open_seq2seq_folder: Open) -> None:
    model = open_seq2seq_folder(t5._session.folder, max_length=8)
    cut, whole = write(model, [PROMPTS[0] * 3, "yes"], GenerateOptions(max_tokens=2))
    assert (cut.truncated, whole.truncated) == (True, False)


def test_a_decoder_with_positions_writes_no_further(
    seq2seq_folders: dict[str, Any], open_seq2seq_folder: Open
) -> None:
    bart = open_seq2seq_folder(seq2seq_folders["bart"])
    assert seq2seq_generation._room(bart._session, 500, len(bart._session.prefix)) == 63
    (answer,) = write(bart, ["yes"], GenerateOptions(max_tokens=500))
    assert answer.tokens <= 63
