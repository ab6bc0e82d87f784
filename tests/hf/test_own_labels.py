"""What a user fine-tuned is compared with the task before anything is loaded: tags, and the heads of decoders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from transformers import AutoModelForTokenClassification

from harness.models.capabilities import Capability
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import prepare
from harness_hf.description import describe_causal
from harness_hf.options import CausalOptions

Save = Callable[..., Path]
WIKIANN = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
CONLL = ("O", "B-MISC", "I-MISC", "B-PER", "I-PER", "B-LOC", "I-LOC")


def _plan(folder: Path, options: Mapping[str, str] | None = None) -> Plan:
    data, given = data_options(["sample"]), dict(options or {})
    return prepare(RunConfig(tasks=("wikiann:de",), model=f"hf:{folder}", data=data, options=given)).plan


def test_a_tagger_of_other_tags_is_skipped_until_they_are_named(with_head: Save) -> None:
    folder = with_head(AutoModelForTokenClassification, num_labels=7)
    plan = _plan(folder)
    assert not plan.cells
    [skip] = plan.skipped
    assert "-o labels=" in skip.reason
    assert not _plan(with_head(AutoModelForTokenClassification, ["O", "B-X", "I-X"])).cells
    folder = with_head(AutoModelForTokenClassification, num_labels=7)
    named = _plan(folder, {"labels": ",".join(WIKIANN)})
    assert [cell.pairing.protocol for cell in named.cells] == ["frozen"]


def test_tags_that_a_tagger_never_gives_are_noted(with_head: Save) -> None:
    [cell] = (plan := _plan(with_head(AutoModelForTokenClassification, CONLL))).cells
    assert cell.pairing.method.requires is Capability.TAGS
    assert any("B-ORG, I-ORG" in note for note in plan.notes)
    whole = _plan(with_head(AutoModelForTokenClassification, WIKIANN))
    assert not [note for note in whole.notes if "B-" in note]


@pytest.mark.parametrize("head", ["ForSequenceClassification", "ForTokenClassification"])
def test_a_decoder_with_a_head_does_not_write(
    decoder_folders: dict[str, Path], tmp_path: Path, head: str
) -> None:
    folder = shutil.copytree(decoder_folders["llama"], tmp_path / "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": [f"Llama{head}"]}))
    found = describe_causal(str(folder), CausalOptions())
    assert not {Capability.GENERATES, Capability.SCORES_CONTINUATIONS} & found.offers
    assert Capability.FITS in found.offers
    assert head in found.metadata["unread_head"]
