"""Texts that are written in rows: the same whatever is next to them, in the memory that their cache takes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, Gemma2Config, MistralConfig, T5Config

from harness.models.requests import Call, GenerateOptions
from harness_hf.causal import generation
from harness_hf.causal.prefix import CacheCost
from harness_hf.causal.session import CausalSession
from harness_hf.inference import pieces as memory

from .conftest import CORPUS, PIECE_LIMIT, Open, decoder_tokenizer, fast, save_decoder

SHOTS = "The cat sat on the warm mat. Der Hund schläft neben der Tür. "
PROMPTS = (
    *(f"{SHOTS}{end}" for end in ("The dog", "a", "The cat sat on", "good bad happy", "The dog")),
    *("The cat", "Der Hund schläft neben", "猫坐在", "बिल्ली", "", "one two one two one two one"),
)
WINDOWED: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": PIECE_LIMIT,
    "initializer_range": 0.3,
    "sliding_window": 6,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Decoders with grouped heads, learnt positions, windows in all layers, and in every second one."""
    root = tmp_path_factory.mktemp("rows")
    saved = {family: save_decoder(root / family, family) for family in ("llama", "gpt2")}
    tokenizer = decoder_tokenizer(begins=True)
    for name, kind in {"mistral": MistralConfig, "gemma2": Gemma2Config}.items():
        torch.manual_seed(0)
        make: Any = AutoModelForCausalLM
        config = kind(vocab_size=len(tokenizer), num_hidden_layers=2, **WINDOWED)
        make.from_config(config).save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
        saved[name] = root / name
    return saved


def options(count: int) -> list[GenerateOptions]:
    """Return options of texts that end after 1 to 12 tokens; every second one is sampled."""
    return [
        GenerateOptions(max_tokens=1 + number * 5 % 12, temperature=number % 2 * 1.2, top_p=0.9, seed=number)
        for number in range(count)
    ]


def sizes(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return a list that receives (rows, columns) of all that the network reads."""
    read: list[tuple[int, int]] = []
    forward = type(model._session).forward

    def counted(self: Any, inputs: Any, *arguments: Any, **keywords: Any) -> Any:
        read.append(tuple(inputs["input_ids"].shape))
        return forward(self, inputs, *arguments, **keywords)

    monkeypatch.setattr(type(model._session), "forward", counted)
    return read


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "gemma2"])
def test_a_text_is_the_same_whatever_is_next_to_it(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    """One row, three, eight and all; any order; shared beginnings read once or not; prompts read one by one or not."""
    asked = list(zip(PROMPTS, options(len(PROMPTS)), strict=True))
    model = open_decoder(folders[family])
    alone = [model.generate([prompt], [option])[0] for prompt, option in asked]
    assert len({answer.text for answer in alone}) > 5
    for number, most in enumerate((1, 3, 8, 32)):
        monkeypatch.setitem(generation.MOST_ROWS, "cpu", most)
        model._session.budget.tokens = (1, 40, 1024, 1024)[number]
        order = random.Random(number).sample(range(len(asked)), len(asked))
        answers = model.generate([asked[place][0] for place in order], [asked[place][1] for place in order])
        assert answers == [alone[place] for place in order]
    apart = open_decoder(folders[family], share_prefixes=False)
    assert apart.generate(PROMPTS, options(len(PROMPTS))) == alone


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "gemma2"])
def test_the_cost_of_a_row_is_what_its_cache_takes(
    folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    session = open_decoder(folders[family])._session
    for length in (1, 5, 6, 7, 20):
        ids = torch.full((3, length), 5)
        with torch.inference_mode():
            cache = session.network(input_ids=ids, use_cache=True).past_key_values
        taken = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers) / 3
        window = sum(size for span, size in session.row_cost.per_token if span is not None and length >= span)
        assert (
            session.row_cost.row(length) == taken + window
        )  # the token that leaves a window while one is added
    assert session.row_cost.has_windows == (family in ("mistral", "gemma2"))


def test_grouped_heads_windows_and_types_in_numbers() -> None:
    """Of a cache by hand: 30 layers of 3 heads x 64 in float32 take 46,080 bytes per token."""

    def layer(heads: int, dtype: torch.dtype, **more: Any) -> Any:
        states = torch.zeros((1, heads, 1, 64), dtype=dtype)
        return type("Layer", (), {"keys": states, "values": states, "is_initialized": True, **more})

    full = type("Cache", (), {"layers": [layer(3, torch.float32)] * 30})
    assert CacheCost.measure(full).row(100) == 100 * 30 * 2 * 3 * 64 * 4
    mixed = type(
        "Cache",
        (),
        {
            "layers": [layer(8, torch.bfloat16), layer(8, torch.bfloat16, sliding_window=512)] * 2
            + [type("Shared", (), {"is_initialized": False})]
        },
    )
    assert CacheCost.measure(mixed).row(2000) == 2 * 2 * 8 * 64 * 2 * (2000 + 512)


def test_rows_fill_the_room_and_waiting_texts_replace_those_that_are_done(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_decoder(folders["llama"])
    session = model._session
    prompts = ["one two one"] * 12
    length = len(session.tokens.encode_prompts(prompts[:1])[0]) + 24
    session.cache_budget.tokens = 4 * session.row_cost.row(length)
    counts = [24, *[6] * 11]
    read = sizes(model, monkeypatch)
    answers = model.generate(prompts, [GenerateOptions(max_tokens=count) for count in counts])
    assert [answer.tokens for answer in answers] == counts
    assert max(rows for rows, _ in read) == 4
    # One row writes the long text while three write 3, 3, 3 and 2 short ones: batches of four would take 24 + 6 + 6.
    assert sum(1 for _, columns in read if columns == 1) <= 26


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_texts_that_outgrow_the_memory_are_suspended_and_stay_the_same(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    """More rows than the longest texts leave room for; any order; half of the texts end before their limit."""
    model = open_decoder(folders[family])
    session = model._session
    asked = list(
        zip(PROMPTS, [replace(one, max_tokens=one.max_tokens * 2) for one in options(11)], strict=True)
    )
    alone = [model.generate([prompt], [option])[0] for prompt, option in asked]
    monkeypatch.setattr(generation, "GROWTH", 2)
    lengths = [len(ids) + 1 for ids in session.tokens.encode_prompts(PROMPTS)]
    longest = max(length + option.max_tokens for length, (_, option) in zip(lengths, asked, strict=True))
    room = session.cache_budget.tokens = 2 * session.row_cost.row(longest)
    taken, suspended = watch_rows(monkeypatch)
    for seed in range(2):
        order = random.Random(seed).sample(range(len(asked)), len(asked))
        answers = model.generate([asked[place][0] for place in order], [asked[place][1] for place in order])
        assert answers == [alone[place] for place in order]
    assert max(rows for rows, _ in taken) > 2
    assert max(size for _, size in taken) <= room
    assert suspended
    assert not session.cache_budget.notices()


def watch_rows(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, int]], list[int]]:
    """Return lists that receive (rows, bytes of their cache) after every token, and the tokens of suspended texts."""
    taken: list[tuple[int, int]] = []
    suspended: list[int] = []
    advance, suspend = generation._Rows.advance, generation._Rows.suspend

    def advanced(rows: Any, together: Any) -> Any:
        done = advance(rows, together)
        layers = rows._cache.layers if rows.active else ()
        size = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
        taken.append((len(rows.active), size))
        return done

    def left(rows: Any) -> Any:
        waiting = suspend(rows)
        suspended.extend(len(one.ids) for one in waiting)
        return waiting

    monkeypatch.setattr(generation._Rows, "advance", advanced)
    monkeypatch.setattr(generation._Rows, "suspend", left)
    return taken, suspended


def test_few_rows_are_suspended_where_texts_end_early(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of 40 tokens that texts of a few do not reach takes the memory of a few."""
    monkeypatch.setattr(generation, "GROWTH", 4)
    model = open_decoder(folders["llama"])
    session = model._session
    [ids] = session.tokens.encode_prompts(["one two one"])
    session.cache_budget.tokens = session.row_cost.row(len(ids) + 1 + 40)
    [first] = model.generate(["one two one"], [GenerateOptions(max_tokens=1)])
    taken, suspended = watch_rows(monkeypatch)
    limit = GenerateOptions(max_tokens=40, stop=(first.text,))
    answers = model.generate(["one two one"] * 6, [limit] * 6)
    assert [answer.tokens for answer in answers] == [1] * 6
    assert len(taken) <= 3
    assert not suspended


def test_texts_are_returned_as_they_are_done_and_none_begins_after_a_stop(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(generation.MOST_ROWS, "cpu", 2)
    model = open_decoder(folders["llama"])
    asked = [("The cat", GenerateOptions(max_tokens=count)) for count in (12, 2, 2, 2, 2, 2)]
    stopped = False
    call = Call(ability="generate", stopping=lambda: stopped)
    done: list[list[int]] = []
    for answered in model.stream(call, [asked]):
        done.append(list(answered.indices))
        stopped = len(done) == 3
    assert done[0] == [1]
    assert 0 in done[-1]
    assert sorted(index for indices in done for index in indices) == [0, 1, 2, 3]


def test_a_shared_beginning_is_read_once(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for texts that begin later, and for several samples of one prompt."""
    monkeypatch.setitem(generation.MOST_ROWS, "cpu", 3)
    model = open_decoder(folders["llama"])
    read = sizes(model, monkeypatch)
    prompts = [f"{SHOTS}{end}" for end in ("The dog", "a", "cat", "mat", "door", "The dog", "The dog")]
    shared = len(model._session.tokens.encode([SHOTS])[0])
    model.generate(prompts, [GenerateOptions(max_tokens=3, temperature=1.0, seed=seed) for seed in range(7)])
    assert sum(rows for rows, columns in read if columns >= shared - 2) <= 2
    assert sum(rows * columns for rows, columns in read if columns > 1) < 3 * shared


def pieces(kind: str) -> Any:
    """Return a fast tokenizer: bytes, words marked by a space sign with bytes for the rest, or parts of words."""
    if kind == "bytes":
        return decoder_tokenizer(begins=True)
    special = ["<s>", "</s>"]
    if kind == "metaspace":
        unknown = [f"<0x{number:02X}>" for number in range(256)]
        tokenizer = Tokenizer(models.BPE(byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        trainer: Any = trainers.BpeTrainer(
            vocab_size=500, special_tokens=special + unknown, show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="</s>"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return fast(tokenizer, {"bos_token": "<s>", "eos_token": "</s>"})


@pytest.mark.parametrize("kind", ["bytes", "metaspace", "wordpiece"])
@given(seed=st.integers(0, 10**6))
def test_the_newest_token_shows_where_a_stop_string_may_end(llama: Any, kind: str, seed: int) -> None:
    """Whatever becomes complete with a token, in characters of several tokens too, is noticed at this token."""
    session = CausalSession.__new__(CausalSession)
    session.__dict__.update({**llama._session.__dict__, "tokenizer": TOKENIZERS[kind], "_hidden": {}})
    session._characters = CHARACTERS.setdefault(kind, {})
    source = random.Random(seed)
    ids = [source.randrange(2, len(TOKENIZERS[kind])) for _ in range(12)]
    before = session.decode_marked(ids[:1], ())
    for end in range(2, len(ids) + 1):
        text = session.decode_marked(ids[:end], ())
        for start in range(len(text)):
            for stop in (text[start : start + 1], text[start : start + 3]):
                if stop not in before and "\ufffd" not in stop:
                    assert session.may_end_with(ids[end - 1], {stop[-1]}, ()), (stop, before, text)
        before = text


TOKENIZERS = {kind: pieces(kind) for kind in ("bytes", "metaspace", "wordpiece")}
CHARACTERS: dict[str, Any] = {}


def test_reading_the_text_decodes_every_kind_of_token_once(
    folders: dict[str, Path], open_decoder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop strings that are never written: most tokens are looked up, not decoded."""
    model = open_decoder(folders["llama"])
    decoded: list[int] = []
    decode = type(model._session).decode_marked

    def counted(self: Any, ids: Sequence[int], markers: Any) -> str:
        decoded.append(len(ids))
        return str(decode(self, ids, markers))

    monkeypatch.setattr(type(model._session), "decode_marked", counted)
    stop = ("\x00\x01", "\x02")
    answers = model.generate(PROMPTS, [GenerateOptions(max_tokens=40, stop=stop)] * len(PROMPTS))
    assert sum(answer.tokens for answer in answers) > 300
    vocabulary, fixed = len(model._session.tokenizer), 4 * len(PROMPTS)
    assert sum(1 for size in decoded if size == 1) <= vocabulary + fixed
    partial = sum(1 for size in decoded if size > 1)
    assert partial < 0.6 * sum(answer.tokens for answer in answers)


@given(
    seed=st.integers(0, 10**6),
    top_p=st.sampled_from([1.0, 0.95, 0.3, 1e-9]),
    spread=st.sampled_from([0.0, 0.1, 3.0, 40.0]),
)
def test_sampling_is_that_of_a_whole_sort_and_withstands_last_bits(
    seed: int, top_p: float, spread: float
) -> None:
    """With ties and words that are forbidden; without a nucleus, noise of 1e-6 in all logits changes no token."""
    source = np.random.default_rng(seed)
    logits = (source.integers(-3, 4, size=700) * spread).astype(np.float32)
    logits[source.integers(0, 700, size=50)] = -np.inf
    weights = np.exp((logits.astype(np.float64) - logits.max()) / 0.7)
    order = np.argsort(-weights, kind="stable")
    size = int(np.searchsorted(np.cumsum(weights[order] / weights.sum()), top_p)) + 1
    race = logits.astype(np.float64) / 0.7 - np.log(np.random.default_rng(seed).standard_exponential(700))
    nucleus = order[: size if top_p < 1 else None]
    options = GenerateOptions(max_tokens=1, temperature=0.7, top_p=top_p)

    def sample(read: Any) -> int:
        text: Any = SimpleNamespace(options=options, random=np.random.default_rng(seed))
        return generation._sample(read, text)

    assert sample(logits) == nucleus[race[nucleus].argmax()]
    best, second = np.sort(race)[[-1, -2]]
    if top_p == 1 and best - second > 1e-4:
        assert sample(logits + source.normal(0, 1e-6, size=700).astype(np.float32)) == sample(logits)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes that a GPU has free, besides 2 GiB that its allocator holds unused."""
    free = [40 * 2**30]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free[0], 80 * 2**30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3 * 2**30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2**30)
    yield free


def test_free_memory_of_a_gpu(gpu: list[int]) -> None:
    assert memory.free_memory(torch.device("cuda:0")) == int(0.8 * 42 * 2**30)


def test_free_memory_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    machine = memory.free_memory(cpu)
    assert machine > 0
    (tmp_path / "memory.current").write_text("6000000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory(cpu) > 3_500_000
    (tmp_path / "memory.max").write_text("10000000\n")
    assert memory.free_memory(cpu) == 1_000_000
    (tmp_path / "memory.max").write_text("5000000\n")
    assert memory.free_memory(cpu) == 0


def test_batches_of_a_gpu_follow_its_free_memory(
    folders: dict[str, Path], open_decoder: Open, gpu: list[int]
) -> None:
    """Arithmetic only: the network stays on the CPU."""
    session = open_decoder(folders["llama"])._session
    assert session.batch_tokens() == 1024
    session.device = torch.device("cuda:0")
    activations = 4 * (8 * 32 + 3 * 64)
    gpu[0] = 10**8 - 2 * 2**30
    assert session.batch_tokens() == int(0.8 * 10**8) // activations
    assert session.batch_tokens(1000) == int(0.8 * 10**8) // (activations + 1000)
    gpu[0] = 80 * 2**30
    assert session.batch_tokens() == memory.MOST_TOKENS
    gpu[0] = -2 * 2**30
    assert session.batch_tokens() == memory.LEAST_TOKENS
    given_by_user = open_decoder(folders["llama"], batch_tokens=300)._session
    given_by_user.device = session.device
    assert given_by_user.batch_tokens() == 300
    assert given_by_user.cache_budget.tokens == 300 * given_by_user.row_cost.row(1)


def test_a_decoder_behind_an_encoder_keeps_two_caches() -> None:
    config = T5Config(d_model=16, d_ff=64, num_layers=3, is_encoder_decoder=True)
    network = SimpleNamespace(config=config, dtype=torch.bfloat16)
    assert memory.tokens_within(10**8, network, 0) == 10**8 // (2 * ((8 + 4 * 3) * 16 + 3 * 64))
