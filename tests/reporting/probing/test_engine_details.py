"""The kept results have the form that the engine gives today, so that reports are tested on what they will read."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from harness_probing.reporting.section import read_probing
from harness_probing.settings import ProbeSettings
from tests.reporting.probing.conftest import PROBED, kept_details
from tests.reporting.probing.engine_details import all_details, make_details

UPDATE = "HARNESS_UPDATE_GOLDEN"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(own) for key, own in value.items()}
    return [_rounded(own) for own in value] if isinstance(value, list | tuple) else value


def _form(value: Any) -> Any:
    """Return names and types of everything within."""
    if isinstance(value, dict):
        return {key: _form(own) for key, own in value.items()}
    if isinstance(value, list):
        return [_form(own) for own in value]
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


@pytest.mark.skipif(not os.environ.get(UPDATE), reason=f"makes the kept results anew: {UPDATE}=1")
def test_make_the_kept_results() -> None:
    kept = {name: _rounded(details) for name, details in all_details()}
    PROBED.write_text(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def test_the_engine_gives_the_form_of_the_kept_results() -> None:
    kept = kept_details("hf:second")["vyakarana_pos", "", "original"]
    found = json.loads(json.dumps(_rounded(make_details("vyakarana_pos", [0.2, 0.8, 0.6, 0.3]))))
    assert _form(found) == _form(kept)
    for block in ("headline", "last"):
        now, then = found["problem"][block], kept["problem"][block]
        assert now["weighted_f1"]["value"] == pytest.approx(then["weighted_f1"]["value"], abs=0.05)
    assert found["problem"]["baselines"] == kept["problem"]["baselines"]


def test_the_published_preset_can_be_reported(write_probes: Any) -> None:
    from harness.reporting.documents import terminal_text
    from tests.reporting.probing.conftest import make_cells

    settings = ProbeSettings.preset("paper", max_epochs=2)
    details = make_details("vyakarana_pos", [0.2, 0.8, 0.6, 0.3], settings=settings, random=False)
    cells = make_cells("vyakarana_pos", {"treebank": "original"}, details, method="probe_paper")
    text = terminal_text([write_probes(*cells)], width=80)
    assert "mean over 1 seed of the probes" in text
    assert "chosen on test" in " ".join(text.split())
    [row] = [line for line in text.splitlines() if line.startswith("   original") and "-" in line]
    own = details["problem"]
    assert row.split()[1:4] == [
        f"{value * 100:.1f}"
        for value in (
            own["best_on_test"]["weighted_f1"]["value"],
            own["baselines"]["majority"]["weighted_f1"],
            own["baselines"]["type_majority"]["weighted_f1"],
        )
    ]
    assert row.split()[4:] == ["-"] * 5, "no random encoder, layer 0, control, code or mix"
    section = read_probing([write_probes(*cells)])
    assert section is not None
    assert section.blocks
