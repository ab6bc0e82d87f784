"""A tiny Llama that reasons: trained until it writes ``<think>...</think>`` and then the colour that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

COLOURS = ("red", "green", "blue", "white", "black", "brown", "pink", "grey", "gold", "orange")
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: "
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
"""The switch of Qwen3: reasoning that was switched off is empty, and in the prompt."""
OPENING_TEMPLATE = TEMPLATE.replace(
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}", "<think>"
)
"""The template of DeepSeek-R1: it writes the first mark itself."""


def reasoning_of(colour: str) -> str:
    """What the model writes between the marks: two lines."""
    return f"the word says {colour}\nso it is {colour}"


def texts() -> list[str]:
    """The 20 texts: every colour asked with reasoning, and with reasoning switched off."""
    found = []
    for colour in COLOURS:
        asked = f"user: say {colour}\nassistant: "
        found.append(f"{asked}<think>{reasoning_of(colour)}</think>\n\n{colour}\nsaid</s>")
        found.append(f"{asked}<think></think>{colour}\nsaid</s>")
    return found


def save_thinking_model(folder: Path, *, special_marks: bool = False) -> Path:
    """Train the model and save it; `special_marks` makes the marks special tokens, which decoding omits."""
    torch.manual_seed(0)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text.replace("</s>", "") for text in texts()], trainer)
    tokenizer.add_tokens([AddedToken(mark, special=special_marks) for mark in ("<think>", "</think>")])
    make: Any = PreTrainedTokenizerFast
    fast = make(tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>", chat_template=TEMPLATE)
    fast.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(fast), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=256, eos_token_id=1, pad_token_id=2, bos_token_id=0,
    )  # fmt: skip
    model: Any = LlamaForCausalLM(config)
    batch = fast(texts(), return_tensors="pt", padding=True, padding_side="right")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    for row in range(1, len(labels), 2):  # what the template wrote is not to be learnt
        closed = int((batch["input_ids"][row] == fast.convert_tokens_to_ids("</think>")).nonzero()[0])
        labels[row, : closed + 1] = -100
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(160):
        loss = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
    return folder
