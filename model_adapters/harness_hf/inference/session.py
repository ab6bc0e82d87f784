"""An opened model: its tokenizer and its network, run over many texts.

Answers come batch by batch, while another thread tokenises the next block of requests.
"""

from __future__ import annotations

import copy
import gc
import inspect
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from tokenizers.normalizers import Lowercase

from harness import AdapterError, CapabilityError
from harness.models import Ability, Answered, Call, DevScore, FloatArray, Prompt, SystemTurns, Turn
from harness_hf.fit_record import FitRecord, folder_identity, library_versions
from harness_hf.inference.pieces import (
    BatchPlan,
    Encoded,
    SpecialTokens,
    TokenBudget,
    by_length,
    free_memory,
    pad_batch,
    tokens_within,
)
from harness_hf.loading import choose_precision, first_line, piece_limit, place
from harness_hf.model_folder import SentenceFiles, read_sentence_files
from harness_hf.options import ModelOptions

CHUNK = 16_384
"""Texts that are tokenised and sorted by length together; bounds the memory that pieces take."""
BATCH_TOKENS: Mapping[str, int] = {"cpu": 1024, "cuda": 16_384}
"""Pieces in a batch: on a CPU small batches stay in its caches (measured: 8,192 takes a third longer).

On a GPU they are for blocks of requests, which must not depend on free memory."""
ANSWER_OPTIONS = (
    "max_length",
    "layer",
    "query_prefix",
    "passage_prefix",
    "query_prompt",
    "passage_prompt",
    "attn_implementation",
)
"""Options that change the answers of any model, and so belong to its identity."""
LOWER_CASE = Lowercase()
Inputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """How the requests of one ability are answered, a block at a time."""

    prepare: Callable[[Sequence[Any]], Any]
    """Tokenises a block of requests; may be called in another thread, but never in two at once."""
    answer: Callable[[Any], Iterator[tuple[Sequence[int], Sequence[Any]]]]
    """Runs what `prepare` returned: yields (numbers within the block, their answers) after every batch."""


class AnswerStream:
    """Base of adapters: their methods use `stream`, and they add their abilities to `procedure`."""

    _session: ModelSession
    _record: FitRecord | None = None
    """How the model was fitted; None where it was not."""

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the answers: weights digest, precision, versions, options."""
        return self._session.identity()

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        self._session.close()

    def block_characters(self, ability: Ability) -> int | None:
        """Return how many characters of text make a block; it depends on options and device only."""
        return self._session.block_characters

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Return the answers of all requests of all blocks, every one once, as batches are done.

        Errors that concern all requests are raised at once, as the method of the ability does.
        """
        return self._stream(self.procedure(call), call, [block for block in blocks if len(block)])

    def dev_score(self) -> DevScore | None:
        """Return the dev score of the fitted model; None where none was measured."""
        return None if self._record is None else self._record.dev_score()

    def training_loss(self) -> Mapping[str, float] | None:
        """Return the losses at both ends of its training; None where it was not fitted."""
        return None if self._record is None else self._record.training_loss()

    def notices(self) -> Sequence[str]:
        """Return sentences for the user about how the model was trained and asked, and the memory that it found."""
        trained = () if self._record is None else self._record.notices()
        return [*trained, *self._session.notices(), *self._session.budget.notices()]

    def procedure(self, call: Call) -> Procedure:
        """Return how the call's requests are answered; raises `CapabilityError` for another ability."""
        raise CapabilityError(f"The model {self._session.ref!r} has no ability {call.ability!r}.")

    def _stream(
        self, procedure: Procedure, call: Call, blocks: Sequence[Sequence[Any]]
    ) -> Iterator[Answered]:
        session = self._session

        def prepare(block: Sequence[Any]) -> Any:
            with session.tokenizing:
                return procedure.prepare(block)

        first = 0
        with closing(_one_ahead(prepare, blocks)) as prepared:
            for block in blocks:
                if call.stopping():
                    return
                for numbers, answers in procedure.answer(next(prepared)):
                    if len(numbers):
                        yield Answered(indices=[first + number for number in numbers], answers=answers)
                first += len(block)

    def _answers(self, call: Call, requests: Sequence[Any], size: int) -> list[Any]:
        """Return the answers in order; `size` requests are tokenised and sorted by length together."""
        result: list[Any] = [None] * len(requests)
        for answered in self.stream(call, _cut(requests, size)):
            for index, answer in zip(answered.indices, answered.answers, strict=True):
                result[index] = answer
        return result

    def _rows(self, call: Call, requests: Sequence[Any], size: int, width: int) -> FloatArray:
        """Return the answers as an array of shape (requests, width); see `_answers`."""
        result = np.empty((len(requests), width), dtype=np.float32)
        for answered in self.stream(call, _cut(requests, size)):
            result[list(answered.indices)] = answered.answers
        return result


class Parts:
    """Requests that are run in parts, and answered once the last of these is done."""

    def __init__(self, owners: Sequence[int], requests: int) -> None:
        self._owners = owners
        self._missing: list[int] = np.bincount(
            np.asarray(owners, dtype=np.int64), minlength=requests
        ).tolist()

    def idle(self) -> list[int]:
        """Return the requests without any part."""
        return [number for number, count in enumerate(self._missing) if count == 0]

    def finish(self, numbers: Iterable[int]) -> list[int]:
        """Return the requests that are complete now that these parts are done."""
        complete = []
        for number in numbers:
            owner = self._owners[number]
            self._missing[owner] -= 1
            if self._missing[owner] == 0:
                complete.append(owner)
        return complete


def _one_ahead(
    prepare: Callable[[Sequence[Any]], Any], blocks: Sequence[Sequence[Any]]
) -> Generator[Any, None, None]:
    """Yield the prepared blocks; while one is used, a thread prepares the next."""
    if len(blocks) < 2:
        yield from map(prepare, blocks)
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenise") as worker:
        coming = worker.submit(prepare, blocks[0])
        for block in blocks[1:]:
            prepared = coming.result()
            coming = worker.submit(prepare, block)
            yield prepared
            del prepared
        yield coming.result()


def _cut(requests: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [requests[start : start + size] for start in range(0, len(requests), size)]


Result = TypeVar("Result")


class ModelSession:
    """Owns the tokenizer and the network of one model folder, until it is closed."""

    adapter: ClassVar[str]
    answer_options: ClassVar[tuple[str, ...]] = ()
    """Further options that belong to the identity."""
    block_factor: ClassVar[int] = 8
    """Characters of a block of requests for every piece of a batch: a few batches, so that lengths can be sorted."""
    block_device: ClassVar[str | None] = None
    """The device whose usual batches a block counts; by default that of the model."""
    reads_left_to_right: ClassVar[bool] = False
    single: SpecialTokens

    def __init__(
        self, *, ref: str, folder: Path, options: ModelOptions, tokenizer: Any, network: Any
    ) -> None:
        self.ref = ref
        self.folder = folder
        self.options = options
        self.tokenizer = tokenizer
        self.tokenizing = threading.RLock()
        """Held during every use of the tokenizer, because other threads use it too."""
        self._network: Any
        self._network, self.device = self.place(network)
        self.dtype = str(network.dtype).removeprefix("torch.")
        self.random_seed: int | None = None
        """Seed of random weights; None where the weights are those of the folder."""
        self.budget = TokenBudget(ref, self.batch_tokens())
        self.has_pooler = False
        self._system = SystemTurns(ref)
        self._has_code = bool(getattr(network.config, "auto_map", None))
        self._inputs = _input_names(network, tokenizer)
        self.depth, self.limit, self.sentence_files = self._measure(network)

    def place(self, network: Any) -> tuple[Any, torch.device]:
        """Return the network ready to answer, and the device that its inputs have to be on."""
        return place(network, self.options)

    def batch_tokens(self, cached: int = 0) -> int:
        """Return the pieces of a batch: the option's, or what fits into a GPU, with `cached` further bytes each."""
        if self.options.batch_tokens or self.device.type == "cpu":
            return self.options.batch_tokens or BATCH_TOKENS["cpu"]
        return tokens_within(free_memory(self.device), self.network, cached)

    def _measure(self, network: Any) -> tuple[int, int, SentenceFiles]:
        """Return the number of layers, the most pieces of a sequence, and what the folder says about vectors."""
        limit = piece_limit(network.config.get_text_config(), self.tokenizer)
        return (
            int(network.config.get_text_config().num_hidden_layers),
            limit,
            read_sentence_files(self.folder),
        )

    def identity(self) -> Mapping[str, str]:
        """Return digests, precision, versions and options as text."""
        options = (*ANSWER_OPTIONS, *self.answer_options)
        drawn = {} if self.random_seed is None else {"weights": f"random, seed {self.random_seed}"}
        return {
            "adapter": self.adapter,
            **self.own_identity(),
            "device": self.device.type,
            "dtype": self.dtype,
            **self.file_identity(),
            **library_versions(),
            **{f"option.{name}": self.option_value(name) for name in options},
            **drawn,
        }

    def file_identity(self) -> Mapping[str, str]:
        """Return the identity of the weights, and of all other files that the library may read."""
        return folder_identity(self.folder)

    def option_value(self, name: str) -> str:
        """Return the value of an option here: ``auto`` precision of training depends on the device."""
        value = str(getattr(self.options, name))
        if name == "mixed_precision" and value == "auto":
            return choose_precision(value, self.device)
        return value

    def own_identity(self) -> Mapping[str, str]:
        """Return further parts of the identity of this kind of model."""
        return {}

    def notices(self) -> list[str]:
        """Return a sentence where Python code of the model's repository runs, and where system texts were moved."""
        sentences = self._system.notices()
        if self.options.trust_remote_code and self._has_code:
            sentences.append(
                f"The model {self.ref!r} runs Python code of its own repository, as trust_remote_code=true allows."
            )
        return sentences

    @property
    def network(self) -> Any:
        """The network with its head; raises `AdapterError` once the session is closed."""
        if self._network is None:
            raise AdapterError(f"The model {self.ref!r} has been closed.")
        return self._network

    @property
    def backbone(self) -> Any:
        """The network without its head."""
        return self.network.base_model

    @property
    def width(self) -> int:
        """The length of a hidden state."""
        config = self.network.config
        return int((getattr(config, "encoder", None) or config.get_text_config()).hidden_size)

    def untrained(self, seed: int) -> Self:
        """Return a session of the same tokenizer and architecture, its weights drawn by `seed`.

        The global random state does not change. Raises `CapabilityError` where the network is divided over devices.
        """
        if self.options.device_map is not None:
            raise CapabilityError(
                f"The model {self.ref!r} is divided over several devices, so it has no twin with random weights.",
                hint="Omit -o device_map.",
            )
        network = self.network
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # Made on the CPU, so that the weights are the same whatever the device.
            with torch.device("cpu"):
                draw = getattr(network, "drawn_anew", None)
                drawn = draw() if draw else type(network)(copy.deepcopy(network.config))
        twin = copy.copy(self)
        twin._network = drawn.to(device=network.device, dtype=network.dtype).eval()
        twin.random_seed = seed
        return twin

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        if self._network is None:
            return
        self._network = None
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()

    # Vectors --------------------------------------------------------------------------------------------

    @property
    def whole_text(self) -> SpecialTokens:
        """The special pieces around a text that becomes a vector."""
        return self.single

    def cased(self, text: str) -> str:
        """Return the text in lower case where the model folder asks for that."""
        return LOWER_CASE.normalize_str(text) if self.sentence_files.lower_case else text

    # Texts ----------------------------------------------------------------------------------------------

    def length_limit(self, requested: int | None = None) -> int:
        """Return how many pieces a sequence may have: `requested`, else the option's, within the model's."""
        return min(requested or self.options.max_length or self.limit, self.limit)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[Encoded]:
        """Return the pieces of texts or pairs of texts, the longer one cut first above `max_length`."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            list(pairs) if pairs is not None else None,
            truncation="longest_first",
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=True,
        )
        rows = zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
        return [Encoded(ids, types) for ids, types in rows]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of pieces, without special ones; waits while another thread uses the tokenizer."""
        with self.tokenizing:
            text = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def render(
        self, prompt: Prompt, template: str | None = None, variables: Mapping[str, Any] | None = None
    ) -> str:
        """Return the text of a prompt, by `template` or the model's own where it is a conversation.

        Where the template rejects or drops the system text, this is put before the first user turn.

        `variables` are what the template reads besides the conversation, such as the switch for reasoning.

        Raises `CapabilityError` where there is no chat template, or it rejects the conversation.
        """
        if isinstance(prompt, str):
            return prompt
        if template is None and self.tokenizer.chat_template is None:
            raise CapabilityError(
                f"The model {self.ref!r} has no chat template, so it cannot be given a conversation.",
                hint="Give plain prompts; hf-causal takes a template file with -o chat_template=FILE.",
            )

        def rendered(turns: tuple[Turn, ...]) -> str:
            return self._rendered(turns, template, variables)

        return self._system.send(prompt, rendered, rendered)

    def _rendered(
        self, turns: tuple[Turn, ...], template: str | None, variables: Mapping[str, Any] | None
    ) -> str:
        try:
            text = self.tokenizer.apply_chat_template(
                [{"role": turn.role, "content": turn.text} for turn in turns],
                tokenize=False,
                add_generation_prompt=True,
                chat_template=template,
                **(variables or {}),
            )
        except Exception as error:
            raise CapabilityError(
                f"The chat template of {self.ref!r} rejects the conversation: {first_line(error)}"
            ) from error
        return str(text)

    def pad(self, batch: Sequence[Encoded]) -> Inputs:
        """Return the model inputs of a batch, padded to its longest sequence."""
        return pad_batch(batch, self.tokenizer.pad_token_id, self._inputs)

    # Batches --------------------------------------------------------------------------------------------

    @property
    def block_characters(self) -> int:
        """How many characters of text make a block of requests."""
        kind = self.block_device or ("cpu" if self.device.type == "cpu" else "cuda")
        return self.block_factor * (self.options.batch_tokens or BATCH_TOKENS[kind])

    def run(
        self,
        encoded: Sequence[Encoded],
        forward: Callable[[Inputs], Result],
        *,
        ability: str,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[list[int], Result]]:
        """Yield (indices, what `forward` returned for them) for batches of similar length, the longest first."""

        def run_batch(batch: list[int]) -> Result:
            inputs = self.pad([encoded[index] for index in batch])
            return forward({name: tensor.to(self.device) for name, tensor in inputs.items()})

        return self.run_numbers(
            [len(sequence) for sequence in encoded], run_batch, ability=ability, stopping=stopping
        )

    def run_numbers(
        self,
        lengths: Sequence[int],
        forward: Callable[[list[int]], Result],
        *,
        ability: str,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[list[int], Result]]:
        """Do what `run` does, with the indices of a batch given to `forward`.

        See `TokenBudget.run` for what happens where memory is short.
        """
        plan = BatchPlan(
            ability=ability, pack=by_length(lengths), size=lengths.__getitem__, stopping=stopping
        )
        return self.budget.run(range(len(lengths)), forward, plan)

    def require_finite(self, values: Any, values_name: str) -> None:
        """Raise `AdapterError` where the model returned NaN or infinity."""
        finite = torch.isfinite(values) if isinstance(values, torch.Tensor) else np.isfinite(values)
        if not bool(finite.all()):
            raise AdapterError(
                f"The model {self.ref!r} returned {values_name} that are not finite, in {self.dtype}.",
                hint="Pass -o dtype=float32.",
            )


def _input_names(network: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the inputs that tokenizer and network both know; segments only where the network distinguishes them."""
    accepted = inspect.signature(getattr(network, "backbone", network).forward).parameters
    segments = int(getattr(network.config, "type_vocab_size", 2) or 0) > 1
    return tuple(
        name
        for name in ("input_ids", "attention_mask", "token_type_ids")
        if name in accepted
        and (name != "token_type_ids" or (segments and name in tokenizer.model_input_names))
    )
