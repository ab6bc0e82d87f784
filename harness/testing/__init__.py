"""Contract suites and examples for plugin authors.

`AdapterContract`, `SpecContract` and `TranslatorContract` need pytest, which the harness does not: they are imported
when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.testing.examples import SENTENCES, UNUSUAL_TEXTS, head_spec, training_examples

if TYPE_CHECKING:
    from harness.testing.adapter_contract import AdapterContract
    from harness.testing.spec_contract import SpecContract
    from harness.testing.translator_contract import TranslatorContract

__all__ = [
    "SENTENCES",
    "UNUSUAL_TEXTS",
    "AdapterContract",
    "SpecContract",
    "TranslatorContract",
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
    if name == "TranslatorContract":
        from harness.testing.translator_contract import TranslatorContract

        return TranslatorContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
