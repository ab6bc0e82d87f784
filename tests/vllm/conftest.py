"""A tiny random Llama with two tokenizers, a stand-in server, and adapters opened as `harness eval` does."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from harness.models.adapters import AdapterEntry
from harness.models.options import parse_options
from harness_vllm import harness_register_adapters

CORPUS = [
    "The cat sat on the warm mat, and the dog slept near the door.",
    "good bad happy sad yes no red green blue one two three answer question",
    "Der Hund schläft neben der Tür, die Katze sitzt auf der Matte.",
    "यह एक छोटा वाक्य है और बिल्ली चटाई पर बैठी है।",
    "Кошка сидит на тёплом коврике у двери.",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
Open = Callable[..., Any]
ENTRIES = {entry.name: entry for entry in harness_register_adapters()}


def load_stand_in() -> Any:
    """The module next to this one, which is also a script."""
    spec = importlib.util.spec_from_file_location("stand_in", Path(__file__).with_name("stand_in.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STAND_IN = load_stand_in()


def make_tokenizer(*, bos: bool) -> Any:
    """A byte-level BPE tokenizer, which puts a BOS token before texts or does not even have one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
        )
    make: Any = PreTrainedTokenizerFast
    names = {"eos_token": "</s>", "pad_token": "<pad>"} | ({"bos_token": "<s>"} if bos else {})
    return make(tokenizer_object=tokenizer, chat_template=CHAT_TEMPLATE, **names)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tokenizers with a Llama's config.json: ``plain`` has no BOS token, ``bos`` has one."""
    root = tmp_path_factory.mktemp("decoders")
    for name in ("plain", "bos"):
        make_tokenizer(bos=name == "bos").save_pretrained(root / name)
        (root / name / "config.json").write_text(
            '{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}'
        )
    return {name: root / name for name in ("plain", "bos")}


@pytest.fixture
def stand_in(folders: dict[str, Path]) -> Iterator[Any]:
    """A running server whose model has no BOS token, and whose tokenizer is not on this machine."""
    with STAND_IN.StandIn(folders["plain"]) as server:
        server.thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def entries() -> dict[str, AdapterEntry]:
    """The adapters of the package."""
    return ENTRIES


@pytest.fixture
def open_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """A function that opens a model as `harness eval` does; closed after the test. Waits take no time."""
    opened: list[Any] = []
    monkeypatch.setattr("harness_vllm.client.FIRST_WAIT", 0.001)

    def open_(name: str, ref: str, **options: Any) -> Any:
        entry = ENTRIES[name]
        given = parse_options(entry, {key: str(value) for key, value in options.items()})
        opened.append(entry.open(entry.describe_model(ref, given), given))
        return opened[-1]

    yield open_
    for model in opened:
        model.close()


@pytest.fixture
def ranker(open_model: Open, stand_in: Any, folders: dict[str, Path]) -> Callable[..., Any]:
    """A function that opens the model of the stand-in, with its tokenizer here by default."""

    def open_(**options: Any) -> Any:
        given = {"tokenizer": folders["plain"], **options}
        url = given.pop("url", stand_in.url)
        return open_model("vllm", url, **{key: value for key, value in given.items() if value is not None})

    return open_


@pytest.fixture(params=["tokenizer here", "server tokenises"])
def either_ranker(request: pytest.FixtureRequest, ranker: Callable[..., Any]) -> Callable[..., Any]:
    """As `ranker`, with the tokenizer here, and with that of the server."""
    given = {"tokenizer": None} if request.param == "server tokenises" else {}
    return lambda **options: ranker(**{**given, **options})


@pytest.fixture
def chat(open_model: Open, stand_in: Any) -> Callable[..., Any]:
    """A function that opens the stand-in as a chat endpoint."""
    return lambda **options: open_model("openai", stand_in.url, **options)


@pytest.fixture
def embedder(open_model: Open, stand_in: Any) -> Callable[..., Any]:
    """A function that opens the stand-in as a pooling server."""
    return lambda **options: open_model("vllm", stand_in.url, runner="pooling", **options)


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of a Python interpreter that has vllm; see `stand_in` for what goes wrong."""
    program = tmp_path / "python"
    script = Path(__file__).with_name("stand_in.py")
    program.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" "{script}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("STAND_IN_PIDS", str(tmp_path / "pids"))
    return program


@pytest.fixture
def pids(tmp_path: Path) -> Callable[[], list[int]]:
    """A function that gives the processes that stand-in servers have started."""
    return lambda: [int(word) for word in (tmp_path / "pids").read_text().split()]


@pytest.fixture
def runs() -> Callable[[int], bool]:
    """A function that says whether a process runs; a zombie does not."""

    def runs_(pid: int) -> bool:
        try:
            os.kill(pid, 0)
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (ProcessLookupError, FileNotFoundError):
            return False

    return runs_


@pytest.fixture(scope="class")
def class_stand_in(folders: dict[str, Path]) -> Iterator[Any]:
    """A running server with a context that is long enough for the contract's texts."""
    with STAND_IN.StandIn(folders["plain"], context=16_384) as server:
        server.thread.start()
        yield server
        server.shutdown()
