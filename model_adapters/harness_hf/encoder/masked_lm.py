"""Masked language models: log-probabilities of forms in their place, all of their pieces masked at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers.modeling_outputs import BaseModelOutput

from harness import AdapterError, CapabilityError
from harness.models import Call, LikelihoodAnswer, MaskRequest
from harness_hf.encoder.adapter import Encoder, EncoderSession
from harness_hf.inference.pieces import Encoded, piece_offsets
from harness_hf.inference.session import CHUNK, Inputs, Procedure
from harness_hf.loading import choose_dtype, open_network, require_weights


class MaskFiller(Encoder):
    """A bare encoder whose checkpoint has the head of a masked language model."""

    _head: MaskHead | None = None

    def fill_masks(self, requests: Sequence[MaskRequest]) -> list[LikelihoodAnswer]:
        """Return the log-probability of every piece of a form where all of its pieces are masked at once.

        This is the pseudo-log-likelihood of the form with as many masks as it has pieces: one run of the network,
        unlike the one of Salazar et al. (ACL 2020), which shows the model a form's other pieces. The space before a
        form is its own. An answer has no token where the form has an unknown piece, or none. A text that is too long
        loses pieces at both ends, so that the form is in the middle. Raises `CapabilityError` where the tokenizer
        has no mask, `AdapterError` for a form that is longer than the model's limit.
        """
        return self._answers(Call(ability="fill_masks"), requests, CHUNK)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered."""
        if call.ability != "fill_masks":
            return super().procedure(call)
        session = self._session
        if session.tokenizer.mask_token_id is None:
            raise CapabilityError(
                f"The tokenizer of {session.ref!r} has no mask token, so the model fills no masks."
            )
        if self._head is None:
            self._head = MaskHead(session)
        head = self._head
        return Procedure(
            prepare=lambda requests: [_gap(session, request) for request in requests],
            answer=lambda gaps: _fill(session, head, gaps, call),
        )

    def close(self) -> None:
        """Free the network and the head; a second call does nothing."""
        self._head = None
        super().close()


class MaskHead:
    """The head of a masked language model without the network below it, which the session has already."""

    def __init__(self, session: EncoderSession) -> None:
        dtype = choose_dtype(session.options.dtype, session.device)
        network, information = open_network(
            transformers.AutoModelForMaskedLM, session.folder, session.ref, session.options, {"dtype": dtype}
        )
        require_weights(session.ref, sorted(information["missing_keys"]))
        self._states = _GivenStates(session.backbone)
        setattr(network, network.base_model_prefix, self._states)
        self._network = network.to(session.device).eval()

    def logprobs(self, states: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities of shape (positions, vocabulary) for states of shape (positions, dimension)."""
        self._states.states = states.to(self._network.device)[None]
        ids = torch.zeros(self._states.states.shape[:2], dtype=torch.int64, device=self._network.device)
        logits = self._network(input_ids=ids).logits[0]
        return torch.log_softmax(logits.float(), dim=-1)


class _GivenStates(torch.nn.Module):
    """Replaces the network below a head: returns states that were computed before.

    Only those at the masks reach the head, whose output has a number for every piece of the vocabulary.
    """

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        # A tuple hides it from the module's parameters: it is the session's, and stays where it is.
        self._backbone = (backbone,)
        self.states: torch.Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_backbone"][0], name)  # some heads read the embeddings

    def forward(self, *_: Any, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.states)


# Pieces ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A text whose form is masked."""

    encoded: Encoded
    first: int
    """Index of the first mask; one follows another."""
    pieces: tuple[int, ...]
    """The masked pieces; empty where the vocabulary cannot write the form."""
    byte_length: int
    truncated: bool
    straddles: bool

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for forms that one run of the network scores together."""
        return (tuple(self.encoded.input_ids), tuple(self.encoded.type_ids))

    def answer(self, logprobs: Sequence[float], *, is_greedy: bool) -> LikelihoodAnswer:
        return LikelihoodAnswer(
            token_logprobs=tuple(logprobs),
            is_greedy=is_greedy,
            byte_length=self.byte_length,
            truncated=self.truncated,
            straddles=self.straddles,
        )


def _gap(session: EncoderSession, request: MaskRequest) -> _Gap:
    """Return the pieces of a text with its form masked, within the model's limit."""
    tokenizer, template = session.tokenizer, session.single
    start, end = len(request.before.rstrip()), len(request.before) + len(request.form)
    sentence = request.before + request.form + request.after
    encoding = tokenizer(
        sentence,
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    ids, offsets = encoding["input_ids"], piece_offsets(sentence, encoding["offset_mapping"])
    form_pieces = [index for index, (first, stop) in enumerate(offsets) if _meets(first, stop, start, end)]
    masked = range(form_pieces[0], form_pieces[-1] + 1) if form_pieces else range(0)
    pieces = tuple(ids[index] for index in masked)
    room = session.length_limit() - template.size
    if len(pieces) > room:
        raise AdapterError(
            f"The form {request.form[:40]!r} has {len(pieces)} pieces; the model {session.ref!r} takes {room} at once."
        )
    text = list(ids)
    text[masked.start : masked.stop] = [tokenizer.mask_token_id] * len(pieces)
    origin = min(max(0, masked.start - (room - len(pieces)) // 2), max(0, len(text) - room))
    return _Gap(
        encoded=template.wrap(text[origin : origin + room]),
        first=len(template.before) + masked.start - origin,
        pieces=() if tokenizer.unk_token_id in pieces else pieces,
        byte_length=len(request.form.encode("utf-8", "surrogatepass")),
        truncated=len(text) > room,
        straddles=bool(pieces) and (offsets[masked.start][0] < start or offsets[masked.stop - 1][1] > end),
    )


def _meets(first: int, stop: int, start: int, end: int) -> bool:
    """Return whether a piece has a character of a form, or is empty and within it."""
    return first < end and (stop > start or first == stop == start)


# Numbers -----------------------------------------------------------------------------------------------


def _fill(
    session: EncoderSession, head: MaskHead, gaps: Sequence[_Gap], call: Call
) -> Iterator[tuple[list[int], list[LikelihoodAnswer]]]:
    """Yield (numbers of gaps, their answers) after every batch; forms of as many pieces share a run."""
    numbers_by_key: dict[tuple[Any, ...], list[int]] = {}
    for number, gap in enumerate(gaps):
        if gap.pieces:
            numbers_by_key.setdefault(gap.key, []).append(number)
    idle = [number for number, gap in enumerate(gaps) if not gap.pieces]
    yield idle, [gaps[number].answer((), is_greedy=False) for number in idle]
    runs = list(numbers_by_key.values())
    encoded = [gaps[numbers[0]].encoded for numbers in runs]

    def forward(inputs: Inputs) -> tuple[Any, torch.Tensor]:
        masks = inputs["input_ids"] == session.tokenizer.mask_token_id
        states = session.backbone(**inputs).last_hidden_state
        return torch.nonzero(masks).tolist(), head.logprobs(states[masks.to(states.device)])

    for rows, (positions, logprobs) in session.run(
        encoded, forward, ability=call.ability, stopping=call.stopping
    ):
        index_of = {(row, column): index for index, (row, column) in enumerate(positions)}
        best = logprobs.argmax(dim=-1)
        answered = [(number, row) for row, index in enumerate(rows) for number in runs[index]]
        answers = []
        for number, row in answered:
            gap = gaps[number]
            lines = [index_of[row, gap.first + offset] for offset in range(len(gap.pieces))]
            target = torch.tensor(gap.pieces, device=logprobs.device)
            scores = logprobs[lines, target].double().cpu().numpy()
            session.require_finite(scores, "log-probabilities")
            answers.append(gap.answer(scores.tolist(), is_greedy=bool((best[lines] == target).all())))
        yield [number for number, _ in answered], answers
