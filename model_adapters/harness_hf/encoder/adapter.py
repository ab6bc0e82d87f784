"""The adapter of encoders: embeddings, hidden states, and fine-tuning into an adapter with a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.models import Adapter, EmbedOptions, FitOptions, Head, HeadSpec
from harness_hf.fit_record import FitRecord
from harness_hf.heads import load_network
from harness_hf.inference.pieces import SpecialTokens, read_templates
from harness_hf.inference.session import ModelSession
from harness_hf.inference.text_vectors import TextVectors
from harness_hf.loading import load_tokenizer, placing, require_fitting_vocabulary
from harness_hf.options import EncoderOptions

if TYPE_CHECKING:
    from harness_hf.encoder.heads import Heads


class Encoder(TextVectors):
    """An encoder without a head: it embeds, exposes its hidden states, and can be fitted."""

    _session: EncoderSession
    fits_together = True

    def __init__(self, session: EncoderSession, record: FitRecord | None, fitter: Heads) -> None:
        self._session = session
        self._fitter = fitter
        self._record = record
        self.reads_left_to_right = session.reads_left_to_right

    @property
    def _limit(self) -> int:
        """The most pieces of a sequence that the head reads."""
        return self._session.length_limit(self._record.max_length if self._record else None)

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many pieces a sequence of one text or of a pair has room for; see `CutsTexts`."""
        if options is not None:
            return super().text_room(texts, options)
        session = self._session
        return self._limit - (session.single if texts == 1 else session.pair).size

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Adapter:
        """Fine-tune a copy of this model with the head of `spec`; see `harness_hf.encoder.heads.Heads.fit`."""
        return self._fitter.fit(self._session, train, validation, spec, options)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`; raises `AdapterError` for any other."""
        return self._fitter.load(directory, spec, self._session.options)


class EncoderSession(ModelSession):
    """Owns the tokenizer and the network of an encoder, with a head or without."""

    options: EncoderOptions
    adapter = "hf-encoder"
    answer_options = ("pooling", "mixed_precision", "train_batch_tokens", "train_parts")

    def __init__(
        self, *, ref: str, folder: Path, options: EncoderOptions, head: Head | None, network: Any = None
    ) -> None:
        """Open the folder; a `network` that is open already is used as it is."""
        self.head = head
        tokenizer = self.open_tokenizer(folder, ref, options)
        has_pooler = False
        if network is None:
            network, has_pooler = load_network(folder, ref, head, options, placing(options, folder))
        require_fitting_vocabulary(ref, tokenizer, network, added=not self.reads_left_to_right)
        super().__init__(ref=ref, folder=folder, options=options, tokenizer=tokenizer, network=network)
        self.has_pooler = has_pooler
        self.single, self.pair = self.find_templates()

    def open_tokenizer(self, folder: Path, ref: str, options: EncoderOptions) -> Any:
        """Return the tokenizer of a folder; raises `AdapterError` for one that cannot be used."""
        return load_tokenizer(folder, ref, options)

    def find_templates(self) -> tuple[SpecialTokens, SpecialTokens]:
        """Return the special pieces around one text and around a pair."""
        return read_templates(self.tokenizer)

    def own_identity(self) -> Mapping[str, str]:
        """Return the name of the head, and the labels that the user gave its outputs."""
        labels = {} if self.options.labels is None else {"option.labels": self.options.labels}
        return {"head": str(self.head or "none"), **labels}
