"""The digest that shows whether two runs asked the same item."""

from __future__ import annotations

from dataclasses import replace

from harness.data.records import ClassificationExample
from harness.running.cell_writer import inputs_text

EXAMPLE = ClassificationExample(
    id="1", inputs={"premise": "a", "hypothesis": "b"}, label="yes", labels=("yes", "no")
)


def test_gold_and_the_list_of_labels_do_not_enter() -> None:
    """An unlabelled copy, or a spec that names its labels in another order, asks the same."""
    assert inputs_text(replace(EXAMPLE, label=None)) == inputs_text(EXAMPLE)
    assert inputs_text(replace(EXAMPLE, labels=("no", "yes"))) == inputs_text(EXAMPLE)


def test_every_input_enters() -> None:
    assert inputs_text(replace(EXAMPLE, inputs={"premise": "a", "hypothesis": "c"})) != inputs_text(EXAMPLE)
    assert inputs_text(replace(EXAMPLE, id="2")) != inputs_text(EXAMPLE)
