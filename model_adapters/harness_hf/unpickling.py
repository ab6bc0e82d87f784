"""Program that converts pickled weights to safetensors: ``python -m harness_hf.unpickling SOURCE TARGET FILE...``.

Only torch's restricted loader reads them: it builds tensors and containers, and rejects a file that names any other
function before one is called. The exit status is 1, with one sentence on standard output, for a rejected file.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import torch
from huggingface_hub import save_torch_state_dict

SHARD_SIZE = 2_000_000_000
SHARD_END = re.compile(r"(-\d+-of-\d+)?\.bin$")

TIED_TO = [re.compile(name) for name in (r"(^|\.)shared\.", r"wte|embed(?!_out)", "")]
"""Names of embeddings that others are tied to, the first that fits counts."""


def main(source: str, target: str, *files: str) -> None:
    """Write the weights of each model, module or adapter among the files of a folder; raises as `read_weights` does."""
    for start, names in groupby(sorted(files), lambda name: SHARD_END.sub("", name)):
        paths = [Path(source, name) for name in names]
        index = Path(source, f"{start}.bin.index.json")
        if index.is_file() and f"{start}.bin" not in files:
            listed = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            if missing := sorted(listed - {path.name for path in paths}):
                raise ValueError(f"The file {missing[0]!r}, which {index.name!r} names, is missing")
        weights = read_weights(paths)
        folder = Path(target, start).parent
        folder.mkdir(parents=True, exist_ok=True)
        stem = Path(start).name.removeprefix("pytorch_")
        # Readers of adapters and modules expect one file.
        size = SHARD_SIZE if start == "pytorch_model" else sys.maxsize
        pattern = f"{stem}{{suffix}}.safetensors"
        save_torch_state_dict(weights, folder, filename_pattern=pattern, max_shard_size=size)


def read_weights(files: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Return the tensors of the files of one model by name; raises `ValueError` for what is no file of weights.

    Tied weights share storage: they are kept once, under the name of the embedding rather than that of the layer that
    is tied to it, so that a class without that layer finds it; transformers ties them again when it loads the model.
    """
    tensors = [item for file in files for item in _read_file(file).items()]
    tensors.sort(key=lambda item: next(rank for rank, name in enumerate(TIED_TO) if name.search(item[0])))
    weights: dict[str, torch.Tensor] = {}
    views: set[tuple[object, ...]] = set()
    storages: set[int] = set()
    for name, tensor in tensors:
        storage = tensor.untyped_storage().data_ptr()
        view = (storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and view in views:
            continue
        # Different views of one storage are different weights.
        weights[name] = tensor.clone() if storage in storages else tensor
        views.add(view)
        storages.add(storage)
    return weights


def _read_file(file: Path) -> Mapping[str, torch.Tensor]:
    try:
        # Files of torch before 1.6 are no archives, which alone can be mapped into memory.
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
    except Exception as error:
        function = re.search(r"GLOBAL `?([\w.]+)", str(error))
        if function:
            raise ValueError(
                f"The file {file.name!r} names the function {function[1]}, which could run code, so it is rejected; "
                "nothing of it ran"
            ) from error
        raise ValueError(
            f"The file {file.name!r} is cut, or torch did not write it ({type(error).__name__})"
        ) from error
    if not isinstance(content, Mapping) or not all(
        isinstance(item, torch.Tensor) for item in content.values()
    ):
        raise ValueError(
            f"The file {file.name!r} holds a {type(content).__name__} of other things than tensors"
        )
    return content


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)
