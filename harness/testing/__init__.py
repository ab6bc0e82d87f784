"""Contract suites and examples for plugin authors.

`AdapterContract` and `SpecContract` need pytest, which the harness does not: they are imported when they are asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.testing.examples import SENTENCES, UNUSUAL_TEXTS, head_spec, training_examples

if TYPE_CHECKING:
    from harness.testing.adapter_contract import AdapterContract
    from harness.testing.spec_contract import SpecContract

__all__ = [
    "SENTENCES",
    "UNUSUAL_TEXTS",
    "AdapterContract",
    "SpecContract",
    "head_spec",
    "training_examples",
]


def __getattr__(name: str) -> Any:
    if name == "AdapterContract":
        from harness.testing.adapter_contract import AdapterContract

        return AdapterContract
    if name == "SpecContract":
        from harness.testing.spec_contract import SpecContract

        return SpecContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
