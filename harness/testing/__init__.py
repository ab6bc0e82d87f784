"""Contract suites and examples for plugin authors.

The contracts need pytest, which the harness does not: they are imported at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from harness.testing.examples import SENTENCES, UNUSUAL_TEXTS, head_spec, training_examples

if TYPE_CHECKING:
    from harness.testing.adapter_contract import AdapterContract
    from harness.testing.probe import PROBES, is_finite
    from harness.testing.spec_contract import Sample, SpecContract
    from harness.testing.translator_contract import TranslatorContract

__all__ = [
    "PROBES",
    "SENTENCES",
    "UNUSUAL_TEXTS",
    "AdapterContract",
    "Sample",
    "SpecContract",
    "TranslatorContract",
    "head_spec",
    "is_finite",
    "training_examples",
]


_LAZY = {
    "PROBES": "probe",
    "AdapterContract": "adapter_contract",
    "Sample": "spec_contract",
    "SpecContract": "spec_contract",
    "TranslatorContract": "translator_contract",
    "is_finite": "probe",
}
"""Names whose modules import pytest or numpy."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harness.testing.{_LAZY[name]}"), name)
