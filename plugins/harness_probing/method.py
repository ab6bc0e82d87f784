"""The methods ``probe`` and ``probe_paper``: a cell's prediction is that of the probe of its seed.

The first cell that is asked prepares all cells that read the same sentences: one pass over train and dev, one over
test. The layer is the one that is chosen on dev, with ``probe_paper`` on test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.data import Prediction
from harness.kinds import Method, MethodContext
from harness.models import Capability

KINDS = ("sequence_classification", "token_tagging", "word_labelling")
PRESETS_BY_METHOD = {"probe": "default", "probe_paper": "paper"}
SEEDS = {"probe": (0, 1, 2, 3, 4), "probe_paper": (42,)}


def _prepare(preset: str, adapter: Any, context: MethodContext) -> None:
    from harness_probing.preparation import outcome_of

    outcome = outcome_of(adapter, context, preset)
    if context.seed == context.learning.seeds[0] and outcome.details is not None:
        context.details["probing"] = outcome.details


def _predict(preset: str, adapter: Any, examples: Sequence[Any], context: MethodContext) -> list[Prediction]:
    from harness_probing.preparation import outcome_of
    from harness_probing.problem import output_of

    outcome = outcome_of(adapter, context, preset)
    seed = context.learning.seeds.index(context.seed)
    names = context.spec.label_names
    return [
        Prediction(
            id=example.id,
            output=output_of(
                context.spec.kind, [names[number] for number in outcome.classes(example.id, seed)]
            ),
        )
        for example in examples
    ]


def _method(name: str, kind: str) -> Method:
    preset = PRESETS_BY_METHOD[name]
    return Method(
        name=name,
        kind=kind,
        requires=Capability.EXPOSES_HIDDEN_STATES,
        protocols=frozenset({"frozen"}),
        prepare=lambda adapter, context: _prepare(preset, adapter, context),
        predict=lambda adapter, examples, context: _predict(preset, adapter, examples, context),
        splits=frozenset({"train", "validation"}),
        seeds=SEEDS[name],
        on_request=True,
    )


METHODS = tuple(_method(name, kind) for name in PRESETS_BY_METHOD for kind in KINDS)
