"""Adapters and a word aligner for models that `transformers` runs; this module only declares them."""

from __future__ import annotations

from harness import hookimpl
from harness.data import Aligner, TranslatorEntry
from harness.models import AdapterEntry

__all__ = ["harness_register_adapters", "harness_register_aligners", "harness_register_translators"]


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapters of this package, without importing torch or transformers."""
    return [
        AdapterEntry(
            name="hf",
            target="harness_hf.family:open_any",
            describe="harness_hf.family:describe_any",
            options="harness_hf.family:AnyFamilyOptions",
            check="harness_hf.model_check:check_model",
            summary="A model folder or hub id; the adapter is chosen from its config.json.",
            examples=("hf:models/e5-small", "hf:xlm-roberta-base"),
            extra="hf",
            callbacks=("harness_hf.callback:EvaluateLanguages",),
        ),
        AdapterEntry(
            name="hf-encoder",
            target="harness_hf.encoder.heads:open_encoder",
            describe="harness_hf.description:describe",
            options="harness_hf.options:EncoderOptions",
            fetch="harness_hf.model_folder:fetch_folder",
            tokenizer="harness_hf.model_folder:token_counter",
            check="harness_hf.model_check:check_model",
            summary="A transformers encoder, bare or fine-tuned: embeds, exposes its layers, can be fitted.",
            examples=("hf-encoder:models/e5-small", "hf-encoder:bert-base-multilingual-cased"),
            extra="hf",
        ),
        AdapterEntry(
            name="hf-causal",
            target="harness_hf.causal.adapter:open_causal",
            describe="harness_hf.description:describe_causal",
            options="harness_hf.options:CausalOptions",
            fetch="harness_hf.model_folder:fetch_folder",
            tokenizer="harness_hf.model_folder:token_counter",
            check="harness_hf.model_check:check_model",
            summary="A transformers decoder: scores continuations, writes text, embeds, exposes its layers.",
            examples=("hf-causal:models/smollm2", "hf-causal:gpt2"),
            extra="hf",
        ),
        AdapterEntry(
            name="hf-seq2seq",
            target="harness_hf.seq2seq.adapter:open_seq2seq",
            describe="harness_hf.description:describe_seq2seq",
            options="harness_hf.options:Seq2SeqOptions",
            fetch="harness_hf.model_folder:fetch_folder",
            tokenizer="harness_hf.model_folder:token_counter",
            check="harness_hf.model_check:check_model",
            summary="A transformers encoder-decoder: writes, scores texts, embeds, can be fitted on text pairs.",
            examples=("hf-seq2seq:google/mt5-small",),
            extra="hf",
        ),
    ]


@hookimpl
def harness_register_aligners() -> list[Aligner]:
    """Return the aligner that reads the middle layer of any encoder."""
    return [
        Aligner(
            name="own",
            target="harness_hf.encoder.aligner:open_aligner",
            licence="Apache-2.0",
            summary="Two softmaxes over the hidden states of an encoder's middle layer (8 of 12), as awesome-align's.",
            reference="hf:MODEL",
            needs=("torch", "transformers"),
            install="pip install 'multilingual-harness[hf]'",
        )
    ]


@hookimpl
def harness_register_translators() -> list[TranslatorEntry]:
    """Return the translators of this package, without importing torch or transformers."""
    return [
        TranslatorEntry(
            name="hf-seq2seq",
            target="harness_hf.seq2seq.adapter:open_translator",
            summary="NLLB, M2M100 or MADLAD, which name languages in their vocabulary; greedy.",
            examples=("hf-seq2seq:facebook/nllb-200-distilled-600M", "hf-seq2seq:facebook/m2m100_418M"),
            extra="hf",
        )
    ]
