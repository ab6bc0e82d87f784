"""Contract suites and examples for plugin authors.

`AdapterContract` needs pytest, which the harness does not: it is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.testing.examples import SENTENCES, UNUSUAL_TEXTS, head_spec, training_examples

if TYPE_CHECKING:
    from harness.testing.adapter_contract import AdapterContract

__all__ = ["SENTENCES", "UNUSUAL_TEXTS", "AdapterContract", "head_spec", "training_examples"]


def __getattr__(name: str) -> Any:
    if name == "AdapterContract":
        from harness.testing.adapter_contract import AdapterContract

        return AdapterContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
