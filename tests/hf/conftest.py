"""Tiny random encoders and decoders with tokenizers of the usual sorts, made on the spot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaModel,
)

from harness.data.records import RetrievalPair
from harness.models.capabilities import FitOptions, TrainingSettings
from harness_hf.causal.adapter import open_causal
from harness_hf.description import describe, describe_causal
from harness_hf.encoder.heads import open_encoder
from harness_hf.options import CausalOptions, EncoderOptions
from harness_hf.training import loop

CORPUS = [
    "The cat sat on the warm mat, and the dog slept near the door.",
    "good bad happy sad yes no red green blue one two three",
    "Der Hund schläft neben der Tür, die Katze sitzt auf der Matte.",
    "Le café était fermé; l'élève est rentré à l'école.",
    "यह एक छोटा वाक्य है और बिल्ली चटाई पर बैठी है।",
    "Кошка сидит на тёплом коврике у двери.",
    "القطة تجلس على السجادة قرب الباب.",
    "猫坐在门边的垫子上。",
    "Paka ameketi kwenye mkeka karibu na mlango.",
]
PIECE_LIMIT = 64
Open = Callable[..., Any]
Scarce = Callable[..., AbstractContextManager[list[int]]]
Options = Callable[..., FitOptions]
Pairs = Callable[[int], list[RetrievalPair]]
PlainVectors = Callable[[Any, Any, Sequence[str], int, str], torch.Tensor]


def wordpiece() -> Any:
    """A lower-casing, accent-stripping BERT tokenizer."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), special, strict=True))
    return fast(tokenizer, {f"{key}_token": value for key, value in names.items()})


def unigram() -> Any:
    """A sentencepiece-like XLM-R tokenizer with two separators between the texts of a pair."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return fast(tokenizer, roberta_names())


def byte_level() -> Any:
    """A RoBERTa tokenizer, which marks words by the space before them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False, trim_offsets=True
    )
    return fast(tokenizer, roberta_names())


def split_byte_level() -> Any:
    """A tokenizer in RobBERT's form: words are split before their spaces are marked, and offsets are trimmed."""
    made = byte_level()
    byte_pieces = pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), byte_pieces, pre_tokenizers.Punctuation()]
    )
    made.backend_tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=True, trim_offsets=True
    )
    return made


def roberta_names() -> dict[str, str]:
    return {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }


def fast(tokenizer: Tokenizer, names: dict[str, str]) -> Any:
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=tokenizer, model_max_length=PIECE_LIMIT, **names)


def sizes(tokenizer: Any, positions: int) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": positions,
        "pad_token_id": tokenizer.pad_token_id,
        "hidden_dropout_prob": 0.1,
    }


FAMILIES: dict[str, tuple[Any, Any, Callable[[], Any], int]] = {
    "bert": (BertConfig, BertModel, wordpiece, PIECE_LIMIT),
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaModel, unigram, PIECE_LIMIT + 2),
    "roberta": (RobertaConfig, RobertaModel, byte_level, PIECE_LIMIT + 2),
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two threads on a busy machine are many times slower than one."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of bare encoders by family."""
    root = tmp_path_factory.mktemp("encoders")
    for name, (config_class, model_class, make_tokenizer, positions) in FAMILIES.items():
        tokenizer = make_tokenizer()
        torch.manual_seed(0)
        model_class(config_class(**sizes(tokenizer, positions))).save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return {name: root / name for name in FAMILIES}


MASKED = {"bert": BertForMaskedLM, "xlm-roberta": XLMRobertaForMaskedLM, "roberta": RobertaForMaskedLM}


@pytest.fixture(scope="session")
def masked_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of masked language models by family; their weights are larger than usual, so that choices are clear."""
    root = tmp_path_factory.mktemp("masked")
    for name, (config_class, _, make_tokenizer, positions) in FAMILIES.items():
        tokenizer = make_tokenizer()
        torch.manual_seed(0)
        given = {**sizes(tokenizer, positions), "initializer_range": 0.3}
        network: Any = MASKED[name](config_class(**given))
        network.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return {name: root / name for name in FAMILIES}


@pytest.fixture(scope="session")
def open_folder() -> Open:
    """A function that opens a folder as `harness eval` does."""

    def open_(folder: Path, **options: Any) -> Any:
        given = EncoderOptions(**options)
        return open_encoder(describe(str(folder), given), given)

    return open_


@pytest.fixture(scope="session")
def open_bert(folders: dict[str, Path], open_folder: Open) -> Open:
    """A function that opens a bare BERT with options."""
    return lambda **options: open_folder(folders["bert"], **options)


DECODERS = ("llama", "gpt2")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def decoder_tokenizer(*, begins: bool) -> Any:
    """A byte-level tokenizer: as Llama 3 it puts <s> before a text; as GPT-2 nothing, and trims offsets."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"] if begins else ["<|endoftext|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if not begins:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
        return fast(tokenizer, dict.fromkeys(("bos_token", "eos_token", "unk_token"), special[0]))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return fast(tokenizer, {"bos_token": "<s>", "eos_token": "</s>"})


def save_decoder(folder: Path, family: str, **changes: Any) -> Path:
    """Save a random decoder whose choices are clear: its weights are larger than usual."""
    tokenizer = decoder_tokenizer(begins=family == "llama")
    given = {"vocab_size": len(tokenizer), "initializer_range": 0.3, "eos_token_id": tokenizer.eos_token_id}
    torch.manual_seed(0)
    if family == "llama":
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
        heads = {"num_key_value_heads": 2, "max_position_embeddings": PIECE_LIMIT, "bos_token_id": 0}
        network: Any = LlamaForCausalLM(LlamaConfig(**{**given, **sizes, **heads, **changes}))
    else:
        shape = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": PIECE_LIMIT, "bos_token_id": 0}
        network = GPT2LMHeadModel(GPT2Config(**{**given, **shape, **changes}))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def decoder_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of decoders by family."""
    root = tmp_path_factory.mktemp("decoders")
    return {family: save_decoder(root / family, family) for family in DECODERS}


@pytest.fixture(scope="session")
def open_decoder() -> Open:
    """A function that opens a decoder's folder as `harness eval` does."""

    def open_(folder: Path, **options: Any) -> Any:
        given = CausalOptions(**options)
        return open_causal(describe_causal(str(folder), given), given)

    return open_


@pytest.fixture(scope="session")
def open_llama(decoder_folders: dict[str, Path], open_decoder: Open) -> Open:
    """A function that opens a tiny Llama with options."""
    return lambda **options: open_decoder(decoder_folders["llama"], **options)


@pytest.fixture(scope="session", params=DECODERS)
def decoder(request: pytest.FixtureRequest, decoder_folders: dict[str, Path], open_decoder: Open) -> Any:
    """A decoder of each family."""
    return open_decoder(decoder_folders[request.param])


@pytest.fixture(scope="session")
def llama(open_llama: Open) -> Any:
    """A tiny Llama, which tests only ask."""
    return open_llama()


@pytest.fixture(params=list(FAMILIES))
def encoder(request: pytest.FixtureRequest, folders: dict[str, Path], open_folder: Open) -> Any:
    """A bare encoder of each family."""
    return open_folder(folders[request.param])


@pytest.fixture
def bert(open_bert: Open) -> Any:
    """A bare BERT."""
    return open_bert()


@pytest.fixture
def fit_options(tmp_path: Path) -> Callable[..., FitOptions]:
    """A function that makes the options of a short training stage."""

    def options(name: str = "fit", *, seed: int = 1, **settings: Any) -> FitOptions:
        given = {"learning_rate": 5e-3, "epochs": 3, "batch_size": 8, "max_length": 32, **settings}
        return FitOptions(directory=tmp_path / name, settings=TrainingSettings(**given), seed=seed)

    return options


@pytest.fixture
def with_head(folders: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """A function that saves a randomly initialised checkpoint with a head, as if it had been fine-tuned."""

    def save(auto_class: Any, labels: Sequence[str] | None = None, **changes: Any) -> Path:
        config = AutoConfig.from_pretrained(folders["bert"], **changes)
        if labels is not None:
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: number for number, label in enumerate(labels)}
        torch.manual_seed(3)
        folder: Path = tmp_path / auto_class.__name__
        auto_class.from_config(config).save_pretrained(folder)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (folder / file).write_bytes((folders["bert"] / file).read_bytes())
        return folder

    return save


def weights(adapter: Any) -> dict[str, torch.Tensor]:
    """Return a copy of the weights of an opened model."""
    return {name: value.detach().clone() for name, value in adapter._session.network.state_dict().items()}


def equal(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    """Whether weights have the same names and are the same to the bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def script_scores(
    monkeypatch: pytest.MonkeyPatch,
    scores: Sequence[float],
    check: Callable[[Any, Any], None] = lambda predicted, gold: None,
) -> list[dict[str, torch.Tensor]]:
    """Let a training score these on its dev set, and return a list that receives its weights at each of them."""
    states: list[dict[str, torch.Tensor]] = []
    upcoming, real = iter(scores), loop.train_network

    def scripted(load: Any, data: Any, *args: Any, **keywords: Any) -> Any:
        networks: list[Any] = []

        def loading() -> Any:
            networks.append(load())
            return networks[-1]

        def score(predicted: Any, gold: Any) -> float:
            check(predicted, gold)
            states.append({name: value.detach().clone() for name, value in networks[-1].state_dict().items()})
            return next(upcoming)

        return real(loading, replace(data, score=score), *args, **keywords)

    monkeypatch.setattr("harness_hf.training.loop.train_network", scripted)
    return states


@contextmanager
def _scarce(network: Any, most: int, error: Exception | None = None) -> Iterator[list[int]]:
    forward, rejected = network.forward, []

    # Generation passes on what the signature names; only to one with these names it passes everything.
    def small(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        rows = max((len(one) for one in given if isinstance(one, torch.Tensor)), default=0)
        if rows > most:
            rejected.append(rows)
            raise error or torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return forward(*args, **kwargs)

    network.forward = small
    yield rejected
    del network.forward


@pytest.fixture(scope="session")
def scarce() -> Scarce:
    """A context in which every run of a network over more than `most` rows fails; it gives the sizes of these."""
    return _scarce


WORDS = ("cat", "dog", "mat", "door", "red", "green", "blue", "happy", "sad", "good", "bad", "one")


@pytest.fixture(scope="session")
def pairs() -> Callable[[int], list[RetrievalPair]]:
    """A function that makes questions about one of twelve words, answered by a longer text with that word."""

    def make(count: int) -> list[RetrievalPair]:
        return [
            RetrievalPair(
                id=str(number),
                query=f"where {WORDS[number % len(WORDS)]}",
                passage=f"the {WORDS[number % len(WORDS)]} sat near three" + " two" * (number % 3),
            )
            for number in range(count)
        ]

    return make


@pytest.fixture(scope="session")
def plain_vectors() -> Callable[[Any, Any, Sequence[str], int, str], torch.Tensor]:
    """A function that embeds one text at a time, through transformers alone; gradients flow."""

    def embed(encoder: Any, tokenizer: Any, texts: Sequence[str], limit: int, pooling: str) -> torch.Tensor:
        rows = []
        for text in texts:
            batch = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
            ids = {name: batch[name] for name in ("input_ids", "attention_mask")}
            states = encoder(**ids).last_hidden_state[0]
            if pooling == "pooler":
                vector = torch.tanh(states[0] @ encoder.pooler.dense.weight.T + encoder.pooler.dense.bias)
            else:
                vector = {"mean": states.mean(dim=0), "cls": states[0]}[pooling]
            rows.append(vector / vector.norm())
        return torch.stack(rows)

    return embed


@pytest.fixture(scope="session")
def e5_small() -> Path:
    """The folder of multilingual-e5-small that `make models` makes."""
    root = Path(os.environ.get("HARNESS_MODELS") or Path(__file__).parents[2] / "models")
    if not (root / "e5-small" / "config.json").is_file():
        pytest.skip("models/e5-small is not there: run make models, or set HARNESS_MODELS")
    return root / "e5-small"
