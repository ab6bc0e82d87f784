"""The files of a Hub model that vLLM opens, downloaded beforehand: a server would download them when it starts."""

from __future__ import annotations

from pathlib import Path

from harness import AdapterError
from harness.models import AdapterOptions, ModelDescription, hub_is_unreachable
from harness_vllm.client import is_url
from harness_vllm.options import VllmOptions

SMALL_FILES = ["*.json", "*.model", "*.txt", "*.jinja", "*.py", "*.tiktoken"]
IGNORED = ["original/*", "onnx/*", "openvino/*", "coreml/*"]


def fetch_folder(description: ModelDescription, options: AdapterOptions) -> Path | None:
    """Return the folder of a model, downloaded where it is a hub id; None for a server that runs already.

    Other types of weights than safetensors are downloaded only where the repository has no others, as vLLM does.
    Raises `AdapterError`.
    """
    assert isinstance(options, VllmOptions)
    ref, path = description.ref, Path(description.ref).expanduser()
    if is_url(ref) or path.is_dir():
        return None if is_url(ref) else path
    from huggingface_hub import snapshot_download

    for weights in ("*.safetensors", "*.bin", "*.pt"):
        patterns = [*SMALL_FILES, weights]
        try:
            folder = Path(
                snapshot_download(
                    ref,
                    revision=options.revision,
                    allow_patterns=patterns,
                    ignore_patterns=IGNORED,
                    local_files_only=hub_is_unreachable(),
                )
            )
        except Exception as error:
            reason = str(error).strip().split("\n", maxsplit=1)[0]
            raise AdapterError(
                f"The hub model {ref!r} cannot be downloaded: {type(error).__name__}: {reason.rstrip('.')}.",
                hint="Check its name, the network (HF_HUB_OFFLINE), and for a private or gated one run: hf auth login",
            ) from error
        if any(folder.glob(weights)):
            return folder
    raise AdapterError(f"The hub model {ref!r} has no weights that vLLM opens, or the hub did not list them.")
