"""Memory of the attention that overlap needs, against whole attention tensors.

Pairs of texts of 512 pieces through an encoder: under 1.5 GB at its peak with e5-small, the code of torch and the
weights included. Then texts of 2,048 to 8,192 pieces through a small random encoder of 4 layers with 8 heads, whose
attention tensors would take 8.6 GB at the last: the memory above that of the loaded model stays far below one matrix.

    python -m benchmarks.overlap [--model FOLDER] [--pairs N] [--whole]     (on Linux)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

LENGTH, LIMIT_GB = 512, 1.5
LONG = (2048, 4096, 8192)
LAYERS, HEADS, WIDTH = 4, 8, 64
MATRIX = 4 * LONG[-1] ** 2
"""Bytes of the attention of one head at the longest: what memory linear in length stays far below."""


def main() -> int:
    """Measure in processes of their own and print; return 1 where a limit is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="models/e5-small")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--whole", action="store_true", help="Also keep whole tensors, as a peer.")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        sys.stdout.write(json.dumps(_measure(json.loads(given.child))) + "\n")
        return 0
    table = Table(
        "", "length", "peak GB", "above the loaded model, MB", "s a text", title="Attention of pieces"
    )
    model: dict[str, Any] = {"model": given.model, "length": LENGTH, "count": given.pairs, "pairs": True}
    streamed = _run({**model, "whole": False})
    _add(table, f"{given.model}, streamed", LENGTH, streamed)
    if given.whole:
        _add(table, f"{given.model}, whole tensors", LENGTH, _run({**model, "whole": True}))
    growth = []
    with tempfile.TemporaryDirectory() as folder:
        _run({"save": folder, "tokenizer": given.model})
        for length in LONG:
            long = _run({"model": folder, "length": length, "count": 2, "pairs": False, "whole": False})
            _add(table, "random encoder, streamed", length, long)
            growth.append(long["above"])
    Console(width=110).print(table)
    print(
        f"at length {LONG[-1]:,}: {growth[-1] / 1e6:,.0f} MB; one head's matrix alone has {MATRIX / 1e6:,.0f} MB, all "
        f"of them {LAYERS * HEADS * MATRIX / 1e9:.1f} GB (limit: a third of one)"
    )
    print(f"peak at length {LENGTH}: {streamed['peak'] / 1e9:.2f} GB (limit {LIMIT_GB})")
    return int(streamed["peak"] > LIMIT_GB * 1e9 or growth[-1] > MATRIX / 3)


def _run(task: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.overlap", "--child", json.dumps(task)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _add(table: Table, name: str, length: int, found: dict[str, Any]) -> None:
    numbers = (f"{found['peak'] / 1e9:.2f}", f"{found['above'] / 1e6:,.0f}", f"{found['seconds']:.2f}")
    table.add_row(name, f"{length:,}", *numbers)


def _measure(task: dict[str, Any]) -> dict[str, Any]:
    """Do one piece of work in this process; return its memory in bytes."""
    import torch

    from harness.models.capabilities import TextInput
    from harness.models.requests import AttentionOptions
    from harness_hf.encoder.adapter import EncoderSession
    from harness_hf.encoder.attention import stream_attentions
    from harness_hf.options import EncoderOptions

    torch.set_num_threads(1)
    if "save" in task:
        return _save_long(Path(task["save"]), Path(task["tokenizer"]))
    folder = Path(task["model"])
    limit = task["length"]
    given = EncoderOptions(device="cpu", max_length=limit)
    session = EncoderSession(ref=folder.name, folder=folder, options=given, head=None)
    text = "the cat sat on the mat " * task["length"]
    item = TextInput(text=text, text_pair=text if task["pairs"] else None)
    warm = TextInput(text="the cat", text_pair="the mat" if task["pairs"] else None)
    options = AttentionOptions()
    work = _whole if task["whole"] else stream_attentions
    list(work(session, [warm], options))
    loading, before = _memory("VmHWM"), _memory("VmRSS")
    # The peak of loading would hide that of the work.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    started = time.perf_counter()
    found = list(work(session, [item] * task["count"], options))
    seconds = (time.perf_counter() - started) / len(found)
    working = _memory("VmHWM")
    return {"peak": max(loading, working), "above": working - before, "seconds": seconds}


def _whole(session: Any, items: list[Any], options: Any) -> Any:
    """Keep the attention tensors of all layers of a batch, as ``output_attentions=True`` gives them."""
    import torch

    session.backbone.set_attn_implementation("eager")
    encoded = session.encode([one.text for one in items], [one.text_pair for one in items], session.limit)

    def forward(inputs: Any) -> Any:
        layers = session.backbone(**inputs, output_attentions=True).attentions
        return torch.stack([layer[:, :, 0].amax(dim=1) for layer in layers]).amax(dim=0)

    for rows, _ in session.run(encoded, forward, ability="attentions"):
        yield from rows


def _save_long(folder: Path, tokenizer: Path) -> dict[str, Any]:
    """Save a random encoder that takes long texts."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    make: Any = AutoTokenizer
    fast = make.from_pretrained(tokenizer)
    fast.model_max_length = LONG[-1]
    sizes: dict[str, Any] = {
        "hidden_size": WIDTH,
        "intermediate_size": WIDTH,
        "max_position_embeddings": LONG[-1],
    }
    depth: dict[str, Any] = {
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "pad_token_id": fast.pad_token_id,
    }
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(fast), **sizes, **depth)).save_pretrained(folder)
    fast.save_pretrained(folder)
    return {}


def _memory(name: str) -> int:
    """Return a number of this process in bytes: VmHWM, its peak resident memory, or VmRSS, what it has now."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    sys.exit(main())
