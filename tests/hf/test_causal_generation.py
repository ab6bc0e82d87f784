from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.errors import AdapterError, CapabilityError, UsageError
from harness.models.requests import GenerateOptions, LikelihoodRequest, Turn
from harness.testing.examples import SENTENCES

from .conftest import CHAT_TEMPLATE, CORPUS, PIECE_LIMIT, Open

PROMPTS = ("The cat", "Der Hund schläft neben", "猫坐在", "बिल्ली", "a", "")
TALK = (Turn(role="system", text="Be brief."), Turn(role="user", text="Where is the cat?"))


def greedy(folder: Path, prompt: str, count: int) -> tuple[str, int]:
    """Return what `model.generate` writes, and how many tokens that takes."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    ids = tokenizer(prompt)["input_ids"] or [tokenizer.bos_token_id]
    written = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.int64),
        max_new_tokens=count,
        do_sample=False,
        pad_token_id=0,
    )[0, len(ids) :]
    text = tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return str(text), len(written)


def same(options: GenerateOptions, count: int) -> list[GenerateOptions]:
    return [options] * count


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_greedy_text_is_that_of_transformers(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    folder = decoder_folders[family]
    for budget in (1, 60, 4000):
        model = open_decoder(folder, batch_tokens=budget)
        for count in (1, 12):
            options = same(GenerateOptions(max_tokens=count), len(PROMPTS))
            answers = model.generate(PROMPTS, options)
            for prompt, answer in zip(PROMPTS, answers, strict=True):
                assert (answer.text, answer.tokens) == greedy(folder, prompt, count)
                assert answer.finished == (answer.tokens < count)


def test_an_end_token_ends_the_text(open_llama: Open) -> None:
    model = open_llama()
    (free,) = model.generate(["The cat"], [GenerateOptions(max_tokens=10)])
    ids = model._session.tokenizer(free.text, add_special_tokens=False)["input_ids"]
    _, written = _greedy_ids(model, "The cat", 10)
    first = written.index(written[4])
    model._session.network.generation_config.eos_token_id = [1, written[4]]
    (ended,) = model.generate(["The cat"], [GenerateOptions(max_tokens=10)])
    assert ids
    assert ended.finished
    assert ended.tokens == first + 1
    assert ended.text == model._session.decode(written[:first])


def _greedy_ids(model: Any, prompt: str, count: int) -> tuple[list[int], list[int]]:
    """Return the prompt's tokens and the greedy ones after them, by a loop without cache."""
    ids = model._session.tokens.encode([prompt])[0]
    size = len(ids)
    with torch.no_grad():
        for _ in range(count):
            ids = [*ids, int(model._session.network(torch.tensor([ids])).logits[0, -1].argmax())]
    return ids[:size], ids[size:]


def test_stop_strings_cut_exactly(llama: Any) -> None:
    """Every substring of what is written, used as a stop string, cuts before its first occurrence."""
    prompt = max(" ".join(CORPUS).split(), key=lambda word: len(_whole_characters(llama, word)))
    text = _whole_characters(llama, prompt)
    assert len(text) >= 10
    stops = sorted({text[start : start + size] for start in range(len(text) - 3) for size in (1, 2, 3)})
    options = [GenerateOptions(max_tokens=16, stop=(stop, "never written")) for stop in stops]
    inside = 0
    for stop, answer in zip(stops, llama.generate([prompt] * len(stops), options), strict=True):
        assert answer.finished
        assert answer.text == text[: text.index(stop)]
        pieces = llama._session.tokenizer(answer.text, add_special_tokens=False)["input_ids"]
        inside += len(pieces) != answer.tokens
    assert inside


def _whole_characters(model: Any, prompt: str) -> str:
    """Return the beginning of what is written that holds whole characters only."""
    (answer,) = model.generate([prompt], [GenerateOptions(max_tokens=16)])
    return str(answer.text).split("\ufffd")[0]


def test_a_stop_string_that_is_a_special_token(open_llama: Open) -> None:
    model = open_llama()
    _, written = _greedy_ids(model, "The cat", 6)
    model._session.tokenizer.get_added_vocab = lambda: {"<stop>": written[3]}
    (answer,) = model.generate(["The cat"], [GenerateOptions(max_tokens=6, stop=("<stop>",))])
    assert answer.finished
    assert answer.tokens == written.index(written[3]) + 1


def test_sampling_depends_on_the_seed_alone(llama: Any) -> None:
    options = [GenerateOptions(max_tokens=10, temperature=1.5, seed=seed) for seed in range(6)]
    prompts = ["The cat"] * 6
    together = llama.generate(prompts, options)
    assert len({answer.text for answer in together}) > 3
    backwards = llama.generate(prompts[::-1], options[::-1])[::-1]
    alone = [llama.generate([prompt], [one])[0] for prompt, one in zip(prompts, options, strict=True)]
    among_others = llama.generate(
        [*prompts, *SENTENCES], [*options, *same(GenerateOptions(max_tokens=3), 9)]
    )[:6]
    assert together == backwards == alone == among_others


def test_sampling_follows_the_probabilities(llama: Any) -> None:
    """Frequencies of 400 first tokens against the softmax; the nucleus leaves the unlikely ones out."""
    ids = llama._session.tokens.encode(["The cat"])[0]
    with torch.no_grad():
        shares = (llama._session.network(torch.tensor([ids])).logits[0, -1] / 0.7).softmax(-1)
    texts = [llama._session.decode([token]) for token in range(len(shares))]
    text = texts[int(shares.argmax())]
    for top_p in (1.0, 0.5):
        options = [
            GenerateOptions(max_tokens=1, temperature=0.7, top_p=top_p, seed=seed) for seed in range(400)
        ]
        answers = llama.generate(["The cat"] * 400, options)
        ordered = shares.sort(descending=True)
        size = int((ordered.values.cumsum(0) < top_p).sum()) + 1 if top_p < 1 else len(shares)
        nucleus = ordered.indices[:size].tolist()
        like = [token for token in nucleus if texts[token] == text]
        expected = float(shares[like].sum() / shares[nucleus].sum())
        found = sum(answer.text == text for answer in answers) / 400
        assert abs(found - expected) < 0.08
        assert {answer.text for answer in answers} <= {texts[token] for token in nucleus}


def test_a_low_temperature_is_greedy(llama: Any) -> None:
    cold = same(GenerateOptions(max_tokens=8, temperature=1e-4, seed=5), len(PROMPTS))
    assert llama.generate(PROMPTS, cold) == llama.generate(
        PROMPTS, same(GenerateOptions(max_tokens=8), len(PROMPTS))
    )


def test_choices_are_ranked(llama: Any) -> None:
    choices = (" yes", " no", " the door")
    (answer,) = llama.generate(["The cat"], [GenerateOptions(choices=choices)])
    scores = llama.loglikelihood(
        [LikelihoodRequest(context="The cat", continuation=choice) for choice in choices]
    )
    best = max(zip(scores, choices, strict=True), key=lambda pair: pair[0].total)
    assert answer.text == best[1]
    assert answer.tokens == len(best[0].token_logprobs)
    assert answer.finished


@pytest.mark.parametrize("constraint", [{"regex": "[0-9]+"}, {"json_schema": {"type": "object"}}])
def test_other_constraints_name_who_can(llama: Any, constraint: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError, match="'vllm'"):
        llama.generate(["a"], [GenerateOptions(**constraint)])


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"stop": ("",)}, {"choices": ()}]
)
def test_senseless_options_are_rejected(llama: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        llama.generate(["a"], [GenerateOptions(**wrong)])
    with pytest.raises(UsageError, match="1 prompts and 0 options"):
        llama.generate(["a"], [])


def test_a_long_prompt_is_cut_from_the_left(decoder_folders: dict[str, Path], open_decoder: Open) -> None:
    for family in ("llama", "gpt2"):
        model = open_decoder(decoder_folders[family])
        before = len(model._session.tokens.before)
        ids = model._session.tokens.encode(["good bad happy sad " * 40])[0]
        prompt = "good bad happy sad " * 40
        (answer,) = model.generate([prompt], [GenerateOptions(max_tokens=10)])
        assert answer.truncated
        kept = [*ids[:before], *ids[len(ids) - (PIECE_LIMIT - 10 - before) :]]
        assert len(kept) == PIECE_LIMIT - 10
        with torch.no_grad():
            for _ in range(answer.tokens):
                kept.append(int(model._session.network(torch.tensor([kept])).logits[0, -1].argmax()))
        assert answer.text == model._session.decode(kept[PIECE_LIMIT - 10 :])
        with pytest.raises(AdapterError, match=f"cannot write {PIECE_LIMIT}"):
            model.generate(["a"], [GenerateOptions(max_tokens=PIECE_LIMIT)])


def test_conversations_need_a_chat_template(
    decoder_folders: dict[str, Path], open_decoder: Open, tmp_path: Path
) -> None:
    folder = decoder_folders["llama"]
    bare = open_decoder(folder)
    with pytest.raises(CapabilityError) as caught:
        bare.generate([TALK], [GenerateOptions()])
    assert repr(str(folder)) in str(caught.value)
    assert "chat_template" in str(caught.value)
    (tmp_path / "chat.jinja").write_text(CHAT_TEMPLATE)
    model = open_decoder(folder, chat_template=tmp_path / "chat.jinja")
    written = "<s>[system] Be brief.\n[user] Where is the cat?\n[assistant]"
    tokens = AutoTokenizer.from_pretrained(folder)(written, add_special_tokens=False)["input_ids"]
    assert tokens.count(0) == 1
    assert model._session.tokens.encode_prompts([TALK]) == [tokens]
    assert model.token_counts([TALK, "The cat", ""]) == [
        len(tokens),
        len(bare._session.tokens.encode(["The cat"])[0]),
        1,
    ]
    options = GenerateOptions(max_tokens=5)
    assert model.generate([TALK, written], [options, options])[0] == model.generate([written], [options])[0]
    (chosen,) = model.generate([TALK], [GenerateOptions(choices=(" yes", " no"))])
    assert chosen.text in (" yes", " no")
    assert model.identity() != bare.identity()


def test_a_template_that_rejects(open_llama: Open, tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text("{{ raise_exception('no system turn') }}")
    model = open_llama(chat_template=tmp_path / "chat.jinja")
    with pytest.raises(CapabilityError, match="no system turn"):
        model.generate([TALK], [GenerateOptions()])
    with pytest.raises(UsageError, match="cannot be read"):
        open_llama(chat_template=tmp_path / "none.jinja")


def test_the_context_length(open_llama: Open, llama: Any) -> None:
    assert llama.context_length() == PIECE_LIMIT
    assert open_llama(max_length=32).context_length() == 32


def test_models_without_a_cache_of_rows(decoder_folders: dict[str, Path], open_decoder: Open) -> None:
    """As recurrent models are run: nothing shared, prompts of one length together, the same answers."""
    folder = decoder_folders["llama"]
    plain, model = open_decoder(folder), open_decoder(folder)
    model._session.caches_rows = False
    options = same(GenerateOptions(max_tokens=6), len(SENTENCES))
    prompts: Sequence[str] = [text[:9] for text in SENTENCES]
    assert model.generate(prompts, options) == plain.generate(prompts, options)
    asked = [LikelihoodRequest(context=text, continuation=c) for text in prompts for c in (" a b", " c d e")]
    for one, other in zip(model.loglikelihood(asked), plain.loglikelihood(asked), strict=True):
        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)


GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "[{{ m['role'] }}] {{ m['content'] | trim }}\n{% endfor %}"
)
MISTRAL = GEMMA.partition("{% endif %}")[2].join(["{{ bos_token }}", ""])
DROPPING = (
    "{% for m in messages if m['role'] != 'system' %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
)
SHOTS = (
    Turn(role="system", text="Be brief."),
    Turn(role="user", text="The dog?"),
    Turn(role="assistant", text="Here."),
    Turn(role="user", text="The cat?"),
)


@pytest.mark.parametrize("template", [GEMMA, MISTRAL, DROPPING])
def test_a_template_without_a_system_role_gets_its_text_once(
    open_llama: Open, tmp_path: Path, template: str
) -> None:
    (tmp_path / "chat.jinja").write_text(template)
    model = open_llama(chat_template=tmp_path / "chat.jinja")
    assert model.notices() == []
    for _ in range(2):
        written = model._session.render(SHOTS, template)
        assert written.removeprefix("<s>") == (
            "[user] Be brief.\n\nThe dog?\n[assistant] Here.\n[user] The cat?\n"
        )
    assert model._session.render(SHOTS[1:], template).count("Be brief.") == 0
    assert len(model.notices()) == 1


def test_a_template_with_a_system_role_keeps_the_turn(open_llama: Open, tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text(CHAT_TEMPLATE)
    model = open_llama(chat_template=tmp_path / "chat.jinja")
    assert model._session.render(SHOTS, CHAT_TEMPLATE).startswith("<s>[system] Be brief.\n[user] The dog?")
    assert model.notices() == []
